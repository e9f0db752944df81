"""TLS of the server: loads the certificate and its key, reloads them when the files change, limits handshakes."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from rota.errors import ConfigurationError
from rota.server.http.connection_limits_and_timeouts import LimitedProtocol, make_room

logger = logging.getLogger("rota.server")

#: Interval between two looks at the files. They are loaded when two looks in a row find the same new files, so that
#: a certificate is not loaded without the key that is written after it.
LOOK_S: Final = 2.0
#: Time for a handshake.
HANDSHAKE_S: Final = 10.0
#: Time until the next try after a connection could not be accepted.
ACCEPT_AGAIN_S: Final = 0.1
_EXPIRED: Final = 10  # X509_V_ERR_CERT_HAS_EXPIRED
_NOT_YET_VALID: Final = 9  # X509_V_ERR_CERT_NOT_YET_VALID

#: Which files they are: identity, size and time of change of each.
_Versions = tuple[tuple[int, int, int], ...]


class TlsCertificate:
    """A certificate chain and its private key, from two PEM files. New connections use the latest valid pair.

    Raises ConfigurationError if the files cannot be used.
    """

    def __init__(self, certificate: str, key: str) -> None:
        self._certificate, self._key = Path(certificate), Path(key)
        self._versions = self._look()
        self._current = load_context(self._certificate, self._key)
        #: The context of all handshakes. It hands each connection to the current one, which a reload replaces whole.
        self.context = load_context(self._certificate, self._key)
        self.context.sni_callback = self._use_current

    async def reload_on_change(self) -> None:
        """Reloads the files when they change. Files that cannot be used are logged, and the previous pair stays."""
        refused: _Versions | None = None
        seen = self._versions
        while True:
            await asyncio.sleep(LOOK_S)
            before, seen = seen, await asyncio.to_thread(self._look)
            if seen != before or seen in (self._versions, refused):
                continue
            try:
                self._current = await asyncio.to_thread(load_context, self._certificate, self._key)
            except ConfigurationError as error:
                refused = seen
                logger.error("the previous TLS certificate stays in use: %s", error)
            else:
                self._versions = seen
                logger.info("TLS certificate reloaded from %s", self._certificate)

    def _use_current(self, connection: Any, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._current

    def _look(self) -> _Versions:
        versions: list[tuple[int, int, int]] = []
        for path in (self._certificate, self._key):
            try:
                status = path.stat()
            except OSError:
                versions.append((0, 0, 0))
            else:
                versions.append((status.st_ino, status.st_size, status.st_mtime_ns))
        return tuple(versions)


def load_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Loads a certificate and its key, and connects to itself with them. Raises ConfigurationError."""
    for path, option in ((certificate, "--tls-cert"), (key, "--tls-key")):
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ConfigurationError(f"{option} {path} cannot be read: {error.strerror}") from error
        if b"-----BEGIN " not in content:
            raise ConfigurationError(f"{option} {path} is not a PEM file: it has to contain -----BEGIN …-----")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)

    def refuse_encrypted() -> str:
        raise ConfigurationError(
            f"--tls-key {key} is encrypted: decrypt it with `openssl pkey -in {key} -out new.pem`, "
            "and protect the file by its permissions"
        )

    try:
        context.load_cert_chain(certificate, key, password=refuse_encrypted)
        _check_dates(context, certificate)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            message = f"--tls-key {key} is not the key of --tls-cert {certificate}: use the files of one certificate"
        else:
            message = f"--tls-cert {certificate} and --tls-key {key} cannot be used: {error.reason or error}"
        raise ConfigurationError(message) from error
    except OSError as error:  # a file is being replaced at this moment
        raise ConfigurationError(f"--tls-cert {certificate} and --tls-key {key} cannot be read: {error}") from error
    return context


def _check_dates(context: ssl.SSLContext, certificate: Path) -> None:
    """Refuses a certificate that clients would refuse for its dates. The handshake in memory trusts only itself."""
    client_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client_context.check_hostname = False
    client_context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client_context.load_verify_locations(certificate)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server)
    server = context.wrap_bio(to_server, to_client, server_side=True)
    for side in (client, server, client):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLCertVerificationError as error:
            if error.verify_code == _EXPIRED:
                raise ConfigurationError(f"--tls-cert {certificate} has expired: renew it") from error
            if error.verify_code == _NOT_YET_VALID:
                raise ConfigurationError(f"--tls-cert {certificate} is not valid yet: check the clock") from error
            return  # other rules are those of the clients
        except ssl.SSLError:
            return


class TlsListener:
    """Accepts connections, and hands each to an HTTP protocol when its handshake is over.

    The loop's own listener would not count a connection before. Here it counts as one that waits for its request, so
    clients that never finish a handshake keep no other client out.
    """

    def __init__(self, listening: socket.socket, context: ssl.SSLContext, protocol: Callable[[], LimitedProtocol]):
        self._listening = listening
        self._context = context
        self._protocol = protocol

    async def run(self) -> None:
        """Accepts connections until it is cancelled."""
        loop = asyncio.get_running_loop()
        self._listening.setblocking(False)
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listening)
            except OSError as error:  # the client is gone again, or the machine has no more files
                logger.warning("a connection could not be accepted: %s", error)
                await asyncio.sleep(ACCEPT_AGAIN_S)
            else:
                make_room(_Handshake(loop, connection, self._context, self._protocol()))


class _Handshake:
    """A connection until its handshake is over, among the connections of the server."""

    is_waiting: Final = True
    is_sending_body: Final = False

    def __init__(
        self, loop: asyncio.AbstractEventLoop, connection: socket.socket, context: ssl.SSLContext, http: LimitedProtocol
    ) -> None:
        self.waiting_since = loop.time()
        connections: Any = http.connections  # uvicorn's type of them depends on which of its extras are installed
        self.connections: set[Any] = connections
        self.connections.add(self)
        self._socket: socket.socket | None = connection
        self._task = loop.create_task(self._shake_hands(loop, context, http))
        # Not in the task itself: one that is cancelled before it starts runs nothing.
        self._task.add_done_callback(self._end)

    @property
    def transport(self) -> _Handshake:
        """Has the methods of a transport that `make_room` uses."""
        return self

    def is_closing(self) -> bool:
        """True if the connection is being closed."""
        return self._task.cancelling() > 0

    def abort(self) -> None:
        """Closes the connection."""
        self._task.cancel()

    shutdown = abort

    async def _shake_hands(
        self, loop: asyncio.AbstractEventLoop, context: ssl.SSLContext, http: LimitedProtocol
    ) -> None:
        connection, self._socket = self._socket, None  # from here on the loop closes it
        assert connection is not None
        # An OSError: the client gave up, was too slow, or speaks something else.
        with suppress(OSError):
            await loop.connect_accepted_socket(lambda: http, connection, ssl=context, ssl_handshake_timeout=HANDSHAKE_S)

    def _end(self, _task: asyncio.Task[None]) -> None:
        self.connections.discard(self)
        if self._socket is not None:
            self._socket.close()
