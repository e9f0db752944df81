"""Calls to a cluster that redis-py does not make as Rota needs them: many at once, without a key, to every node.

redis-py finds the node of a key and follows the redirections. A call that it could not place is sent again by the
gateway, as every call may be.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rota.store.library import redis

#: Commands without a key. They go to the node of the keys that belong to no queue, whose clock the registry goes by.
KEYLESS: Final = frozenset({"PING", "ECHO", "TIME", "INFO", "CONFIG", "PUBLISH"})
_HOME: Final = "{~}"
#: To one node, by one client: a call for each lane of the gateway, and a read for each stream that is followed.
NODE_CONNECTIONS: Final = 10_000


def new_client(hosts: Sequence[tuple[str, int]], options: Mapping[str, Any]) -> Any:
    """A client of the cluster that these nodes belong to. Opens nothing yet."""
    library = redis().asyncio

    nodes = [library.cluster.ClusterNode(host, port) for host, port in hosts]
    # A slot that has moved is remembered by itself, without learning all anew.
    client_class = type("RedisCluster", (library.RedisCluster,), {"aclose": _learn_anew})
    return client_class(startup_nodes=nodes, reinitialize_steps=0, max_connections=NODE_CONNECTIONS, **options)


async def _learn_anew(client: Any) -> None:
    """What redis-py closes a client for when a slot is not served: to ask again who serves what.

    The connections need not be closed for that, as others wait for answers on them; `close` does it.
    """
    client._initialize = True


async def close(client: Any) -> None:
    """Closes all connections; redis-py's own `aclose` would not, where it has yet to learn anew who serves what."""
    client._initialize = True
    manager = client.nodes_manager
    nodes = [*manager.nodes_cache.values(), *manager.startup_nodes.values()]
    # What it began to close by itself is waited for.
    closing = [task for owner in (manager, *nodes) for task in owner._background_tasks]
    await asyncio.gather(*closing, *(node.disconnect() for node in nodes), return_exceptions=True)


def mended(error: Exception) -> Exception:
    """What went wrong, in redis-py's own terms.

    It closes the connections to a node that one call could not reach, also under the hands of other calls, and those
    then end in whatever error a closed connection happens to cause.
    """
    if isinstance(error, RuntimeError | AttributeError | AssertionError):
        return redis().exceptions.ConnectionError(f"the connection was closed ({error})")
    return error


async def execute(client: Any, words: Sequence[Any]) -> Any:
    """One plain command, on the node where it belongs."""
    await client.initialize()
    target = {"target_nodes": client.get_node_from_key(_HOME)} if words[0] in KEYLESS else {}
    return await client.execute_command(*words, **target)


async def execute_all(client: Any, commands: Sequence[Sequence[Any]]) -> list[Any]:
    """Many commands, in one round trip to each node. An error that one of them met stands in place of its answer."""
    await client.initialize()
    pipeline = client.pipeline()
    for words in commands:
        target = {"target_nodes": client.get_node_from_key(_HOME)} if words[0] in KEYLESS else {}
        pipeline.execute_command(*words, **target)
    try:
        answers: list[Any] = await pipeline.execute(raise_on_error=False, allow_redirections=False)
    except (redis().exceptions.RedisError, OSError, EOFError) as error:
        return [error] * len(commands)  # of the other nodes' answers nothing is known
    return answers


async def execute_everywhere(client: Any, words: Sequence[Any]) -> list[Any]:
    """One command on each primary; the answers in no order."""
    await client.initialize()
    sent = (client.execute_command(*words, target_nodes=node) for node in client.get_primaries())
    return await asyncio.gather(*sent)


async def wait_for_replicas(client: Any, writes: Mapping[str, Sequence[Any]], replicas: int, timeout_ms: int) -> int:
    """Waits on the nodes of some keys for their replicas; the number reached by the node that reached the fewest.

    WAIT speaks of its own connection's writes: each key comes with a write that changes nothing, which brings the
    offset of all earlier ones along.
    """
    await client.initialize()
    by_node: dict[Any, list[Sequence[Any]]] = defaultdict(list)
    for key, words in writes.items():
        by_node[client.get_node_from_key(key)].append(words)
    reached = await asyncio.gather(
        *(_wait(client, node, of_node[-1], replicas, timeout_ms) for node, of_node in by_node.items())
    )
    return min(reached, default=replicas)


async def _wait(client: Any, node: Any, write: Sequence[Any], replicas: int, timeout_ms: int) -> int:
    command = redis().asyncio.cluster.PipelineCommand
    sent = [command(0, *write), command(1, "WAIT", replicas, timeout_ms)]
    await node.execute_pipeline(sent)
    if isinstance(sent[0].result, Exception):
        # The slot may have moved: this follows it, and makes the client remember where it is.
        await client.execute_command(*write)
        raise sent[0].result
    if isinstance(sent[1].result, Exception):
        raise sent[1].result
    return int(sent[1].result)
