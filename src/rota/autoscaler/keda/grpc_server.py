"""Serves the external scaler over gRPC, with TLS or without, until a signal arrives."""

from __future__ import annotations

import asyncio
import logging
import signal
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio

from rota.autoscaler.keda.service import ExternalScaler
from rota.client.rota import Rota
from rota.errors import ConfigurationError

logger = logging.getLogger("rota.keda")
_grpc: Any = grpc

#: Time for calls under way when the server stops.
GRACE_S: Final = 3.0
#: Calls at a time. Each ScaledObject keeps one stream open.
MAX_CALLS: Final = 1_000
#: A client that vanished is noticed after so long, and its stream is closed.
KEEPALIVE_MS: Final = 30_000


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: the certificate chain, its key, and the authority of clients if they need a certificate as well."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def read(self) -> tuple[bytes, bytes, bytes | None]:
        """Key, chain and authority. Raises ConfigurationError if they cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # Without a password the command would ask for one at the terminal.
            context.load_cert_chain(self.certificate, self.key, password=lambda: "")
            if self.client_ca is not None:
                context.load_verify_locations(self.client_ca)
            authority = None if self.client_ca is None else self.client_ca.read_bytes()
            return self.key.read_bytes(), self.certificate.read_bytes(), authority
        except (OSError, ssl.SSLError) as error:
            raise ConfigurationError(
                f"the certificate {self.certificate} with key {self.key} cannot be used: {error}"
            ) from None


async def serve(rota: Rota, listen: str, tls: TlsFiles | None, on_listening: Callable[[str], None]) -> None:
    """Serves until SIGTERM or SIGINT. Raises ConfigurationError if it cannot listen on the address."""
    scaler = ExternalScaler(rota)
    aio: Any = grpc.aio
    server = aio.server(
        handlers=[scaler.handler()],
        maximum_concurrent_rpcs=MAX_CALLS,
        options=[
            ("grpc.so_reuseport", 0),
            ("grpc.keepalive_time_ms", KEEPALIVE_MS),
            ("grpc.max_receive_message_length", 1 << 20),
        ],
    )
    try:
        port = server.add_insecure_port(listen) if tls is None else server.add_secure_port(listen, _credentials(tls))
    except RuntimeError as error:
        raise ConfigurationError(f"cannot listen on {listen}: {error}") from None
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await server.start()
    on_listening(f"{listen.rpartition(':')[0]}:{port}")
    await stop.wait()
    scaler.stop_streams()
    await server.stop(GRACE_S)


def _credentials(tls: TlsFiles) -> Any:
    """Credentials that follow the files: a certificate that was renewed is used by the next connection."""
    current = tls.read()

    def fetch() -> Any:
        nonlocal current
        try:
            found = tls.read()
        except ConfigurationError as error:
            logger.error("the previous TLS certificate stays in use: %s", error)
            return None
        if found == current:
            return None
        current = found
        return _configuration(found)

    return _grpc.dynamic_ssl_server_credentials(_configuration(current), fetch, tls.client_ca is not None)


def _configuration(files: tuple[bytes, bytes, bytes | None]) -> Any:
    key, chain, authority = files
    return _grpc.ssl_server_certificate_configuration([(key, chain)], root_certificates=authority)
