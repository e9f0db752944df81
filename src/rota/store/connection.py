"""One connection to one server, shared by any number of callers: commands go out, replies come back in order.

What is asked within one turn of the loop leaves in one write. Whoever stops waiting leaves a place in the line behind:
its reply is read and dropped, and those after it get their own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, cast

import hiredis

Argument = str | bytes | int
#: A command as it goes over the wire.
pack: Final = cast("Callable[[tuple[Argument, ...]], bytes]", cast("Any", hiredis).pack_command)
_INCOMPLETE: Final = object()
#: A loop that was held up finds its timers overdue before it has looked at its sockets: it gets this long to do so.
LOOK_S: Final = 0.02


class ServerError(Exception):
    """The server's refusal, in its own words: a code, and a text. Stands in place of a reply."""

    @property
    def code(self) -> str:
        """The first word: NOSCRIPT, MOVED, ERR …"""
        return str(self).partition(" ")[0]


class Disconnected(ConnectionError):
    """The connection ended before the reply came: nobody knows whether the command was carried out."""


class _Question:
    """Commands that were sent together, and the replies to them so far."""

    __slots__ = ("count", "future", "replies")

    def __init__(self, future: asyncio.Future[list[Any]], count: int) -> None:
        self.future = future
        self.count = count
        self.replies: list[Any] = []


class Connection(asyncio.Protocol):
    """Speaks RESP 2. Made by the loop; `connections.open_connection` logs it in."""

    def __init__(self, timeout: float | None) -> None:
        #: Silence for longer than this, while something is asked, is taken for the end of the connection.
        self.timeout = timeout
        #: Scripts that the server has had through this connection.
        self.scripts: set[str] = set()
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reader = hiredis.Reader(replyError=ServerError, notEnoughData=_INCOMPLETE)
        self._questions: deque[_Question] = deque()
        self._unsent: list[bytes] = []
        self._heard_at = 0.0
        self._watch: asyncio.TimerHandle | None = None
        self._is_suspect = False

    @property
    def is_open(self) -> bool:
        """False once it has ended, for whatever reason."""
        return self._transport is not None

    def ask(self, commands: bytes, count: int = 1) -> asyncio.Future[list[Any]]:
        """Sends packed commands; the future brings a reply for each, errors among them. Raises Disconnected."""
        if self._transport is None:
            raise Disconnected("the connection has ended")
        future: asyncio.Future[list[Any]] = self._loop.create_future()
        if not self._questions:
            # Nobody is waiting, so there is no company to wait for.
            self._transport.write(commands)
            self._heard_at = self._loop.time()
            if self._watch is None and self.timeout is not None:
                self._watch = self._loop.call_later(self.timeout, self._look_for_silence)
        else:
            if not self._unsent:
                self._loop.call_soon(self._send)
            self._unsent.append(commands)
        self._questions.append(_Question(future, count))
        return future

    def abort(self, why: str) -> None:
        """Ends it at once; whoever waits for a reply hears why."""
        if self._transport is not None:
            self._transport.abort()
        self._end(why)

    # --- what the loop tells -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Hands out the replies that are complete; the beginning of another waits for the rest."""
        self._heard_at = self._loop.time()
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not _INCOMPLETE:
                if self._questions:
                    self._answer(reply)
                else:
                    self.unasked(reply)
        except hiredis.ProtocolError as error:
            self.abort(f"what the server said cannot be read: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends."""
        self._end(str(exc or "the server closed the connection"))
        if not self.closed.done():
            self.closed.set_result(None)

    # --- within ------------------------------------------------------------------------------------------------

    def unasked(self, reply: Any) -> None:
        """A reply too many would make every later one the answer to another question."""
        self.abort(f"the server spoke unasked: {reply!r}")

    def ended(self, why: str) -> None:
        """For those who wait for something else than replies."""

    def _answer(self, reply: Any) -> None:
        question = self._questions[0]
        question.replies.append(reply)
        if len(question.replies) == question.count:
            self._questions.popleft()
            if not question.future.done():
                question.future.set_result(question.replies)

    def _send(self) -> None:
        unsent, self._unsent = self._unsent, []
        if self._transport is not None:
            self._transport.write(b"".join(unsent))

    def _look_for_silence(self) -> None:
        self._watch = None
        if not self._questions or self.timeout is None:
            return
        left = self._heard_at + self.timeout - self._loop.time()
        if left > 0:
            self._is_suspect = False
        elif self._is_suspect:
            self.abort(f"no answer within {self.timeout:g} s")
            return
        else:
            self._is_suspect, left = True, LOOK_S
        self._watch = self._loop.call_later(left, self._look_for_silence)

    def _end(self, why: str) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if self._transport is None:
            return
        self._transport = None
        questions, self._questions = self._questions, deque()
        for question in questions:
            if not question.future.done():
                question.future.set_exception(Disconnected(why))
        self.ended(why)


class Subscription(Connection):
    """A connection that is told things. The first question subscribes; what comes after it goes to `hear`."""

    def __init__(self, timeout: float | None) -> None:
        super().__init__(timeout)
        #: Messages, unless somebody else hears them; at the end of the connection why it ended.
        self.heard: asyncio.Queue[bytes | Disconnected] = asyncio.Queue()
        #: Is told each message where its bytes arrive.
        self.hear: Callable[[bytes], None] = self.heard.put_nowait

    def unasked(self, reply: Any) -> None:
        """`message`, channel, text."""
        self.hear(reply[2])

    def ended(self, why: str) -> None:
        """Wakes the listener."""
        self.heard.put_nowait(Disconnected(why))
