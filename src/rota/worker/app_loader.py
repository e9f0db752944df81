"""Imports the user's `Rota` from a path such as `shop.tasks:rota`, given on a command line; never from stored data."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from pathlib import Path
from typing import Final

from rota.client.rota import Rota
from rota.errors import ConfigurationError
from rota.install_command import install_command

logger = logging.getLogger("rota")

#: Environment variables that name a collector of traces or metrics: if one is set, jobs are traced.
COLLECTORS: Final = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    "TRACE_EXPORTER_URL",
)


def load_app(path: str) -> Rota:
    """Returns the `Rota` at `module:name`, or the only one in `module`. Raises ConfigurationError."""
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
    except SystemExit as error:
        raise ConfigurationError(f"{module_name} cannot be imported: it calls sys.exit({error.code!r})") from error
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


def instrument(rota: Rota) -> None:
    """Traces the jobs that a program enqueues and runs, if the environment names a collector."""
    named = [name for name in COLLECTORS if os.environ.get(name)]
    if not named:
        return
    try:
        from rota.otel import instrument as trace

        trace(rota)
    except ImportError as error:
        missing = error.name or str(error)
        extra = "otlp-grpc" if "grpc" in missing else "otlp"
        logger.warning(
            "%s is set, but jobs are not traced: %s is missing; %s", named[0], missing, install_command(extra)
        )


def _apps(module: object) -> dict[str, Rota]:
    found = {name: value for name, value in vars(module).items() if isinstance(value, Rota)}
    # The same object under two names is one candidate.
    return {name: value for name, value in found.items() if name == next(n for n, v in found.items() if v is value)}


def _others(module_name: str, module: object) -> str:
    names = [f"{module_name}:{name}" for name in _apps(module)]
    return f"the module has {', '.join(names)}" if names else "the module has no Rota at all"
