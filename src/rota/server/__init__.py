"""The HTTP API: everything the library can do, for any language. `rota server` runs it; `create_app` mounts it.

    app.mount("/rota", create_app(rota))

Nothing here is imported with `rota` itself; it needs the extra `rota[server]`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rota.server.access import Identity, Role
    from rota.server.app import create_app
    from rota.server.settings import ServerSettings

__all__ = ["Identity", "Role", "ServerSettings", "create_app"]

#: FastAPI takes most of a second to import, which `rota token` need not wait for.
_HOMES: Final = {
    "Identity": "rota.server.access",
    "Role": "rota.server.access",
    "ServerSettings": "rota.server.settings",
    "create_app": "rota.server.app",
}

if not TYPE_CHECKING:  # a type checker would take every name for one that exists

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)
