"""Idempotency-Key: a POST that is sent again is answered as it was the first time.

The answer is kept for a day under the caller and the key. A job that is enqueued with a key carries a token made of it,
by which the store makes it once: so it is exact also where two arrive at the same time, or a server died between the
store's answer and its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from fastapi import Request, Response
from fastapi.routing import APIRoute

from rota.errors import RotaError
from rota.server.problems import Problem
from rota.server.tokens import access_store
from rota.server.visits import Server

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotency-Replayed"
MAX_KEY: Final = 255

_under_way: dict[str, asyncio.Lock] = {}


class Kept(msgspec.Struct, frozen=True):
    """An answer, and what it was an answer to."""

    fingerprint: str
    status: int
    body: str


class KeyedRoute(APIRoute):
    """A route whose POSTs can be sent again."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """The handler, with that around it."""
        handler = super().get_route_handler()
        return keyed(handler) if "POST" in (self.methods or ()) else handler


def keyed(handler: Callable[[Request], Any]) -> Callable[[Request], Awaitable[Response]]:
    """A handler of POSTs that can be sent again."""

    async def handle(request: Request) -> Response:
        key = request.headers.get(HEADER)
        return await handler(request) if key is None else await _handle_once(request, key, handler)

    return handle


def token_of(request: Request) -> str | None:
    """What a job that this request makes is made by once; None without a key."""
    return getattr(request.state, "once", None)


async def _handle_once(request: Request, key: str, handler: Callable[[Request], Any]) -> Response:
    if not 1 <= len(key) <= MAX_KEY or not key.isprintable():
        raise Problem(400, "malformed", f"{HEADER} is 1 to {MAX_KEY} printable characters")
    server: Server = request.app.state.rota_server
    # Known before it is looked up: an answer is only for whom it was given to.
    identity = request.state.identity = await server.gate.identify(request)
    body = await request.body()
    name = _digest(identity.id, identity.name, request.url.path, key)
    fingerprint = _digest(request.url.query, request.headers.get("content-type", ""), body)
    request.state.once = f"once-{name[:40]}"
    store = await access_store(server.rota)
    # In one process they wait for each other; from several, the store decides whose answer counts.
    async with _under_way.setdefault(name, asyncio.Lock()):
        try:
            before = await store.answer(name)
            if before is not None:
                return _replay(before, fingerprint)
            try:
                response: Response = await handler(request)
            except (Problem, RotaError):
                before = await store.answer(name)
                if before is None:
                    raise
                return _replay(before, fingerprint)  # another process did it meanwhile
            kept = Kept(fingerprint, response.status_code, bytes(response.body).decode())
            first = await store.keep_answer(name, msgspec.json.encode(kept))
            return response if first == msgspec.json.encode(kept) else _replay(first, fingerprint)
        finally:
            _under_way.pop(name, None)


def _replay(kept: bytes, fingerprint: str) -> Response:
    answer = msgspec.json.decode(kept, type=Kept)
    if not hmac.compare_digest(answer.fingerprint, fingerprint):
        raise Problem(
            422,
            "idempotency_key_reused",
            f"this {HEADER} came with another body before: choose a new key for a new request",
        )
    return Response(
        answer.body.encode(), status_code=answer.status, media_type="application/json", headers={REPLAYED: "true"}
    )


def _digest(*parts: str | bytes) -> str:
    whole = hashlib.sha256()
    for part in parts:
        encoded = part.encode(errors="replace") if isinstance(part, str) else part
        whole.update(len(encoded).to_bytes(8, "big") + encoded)
    return whole.hexdigest()
