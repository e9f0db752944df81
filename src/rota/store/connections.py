"""Opens connections with redis-py: one server, Sentinel, Cluster, TLS, unix sockets, embedded.

redis-py's own retries are off: it would send a call eleven times and wait a minute; the gateway decides on that.
"""

from __future__ import annotations

import os
import socket
import sys
from typing import TYPE_CHECKING, Any, Final

from rota.store import cluster
from rota.store.address import Address
from rota.store.library import redis

if TYPE_CHECKING:
    from rota.embedded import EmbeddedServer

#: A script takes at most 5 ms: silence for this long is a dead connection, or a server that stands still.
SOCKET_TIMEOUT_S: Final = 2.0


def connect(address: Address, embedded: EmbeddedServer | None, socket_timeout: float | None) -> Any:
    """A client for the address. Opens nothing yet. Calls that block need one without a socket timeout."""
    library = redis()
    options = _options(socket_timeout)
    if address.kind in ("embedded", "single"):
        url = embedded.url if embedded is not None else address.url
        return library.asyncio.Redis.from_url(url, **options, **({} if url.startswith("unix://") else _keepalive()))
    options |= _login(address)
    if address.is_tls:
        options["ssl"] = True
    if address.kind == "sentinel":
        sentinel = library.asyncio.sentinel.Sentinel(address.hosts, socket_timeout=SOCKET_TIMEOUT_S, protocol=2)
        return sentinel.master_for(address.service, db=address.database, **options)
    return cluster.new_client(address.hosts, options)


async def close(client: Any) -> None:
    """Closes all connections of a client."""
    await (cluster.close(client) if hasattr(client, "nodes_manager") else client.aclose())


async def connect_for_pushes(address: Address, embedded: EmbeddedServer | None) -> Any:
    """A client that can subscribe. What is published on one node of a cluster is heard on all, so any node will do."""
    if address.kind != "cluster":
        return connect(address, embedded, None)
    finder = connect(address, embedded, SOCKET_TIMEOUT_S)
    try:
        await finder.initialize()
        node = finder.get_random_node()
    finally:
        await close(finder)
    return redis().asyncio.Redis(
        host=node.host, port=node.port, ssl=address.is_tls, **_options(None), **_login(address)
    )


def _options(socket_timeout: float | None) -> dict[str, Any]:
    library = redis()
    return {
        "socket_timeout": socket_timeout,
        "socket_connect_timeout": SOCKET_TIMEOUT_S,
        "retry": library.asyncio.retry.Retry(library.backoff.NoBackoff(), 0),
        "protocol": 2,
        "client_name": f"rota-{os.getpid()}",
    }


def _login(address: Address) -> dict[str, Any]:
    return {"username": address.username, "password": address.password, **_keepalive()}


def _keepalive() -> dict[str, Any]:
    """Finds a connection that died in silence within about ten seconds, at no cost in commands."""
    options: dict[str, Any] = {"socket_keepalive": True}
    if sys.platform == "linux":
        options["socket_keepalive_options"] = {socket.TCP_KEEPIDLE: 4, socket.TCP_KEEPINTVL: 2, socket.TCP_KEEPCNT: 3}
    return options
