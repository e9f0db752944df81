"""Opens connections: to one server, by TLS or unix socket; to the primary that sentinels name; to the embedded one."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from rota.errors import ConfigurationError
from rota.store.address import Address
from rota.store.connection import Argument, Connection, Disconnected, ServerError, Subscription, pack

if TYPE_CHECKING:
    import ssl

    from rota.embedded import EmbeddedServer

#: A script takes at most 5 ms: silence for this long is a dead connection, or a server that stands still.
SOCKET_TIMEOUT_S: Final = 2.0
C = TypeVar("C", bound=Connection)
Opener = Callable[[type[Connection]], Awaitable[Connection]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one server listens, and as whom to log in there."""

    host: str = ""
    port: int = 6379
    path: str = ""  # of a unix socket; then host and port say nothing
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    database: int = 0
    tls: ssl.SSLContext | None = None


class Node:
    """One server: a connection that all calls share, and others aside for calls that block. Opens nothing by itself."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._shared: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None
        self._spare: list[Connection] = []
        self._open: set[Connection] = set()
        #: Which history of writes it was seen to hold: a server that takes over begins another. None before a look.
        self.lineage: str | None = None

    @property
    def shared(self) -> Connection | None:
        """The connection for calls that are answered at once, if it is open."""
        return self._shared if self._shared is not None and self._shared.is_open else None

    async def connect(self) -> Connection:
        """Opens that connection, once for all who ask meanwhile; one of them leaving does not stop it."""
        if self.shared is not None:
            return self.shared
        if self._opening is None:
            self._opening = asyncio.create_task(self._connect())
            self._opening.add_done_callback(self._connected)
        return await asyncio.shield(self._opening)

    def reconnect(self, why: str) -> None:
        """Gives up the shared connection: the next call opens another."""
        if self._shared is not None:
            self._shared.abort(why)

    @asynccontextmanager
    async def aside(self, block_ms: int) -> AsyncGenerator[Connection]:
        """A connection for one call that may block for so long: it would keep the answers of all others waiting."""
        spare = [connection for connection in self._spare if connection.is_open]
        connection = spare.pop() if spare else await self._opened(Connection)
        self._spare = spare
        connection.timeout = block_ms / 1000 + SOCKET_TIMEOUT_S
        try:
            yield connection
        except BaseException:
            connection.abort("the caller left")
            raise
        if connection.is_open:
            self._spare.append(connection)

    @asynccontextmanager
    async def subscribed(self, channel: str) -> AsyncGenerator[Subscription]:
        """A connection that hears what is said on a channel."""
        subscription = await self._opened(Subscription)
        assert isinstance(subscription, Subscription)
        try:
            (reply,) = await subscription.ask(pack(("SUBSCRIBE", channel)))
            if isinstance(reply, ServerError):
                raise reply
            yield subscription
        finally:
            subscription.abort("the listener left")

    async def close(self) -> None:
        """Ends all connections."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        open_ones = list(self._open)
        for connection in open_ones:
            connection.abort("the client was closed")
        await asyncio.gather(*(connection.closed for connection in open_ones))
        self._spare.clear()

    async def _connect(self) -> Connection:
        self._shared = await self._opened(Connection)
        return self._shared

    def _connected(self, opening: asyncio.Task[Connection]) -> None:
        self._opening = None
        if not opening.cancelled():
            opening.exception()  # whoever waits for it hears of it; if nobody does any more, it does not matter

    async def _opened(self, kind: type[Connection]) -> Connection:
        connection = await self._opener(kind)
        self._open.add(connection)
        connection.closed.add_done_callback(lambda _: self._open.discard(connection))
        self._spare = [spare for spare in self._spare if spare.is_open]
        return connection


class OneServer:
    """What there is where there is no cluster: one node, which may be another after a failover."""

    def __init__(self, opener: Opener) -> None:
        self._node = Node(opener)

    async def ask(self, key: str, command: bytes) -> Any:
        """The reply to one command."""
        return (await (self._node.shared or await self._node.connect()).ask(command))[0]

    async def find(self, key: str) -> Node:
        """Who serves a key."""
        return self._node

    async def primaries(self) -> list[Node]:
        """Every node that serves keys."""
        return [self._node]

    async def recover(self, error: Exception) -> None:
        """What is to be done before a call is tried again that ended so."""
        if is_from_elsewhere(error):
            self._node.reconnect(str(error))

    async def close(self) -> None:
        """Ends all connections."""
        await self._node.close()


def is_from_elsewhere(error: Exception) -> bool:
    """True when the server says that it is not, or no longer, the primary: there may be another one by now."""
    return isinstance(error, ServerError) and error.code in ("READONLY", "MASTERDOWN")


def opener_of(address: Address, embedded: EmbeddedServer | None) -> Opener:
    """How to open a connection to the server at the address; a cluster has many, see `cluster`."""
    if address.kind == "sentinel":
        return lambda kind: _open_primary(address, kind)
    if embedded is None:
        endpoint = endpoint_of(address)
        return lambda kind: open_connection(endpoint, kind)

    async def open_embedded(kind: type[Connection]) -> Connection:
        await asyncio.to_thread(embedded.ensure)
        return await open_connection(_endpoint(embedded.url), kind)

    return open_embedded


def endpoint_of(address: Address, host: str = "", port: int = 0) -> Endpoint:
    """The one server of an address, or one of several."""
    if address.kind == "single":
        return _endpoint(address.url)
    tls = _tls({}) if address.is_tls else None
    return Endpoint(
        host, port, username=address.username, password=address.password, database=address.database, tls=tls
    )


