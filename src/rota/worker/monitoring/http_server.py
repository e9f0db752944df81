"""A minimal HTTP server for probes and Prometheus, on the supervisor's event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Final, NamedTuple

from rota.errors import ConfigurationError

logger = logging.getLogger("rota.worker")

#: Connections without a complete request after 5 s are closed.
REQUEST_S: Final = 5.0
#: A request is a line and some headers; no probe sends more.
MAX_REQUEST: Final = 16_384


class HttpResponse(NamedTuple):
    """The response of a page."""

    status: HTTPStatus
    content_type: str
    text: str


Page = Callable[[], Awaitable[HttpResponse]]


class HttpServer:
    """Serves pages by path, one request per connection."""

    def __init__(self, host: str, port: int, pages: Mapping[str, Page]) -> None:
        self._host = host
        self._port = port
        self._pages = pages
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Starts to listen. Raises ConfigurationError when the port cannot be opened."""
        try:
            self._server = await asyncio.start_server(self._accept, self._host, self._port, limit=MAX_REQUEST)
        except OSError as error:
            raise ConfigurationError(f"cannot listen on {self._host}:{self._port}: {error.strerror}") from error

    @property
    def address(self) -> str:
        """The URL it listens on. With port 0 the system has chosen the port."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def close(self) -> None:
        """Stops listening and cancels the requests under way: their pages may describe components that are gone."""
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
                response = await self._respond(request)
                method = request.partition(b" ")[0]
                writer.write(_encode(response, has_body=method != b"HEAD"))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client closed the connection, is too slow, or sent too much: no response is possible
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _respond(self, request: bytes) -> HttpResponse:
        words = request.partition(b"\r\n")[0].decode(errors="replace").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return plain(HTTPStatus.BAD_REQUEST, "only HTTP/1 is supported")
        method, target, _ = words
        if method not in ("GET", "HEAD"):
            return plain(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are supported")
        page = self._pages.get(target.partition("?")[0])
        if page is None:
            return plain(HTTPStatus.NOT_FOUND, f"available paths: {', '.join(self._pages)}")
        try:
            return await page()
        except Exception:
            # An error in a page must not stop the worker.
            logger.exception("%s failed", target)
            return plain(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error: see the worker's log")


def plain(status: HTTPStatus, text: str) -> HttpResponse:
    """A plain-text response."""
    return HttpResponse(status, "text/plain; charset=utf-8", f"{text}\n")


def _encode(response: HttpResponse, *, has_body: bool) -> bytes:
    body = response.text.encode()
    head = (
        f"HTTP/1.1 {response.status.value} {response.status.phrase}\r\n"
        f"Content-Type: {response.content_type}\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + (body if has_body else b"")
