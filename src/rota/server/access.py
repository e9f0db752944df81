"""Who asks, and what they may do: bearer tokens, logins by cookie, the host application's word, or nobody at all."""

from __future__ import annotations

import hashlib
import hmac
import inspect
import secrets
import time
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from fastapi import Request, Response

from rota.client import Rota
from rota.core.job import base_of
from rota.server.problems import Problem
from rota.server.settings import ServerSettings, is_loopback
from rota.server.tokens import Role, Token, Tokens, access_store
from rota.store.access import SESSION_MS

COOKIE: Final = "rota_session"
CSRF_HEADER: Final = "X-CSRF-Token"
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
#: A token that was found good is taken for good this long, so that not every request asks the store.
TRUST_S: Final = 3.0
#: So is the note of when it was last used.
NOTE_USE_S: Final = 60.0
MAX_KNOWN: Final = 10_000
#: Failed logins from one address within a minute.
MAX_MISSES: Final = 10
LOGIN_HINT: Final = "send a token as `Authorization: Bearer …`; `rota token create --role …` makes one"

__all__ = ["Gate", "Identity", "Role", "Session"]


class Identity(msgspec.Struct, frozen=True):
    """Who asks: a name for the audit log, a role, and the queues it is limited to; none named means all."""

    name: str
    role: Role
    queues: tuple[str, ...] = ()
    #: What tells two callers of one name apart; "" for callers of the host application's.
    id: str = ""

    def may_see(self, queue: str) -> bool:
        """True when the queue, or the one whose failures it holds or whose shard it is, is within its limits."""
        return not self.queues or not {queue, base_of(queue.removesuffix("-fail"))}.isdisjoint(self.queues)


class Session(msgspec.Struct, frozen=True):
    """A login: the token it was opened with, and what proves that a change was asked for by our own page."""

    token: str
    csrf: str


ANYBODY: Final = Identity("anybody on this machine", Role.ADMIN)


class Gate:
    """Says who a request comes from, and turns away those it must."""

    def __init__(self, rota: Rota, settings: ServerSettings) -> None:
        self._rota = rota
        self._settings = settings
        self._tokens = Tokens(rota)
        #: Hash of a token's text -> until when it is taken for good, and whose it is.
        self._known: dict[bytes, tuple[float, Identity]] = {}
        self._noted: dict[str, float] = {}

    async def identify(self, request: Request) -> Identity:
        """The caller. Raises Problem: 401 for one that is not known, 403 for a page of another origin, 429."""
        auth = self._settings.auth
        if callable(auth):
            answer: Any = auth(request)
            found: Identity | None = await answer if inspect.isawaitable(answer) else answer
            if found is None:
                raise Problem(401, "unauthenticated", "who are you? Log in first")
            self._check_origin(request)
            return found
        if auth == "none":
            check_is_local(request)
            self._check_origin(request)
            return ANYBODY
        scheme, _, text = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return await self._of_token(request, text.strip())
        return await self._of_cookie(request)

    # --- logins ------------------------------------------------------------------------------------------------

    async def log_in(self, request: Request, text: str) -> tuple[Identity, Session, str]:
        """Opens a session with a token: who it is, the session, and the value of its cookie."""
        self._check_origin(request)
        store, address = await access_store(self._rota), address_of(request)
        if await store.misses(address) >= MAX_MISSES:
            raise _too_many()
        token = await self._tokens.verify(text)
        if token is None:
            await store.note_miss(address)
            raise Problem(401, "unauthenticated", "that is no token, or it has expired or was revoked")
        cookie = secrets.token_urlsafe(32)
        session = Session(token.id, secrets.token_urlsafe(32))
        await store.open_session(_name(cookie), msgspec.json.encode(session))
        return _identity(token), session, cookie

    async def session(self, request: Request) -> Session | None:
        """The session that a request's cookie names, if it goes on."""
        cookie = request.cookies.get(COOKIE, "")
        record = await (await access_store(self._rota)).session(_name(cookie)) if cookie else None
        return None if record is None else msgspec.json.decode(record, type=Session)

    async def log_out(self, request: Request) -> None:
        """Ends the session of a request."""
        await (await access_store(self._rota)).close_session(_name(request.cookies.get(COOKIE, "")))

    # --- within ------------------------------------------------------------------------------------------------

    async def _of_token(self, request: Request, text: str) -> Identity:
        digest, now = hashlib.sha256(text.encode(errors="replace")).digest(), time.monotonic()
        until, known = self._known.get(digest, (0.0, None))
        if known is not None and now < until:
            return known
        token = await self._tokens.verify(text)
        if token is None:
            store = await access_store(self._rota)
            if await store.note_miss(address_of(request)) > MAX_MISSES:
                raise _too_many()
            raise Problem(
                401, "unauthenticated", f"that is no token, or it has expired or was revoked: {LOGIN_HINT}",
                headers={"WWW-Authenticate": "Bearer"},
            )  # fmt: skip
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        identity = _identity(token)
        self._known[digest] = now + TRUST_S, identity
        await self._note_use(token.id, now)
        return identity

    async def _of_cookie(self, request: Request) -> Identity:
        session = await self.session(request)
        token = await self._tokens.get(session.token) if session is not None else None
        if session is None or token is None:
            raise Problem(401, "unauthenticated", LOGIN_HINT, headers={"WWW-Authenticate": "Bearer"})
        self._check_origin(request)
        sent = request.headers.get(CSRF_HEADER, "")
        if request.method not in SAFE_METHODS and not hmac.compare_digest(sent.encode(), session.csrf.encode()):
            raise Problem(
                403, "csrf", f"a change needs the header {CSRF_HEADER}: GET /api/session says what belongs in it"
            )
        await self._note_use(token.id, time.monotonic())
        return _identity(token)

    async def _note_use(self, token_id: str, now: float) -> None:
        if now - self._noted.get(token_id, -NOTE_USE_S) >= NOTE_USE_S:
            self._noted[token_id] = now
            await (await access_store(self._rota)).note_use(token_id)

    def _check_origin(self, request: Request) -> None:
        """A page of another origin can make a browser send its user's requests, but not hide where it comes from."""
        if request.method in SAFE_METHODS:
            return
        origin = request.headers.get("origin")
        is_allowed = origin is None or origin in self._settings.cors_origins or _is_same(origin, request)
        site = request.headers.get("sec-fetch-site", "none")
        if not is_allowed or (origin is None and site not in ("none", "same-origin")):
            raise Problem(403, "cross_origin", f"pages of {origin or site} may not do this: see --cors-origin")


