"""Options that all commands share: URL, namespace, JSON output, debugging."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    pass

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


@dataclass(slots=True)
class Settings:
    """Options accepted before and after the command's name. The last one is used."""

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
    "--url", metavar="URL", help="Address of the server. Default: ROTA_URL, REDIS_URL, REDIS_HOST, else embedded."
)
_namespace = _shared_option("--namespace", metavar="NAME", help="Prefix of all keys. Default: rota.")
_json = _shared_option("--json", is_flag=True, help="Print JSON.")


def connection_options(command: F) -> F:
    """Adds --url, --namespace and --debug."""
    return _url(_namespace(_debug(command)))


def common_options(command: F) -> F:
    """Adds --url, --namespace, --debug and --json."""
    return connection_options(_json(command))
