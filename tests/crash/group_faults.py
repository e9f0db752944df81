"""Faults of several servers: a Sentinel group, a cluster."""

from __future__ import annotations

import asyncio
from typing import cast

from tests.cluster.nodes import Cluster
from tests.crash.chaos_arena import Arena
from tests.crash.fault_registry import fault, journalled
from tests.eventually import eventually, eventually_sync
from tests.sentinel import FailoverGroup


@fault
async def fail_over(arena: Arena) -> None:
    """SIGKILL to the primary of a Sentinel group; it comes back as a replica of its successor."""
    group = cast(FailoverGroup, arena.server)
    async with journalled(arena, "fail_over"):
        primary = await asyncio.to_thread(lambda: group.primary)
        await asyncio.to_thread(primary.kill)
        await eventually(lambda: group.primary is not primary, timeout=60)
        await asyncio.sleep(arena.chance.uniform(0.5, 2.0))
        await asyncio.to_thread(primary.start)
        await group.until_whole()


@fault
async def kill_node(arena: Arena) -> None:
    """SIGKILL to a node of a cluster, and a restart on the same data."""
    cluster = cast(Cluster, arena.server)
    node = arena.chance.choice(cluster.nodes)
    async with journalled(arena, "kill_node"):
        await asyncio.to_thread(node.kill)
        await asyncio.sleep(arena.chance.choice((0.0, 2.0)))
        await asyncio.to_thread(node.start)
        await asyncio.to_thread(cluster.until_well)


@fault
async def move_slot(arena: Arena) -> None:
    """The hash slot of one of the queues moves to another node, at once or key by key."""
    cluster = cast(Cluster, arena.server)
    async with journalled(arena, "move_slot"):
        await asyncio.to_thread(_move_slot, arena, cluster)


def _move_slot(arena: Arena, cluster: Cluster) -> None:
    slot = arena.chance.choice(arena.slots)
    source = cluster.node_of(slot)
    target = arena.chance.choice([node for node in cluster.nodes if node is not source])
    move = arena.chance.choice((cluster.move_slot_at_once, cluster.move_slot_key_by_key))
    move(slot, target)
    eventually_sync(lambda: cluster.node_of(slot) is target, 30)
