"""Heartbeats get through soon after an outage that is too short to be noticed as one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

import rota.store
from rota.store.address import parse_address
from rota.store.bounds import LEASE_MS
from rota.store.gateway import Gateway
from rota.store.reports import Report
from rota.store.store import Store
from rota.worker.desk import LOOK_AGAIN_BUSY_S, LOOK_AGAIN_S
from rota.worker.flights import Flight, Flights
from rota.worker.heartbeat import AGAIN_S, HEARTBEAT_S, SLOW_S, Heartbeat
from rota.worker.pool import Pool, RunnerProcess
from rota.worker.tower import Tower
from tests.eventually import eventually
from tests.servers import Server
from tests.store.driver import QUEUE, Driver
from tests.store.proxy import Proxy

TICK_LUA = Path(rota.store.__file__).parent / "lua" / "include" / "tick.lua"


@pytest.fixture
async def driver(server: Server, namespace: str) -> AsyncIterator[Driver]:
    driver = Driver(server, namespace)
    yield driver
    await driver.close()


def test_an_outage_that_goes_unnoticed_leaves_time_to_renew_a_lease() -> None:
    """The worst moment for it to begin is just before a heartbeat: docs/decisions/0005."""
    (gap_ms,) = re.findall(r"^local TICK_GAP_MS, TICK_STEP_MS = (\d+), \d+$", TICK_LUA.read_text(), re.MULTILINE)
    gap_s = int(gap_ms) / 1000

    renewed_by_s = HEARTBEAT_S + gap_s + SLOW_S + AGAIN_S

    assert renewed_by_s <= LEASE_MS / 1000 - 0.15
    assert gap_s - 0.4 >= LOOK_AGAIN_S
    assert gap_s - 1 >= LOOK_AGAIN_BUSY_S


async def test_a_heartbeat_that_gets_no_answer_is_not_waited_for(server: Server, driver: Driver) -> None:
    await driver.one()
    (job,) = await driver.worker("w1").claim()
    flights = Flights()
    flights.add(Flight(job))
    async with Proxy(server) as proxy:
        gateway = Gateway(parse_address(proxy.url), patience=2.0)
        store = Store(gateway, driver.keys, "w1")
        await store.heartbeat(QUEUE, [])
        proxy.swallow()
        beating = asyncio.create_task(Heartbeat(store, flights, _tower(flights)).run())
        await eventually(lambda: proxy.swallowed)
        before = driver.index("processing")[job.run]

        proxy.serve()

        # The first one is still waiting: its connection is silent, and stays so for two seconds.
        await eventually(lambda: driver.index("processing")[job.run] > before, 1.3)
        beating.cancel()
        with suppress(asyncio.CancelledError):
            await beating
        await gateway.close()


def _tower(flights: Flights) -> Tower:
    def nobody(_runner: RunnerProcess, _message: object = None) -> None: ...

    def nowhere(_queue: str, _report: Report) -> None: ...

    def unheard(_reason: str) -> None: ...

    def unsaid(_flight: Flight, _saying: object) -> None: ...

    pool = Pool(
        "none:rota", loops=0, measures_lag=False, max_jobs=None, max_rss_mb=None, on_messages=nobody, on_death=nobody,
        on_broken=unheard,
    )  # fmt: skip
    return Tower(flights, pool, app="none:rota", slots=lambda: 1, report=nowhere, pass_on=unsaid)
