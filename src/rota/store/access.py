"""What the HTTP server keeps for itself: tokens, logins, answers to be repeated, and the audit log.

Every call may be sent again: what is written is the same the second time, and an entry of the audit log that was
written twice is recognised by its token. All of it lives in the slot that belongs to no queue.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from rota.errors import InvalidOption
from rota.store.gateway import Gateway
from rota.store.keys import AUDIT_KEPT, Keys
from rota.store.replies import read_hash

SESSION_MS: Final = 12 * 3600 * 1000
ANSWER_MS: Final = 24 * 3600 * 1000
#: Failed logins of one address are counted for this long after the first.
MISSES_MS: Final = 60_000


class StoredToken(NamedTuple):
    """A token as it is stored, when it was last used, and what the server's clock says now."""

    record: bytes | None
    now: int


class AccessStore:
    """What can be asked of these, and done to them."""

    def __init__(self, gateway: Gateway, keys: Keys) -> None:
        self._gateway = gateway
        self._keys = keys

    # --- tokens ------------------------------------------------------------------------------------------------

    async def put_token(self, token_id: str, record: bytes) -> None:
        """Keeps a token."""
        await self._gateway.command("HSET", self._keys.shared("tokens"), token_id, record)

    async def token(self, token_id: str) -> StoredToken:
        """The token of that id, and the time."""
        record, time = await self._gateway.commands([["HGET", self._keys.shared("tokens"), token_id], ["TIME"]])
        return StoredToken(record, int(time[0]) * 1000 + int(time[1]) // 1000)

    async def tokens(self) -> dict[str, tuple[bytes, int | None]]:
        """All tokens, and when each was last used, ms."""
        records, uses = await self._gateway.commands(
            [["HGETALL", self._keys.shared("tokens")], ["HGETALL", self._keys.shared("token_uses")]]
        )
        used = read_hash(uses)
        return {
            token_id: (record, int(used[token_id]) if token_id in used else None)
            for token_id, record in read_hash(records).items()
        }

    async def drop_token(self, token_id: str) -> None:
        """Forgets a token. Sessions that were opened with it end."""
        await self._gateway.commands(
            [
                ["HDEL", self._keys.shared("tokens"), token_id],
                ["HDEL", self._keys.shared("token_uses"), token_id],
            ]
        )

    async def note_use(self, token_id: str) -> None:
        """A token was used now."""
        now = (await self.token(token_id)).now
        await self._gateway.command("HSET", self._keys.shared("token_uses"), token_id, now)

    # --- sessions ----------------------------------------------------------------------------------------------

    async def open_session(self, name: str, record: bytes) -> None:
        """Keeps a login for some hours."""
        await self._gateway.command("SET", self._keys.shared("session", name), record, "PX", SESSION_MS)

    async def session(self, name: str) -> bytes | None:
        """The login of that name; None when it is over."""
        return await self._gateway.command("GET", self._keys.shared("session", name))

    async def close_session(self, name: str) -> None:
        """Ends a login."""
        await self._gateway.command("DEL", self._keys.shared("session", name))

    async def note_miss(self, address: str) -> int:
        """One more failed login from an address; how many there are within a minute."""
        key = self._keys.shared("misses", address)
        count, _ = await self._gateway.commands([["INCR", key], ["PEXPIRE", key, MISSES_MS, "NX"]])
        return int(count)

    async def misses(self, address: str) -> int:
        """How many logins from an address failed within a minute."""
        return int(await self._gateway.command("GET", self._keys.shared("misses", address)) or 0)

    # --- answers -----------------------------------------------------------------------------------------------

    async def answer(self, name: str) -> bytes | None:
        """What was answered under that name."""
        return await self._gateway.command("GET", self._keys.shared("answer", name))

    async def keep_answer(self, name: str, answer: bytes) -> bytes:
        """Keeps an answer for a day, unless there is one already; the one that counts."""
        before = await self._gateway.command(
            "SET", self._keys.shared("answer", name), answer, "NX", "GET", "PX", ANSWER_MS
        )
        return answer if before is None else before

    # --- audit -------------------------------------------------------------------------------------------------

    async def note_change(self, entry: bytes) -> None:
        """Adds to the audit log."""
        await self._gateway.command("XADD", self._keys.shared("audit"), "MAXLEN", "~", AUDIT_KEPT, "*", "entry", entry)

    async def changes(self, *, before: str | None, limit: int) -> list[tuple[str, bytes]]:
        """Entries of the audit log with their ids, the newest first, from behind `before` on."""
        start = f"({before}" if before else "+"
        if before and not _is_entry_id(before):
            raise InvalidOption("cursor", f"{before!r} was not made by this listing")
        found: list[Any] = await self._gateway.command(
            "XREVRANGE", self._keys.shared("audit"), start, "-", "COUNT", limit
        )
        return [(entry_id.decode(), read_hash(fields)["entry"]) for entry_id, fields in found]


def _is_entry_id(text: str) -> bool:
    parts = text.split("-")
    return len(parts) == 2 and all(p.isascii() and p.isdecimal() and int(p) < 2**64 for p in parts)
