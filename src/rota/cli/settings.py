"""What every command shares: where the server is, in which form to answer, and how to run a coroutine."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from rota.client import Rota

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

#: Seconds that a command waits for a server that does not answer: a restart passes unnoticed, a mistake does not.
PATIENCE_S: Final = 3.0


@dataclass(slots=True)
class Settings:
    """The options that may stand before or behind the command's name; the last one wins."""

    url: str | None = None
    namespace: str | None = None
    json: bool = False
    debug: bool = False


def _remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value and parameter.name:
        setattr(context.ensure_object(Settings), parameter.name, value)


def _shared_option(*names: str, **settings: Any) -> Callable[[F], F]:
    return click.option(*names, callback=_remember, expose_value=False, **settings)


_debug = _shared_option("--debug", is_flag=True, help="Show the traceback of an error.")
_url = _shared_option(
    "--url", metavar="URL", help="Where the server is; else ROTA_URL, REDIS_URL, REDIS_HOST, else embedded."
)
_namespace = _shared_option("--namespace", metavar="NAME", help="Prefix of all keys, “rota” unless told otherwise.")
_json = _shared_option("--json", is_flag=True, help="Answer in JSON, for programs.")


def connection_options(command: F) -> F:
    """--url, --namespace and --debug."""
    return _url(_namespace(_debug(command)))


def common_options(command: F) -> F:
    """Those, and --json: for commands that print data."""
    return connection_options(_json(command))


@asynccontextmanager
async def connected(settings: Settings) -> AsyncGenerator[Rota]:
    """A client for the length of one command, on a server whose format it knows."""
    from rota.client import Rota

    async with Rota(settings.url, namespace=settings.namespace or "rota", patience=PATIENCE_S) as rota:
        await rota.check()
        yield rota


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs what a command does. Ctrl-C cancels it first."""
    import asyncio

    return asyncio.run(coroutine)


class Refused(click.ClickException):
    """Nothing was done, because nobody said yes."""

    exit_code = 2


def confirm(what: str, *, yes: bool) -> None:
    """Says what will be touched and asks, unless told `--yes`. Without a terminal to ask at, it refuses."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Refused(f"{what} There is nobody to ask: add --yes to do it. Nothing was changed.")
    if not _asked(f"{what} Go on?"):
        raise Refused("nothing was changed.")


def _asked(question: str) -> bool:
    # A loop that is running takes Ctrl-C for itself, and the first one would go unheard while it waits here.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return click.confirm(question, err=True)
    finally:
        signal.signal(signal.SIGINT, before)
