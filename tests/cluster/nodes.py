"""A real cluster of three Valkey nodes on the loopback, each a `Server` that can be killed, paused and restarted."""

from __future__ import annotations

import contextlib
from typing import Any, Final, Self

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.retry import Retry

from tests.eventually import eventually_sync
from tests.servers import Server, new_server

NODES: Final = 3
SLOTS: Final = 16_384
READY_S: Final = 20.0


class Cluster:
    """Three primaries, a third of the slots each. What was written outlives a `kill` of any of them."""

    def __init__(self, **config: str) -> None:
        settings = {
            "cluster_enabled": "yes",
            # Each in its own folder anyhow; noticed quickly, as a test waits for it.
            "cluster_node_timeout": "1000",
            "appendonly": "yes",
            "appendfsync": "always",
            **config,
        }
        self.nodes: list[Server] = [new_server("valkey", tcp=True, **settings) for _ in range(NODES)]

    @property
    def url(self) -> str:
        """As a user would write it."""
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        return f"redis+cluster://{hosts}"

    def start(self) -> Self:
        """Starts the nodes, lets them meet, and returns when they agree that all is well."""
        for place, node in enumerate(self.nodes):
            node.start()
            with node.client() as client:
                client.execute_command("CLUSTER", "ADDSLOTSRANGE", *_range(place))
                client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", place + 1)
                if place > 0:
                    client.execute_command("CLUSTER", "MEET", "127.0.0.1", self.nodes[0].port)
        self.until_well()
        return self

    def until_well(self) -> None:
        """Waits until every node sees every other, and all slots are served."""
        eventually_sync(lambda: all(map(_is_well, self.nodes)), READY_S)

    def node_of(self, slot: int) -> Server:
        """Who serves a slot by now, as its neighbours see it."""
        with self.nodes[0].client() as client:
            for first, last, (_, port, *_), *_ in _ask(client, "SLOTS"):
                if first <= slot <= last:
                    return next(node for node in self.nodes if node.port == port)
        raise AssertionError(f"no node serves slot {slot}")

    def name_of(self, node: Server) -> str:
        """What the cluster calls a node."""
        with node.client() as client:
            return str(_ask(client, "MYID").decode())

    def move_slot_key_by_key(self, slot: int, target: Server) -> None:
        """As `--cluster reshard` of older tools does it."""
        source = self.node_of(slot)
        source_name, target_name = self.name_of(source), self.name_of(target)
        with source.client() as old, target.client() as new:
            new.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", source_name)
            old.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", target_name)
            while keys := old.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 10):
                old.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5_000, "KEYS", *keys)
            for client in (new, old):
                client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", target_name)

    def move_slot_at_once(self, slot: int, target: Server) -> None:
        """As Valkey 9 does it by itself."""
        source, target_name = self.node_of(slot), self.name_of(target)
        with source.client() as old:
            old.execute_command("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", target_name)

    def client(self) -> Any:
        """A plain client of the whole cluster, which finds the right node by itself."""
        nodes = [ClusterNode("127.0.0.1", node.port) for node in self.nodes]
        return RedisCluster(startup_nodes=nodes, socket_timeout=5, retry=Retry(NoBackoff(), 3))

    def close(self) -> None:
        """Ends all nodes and removes their data."""
        for node in self.nodes:
            node.close()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()


def _range(place: int) -> tuple[int, int]:
    return place * SLOTS // NODES, (place + 1) * SLOTS // NODES - 1


def _is_well(node: Server) -> bool:
    with contextlib.suppress(redis.RedisError), node.client() as client:
        info = _ask(client, "INFO")
        facts = info if isinstance(info, dict) else dict(line.split(":", 1) for line in info.decode().split())
        return facts["cluster_state"] == "ok" and facts["cluster_known_nodes"] == str(NODES) and _agrees(client)
    return False


def _agrees(client: redis.Redis) -> bool:
    """True when the node knows who serves each of the slots."""
    return sum(last - first + 1 for first, last, *_ in _ask(client, "SLOTS")) == SLOTS


def _ask(client: redis.Redis, what: str) -> Any:
    return client.execute_command("CLUSTER", what)
