"""Workers fire schedules: each tick once, whoever lives and whoever dies, and what was missed as its policy says."""

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
from rota.store.schedules import ScheduleStore
from rota.store.store import Store
from rota.worker.ticker import LOOK_AGAIN_S, Ticker
from tests.client.hands import calls_of
from tests.eventually import eventually
from tests.servers import OwnServers, Server
from tests.store.driver import QUEUE, Driver, body
from tests.worker.crew import Crew

HOUR = 3_600_000


@pytest.fixture
async def crew(valkey: Server, namespace: str, tmp_path: Path) -> AsyncIterator[Crew]:
    """Starts workers of the program with schedules."""
    with Crew(valkey, namespace, tmp_path, "tests.worker.scheduled") as crew:
        yield crew
        await crew.rota.close()


@pytest.fixture
def clock(valkey: Server, namespace: str) -> Iterator[str]:
    """The key of a clock of the test's own, at which an hour passes at once."""
    key = f"tests:clock:{namespace}"
    with valkey.client() as client:
        client.set(key, 0, px=600_000)
        yield key
        client.delete(key)


def advance(crew: Crew, clock: str, ms: int) -> None:
    with crew.redis() as client:
        client.incrby(clock, ms)


def now_ms(crew: Crew, clock: str) -> int:
    with crew.redis() as client:
        return crew.now_ms() + int(cast(bytes, client.get(clock)))


async def one(crew: Crew, name: str) -> ScheduleInfo:
    return await crew.rota.schedules.get(name)


def declaring(*names: str, version: int = 1, clock: str = "") -> dict[str, str]:
    return {
        "ROTA_TEST_DECLARES": " ".join(names),
        "ROTA_TEST_VERSION": str(version),
        "ROTA_TEST_CLOCK": clock,
    }


# --- ticking -----------------------------------------------------------------------------------------------------


async def test_two_workers_never_double_and_ticks_go_on_when_one_is_killed(crew: Crew) -> None:
    first = await crew.start(environment=declaring("second"))
    second = await crew.start(environment=declaring("second"))

    await crew.noted("second", 3)
    first.kill()
    ids = await crew.noted("second", 7, timeout=20)

    assert second.is_alive
    assert len(ids) == len(set(ids)), "a tick ran twice"
    info = await one(crew, "second")
    # A job that the dead worker had may still be on its way.
    assert info.fired >= len(ids)


async def test_importing_the_program_puts_nothing_and_a_worker_puts_what_it_declares(crew: Crew) -> None:
    assert await crew.rota.schedules.list() == []

    worker = await crew.start(environment=declaring("nightly"))

    (info,) = await crew.rota.schedules.list()
    assert (info.id, info.task, info.kwargs, info.is_declared) == (
        "default:nightly",
        "report",
        {"what": "nightly"},
        True,
    )
    assert info.rule == Cron("0 3 * * *", "Europe/Oslo")
    assert (await crew.info(worker)).info["schedules"] == ["default:nightly"]
    assert not info.is_orphaned


async def test_a_schedule_put_at_run_time_is_heard_of_at_once(crew: Crew) -> None:
    """Well before the workers would have looked for themselves."""
    await crew.start()

    await crew.rota.schedules.put("soon", Every(1), crew.program.report.call("soon"))
    async with asyncio.timeout(LOOK_AGAIN_S - 1):
        await crew.noted("soon", 1)

    await crew.rota.schedules.pause("soon")
    assert (await one(crew, "soon")).next_runs == ()
    await crew.rota.schedules.resume("soon")
    await crew.noted("soon", len(crew.notes("soon")) + 1)


async def test_a_run_by_hand_runs_now(crew: Crew) -> None:
    await crew.start(environment=declaring("nightly"))

    job = await crew.rota.schedules.run_now("nightly")

    assert await job.result(10) == "nightly"
    assert crew.notes("nightly") == [job.ref.id]
    assert (await one(crew, "nightly")).fired == 0


