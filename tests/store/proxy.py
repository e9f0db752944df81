"""A small proxy between client and server that can lose replies and connections."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tests.servers import Server


@dataclass(eq=False)
class _Link:
    """One connection of a client, and the one to the server behind it."""

    server: asyncio.StreamWriter
    is_half_open: bool = False
    is_reset: bool = False


class Proxy:
    """Forwards to a server. After `lose_replies(n)` the server carries out the next n requests that contain the sign,
    and each of their connections is cut before the answer comes back."""

    def __init__(self, server: Server, *, tls: ssl.SSLContext | None = None) -> None:
        self._server = server
        self._tls = tls
        self._listener: asyncio.Server | None = None
        self._to_lose = 0
        self._sign = b""
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_swallowing = False
        self._piece = 2**16
        self._cut_after: int | None = None
        self._links: set[_Link] = set()
        #: Seconds by which all that the server sends is late.
        self.delay = 0.0
        #: Connections that were made, and parts that requests came in.
        self.connections = 0
        self.requests = 0
        #: Replies that were lost so far.
        self.lost = 0
        #: Requests that went nowhere.
        self.swallowed = 0

    @property
    def url(self) -> str:
        assert self._listener is not None
        scheme = "rediss" if self._tls else "redis"
        return f"{scheme}://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"

    def lose_replies(self, count: int, sign: bytes = b"EVAL") -> None:
        self._to_lose, self._sign = count, sign

    def dribble(self, size: int) -> None:
        """From now on replies come in pieces of that many bytes."""
        self._piece = size

    def cut_after(self, size: int) -> None:
        """Cuts a connection once, when that many bytes of replies have passed from now on."""
        self._cut_after = size

    def swallow(self) -> None:
        """From now on requests are dropped, and their connections never reply."""
        self._is_swallowing = True

    def serve(self) -> None:
        """New connections are served again, and old ones that have lost nothing."""
        self._is_swallowing = False

    def move(self, server: Server) -> None:
        """From now on another server is behind it, as after a failover."""
        self._server = server
        self.cut()

    def reset(self) -> None:
        """Cuts every connection with a RST, so that neither end reads what was still on its way."""
        for link in self._links:
            link.is_reset = True
        self.cut()

    def half_open(self) -> None:
        """Cuts every connection to the server. Clients notice nothing: what they send is dropped without a reply."""
        for link in self._links:
            link.is_half_open = True
            link.server.transport.abort()

    def cut(self) -> None:
        """Cuts every connection."""
        for task in self._tasks:
            task.cancel()

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._listener is not None
        self._listener.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._listener.wait_closed()
        await asyncio.sleep(0)  # aborted transports close their sockets in the next turn of the loop

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._forward(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server_reader, server_writer = await asyncio.open_unix_connection(str(self._server.socket_path))
        except OSError:  # the server is away
            writer.transport.abort()
            return
        self.connections += 1
        is_doomed = False
        link = _Link(server_writer)
        self._links.add(link)

        async def requests() -> None:
            nonlocal is_doomed
            while data := await reader.read(2**16):
                self.requests += 1
                if self._to_lose > 0 and not is_doomed and self._sign in data:
                    self._to_lose -= 1
                    is_doomed = True
                if self._is_swallowing:
                    self.swallowed += 1
                    await asyncio.Event().wait()
                if link.is_half_open:
                    continue
                server_writer.write(data)
                await server_writer.drain()

        async def delayed() -> AsyncGenerator[bytes]:
            """What the server sends, each part as late as `delay` was when it came."""
            loop, parts = asyncio.get_running_loop(), asyncio.Queue[tuple[float, bytes]]()

            async def receive() -> None:
                data = b" "
                while data:
                    data = await server_reader.read(2**16)
                    parts.put_nowait((loop.time() + self.delay, data))

            receiving = asyncio.create_task(receive())
            try:
                while True:
                    at, data = await parts.get()
                    await asyncio.sleep(at - loop.time())
                    if not data:
                        return
                    yield data
            finally:
                receiving.cancel()

        async def replies() -> None:
            async for data in delayed():
                if is_doomed:
                    self.lost += 1
                    return
                if self._cut_after is not None:
                    self._cut_after -= len(data)
                    if self._cut_after < 0:
                        writer.write(data[: self._cut_after])
                        await writer.drain()
                        self._cut_after = None
                        await asyncio.sleep(0.01)  # so that the beginning arrives before the end of the connection
                        return
                for start in range(0, len(data), self._piece):
                    writer.write(data[start : start + self._piece])
                    await writer.drain()
                    if self._piece < len(data):
                        await asyncio.sleep(0)
            if link.is_half_open:
                await asyncio.Event().wait()

        pumps = [asyncio.create_task(requests()), asyncio.create_task(replies())]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._links.discard(link)
            for pump in pumps:
                pump.cancel()
            if link.is_reset:
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
            server_writer.transport.abort()
            await asyncio.gather(*pumps, return_exceptions=True)
