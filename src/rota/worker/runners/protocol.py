"""The messages between a supervisor and its runners, over a pair of pipes.

A frame is four bytes of length and a msgpack list of messages; a message is an array that starts with its tag. An
attempt is identified by the number that the supervisor gives it.
"""

from __future__ import annotations

import asyncio
import os
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from rota.core.attempts_from_history import LostAttempt
from rota.core.schedule import Schedule
from rota.store.report_encoding import Cancelled, Completed, Failed, Snoozed

_LENGTH: Final = struct.Struct(">I")
_encode: Final = msgspec.msgpack.Encoder().encode


# --- from the supervisor -----------------------------------------------------------------------------------------


class StartAttempt(msgspec.Struct, array_like=True, tag="start", gc=False):
    """Run this attempt."""

    attempt_id: int
    queue: str
    run: str
    claim: str
    #: The counts of the run so far; empty at its first attempt.
    counts: tuple[int, ...]
    record: bytes


class StopAttempt(msgspec.Struct, array_like=True, tag="stop", gc=False):
    """Stop this attempt."""

    attempt_id: int
    #: timeout, progress, cancelled, lost, shutdown or retired.
    reason: str = ""
    #: A sentence about the timeout that was exceeded.
    note: str = ""


class NotifyLostAttempt(msgspec.Struct, array_like=True, tag="notify_lost", gc=False):
    """Call the middleware for an attempt that was killed."""

    number: int
    attempt: LostAttempt


class Quit(msgspec.Struct, array_like=True, tag="quit", gc=False):
    """Exit: there are no more jobs."""


# --- from a runner -----------------------------------------------------------------------------------------------


class AppDescription(msgspec.Struct):
    """What the supervisor needs to know about the user's program, which it never imports itself."""

    #: Name of a task -> queue, run_in, per_worker, schema, positional, index, options, doc.
    tasks: dict[str, dict[str, Any]] = {}
    #: Name of a failure handler -> task, run_in, options by queue.
    failure_handlers: dict[str, dict[str, Any]] = {}
    schedules: list[Schedule] = []
    #: Queue -> number of shards.
    shards: dict[str, int] = {}
    #: The arguments of a `Rota` that connects to the same server.
    connection: dict[str, Any] = {}
    #: URL of the user's own store for blobs, or "".
    blobs: str = ""
    #: Some middleware defines `attempt_lost` or `on_error`, or there are error hooks.
    wants_lost_attempts: bool = False


class RunnerReady(msgspec.Struct, array_like=True, tag="ready"):
    """The program has been loaded."""

    app: AppDescription


class RunnerFailed(msgspec.Struct, array_like=True, tag="failed_to_run", gc=False):
    """The program could not be loaded, or the runner cannot go on."""

    reason: str


class LostAttemptNotified(msgspec.Struct, array_like=True, tag="lost_notified", gc=False):
    """The middleware has been called for the attempt that was killed."""

    number: int


class LoopLag(msgspec.Struct, array_like=True, tag="lag", gc=False):
    """The delay of the runner's event loop."""

    ms: int


class LoopBlocked(msgspec.Struct, array_like=True, tag="blocked", gc=False):
    """This attempt blocks the runner's event loop; None: the loop runs again."""

    attempt_id: int | None


class Progress(msgspec.Struct, array_like=True, tag="progress", gc=False):
    """The progress of a handler."""

    attempt_id: int
    done: str
    total: str
    note: str


class Log(msgspec.Struct, array_like=True, tag="log", gc=False):
    """A line for a job's log, numbered within its attempt."""

    attempt_id: int
    number: int
    text: str


class AttemptEnded(msgspec.Struct, array_like=True, tag="ended", gc=False):
    """The handler returned or raised; `report` is what the store gets."""

    attempt_id: int
    report: Completed | Failed | Snoozed | Cancelled


class AttemptStopped(msgspec.Struct, array_like=True, tag="stopped", gc=False):
    """The handler stopped because it was asked to."""

    attempt_id: int


ToRunner = StartAttempt | StopAttempt | NotifyLostAttempt | Quit
FromRunner = (
    RunnerReady
    | RunnerFailed
    | LostAttemptNotified
    | LoopLag
    | LoopBlocked
    | Progress
    | Log
    | AttemptEnded
    | AttemptStopped
)
M = TypeVar("M")

decode_to_runner: Final = msgspec.msgpack.Decoder(list[ToRunner]).decode
decode_from_runner: Final = msgspec.msgpack.Decoder(list[FromRunner]).decode


# --- frames ------------------------------------------------------------------------------------------------------


def frame(messages: Sequence[ToRunner] | Sequence[FromRunner]) -> bytes:
    """Encodes messages as one frame."""
    body = _encode(messages)
    return _LENGTH.pack(len(body)) + body


class FrameReader(asyncio.Protocol, Generic[M]):
    """Decodes frames from a pipe and passes on the messages of each.

    `on_end` is called once, when the other side is gone, or with the reason if it has sent a frame that cannot be
    decoded.
    """

    def __init__(
        self,
        decode: Callable[[bytearray], list[M]],
        on_messages: Callable[[list[M]], None],
        on_end: Callable[[str], None],
    ) -> None:
        self._decode = decode
        self._on_messages = on_messages
        self._on_end = on_end
        self._received = bytearray()
        self._has_ended = False
        #: How often bytes have been read.
        self.reads = 0

    def data_received(self, data: bytes) -> None:
        """Handles bytes from the pipe: parts of a frame, or several."""
        self.reads += 1
        received = self._received
        received += data
        begin = 0
        while not self._has_ended and len(received) >= begin + _LENGTH.size:
            end = begin + _LENGTH.size + _LENGTH.unpack_from(received, begin)[0]
            if len(received) < end:
                break
            try:
                messages = self._decode(received[begin + _LENGTH.size : end])
            except msgspec.DecodeError as error:
                self._end(f"it sent a message that cannot be decoded: {error}")
                break
            begin = end
            self._on_messages(messages)
        del received[:begin]

    def connection_lost(self, exc: Exception | None) -> None:
        """Handles the end of the pipe."""
        self._end("")

    def _end(self, reason: str) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._on_end(reason)


class MessageWriter(Protocol):
    """Sends messages of a runner, from any thread."""

    def send(self, *messages: FromRunner) -> None:
        """Sends messages as one frame."""
        ...


class FrameWriter:
    """Writes whole frames to a pipe, from any thread. Blocks while the supervisor does not read."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def send(self, *messages: FromRunner) -> None:
        """Sends messages as one frame."""
        data = memoryview(frame(messages))
        with self._lock:
            while data:
                data = data[os.write(self._descriptor, data) :]