async def test_what_was_missed_while_no_worker_lived_runs_once_when_one_starts(crew: Crew, clock: str) -> None:
    worker = await crew.start(environment=declaring("nightly", clock=clock))
    worker.kill()
    rule = Cron("0 3 * * *", "Europe/Oslo")
    since = now_ms(crew, clock)
    advance(crew, clock, 75 * HOUR)

    await crew.start(environment=declaring("nightly", clock=clock))

    latest = rule.latest(0, now_ms(crew, clock))
    assert latest is not None
    assert await crew.noted("nightly") == [tick_id("nightly", latest)]
    info = await one(crew, "nightly")
    # It was 3 o'clock three times or four, by the time of day at which this test runs.
    assert (info.fired, info.dropped) == (1, rule.count(since, latest) - 1)
    assert info.last_run is not None
    assert info.last_run.hour == 3
    assert info.last_job == f"default:{tick_id('nightly', latest)}"


# --- declarations ------------------------------------------------------------------------------------------------


async def test_a_newer_version_replaces_an_older_one_and_is_not_replaced_by_it(crew: Crew) -> None:
    await crew.start(environment=declaring("nightly", version=1))
    await crew.start(environment=declaring("faster", version=2))
    assert (await one(crew, "nightly")).rule == Every(timedelta(hours=1))

    late = await crew.start(environment=declaring("nightly", version=1))

    info = await one(crew, "nightly")
    assert (info.rule, info.version) == (Every(3600), 2)
    assert "schedule default:nightly is stored with version 2 and stays as it is" in late.log


async def test_a_schedule_that_no_live_worker_declares_is_shown_as_orphaned(crew: Crew) -> None:
    worker = await crew.start(environment=declaring("nightly"))
    worker.terminate()
    await worker.ended()
    assert not (await one(crew, "nightly")).is_orphaned, "nobody is there to say"

    await crew.start(environment=declaring("second"))
    await crew.rota.schedules.put("by-hand", Every(3600), crew.program.report.call("x"))

    orphans = {info.name: info.is_orphaned for info in await crew.rota.schedules.list()}
    assert orphans == {"nightly": True, "second": False, "by-hand": False}


async def test_a_paused_schedule_stays_paused_when_a_worker_starts(crew: Crew) -> None:
    worker = await crew.start(environment=declaring("second"))
    await crew.rota.schedules.pause("second")
    worker.terminate()
    await worker.ended()

    await crew.start(environment=declaring("second"))

    assert (await one(crew, "second")).is_paused


async def test_a_removed_schedule_comes_back_with_the_worker_that_declares_it(crew: Crew) -> None:
    await crew.start(environment=declaring("nightly"))
    await crew.rota.schedules.remove("nightly")
    with pytest.raises(ScheduleNotFound):
        await one(crew, "nightly")

    await crew.start(environment=declaring("nightly"))

    assert (await one(crew, "nightly")).is_declared


async def test_a_worker_whose_schedule_cannot_call_its_task_says_so_and_does_not_start(crew: Crew) -> None:
    worker = crew.launch(environment=declaring("wrong"))

    assert await worker.ended(30) == 6
    assert "task 'report'" in worker.log


# --- the loop ----------------------------------------------------------------------------------------------------


async def test_an_idle_worker_asks_once_in_ten_seconds_for_all_its_queues(own_server: OwnServers) -> None:
    server = own_server()
    driver = Driver(server, "idle")
    ticker = Ticker(Store(driver.gateway, driver.keys, "w"), ["a", "b", "c"])

    with server.client() as client:
        await ticker._tick()
        commands = [calls_of(client, command) for command in ("smembers", "zrange", "evalsha", "eval")]
        wait = await ticker._tick()
        assert [calls_of(client, command) for command in ("smembers", "zrange", "evalsha", "eval")] == commands

    assert commands == [1, 0, 0, 0]
    assert LOOK_AGAIN_S - 1 < wait <= LOOK_AGAIN_S
    assert 1 / LOOK_AGAIN_S <= 0.1
    await driver.close()


async def test_a_schedule_that_cannot_be_read_does_not_keep_others_from_ticking(
    valkey: Server, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    driver = Driver(valkey, namespace)
    schedules = ScheduleStore(driver.gateway, driver.keys)
    ticker = Ticker(Store(driver.gateway, driver.keys, "w"), [QUEUE])
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
    schedules = ScheduleStore(driver.gateway, driver.keys)
    await schedules.put(Schedule(name="s", queue=QUEUE, rule=EveryRule(1), body=body()))
    tickers = [Ticker(Store(driver.gateway, driver.keys, f"w{n}"), [QUEUE]) for n in range(3)]
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
