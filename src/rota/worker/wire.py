"""What a supervisor and its runners say to each other over a pair of pipes.

A frame is four bytes of length and a msgpack list of messages; a message is an array that starts with its word. A
flight is called by its number, which the supervisor gives it.
"""

from __future__ import annotations

import asyncio
import os
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from rota.core.attempts import Vanished as VanishedAttempt

_LENGTH: Final = struct.Struct(">I")
_encode: Final = msgspec.msgpack.Encoder().encode


# --- from the supervisor -----------------------------------------------------------------------------------------


class Run(msgspec.Struct, array_like=True, tag="run", gc=False):
    """Make this attempt."""

    flight: int
    queue: str
    run: str
    claim: str
    #: What has happened to the run so far; nothing at its first attempt.
    counts: tuple[int, ...]
    record: bytes


class Stop(msgspec.Struct, array_like=True, tag="stop", gc=False):
    """End this attempt."""

    flight: int


class Vanished(msgspec.Struct, array_like=True, tag="vanished", gc=False):
    """Tell the program of an attempt that could not do so itself."""

    number: int
    attempt: VanishedAttempt


class Quit(msgspec.Struct, array_like=True, tag="quit", gc=False):
    """Leave: there is nothing to do any more."""


# --- from a runner -----------------------------------------------------------------------------------------------


class Hello(msgspec.Struct, array_like=True, tag="hello"):
    """The program has been loaded; this is what it declares."""

    facts: dict[str, Any]


class Broken(msgspec.Struct, array_like=True, tag="broken", gc=False):
    """The program could not be loaded, or the runner cannot go on."""

    reason: str


class Told(msgspec.Struct, array_like=True, tag="told", gc=False):
    """The program knows of the attempt that vanished."""

    number: int


class Lag(msgspec.Struct, array_like=True, tag="lag", gc=False):
    """How late the event loop is."""

    ms: int


class Progress(msgspec.Struct, array_like=True, tag="progress", gc=False):
    """How far a handler has come."""

    flight: int
    done: str
    total: str
    note: str


class Log(msgspec.Struct, array_like=True, tag="log", gc=False):
    """A line for a job's log, numbered within its attempt."""

    flight: int
    number: int
    text: str


class Outcome(msgspec.Struct, array_like=True, gc=False):
    """How an attempt ended: one of the following."""

    flight: int


class Completed(Outcome, tag="completed", gc=False):
    """It succeeded. `rule` says how long its run is kept."""

    rule: str
    result: bytes


class Failed(Outcome, tag="failed", gc=False):
    """It raised; `next_attempt` is a moment, or "final"."""

    next_attempt: str
    rule: str
    error: bytes


class Snoozed(Outcome, tag="snoozed", gc=False):
    """The handler asked to be run at that moment."""

    next_attempt: str


class Cancelled(Outcome, tag="cancelled", gc=False):
    """The handler itself asked to end as cancelled."""

    reason: str


class Stopped(Outcome, tag="stopped", gc=False):
    """It was told to stop, and has."""


ToRunner = Run | Stop | Vanished | Quit
Ended = Completed | Failed | Snoozed | Cancelled | Stopped
FromRunner = Hello | Broken | Told | Lag | Progress | Log | Ended
M = TypeVar("M")

decode_to_runner: Final = msgspec.msgpack.Decoder(list[ToRunner]).decode
decode_from_runner: Final = msgspec.msgpack.Decoder(list[FromRunner]).decode


# --- speaking and hearing ----------------------------------------------------------------------------------------


def frame(messages: Sequence[ToRunner] | Sequence[FromRunner]) -> bytes:
    """The messages as one frame."""
    body = _encode(messages)
    return _LENGTH.pack(len(body)) + body


class Ears(asyncio.Protocol, Generic[M]):
    """Hands on the messages of each frame, as soon as it is there whole; and says when no more will come.

    That is when the other side is gone, or speaks no sense.
    """

    def __init__(
        self, decode: Callable[[bytearray], list[M]], hear: Callable[[list[M]], None], end: Callable[[], None]
    ) -> None:
        self._decode = decode
        self._hear = hear
        self._end = end
        self._heard = bytearray()
        self._has_ended = False

    def data_received(self, data: bytes) -> None:
        """Some bytes have come: parts of a frame, or several."""
        heard = self._heard
        heard += data
        begin = 0
        while not self._has_ended and len(heard) >= begin + _LENGTH.size:
            end = begin + _LENGTH.size + _LENGTH.unpack_from(heard, begin)[0]
            if len(heard) < end:
                break
            try:
                messages = self._decode(heard[begin + _LENGTH.size : end])
            except msgspec.DecodeError:
                self.connection_lost(None)
                break
            begin = end
            self._hear(messages)
        del heard[:begin]

    def connection_lost(self, exc: Exception | None) -> None:
        """The pipe is closed."""
        if not self._has_ended:
            self._has_ended = True
            self._end()


class Speaks(Protocol):
    """A runner's way of speaking, from any thread."""

    def say(self, *messages: FromRunner) -> None:
        """Sends messages, one frame."""
        ...


class Mouth:
    """The runner's way of speaking: whole frames, from any thread. Blocks when the supervisor is slow to listen."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def say(self, *messages: FromRunner) -> None:
        """Sends messages, one frame."""
        data = memoryview(frame(messages))
        with self._lock:
            while data:
                data = data[os.write(self._descriptor, data) :]
