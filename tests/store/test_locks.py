"""Locks: of the jobs of one lock one runs at a time, and none of them holds up the jobs behind it."""

from __future__ import annotations

import random
from typing import Any, Final, cast

import pytest

from rota.core.ids import JobRef
from rota.core.job_options import Keep
from rota.core.same_id_policy import Update
from rota.store.claim_replies import ClaimedJob
from rota.store.job_store import LEASE_MS
from tests.store.driver import ENDS, QUEUE, Driver, completed, new_job, refs_of, run_of

WAKE: Final = f"wake {QUEUE}"
HOUR: Final = 3_600_000


async def _lane(driver: Driver, count: int, **options: Any) -> list[JobRef]:
    return await driver.enqueue(*[new_job(lock="l", **options)] * count)


async def _states(driver: Driver, *refs: JobRef) -> list[str]:
    return [(await driver.state(ref)).value for ref in refs]


async def _held(driver: Driver, worker: str = "w1") -> ClaimedJob:
    """A job that runs under the lock."""
    (ref,) = await _lane(driver, 1)
    (job,) = await driver.worker(worker).claim()
    assert job.run == ref.run
    return job


# --- exclusion and order -----------------------------------------------------------------------------------------


@pytest.mark.requirement("S3-1", "S3-7")
async def test_two_jobs_of_one_lock_never_run_at_the_same_time(driver: Driver) -> None:
    """However many workers ask for however many."""
    refs = await _lane(driver, 10)
    done: list[str] = []
    while len(done) < 10:
        found = [job for number in range(3) for job in await driver.worker(f"w{number}").claim(5)]
        assert len(found) == 1
        done.append(found[0].run)
        assert await driver.worker().complete(found[0]) == "ok"

    assert done == [ref.run for ref in refs]
    assert driver.hash("locks") == driver.hash("locked") == {}


async def test_a_lane_keeps_the_order_of_priority_due_time_and_run(driver: Driver) -> None:
    """Spec 3 and 6; also where the jobs came in another order, and some fell due later."""
    rng = random.Random(7)
    now = driver.now()
    wanted: list[tuple[int, int, str]] = []
    for _ in range(30):
        priority, due = rng.choice([-10, 0, 0, 10]), now + rng.choice([-2, -1, 0, 5_000, 5_000, 9_000])
        ref = await driver.one(priority=priority, due=str(due), lock="l")
        wanted.append((priority, due, run_of(ref)))
    driver.advance(10_000)

    found: list[str] = []
    while jobs := await driver.worker().claim(3):
        (job,) = jobs
        found.append(job.run)
        await driver.worker().complete(job)

    assert found == [run for *_, run in sorted(wanted)]


@pytest.mark.requirement("S3-4")
async def test_a_locked_job_does_not_hold_up_the_jobs_behind_it(driver: Driver) -> None:
    """No head-of-line blocking."""
    await _held(driver)
    await _lane(driver, 50, priority=-10)
    plain = await driver.one()
    other = await driver.one(lock="other")

    assert refs_of(await driver.worker().claim(100)) == [plain.run, other.run]


async def test_locks_are_of_their_queue(driver: Driver) -> None:
    await _held(driver)
    await driver.one(queue="another", lock="l")

    assert len(await driver.worker().claim(queue="another")) == 1


async def test_a_blocked_job_says_who_holds_its_lock_and_since_when(driver: Driver) -> None:
    (first,) = await _lane(driver, 1)
    (behind,) = await _lane(driver, 1)
    obstacle = (await driver.read(behind)).record.obstacle
    assert obstacle is not None
    assert (obstacle.kind, obstacle.jobs, obstacle.lock, obstacle.since) == ("lock", (str(first),), "l", None)

    await driver.worker().claim()

    obstacle = (await driver.read(behind)).record.obstacle
    assert obstacle is not None
    assert obstacle.since == (await driver.read(first)).record.claimed_at


