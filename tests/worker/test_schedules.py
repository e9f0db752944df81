"""Workers fire schedules: each tick once, whichever worker dies, and missed ticks by their misfire policy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest

from rota import Cron, Every, ScheduleInfo, ScheduleNotFound
from rota.core.schedule import Every as EveryRule
from rota.core.schedule import Schedule, tick_id
from rota.store.job_store import JobStore
from rota.store.schedules import ScheduleStore
from rota.worker.schedule_firing_loop import LOOK_AGAIN_S, Scheduler
from tests.client.manual_worker import calls_of
from tests.eventually import eventually
from tests.servers import OwnServers, Server
from tests.store.driver import QUEUE, Driver, body
from tests.worker.harness import WorkerHarness

HOUR = 3_600_000


@pytest.fixture
async def harness(valkey: Server, namespace: str, tmp_path: Path) -> AsyncIterator[WorkerHarness]:
    """Starts workers of the program with schedules."""
    with WorkerHarness(valkey, namespace, tmp_path, "tests.worker.scheduled") as harness:
        yield harness
        await harness.rota.close()


@pytest.fixture
def clock(valkey: Server, namespace: str) -> Iterator[str]:
    """The key of a clock of the test's own, at which an hour passes at once."""
    key = f"tests:clock:{namespace}"
    with valkey.client() as client:
        client.set(key, 0, px=600_000)
        yield key
        client.delete(key)


def advance(harness: WorkerHarness, clock: str, ms: int) -> None:
    with harness.redis() as client:
        client.incrby(clock, ms)


def now_ms(harness: WorkerHarness, clock: str) -> int:
    with harness.redis() as client:
        return harness.now_ms() + int(cast(bytes, client.get(clock)))


async def one(harness: WorkerHarness, name: str) -> ScheduleInfo:
    return await harness.rota.schedules.get(name)


def declaring(*names: str, version: int = 1, clock: str = "") -> dict[str, str]:
    return {
        "ROTA_TEST_DECLARES": " ".join(names),
        "ROTA_TEST_VERSION": str(version),
        "ROTA_TEST_CLOCK": clock,
    }


# --- ticking -----------------------------------------------------------------------------------------------------


async def test_two_workers_never_double_and_ticks_go_on_when_one_is_killed(harness: WorkerHarness) -> None:
    first = await harness.start(environment=declaring("second"))
    second = await harness.start(environment=declaring("second"))

    await harness.noted("second", 2)
    first.kill()
    ids = await harness.noted("second", 5, timeout=20)

    assert second.is_alive
    assert len(ids) == len(set(ids)), "a tick ran twice"
    info = await one(harness, "second")
    # A job that the dead worker had may still be on its way.
    assert info.fired >= len(ids)


async def test_importing_the_program_puts_nothing_and_a_worker_puts_what_it_declares(harness: WorkerHarness) -> None:
    assert await harness.rota.schedules.list() == []

    worker = await harness.start(environment=declaring("nightly"))

    (info,) = await harness.rota.schedules.list()
    assert (info.id, info.task, info.kwargs, info.is_declared) == (
        "default:nightly",
        "report",
        {"what": "nightly"},
        True,
    )
    assert info.rule == Cron("0 3 * * *", "Europe/Oslo")
    assert (await harness.info(worker)).info["schedules"] == ["default:nightly"]
    assert not info.is_orphaned


async def test_a_schedule_put_at_run_time_is_noticed_at_once(harness: WorkerHarness) -> None:
    """Well before the workers would have looked for themselves."""
    await harness.start()

    await harness.rota.schedules.put("soon", Every(1), harness.program.report.call("soon"))
    async with asyncio.timeout(LOOK_AGAIN_S - 1):
        await harness.noted("soon", 1)

    await harness.rota.schedules.pause("soon")
    assert (await one(harness, "soon")).next_runs == ()
    await harness.rota.schedules.resume("soon")
    await harness.noted("soon", len(harness.notes("soon")) + 1)


async def test_a_run_by_hand_runs_now(harness: WorkerHarness) -> None:
    await harness.start(environment=declaring("nightly"))

    job = await harness.rota.schedules.run_now("nightly")

    assert await job.result(10) == "nightly"
    assert harness.notes("nightly") == [job.ref.id]
    assert (await one(harness, "nightly")).fired == 0


async def test_what_was_missed_while_no_worker_lived_runs_once_when_one_starts(
    harness: WorkerHarness, clock: str
) -> None:
    worker = await harness.start(environment=declaring("nightly", clock=clock))
    worker.kill()
    rule = Cron("0 3 * * *", "Europe/Oslo")
    since = now_ms(harness, clock)
    advance(harness, clock, 75 * HOUR)

    await harness.start(environment=declaring("nightly", clock=clock))

    latest = rule.latest(0, now_ms(harness, clock))
    assert latest is not None
    assert await harness.noted("nightly") == [tick_id("nightly", latest)]
    info = await one(harness, "nightly")
    # It was 3 o'clock three times or four, by the time of day at which this test runs.
    assert (info.fired, info.dropped) == (1, rule.count(since, latest) - 1)
    assert info.last_run is not None
    assert info.last_run.hour == 3
    assert info.last_job == f"default:{tick_id('nightly', latest)}"


