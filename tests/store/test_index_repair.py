"""check_runs, check_index_entries, check_task_index: damage is found, repaired, and nothing else is touched."""

from __future__ import annotations

import json

import pytest

from rota.core.lease_heartbeat_poll_and_grace_durations import DurationSettings
from rota.core.state_transitions import JobState
from rota.store.index_repair import LISTED, IndexProblem, IndexRepair, Mode
from rota.store.namespace_settings import SettingsStore
from tests.store.driver import QUEUE, Driver, new_job, parts

pytestmark = pytest.mark.usefixtures("namespace")


async def walk(driver: Driver, mode: Mode = "repair", *, queue: str = QUEUE) -> list[IndexProblem]:
    return [problem async for slice_ in IndexRepair(driver.client).walk(queue, mode) for problem in slice_.problems]


async def repair(driver: Driver) -> set[str]:
    """Checks, which changes nothing; repairs; and checks that a second repair finds nothing. Returns the indexes."""
    before = driver.dump()
    found = await walk(driver, "check")
    assert driver.dump() == before
    repaired = await walk(driver)
    assert found
    assert repaired
    assert await walk(driver) == []
    driver.check()
    return {problem.index for problem in repaired}


async def populate(driver: Driver) -> None:
    """A queue with runs in every state, and one of each thing that a run can have."""
    worker = driver.worker()
    for id in ("done", "dead", "busy"):
        await driver.one(id, tags=("red",), terms=("tag=red",))
        (job,) = await worker.claim()
        if id == "done":
            await worker.complete(job, b"1")
        elif id == "dead":
            await worker.fail(job)
    await driver.client.cancel(await driver.one("gone"))
    await driver.one("first", lock="one")
    await driver.one("second", lock="one")
    await driver.one("third", lock="one")
    await driver.one("later", due="+60000", expiry="+120000")
    parent = await driver.one("parent", terms=("tag=blue",))
    await driver.after(parent, id="child")
    await driver.one("", priority=3)


async def test_a_healthy_queue_has_no_problems(driver: Driver) -> None:
    await populate(driver)
    before = driver.dump()

    assert await walk(driver) == []
    assert driver.dump() == before


@pytest.mark.parametrize("index", ["pending", "scheduled", "blocked", "processing", "completed", "failed", "cancelled"])
async def test_runs_that_lost_their_state_index_return_to_it(driver: Driver, index: str) -> None:
    await populate(driver)
    held = driver.index(index)
    assert held
    driver.redis.delete(driver.key(index))

    found = await repair(driver)

    assert found & {"pending", index, "locks", "blocked"}
    if index != "scheduled":  # a new job has its time in that index alone, so it is due now
        assert driver.index(index).keys() == held.keys()
    if index in ("pending", "completed", "failed", "cancelled"):
        assert driver.index(index) == held


@pytest.mark.parametrize(
    "index",
    ["locks", "locked", "ids", "named", "terms", "has_parents", "task_index_sizes", "expiring", "runs"],
)
async def test_a_lost_index_is_built_again(driver: Driver, index: str) -> None:
    await populate(driver)
    driver.redis.delete(driver.key(index))

    await repair(driver)


async def test_lost_parts_of_indexes_are_built_again(driver: Driver) -> None:
    await populate(driver)
    child = (await driver.client.redis.command("ZRANGE", driver.key("blocked"), 0, -1))[-1].decode()
    parts = {"lane": "one", "term": "tag=red", "task_index": child[:7], "parents": child}
    driver.redis.delete(*(driver.key(name, part) for name, part in parts.items()))

    assert await repair(driver) >= {"lane", "term", "task_index", "parents"}


async def test_a_run_in_two_indexes_stays_in_the_right_one(driver: Driver) -> None:
    await populate(driver)
    (busy,) = driver.index("processing")
    (done,) = driver.index("completed")
    (later,) = driver.index("scheduled")
    driver.redis.zadd(driver.key("pending"), {busy: 1, done: 2, later: 3})
    driver.redis.zadd(driver.key("failed"), {busy: 5})

    await repair(driver)

    assert list(driver.index("processing")) == [busy]
    assert list(driver.index("completed")) == [done]
    assert not driver.index("pending").keys() & {busy, done}


