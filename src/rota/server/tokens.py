"""API tokens: made once, shown once, kept as a hash. `rota token` and the server share this; it needs no FastAPI."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from rota.client import Rota
from rota.core.job import checked_queue
from rota.errors import InvalidOption
from rota.store.access import AccessStore

#: `rota_<id>_<secret>`: the prefix lets scanners of leaked secrets find it, the id says which one it is.
_TOKEN: Final = re.compile(r"rota_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
#: Compared with when there is no such token, so that an unknown id takes as long as a wrong secret.
_NOBODY: Final = hashlib.sha256(b"").hexdigest()
MAX_NAME: Final = 100


class Role(StrEnum):
    """What a caller may do: look; act on jobs; everything."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def covers(self, other: Role) -> bool:
        """True when this role may do all that the other may."""
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(other)


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A token as it is stored: never the secret itself."""

    id: str
    hash: str
    name: str
    role: Role
    #: Empty: all of them.
    queues: tuple[str, ...] = ()
    created_at: int
    expires_at: int | None = None


class TokenInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A token as people see it."""

    id: str
    name: str
    role: Role
    queues: tuple[str, ...]
    created_at: int
    expires_at: int | None
    last_used: int | None
    is_expired: bool


class TokenNotFound(InvalidOption):
    """There is no token of that id."""

    def __init__(self, token_id: str) -> None:
        super().__init__("token", f"there is no token {token_id}: see which there are with `rota token list`")


class Tokens:
    """The tokens of one namespace."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota

    async def create(
        self, role: Role | str, *, name: str = "", queues: Sequence[str] = (), lifetime_s: float | None = None
    ) -> tuple[str, Token]:
        """Makes a token: the secret text, which is shown now or never, and what is kept of it."""
        if role not in list(Role):
            raise InvalidOption("role", f"{role!r} is none of {', '.join(Role)}")
        if len(name) > MAX_NAME or not name.isprintable():
            raise InvalidOption("name", f"{name!r} is not at most {MAX_NAME} printable characters")
        if lifetime_s is not None and not 1 <= lifetime_s <= 100 * 366 * 86400:
            raise InvalidOption("expires", f"{lifetime_s:g} s is not between a second and a hundred years")
        store = await self._store()
        token_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        now = (await store.token(token_id)).now
        token = Token(
            id=token_id,
            hash=_digest(secret),
            name=name or token_id,
            role=Role(role),
            queues=tuple(dict.fromkeys(checked_queue(queue) for queue in queues)),
            created_at=now,
            expires_at=None if lifetime_s is None else now + round(lifetime_s * 1000),
        )
        await store.put_token(token_id, msgspec.json.encode(token))
        return f"rota_{token_id}_{secret}", token

    async def list(self) -> Sequence[TokenInfo]:
        """All tokens, the oldest first."""
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
                    created_at=token.created_at,
                    expires_at=token.expires_at,
                    last_used=last_used,
                    is_expired=_is_over(token, now),
                )
            )
        return sorted(found, key=lambda token: (token.created_at, token.id))

    async def revoke(self, token_id: str) -> Token:
        """Makes a token worthless, within seconds everywhere. Raises TokenNotFound."""
        store = await self._store()
        record = (await store.token(token_id)).record
        if record is None:
            raise TokenNotFound(token_id)
        await store.drop_token(token_id)
        return msgspec.json.decode(record, type=Token)

    async def verify(self, text: str) -> Token | None:
        """The token that a text is the secret of; None if it is of none, or of one that is over."""
        parts = _TOKEN.fullmatch(text)
        token_id, secret = (parts[1], parts[2]) if parts else ("", "")
        stored = await (await self._store()).token(token_id)
        token = msgspec.json.decode(stored.record, type=Token) if stored.record is not None else None
        is_right = hmac.compare_digest(_digest(secret), token.hash if token is not None else _NOBODY)
        return token if token is not None and is_right and not _is_over(token, stored.now) else None

    async def get(self, token_id: str) -> Token | None:
        """A token by its id, unless it is over: what a session was opened with."""
        stored = await (await self._store()).token(token_id)
        if stored.record is None:
            return None
        token = msgspec.json.decode(stored.record, type=Token)
        return None if _is_over(token, stored.now) else token

    async def _store(self) -> AccessStore:
        return await access_store(self._rota)


async def access_store(rota: Rota) -> AccessStore:
    """Where these things are kept."""
    return AccessStore((await rota.checked_link()).gateway, rota.keys)


def _digest(secret: str) -> str:
    # The secret has 256 random bits: nobody guesses it, so a fast hash is as good as a slow one.
    return hashlib.sha256(secret.encode()).hexdigest()


def _is_over(token: Token, now: int) -> bool:
    return token.expires_at is not None and token.expires_at <= now
