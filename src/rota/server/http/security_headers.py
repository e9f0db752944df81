"""Middleware that adds security headers to every response."""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: API responses load nothing and cannot be framed. The dashboard's pages have their own policy.
API_POLICY: Final = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
#: Defaults that a response may override. The state of a queue changes every second, so nothing is cached.
DEFAULTS: Final = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", API_POLICY.encode()),
)
#: A browser that has seen the server over TLS uses nothing else for a year.
HSTS: Final = (b"strict-transport-security", b"max-age=31536000")


class SecurityHeaders:
    """Adds the headers that a response does not have."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        # `scheme` is that of the connection, or of a trusted proxy. Below another application, that one decides.
        is_secure = scope.get("scheme") == "https" and not scope.get("root_path")
        wanted = (*HEADERS, *DEFAULTS, HSTS) if is_secure else (*HEADERS, *DEFAULTS)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers: list[tuple[bytes, bytes]] = message.setdefault("headers", [])
                present = {name.lower() for name, _ in headers}
                headers += [header for header in wanted if header[0] not in present]
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)
