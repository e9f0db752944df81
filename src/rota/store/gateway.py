"""The only code that speaks to the server: connections, scripts, retries, and what each refusal means.

Every script may be sent twice without harm, so a call that was cut off is sent again until `patience` is over; only
then does the caller hear `StoreUnavailable`. redis-py's own retries are off: they know nothing of patience. Nothing
above this module imports redis-py, and none of its exceptions get past it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from rota.errors import StoreUnavailable
from rota.store import cluster
from rota.store.connections import SOCKET_TIMEOUT_S, close, connect, connect_for_pushes
from rota.store.library import redis
from rota.store.replies import is_passing, translate
from rota.store.scripts import script

if TYPE_CHECKING:
    from rota.embedded import EmbeddedServer
    from rota.store.address import Address

logger = logging.getLogger("rota.store")
T = TypeVar("T")
Argument = str | bytes | int
Lane = Callable[[float], contextlib.AbstractAsyncContextManager[Any]]

FIRST_PAUSE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 0.5
#: Calls under way at once, each on a connection of its own. The server does one thing at a time anyhow.
LANES: Final = 32
#: Shorter than the socket's timeout, or a replica that is slow would look like a server that does not answer.
REPLICAS_MS: Final = 1_500
#: Entries of each stream that one read brings at most.
READ_AT_ONCE: Final = 500


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
        self._embedded = embedded
        self._clock = clock
        self._client: Any = None
        self._reader: Any = None
        #: Scripts that the server has had from us. After a restart it has none, and says so.
        self._loaded: set[str] = set()
        #: Stream and position -> a read under way, in a cluster.
        self._reads: dict[tuple[str, str], asyncio.Task[Any]] = {}
        self._is_cluster = address.kind == "cluster"
        self._opening = asyncio.Lock()
        self._lanes = asyncio.Semaphore(LANES)
        #: When the server last answered, by the loop's clock; None before the first answer.
        self.answered_at: float | None = None

    # --- calls -------------------------------------------------------------------------------------------------

    async def run(self, name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        """Runs one script; sends it again if the answer did not come."""
        return await self._persist(lambda client: self._evaluate(client, Call(name, keys, arguments)))

    async def run_many(self, calls: Sequence[Call]) -> list[Any]:
        """Runs several scripts in one round trip, in order. One that is refused raises, after the others ran.

        A server that has lost its scripts since runs those that it lacks after the others.
        """
        words: list[Sequence[Argument]] = [
            ("EVALSHA", self._digest(call.script), len(call.keys), *call.keys, *call.arguments) for call in calls
        ]

        async def attempt(client: Any) -> list[Any]:
            new = {call.script for call in calls} - self._loaded if not self._is_cluster else set[str]()
            loads = [("SCRIPT", "LOAD", script(name, self._clock).source) for name in sorted(new)]
            answers = (await self._execute_all(client, [*loads, *words]))[len(loads) :]
            self._loaded |= new
            for place, answer in enumerate(answers):
                if isinstance(answer, Exception):
                    if not (self._is_cluster or isinstance(answer, redis().exceptions.NoScriptError)):
                        raise answer
                    self._loaded.clear()
                    # Alone it finds its way: to a server that has yet to load it, or to the node where its slot is now.
                    answers[place] = await self._evaluate(client, calls[place])
            return answers

        return await self._persist(attempt)

    async def command(self, *words: Argument) -> Any:
        """Runs one plain command that is harmless when sent twice."""
        return await self._persist(lambda client: self._execute(client, words))

    async def everywhere(self, *words: Argument) -> list[Any]:
        """The same on every primary of a cluster; elsewhere there is one answer."""
        if not self._is_cluster:
            return [await self.command(*words)]
        return await self._persist(lambda client: cluster.execute_everywhere(client, words))

    async def keys(self, pattern: str) -> list[str]:
        """Names of all keys like that, on all nodes. Walks the whole key space: for tests."""

        async def attempt(client: Any) -> list[str]:
            return [key.decode() async for key in client.scan_iter(match=pattern, count=1_000)]

        return await self._persist(attempt)

    async def commands(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """Runs plain commands in one round trip, each harmless when sent twice."""

        async def attempt(client: Any) -> list[Any]:
            answers = await self._execute_all(client, commands)
            for place, answer in enumerate(answers):
                if isinstance(answer, Exception):
                    if not self._is_cluster:
                        raise answer
                    answers[place] = await self._execute(client, commands[place])
            return answers

        return await self._persist(attempt) if commands else []

    async def wait_for_replicas(
        self, replicas: int, writes: Mapping[str, Sequence[Argument]], timeout_ms: int = REPLICAS_MS
    ) -> None:
        """Waits until `replicas` replicas have all that this gateway wrote; raises StoreUnavailable if they do not.

        In a cluster, all that it wrote on the nodes of these keys; each comes with a write that changes nothing.
        """

        # WAIT speaks of its own connection's writes: a write of one's own brings the offset of all earlier ones along.
        async def attempt(client: Any) -> int:
            if self._is_cluster:
                return await cluster.wait_for_replicas(client, writes, replicas, timeout_ms)
            pipeline = client.pipeline(transaction=False)
            pipeline.execute_command("PUBLISH", "rota:wait", "")
            pipeline.execute_command("WAIT", replicas, timeout_ms)
            return (await pipeline.execute())[1]

        reached = await self._persist(attempt)
        if reached < replicas:
            raise StoreUnavailable(
                f"stored, but only {reached} of {replicas} replicas of {self.address} have it: "
                "a failover now could lose it"
            )

    # --- pushes ------------------------------------------------------------------------------------------------

    async def listen(self, channel: str) -> AsyncIterator[str]:
        """What is said on a channel, for as long as the caller listens, whatever happens to the connection.

        The empty text comes first, and again after every gap: something may have been missed, look for yourself.
        """
        pause = FIRST_PAUSE_S
        cancels = _cancels()
        while True:
            try:
                async with self._subscription(channel) as subscription:
                    if _cancels() > cancels:
                        raise asyncio.CancelledError  # redis-py swallowed it while it connected
                    yield ""
                    pause = FIRST_PAUSE_S
                    while True:
                        message = await subscription.get_message(ignore_subscribe_messages=True, timeout=None)
                        if message is not None:
                            yield message["data"].decode()
            except Exception as error:
                if _cancels() > cancels:
                    raise asyncio.CancelledError from error
                # A broken subscription is only a delay, as every wake-up is only a hint: listen again.
                if not is_passing(error):
                    raise translate(error, self.address) from error
                logger.debug("lost the subscription to %s: %s", channel, error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE_S)

    async def read_streams(
        self, positions: dict[str, str], block_ms: int
    ) -> dict[str, list[tuple[str, dict[str, str]]]]:
        """Entries of streams after the positions given; waits up to `block_ms` for the first."""

        words: list[Argument] = ["XREAD", "COUNT", READ_AT_ONCE, "BLOCK", block_ms, "STREAMS"]

        async def attempt(_client: Any) -> Any:
            # A call that blocks needs a socket that may stay silent for as long: connections of their own.
            if self._reader is None:
                self._reader = connect(self.address, self._embedded, None)
            if not self._is_cluster:
                return await self._reader.execute_command(*words, *positions.keys(), *positions.values())
            # Each stream is in a slot of its own there: whichever speaks first is heard. The others go on, for who
            # asks next; what they bring meanwhile is read again.
            reads = [self._read(pair, words) for pair in positions.items()]
            done, _ = await asyncio.wait(reads, return_when=asyncio.FIRST_COMPLETED)
            return [item for read in done for item in _stream_items(read.result())]

        answer = await self._persist(attempt, lane=contextlib.nullcontext)
        return {
            stream.decode(): [
                (entry.decode(), {key.decode(): value.decode() for key, value in fields.items()})
                for entry, fields in entries
            ]
            for stream, entries in _stream_items(answer)
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
        clients, self._client, self._reader = (self._client, self._reader), None, None
        for client in clients:
            if client is not None:
                await close(client)

    # --- within ------------------------------------------------------------------------------------------------

    def _digest(self, name: str) -> str:
        return script(name, self._clock, is_cluster=self._is_cluster).digest

    async def _execute(self, client: Any, words: Sequence[Argument]) -> Any:
        return await (cluster.execute(client, words) if self._is_cluster else client.execute_command(*words))

    async def _execute_all(self, client: Any, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """In one round trip. Raised by redis-py, an error would begin with the command and not with its code."""
        if self._is_cluster:
            return await cluster.execute_all(client, commands)
        pipeline = client.pipeline(transaction=False)
        for words in commands:
            pipeline.execute_command(*words)
        return await pipeline.execute(raise_on_error=False)

    def _read(self, pair: tuple[str, str], words: Sequence[Argument]) -> asyncio.Task[Any]:
        """A read of one stream that goes on until it has an answer, whoever waits for it."""
        read = self._reads.get(pair)
        if read is None:
            read = self._reads[pair] = asyncio.create_task(self._reader.execute_command(*words, *pair))

            def forget(done: asyncio.Task[Any]) -> None:
                self._reads.pop(pair, None)
                if not done.cancelled():
                    done.exception()  # whoever waits for it hears of it; if nobody does, it does not matter

            read.add_done_callback(forget)
        return read

    async def _evaluate(self, client: Any, call: Call) -> Any:
        loaded = script(call.script, self._clock, is_cluster=self._is_cluster)
        try:
            return await client.execute_command("EVALSHA", loaded.digest, len(call.keys), *call.keys, *call.arguments)
        except redis().exceptions.NoScriptError:
            # After a restart, a failover or a flush: sending the source runs it, and leaves it cached.
            return await client.execute_command("EVAL", loaded.source, len(call.keys), *call.keys, *call.arguments)

    async def _persist(self, attempt: Callable[[Any], Awaitable[T]], lane: Lane | None = None) -> T:
        """Tries until it is answered, refused, or out of patience."""
        loop = asyncio.get_running_loop()
        cancels = _cancels()
        if cancels:
            await asyncio.sleep(0)  # a cancel that is still on its way arrives here, where nothing can swallow it
        give_up_at = loop.time() + self.patience
        pause = FIRST_PAUSE_S
        while True:
            try:
                client = self._client or await self._open()
                async with (lane or self._lane)(give_up_at):
                    answer = await attempt(client)
                self.answered_at = loop.time()
                # redis-py writes inside asyncio.wait_for, which before Python 3.12 could swallow a cancel.
                if _cancels() > cancels:
                    raise asyncio.CancelledError
                return answer
            except Exception as error:
                if _cancels() > cancels:
                    raise asyncio.CancelledError from error
                error = cluster.mended(error) if self._is_cluster else error
                if not is_passing(error) or loop.time() + pause > give_up_at:
                    raise translate(error, self.address) from error
                logger.debug("trying again: %s", error)
                if self._embedded is not None:
                    await asyncio.to_thread(self._embedded.ensure)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)

    @contextlib.asynccontextmanager
    async def _lane(self, give_up_at: float) -> AsyncGenerator[None]:
        """A share in the pool of connections: a thousand callers at once are served by a few."""
        async with asyncio.timeout_at(give_up_at):
            await self._lanes.acquire()
        try:
            yield
        finally:
            self._lanes.release()

    async def _open(self) -> Any:
        async with self._opening:
            if self._client is None:
                if self._embedded is not None:
                    await asyncio.to_thread(self._embedded.ensure)
                if "redis.asyncio" not in sys.modules:
                    await asyncio.to_thread(redis)  # takes half a second, for which the loop shall not stand still
                self._client = connect(self.address, self._embedded, SOCKET_TIMEOUT_S)
            return self._client

    @contextlib.asynccontextmanager
    async def _subscription(self, channel: str) -> AsyncGenerator[Any]:
        if self._embedded is not None:
            await asyncio.to_thread(self._embedded.ensure)
        client = await connect_for_pushes(self.address, self._embedded)
        subscription = client.pubsub()
        try:
            await subscription.subscribe(channel)
            yield subscription
        finally:
            await subscription.aclose()
            await client.aclose()


def _cancels() -> int:
    """How often the running task has been asked to stop."""
    task = asyncio.current_task()
    return task.cancelling() if task else 0


def _stream_items(answer: Any) -> list[tuple[bytes, list[tuple[bytes, dict[bytes, bytes]]]]]:
    """Streams and their entries, in whichever of its two shapes redis-py gives them."""
    if not answer:
        return []
    return list(answer.items()) if hasattr(answer, "items") else list(answer)
