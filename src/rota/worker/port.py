"""A port for probes and Prometheus: as little HTTP as both need, on the supervisor's own loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Final, NamedTuple

from rota.errors import ConfigurationError

logger = logging.getLogger("rota.worker")

#: Whoever has not said what he wants by then is hung up on.
REQUEST_S: Final = 5.0
#: A request is a line and some headers; none of these programs sends more.
MAX_REQUEST: Final = 16_384


class Answer(NamedTuple):
    """What a page says."""

    status: HTTPStatus
    content_type: str
    text: str


Page = Callable[[], Awaitable[Answer]]


class Port:
    """Serves pages, by their path, from `open` to `close`. One request per connection."""

    def __init__(self, host: str, port: int, pages: Mapping[str, Page]) -> None:
        self._host = host
        self._port = port
        self._pages = pages
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Begins to listen. Raises ConfigurationError when it cannot."""
        try:
            self._server = await asyncio.start_server(self._accept, self._host, self._port, limit=MAX_REQUEST)
        except OSError as error:
            raise ConfigurationError(f"nothing can listen on {self._host}:{self._port}: {error.strerror}") from error

    @property
    def address(self) -> str:
        """Where it listens: with port 0 the system has chosen one."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def close(self) -> None:
        """Listens no more. Whoever is being served is left: the page may be about what is gone by then."""
        if self._server is not None:
            self._server.close()
        for serving in self._serving:
            serving.cancel()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_S):
                request = await reader.readuntil(b"\r\n\r\n")
                answer = await self._answer(request)
                method = request.partition(b" ")[0]
                writer.write(_written(answer, has_body=method != b"HEAD"))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # it hung up, or is too slow, or says too much: there is nobody to tell
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, request: bytes) -> Answer:
        words = request.partition(b"\r\n")[0].decode(errors="replace").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return plain(HTTPStatus.BAD_REQUEST, "this is not HTTP/1")
        method, target, _ = words
        if method not in ("GET", "HEAD"):
            return plain(HTTPStatus.METHOD_NOT_ALLOWED, "GET or HEAD")
        page = self._pages.get(target.partition("?")[0])
        if page is None:
            return plain(HTTPStatus.NOT_FOUND, f"there are {', '.join(self._pages)}")
        try:
            return await page()
        except Exception:
            # A page that breaks must not take the worker with it.
            logger.exception("%s could not be answered", target)
            return plain(HTTPStatus.INTERNAL_SERVER_ERROR, "this went wrong; the worker's log says more")


def plain(status: HTTPStatus, text: str) -> Answer:
    """An answer for people."""
    return Answer(status, "text/plain; charset=utf-8", f"{text}\n")


def _written(answer: Answer, *, has_body: bool) -> bytes:
    body = answer.text.encode()
    head = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n"
        f"Content-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + (body if has_body else b"")
