"""Fixtures of the autoscaler: a planner on a real store, with a cloud in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest

from rota import Rota
from rota.autoscaler.config import AutoscalerConfig
from rota.autoscaler.planner import Planner
from rota.client.session import checked_session, session_of
from rota.core.autoscaling.policy_settings import DrainTime, Policy
from rota.store.job_store import JobStore
from tests.autoscaler.cloud import Cloud
from tests.servers import Server

#: A decision follows from the present alone: no cool-down, one slot per worker, one job per worker.
PLAIN = DrainTime(
    boot_ms=0, down_cooldown_ms=0, worker_slots=1, assumed_run_ms=30_000, target_wait_ms=60_000, max_workers=3
)


class Pool:
    """A planner, its cloud, and workers whose registrations the test writes."""

    def __init__(self, rota: Rota, cloud: Cloud) -> None:
        self.rota = rota
        self.cloud = cloud
        self.task = rota.task(name="noop")(_noop)
        self.policy: Policy = PLAIN
        self._stores: dict[str, JobStore] = {}
        self.planner = self.new_planner()

    def new_planner(self, policy: Policy | None = None) -> Planner:
        """Another planner of the same pool: the autoscaler was started again, or a second time."""
        self.planner = Planner(
            self.rota, self.cloud, AutoscalerConfig(provider="exec", policy=policy or self.policy, queues=("default",))
        )
        return self.planner

    async def round(self, planner: Planner | None = None) -> None:
        """One planning round."""
        planner = planner or self.planner
        session = await checked_session(self.rota)
        await planner.try_lease(session)
        assert planner.is_leading
        await planner.plan_round(session)

    async def rounds(self, count: int) -> None:
        """Several rounds."""
        for _ in range(count):
            await self.round()

    async def enqueue(self, count: int) -> None:
        """Jobs that wait."""
        await self.rota.enqueue_many(self.task.call() for _ in range(count))

    async def register(self, machine: str, *, busy: int = 0, state: str = "waiting") -> frozenset[str]:
        """The worker of a machine registers. Returns what the store asks of it."""
        info = {"state": state, "machine": machine, "slots": 1, "busy": busy, "queues": ["default"]}
        store = self._store_of(machine)
        return frozenset((await store.renew_registration(msgspec.json.encode(info).decode(), machine)).due)

    async def silence(self, machine: str, ms: int) -> None:
        """The worker of a machine was last heard of so long ago."""
        session = session_of(self.rota)
        at = (await session.scaling.read()).now - ms
        await session.redis.command("ZADD", session.keys.shared("worker_seen"), at, f"w-{machine}")

    async def report_drained(self, machine: str) -> bool:
        """The worker of a machine has drained, and exits."""
        store = self._store_of(machine)
        info = {"state": "drained", "machine": machine, "slots": 1, "queues": ["default"]}
        return await store.report_drained(msgspec.json.encode(info).decode(), machine)

    def _store_of(self, machine: str) -> JobStore:
        """The store of the worker of a machine, always the same one."""
        if machine not in self._stores:
            session = session_of(self.rota)
            self._stores[machine] = JobStore(session.redis, session.keys, f"w-{machine}")
        return self._stores[machine]

    async def start(self, workers: int) -> list[str]:
        """A pool of idle workers."""
        await self.enqueue(workers)
        await self.round()
        machines = list(self.cloud.existing)
        for machine in machines:
            await self.register(machine)
        return machines

    async def purge(self) -> None:
        """Nothing waits any more."""
        await self.rota.queue("default").purge()


async def _noop() -> None:
    pass


@pytest.fixture
async def pool(valkey: Server, namespace: str) -> AsyncIterator[Pool]:
    """An empty pool."""
    rota = Rota(valkey.url, namespace=namespace, patience=1.0)
    yield Pool(rota, Cloud())
    await rota.close()