def check_is_local(request: Request) -> None:
    """Without auth only this machine is served: not through a proxy, and not under a name that may lead elsewhere."""
    headers = request.headers
    server = request.scope.get("server")
    is_forwarded = "x-forwarded-for" in headers or "forwarded" in headers
    is_here = server is None or server[1] is None or is_loopback(server[0])  # no port: a unix socket
    if is_forwarded or not is_here or not is_loopback(_hostname(headers.get("host", ""))):
        raise Problem(
            403, "auth_is_off", "auth is off, so only this machine is served, as http://127.0.0.1 or http://localhost: "
            "turn it on with --auth tokens",
        )  # fmt: skip


def set_cookie(request: Request, response: Response, value: str) -> None:
    """The cookie of a session: out of reach of scripts, and sent by our own pages alone."""
    response.set_cookie(
        COOKIE, value, max_age=SESSION_MS // 1000, path=_path(request), httponly=True, samesite="strict",
        secure=request.url.scheme == "https",
    )  # fmt: skip


def forget_cookie(request: Request, response: Response) -> None:
    """Takes it back."""
    response.delete_cookie(COOKIE, path=_path(request), httponly=True, samesite="strict")


def address_of(request: Request) -> str:
    """Where a request comes from, as far as that is known; it names a key."""
    host = request.client.host if request.client else "unknown"
    return hashlib.sha256(host.encode()).hexdigest()[:32]


def _path(request: Request) -> str:
    return request.scope.get("root_path", "") or "/"


@lru_cache(maxsize=1_000)
def _hostname(host: str) -> str:
    """The host of a Host header, without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_same(origin: str, request: Request) -> bool:
    return origin.partition("://")[2].lower() == request.headers.get("host", "").lower()


def _identity(token: Token) -> Identity:
    return Identity(token.name, token.role, token.queues, token.id)


def _name(cookie: str) -> str:
    return hashlib.sha256(cookie.encode(errors="replace")).hexdigest()


def _too_many() -> Problem:
    return Problem(
        429,
        "too_many_failures",
        "too many failed logins from this address: wait a minute",
        headers={"Retry-After": "60"},
    )
