"""A primary with replicas, and the sentinels that watch them: processes that can be killed, paused and restarted."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import redis

from tests.eventually import eventually
from tests.servers import OwnServers, Server, free_port

SERVICE: Final = "shop"
PASSWORD: Final = "secret"


class FailoverGroup:
    """Servers of one service, and its sentinels. Each sentinel decides alone, after 500 ms of silence."""

    def __init__(self, servers: list[Server], ports: list[int], login: str = "") -> None:
        self.servers = servers
        self.ports = ports
        self._login = login

    @property
    def url(self) -> str:
        """The URL of the service."""
        return f"redis+sentinel://{self._login}{','.join(f'127.0.0.1:{port}' for port in self.ports)}/{SERVICE}"

    @property
    def primary(self) -> Server:
        """The server that the first sentinel names."""
        with redis.Redis(port=self.ports[0]) as sentinel:
            address: Any = sentinel.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)
        return next(server for server in self.servers if server.port == int(address[1]))

    @property
    def replicas(self) -> list[Server]:
        """The other servers."""
        primary = self.primary
        return [server for server in self.servers if server is not primary]

    async def until_whole(self) -> None:
        """Waits until every replica follows the primary, and every sentinel knows all of them."""
        await eventually(self._is_whole, timeout=60)

    def _is_whole(self) -> bool:
        primary = self.primary
        for server in self.servers:
            with server.client() as client, contextlib.suppress(redis.ConnectionError):  # just demoted: it hangs up
                info = client.info("replication")
                if server is primary:
                    is_well = info["role"] == "master" and info["connected_slaves"] == len(self.servers) - 1
                else:
                    is_well = info.get("master_link_status") == "up" and info["master_port"] == primary.port
                if is_well:
                    continue
            return False
        return all(self._knows_all(port) for port in self.ports)

    def _knows_all(self, port: int) -> bool:
        with redis.Redis(port=port) as sentinel:
            state: Any = sentinel.sentinel_master(SERVICE)
            replicas: Any = sentinel.sentinel_slaves(SERVICE)
        flags = [replica["flags"] for replica in replicas]
        return state["flags"] == "master" and flags == ["slave"] * (len(self.servers) - 1)


@asynccontextmanager
async def failover_group(
    own_server: OwnServers, folder: Path, *, replicas: int = 1, sentinels: int = 1, has_login: bool = False
) -> AsyncGenerator[FailoverGroup]:
    """Yields a group whose replicas follow their primary. `has_login`: the URL has one, for `cut_off`."""
    primary = own_server(tcp=True, repl_diskless_sync_delay="0")
    others = [
        own_server(tcp=True, replicaof=f"127.0.0.1 {primary.port}", repl_diskless_sync_delay="0")
        for _ in range(replicas)
    ]
    ports = [free_port() for _ in range(sentinels)]
    if has_login:
        for server in (primary, *others):
            with server.client() as client:
                client.execute_command("ACL", "SETUSER", SERVICE, "on", f">{PASSWORD}", "~*", "&*", "+@all")
    processes = [start_sentinel(primary, port, folder) for port in ports]
    try:
        group = FailoverGroup([primary, *others], ports, f"{SERVICE}:{PASSWORD}@" if has_login else "")
        await eventually(lambda: all(answers(port) for port in ports))
        await group.until_whole()
        yield group
    finally:
        for process in processes:
            process.kill()
            process.wait()


def start_sentinel(primary: Server, port: int, folder: Path) -> subprocess.Popen[bytes]:
    """Starts a sentinel that watches the primary."""
    config = folder / f"sentinel-{port}.conf"
    config.write_text(
        f"port {port}\nbind 127.0.0.1\ndir {folder}\nsentinel monitor {SERVICE} 127.0.0.1 {primary.port} 1\n"
        f"sentinel down-after-milliseconds {SERVICE} 500\nsentinel failover-timeout {SERVICE} 2000\n"
    )
    return subprocess.Popen([primary.binary, str(config), "--sentinel"], stdout=subprocess.DEVNULL)


def stop_replication(primary: Server) -> None:
    """From now on the primary, until it is restarted, sends its writes to no replica; it answers everything else."""
    with primary.client() as client:
        client.execute_command("ACL", "SETUSER", "default", "-psync", "-sync")
        client.execute_command("CLIENT", "KILL", "TYPE", "replica")


def cut_off(server: Server) -> redis.Redis:
    """From now on neither sentinels nor replicas reach the server, but clients with the login of the URL do.

    Returns such a client.
    """
    client = redis.Redis(port=server.port or 0, username=SERVICE, password=PASSWORD)
    client.execute_command("ACL", "SETUSER", "default", "off")
    client.execute_command("CLIENT", "KILL", "USER", "default")
    return client


def answers(port: int) -> bool:
    """True when a server on that port of the loopback answers."""
    try:
        with redis.Redis(port=port) as client:
            return bool(client.ping())
    except redis.ConnectionError:
        return False
