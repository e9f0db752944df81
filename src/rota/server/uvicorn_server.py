"""Serves the application with uvicorn until a signal arrives, over HTTP or HTTPS."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from rota.errors import ConfigurationError
from rota.server.http.connection_limits_and_timeouts import LimitedProtocol
from rota.server.http.tls_certificate_reload_and_handshakes import TlsCertificate, TlsListener


class RotaServer(uvicorn.Server):
    """A uvicorn server that reports its address once it listens, and reloads its certificate."""

    def __init__(
        self, config: uvicorn.Config, tls: TlsCertificate | None = None, on_listening: Callable[[str], None] = print
    ) -> None:
        super().__init__(config)
        self._tls = tls
        self._on_listening = on_listening
        self._tasks: list[asyncio.Task[None]] = []

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Stops gracefully on the first signal, immediately on the second. The process then exits with 0."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts to listen."""
        assert sockets is not None
        await super().startup(sockets if self._tls is None else [])
        if not self.started:
            return
        if self._tls is not None:
            running = [TlsListener(one, self._tls.context, self._protocol).run() for one in sockets]
            self._tasks = [asyncio.create_task(one) for one in (*running, self._tls.reload_on_change())]
        host, port = sockets[0].getsockname()[:2]
        scheme = "http" if self._tls is None else "https"
        self._on_listening(f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stops to listen, and lets requests end."""
        for task in self._tasks:
            task.cancel()
        await super().shutdown(sockets)

    def _protocol(self) -> LimitedProtocol:
        return LimitedProtocol(self.config, self.server_state, self.lifespan.state)


def uvicorn_config(app: FastAPI, *, log_level: str, trusted_proxies: Sequence[str] = ()) -> uvicorn.Config:
    """Returns the configuration of uvicorn. Only `trusted_proxies` can name the address and scheme of a client."""
    return uvicorn.Config(
        app,
        http=LimitedProtocol,
        ws="none",
        log_level=log_level,
        log_config=None,  # records go to the handlers of the program, which escape what a client can choose
        access_log=False,
        server_header=False,
        # Never uvicorn's default, the loopback: a proxy that forwards the header of its client would let it choose.
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
        # Event streams never end by themselves.
        timeout_graceful_shutdown=3,
    )


def serve(
    app: FastAPI,
    *,
    host: str,
    port: int,
    log_level: str,
    on_listening: Callable[[str], None],
    tls: TlsCertificate | None = None,
    trusted_proxies: Sequence[str] = (),
) -> int:
    """Serves until SIGTERM or Ctrl-C. Returns the exit code. Raises ConfigurationError if it cannot listen."""
    collect_garbage_less_often()
    log_level = "warning" if log_level == "info" else log_level
    config = uvicorn_config(app, log_level=log_level, trusted_proxies=trusted_proxies)
    with _listen(host, port) as listening:
        server = RotaServer(config, tls, on_listening)
        server.run(sockets=[listening])
    return 0 if server.started else 1


def collect_garbage_less_often() -> None:
    """Keeps the garbage collector from blocking the event loop while a large body is parsed.

    A body of 1 MB may hold 240,000 lists. With Python's defaults they start hundreds of collections, several over all
    objects of the process: 200 ms instead of 20.
    """
    gc.collect()
    gc.freeze()  # modules and routes stay as long as the process
    gc.set_threshold(50_000, 20, 50)


def free_port(wanted: int) -> int:
    """Returns the wanted port if it is free on this machine; else 0, for any free port."""
    try:
        with socket.create_server(("127.0.0.1", wanted)):
            return wanted
    except OSError:
        return 0


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=2048
        )
    except (OSError, OverflowError) as error:
        raise ConfigurationError(
            f"cannot listen on {host}:{port} ({error}): choose another --port if another program uses it"
        ) from error
