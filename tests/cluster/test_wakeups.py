"""In a cluster PUBLISH counts the listeners of one node: still no more workers are woken than there is work for."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest
from redis.client import PubSub
from redis.crc import key_slot

from rota.store.enqueue_batcher import NewJob
from rota.store.job_store import JobStore
from rota.store.keys import Keys
from rota.store.redis.address import parse_address
from rota.store.redis.retrying_client import RedisClient
from tests.cluster.conftest import QUEUES
from tests.cluster.nodes import Cluster
from tests.eventually import eventually
from tests.store.driver import body
from tests.worker.harness import WorkerHarness

QUEUE = QUEUES[1]
CLOCK = f"{{{QUEUE}}}:clock"


class Listeners:
    """Workers that found nothing and listen, each on one node of the cluster."""

    def __init__(self, cluster: Cluster, keys: Keys, stack: contextlib.ExitStack) -> None:
        self._cluster = cluster
        self._keys = keys
        self._stack = stack
        self._inboxes: dict[str, PubSub] = {}

    def listen(self, name: str, node: int) -> None:
        client = self._stack.enter_context(self._cluster.nodes[node].client())
        inbox = self._stack.enter_context(client.pubsub())
        inbox.subscribe(self._keys.inbox(name))
        assert inbox.get_message(timeout=5), "the subscription is confirmed"
        self._inboxes[name] = inbox

    async def woken(self, count: int) -> list[str]:
        """Who has heard something, once so many have."""
        heard: list[str] = []

        def listen() -> bool:
            for name, inbox in self._inboxes.items():
                while message := inbox.get_message(timeout=0):
                    assert message["data"] == f"wake {QUEUE}".encode()
                    heard.append(name)
            return len(heard) >= count

        await eventually(listen)
        # Messages published on one node reach the others in order: once the last has arrived, all have.
        with self._cluster.node_of(key_slot(QUEUE.encode())).client() as client:
            for name, inbox in self._inboxes.items():
                client.publish(self._keys.inbox(name), "last word")
                while (message := inbox.get_message(timeout=5)) and message["data"] != b"last word":
                    heard.append(name)
        return sorted(heard)


@pytest.fixture
def listeners(cluster: Cluster, namespace: str) -> Iterator[Listeners]:
    with contextlib.ExitStack() as stack:
        yield Listeners(cluster, Keys(namespace), stack)


@pytest.fixture
async def store(cluster: Cluster, namespace: str) -> AsyncIterator[JobStore]:
    """A client of the cluster whose clock the test moves."""
    redis_client = RedisClient(parse_address(cluster.url), clock=CLOCK)
    await redis_client.command("SET", CLOCK, 0, "PX", 60_000)
    yield JobStore(redis_client, Keys(namespace), "client")
    await redis_client.close()


async def _look(store: JobStore, name: str) -> None:
    worker = JobStore(store.redis, store.keys, name)
    assert not (await worker.claim(QUEUE, 1, call_number=1, claim_token="t")).jobs


async def _enqueue(store: JobStore, count: int) -> None:
    await store.enqueue(QUEUE, [NewJob("", 0, "", "", body()) for _ in range(count)])


async def test_as_many_are_woken_as_there_is_work_for_wherever_they_listen(
    store: JobStore, listeners: Listeners
) -> None:
    """One job, one worker; three jobs, three: on all nodes, of which the queue knows one."""
    for number in range(9):
        listeners.listen(f"w{number}", number % 3)
        await _look(store, f"w{number}")

    await _enqueue(store, 1)
    assert await listeners.woken(1) == ["w0"]
    await _enqueue(store, 3)
    assert await listeners.woken(3) == ["w1", "w2", "w3"]


async def test_workers_that_have_not_looked_for_a_while_are_passed_over(store: JobStore, listeners: Listeners) -> None:
    for number in range(10):
        await _look(store, f"dead{number}")
    await store.redis.command("SET", CLOCK, 3_000, "PX", 60_000)
    for number in range(3):
        listeners.listen(f"w{number}", number)
        await _look(store, f"w{number}")

    await _enqueue(store, 1)

    assert await listeners.woken(1) == ["w0"]


async def test_real_workers_are_woken_at_once(harness: WorkerHarness) -> None:
    """Whichever nodes they listen on: ten jobs in a row start within a moment, though each looks every 1.8 s."""
    for _ in range(2):
        await harness.start(queues=",".join(QUEUES))
    delays: list[int] = []
    for number in range(12):
        job = await harness.program.echo.using(queue=QUEUES[number % 3]).enqueue(number)
        await job.result(10)
        record = await job.refresh()
        delays.append((record.claimed_at or 0) - record.enqueued_at)

    assert sorted(delays)[len(delays) // 2] < 100
    assert max(delays) < 1_000