@pytest.mark.parametrize("index", LISTED)
async def test_entries_of_unknown_runs_are_removed(driver: Driver, index: str) -> None:
    await populate(driver)
    ghost, key = "0000zzzzz", driver.key(index)
    if index in ("has_parents", "steps"):
        driver.redis.sadd(key, ghost)
    elif index in ("ids", "locks"):
        driver.redis.hset(key, "ghost", ghost)
    elif driver.redis.type(key) == b"zset" or index == "stopping":
        driver.redis.zadd(key, {ghost: 1})
    else:
        driver.redis.hset(key, ghost, "lost")

    assert await repair(driver) == {index}


async def test_counters_that_fell_back_are_raised_above_the_runs(driver: Driver) -> None:
    """Else the next job would overwrite another one."""
    await populate(driver)
    stored = driver.hash("meta")
    driver.redis.hset(driver.key("meta"), mapping={"run": 2, "fence": 1})

    assert await repair(driver) == {"meta"}

    assert driver.hash("meta")["run"] == stored["run"]
    await driver.one("new")
    driver.check()


async def test_a_run_whose_record_was_lost_while_it_was_processing_runs_again(driver: Driver) -> None:
    ref = await driver.one("x")
    (job,) = await driver.worker().claim()
    driver.redis.hset(driver.key("runs"), job.run, "rubbish")

    await repair(driver)
    assert await driver.worker().complete(job) != "ok"
    await driver.advance_with_ticks(6_000)
    (again,) = await driver.worker("w2").claim()

    assert again.run == ref.run
    assert await driver.worker("w2").complete(again) == "ok"


async def test_a_repaired_run_has_the_lease_of_the_namespace(driver: Driver) -> None:
    """A worker that has the run renews it only once per heartbeat, a third of that lease."""
    await SettingsStore(driver.redis_client, driver.keys).change(DurationSettings(), DurationSettings(lease_ms=60_000))
    await driver.one("x")
    (job,) = await driver.worker().claim()
    driver.redis.zrem(driver.key("processing"), job.run)

    await walk(driver)

    assert driver.index("processing")[job.run] - driver.now() > 50_000


async def test_a_job_record_that_cannot_be_read_is_reported(driver: Driver) -> None:
    ref = await driver.one("x")
    driver.redis.hset(driver.key("jobs"), str(ref.run), "rubbish")

    (problem, *_) = await walk(driver, "check")

    assert (problem.index, problem.is_repairable) == ("jobs", False)


async def test_a_lost_list_of_parents_does_not_let_the_dependent_start_early(driver: Driver) -> None:
    parent = await driver.one("parent")
    child = await driver.after(parent, id="child")
    driver.redis.delete(driver.key("parents", str(child.run)), driver.key("has_dependents"))
    driver.redis.delete(driver.key("dependents", str(parent.run)))

    await repair(driver)
    assert await driver.state(child) is JobState.BLOCKED

    (job,) = await driver.worker().claim()
    await driver.worker().complete(job)
    await driver.post()
    assert await driver.state(child) is JobState.PENDING


async def test_an_outcome_that_was_lost_is_delivered(driver: Driver) -> None:
    parent = await driver.one("parent")
    child = await driver.after(parent, id="child")
    (job,) = await driver.worker().claim()
    await driver.worker().complete(job)
    for name in ("outbox", "outcomes", "has_dependents"):
        driver.redis.delete(driver.key(name))
    driver.redis.delete(driver.key("dependents", str(parent.run)))

    await walk(driver)

    assert await driver.state(child) is JobState.PENDING
    driver.check()


async def test_a_follow_up_whose_run_is_gone_becomes_pending(driver: Driver) -> None:
    first = await driver.one("x")
    (job,) = await driver.worker().claim()
    (made,) = await driver.client.enqueue(QUEUE, [new_job("x", again=parts(data=True))])
    driver.redis.hdel(driver.key("follow_ups"), job.run)

    assert "follow_ups" in await repair(driver)

    assert made.run != first.run
    assert made.run in driver.index("pending")


async def test_a_repair_is_recorded_in_the_history(driver: Driver) -> None:
    ref = await driver.one("x")
    driver.redis.delete(driver.key("pending"))

    await walk(driver)

    (entry,) = (json.loads(line) for line in driver.hash("history")[str(ref.run)].split("\n"))
    assert entry["verb"] == "repair"
    assert ("repair", ref.run) in driver.events()