@pytest.mark.requirement("S3-2")
@pytest.mark.parametrize("lock", ["a b", "a:b{c}", "é", "x" * 128, "lane", "="])
async def test_a_lock_may_be_any_text(driver: Driver, lock: str) -> None:
    """Free text, so that it can name an entity."""
    await driver.one(lock=lock)
    behind = await driver.one(lock=lock)
    (job,) = await driver.worker().claim(5)

    obstacle = (await driver.read(behind)).record.obstacle
    assert obstacle is not None
    assert obstacle.lock == lock
    await driver.worker().complete(job)
    assert refs_of(await driver.worker().claim(5)) == [behind.run]


# --- letting go --------------------------------------------------------------------------------------------------

#: How an attempt ends for good.
FINAL: Final = ("complete", "fail for good", "give up")


@pytest.mark.requirement("S3-11")
@pytest.mark.parametrize("keep", [0, 3600])
@pytest.mark.parametrize("end", FINAL)
async def test_an_end_frees_the_lock_and_wakes_the_next_at_once(driver: Driver, end: str, keep: int) -> None:
    """Success or error; and the waiting worker is woken, which it is not in jobQ."""
    await driver.one(lock="l", keep=Keep(finished=keep, failed=keep))
    (job,) = await driver.worker().claim()
    (behind,) = await _lane(driver, 1)
    with driver.inbox("idle") as inbox:
        assert await driver.worker("idle").claim() == []
        await driver.worker().end(job, end)
        assert inbox.told() == [WAKE]

    assert refs_of(await driver.worker("idle").claim(5)) == [behind.run]


@pytest.mark.parametrize("how", ["fail", "snooze"])
async def test_a_job_in_backoff_or_snooze_does_not_hold_its_lock(driver: Driver, how: str) -> None:
    """Spec 6; and it takes its new place when its time has come."""
    job = await _held(driver)
    (behind,) = await _lane(driver, 1)
    with driver.inbox("idle") as inbox:
        assert await driver.worker("idle").claim() == []
        await (driver.worker().fail(job, "+60000") if how == "fail" else driver.worker().snooze(job, "+60000"))
        assert inbox.told() == [WAKE]

    (next_job,) = await driver.worker().claim(5)
    assert next_job.run == behind.run
    driver.advance(60_000)
    assert await driver.worker().claim(5) == [], "its time has come, but the lock is held"
    await driver.worker().complete(next_job)
    assert refs_of(await driver.worker().claim(5)) == [job.run]


async def test_a_job_that_retries_at_once_goes_behind_those_who_wait(driver: Driver) -> None:
    """Spec 3: retries and snoozes take a new place."""
    job = await _held(driver)
    (behind,) = await _lane(driver, 1)
    driver.advance(10)

    await driver.worker().fail(job, "")

    assert refs_of(await driver.worker().claim(5)) == [behind.run]


@pytest.mark.parametrize("how", ["hand back", "lose"])
async def test_a_job_that_comes_back_keeps_its_place_in_the_lane(driver: Driver, how: str) -> None:
    """Spec 3: handed-back jobs keep their place."""
    job = await _held(driver)
    behind = await _lane(driver, 3)

    await driver.worker().end(job, how)

    assert await _states(driver, *behind) == ["blocked"] * 3
    assert refs_of(await driver.worker().claim(5)) == [job.run]


async def test_a_job_that_comes_back_lets_a_more_urgent_one_go_first(driver: Driver) -> None:
    job = await _held(driver)
    (urgent,) = await _lane(driver, 1, priority=-10)

    await driver.worker().hand_back(job)

    assert refs_of(await driver.worker().claim(5)) == [urgent.run]


@pytest.mark.parametrize("how", ["cancel", "delete"])
@pytest.mark.parametrize("until", ["confirmed", "lease out"])
async def test_a_handler_that_must_stop_keeps_its_lock_until_it_has(driver: Driver, how: str, until: str) -> None:
    """Spec 4: nothing ever overlaps."""
    job = await _held(driver)
    (behind,) = await _lane(driver, 1)
    ref = (await driver.views.read_runs(QUEUE, [JobRef(QUEUE, "", job.run)]))[0]
    assert ref is not None
    act = driver.client.cancel if how == "cancel" else driver.client.delete
    assert await act(ref.record.ref) == "stopping"
    await driver.advance_with_ticks(LEASE_MS - 1_500)
    assert await driver.worker("w2").claim(5) == []

    if until == "confirmed":
        with driver.inbox("w2") as inbox:
            assert await driver.worker().complete(job) == "cancelled"
            assert inbox.told() == [WAKE]
    else:
        await driver.advance_with_ticks(3_000)

    assert refs_of(await driver.worker("w2").claim(5)) == [behind.run]


