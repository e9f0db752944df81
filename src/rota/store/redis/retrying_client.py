"""The client that every store uses: runs scripts and commands, retries them, translates errors.

Every script and command is idempotent, so a call without a reply is sent again until `patience` seconds have passed;
then it raises `StoreUnavailable`. All calls to one server share a connection, except those that block. Replies are
returned as received: bytes, integers, lists and None. Transport errors do not leave this module.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Final, NamedTuple, ParamSpec, TypeVar, cast

from rota.errors import StoreUnavailable
from rota.store.redis.cluster import HOME, Cluster
from rota.store.redis.connection import Argument, Disconnected, ServerError, pack, pack_all
from rota.store.redis.connection_opener import endpoint_of, open_connection, opener_of
from rota.store.redis.connection_pool import Node, SingleServer
from rota.store.redis.error_replies import TRANSPORT_ERRORS, is_transient, translate
from rota.store.redis.hash_and_time_replies import read_text_hash
from rota.store.redis.script_compiler import Script, script
from rota.store.redis.sentinel import SentinelServer

if TYPE_CHECKING:
    from rota.embedded.find_or_launch_shared_valkey import EmbeddedServer
    from rota.store.redis.address import Address

__all__ = ["READ_BATCH", "Argument", "RedisClient", "ScriptCall"]

logger = logging.getLogger("rota.store")
T = TypeVar("T")
P = ParamSpec("P")
#: The longest `patience`. A batch whose caller was cancelled is sent again for as long once more, and the last copy may
#: be on its way for a while: twice this is well below `REPLY_KEPT_MS`, for which a repeated call is recognised.
MAX_PATIENCE_S: Final = 240
FIRST_RETRY_S: Final = 0.02
MAX_RETRY_S: Final = 0.5
#: Shorter than the socket's timeout: else a slow replica would look like a dead server.
WAIT_REPLICAS_MS: Final = 1_500
#: Entries of each stream that one read returns at most.
READ_BATCH: Final = 500
SCAN_BATCH: Final = 1_000
#: Commands without a key; and those whose key is not their first argument, with its position.
KEYLESS: Final = frozenset({"PING", "ECHO", "TIME", "INFO", "CONFIG", "PUBLISH"})
KEY_POSITIONS: Final = {"XINFO": 2}
#: Errors of one call of a pipeline after which it is sent again alone: script not loaded, hash slot moved.
_RESENT_ALONE: Final = ("NOSCRIPT", "MOVED", "ASK")


class ScriptCall(NamedTuple):
    """One call of a script: its name, its keys in the order of its header, its arguments."""

    script: str
    keys: Sequence[str]
    arguments: Sequence[Argument]


class RedisClient:
    """The connections of one event loop. Connects on first use."""

    def __init__(
        self,
        address: Address,
        *,
        embedded: EmbeddedServer | None = None,
        patience: float = 5.0,
        clock: str = "",
    ) -> None:
        self.address = address
        self.patience = patience
        self._clock = clock
        self.is_cluster = address.kind == "cluster"
        self._servers: Cluster | SingleServer
        if self.is_cluster:
            self._servers = Cluster(
                address.hosts, lambda host, port, kind: open_connection(endpoint_of(address, host, port), kind)
            )
        elif address.kind == "sentinel":
            self._servers = SentinelServer(address)
        else:
            self._servers = SingleServer(opener_of(address, embedded))
        #: (stream, position) -> a read in progress. In a cluster only.
        self._reads: dict[tuple[str, str], asyncio.Task[Any]] = {}

    # --- calls -------------------------------------------------------------------------------------------------

    # Plain functions that return a coroutine: each further coroutine in the chain would cost every call of every job.

    def run(self, name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Coroutine[Any, Any, Any]:
        """Runs one script. Returns its reply."""
        return self._retry(self._evaluate, ScriptCall(name, keys, arguments), self._servers.request)

    def run_on_separate_connection(
        self, name: str, keys: Sequence[str], arguments: Sequence[Argument]
    ) -> Coroutine[Any, Any, Any]:
        """Like `run`, on a connection of its own: the shared one may be dead without having timed out yet."""
        return self._retry(self._evaluate, ScriptCall(name, keys, arguments), self._request_dedicated)

    def run_many(self, calls: Sequence[ScriptCall]) -> Coroutine[Any, Any, list[Any]]:
        """Runs several scripts in one round trip, in order. If one is refused, raises after the others ran.

        Scripts that the server has lost meanwhile run after the others.
        """
        return self._retry(self._evaluate_all, calls)

    def command(self, *words: Argument) -> Coroutine[Any, Any, Any]:
        """Runs one idempotent command. Returns its reply."""
        return self._retry(self._execute, words)

    async def commands(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """Runs idempotent commands in one round trip. Returns their replies."""
        return await self._retry(self._execute_all, commands) if commands else []

    async def command_on_nodes_of(self, keys: Iterable[str], *words: Argument) -> dict[object, Any]:
        """Runs one idempotent command on each node that serves one of these keys. Returns connection -> reply."""

        async def attempt() -> dict[object, Any]:
            connections = {await (await self._servers.find(key)).connect(): None for key in keys}
            replies = await _together(connection.request(pack(words)) for connection in connections)
            return {connection: _checked(reply) for connection, (reply,) in zip(connections, replies, strict=True)}

        return await self._retry(attempt)

    async def command_on_primaries(self, *words: Argument) -> list[Any]:
        """Runs one idempotent command on every primary. Returns one reply each; a single server is one primary."""

        async def attempt() -> list[Any]:
            command = pack(words)
            return [_checked((await _request(node, command))[0]) for node in await self._servers.primaries()]

        return await self._retry(attempt)

    async def keys(self, pattern: str) -> list[str]:
        """All keys that match a pattern, on all nodes. Scans the whole key space: for tests."""

        async def attempt() -> list[str]:
            found: dict[str, None] = {}
            for node in await self._servers.primaries():
                cursor = b"0"
                while True:
                    scan = pack(("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_BATCH))
                    cursor, names = _checked((await _request(node, scan))[0])
                    found |= {name.decode(): None for name in names}
                    if cursor == b"0":
                        break
            return list(found)

        return await self._retry(attempt)

    def node_of(self, key: str) -> object:
        """Identifies the node of a key, as far as is known; the same for all keys unless the server is a cluster."""
        return self._servers.node_of(key) if isinstance(self._servers, Cluster) else None

    async def connection_of(self, key: str) -> object:
        """The shared connection to the node of a key: another one after each reconnect, restart and failover."""

        async def attempt() -> object:
            return await (await self._servers.find(key)).connect()

        return await self._retry(attempt)

    async def read_replication_ids(self, keys: Iterable[str]) -> dict[str, str]:
        """The replication id of the node of each key, before a write, for `wait_for_replicas` to compare with."""

        async def attempt() -> dict[str, str]:
            nodes = {key: await self._servers.find(key) for key in keys}
            ids = {node: await _replication_id(node) for node in set(nodes.values())}
            return {key: ids[node] for key, node in nodes.items()}

        return await self._retry(attempt)

    async def wait_for_replicas(
        self,
        replicas: int,
        writes: Mapping[str, Sequence[Argument]],
        replication_ids: Mapping[str, str],
        timeout_ms: int = WAIT_REPLICAS_MS,
    ) -> None:
        """Waits until `replicas` replicas have everything that this client wrote on the nodes of these keys.

        Each key comes with a write that changes nothing, and with the replication id of its node from before what it
        confirms was sent. Raises StoreUnavailable on timeout, and when another server was promoted since then: it, and
        so its replicas, may lack some of the writes.
        """

        # WAIT covers the writes of its own connection: this write has a later offset than all those before it.
        async def attempt() -> int:
            nodes = {(await self._servers.find(key), replication_ids[key]): write for key, write in writes.items()}
            waits = (_wait(node, write, replicas, timeout_ms, known) for (node, known), write in nodes.items())
            return min(await _together(waits), default=replicas)

        reached = await self._retry(attempt)
        if reached < replicas:
            raise StoreUnavailable(
                f"stored, but only {reached} of {replicas} replicas of {self.address} have it: "
                "a failover now could lose it"
            )

    # --- pushes ------------------------------------------------------------------------------------------------

    async def listen(self, channel: str, on_message: Callable[[bytes], None] | None = None) -> AsyncGenerator[str]:
        """Yields the messages of a channel, resubscribing whenever the connection is lost.

        Yields "" after each (re)subscription: messages may have been missed, so look at the store. With `on_message`,
        messages go to that callback straight from the socket's protocol instead of being yielded.
        """
        pause = FIRST_RETRY_S
        while True:
            try:
                # In a cluster every node delivers what is published on any of them.
                node = random.choice(await self._servers.primaries())
                async with node.subscribe(channel, on_message) as subscription:
                    yield ""
                    pause = FIRST_RETRY_S
                    while not isinstance(message := await subscription.messages.get(), Disconnected):
                        yield message.decode()
                    raise message
            except TRANSPORT_ERRORS as error:
                # Every message is only a hint, so a lost subscription is only a delay.
                if not is_transient(error):
                    raise translate(error, self.address) from error
                logger.debug("subscription to %s lost: %s", channel, error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, MAX_RETRY_S)
                await self._servers.recover(error)

    async def read_streams(
        self, positions: dict[str, str], block_ms: int
    ) -> dict[str, list[tuple[str, dict[str, str]]]]:
        """Reads the entries of streams after the given positions; waits up to `block_ms` for the first."""

        async def attempt() -> list[Any]:
            if not self.is_cluster:
                return await self._read(positions, block_ms)
            # Each stream is in its own hash slot, so they are read in parallel, until the first returns. The other
            # reads stay in progress for the next call; one that ends in between is repeated then.
            reads = [self._shared_read(stream, position, block_ms) for stream, position in positions.items()]
            done, _ = await asyncio.wait(reads, return_when=asyncio.FIRST_COMPLETED)
            return [item for read in done for item in read.result()]

        return {
            stream.decode(): [(entry.decode(), read_text_hash(fields)) for entry, fields in entries]
            for stream, entries in await self._retry(attempt)
        }

    async def stream_entries_added(self, stream: str) -> int:
        """The number of entries ever added to a stream, trimmed ones included."""
        info: list[Any] = await self.command("XINFO", "STREAM", stream)
        return int(info[info.index(b"entries-added") + 1])

    async def close(self) -> None:
        """Closes every connection. The client can be used again."""
        reads = list(self._reads.values())
        for read in reads:
            read.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
        await self._servers.close()

    # --- internals ---------------------------------------------------------------------------------------------

    async def _execute(self, words: Sequence[Argument]) -> Any:
        return _checked(await self._servers.request(_key_of(words), pack(tuple(words))))

    async def _execute_all(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        replies = await self._request_all([(_key_of(words), pack(tuple(words))) for words in commands])
        return [
            _checked(reply) if _code(reply) not in _RESENT_ALONE else await self._execute(words)
            for words, reply in zip(commands, replies, strict=True)
        ]

    async def _evaluate(self, call: ScriptCall, request: Callable[[str, bytes], Awaitable[Any]]) -> Any:
        name, keys, arguments = call
        loaded = script(name, self._clock, is_cluster=self.is_cluster)
        command = pack((_evalsha(loaded), loaded.digest, len(keys), *keys, *arguments))
        reply = await request(keys[0], command)
        if _code(reply) == "NOSCRIPT":
            # After a restart, a failover or a flush. EVAL runs the source and caches it.
            verb = "EVAL_RO" if loaded.is_read_only else "EVAL"
            command = pack((verb, loaded.source, len(keys), *keys, *arguments))
            reply = await request(keys[0], command)
        return _checked(reply)

    async def _request_dedicated(self, key: str, command: bytes) -> Any:
        async with (await self._servers.find(key)).dedicated(0) as connection:
            return (await connection.request(command))[0]

    async def _evaluate_all(self, calls: Sequence[ScriptCall]) -> list[Any]:
        commands: list[tuple[str, bytes]] = []
        for name, keys, arguments in calls:
            loaded = script(name, self._clock, is_cluster=self.is_cluster)
            commands.append((keys[0], pack((_evalsha(loaded), loaded.digest, len(keys), *keys, *arguments))))
        replies = await self._request_all(commands, {call.script for call in calls})
        # Alone, a call loads its script or follows the redirection.
        return [
            _checked(reply) if _code(reply) not in _RESENT_ALONE else await self._evaluate(call, self._servers.request)
            for call, reply in zip(calls, replies, strict=True)
        ]

    async def _request_all(self, commands: Sequence[tuple[str, bytes]], scripts: Set[str] = frozenset()) -> list[Any]:
        """Sends commands, each with its key, in one round trip per node, after the scripts that the node lacks."""
        by_node: dict[Node, list[int]] = {}
        for index, (key, _) in enumerate(commands):
            by_node.setdefault(await self._servers.find(key), []).append(index)
        replies: list[Any] = [None] * len(commands)

        async def request(node: Node, indexes: Sequence[int]) -> None:
            connection = node.shared or await node.connect()
            new = scripts - connection.scripts
            sources = [script(name, self._clock, is_cluster=self.is_cluster).source for name in new]
            packed = [pack(("SCRIPT", "LOAD", source)) for source in sources]
            packed += [commands[index][1] for index in indexes]
            answers = await connection.request(b"".join(packed), len(packed))
            connection.scripts |= new
            for index, answer in zip(indexes, answers[len(new) :], strict=True):
                replies[index] = answer

        await _together(request(node, indexes) for node, indexes in by_node.items())
        return replies

    async def _read(self, positions: Mapping[str, str], block_ms: int) -> list[Any]:
        words: tuple[Argument, ...] = (
            "XREAD",
            "COUNT",
            READ_BATCH,
            "BLOCK",
            block_ms,
            "STREAMS",
            *positions,
            *positions.values(),
        )
        node = await self._servers.find(next(iter(positions)))
        async with node.dedicated(block_ms) as connection:
            return _checked((await connection.request(pack(words)))[0]) or []

    def _shared_read(self, stream: str, position: str, block_ms: int) -> asyncio.Task[list[Any]]:
        """A read of one stream that several calls may wait for, and that outlives them."""
        pair = (stream, position)
        read = self._reads.get(pair)
        if read is None:
            read = self._reads[pair] = asyncio.create_task(self._read({stream: position}, block_ms))

            def forget(done: asyncio.Task[Any]) -> None:
                self._reads.pop(pair, None)
                if not done.cancelled():
                    done.exception()  # marks it as retrieved: every waiter may be gone

            read.add_done_callback(forget)
        return read

    async def _retry(self, attempt: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Retries transient errors until `patience` seconds have passed. Raises the translated error."""
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + self.patience
        pause = FIRST_RETRY_S
        while True:
            try:
                return await attempt(*args, **kwargs)
            except TRANSPORT_ERRORS as error:
                if not is_transient(error) or loop.time() + pause > give_up_at:
                    raise translate(error, self.address, used_by=_describe(args)) from error
                logger.debug("retrying: %s", error)
                last_error = error
            await asyncio.sleep(pause)
            pause = min(pause * 2, MAX_RETRY_S)
            await self._servers.recover(last_error)


