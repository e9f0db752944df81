"""Idempotency-Key: a repeated POST gets the first response again.

The response is stored for 24 hours under the caller and the key. A job enqueued with a key carries an idempotency token
derived from it, by which the store creates it once: this is exact even if two copies arrive at the same time, or a
server crashes between the store's reply and its own response.

With encryption the response and the fingerprint are encrypted, bound to the name under which they are stored: a plain
fingerprint would allow to guess short data.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable
from typing import Any, Final
from weakref import WeakValueDictionary

import msgspec
from fastapi import Request, Response
from fastapi.routing import APIRoute

from rota.client.session import sessions_of
from rota.core.encrypted_values import Codec, decrypt_response, encrypt_response
from rota.errors import RotaError
from rota.server.auth.api_tokens import Role, http_server_store
from rota.server.auth.authentication import Identity
from rota.server.http.problem_responses import Problem
from rota.server.request_context_and_permissions import RequestContext, Server, require_role

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotency-Replayed"
MAX_KEY: Final = 255

#: Key -> lock of its running request in this process; removed with the last request.
_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


class StoredResponse(msgspec.Struct, frozen=True):
    """A response, and the fingerprint of its request."""

    fingerprint: str
    status: int
    body: str


class AuthenticatedRoute(APIRoute):
    """A route whose body is read after the login: an unknown caller costs nothing."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """Returns the handler, wrapped where it requires a role."""
        handler: Callable[[Request], Awaitable[Response]] = super().get_route_handler()
        role = next((role for one in self.dependant.dependencies if (role := getattr(one.call, "role", None))), None)
        return handler if role is None else _authenticated(handler, require_role(role))


class IdempotentRoute(APIRoute):
    """A route whose POST requests can be repeated with an Idempotency-Key, and whose body is read after the login."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """Returns the handler, wrapped for POST."""
        handler: Callable[[Request], Awaitable[Response]] = super().get_route_handler()
        role = next((role for one in self.dependant.dependencies if (role := getattr(one.call, "role", None))), None)
        # A request that changes nothing needs no stored response.
        if "POST" in (self.methods or ()) and role is not Role.VIEWER:
            handler = idempotent(handler)
        return handler if role is None else _authenticated(handler, require_role(role))


def _authenticated(
    handler: Callable[[Request], Awaitable[Response]], authenticate: Callable[[Request], Awaitable[RequestContext]]
) -> Callable[[Request], Awaitable[Response]]:
    """Wraps a handler so that the caller is known, and has the role, before its body is read and parsed."""

    async def handle(request: Request) -> Response:
        await authenticate(request)
        return await handler(request)

    return handle


def idempotent(handler: Callable[[Request], Any]) -> Callable[[Request], Awaitable[Response]]:
    """Wraps a handler of POST requests so that they can be repeated with an Idempotency-Key."""

    async def handle(request: Request) -> Response:
        key = request.headers.get(HEADER)
        return await handler(request) if key is None else await _handle_once(request, key, handler)

    return handle


def idempotency_token(request: Request) -> str | None:
    """Returns the idempotency token for the job that this request enqueues; None without a key."""
    return getattr(request.state, "once", None)


async def _handle_once(request: Request, key: str, handler: Callable[[Request], Any]) -> Response:
    if not 1 <= len(key) <= MAX_KEY or not (key.isascii() and key.isprintable()):
        reason = f"must be 1 to {MAX_KEY} printable ASCII characters"
        errors = [{"source": "header", "field": HEADER, "message": reason}]
        raise Problem(400, "malformed", f"{HEADER} {reason}", errors=errors)
    server: Server = request.app.state.rota_server
    # Authenticated before the lookup: a response is returned only to the caller that received it first.
    identity: Identity | None = getattr(request.state, "identity", None)
    if identity is None:
        identity = request.state.identity = await server.authenticator.identify(request)
    body = await request.body()
    name = _digest(identity.id, identity.name, request.url.path, key)
    fingerprint = _digest(request.url.query, request.headers.get("content-type", ""), body)
    request.state.once = f"once-{name[:40]}"
    store = await http_server_store(server.rota)
    codec = sessions_of(server.rota).codec
    # In one process, requests with the same key wait for each other. Across processes the store keeps one response.
    lock = _locks.setdefault(name, asyncio.Lock())
    async with lock:
        before = await store.response(name)
        if before is not None:
            return _replay(codec, name, before, fingerprint)
        try:
            response: Response = await handler(request)
        except (Problem, RotaError):
            before = await store.response(name)
            if before is None:
                raise
            return _replay(codec, name, before, fingerprint)  # another process handled it meanwhile
        kept = msgspec.json.encode(StoredResponse(fingerprint, response.status_code, bytes(response.body).decode()))
        if codec is not None:
            kept = encrypt_response(codec, name, kept)
        first = await store.store_response(name, kept)
        return response if first == kept else _replay(codec, name, first, fingerprint)


def _replay(codec: Codec | None, name: str, kept: bytes, fingerprint: str) -> Response:
    stored = msgspec.json.decode(decrypt_response(codec, name, kept), type=StoredResponse)
    if not hmac.compare_digest(stored.fingerprint, fingerprint):
        raise Problem(
            422,
            "idempotency_key_reused",
            f"this {HEADER} was used with another body: send a new request with a new key",
        )
    return Response(
        stored.body.encode(), status_code=stored.status, media_type="application/json", headers={REPLAYED: "true"}
    )


def _digest(*parts: str | bytes) -> str:
    whole = hashlib.sha256()
    for part in parts:
        encoded = part.encode(errors="replace") if isinstance(part, str) else part
        whole.update(len(encoded).to_bytes(8, "big") + encoded)
    return whole.hexdigest()
