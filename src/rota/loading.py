"""Finds the user's `Rota` by a path such as `shop.tasks:rota`, given on a command line. Stored data never gets here."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from pathlib import Path
from typing import Final

from rota.client import Rota
from rota.errors import ConfigurationError

logger = logging.getLogger("rota")

#: Variables of the environment that name a collector of traces or metrics: with one of them, jobs are traced.
COLLECTORS: Final = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    "TRACE_EXPORTER_URL",
)


def load_app(path: str) -> Rota:
    """The `Rota` at `module:name`, or the only one in `module`. Raises ConfigurationError that says what is wrong."""
    module_name, _, attribute = path.partition(":")
    if not module_name or module_name.endswith(".py") or "/" in module_name:
        hint = module_name.removesuffix(".py").strip("./").replace("/", ".") or "tasks"
        raise ConfigurationError(f"{path!r} is not a module path: write it as {hint}:rota")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise ConfigurationError(
                f"{module_name} cannot be imported: it needs {error.name}, which is not installed"
            ) from error
        raise ConfigurationError(f"there is no module {error.name!r} in {folder} or on the Python path") from error
    except Exception as error:
        raise ConfigurationError(f"{module_name} cannot be imported: {type(error).__name__}: {error}") from error
    if attribute:
        found = getattr(module, attribute, None)
        if not isinstance(found, Rota):
            what = "there is none" if found is None else f"it is a {type(found).__name__}"
            raise ConfigurationError(f"{path!r} should name a Rota, but {what}; {_others(module_name, module)}")
        return found
    candidates = _apps(module)
    if len(candidates) != 1:
        raise ConfigurationError(f"{path!r} does not say which Rota is meant; {_others(module_name, module)}")
    return next(iter(candidates.values()))


def equip(rota: Rota) -> None:
    """Has what a program enqueues and runs traced, where the environment names a collector."""
    named = [name for name in COLLECTORS if os.environ.get(name)]
    if not named:
        return
    try:
        from rota.otel import equip as trace
    except ImportError as error:
        logger.warning("%s is set, and nothing is traced: %s; pip install 'rota[otlp]'", named[0], error)
        return
    trace(rota)


def _apps(module: object) -> dict[str, Rota]:
    found = {name: value for name, value in vars(module).items() if isinstance(value, Rota)}
    # The same object under two names is one candidate.
    return {name: value for name, value in found.items() if name == next(n for n, v in found.items() if v is value)}


def _others(module_name: str, module: object) -> str:
    names = [f"{module_name}:{name}" for name in _apps(module)]
    return f"the module has {', '.join(names)}" if names else "the module has no Rota at all"