async def _together(work: Iterable[Awaitable[T]]) -> list[T]:
    """Awaits all, then raises the first error if any failed."""
    tasks = list(work)
    if len(tasks) == 1:
        return [await tasks[0]]
    done = await asyncio.gather(*tasks, return_exceptions=True)
    for one in done:
        if isinstance(one, BaseException):
            raise one
    return cast("list[T]", done)


async def _request(node: Node, command: bytes) -> list[Any]:
    return await (node.shared or await node.connect()).request(command)


async def _replication_id(node: Node) -> str:
    """The replication id of the server behind the shared connection; read once per connection."""
    connection = node.shared or await node.connect()
    if connection.replication_id is None:
        (info,) = await connection.request(pack(_REPLICATION_INFO))
        connection.replication_id = _read_replication_id(info)
    return connection.replication_id


async def _wait(node: Node, write: Sequence[Argument], replicas: int, timeout_ms: int, expected_id: str) -> int:
    """Returns how many replicas have all writes of the server that has had `expected_id` since before the write."""
    # The write was answered through a shared connection: it must still lead to that server, and so must the other one.
    if await _replication_id(node) != expected_id:
        raise StoreUnavailable(
            "another server took over before the replicas confirmed the write: it may be lost; "
            "look it up, or enqueue it again with the same id"
        )
    async with node.dedicated(timeout_ms) as connection:
        commands = pack_all([write, ("WAIT", replicas, timeout_ms), _REPLICATION_INFO])
        written, reached, info = await connection.request(commands, 3)
        _checked(written)
        if _read_replication_id(info) != expected_id:
            if (shared := node.shared) is not None:
                shared.replication_id = None  # it may be that one which is out of date: the retry reads it again
            raise Disconnected("another server took over")
    return int(_checked(reached))


