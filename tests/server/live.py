"""The API behind a real socket, for what cannot be tried through ASGI alone: streams, hang-ups, foreign clients."""

from __future__ import annotations

import socket
import threading
from typing import Self

import uvicorn
from fastapi import FastAPI

from tests.eventually import eventually_sync


class Live:
    """An application served by uvicorn in a thread of its own, on the loopback: on a free port, unless told."""

    def __init__(self, app: FastAPI, *, port: int = 0) -> None:
        self._socket = socket.create_server(("127.0.0.1", port))
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=2)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._socket.getsockname()[1]

    @property
    def url(self) -> str:
        """The same, for a client."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        eventually_sync(lambda: self._server.started)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()
        assert not self._thread.is_alive(), "the server did not stop"
