"""API tokens: created, listed, revoked and verified.

A token is shown once and stored as a hash. Used by `rota token` and the server; does not import FastAPI.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from rota.client.rota import Rota
from rota.client.session import checked_session, sessions_of
from rota.core.ids import checked_queue, checked_task_name
from rota.errors import InvalidOption
from rota.server.auth.request_and_enqueue_rate_limits import NO_LIMITS, Limits
from rota.store.http_server_state import HttpServerStore

#: `rota_<id>_<secret>`: the prefix lets secret scanners find leaked tokens, the id identifies the token.
_TOKEN: Final = re.compile(r"rota_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
#: Compared with if the id is unknown, so that it takes as long as a wrong secret.
_NO_HASH: Final = hashlib.sha256(b"").hexdigest()
MAX_NAME: Final = 100


class Role(StrEnum):
    """Permissions of a caller: read; act on jobs; administer."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def covers(self, other: Role) -> bool:
        """True if this role includes the other."""
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(other)


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A stored token, without its secret."""

    id: str
    hash: str
    name: str
    role: Role
    #: Empty: all queues.
    queues: tuple[str, ...] = ()
    #: Tasks that it may run, with wildcards as in file names. Empty: all, or for limited queues those of the queues.
    tasks: tuple[str, ...] = ()
    created_at: int
    expires_at: int | None = None
    limits: Limits = NO_LIMITS
    #: Who created it over HTTP; "" for the command line.
    created_by: str = ""


class TokenInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A token as shown to users."""

    id: str
    name: str
    role: Role
    queues: tuple[str, ...]
    tasks: tuple[str, ...]
    limits: Limits
    created_at: int
    expires_at: int | None
    last_used: int | None
    is_expired: bool
    created_by: str = ""


class TokenNotFound(InvalidOption):
    """There is no token with this id."""

    def __init__(self, token_id: str) -> None:
        super().__init__("token", f"there is no token {token_id}: `rota token list` shows all tokens")


class Tokens:
    """The tokens of one namespace."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota

    async def create(
        self,
        role: Role | str,
        *,
        name: str = "",
        queues: Sequence[str] = (),
        tasks: Sequence[str] = (),
        lifetime_s: float | None = None,
        limits: Limits = NO_LIMITS,
        created_by: str = "",
        latest_expiry: int | None = None,
    ) -> tuple[str, Token]:
        """Creates a token. Returns its secret text, which cannot be read again, and the stored token.

        It expires at `latest_expiry` at the latest: the moment at which the token of its creator does.
        """
        if role not in list(Role):
            raise InvalidOption("role", f"{role!r} is not a role: use {', '.join(Role)}")
        if len(name) > MAX_NAME or not name.isprintable():
            raise InvalidOption("name", f"{name!r} is not valid: use at most {MAX_NAME} printable characters")
        if lifetime_s is not None and not 1 <= lifetime_s <= 100 * 366 * 86400:
            raise InvalidOption("expires", f"{lifetime_s:g} s is not between a second and a hundred years")
        store = await self._store()
        token_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        now = (await store.token(token_id)).now
        ends = [latest_expiry, None if lifetime_s is None else now + round(lifetime_s * 1000)]
        token = Token(
            id=token_id,
            hash=_digest(secret),
            name=name or token_id,
            role=Role(role),
            queues=tuple(dict.fromkeys(checked_queue(queue) for queue in queues)),
            tasks=tuple(dict.fromkeys(checked_task_name(task) for task in tasks)),
            created_at=now,
            expires_at=min((end for end in ends if end is not None), default=None),
            limits=_checked_limits(limits),
            created_by=created_by,
        )
        await store.put_token(token_id, msgspec.json.encode(token))
        return f"rota_{token_id}_{secret}", token

    async def list(self) -> Sequence[TokenInfo]:
        """Returns all tokens, oldest first."""
        store = await self._store()
        now = (await store.token("")).now
        found: list[TokenInfo] = []
        for record, last_used in (await store.tokens()).values():
            token = msgspec.json.decode(record, type=Token)
            found.append(
                TokenInfo(
                    id=token.id,
                    name=token.name,
                    role=token.role,
                    queues=token.queues,
                    tasks=token.tasks,
                    limits=token.limits,
                    created_at=token.created_at,
                    expires_at=token.expires_at,
                    last_used=last_used,
                    is_expired=_is_expired(token, now),
                    created_by=token.created_by,
                )
            )
        return sorted(found, key=lambda token: (token.created_at, token.id))

    async def revoke(self, token_id: str) -> Token:
        """Revokes a token. Every server refuses it within seconds. Raises TokenNotFound."""
        store = await self._store()
        record = (await store.token(token_id)).record
        if record is None:
            raise TokenNotFound(token_id)
        await store.delete_token(token_id)
        return msgspec.json.decode(record, type=Token)

    async def verify(self, text: str) -> Token | None:
        """Returns the token for a secret text; None if it is unknown or expired."""
        parts = _TOKEN.fullmatch(text)
        token_id, secret = (parts[1], parts[2]) if parts else ("", "")
        stored = await (await self._store()).token(token_id)
        token = msgspec.json.decode(stored.record, type=Token) if stored.record is not None else None
        is_right = hmac.compare_digest(_digest(secret), token.hash if token is not None else _NO_HASH)
        return token if token is not None and is_right and not _is_expired(token, stored.now) else None

    async def get(self, token_id: str) -> Token | None:
        """Returns a token by its id; None if it is unknown or expired."""
        stored = await (await self._store()).token(token_id)
        if stored.record is None:
            return None
        token = msgspec.json.decode(stored.record, type=Token)
        return None if _is_expired(token, stored.now) else token

    async def _store(self) -> HttpServerStore:
        return await http_server_store(self._rota)


async def http_server_store(rota: Rota) -> HttpServerStore:
    """Returns the store of tokens, sessions and the audit log."""
    return HttpServerStore((await checked_session(rota)).redis, sessions_of(rota).keys)


def _digest(secret: str) -> str:
    # A secret of 256 random bits cannot be guessed, so a fast hash is as safe as a slow one.
    return hashlib.sha256(secret.encode()).hexdigest()


def _checked_limits(limits: Limits) -> Limits:
    """Returns the limits. Raises InvalidOption."""
    for name in limits.__struct_fields__:
        value = getattr(limits, name)
        if value is not None and not 0 < value <= 1_000_000:
            raise InvalidOption(name, f"{value:g} is not above 0 and at most 1,000,000")
    if limits.burst is not None and limits.requests_per_second is None:
        raise InvalidOption("burst", "needs a limit of requests per second")
    return limits


def _is_expired(token: Token, now: int) -> bool:
    return token.expires_at is not None and token.expires_at <= now