_REPLICATION_INFO: Final = ("INFO", "replication")


def _read_replication_id(info: Any) -> str:
    """The replication id: a new one with every restart and promotion. Raises ServerError if INFO is denied."""
    found = re.search(rb"master_replid:(\w+)", _checked(info))
    return found[1].decode() if found else ""


def _evalsha(loaded: Script) -> str:
    # The server lets a user that may only read run a script with the second command alone.
    return "EVALSHA_RO" if loaded.is_read_only else "EVALSHA"


def _describe(args: Sequence[Any]) -> str:
    """Names the scripts or commands of a call and their keys, for the error of a missing permission or wrong type."""
    call: Any = args[0] if args else ()
    if isinstance(call, ScriptCall):
        return f"the script {call.script} on {_key_names(call.keys)}"
    if call and isinstance(call[0], ScriptCall):
        scripts = ", ".join(dict.fromkeys(one.script for one in call))
        return f"the scripts {scripts} on {_key_names(key for one in call for key in one.keys)}"
    if call:
        commands = [call] if isinstance(call[0], str) else call
        names = dict.fromkeys(str(words[0]) for words in commands)
        return f"{', '.join(names)} on {_key_names(map(_key_of, commands))}"
    return ""


def _key_names(keys: Iterable[str]) -> str:
    """Lists keys; those of a queue as one pattern, "rota:{mail}:*"."""
    patterns = (re.sub(r"(?<=\{)([^}~][^}]*\}:).*", r"\1*", key) for key in keys)
    return ", ".join(dict.fromkeys(filter(None, patterns))) or "no key"


def _checked(reply: Any) -> Any:
    if isinstance(reply, ServerError):
        raise reply
    return reply


def _code(reply: Any) -> str:
    return reply.code if isinstance(reply, ServerError) else ""


def _key_of(words: Sequence[Argument]) -> str:
    name = str(words[0])
    is_keyless = name in KEYLESS or len(words) == 1
    return HOME if is_keyless else str(words[KEY_POSITIONS.get(name, 1)])