@pytest.mark.requirement("S3-8", "S3-9", "S3-12")
async def test_a_lock_is_leased_with_its_job(driver: Driver) -> None:
    """Kept for as long as its worker lives, freed when its lease is out."""
    job = await _held(driver)
    (behind,) = await _lane(driver, 1, priority=-10)
    for _ in range(800):
        driver.advance(1_500)
        await driver.worker().beat(job)
    assert await driver.worker("w2").claim() == [], "1,200 s later it still holds it"

    await driver.advance_with_ticks(LEASE_MS + 1_000)

    assert refs_of(await driver.worker("w2").claim(5)) == [behind.run]


@pytest.mark.requirement("S3-11")
async def test_a_late_holder_frees_nothing_of_anothers(driver: Driver) -> None:
    """jobQ's plain delete does."""
    late = await _held(driver)
    await _lane(driver, 2, priority=-10)
    await driver.advance_with_ticks(LEASE_MS + 1_000)
    (holder,) = await driver.worker("w2").claim(5)
    assert holder.run != late.run
    before = driver.dump()

    for verb in ENDS:
        assert await driver.worker().end(late, verb) == "lease_lost"

    assert driver.dump() == before


@pytest.mark.parametrize("verb", ENDS)
async def test_a_cancelled_holders_second_report_frees_nothing(driver: Driver, verb: str) -> None:
    job = await _held(driver)
    await _lane(driver, 2)
    found = (await driver.views.read_runs(QUEUE, [JobRef(QUEUE, "", job.run)]))[0]
    assert found is not None
    await driver.client.cancel(found.record.ref)
    assert await driver.worker().complete(job) == "cancelled"
    (holder,) = await driver.worker("w2").claim(5)
    before = driver.dump()

    assert await driver.worker().end(job, verb) == "cancelled"

    assert driver.dump() == before
    assert await driver.worker("w2").complete(holder) == "ok"


@pytest.mark.requirement("S3-17")
async def test_a_claim_that_was_given_up_gives_the_lock_back(driver: Driver) -> None:
    """In jobQ a lock taken for a job that another got is leaked for 1,200 s."""
    job = await _held(driver)
    await driver.worker("w1").beat(gives_up_last_claim=True)
    await driver.advance_with_ticks(LEASE_MS + 1_000, by="w1")

    (again,) = await driver.worker("w2").claim(5)

    assert (again.run, again.counts.handbacks, again.counts.stalls) == (job.run, 1, 0)


@pytest.mark.requirement("S3-10")
async def test_a_refused_lock_leaves_no_key_behind(driver: Driver) -> None:
    """When the lane is empty nothing of it is left."""
    job = await _held(driver)
    (behind,) = await _lane(driver, 1)
    await driver.client.cancel(behind)
    await driver.worker().complete(job)

    assert {key.partition("}:")[2].partition(":")[0] for key in driver.all_keys()}.isdisjoint(
        {"lane", "locks", "locked", "blocked", "pending"}
    )


# --- getting in --------------------------------------------------------------------------------------------------


async def test_a_job_whose_time_comes_while_its_lock_is_held_waits_in_the_lane(driver: Driver) -> None:
    job = await _held(driver)
    (later,) = await _lane(driver, 1, due="+1000")
    assert await _states(driver, later) == ["scheduled"]
    driver.advance(1_000)

    assert await driver.worker("w2").claim() == []

    assert await _states(driver, later) == ["blocked"]
    await driver.worker().complete(job)
    assert await _states(driver, later) == ["pending"]


async def test_a_more_urgent_job_overtakes_one_that_has_yet_to_start(driver: Driver) -> None:
    (plain,) = await _lane(driver, 1)
    (urgent,) = await _lane(driver, 1, priority=-10)

    assert await _states(driver, plain, urgent) == ["blocked", "pending"]
    assert refs_of(await driver.worker().claim(5)) == [urgent.run]


