"""The distributions and clean environments. `make dist` names the distributions to test in ROTA_TEST_DIST."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]

#: Creates an environment and installs a requirement into it. Returns the folder of its commands.
Install = Callable[[str], Path]


def build(tree: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Builds a wheel and a source distribution, without any other program."""
    return subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)],
        cwd=tree,
        env={"PATH": "", "HOME": os.environ.get("HOME", "/")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel and the source distribution of this tree."""
    given = os.environ.get("ROTA_TEST_DIST")
    if given:
        return Path(given)
    folder = tmp_path_factory.mktemp("dist")
    built = build(ROOT, folder)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture
def clean_environment(tmp_path: Path) -> dict[str, str]:
    """The environment without settings of Rota, of Python, or of another server."""
    dropped = ("ROTA_", "REDIS_", "PYTHON", "VIRTUAL_ENV", "OTEL_", "TRACE_", "COVERAGE", "PYTEST")
    return {name: value for name, value in os.environ.items() if not name.startswith(dropped)}


@pytest.fixture
def install(tmp_path: Path, clean_environment: dict[str, str]) -> Install:
    """Installs into an environment of its own."""

    def create(requirement: str) -> Path:
        venv.create(tmp_path / "venv", with_pip=True)
        commands = tmp_path / "venv" / "bin"
        words = [str(commands / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", requirement]
        done = subprocess.run(words, env=clean_environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return commands

    return create