# --- declarations ------------------------------------------------------------------------------------------------


async def test_a_newer_version_replaces_an_older_one_and_is_not_replaced_by_it(harness: WorkerHarness) -> None:
    await harness.start(environment=declaring("nightly", version=1))
    await harness.start(environment=declaring("faster", version=2))
    assert (await one(harness, "nightly")).rule == Every(timedelta(hours=1))

    late = await harness.start(environment=declaring("nightly", version=1))

    info = await one(harness, "nightly")
    assert (info.rule, info.version) == (Every(3600), 2)
    # Log lines are written by a thread of their own.
    await eventually(lambda: "schedule default:nightly is stored with version 2 and stays as it is" in late.log)


async def test_a_schedule_that_no_live_worker_declares_is_shown_as_orphaned(harness: WorkerHarness) -> None:
    worker = await harness.start(environment=declaring("nightly"))
    worker.terminate()
    await worker.ended()
    assert not (await one(harness, "nightly")).is_orphaned, "no worker is registered to show it"

    await harness.start(environment=declaring("second"))
    await harness.rota.schedules.put("by-hand", Every(3600), harness.program.report.call("x"))

    orphans = {info.name: info.is_orphaned for info in await harness.rota.schedules.list()}
    assert orphans == {"nightly": True, "second": False, "by-hand": False}


async def test_a_paused_schedule_stays_paused_when_a_worker_starts(harness: WorkerHarness) -> None:
    worker = await harness.start(environment=declaring("second"))
    await harness.rota.schedules.pause("second")
    worker.terminate()
    await worker.ended()

    await harness.start(environment=declaring("second"))

    assert (await one(harness, "second")).is_paused


async def test_a_removed_schedule_comes_back_with_the_worker_that_declares_it(harness: WorkerHarness) -> None:
    await harness.start(environment=declaring("nightly"))
    await harness.rota.schedules.remove("nightly")
    with pytest.raises(ScheduleNotFound):
        await one(harness, "nightly")

    await harness.start(environment=declaring("nightly"))

    assert (await one(harness, "nightly")).is_declared


async def test_a_worker_whose_schedule_cannot_call_its_task_says_so_and_does_not_start(harness: WorkerHarness) -> None:
    worker = harness.launch(environment=declaring("wrong"))

    assert await worker.ended(30) == 6
    assert "task 'report'" in worker.log


# --- the loop ----------------------------------------------------------------------------------------------------


async def test_an_idle_worker_asks_once_in_ten_seconds_for_all_its_queues(own_server: OwnServers) -> None:
    server = own_server()
    driver = Driver(server, "idle")
    ticker = Scheduler(JobStore(driver.redis_client, driver.keys, "w"), ["a", "b", "c"])

    with server.client() as client:
        await ticker._tick()
        commands = [
            calls_of(client, command) for command in ("smembers", "zrange", "evalsha", "evalsha_ro", "eval", "eval_ro")
        ]
        wait = await ticker._tick()
        assert [
            calls_of(client, command) for command in ("smembers", "zrange", "evalsha", "evalsha_ro", "eval", "eval_ro")
        ] == commands

    assert commands == [1, 0, 0, 0, 0, 0]
    assert LOOK_AGAIN_S - 1 < wait <= LOOK_AGAIN_S
    assert 1 / LOOK_AGAIN_S <= 0.1
    await driver.close()


async def test_a_schedule_that_cannot_be_read_does_not_keep_others_from_ticking(
    valkey: Server, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    driver = Driver(valkey, namespace)
    schedules = ScheduleStore(driver.redis_client, driver.keys)
    ticker = Scheduler(JobStore(driver.redis_client, driver.keys, "w"), [QUEUE])
    for name in ("bad", "good"):
        await schedules.put(Schedule(name=name, queue=QUEUE, rule=EveryRule(60), body=body()))
    driver.redis.hset(driver.key("schedules"), "bad", '{"version":1}\n{"type":"lunar"}\n{}\n\nt\n[]')
    driver.advance(60_000)

    await ticker._tick()
    await ticker._tick()

    assert len(driver.hash("ids")) == 1
    assert len([record for record in caplog.records if "cannot be read" in record.message]) == 1
    await driver.close()


async def test_workers_fire_at_the_moment_and_not_before(valkey: Server, namespace: str) -> None:
    driver = Driver(valkey, namespace)
    schedules = ScheduleStore(driver.redis_client, driver.keys)
    await schedules.put(Schedule(name="s", queue=QUEUE, rule=EveryRule(1), body=body()))
    tickers = [Scheduler(JobStore(driver.redis_client, driver.keys, f"w{n}"), [QUEUE]) for n in range(3)]
    running = [asyncio.create_task(ticker.run()) for ticker in tickers]

    await eventually(lambda: len(driver.hash("ids")) >= 3)

    for task in running:
        task.cancel()
    late = [
        int(record.split("\n")[0].split(" ")[1]) % 1000 for record in driver.hash("jobs").values()
    ]  # the time it was made, within its second
    assert max(late) < 500
    await asyncio.gather(*running, return_exceptions=True)
    await driver.close()