async def test_many_that_fall_due_at_once_enter_in_order(driver: Driver) -> None:
    refs = [ref for priority in (10, 0, -10) for ref in await _lane(driver, 3, due="+1000", priority=priority)]
    driver.advance(1_000)

    found: list[str] = []
    while jobs := await driver.worker().claim(5):
        found += refs_of(jobs)
        await driver.worker().complete(jobs[0])

    assert found == [run_of(ref) for ref in (*refs[6:], *refs[3:6], *refs[:3])]


@pytest.mark.parametrize("place", ["first", "behind"])
async def test_an_update_moves_a_job_to_another_lane(driver: Driver, place: str) -> None:
    """Spec 5: the next run of its lane is released."""
    if place == "behind":
        await _lane(driver, 1, priority=-10)
    moving = await driver.one("x", lock="l")
    (behind,) = await _lane(driver, 1)
    await driver.one(lock="m", priority=-20)

    (made,) = await driver.client.enqueue(QUEUE, [new_job("x", again=Update(), lock="m")])

    assert made.outcome == "updated"
    assert await _states(driver, moving, behind) == ["blocked", "pending" if place == "first" else "blocked"]
    assert moving.run in driver.index("lane", "m")
    assert moving.run not in driver.index("lane", "l")


@pytest.mark.parametrize(("priority", "expected"), [(-10, ["pending", "blocked"]), (10, ["blocked", "pending"])])
async def test_an_update_of_the_priority_changes_the_order_of_the_lane(
    driver: Driver, priority: int, expected: list[str]
) -> None:
    first = await driver.one("x", lock="l")
    (second,) = await _lane(driver, 1)

    await driver.client.enqueue(QUEUE, [new_job("x", again=Update(run_at=False), priority=priority, lock="l")])

    assert await _states(driver, first, second) == expected


async def test_an_update_to_a_later_time_lets_go_of_the_lock(driver: Driver) -> None:
    first = await driver.one("x", lock="l")
    (second,) = await _lane(driver, 1)
    with driver.inbox("idle") as inbox:
        await driver.client.pause_queue(QUEUE, wanted="paused")
        assert await driver.worker("idle").claim() == []
        await driver.client.pause_queue(QUEUE, wanted="open")
        inbox.told()
        await driver.worker("idle").claim(0)
        await driver.client.enqueue(QUEUE, [new_job("x", again=Update(), due="+60000")])

    assert await _states(driver, first, second) == ["scheduled", "pending"]


async def test_an_update_without_a_lock_keeps_the_one_it_has(driver: Driver) -> None:
    await _held(driver)
    ref = await driver.one("x", lock="l")

    await driver.client.enqueue(QUEUE, [new_job("x", again=Update())])

    assert await _states(driver, ref) == ["blocked"]
    assert (await driver.read(ref)).record.options.lock == "l"


async def test_a_job_without_a_lock_may_get_one(driver: Driver) -> None:
    await _held(driver)
    ref = await driver.one("x")

    await driver.client.enqueue(QUEUE, [new_job("x", again=Update(), lock="l")])

    assert await _states(driver, ref) == ["blocked"]


@pytest.mark.parametrize("is_held", [True, False])
async def test_a_redriven_dead_letter_enters_its_lane_again(driver: Driver, is_held: bool) -> None:
    dead = await _held(driver)
    await driver.worker().fail(dead)
    found = (await driver.views.read_runs(QUEUE, [JobRef(QUEUE, "", dead.run)]))[0]
    assert found is not None
    holder = await _held(driver) if is_held else None

    assert await driver.client.redrive(QUEUE, [found.record.ref]) == ["redriven"]

    assert await _states(driver, found.record.ref) == ["blocked" if is_held else "pending"]
    if holder is not None:
        await driver.worker().complete(holder)
    assert refs_of(await driver.worker().claim(5)) == [dead.run]


