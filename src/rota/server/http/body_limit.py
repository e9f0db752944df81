"""Middleware that refuses request bodies above a size, and paces large ones."""

from __future__ import annotations

from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rota.server.http.large_body_pacer import LARGE, LargeBodyPacer

#: Bytes of the body of a login.
MAX_LOGIN: Final = 4_096


class BodyLimit:
    """Refuses bodies that are too large, with or without Content-Length."""

    def __init__(self, app: ASGIApp, max_body: int) -> None:
        self._app = app
        self._max_body = max_body
        self._pacer = LargeBodyPacer()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        await self._app(scope, self._bounded(scope, receive) if scope["type"] == "http" else receive, send)

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        # A login comes from callers that are not known yet.
        max_body = min(MAX_LOGIN, self._max_body) if scope["path"].endswith("/api/session") else self._max_body
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        size = 0

        async def receive_bounded() -> Message:
            nonlocal size
            if declared.isdigit() and int(declared) > max_body:
                raise _too_large(max_body)
            message: Any = await receive()
            size += len(message.get("body", b""))
            if size > max_body:
                raise _too_large(max_body)
            if size > LARGE and message.get("more_body") is False:
                await self._pacer.wait_for_turn()
            return message

        return receive_bounded


def _too_large(max_body: int) -> HTTPException:
    return HTTPException(
        413, f"the body is larger than {max_body:,} bytes: store large data elsewhere and send a reference"
    )
