"""Heartbeats get through soon after an outage that is too short to be noticed as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from rota.core.lease_heartbeat_poll_and_grace_durations import RETRY_MS
from rota.store.job_store import JobStore
from rota.store.redis.address import parse_address
from rota.store.redis.retrying_client import RedisClient
from rota.worker.claim_queues import ClaimQueues
from rota.worker.config import WorkerConfig
from rota.worker.dispatcher import Dispatcher
from rota.worker.lease_heartbeat import AGAIN_S, SLOW_S, Heartbeat
from rota.worker.progress_and_log_sender import ProgressAndLogSender
from rota.worker.report_buffer import ReportBuffer
from rota.worker.runners.pool import Pool
from rota.worker.runners.protocol import AppDescription
from rota.worker.running_jobs import RunningJob, RunningJobs
from tests.eventually import eventually
from tests.servers import Server
from tests.store.driver import QUEUE, Driver
from tests.store.proxy import Proxy


@pytest.fixture
async def driver(server: Server, namespace: str) -> AsyncIterator[Driver]:
    driver = Driver(server, namespace)
    yield driver
    await driver.close()


def test_a_heartbeat_without_an_answer_is_repeated_in_the_time_that_durations_allow() -> None:
    """Among others, `outage_gap_ms` depends on it: docs/decisions/0005."""
    assert SLOW_S + AGAIN_S <= RETRY_MS / 1000


async def test_a_heartbeat_that_gets_no_answer_is_not_waited_for(server: Server, driver: Driver) -> None:
    await driver.one()
    (job,) = await driver.worker("w1").claim()
    running = RunningJobs()
    running.add(RunningJob(job))
    async with Proxy(server) as proxy:
        redis_client = RedisClient(parse_address(proxy.url), patience=2.0)
        store = JobStore(redis_client, driver.keys, "w1")
        await store.heartbeat(QUEUE, [])
        proxy.swallow()
        queues = ClaimQueues(WorkerConfig(app="none:rota"), asyncio.Event())
        beating = asyncio.create_task(Heartbeat(store, queues, running, _dispatcher(store, running)).run())
        await eventually(lambda: proxy.swallowed)
        before = driver.index("processing")[job.run]

        proxy.serve()

        # The first one is still waiting: its connection is silent, and stays so for two seconds.
        await eventually(lambda: driver.index("processing")[job.run] > before, 1.3)
        beating.cancel()
        with suppress(asyncio.CancelledError):
            await beating
        await redis_client.close()


def _dispatcher(store: JobStore, running: RunningJobs) -> Dispatcher:
    pool = Pool("none:rota", loops=0, measures_lag=False, max_jobs=None, max_rss_mb=None)
    reports = ReportBuffer(running, asyncio.Event())
    return Dispatcher(AppDescription(), running, pool, reports, ProgressAndLogSender(store))
