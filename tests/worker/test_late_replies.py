"""A reply that arrives late changes nothing that has been learned since its call was sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

import pytest

from rota import Rota
from rota.client.session import sessions_of
from rota.core.job_record_codec import FIRST_ATTEMPT
from rota.store.claim_replies import ClaimedJob
from rota.store.job_store import JobStore
from rota.store.schedules import ScheduleStore
from rota.worker.claim_queues import ClaimQueues
from rota.worker.config import WorkerConfig
from rota.worker.lease_heartbeat import Heartbeat
from rota.worker.registration_loop import Registration
from rota.worker.running_jobs import RunningJob, RunningJobs
from rota.worker.schedule_firing_loop import Scheduler
from rota.worker.shutdown_flags import ShutdownRequests
from tests.eventually import eventually
from tests.servers import Server


class HeldReplies:
    """Carries out calls at once, and holds their replies back."""

    def __init__(self, call: Callable[..., Coroutine[Any, Any, Any]]) -> None:
        self._call = call
        self.gates: list[asyncio.Event] = []
        self.is_holding = True

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        reply = await self._call(*args, **kwargs)
        gate = asyncio.Event()
        self.gates.append(gate)
        if self.is_holding:
            await gate.wait()
        return reply


class BareRegistration(Registration):
    """The registration of a worker without anything to show."""

    def __init__(self, store: JobStore, stop: ShutdownRequests) -> None:
        nothing: Any = None
        super().__init__(store, nothing, nothing, nothing, nothing, stop)

    async def register(self) -> None:
        await self._publish({"state": "active"})


@pytest.fixture
async def rota(valkey: Server, namespace: str) -> AsyncGenerator[Rota]:
    rota = Rota(valkey.url, namespace=namespace)
    yield rota
    await rota.close()


@pytest.fixture
async def store(rota: Rota) -> AsyncGenerator[JobStore]:
    store = sessions_of(rota).connect("w1")
    yield store
    await store.redis.close()


async def test_a_registration_sent_before_a_drain_does_not_withdraw_it(
    store: JobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = HeldReplies(store.renew_registration)
    monkeypatch.setattr(store, "renew_registration", replies)
    stop = ShutdownRequests()
    registering = asyncio.create_task(BareRegistration(store, stop).register())
    await eventually(lambda: len(replies.gates) == 1)

    stop.drain()  # pushed by the store, after it has answered
    replies.gates[0].set()
    await registering

    assert stop.drain_requested.is_set()


async def test_the_reply_to_an_older_registration_does_not_withdraw_a_drain(
    rota: Rota, store: JobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = HeldReplies(store.renew_registration)
    monkeypatch.setattr(store, "renew_registration", replies)
    stop = ShutdownRequests()
    registration = BareRegistration(store, stop)
    older = asyncio.create_task(registration.register())
    await eventually(lambda: len(replies.gates) == 1)
    await rota.drain("w1")
    newer = asyncio.create_task(registration.register())
    await eventually(lambda: len(replies.gates) == 2)

    replies.gates[1].set()
    await newer
    replies.gates[0].set()
    await older

    assert stop.drain_requested.is_set()


async def test_a_change_of_schedules_while_they_are_read_is_read_at_once(
    store: JobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first schedule of a queue: the reply that is on its way does not name the queue yet."""
    replies = HeldReplies(ScheduleStore(store.redis, store.keys).queues)
    scheduler = Scheduler(store, ["default"])
    monkeypatch.setattr(scheduler._schedules, "queues", replies)
    running = asyncio.create_task(scheduler.run())
    await eventually(lambda: len(replies.gates) == 1)

    scheduler.wake()
    replies.is_holding = False
    replies.gates[0].set()

    await eventually(lambda: len(replies.gates) == 2, timeout=5)  # it polls every 10 s
    running.cancel()


async def test_a_heartbeat_answered_late_does_not_hide_a_newer_answer(
    store: JobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered: list[float] = []

    class Queues(ClaimQueues):
        def give_up_overdue(self, name: str, answered_at: float, now: float) -> int | None:
            answered.append(answered_at)
            return super().give_up_overdue(name, answered_at, now)

    replies = HeldReplies(store.heartbeat)
    monkeypatch.setattr(store, "heartbeat", replies)
    queues = Queues(WorkerConfig(app="x:y", queues=("default",)), asyncio.Event())
    running = RunningJobs()
    running.add(RunningJob(ClaimedJob("default", "run", "claim", FIRST_ATTEMPT, b"")))
    dispatcher: Any = Ignored()
    heartbeat = Heartbeat(store, queues, running, dispatcher)
    slow = asyncio.create_task(heartbeat.beat())
    await eventually(lambda: len(replies.gates) == 1)
    between = asyncio.get_running_loop().time()
    replies.is_holding = False
    await heartbeat.beat()

    replies.gates[0].set()
    await slow
    await heartbeat.beat()

    assert answered[-1] >= between


class Ignored:
    """A dispatcher of which no handler is stopped."""

    def stop_claim(self, *_: object) -> None: ...
