"""Pools connections to one server: a shared one, and others for calls that block and for subscriptions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from rota.store.redis.connection import Connection, ServerError, Subscription, pack
from rota.store.redis.connection_opener import SOCKET_TIMEOUT_S, Opener

#: Connections for blocking calls that one node keeps open for the next burst of them.
MAX_IDLE: Final = 8


class Node:
    """One server: a connection shared by all calls, and a pool for calls that block. Connects on first use."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._shared: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None
        #: Idle connections of `dedicated`.
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()

    @property
    def shared(self) -> Connection | None:
        """The connection for calls that do not block, if it is open."""
        return self._shared if self._shared is not None and self._shared.is_open else None

    async def connect(self) -> Connection:
        """Opens the shared connection. Concurrent callers share one attempt, and cancelling one does not stop it."""
        if self.shared is not None:
            return self.shared
        if self._opening is None:
            self._opening = asyncio.create_task(self._connect())
            self._opening.add_done_callback(self._connected)
        return await asyncio.shield(self._opening)

    def reconnect(self, reason: str) -> None:
        """Closes all connections: the next call opens another. Calls in flight fail and are sent again."""
        for connection in list(self._open):
            connection.abort(reason)

    @asynccontextmanager
    async def dedicated(self, block_ms: int) -> AsyncGenerator[Connection]:
        """A connection for one call that may block for `block_ms`: on the shared one, all other replies would wait."""
        connection = self._take_idle() or await self._open_connection(Connection)
        connection.timeout = block_ms / 1000 + SOCKET_TIMEOUT_S
        try:
            yield connection
        except BaseException:
            connection.abort("the call was abandoned")
            raise
        if len(self._idle) < MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.abort("enough connections are idle")

    @asynccontextmanager
    async def subscribe(
        self, channel: str, on_message: Callable[[bytes], None] | None = None
    ) -> AsyncGenerator[Subscription]:
        """A connection subscribed to a channel. `on_message` is called as data arrives, instead of queueing."""
        subscription = await self._open_connection(Subscription)
        assert isinstance(subscription, Subscription)
        if on_message is not None:
            subscription.on_message = on_message
        try:
            (reply,) = await subscription.request(pack(("SUBSCRIBE", channel)))
            if isinstance(reply, ServerError):
                raise reply
            yield subscription
        finally:
            subscription.abort("the subscription was closed")

    async def close(self) -> None:
        """Closes all connections."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        open_ones = list(self._open)
        for connection in open_ones:
            connection.abort("the client was closed")
        await asyncio.gather(*(connection.closed for connection in open_ones))
        self._idle.clear()

    def _take_idle(self) -> Connection | None:
        """Takes the connection out of the pool that was returned last and is open."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
        return None

    async def _connect(self) -> Connection:
        self._shared = await self._open_connection(Connection)
        return self._shared

    def _connected(self, opening: asyncio.Task[Connection]) -> None:
        self._opening = None
        if not opening.cancelled():
            opening.exception()  # marks it as retrieved: every waiter may have been cancelled

    async def _open_connection(self, kind: type[Connection]) -> Connection:
        connection = await self._opener(kind)
        self._open.add(connection)
        connection.closed.add_done_callback(lambda _: self._open.discard(connection))
        return connection


class SingleServer:
    """A server that is not a cluster: one node, whose address may change with a failover."""

    def __init__(self, opener: Opener) -> None:
        self._node = Node(opener)

    async def request(self, key: str, command: bytes) -> Any:
        """Sends one command. Returns the reply."""
        return (await (self._node.shared or await self._node.connect()).request(command))[0]

    async def find(self, key: str) -> Node:
        """The node that serves a key."""
        return self._node

    async def primaries(self) -> list[Node]:
        """The one node."""
        return [self._node]

    async def recover(self, error: Exception) -> None:
        """Prepares for the retry of a call that failed with `error`: reconnects if the server is not the primary."""
        if is_not_primary(error):
            self._node.reconnect(str(error))

    async def close(self) -> None:
        """Closes all connections."""
        await self._node.close()


def is_not_primary(error: Exception) -> bool:
    """True when the server is not the primary, or no longer: another one may have been promoted."""
    return isinstance(error, ServerError) and error.code in ("READONLY", "MASTERDOWN")
