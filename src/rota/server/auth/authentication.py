"""Authentication: bearer tokens, session cookies, a function of the host application, or none."""

from __future__ import annotations

import hashlib
import hmac
import inspect
import os
import secrets
import time
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from fastapi import Request, Response

from rota.client.record_audit_entry import AuditCaller, record_change
from rota.client.rota import Rota
from rota.core.shards import base_of
from rota.server.auth.api_tokens import Role, Token, Tokens, http_server_store
from rota.server.auth.peer_process import peer_uid
from rota.server.auth.request_and_enqueue_rate_limits import NO_LIMITS, Limits, RateLimiter
from rota.server.http.problem_responses import Problem
from rota.server.settings import ServerSettings, is_loopback
from rota.store.http_server_state import SESSION_MS

COOKIE: Final = "rota_session"
CSRF_HEADER: Final = "X-CSRF-Token"
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
#: A verified token is cached this long, so that not every request reads the store.
TRUST_S: Final = 3.0
#: Minimum interval between updates of a token's last use.
NOTE_USE_S: Final = 60.0
MAX_KNOWN: Final = 10_000
#: Maximum number of failed logins from one address per minute.
MAX_MISSES: Final = 10
#: Headers that proxies add.
PROXY_HEADERS: Final = frozenset({"forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "x-original-host"})
PROXY_PREFIXES: Final = ("x-forwarded", "x-envoy-", "cf-", "x-amzn-", "x-azure-")
#: Name in the state of a request.
PEER_UID: Final = "peer_uid"
_IS_COUNTED: Final = "is_counted"
LOGIN_HINT: Final = "send a token as `Authorization: Bearer …`; `rota token create --role …` creates one"

__all__ = ["Authenticator", "Identity", "LoginSession", "Role"]


class Identity(msgspec.Struct, frozen=True):
    """A caller: its name for the audit log, its role, and the queues it is limited to (none: all queues)."""

    name: str
    role: Role
    queues: tuple[str, ...] = ()
    #: Distinguishes callers with the same name; empty for callers of a host application.
    id: str = ""
    #: Tasks that it may run, with wildcards as in file names. Empty: all, or for limited queues those of the queues.
    tasks: tuple[str, ...] = ()
    #: Requests per second and enqueues per minute, in each server process.
    limits: Limits = NO_LIMITS

    @property
    def caller_id(self) -> str:
        """Identifies the caller for its limits and its share of the audit log."""
        return f"token {self.id}" if self.id else f"name {self.name}"

    @property
    def is_limited(self) -> bool:
        """True if the caller may not run all tasks in all queues."""
        return bool(self.queues or self.tasks)

    def may_run(self, task: str, home: str | None) -> bool:
        """True if the caller may run a task. `home` is the queue that the task declares; None if it is unknown."""
        if self.tasks:
            return any(fnmatchcase(task, pattern) for pattern in self.tasks)
        return not self.queues or (home is not None and self.may_see(home))

    def may_see(self, queue: str) -> bool:
        """True if the queue is in scope. A failure queue and a shard have the scope of their queue."""
        return not self.queues or not {queue, base_of(queue.removesuffix("-fail"))}.isdisjoint(self.queues)


class LoginSession(msgspec.Struct, frozen=True):
    """A session: the id of its token, and the CSRF token that its changes must carry."""

    token: str
    csrf: str


LOCAL_ADMIN: Final = Identity("local user", Role.ADMIN)


class Authenticator:
    """Authenticates requests and manages sessions."""

    def __init__(self, rota: Rota, settings: ServerSettings) -> None:
        self._rota = rota
        self._settings = settings
        self._tokens = Tokens(rota)
        #: Hash of a token's text -> end of its cache time, and its identity.
        self._known: dict[bytes, tuple[float, Identity]] = {}
        self._noted: dict[str, float] = {}
        self.limiter = RateLimiter()

    async def identify(self, request: Request) -> Identity:
        """Returns the caller, and counts the request.

        Raises Problem: 401 if unknown, 403 for another origin, 429 after failed logins or too many requests.
        """
        identity = await self._identify(request)
        if not getattr(request.state, _IS_COUNTED, False):  # an event stream identifies its caller again and again
            setattr(request.state, _IS_COUNTED, True)
            wait_s = self.limiter.count_request(identity.caller_id, identity.limits)
            if wait_s:
                raise rate_limited(identity, f"{identity.limits.requests_per_second:g} requests per second", wait_s)
        return identity

    async def _identify(self, request: Request) -> Identity:
        auth = self._settings.auth
        if callable(auth):
            answer: Any = auth(request)
            found: Identity | None = await answer if inspect.isawaitable(answer) else answer
            if found is None:
                raise Problem(401, "unauthenticated", "authentication required: log in to the host application")
            self._check_origin(request)
            return found
        if auth == "none":
            check_is_local(request)
            self._check_origin(request)
            return LOCAL_ADMIN
        scheme, _, text = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return await self._of_token(request, text.strip())
        return await self._of_cookie(request)

    async def log_in(self, request: Request, text: str) -> tuple[Identity, LoginSession, str]:
        """Opens a session with a token. Returns the identity, the session, and the value of its cookie."""
        self._check_origin(request)
        if await (await http_server_store(self._rota)).failed_logins(address_of(request)) >= MAX_MISSES:
            raise _too_many()
        token = await self._tokens.verify(text)
        if token is None:
            await self._count_failure(request)
            raise Problem(401, "unauthenticated", "the token is unknown, expired or revoked")
        store = await http_server_store(self._rota)
        cookie = secrets.token_urlsafe(32)
        session = LoginSession(token.id, secrets.token_urlsafe(32))
        await store.open_session(_name(cookie), msgspec.json.encode(session))
        identity = _identity(token)
        await record_change(self._rota, caller_of(identity, request), "login", f"session of token {token.id}")
        return identity, session, cookie

    async def session(self, request: Request) -> LoginSession | None:
        """Returns the session of a request's cookie; None without one, or if it has ended."""
        cookie = request.cookies.get(COOKIE, "")
        record = await (await http_server_store(self._rota)).session(_name(cookie)) if cookie else None
        return None if record is None else msgspec.json.decode(record, type=LoginSession)

    async def log_out(self, request: Request) -> None:
        """Ends the session of a request."""
        await (await http_server_store(self._rota)).close_session(_name(request.cookies.get(COOKIE, "")))

    async def _of_token(self, request: Request, text: str) -> Identity:
        digest, now = hashlib.sha256(text.encode(errors="replace")).digest(), time.monotonic()
        until, known = self._known.get(digest, (0.0, None))
        if known is not None and now < until:
            return known
        token = await self._tokens.verify(text)
        if token is None:
            if await self._count_failure(request) > MAX_MISSES:
                raise _too_many()
            raise Problem(
                401,
                "unauthenticated",
                f"the token is unknown, expired or revoked: {LOGIN_HINT}",
                headers={"WWW-Authenticate": "Bearer"},
            )
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
                403, "csrf", f"the header {CSRF_HEADER} is missing or wrong: GET /api/session returns its value"
            )
        await self._note_use(token.id, time.monotonic())
        return _identity(token)

    async def _count_failure(self, request: Request) -> int:
        """Counts a failed login of the request's address, and records it unless there were too many in this minute."""
        count = await (await http_server_store(self._rota)).count_failed_login(address_of(request))
        if count <= MAX_MISSES:
            after = {"in_this_minute": count}
            await record_change(self._rota, _unknown(request), "login_failed", request.url.path, after=after)
        return count

    async def _note_use(self, token_id: str, now: float) -> None:
        if now - self._noted.get(token_id, -NOTE_USE_S) >= NOTE_USE_S:
            self._noted[token_id] = now
            await (await http_server_store(self._rota)).record_token_use(token_id)

    def _check_origin(self, request: Request) -> None:
        """Refuses changes from pages of other origins. A browser names the origin, and a page cannot change it."""
        if request.method in SAFE_METHODS:
            return
        origin = request.headers.get("origin")
        is_allowed = origin is None or origin in self._settings.cors_origins or _is_same(origin, request)
        site = request.headers.get("sec-fetch-site", "none")
        if not is_allowed or (origin is None and site not in ("none", "same-origin")):
            raise Problem(
                403, "cross_origin", f"requests from pages of {origin or site} are not allowed: see --cors-origin"
            )


def check_is_local(request: Request) -> None:
    """Refuses forwarded requests, other host names and other users: without authentication only local ones are served.

    A proxy may hide that it forwards: nginx sends neither the host name nor the address of its client by default. But
    it usually runs as another user, which the kernel knows, and speaks HTTP/1.0, which no browser does.
    """
    headers, scope = request.headers, request.scope
    server, client = scope.get("server"), scope.get("client")
    is_forwarded = scope.get("http_version") == "1.0" or any(map(_is_of_proxy, headers.keys()))
    is_here = server is None or server[1] is None or is_loopback(server[0])  # no port: a unix socket
    if is_forwarded or not is_here or not is_loopback(_hostname(headers.get("host", ""))):
        raise _auth_is_off("only requests to http://127.0.0.1 or http://localhost are served, and none of a proxy")
    if server is not None and client is not None and server[1] is not None:
        uid = getattr(request.state, PEER_UID, -1)  # `uvicorn_server` looked it up when the client connected
        if uid == -1:
            uid = peer_uid((client[0], client[1]), (server[0], server[1]))
        if uid is not None and uid != os.getuid():
            raise _auth_is_off(f"only requests of the server's own user are served, not those of a proxy or user {uid}")


def set_cookie(request: Request, response: Response, value: str) -> None:
    """Sets the session cookie: not readable by scripts, and sent only with requests of our own pages."""
    response.set_cookie(
        COOKIE,
        value,
        max_age=SESSION_MS // 1000,
        path=_path(request),
        httponly=True,
        samesite="strict",
        secure=_is_secure(request),
    )


def forget_cookie(request: Request, response: Response) -> None:
    """Deletes the session cookie."""
    response.delete_cookie(COOKIE, path=_path(request), httponly=True, samesite="strict", secure=_is_secure(request))


def address_of(request: Request) -> str:
    """Returns a hash of the client's address, for the key of its failed logins."""
    host = source_of(request) or "unknown"
    return hashlib.sha256(host.encode()).hexdigest()[:32]


def _is_secure(request: Request) -> bool:
    return request.scope["scheme"] == "https"


def source_of(request: Request) -> str | None:
    """Returns the address of the client, or of a proxy that is not trusted; None for a unix socket."""
    return request.client.host if request.client else None


def caller_of(identity: Identity, request: Request) -> AuditCaller:
    """Returns the caller as the audit log names it."""
    return AuditCaller(identity.caller_id, identity.name, identity.role, source_of(request))


def rate_limited(identity: Identity, limit: str, wait_s: int) -> Problem:
    """The problem of a caller that has reached a limit of its token."""
    return Problem(
        429,
        "rate_limited",
        f"{identity.name} is limited to {limit}: try again in {wait_s} s",
        headers={"Retry-After": str(wait_s)},
    )


def _unknown(request: Request) -> AuditCaller:
    # One caller for all addresses: failed logins have the share of one caller in the audit log.
    return AuditCaller("unknown", "unknown", None, source_of(request))


def _path(request: Request) -> str:
    return request.scope.get("root_path", "") or "/"


@lru_cache(maxsize=1_000)
def _hostname(host: str) -> str:
    """Returns the host of a Host header without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_same(origin: str, request: Request) -> bool:
    return origin.partition("://")[2].lower() == request.headers.get("host", "").lower()


def _identity(token: Token) -> Identity:
    return Identity(token.name, token.role, token.queues, token.id, token.tasks, token.limits)


def _name(cookie: str) -> str:
    return hashlib.sha256(cookie.encode(errors="replace")).hexdigest()


def _is_of_proxy(header: str) -> bool:
    return header in PROXY_HEADERS or header.startswith(PROXY_PREFIXES)


def _auth_is_off(rule: str) -> Problem:
    return Problem(403, "auth_is_off", f"without authentication {rule}: turn it on with --auth tokens")


def _too_many() -> Problem:
    return Problem(
        429,
        "too_many_failures",
        "too many failed logins from this address: try again in a minute",
        headers={"Retry-After": "60"},
    )
