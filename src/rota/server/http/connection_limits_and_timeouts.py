"""Limits of connections: how many there are, and how long a request may take to arrive and a response to be read."""

from __future__ import annotations

import asyncio
import re
import resource
from typing import Any, Final, Literal

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from rota.server.auth.authentication import PEER_UID
from rota.server.auth.peer_process import peer_uid
from rota.server.settings import is_loopback

#: Time for the head of a request to arrive, from the connection or the previous response on.
HEAD_S: Final = 10.0
#: Time for the body to arrive after the head, and for a client that reads nothing to continue.
BODY_S: Final = 60.0
STALLED_S: Final = 60.0
#: Maximum number of connections, and file descriptors left for other uses.
MAX_CONNECTIONS: Final = 1_000
RESERVED_FILES: Final = 64
#: Bytes of a request that are held until it is whole; as many as uvicorn reads ahead of the application.
MAX_HELD: Final = 65_536
_END_OF_HEAD: Final = re.compile(rb"\r?\n\r?\n")
_CONTENT_LENGTH: Final = re.compile(rb"(?i)\ncontent-length:[ \t]*([0-9]{1,9})[ \t]*\r?\n")
_EXPECT: Final = re.compile(rb"(?i)\nexpect:")


def max_connections() -> int:
    """Returns the number of connections that the limit of open files allows."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MAX_CONNECTIONS if limit == resource.RLIM_INFINITY else max(8, min(MAX_CONNECTIONS, limit - RESERVED_FILES))


class LimitedProtocol(H11Protocol):
    """One connection. Closes itself when a request does not arrive in time, or a response is not read.

    When there are too many connections, the one that has waited longest for its request is closed: a thousand clients
    that never send one keep no other client out. One that is sending a body is only closed if all others are busy.
    """

    _deadline: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    #: When the server began to wait for the current request: at the connection or the previous response.
    waiting_since: float
    #: What has arrived of a small request. It is parsed once it is whole, so that half a request costs next to nothing.
    _held: bytes = b""
    _is_body_held = False

    def connection_made(self, transport: Any) -> None:
        """Counts the connection, and looks up whose process is at the other end."""
        super().connection_made(transport)
        self.waiting_since = self.loop.time()
        if self.client is not None and self.server is not None and is_loopback(self.client[0]):
            # Now: once the client has hung up, the kernel no longer knows whose process it was.
            uid = peer_uid(self.client, (self.server[0], self.server[1] or 0))
            self.app_state = {**self.app_state, PEER_UID: uid}
        self._expect(HEAD_S)
        make_room(self)

    def data_received(self, data: bytes) -> None:
        """Parses what has arrived, and starts the deadline of the next part of the request when one has arrived."""
        before = self.conn.their_state
        if before is h11.IDLE:
            self._held += data
            missing = missing_part(self._held)
            if missing is not None:
                self._wait_for(missing)
                return
            data, self._held, self._is_body_held = self._held, b"", False
        super().data_received(data)
        after = self.conn.their_state
        if after is h11.SEND_BODY:
            if before is not h11.SEND_BODY:
                self._expect(BODY_S)
        elif after is h11.IDLE:
            if self._deadline is None:
                self._expect(HEAD_S)
        else:
            self._stop_expecting()

    def on_response_complete(self) -> None:
        """Starts to wait for the next request, which may have arrived in part."""
        self.waiting_since = self.loop.time()
        super().on_response_complete()
        if self.is_sending_body and self._deadline is None:
            self._expect(BODY_S)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends all deadlines."""
        self._stop_expecting()
        if self._stalled is not None:
            self._stalled.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        self._stalled = self._stalled or self.loop.call_later(STALLED_S, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    @property
    def is_waiting(self) -> bool:
        """True while the request has not arrived."""
        return self._deadline is not None or self.timeout_keep_alive_task is not None

    @property
    def is_sending_body(self) -> bool:
        """True while the body of a request that is not answered yet arrives."""
        return self._is_body_held or (self.conn.their_state is h11.SEND_BODY and not self.cycle.response_complete)

    def _wait_for(self, part: Literal["head", "body"]) -> None:
        self._unset_keepalive_if_required()
        if part == "body" and not self._is_body_held:
            self._is_body_held = True
            self._expect(BODY_S)
        elif self._deadline is None:
            self._expect(HEAD_S)

    def _expect(self, seconds: float) -> None:
        self._stop_expecting()
        self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _stop_expecting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def missing_part(received: bytes) -> Literal["head", "body"] | None:
    """Returns the part of a small request that has not arrived whole; None if all has, or nothing should be held back.

    Not held back is what is large, has no Content-Length, is no HTTP, or comes from a client that waits for a 100.
    """
    if len(received) > MAX_HELD or not received[:1].isalpha():
        return None
    end = _END_OF_HEAD.search(received)
    if end is None:
        return "head"
    head = received[: end.end()]
    length = _CONTENT_LENGTH.search(head)
    if length is None or _EXPECT.search(head):
        return None
    size = len(head) + int(length[1])
    return "body" if len(received) < size <= MAX_HELD else None


def make_room(newest: Any) -> None:
    """Closes some connections, if there are too many besides those that are closing. Several: it looks at all."""
    limit = max_connections()
    connections: set[Any] = newest.connections
    if len(connections) <= limit:
        return
    remaining = [one for one in connections if not one.transport.is_closing()]
    if len(remaining) > limit:
        waiting = [one for one in remaining if one.is_waiting and one is not newest] or [newest]
        waiting.sort(key=lambda one: (one.is_sending_body, one.waiting_since))
        for one in waiting[: max(1, limit // 16)]:
            one.transport.abort()
