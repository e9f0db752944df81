"""A cluster: which node serves which slot, learnt from the nodes, and again whenever they disagree."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from rota.store.connection import Connection, Disconnected, ServerError, pack
from rota.store.connections import Node
from rota.store.keys import SLOTS, slot_of

#: Where commands without a key go: to the node of the keys that belong to no queue, whose clock the registry goes by.
HOME: Final = "{~}"
ASKING: Final = pack(("ASKING",))
#: A slot that is on its way may send a call to and fro; then it is sent again from the beginning.
REDIRECTIONS: Final = 5
#: How a server says that it is none of a cluster's.
NO_CLUSTER: Final = "cluster support disabled"

NodeOpener = Callable[[str, int, type[Connection]], Awaitable[Connection]]


class Cluster:
    """The nodes of one cluster. Opens nothing until it is asked."""

    def __init__(self, hosts: Sequence[tuple[str, int]], opener: NodeOpener) -> None:
        self._opener = opener
        self._hosts = list(hosts)
        self._nodes: dict[tuple[str, int], Node] = {}
        self._slots: list[Node | None] = []
        self._learning: asyncio.Task[None] | None = None

    def node_of(self, key: str) -> Node | None:
        """Who serves a key, as far as is known; None before anything is."""
        return self._slots[slot_of(key)] if self._slots else None

    async def find(self, key: str) -> Node:
        """Who serves a key. Asks if that is not known; raises if nobody does."""
        if not self._slots:
            await self.learn()
        node = self.node_of(key)
        if node is None:
            raise ServerError(f"CLUSTERDOWN nobody serves slot {slot_of(key)}")
        return node

    async def primaries(self) -> list[Node]:
        """Every node that serves a slot."""
        if not self._slots:
            await self.learn()
        return list(dict.fromkeys(node for node in self._slots if node is not None))

    @property
    def shared(self) -> tuple[Connection | None, ...]:
        """The connections that calls share, one to each node that was asked."""
        return tuple(node.shared for node in self._nodes.values())

    async def ask(self, key: str, command: bytes) -> Any:
        """The reply to one command, from wherever the key is by now."""
        node = self.node_of(key) or await self.find(key)
        for _ in range(REDIRECTIONS):
            (reply,) = await (node.shared or await node.connect()).ask(command)
            if not _is_redirection(reply):
                return reply
            code, slot, place = str(reply).split(" ", 2)
            node = self._node_at(place, node)
            if code == "MOVED":
                self._slots[int(slot)] = node
                continue
            # Only this once, while the slot is on its way there.
            _, reply = await (node.shared or await node.connect()).ask(ASKING + command, 2)
            if not _is_redirection(reply):
                return reply
        raise ServerError(f"TRYAGAIN sent to and fro {REDIRECTIONS} times, as a slot is on its way")

    async def recover(self, error: Exception) -> None:
        """What is to be done before a call is tried again that ended so."""
        with suppress(ServerError, OSError):  # then the call itself will meet it
            await self.learn()

    async def learn(self) -> None:
        """Asks who serves what, once for all who want to know meanwhile."""
        if self._learning is None:
            self._learning = asyncio.create_task(self._learn())
            self._learning.add_done_callback(self._learnt)
        await asyncio.shield(self._learning)

    async def close(self) -> None:
        """Ends all connections."""
        if self._learning is not None:
            self._learning.cancel()
            await asyncio.gather(self._learning, return_exceptions=True)
        await asyncio.gather(*(node.close() for node in self._nodes.values()))

    async def _learn(self) -> None:
        trouble: Exception = Disconnected("the URL names no node")
        # Those that are connected first: one that is gone may take its time to say so.
        known = sorted(self._nodes, key=lambda place: self._nodes[place].shared is None)
        for host, port in dict.fromkeys([*known, *self._hosts]):
            node = self._node(host, port)
            try:
                (answer,) = await (node.shared or await node.connect()).ask(pack(("CLUSTER", "SLOTS")))
            except OSError as error:
                trouble = error
                continue
            if isinstance(answer, ServerError):
                raise answer
            slots: list[Node | None] = [None] * SLOTS
            for first, last, primary, *_ in answer:
                # A node that does not know its own name is where it was found.
                serving = self._node((primary[0] or b"").decode() or host, int(primary[1]))
                slots[first : last + 1] = [serving] * (last + 1 - first)
            self._slots = slots
            await self._forget({node for node in slots if node is not None})
            return
        raise trouble

    async def _forget(self, serving: set[Node]) -> None:
        """Nodes that serve nothing any more, unless the next to be asked is named by the URL."""
        for place in [place for place, node in self._nodes.items() if node not in serving]:
            if place not in self._hosts:
                await self._nodes.pop(place).close()

    def _learnt(self, learning: asyncio.Task[None]) -> None:
        self._learning = None
        if not learning.cancelled():
            learning.exception()  # whoever waits for it hears of it; if nobody does any more, it does not matter

    def _node_at(self, place: str, asked: Node) -> Node:
        """The node that a redirection names: host:port, where no host means that of the node that was asked."""
        host, _, port = place.rpartition(":")
        if not host or host == "?":
            host = next(name for (name, _), node in self._nodes.items() if node is asked)
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
