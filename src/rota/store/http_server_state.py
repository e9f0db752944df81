"""State of the HTTP server: API tokens, login sessions, responses for idempotency keys, and the audit log.

Every call is idempotent, except that a retried audit entry may be written twice; readers recognise it by the token in
it. All keys are in the hash slot of the keys that belong to no queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from rota.core.lua_constants import REPLY_KEPT_MS
from rota.errors import InvalidOption
from rota.store.keys import AUDIT_KEPT, Keys
from rota.store.redis.hash_and_time_replies import read_hash, read_time_ms
from rota.store.redis.retrying_client import Argument, RedisClient
from rota.store.redis.script_compiler import script

SESSION_MS: Final = 12 * 3600 * 1000
RESPONSE_MS: Final = 24 * 3600 * 1000
#: Failed logins of one address are counted for this long after the first.
FAILED_LOGINS_MS: Final = 60_000


class StoredToken(NamedTuple):
    """The stored record of an API token, if there is one, and the server's time, ms."""

    record: bytes | None
    now: int


class HttpServerStore:
    """Reads and writes the state of the HTTP server."""

    def __init__(self, redis: RedisClient, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys
        #: Entries that the audit log keeps.
        self.audit_kept = AUDIT_KEPT

    # --- tokens ------------------------------------------------------------------------------------------------

    async def put_token(self, token_id: str, record: bytes) -> None:
        """Stores an API token."""
        await self._run("put_token", [token_id, record])

    async def token(self, token_id: str) -> StoredToken:
        """The API token with that id, and the time."""
        record, time = await self._redis.commands([["HGET", self._keys.shared("tokens"), token_id], ["TIME"]])
        return StoredToken(record, read_time_ms(time))

    async def tokens(self) -> dict[str, tuple[bytes, int | None]]:
        """All API tokens: id -> record, and when it was last used, ms."""
        records, uses = await self._redis.commands(
            [["HGETALL", self._keys.shared("tokens")], ["HGETALL", self._keys.shared("token_uses")]]
        )
        used = read_hash(uses)
        return {
            token_id: (record, int(used[token_id]) if token_id in used else None)
            for token_id, record in read_hash(records).items()
        }

    async def delete_token(self, token_id: str) -> None:
        """Deletes an API token. Sessions opened with it end."""
        await self._redis.commands(
            [
                ["HDEL", self._keys.shared("tokens"), token_id],
                ["HDEL", self._keys.shared("token_uses"), token_id],
            ]
        )

    async def record_token_use(self, token_id: str) -> None:
        """Records that an API token was used now."""
        now = (await self.token(token_id)).now
        await self._redis.command("HSET", self._keys.shared("token_uses"), token_id, now)

    # --- sessions ----------------------------------------------------------------------------------------------

    async def open_session(self, name: str, record: bytes) -> None:
        """Stores a login session for 12 h."""
        await self._redis.command("SET", self._keys.shared("session", name), record, "NX", "PX", SESSION_MS)

    async def session(self, name: str) -> bytes | None:
        """The login session of that name; None when it has expired or was closed."""
        return await self._redis.command("GET", self._keys.shared("session", name)) or None

    async def close_session(self, name: str) -> None:
        """Ends a login session. Its empty record stays for a while: a late copy of `open_session` then does nothing."""
        await self._redis.command("SET", self._keys.shared("session", name), b"", "XX", "PX", REPLY_KEPT_MS)

    async def count_failed_login(self, address: str) -> int:
        """Counts a failed login. Returns how many there were from the address within a minute."""
        return int(await self._run("count_failed_login", [address, FAILED_LOGINS_MS]))

    async def failed_logins(self, address: str) -> int:
        """The number of failed logins from an address within a minute."""
        return int(await self._redis.command("GET", self._keys.shared("login_failures", address)) or 0)

    # --- responses for idempotency keys ------------------------------------------------------------------------

    async def response(self, name: str) -> bytes | None:
        """The response stored under a name, if any."""
        return await self._redis.command("GET", self._keys.shared("http_reply", name))

    async def store_response(self, name: str, response: bytes) -> bytes:
        """Stores a response for 24 h, unless there is one. Returns the one that is stored."""
        before = await self._redis.command(
            "SET", self._keys.shared("http_reply", name), response, "NX", "GET", "PX", RESPONSE_MS
        )
        return response if before is None else before

    # --- saved views of the dashboard --------------------------------------------------------------------------

    async def saved_views(self) -> dict[str, bytes]:
        """All saved views: name -> record."""
        return read_hash(await self._redis.command("HGETALL", self._keys.shared("saved_views")))

    async def save_view(self, name: str, record: bytes) -> None:
        """Stores a view, or replaces it."""
        await self._redis.command("HSET", self._keys.shared("saved_views"), name, record)

    async def delete_view(self, name: str) -> bool:
        """Deletes a view. False if there is none of that name."""
        return bool(await self._redis.command("HDEL", self._keys.shared("saved_views"), name))

    # --- audit -------------------------------------------------------------------------------------------------

    async def append_audit(self, caller: str, entry: bytes) -> None:
        """Appends an entry to the audit log. A full one loses the oldest entry of the caller that has the most."""
        await self._run("append_audit", [caller, entry, self.audit_kept])

    async def audit_entries(self, *, before: str | None, limit: int) -> list[tuple[str, bytes]]:
        """Entries of the audit log with their ids, newest first; only those older than the entry `before`."""
        start = f"({before}" if before else "+"
        if before and not _is_entry_id(before):
            raise InvalidOption("cursor", f"{before!r} is not a cursor of this listing")
        found: list[Any] = await self._redis.command(
            "XREVRANGE", self._keys.shared("audit"), start, "-", "COUNT", limit
        )
        return [(entry_id.decode(), read_hash(fields)["entry"]) for entry_id, fields in found]

    async def _run(self, name: str, arguments: Sequence[Argument]) -> Any:
        return await self._redis.run(name, self._keys.shared_of_script(script(name).keys), arguments)


def _is_entry_id(text: str) -> bool:
    parts = text.split("-")
    return len(parts) == 2 and all(p.isascii() and p.isdecimal() and int(p) < 2**64 for p in parts)
