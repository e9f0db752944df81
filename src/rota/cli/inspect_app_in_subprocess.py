"""The declarations of the user's application (queues, server, namespace), read by a separate process.

A worker's supervisor never imports the application. If its command needs the declarations, a separate process imports
the application (`python -m rota.cli.inspect_app_in_subprocess module:rota`), prints them as one line, and exits.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rota.errors import ConfigurationError, RotaError

#: Prefix of the line, because the application may print other lines on import.
MARK: Final = "rota-declares "


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The declarations of an application."""

    queues: list[str]
    address: str
    namespace: str
    is_embedded: bool


def declared_by(app: str) -> Declared:
    """Imports the application in a separate process. Returns its declarations. Raises ConfigurationError."""
    process = subprocess.run(
        [*python(), "rota.cli.inspect_app_in_subprocess", app], stdout=subprocess.PIPE, text=True, check=False
    )
    lines = [line for line in process.stdout.splitlines() if line.startswith(MARK)]
    if not lines:
        raise ConfigurationError(f"{app} cannot be imported: the import exited with code {process.returncode}")
    declared: dict[str, Any] = json.loads(lines[-1].removeprefix(MARK))
    if "error" in declared:
        raise ConfigurationError(declared["error"])
    return Declared(**declared)


def python() -> Sequence[str]:
    """Returns the command that runs a module of Rota, ignoring modules of the same name in the working directory."""
    return (sys.executable, "-P", "-m")


def _declare(app: str) -> dict[str, Any]:
    from rota.client.session import sessions_of
    from rota.worker.app_loader import load_app

    try:
        rota = load_app(app)
        return {
            "queues": list(dict.fromkeys(task.queue for task in rota.tasks)),
            "address": rota.address,
            "namespace": rota.namespace,
            "is_embedded": sessions_of(rota).embedded is not None,
        }
    except RotaError as error:
        return {"error": str(error)}


if __name__ == "__main__":
    print(MARK + json.dumps(_declare(sys.argv[1])), flush=True)
