"""The user's program: its `Rota`, for commands that need its tasks; what it declares, for those that must not run it.

A worker's own process never imports the program. Where its command has to know something of it, a process of its own
looks (`python -m rota.cli.apps module:rota`), says it in one line, and ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rota.cli.settings import Settings
from rota.errors import ConfigurationError, RotaError

if TYPE_CHECKING:
    from rota.client import Rota

#: What the line begins with: a program may print things of its own when it is imported.
MARK: Final = "rota-declares "


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What a program says of itself."""

    queues: list[str]
    address: str
    namespace: str
    is_embedded: bool


@asynccontextmanager
async def program(app: str, settings: Settings) -> AsyncGenerator[Rota]:
    """The program's own `Rota`, with its tasks and middleware, for the length of one command."""
    from rota.loading import load_app

    use_url(settings)
    rota = load_app(app)
    check_settings(app, settings, address=rota.address, namespace=rota.namespace)
    async with rota:
        await rota.check()
        yield rota


def use_url(settings: Settings) -> None:
    """Lets `--url` hold for the program as well, in this process and its children."""
    if settings.url:
        os.environ["ROTA_URL"] = settings.url


def check_settings(app: str, settings: Settings, *, address: str, namespace: str) -> None:
    """Refuses options that the program overrules: a job in another place than was asked for is worse than an error."""
    from rota.store.address import parse_address

    if settings.url and address != str(parse_address(settings.url)):
        raise ConfigurationError(f"--url does not apply: {app} itself names its server, {address}")
    if settings.namespace and namespace != settings.namespace:
        raise ConfigurationError(f"--namespace does not apply: {app} itself says {namespace!r}")


def declared_by(app: str) -> Declared:
    """Imports the program in a process of its own, and says what it declares. Raises ConfigurationError."""
    asked = subprocess.run([*python(), "rota.cli.apps", app], stdout=subprocess.PIPE, text=True, check=False)
    lines = [line for line in asked.stdout.splitlines() if line.startswith(MARK)]
    if not lines:
        raise ConfigurationError(f"{app} cannot be imported: the process that tried ended with code {asked.returncode}")
    said: dict[str, Any] = json.loads(lines[-1].removeprefix(MARK))
    if "error" in said:
        raise ConfigurationError(said["error"])
    return Declared(**said)


def python() -> Sequence[str]:
    """How a module of Rota is run in a process of its own: never one that happens to lie in the working directory."""
    return (sys.executable, "-P", "-m")


def _declare(app: str) -> dict[str, Any]:
    from rota.loading import load_app

    try:
        rota = load_app(app)
        return {
            "queues": list(dict.fromkeys(task.queue for task in rota.tasks)),
            "address": rota.address,
            "namespace": rota.namespace,
            "is_embedded": rota.embedded is not None,
        }
    except RotaError as error:
        return {"error": str(error)}


if __name__ == "__main__":
    print(MARK + json.dumps(_declare(sys.argv[1])), flush=True)
