"""The HTTP API and the dashboard. `rota server` serves them; `create_app` returns them as an ASGI application.

    app.mount("/rota", create_app(rota))

Requires the extra `rota[server]`. Importing `rota` does not import this package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from rota.install_command import install_command

if TYPE_CHECKING:
    from rota.server.app import create_app
    from rota.server.auth.authentication import Identity, Role
    from rota.server.settings import ServerSettings

__all__ = ["Identity", "Role", "ServerSettings", "create_app"]

#: Imported on first use: FastAPI takes most of a second to import, and `rota token` does not need it.
_HOMES: Final = {
    "Identity": "rota.server.auth.authentication",
    "Role": "rota.server.auth.authentication",
    "ServerSettings": "rota.server.settings",
    "create_app": "rota.server.app",
}

if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            return getattr(import_module(_HOMES[name]), name)
        except ModuleNotFoundError as error:
            message = f"rota.server requires {error.name}: {install_command('server')}"
            raise ModuleNotFoundError(message, name=error.name) from error
