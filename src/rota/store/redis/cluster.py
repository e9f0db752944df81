"""A cluster: which node serves which hash slot.

The map is read from the nodes, and again after each redirection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from rota.store.redis.connection import Connection, Disconnected, ServerError, pack
from rota.store.redis.connection_pool import Node
from rota.store.redis.hash_slots import SLOTS, slot_of

#: Commands without a key go to the node of the keys that belong to no queue: worker registrations use its clock.
HOME: Final = "{~}"
ASKING: Final = pack(("ASKING",))
#: A call may be redirected this often while a slot migrates; then the client retries it.
MAX_REDIRECTIONS: Final = 5
#: The error of a server that is not part of a cluster.
NO_CLUSTER: Final = "cluster support disabled"

NodeOpener = Callable[[str, int, type[Connection]], Awaitable[Connection]]


class Cluster:
    """The nodes of one cluster. Connects on first use."""

    def __init__(self, hosts: Sequence[tuple[str, int]], opener: NodeOpener) -> None:
        self._opener = opener
        self._hosts = list(hosts)
        self._nodes: dict[tuple[str, int], Node] = {}
        #: Hash slot -> its node; empty until the map was read.
        self._slots: list[Node | None] = []
        self._refreshing: asyncio.Task[None] | None = None

    def node_of(self, key: str) -> Node | None:
        """The node that serves a key, as far as is known."""
        return self._slots[slot_of(key)] if self._slots else None

    async def find(self, key: str) -> Node:
        """The node that serves a key. Reads the slot map if needed; raises ServerError if no node serves it."""
        if not self._slots:
            await self.refresh_slots()
        node = self.node_of(key)
        if node is None:
            raise ServerError(f"CLUSTERDOWN no node serves hash slot {slot_of(key)}")
        return node

    async def primaries(self) -> list[Node]:
        """Every node that serves a hash slot."""
        if not self._slots:
            await self.refresh_slots()
        return list(dict.fromkeys(node for node in self._slots if node is not None))

    async def request(self, key: str, command: bytes) -> Any:
        """Sends one command to the node of its key, following redirections. Returns the reply."""
        node = self.node_of(key) or await self.find(key)
        for _ in range(MAX_REDIRECTIONS):
            (reply,) = await (node.shared or await node.connect()).request(command)
            if not _is_redirection(reply):
                return reply
            code, slot, host_and_port = str(reply).split(" ", 2)
            node = self._node_at(host_and_port, node)
            if code == "MOVED":
                self._slots[int(slot)] = node
                continue
            # ASK holds for this call only, while the slot migrates.
            _, reply = await (node.shared or await node.connect()).request(ASKING + command, 2)
            if not _is_redirection(reply):
                return reply
        raise ServerError(f"TRYAGAIN redirected {MAX_REDIRECTIONS} times while a hash slot migrates")

    async def recover(self, error: Exception) -> None:
        """Prepares for the retry of a call that failed with `error`: reads the slot map."""
        with suppress(ServerError, OSError):  # the retry will raise it
            await self.refresh_slots()

    async def refresh_slots(self) -> None:
        """Reads the slot map; concurrent callers share one read."""
        if self._refreshing is None:
            self._refreshing = asyncio.create_task(self._read_slots())
            self._refreshing.add_done_callback(self._refreshed)
        await asyncio.shield(self._refreshing)

    async def close(self) -> None:
        """Closes all connections."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.gather(self._refreshing, return_exceptions=True)
        await asyncio.gather(*(node.close() for node in self._nodes.values()))

    async def _read_slots(self) -> None:
        last_error: Exception = Disconnected("the URL names no node")
        # Connected nodes first: a node that is gone may only fail after a timeout.
        known = sorted(self._nodes, key=lambda address: self._nodes[address].shared is None)
        for host, port in dict.fromkeys([*known, *self._hosts]):
            node = self._node(host, port)
            try:
                (answer,) = await (node.shared or await node.connect()).request(pack(("CLUSTER", "SLOTS")))
            except OSError as error:
                last_error = error
                continue
            if isinstance(answer, ServerError):
                raise answer
            slots: list[Node | None] = [None] * SLOTS
            for first, last, primary, *_ in answer:
                # A node that does not know its own name sends an empty one.
                serving = self._node((primary[0] or b"").decode() or host, int(primary[1]))
                slots[first : last + 1] = [serving] * (last + 1 - first)
            self._slots = slots
            await self._close_unused({node for node in slots if node is not None})
            return
        raise last_error

    async def _close_unused(self, serving: set[Node]) -> None:
        """Closes nodes that serve no slot, except those of the URL, which are needed to read the map."""
        for address in [address for address, node in self._nodes.items() if node not in serving]:
            if address not in self._hosts:
                await self._nodes.pop(address).close()

    def _refreshed(self, refreshing: asyncio.Task[None]) -> None:
        self._refreshing = None
        if not refreshing.cancelled():
            refreshing.exception()  # marks it as retrieved: every waiter may have been cancelled

    def _node_at(self, host_and_port: str, redirecting: Node) -> Node:
        """The node that a redirection names: host:port. Without a host it is that of the redirecting node."""
        host, _, port = host_and_port.rpartition(":")
        if not host or host == "?":
            host = next(name for (name, _), node in self._nodes.items() if node is redirecting)
        return self._node(host, int(port))

    def _node(self, host: str, port: int) -> Node:
        node = self._nodes.get((host, port))
        if node is None:

            def opener(kind: type[Connection]) -> Awaitable[Connection]:
                return self._opener(host, port, kind)

            node = self._nodes[host, port] = Node(opener)
        return node


def _is_redirection(reply: Any) -> bool:
    return isinstance(reply, ServerError) and reply.code in ("MOVED", "ASK")
