"""Serves the application with uvicorn, until told to stop."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from rota.errors import ConfigurationError


class _Server(uvicorn.Server):
    """Says where it listens, once it does."""

    def __init__(self, config: uvicorn.Config, on_listening: Callable[[str], None]) -> None:
        super().__init__(config)
        self._on_listening = on_listening

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Stops on the first signal, at once on the second; and ends as a program that did what it was asked to do."""
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
        """Begins to listen."""
        await super().startup(sockets)
        if self.started and sockets:
            host, port = sockets[0].getsockname()[:2]
            self._on_listening(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")


def serve(app: FastAPI, *, host: str, port: int, log_level: str, on_listening: Callable[[str], None]) -> int:
    """Serves until SIGTERM or Ctrl-C; the exit code. Raises ConfigurationError where it cannot listen."""
    config = uvicorn.Config(
        app, log_level="warning" if log_level == "info" else log_level, access_log=False, server_header=False,
        # Those who follow events never end by themselves.
        timeout_graceful_shutdown=3,
    )  # fmt: skip
    with _listen(host, port) as listening:
        server = _Server(config, on_listening)
        server.run(sockets=[listening])
    return 0 if server.started else 1


def free_port(wanted: int) -> int:
    """The port that is wanted, if nobody of this machine listens there; else 0, which means any."""
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
            f"{host}:{port} cannot be listened on ({error}): is another program there? Choose another --port"
        ) from error
