"""What a supervisor and its runners say to each other over a pair of pipes.

A frame is four bytes of length and a msgpack list of messages; a message is a list that starts with its word.

  supervisor -> runner   run queue run claim counts record timeout_ms · stop queue run claim · quit
  runner -> supervisor   hello facts · done queue run claim kind fields… · progress … · log … · lag ms · broken text
"""

from __future__ import annotations

import os
import struct
import threading
from asyncio import IncompleteReadError, StreamReader
from collections.abc import Sequence
from typing import Any, Final, Protocol

import msgspec

_LENGTH: Final = struct.Struct(">I")
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[list[Any]]).decode

Message = Sequence[Any]


def frame(messages: Sequence[Message]) -> bytes:
    """The messages as one frame."""
    body = _encode(messages)
    return _LENGTH.pack(len(body)) + body


async def read_frame(reader: StreamReader) -> list[list[Any]] | None:
    """The messages of the next frame; None when the other side is gone, or speaks no sense."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        return _decode(await reader.readexactly(length))
    except (IncompleteReadError, ConnectionError, msgspec.DecodeError):
        return None


class Speaks(Protocol):
    """A runner's way of speaking, from any thread."""

    def say(self, *messages: Message) -> None:
        """Sends messages, one frame."""
        ...


class Mouth:
    """The runner's way of speaking: whole frames, from any thread. Blocks when the supervisor is slow to listen."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def say(self, *messages: Message) -> None:
        """Sends messages, one frame."""
        data = memoryview(frame(messages))
        with self._lock:
            while data:
                data = data[os.write(self._descriptor, data) :]
