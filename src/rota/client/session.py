"""Sessions: the connections and stores of one event loop, and the sessions of all event loops of one `Rota`.

`session_of(rota)` is the entrance for the other packages: nothing of a session is part of the public API.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Collection, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from rota.client.background_loop import BackgroundLoop
from rota.client.completion_waiter import CompletionWaiter
from rota.client.durability import Durability, DurabilityChecker
from rota.client.external_blobs import ExternalBlobs
from rota.client.shard_directory import FORMAT, ShardDirectory
from rota.client.single_flight import SingleFlight
from rota.core.encrypted_values import Codec
from rota.core.ids import DEFAULT_QUEUE, JobRef
from rota.core.job_record import JobRecord
from rota.errors import StoreError, StoreUnsupported
from rota.store.annotations import AnnotationStore
from rota.store.attention import AttentionStore
from rota.store.autoscaler_lease_decisions_and_demand import ScalingStore
from rota.store.blob_store import BlobStore
from rota.store.bulk_operation_records import BulkOperationStore
from rota.store.carry_out_workflow_decisions import WorkflowStore
from rota.store.create_dependents_and_deliver_outcomes import WORKFLOWS
from rota.store.job_search import Search
from rota.store.job_store import JobStore
from rota.store.keys import Keys
from rota.store.namespace_settings import SettingsStore
from rota.store.read_metric_counters import CounterStore
from rota.store.reads import Views
from rota.store.redis.address import Address, find_address
from rota.store.redis.retrying_client import RedisClient
from rota.store.schedules import ScheduleStore

if TYPE_CHECKING:
    from rota.embedded.find_or_launch_shared_valkey import EmbeddedServer

logger = logging.getLogger("rota.client")
T = TypeVar("T")

#: Records that one call reads: keeps it below 5 ms.
READ: Final = 100


class Session:
    """The connections of one event loop, and the stores on top of them."""

    def __init__(
        self,
        store: JobStore,
        durability: DurabilityChecker,
        declared_shards: dict[str, int],
        codec: Codec | None = None,
    ) -> None:
        self.store = store
        self.redis = store.redis
        self.keys = store.keys
        self.durability = durability
        self.views = Views(store.redis, store.keys, codec)
        self.search = Search(store.redis, store.keys, self.views)
        self.counters = CounterStore(store.redis, store.keys)
        self.blobs = BlobStore(store)
        self.operations = BulkOperationStore(store.redis, store.keys)
        self.schedules = ScheduleStore(store.redis, store.keys)
        self.scaling = ScalingStore(store.redis, store.keys)
        self.annotations = AnnotationStore(store.redis, store.keys)
        self.attention = AttentionStore(store.redis, store.keys)
        self.settings = SettingsStore(store.redis, store.keys)
        self.dependencies = store.dependencies
        self.workflows = WorkflowStore(store)
        self.shards = ShardDirectory(store, self.views, declared_shards)
        self.waiter = CompletionWaiter(store, self.workflows)
        self._single_flight = SingleFlight()
        self._is_checked = False

    async def check(self) -> None:
        """Checks once per session that the server can be used. Raises StoreUnsupported for a newer stored format."""
        if not self._is_checked:
            await self._single_flight.run("check", self._check)

    async def _check(self) -> None:
        stored = await self.redis.command("GET", self.keys.shared("format"))
        if stored is None:
            # The first use: a server too old for the scripts is to fail before anything is written.
            await self.views.read_runs(DEFAULT_QUEUE, [])
        elif not stored.isdigit() or int(stored) > FORMAT:
            raise StoreUnsupported(
                f"the server holds format {stored.decode(errors='replace')}, this version of Rota knows {FORMAT}: "
                "upgrade Rota, or use another namespace"
            )
        await self.durability.check([DEFAULT_QUEUE], {self.durability.default})
        self._is_checked = True

    def is_ready_for(self, queue: str, durability: Durability) -> bool:
        """True when `prepare` has nothing to do for a job of that queue."""
        return durability == "memory" and self._is_checked and self.shards.is_registered(queue)

    async def prepare(self, queues: Iterable[str], durability: Collection[Durability]) -> dict[str, str]:
        """Runs before jobs are stored: checks the server and the durability, and registers the queues.

        Returns the replication ids that `DurabilityChecker.confirm` needs.
        """
        queues = list(queues)
        await self.check()
        if "fsynced" in durability:
            await self.durability.check(await self._shards_of(queues), durability)
        await self.shards.register(queues)
        if "replicated" not in durability:
            return {}
        return await self.durability.read_replication_ids(await self._shards_of(queues))

    async def prepare_links(self, places: Collection[str], durability: Collection[Durability]) -> dict[str, str]:
        """`prepare` for what a write links its jobs to: the queues of their parents, or the workflow records."""
        await self.durability.check(places, durability)
        return await self.durability.read_replication_ids(places) if "replicated" in durability else {}

    async def _shards_of(self, queues: Iterable[str]) -> list[str]:
        return [name for queue in queues for name in await self.shards.names_of(queue)]

    async def read_records(self, refs: Sequence[JobRef]) -> list[JobRecord | None]:
        """The records of jobs in any queues and shards, in the order of `refs`; None for one that is not kept.

        Without their arguments, which may be long: 1,000 jobs of 1 MB are not read to show their states.
        """
        located = [await self.shards.locate(ref) for ref in refs]
        found: dict[JobRef, JobRecord] = {}
        for queue in dict.fromkeys(ref.queue for ref in located):
            of_queue = [ref for ref in located if ref.queue == queue]
            for start in range(0, len(of_queue), READ):
                part = of_queue[start : start + READ]
                snapshots = await self.views.read_runs(queue, part, detail="brief", max_arguments=0)
                for ref, snapshot in zip(part, snapshots, strict=True):
                    if snapshot is not None:
                        found[ref] = snapshot.record
        return [found.get(ref) for ref in located]

    async def notify_dependents(self, queue: str) -> None:
        """Delivers the outcomes in a queue's outbox now. If that fails, any worker delivers them later."""
        try:
            await self.check()
            notified = set[str]()
            await self.dependencies.deliver_all(queue, include="all", on_delivered=notified.add)
            if WORKFLOWS in notified:
                # No worker was notified: the next one would look only seconds later.
                await self.workflows.drive_due()
        except StoreError as error:
            logger.debug("dependents of queue %s were not notified: %s", queue, error)

    async def close(self) -> None:
        """Closes the connections."""
        await self.waiter.close()
        await self.redis.close()