async def open_connection(endpoint: Endpoint, kind: type[C]) -> C:
    """Connects and logs in. Raises OSError, or ServerError if the login is refused."""
    loop = asyncio.get_running_loop()

    def make() -> C:
        return kind(SOCKET_TIMEOUT_S)

    async with asyncio.timeout(SOCKET_TIMEOUT_S):
        if endpoint.path:
            transport, connection = await loop.create_unix_connection(make, endpoint.path)
        else:
            transport, connection = await loop.create_connection(make, endpoint.host, endpoint.port, ssl=endpoint.tls)
            _keep_alive(transport.get_extra_info("socket"))
        try:
            await _log_in(connection, endpoint)
        except BaseException:
            connection.abort("the login did not succeed")
            raise
    return connection


async def _log_in(connection: Connection, endpoint: Endpoint) -> None:
    commands: list[tuple[str | int, ...]] = []
    if endpoint.password is not None:
        login = (endpoint.password,) if endpoint.username is None else (endpoint.username, endpoint.password)
        commands.append(("AUTH", *login))
    if endpoint.database:
        commands.append(("SELECT", endpoint.database))
    # A name in the server's list of clients is worth having, and not worth failing for.
    packed = pack_all([*commands, ("CLIENT", "SETNAME", f"rota-{os.getpid()}")])
    replies = await connection.ask(packed, len(commands) + 1)
    for place, reply in enumerate(replies):
        if isinstance(reply, ServerError) and (place < len(commands) or reply.code == "NOAUTH"):
            raise reply


async def _open_primary(address: Address, kind: type[Connection]) -> Connection:
    """Asks one sentinel after the other who is the primary, and goes there, if that one agrees."""
    trouble: Exception = Disconnected("no sentinel was asked")
    for host, port in address.hosts:
        try:
            found = await _ask_sentinel(host, port, address.service)
            connection = await open_connection(endpoint_of(address, *found), kind)
            (role,) = await connection.ask(pack(("ROLE",)))
            # One that may not be asked for its role is believed.
            if isinstance(role, ServerError) or role[0] == b"master":
                return connection
            connection.abort("it is a replica")
            trouble = Disconnected(f"{found[0]}:{found[1]} is a replica: a failover is under way")
        except OSError as error:
            trouble = error
    raise trouble


async def _ask_sentinel(host: str, port: int, service: str) -> tuple[str, int]:
    sentinel = await open_connection(Endpoint(host, port), Connection)
    try:
        (answer,) = await sentinel.ask(pack(("SENTINEL", "GET-MASTER-ADDR-BY-NAME", service)))
    finally:
        sentinel.abort("all has been said")
        await sentinel.closed
    if isinstance(answer, ServerError):
        raise answer
    if answer is None:
        raise Disconnected(f"sentinel {host}:{port} knows no service called {service}")
    return answer[0].decode(), int(answer[1])


def pack_all(commands: Sequence[Sequence[Argument]]) -> bytes:
    """Several commands as they go over the wire."""
    return b"".join([pack(tuple(words)) for words in commands])


def _endpoint(url: str) -> Endpoint:
    parts = urlsplit(url)
    parameters = {name: values[0] for name, values in parse_qs(parts.query).items()}
    database = parameters.get("db") or parts.path.strip("/")
    username = unquote(parts.username) if parts.username else parameters.get("username")
    password = unquote(parts.password) if parts.password else parameters.get("password")
    if parts.scheme == "unix":
        database = parameters.get("db", "0")
        return Endpoint(path=unquote(parts.path), username=username, password=password, database=int(database))
    return Endpoint(
        unquote(parts.hostname or "localhost"),
        parts.port or 6379,
        username=username,
        password=password,
        database=int(database or 0),
        tls=_tls(parameters) if parts.scheme == "rediss" else None,
    )


def _tls(parameters: dict[str, str]) -> ssl.SSLContext:
    """What a URL says of certificates, in the words that other clients use as well."""
    import ssl  # takes a while, and most connections do without

    said = {name.removeprefix("ssl_"): value for name, value in parameters.items() if name.startswith("ssl_")}
    try:
        context = ssl.create_default_context(
            cafile=said.get("ca_certs"), capath=said.get("ca_path"), cadata=said.get("ca_data")
        )
        if "certfile" in said:
            context.load_cert_chain(said["certfile"], said.get("keyfile"), said.get("password"))
        if "ciphers" in said:
            context.set_ciphers(said["ciphers"])
        if "min_version" in said:
            context.minimum_version = ssl.TLSVersion(int(said["min_version"]))
        mode = ssl.VerifyMode[f"CERT_{said.get('cert_reqs', 'required').upper()}"]
        context.check_hostname = mode is not ssl.CERT_NONE and said.get("check_hostname", "").lower() not in _NO
        context.verify_mode = mode
    except (OSError, ValueError, KeyError) as error:
        raise ConfigurationError(f"the TLS settings of the server URL cannot be used: {error}") from error
    return context


_NO: Final = ("0", "f", "false", "n", "no")


def _keep_alive(sock: socket.socket) -> None:
    """Finds a connection that died in silence within about ten seconds, at no cost in commands."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        for option, seconds in ((socket.TCP_KEEPIDLE, 4), (socket.TCP_KEEPINTVL, 2), (socket.TCP_KEEPCNT, 3)):
            sock.setsockopt(socket.IPPROTO_TCP, option, seconds)
