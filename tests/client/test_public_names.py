"""The names of the package: imported when they are asked for, and none is forgotten."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import rota


def test_every_public_name_is_there_and_listed() -> None:
    assert set(rota.__all__) <= set(dir(rota))
    assert all(getattr(rota, name).__name__ == name for name in rota.__all__)


def test_type_checkers_see_the_same_names_as_python() -> None:
    tree = ast.parse(Path(rota.__file__).read_text())
    told = next(node for node in tree.body if isinstance(node, ast.If))
    homes = {alias.name: node.module for node in told.body if isinstance(node, ast.ImportFrom) for alias in node.names}

    assert {name: rota._HOME_OF[name] for name in rota.__all__} == homes


def test_a_name_that_does_not_exist_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'rota' has no attribute 'Celery'"):
        rota.Celery  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Celery'"):
        exec("from rota import Celery")


def test_importing_the_package_imports_nothing_else_of_it() -> None:
    script = "import sys, rota; print(sorted(name for name in sys.modules if name.startswith(('rota.', 'msgspec'))))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)

    assert done.stdout.strip() == "[]"


def test_a_worker_can_be_started_from_code() -> None:
    from rota.worker import WorkerConfig, run_worker

    assert (WorkerConfig.__name__, run_worker.__name__) == ("WorkerConfig", "run_worker")
    assert importlib.import_module("rota.worker").__all__ == ["WorkerConfig", "run_worker"]
