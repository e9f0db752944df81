"""One connection to one server, shared by any number of callers: commands are pipelined, replies come in order.

Commands issued within one turn of the loop are sent in one write. When a caller stops waiting, its reply is still read
and dropped, so the replies after it reach their own callers.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import hiredis

Argument = str | bytes | int
#: Encodes a command for the wire.
pack: Final = cast("Callable[[tuple[Argument, ...]], bytes]", cast("Any", hiredis).pack_command)
_INCOMPLETE: Final = object()
#: After a blocked loop, timers fire before the sockets are read: a late reply gets this long to be read.
TIMEOUT_GRACE_S: Final = 0.02


def pack_all(commands: Sequence[Sequence[Argument]]) -> bytes:
    """Encodes several commands for the wire."""
    return b"".join([pack(tuple(words)) for words in commands])


class ServerError(Exception):
    """An error reply. Returned in place of a reply."""

    @property
    def code(self) -> str:
        """Its first word: NOSCRIPT, MOVED, ERR …"""
        return str(self).partition(" ")[0]


class Disconnected(ConnectionError):
    """The connection ended before the reply came: the command may or may not have been executed."""


class _PendingRequest:
    """Commands that were sent together, and their replies so far."""

    __slots__ = ("count", "future", "replies")

    def __init__(self, future: asyncio.Future[list[Any]], count: int) -> None:
        self.future = future
        self.count = count
        self.replies: list[Any] = []


class Connection(asyncio.Protocol):
    """A RESP 2 connection. Created by the loop; `connection_opener.open_connection` logs in."""

    def __init__(self, timeout: float | None) -> None:
        #: With a request pending, no data for this long ends the connection.
        self.timeout = timeout
        #: Scripts that were loaded through this connection.
        self.scripts: set[str] = set()
        #: The replication id of the server, once it was read.
        self.replication_id: str | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reader = hiredis.Reader(replyError=ServerError, notEnoughData=_INCOMPLETE)
        self._pending: deque[_PendingRequest] = deque()
        self._unsent: list[bytes] = []
        self._last_data_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._is_in_grace = False

    @property
    def is_open(self) -> bool:
        """False once the connection has ended, for any reason."""
        return self._transport is not None

    def request(self, commands: bytes, count: int = 1) -> asyncio.Future[list[Any]]:
        """Sends packed commands. The future resolves to one reply each, errors included. Raises Disconnected."""
        if self._transport is None:
            raise Disconnected("the connection has ended")
        future: asyncio.Future[list[Any]] = self._loop.create_future()
        if not self._pending:
            # Nothing is in flight, so there is nothing to batch with.
            self._transport.write(commands)
            self._last_data_at = self._loop.time()
            if self._timer is None and self.timeout is not None:
                self._timer = self._loop.call_later(self.timeout, self._check_timeout)
        else:
            if not self._unsent:
                self._loop.call_soon(self._send)
            self._unsent.append(commands)
        self._pending.append(_PendingRequest(future, count))
        return future

    def abort(self, reason: str) -> None:
        """Closes the connection at once. Pending requests raise Disconnected with the reason."""
        if self._transport is not None:
            self._transport.abort()
        self._end(reason)

    # --- called by the loop ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Opens the connection."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Resolves requests whose replies are complete; a partial reply waits for the rest."""
        self._last_data_at = self._loop.time()
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not _INCOMPLETE:
                if self._pending:
                    self._add_reply(reply)
                else:
                    self.push_received(reply)
        except hiredis.ProtocolError as error:
            self.abort(f"the reply of the server cannot be parsed: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the connection."""
        self._end(str(exc or "the server closed the connection"))
        if not self.closed.done():
            self.closed.set_result(None)

    # --- for subclasses ----------------------------------------------------------------------------------------

    def push_received(self, reply: Any) -> None:
        """Handles a reply without a request. Here it is fatal: every later reply would go to the wrong request."""
        self.abort(f"the server sent a reply without a request: {reply!r}")

    def on_end(self, reason: str) -> None:
        """Called once, after the connection ended."""

    # --- internals ---------------------------------------------------------------------------------------------

    def _add_reply(self, reply: Any) -> None:
        request = self._pending[0]
        request.replies.append(reply)
        if len(request.replies) == request.count:
            self._pending.popleft()
            if not request.future.done():
                request.future.set_result(request.replies)

    def _send(self) -> None:
        unsent, self._unsent = self._unsent, []
        if self._transport is not None:
            self._transport.write(b"".join(unsent))

    def _check_timeout(self) -> None:
        self._timer = None
        if not self._pending or self.timeout is None:
            return
        left = self._last_data_at + self.timeout - self._loop.time()
        if left > 0:
            self._is_in_grace = False
        elif self._is_in_grace:
            self.abort(f"no answer within {self.timeout:g} s")
            return
        else:
            self._is_in_grace, left = True, TIMEOUT_GRACE_S
        self._timer = self._loop.call_later(left, self._check_timeout)

    def _end(self, reason: str) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is None:
            return
        self._transport = None
        pending, self._pending = self._pending, deque()
        for request in pending:
            if not request.future.done():
                request.future.set_exception(Disconnected(reason))
        self.on_end(reason)


class Subscription(Connection):
    """A connection that receives published messages. The first request subscribes."""

    def __init__(self, timeout: float | None) -> None:
        super().__init__(timeout)
        #: Messages, unless `on_message` was replaced; when the connection ends, the error that ended it.
        self.messages: asyncio.Queue[bytes | Disconnected] = asyncio.Queue()
        #: Called with each message, from `data_received`.
        self.on_message: Callable[[bytes], None] = self.messages.put_nowait

    def push_received(self, reply: Any) -> None:
        """Passes on the text of ["message", channel, text]."""
        self.on_message(reply[2])

    def on_end(self, reason: str) -> None:
        """Wakes the reader of `messages`."""
        self.messages.put_nowait(Disconnected(reason))
