"""Goes around every request: bounds what is read, and adds the headers that keep browsers out of trouble."""

from __future__ import annotations

from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Nothing is loaded from anywhere, nothing may frame us. The dashboard's pages say themselves what they load.
API_POLICY: Final = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
#: Unless the answer says otherwise: what is true of a queue now is not in a second.
DEFAULTS: Final = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", API_POLICY.encode()),
)


class Guard:
    """Refuses bodies that are too large, however they arrive; and sees to the headers of every answer."""

    def __init__(self, app: ASGIApp, max_body: int) -> None:
        self._app = app
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers: list[tuple[bytes, bytes]] = message.setdefault("headers", [])
                present = {name.lower() for name, _ in headers}
                headers += [header for header in (*HEADERS, *DEFAULTS) if header[0] not in present]
            await send(message)

        await self._app(scope, self._bounded(scope, receive), send_with_headers)

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        size = 0

        async def receive_bounded() -> Message:
            nonlocal size
            if declared.isdigit() and int(declared) > self._max_body:
                raise self._refusal()
            message: Any = await receive()
            size += len(message.get("body", b""))
            if size > self._max_body:
                raise self._refusal()
            return message

        return receive_bounded

    def _refusal(self) -> HTTPException:
        return HTTPException(413, f"the body is larger than {self._max_body:,} bytes: keep large data elsewhere")
