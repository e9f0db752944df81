"""A sentinel that says what the test wants, when it wants it: answers of real ones cannot be held back or reordered."""

from __future__ import annotations

import asyncio
from typing import Final, Self

from tests.servers import Server

SERVICE: Final = "shop"


class ScriptedSentinel:
    """Listens on a free port of the loopback while it is entered, and names one server as the primary."""

    def __init__(self, primary: Server) -> None:
        self._primary = primary
        self._server: asyncio.Server | None = None
        self._subscribers: list[asyncio.StreamWriter] = []
        #: Answers that were asked for and not sent yet, while `is_holding`.
        self.held: list[asyncio.Event] = []
        self.is_holding = False
        #: How many lookups were answered.
        self.asked = 0

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"redis+sentinel://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/{SERVICE}"

    @property
    def subscribers(self) -> int:
        """How many clients are subscribed."""
        return len(self._subscribers)

    def name(self, primary: Server) -> None:
        """Names another server from now on, without an announcement."""
        self._primary = primary

    def announce(self, primary: Server) -> None:
        """Names another server, and publishes that the primary has changed."""
        self._primary = primary
        message = f"{SERVICE} 127.0.0.1 1 127.0.0.1 {primary.port}"
        for subscriber in self._subscribers:
            subscriber.write(_array("message", "+switch-master", message))

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for event in self.held:
            event.set()
        for subscriber in self._subscribers:
            subscriber.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                words: list[str] = []
                for _ in range(int(line[1:])):
                    await reader.readline()
                    words.append((await reader.readline()).strip().decode())
                await self._answer(words, writer)
        except ConnectionError:
            pass  # the client is no longer interested
        finally:
            writer.close()

    async def _answer(self, words: list[str], writer: asyncio.StreamWriter) -> None:
        match [word.upper() for word in words[:2]]:
            case ["SENTINEL", "GET-MASTER-ADDR-BY-NAME"]:
                answer = _array("127.0.0.1", str(self._primary.port))  # as it was when it was asked
                if self.is_holding:
                    self.held.append(asyncio.Event())
                    await self.held[-1].wait()
                self.asked += 1
                writer.write(answer)
            case ["SENTINEL", "MASTER"]:
                writer.write(_array("config-epoch", "1"))
            case ["SUBSCRIBE", _]:
                self._subscribers.append(writer)
                writer.write(b"*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n")
            case _:
                writer.write(b"+OK\r\n")
        await writer.drain()


def _array(*texts: str) -> bytes:
    parts = "".join(f"${len(text)}\r\n{text}\r\n" for text in texts)
    return f"*{len(texts)}\r\n{parts}".encode()