class Sessions:
    """The sessions of one `Rota`, one per event loop, and the background loop of its `_sync` methods."""

    def __init__(
        self,
        url: str | None,
        namespace: str,
        *,
        durability: Durability,
        replicas: int,
        patience: float,
        clock: str,
        codec: Codec | None = None,
        blobs: ExternalBlobs | None = None,
    ) -> None:
        self._url = url
        self.keys = Keys(namespace)
        self._durability: Durability = durability
        self._replicas = replicas
        self._patience = patience
        self._clock = clock
        self.codec = codec
        #: The user's own store for blobs; None: they are stored in the server.
        self.blobs = blobs
        #: Queue -> the number of shards that the program declares.
        self.declared_shards: dict[str, int] = {}
        self._is_for_tests = False
        self._background = BackgroundLoop(self.close)
        self._by_loop: dict[asyncio.AbstractEventLoop, Session] = {}

    @property
    def namespace(self) -> str:
        """The prefix of all keys."""
        return self.keys.namespace

    @property
    def address(self) -> str:
        """The server's address, without secrets."""
        return str(find_address(self._url, os.environ))

    @property
    def embedded(self) -> EmbeddedServer | None:
        """The embedded server; None where a URL is configured."""
        return _shared_embedded(find_address(self._url, os.environ))

    def current(self) -> Session:
        """The session of the running loop."""
        loop = asyncio.get_running_loop()
        session = self._by_loop.get(loop)
        if session is None:
            for other in list(self._by_loop):  # other threads may add theirs
                if other.is_closed():  # it ended without a `close`: its connections go with it
                    self._by_loop.pop(other, None)
            store = self.connect(f"client-{secrets.token_hex(6)}")
            durability = DurabilityChecker(store.redis, store.keys, default=self._durability, replicas=self._replicas)
            session = self._by_loop[loop] = Session(store, durability, self.declared_shards, self.codec)
        return session

    async def checked(self) -> Session:
        """The session of the running loop, after the server was checked. Raises StoreError."""
        session = self.current()
        await session.check()
        return session

    def connect(self, participant: str, *, patience: float | None = None) -> JobStore:
        """Returns a store with connections of its own, for a worker on the running loop."""
        address = find_address(self._url, os.environ)
        redis = RedisClient(
            address,
            embedded=_shared_embedded(address),
            patience=self._patience if patience is None else patience,
            clock=self._clock,
        )
        return JobStore(redis, self.keys, participant)

    def connection(self) -> dict[str, Any]:
        """The arguments with which another process makes a `Rota` of the same server. Contains secrets."""
        return {"url": self._url, "namespace": self.namespace, "clock": self._clock}

    def move(self, *, url: str | None, namespace: str) -> None:
        """Switches to another server and namespace. Open sessions have to be closed first. For tests."""
        self._url = url
        self.keys = Keys(namespace)
        self._is_for_tests = True

    async def warn_if_no_worker_runs(self) -> None:
        """Warns if an embedded server was chosen for lack of a URL, and no worker uses it: the jobs would never run."""
        embedded = None if self._is_for_tests else self.embedded
        if embedded is not None and not any(
            worker.status == "ALIVE" for worker in await self.current().views.workers()
        ):
            from rota.embedded.find_or_launch_shared_valkey import warn_that_no_worker_runs

            warn_that_no_worker_runs(embedded.directory)

    def run_sync(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the background loop and returns its result."""
        return self._background.run(coroutine)

    async def close(self) -> None:
        """Closes the session of the running loop. The next use opens another."""
        session = self._by_loop.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    def close_sync(self) -> None:
        """Closes the background loop and its session."""
        self._background.close()


class HasSessions(Protocol):
    """An object that reaches the server: `Rota` and every handle."""

    @property
    def _sessions(self) -> Sessions: ...


def sessions_of(owner: HasSessions) -> Sessions:
    """The sessions behind a `Rota` or a handle."""
    return owner._sessions  # pyright: ignore[reportPrivateUsage]


def session_of(owner: HasSessions) -> Session:
    """The session of the running loop. Nothing has been sent to the server."""
    return sessions_of(owner).current()


async def checked_session(owner: HasSessions) -> Session:
    """The session of the running loop, after the server was checked. Raises StoreError."""
    return await sessions_of(owner).checked()


def _shared_embedded(address: Address) -> EmbeddedServer | None:
    if address.kind != "embedded":
        return None
    from rota.embedded.find_or_launch_shared_valkey import shared_server  # imported on use: it starts processes

    return shared_server()
