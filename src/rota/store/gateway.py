"""The only code that speaks to the server: scripts, commands, retries, and what each refusal means.

Every script may be sent twice without harm, so a call that was cut off is sent again until `patience` is over; only
then does the caller hear `StoreUnavailable`. All calls to one server share a connection, except those that block.
Replies are as the server gives them: bytes, integers, lists and None. Its errors do not get past this module.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Final, NamedTuple, ParamSpec, TypeVar, cast

from rota.errors import StoreUnavailable
from rota.store.cluster import HOME, Cluster
from rota.store.connection import Argument, Disconnected, ServerError, pack
from rota.store.connections import Node, OneServer, endpoint_of, open_connection, opener_of, pack_all
from rota.store.replies import TROUBLE, is_passing, read_hash, translate
from rota.store.scripts import script

if TYPE_CHECKING:
    from rota.embedded import EmbeddedServer
    from rota.store.address import Address

__all__ = ["READ_AT_ONCE", "Argument", "Call", "Gateway", "texts"]

logger = logging.getLogger("rota.store")
T = TypeVar("T")
P = ParamSpec("P")
FIRST_PAUSE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 0.5
#: Shorter than the socket's timeout, or a replica that is slow would look like a server that does not answer.
REPLICAS_MS: Final = 1_500
#: Entries of each stream that one read brings at most.
READ_AT_ONCE: Final = 500
SCAN_AT_ONCE: Final = 1_000
#: Commands without a key; and one whose key is not its first word.
KEYLESS: Final = frozenset({"PING", "ECHO", "TIME", "INFO", "CONFIG", "PUBLISH"})
KEY_AT: Final = {"XINFO": 2}
#: Errors of one call among many that are its own to mend: the server lacks its script, or its slot has moved.
_ALONE: Final = ("NOSCRIPT", "MOVED", "ASK")


class Call(NamedTuple):
    """One script call: its name, its keys in the order of the header, its arguments."""

    script: str
    keys: Sequence[str]
    arguments: Sequence[Argument]


class Gateway:
    """The connections of one event loop. Opens nothing until the first call."""

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
        self._is_cluster = address.kind == "cluster"
        self._servers = (
            Cluster(address.hosts, lambda host, port, kind: open_connection(endpoint_of(address, host, port), kind))
            if self._is_cluster
            else OneServer(opener_of(address, embedded))
        )
        #: Stream and position -> a read under way, in a cluster.
        self._reads: dict[tuple[str, str], asyncio.Task[Any]] = {}

    # --- calls -------------------------------------------------------------------------------------------------

    # These are no coroutines, but return one: each that is awaited through another costs every call of every job.

    def run(self, name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Coroutine[Any, Any, Any]:
        """Runs one script; sends it again if the answer did not come."""
        return self._persist(self._evaluate, Call(name, keys, arguments), self._servers.ask)

    def run_aside(self, name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Coroutine[Any, Any, Any]:
        """The same on another connection, for when the one that all share may be broken and not know it yet."""
        return self._persist(self._evaluate, Call(name, keys, arguments), self._ask_aside)

    def run_many(self, calls: Sequence[Call]) -> Coroutine[Any, Any, list[Any]]:
        """Runs several scripts in one round trip, in order. One that is refused raises, after the others ran.

        A server that has lost its scripts since runs those that it lacks after the others.
        """
        return self._persist(self._evaluate_all, calls)

    def command(self, *words: Argument) -> Coroutine[Any, Any, Any]:
        """Runs one plain command that is harmless when sent twice."""
        return self._persist(self._execute, words)

    async def commands(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """Runs plain commands in one round trip, each harmless when sent twice."""
        return await self._persist(self._execute_all, commands) if commands else []

    async def everywhere(self, *words: Argument) -> list[Any]:
        """The same on every primary of a cluster; elsewhere there is one answer."""

        async def attempt() -> list[Any]:
            command = pack(words)
            return [_checked((await _ask(node, command))[0]) for node in await self._servers.primaries()]

        return await self._persist(attempt)

    async def keys(self, pattern: str) -> list[str]:
        """Names of all keys like that, on all nodes. Walks the whole key space: for tests."""

        async def attempt() -> list[str]:
            found: dict[str, None] = {}
            for node in await self._servers.primaries():
                cursor = b"0"
                while True:
                    scan = pack(("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_AT_ONCE))
                    cursor, names = _checked((await _ask(node, scan))[0])
                    found |= {name.decode(): None for name in names}
                    if cursor == b"0":
                        break
            return list(found)

        return await self._persist(attempt)

    @property
    def connections(self) -> tuple[object, ...]:
        """Those that calls share now. They are others after every restart and failover."""
        return self._servers.shared

    async def note_lineages(self, keys: Iterable[str]) -> None:
        """Remembers which server holds these keys, for `wait_for_replicas` to vouch for what is written then."""

        async def attempt() -> None:
            nodes = {await self._servers.find(key) for key in keys}
            await _together(_note_lineage(node) for node in nodes if node.lineage is None)

        await self._persist(attempt)

    async def wait_for_replicas(
        self, replicas: int, writes: Mapping[str, Sequence[Argument]], timeout_ms: int = REPLICAS_MS
    ) -> None:
        """Waits until `replicas` replicas have all that this gateway wrote on the nodes of these keys.

        Each key comes with a write that changes nothing. Raises StoreUnavailable if they do not have it in time, or if
        another server has taken over since `note_lineages`: its replicas have what it has, and that may be less.
        """

        # WAIT speaks of its own connection's writes: a write of one's own brings the offset of all earlier ones along.
        async def attempt() -> int:
            by_node = {await self._servers.find(key): words for key, words in writes.items()}
            waits = (_wait(node, words, replicas, timeout_ms) for node, words in by_node.items())
            return min(await _together(waits), default=replicas)

        reached = await self._persist(attempt)
        if reached < replicas:
            raise StoreUnavailable(
                f"stored, but only {reached} of {replicas} replicas of {self.address} have it: "
                "a failover now could lose it"
            )

    # --- pushes ------------------------------------------------------------------------------------------------

    async def listen(self, channel: str, hear: Callable[[bytes], None] | None = None) -> AsyncGenerator[str]:
        """What is said on a channel, for as long as the caller listens, whatever happens to the connection.

        The empty text comes first, and again after every gap: something may have been missed, look for yourself. Where
        there is `hear`, it is told the rest, by whoever reads the socket: then nothing stands between.
        """
        pause = FIRST_PAUSE_S
        while True:
            try:
                # What is published on one node of a cluster is heard on all, so any will do.
                node = random.choice(await self._servers.primaries())
                async with node.subscribed(channel, hear) as subscription:
                    yield ""
                    pause = FIRST_PAUSE_S
                    while not isinstance(message := await subscription.heard.get(), Disconnected):
                        yield message.decode()
                    raise message
            except TROUBLE as error:
                # A broken subscription is only a delay, as every wake-up is only a hint: listen again.
                if not is_passing(error):
                    raise translate(error, self.address) from error
                logger.debug("lost the subscription to %s: %s", channel, error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE_S)
                await self._servers.recover(error)

    async def read_streams(
        self, positions: dict[str, str], block_ms: int
    ) -> dict[str, list[tuple[str, dict[str, str]]]]:
        """Entries of streams after the positions given; waits up to `block_ms` for the first."""

        async def attempt() -> list[Any]:
            if not self._is_cluster:
                return await self._read(positions, block_ms)
            # Each stream is in a slot of its own there: whichever speaks first is heard. The others go on, for who
            # asks next; what they bring meanwhile is read again.
            reads = [self._read_on(stream, position, block_ms) for stream, position in positions.items()]
            done, _ = await asyncio.wait(reads, return_when=asyncio.FIRST_COMPLETED)
            return [item for read in done for item in read.result()]

        return {
            stream.decode(): [(entry.decode(), texts(fields)) for entry, fields in entries]
            for stream, entries in await self._persist(attempt)
        }

    async def added_to_stream(self, stream: str) -> int:
        """How many entries the stream has had in its life, those that were trimmed included."""
        info: list[Any] = await self.command("XINFO", "STREAM", stream)
        return int(info[info.index(b"entries-added") + 1])

    async def close(self) -> None:
        """Closes every connection. The gateway may be used again."""
        reads = list(self._reads.values())
        for read in reads:
            read.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
        await self._servers.close()

    # --- within ------------------------------------------------------------------------------------------------

    async def _execute(self, words: Sequence[Argument]) -> Any:
        return _checked(await self._servers.ask(_key_of(words), pack(tuple(words))))

    async def _execute_all(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        replies = await self._ask_all([(_key_of(words), pack(tuple(words))) for words in commands])
        return [
            _checked(reply) if _code(reply) not in _ALONE else await self._execute(words)
            for words, reply in zip(commands, replies, strict=True)
        ]

    async def _evaluate(self, call: Call, ask: Callable[[str, bytes], Awaitable[Any]]) -> Any:
        name, keys, arguments = call
        loaded = script(name, self._clock, is_cluster=self._is_cluster)
        command = pack(("EVALSHA", loaded.digest, len(keys), *keys, *arguments))
        reply = await ask(keys[0], command)
        if _code(reply) == "NOSCRIPT":
            # After a restart, a failover or a flush: sending the source runs it, and leaves it cached.
            command = pack(("EVAL", loaded.source, len(keys), *keys, *arguments))
            reply = await ask(keys[0], command)
        return _checked(reply)

    async def _ask_aside(self, key: str, command: bytes) -> Any:
        async with (await self._servers.find(key)).aside(0) as connection:
            return (await connection.ask(command))[0]

    async def _evaluate_all(self, calls: Sequence[Call]) -> list[Any]:
        commands: list[tuple[str, bytes]] = []
        for name, keys, arguments in calls:
            digest = script(name, self._clock, is_cluster=self._is_cluster).digest
            commands.append((keys[0], pack(("EVALSHA", digest, len(keys), *keys, *arguments))))
        replies = await self._ask_all(commands, {call.script for call in calls})
        # Alone it finds its way: to a server that has yet to load it, or to the node where its slot is now.
        return [
            _checked(reply) if _code(reply) not in _ALONE else await self._evaluate(call, self._servers.ask)
            for call, reply in zip(calls, replies, strict=True)
        ]

    async def _ask_all(self, commands: Sequence[tuple[str, bytes]], scripts: Set[str] = frozenset()) -> list[Any]:
        """Replies to commands with their keys, in one round trip to each node; scripts that it lacks go before."""
        by_node: dict[Node, list[int]] = {}
        for place, (key, _) in enumerate(commands):
            by_node.setdefault(await self._servers.find(key), []).append(place)
        replies: list[Any] = [None] * len(commands)

        async def ask(node: Node, places: Sequence[int]) -> None:
            connection = node.shared or await node.connect()
            new = scripts - connection.scripts
            sources = [script(name, self._clock, is_cluster=self._is_cluster).source for name in new]
            packed = [pack(("SCRIPT", "LOAD", source)) for source in sources]
            packed += [commands[place][1] for place in places]
            answers = await connection.ask(b"".join(packed), len(packed))
            connection.scripts |= new
            for place, answer in zip(places, answers[len(new) :], strict=True):
                replies[place] = answer

        await _together(ask(node, places) for node, places in by_node.items())
        return replies

    async def _read(self, positions: Mapping[str, str], block_ms: int) -> list[Any]:
        words: tuple[Argument, ...] = (
            "XREAD",
            "COUNT",
            READ_AT_ONCE,
            "BLOCK",
            block_ms,
            "STREAMS",
            *positions,
            *positions.values(),
        )
        node = await self._servers.find(next(iter(positions)))
        async with node.aside(block_ms) as connection:
            return _checked((await connection.ask(pack(words)))[0]) or []

    def _read_on(self, stream: str, position: str, block_ms: int) -> asyncio.Task[list[Any]]:
        """A read of one stream that goes on until it has an answer, whoever waits for it."""
        pair = (stream, position)
        read = self._reads.get(pair)
        if read is None:
            read = self._reads[pair] = asyncio.create_task(self._read({stream: position}, block_ms))

            def forget(done: asyncio.Task[Any]) -> None:
                self._reads.pop(pair, None)
                if not done.cancelled():
                    done.exception()  # whoever waits for it hears of it; if nobody does, it does not matter

            read.add_done_callback(forget)
        return read

    async def _persist(self, attempt: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Tries until it is answered, refused, or out of patience."""
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + self.patience
        pause = FIRST_PAUSE_S
        while True:
            try:
                return await attempt(*args, **kwargs)
            except TROUBLE as error:
                if not is_passing(error) or loop.time() + pause > give_up_at:
                    raise translate(error, self.address) from error
                logger.debug("trying again: %s", error)
                trouble = error
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)
            await self._servers.recover(trouble)


