"""Opens connections to one server (TCP, TLS, unix socket) or to the embedded server, and logs in."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from rota.errors import ConfigurationError
from rota.store.redis.address import Address
from rota.store.redis.connection import Connection, ServerError, pack_all

if TYPE_CHECKING:
    import ssl

    from rota.embedded.find_or_launch_shared_valkey import EmbeddedServer

#: A script takes at most 5 ms: no data for this long means a dead connection or a stalled server.
SOCKET_TIMEOUT_S: Final = 2.0
C = TypeVar("C", bound=Connection)
Opener = Callable[[type[Connection]], Awaitable[Connection]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one server listens, and the login to use."""

    host: str = ""
    port: int = 6379
    path: str = ""  # of a unix socket; host and port are unused then
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    database: int = 0
    tls: ssl.SSLContext | None = None


def opener_of(address: Address, embedded: EmbeddedServer | None) -> Opener:
    """The function that opens connections to one server. Clusters and sentinels have modules of their own."""
    if embedded is None:
        endpoint = endpoint_of(address)
        return lambda kind: open_connection(endpoint, kind)

    async def open_embedded(kind: type[Connection]) -> Connection:
        await asyncio.to_thread(embedded.ensure)
        return await open_connection(_endpoint(embedded.url), kind)

    return open_embedded


def endpoint_of(address: Address, host: str = "", port: int = 0) -> Endpoint:
    """The endpoint of an address; `host` and `port` choose one of several servers."""
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
            connection.abort("the login failed")
            raise
    return connection


async def _log_in(connection: Connection, endpoint: Endpoint) -> None:
    commands: list[tuple[str | int, ...]] = []
    if endpoint.password is not None:
        login = (endpoint.password,) if endpoint.username is None else (endpoint.username, endpoint.password)
        commands.append(("AUTH", *login))
    if endpoint.database:
        commands.append(("SELECT", endpoint.database))
    # A name in CLIENT LIST helps operators; a user without that permission can still log in.
    packed = pack_all([*commands, ("CLIENT", "SETNAME", f"rota-{os.getpid()}")])
    replies = await connection.request(packed, len(commands) + 1)
    for index, reply in enumerate(replies):
        if isinstance(reply, ServerError) and (index < len(commands) or reply.code == "NOAUTH"):
            raise reply


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
    """The TLS settings of a URL; the parameters have the names that redis-py uses."""
    import ssl  # slow to import, and most connections do not use it

    settings = {name.removeprefix("ssl_"): value for name, value in parameters.items() if name.startswith("ssl_")}
    try:
        context = ssl.create_default_context(
            cafile=settings.get("ca_certs"), capath=settings.get("ca_path"), cadata=settings.get("ca_data")
        )
        if "certfile" in settings:
            context.load_cert_chain(settings["certfile"], settings.get("keyfile"), settings.get("password"))
        if "ciphers" in settings:
            context.set_ciphers(settings["ciphers"])
        if "min_version" in settings:
            context.minimum_version = ssl.TLSVersion(int(settings["min_version"]))
        mode = ssl.VerifyMode[f"CERT_{settings.get('cert_reqs', 'required').upper()}"]
        context.check_hostname = mode is not ssl.CERT_NONE and settings.get("check_hostname", "").lower() not in _NO
        context.verify_mode = mode
    except (OSError, ValueError, KeyError) as error:
        raise ConfigurationError(f"the TLS settings of the server URL are invalid: {error}") from error
    return context


_NO: Final = ("0", "f", "false", "n", "no")


def _keep_alive(sock: socket.socket) -> None:
    """Enables TCP keepalive: a dead peer is detected within about ten seconds, without sending commands."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        for option, seconds in ((socket.TCP_KEEPIDLE, 4), (socket.TCP_KEEPINTVL, 2), (socket.TCP_KEEPCNT, 3)):
            sock.setsockopt(socket.IPPROTO_TCP, option, seconds)
