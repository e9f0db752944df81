"""The API behind a real socket, for streams, disconnects and other clients."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from typing import Literal, Self

from fastapi import FastAPI

from rota.server.http.tls_certificate_reload_and_handshakes import TlsCertificate
from rota.server.uvicorn_server import RotaServer, uvicorn_config
from tests.eventually import eventually_sync


class Live:
    """An application served by uvicorn in a thread, on the loopback, by default on a free port."""

    def __init__(
        self,
        app: FastAPI,
        *,
        port: int = 0,
        loop: Literal["auto", "asyncio"] = "auto",
        tls: TlsCertificate | None = None,
        trusted_proxies: Sequence[str] = (),
    ) -> None:
        self._socket = socket.create_server(("127.0.0.1", port))
        self._scheme = "http" if tls is None else "https"
        config = uvicorn_config(app, log_level="warning", trusted_proxies=trusted_proxies)
        config.loop = loop
        self._server = RotaServer(config, tls, on_listening=lambda _address: None)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)

    @property
    def port(self) -> int:
        """Returns the port."""
        return self._socket.getsockname()[1]

    @property
    def connections(self) -> int:
        """Returns the number of open connections."""
        return len(self._server.server_state.connections)

    @property
    def url(self) -> str:
        """Returns the base URL."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        eventually_sync(lambda: self._server.started)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()
        assert not self._thread.is_alive(), "the server did not stop"