async def _together(work: Iterable[Awaitable[T]]) -> list[T]:
    """All of it, to its end, also where a part of it fails."""
    tasks = list(work)
    if len(tasks) == 1:
        return [await tasks[0]]
    done = await asyncio.gather(*tasks, return_exceptions=True)
    for one in done:
        if isinstance(one, BaseException):
            raise one
    return cast("list[T]", done)


async def _ask(node: Node, command: bytes) -> list[Any]:
    return await (node.shared or await node.connect()).ask(command)


async def _note_lineage(node: Node) -> None:
    (info,) = await _ask(node, pack(_LINEAGE))
    node.lineage = _read_lineage(info)


async def _wait(node: Node, write: Sequence[Argument], replicas: int, timeout_ms: int) -> int:
    async with node.aside(timeout_ms) as connection:
        asked = pack_all([write, ("WAIT", replicas, timeout_ms), _LINEAGE])
        written, reached, info = await connection.ask(asked, 3)
    _checked(written)
    lineage, before = _read_lineage(info), node.lineage
    node.lineage = lineage
    if lineage != before:
        raise StoreUnavailable(
            "another server took over before its replicas were known to have it: it may be lost; "
            "look for it, or enqueue it again with the same id"
        )
    return int(_checked(reached))


_LINEAGE: Final = ("INFO", "replication")


def _read_lineage(info: Any) -> str:
    """ "" where the server may not be asked: then only what it says of its replicas counts."""
    if isinstance(info, ServerError):
        return ""
    found = re.search(rb"master_replid:(\w+)", info)
    return found[1].decode() if found else ""


def _checked(reply: Any) -> Any:
    if isinstance(reply, ServerError):
        raise reply
    return reply


def _code(reply: Any) -> str:
    return reply.code if isinstance(reply, ServerError) else ""


def _key_of(words: Sequence[Argument]) -> str:
    name = str(words[0])
    is_keyless = name in KEYLESS or len(words) == 1
    return HOME if is_keyless else str(words[KEY_AT.get(name, 1)])


def texts(fields: Sequence[bytes]) -> dict[str, str]:
    return {field: value.decode() for field, value in read_hash(fields).items()}