@pytest.mark.parametrize("which", ["first", "middle", "last"])
@pytest.mark.parametrize("how", ["cancel", "delete", "expire"])
async def test_what_leaves_a_lane_leaves_the_others_their_places(driver: Driver, how: str, which: str) -> None:
    place = {"first": 0, "middle": 1, "last": 2}[which]
    refs = [
        (await _lane(driver, 1, expiry="+1000" if how == "expire" and number == place else ""))[0]
        for number in range(3)
    ]
    gone = refs.pop(place)

    match how:
        case "cancel":
            assert await driver.client.cancel(gone) == "cancelled"
        case "delete":
            assert await driver.client.delete(gone) == "deleted"
        case _:
            driver.advance(1_000)
            await driver.worker().claim(0)

    driver.check()
    found: list[str] = []
    while jobs := await driver.worker().claim(5):
        found += refs_of(jobs)
        await driver.worker().complete(jobs[0])
    assert found == [ref.run for ref in refs]


async def test_what_is_behind_a_purged_job_goes_on(driver: Driver) -> None:
    first, second, third = await _lane(driver, 3)

    assert await driver.client.purge(QUEUE, newest=run_of(first)) == 1

    assert await _states(driver, second, third) == ["pending", "blocked"]


async def test_a_purge_of_lanes_leaves_nothing_but_what_runs(driver: Driver) -> None:
    job = await _held(driver)
    await _lane(driver, 20)
    for number in range(20):
        await driver.enqueue(*[new_job(lock=f"m{number % 3}"), new_job(lock=f"m{number % 3}", due="+1000")])

    while await driver.client.purge(QUEUE, 7):
        driver.check()

    assert driver.counts() == {"processing": 1}
    assert driver.hash("locks") == {"l": job.run}
    assert driver.hash("locked") == {job.run: "l"}
    assert not [key for key in driver.all_keys() if ":lane:" in key]


async def test_a_pause_stops_claims_of_locked_jobs_and_nothing_else(driver: Driver) -> None:
    job = await _held(driver)
    (behind,) = await _lane(driver, 1)
    await driver.client.pause_queue(QUEUE, wanted="paused")

    await driver.worker().complete(job)

    assert await _states(driver, behind) == ["pending"]
    assert await driver.worker().claim() == []


# --- size --------------------------------------------------------------------------------------------------------


async def test_a_thousand_locks_at_once(driver: Driver) -> None:
    first = await driver.enqueue(*[new_job(lock=f"account:{number}") for number in range(1_000)])
    second = await driver.enqueue(*[new_job(lock=f"account:{number}") for number in range(1_000)])
    assert driver.counts() == {"pending": 1_000, "blocked": 1_000}

    for expected in (first, second):
        jobs = [*await driver.worker().claim(500), *await driver.worker().claim(500)]
        assert refs_of(jobs) == [ref.run for ref in expected]
        for start in (0, 500):
            reports = [completed(job) for job in jobs[start : start + 500]]
            assert await driver.client.report(QUEUE, reports) == {}

    assert driver.counts() == {"completed": 2_000}
    assert driver.hash("locks") == driver.hash("locked") == {}


def _calls(driver: Driver) -> int:
    """Commands that the server has carried out, those inside scripts included."""
    stats = cast("dict[str, dict[str, Any]]", driver.redis.info("commandstats"))
    return sum(stat["calls"] for name, stat in stats.items() if "info" not in name and "config" not in name)


async def test_what_a_claim_costs_does_not_grow_with_a_lane(driver: Driver) -> None:
    """Spec 6: a claim meets no run that may not start, so it does as many commands behind 5,000 as behind 5."""
    driver.stop_clock()
    costs: list[int] = []
    await driver.one(lock="l")
    (holder,) = await driver.worker("holder").claim()
    for length in (5, 5_000):
        while len(driver.index("blocked")) < length:
            await driver.enqueue(*[new_job(lock="l", priority=-50)] * min(500, length))
        await driver.enqueue(*[new_job()] * 10)
        before = _calls(driver)
        assert len(await driver.worker().claim(10)) == 10
        costs.append(_calls(driver) - before)

    assert costs[0] == costs[1]
    before = _calls(driver)
    await driver.worker("holder").complete(holder)
    assert _calls(driver) - before < 60
