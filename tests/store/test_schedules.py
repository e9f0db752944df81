"""Schedules in the store: who fires a tick, what a put may change, and what is never done twice."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any, Final, cast

import pytest

from rota.core.ids import JobRef
from rota.core.schedule import Cron, Every, FireDecision, Schedule, ScheduleState, decide, decode_schedule, tick_id
from rota.core.state_transitions import JobState
from rota.errors import StoreFull
from rota.store.keys import Keys
from rota.store.schedules import FireResult, ScheduleStore
from tests.servers import OwnServers
from tests.store.driver import QUEUE, Driver, body, refs_of
from tests.store.late_copies import recorded

MINUTE: Final = 60_000
NAME: Final = "nightly"


def schedule(name: str = NAME, *, rule: Cron | Every | None = None, **changes: Any) -> Schedule:
    """Every minute, unless told otherwise."""
    given: dict[str, Any] = {"body": body({"a": 1}, task="report"), **changes}
    return Schedule(name=name, queue=QUEUE, rule=rule or Every(60), **given)


class Ticker:
    """A worker as far as it ticks. What it has read it acts upon later, as a slow one would."""

    def __init__(self, driver: Driver) -> None:
        self.store = ScheduleStore(driver.redis_client, driver.keys)

    async def put(self, wanted: Schedule) -> str:
        return (await self.store.put(wanted))[0]

    async def look(self) -> list[tuple[Schedule, int, int, FireDecision]]:
        """What it would fire."""
        due = await self.store.due(QUEUE)
        found: list[tuple[Schedule, int, int, FireDecision]] = []
        for stored in due.schedules:
            known, state = decode_schedule(QUEUE, stored.name, stored.record)
            assert stored.tick is not None
            found.append((known, state.revision, stored.tick, decide(known.rule, known.misfire, stored.tick, due.now)))
        return found

    async def tick(self) -> list[FireResult]:
        """Looks, and fires."""
        return [await self.store.fire(*one) for one in await self.look()]

    async def state(self, name: str = NAME) -> ScheduleState:
        return (await self.read(name))[1]

    async def read(self, name: str = NAME) -> tuple[Schedule, ScheduleState, int | None]:
        _, (stored,) = await self.store.read(QUEUE, [name])
        return *decode_schedule(QUEUE, name, stored.record), stored.tick

    async def pause(self, wanted: str, name: str = NAME) -> str:
        now, (stored,) = await self.store.read(QUEUE, [name])
        known, state = decode_schedule(QUEUE, name, stored.record)
        following = known.rule.next_after(now)
        return await self.store.pause(QUEUE, name, wanted=wanted, revision=state.revision, next_tick=following)


@pytest.fixture
def ticker(driver: Driver) -> Ticker:
    return Ticker(driver)


def jobs(driver: Driver) -> list[str]:
    """Ids of all jobs there are, in order."""
    return sorted(driver.hash("ids"))


async def due_once(driver: Driver, ticker: Ticker, **changes: Any) -> int:
    """Puts a schedule and lets its first tick come; that tick."""
    await ticker.put(schedule(**changes))
    tick = (await ticker.read(changes.get("name", NAME)))[2]
    assert tick is not None
    driver.advance(tick - driver.now() + 5)
    return tick


# --- ticking -----------------------------------------------------------------------------------------------------


async def test_a_tick_makes_a_job_under_an_id_that_says_which_tick_it_was(driver: Driver, ticker: Ticker) -> None:
    tick = await due_once(driver, ticker)

    assert await ticker.tick() == [FireResult("fired", 1, 0)]

    assert jobs(driver) == [tick_id(NAME, tick)]
    record = (await driver.read(JobRef(QUEUE, tick_id(NAME, tick)))).record
    assert (record.state, record.task, json.loads(record.arguments)) == (JobState.PENDING, "report", {"a": 1})
    state = await ticker.state()
    assert (state.last_tick, state.last_id, state.fired) == (tick, tick_id(NAME, tick), 1)
    assert (await ticker.read())[2] == tick + MINUTE
    (job,) = await driver.worker().claim()
    assert await driver.worker().complete(job) == "ok"


async def test_a_tick_that_is_not_due_by_the_servers_clock_is_refused_and_changes_nothing(
    driver: Driver, ticker: Ticker
) -> None:
    await ticker.put(schedule())
    known, state, tick = await ticker.read()
    assert tick is not None
    before = driver.dump()

    assert await ticker.tick() == []
    early = await ticker.store.fire(known, state.revision, tick, FireDecision((tick,), 0, tick + MINUTE))

    assert early == FireResult("early")
    assert driver.dump() == before


async def test_a_later_tick_cannot_be_smuggled_in_with_one_that_is_due(driver: Driver, ticker: Ticker) -> None:
    tick = await due_once(driver, ticker)
    known, state, _ = await ticker.read()
    before = driver.dump()

    decision = FireDecision((tick, tick + MINUTE), 0, tick + 2 * MINUTE)

    assert await ticker.store.fire(known, state.revision, tick, decision) == FireResult("early")
    assert driver.dump() == before


async def test_a_tick_sent_twice_is_fired_once(driver: Driver, ticker: Ticker) -> None:
    await due_once(driver, ticker)
    (seen,) = await ticker.look()

    assert (await ticker.store.fire(*seen)).outcome == "fired"
    after = driver.dump()
    assert await ticker.store.fire(*seen) == FireResult("moved")

    assert driver.dump() == after


async def test_of_many_workers_one_fires_each_tick(driver: Driver, ticker: Ticker) -> None:
    await due_once(driver, ticker)
    crowd = [Ticker(driver) for _ in range(12)]
    for _ in range(5):
        seen = [await one.look() for one in crowd]
        fired = await asyncio.gather(*(one.store.fire(*what[0]) for one, what in zip(crowd, seen, strict=True)))
        assert sorted(one.outcome for one in fired) == ["fired", *["moved"] * 11]
        driver.advance(MINUTE)

    assert len(jobs(driver)) == 5


async def test_a_job_of_a_schedule_has_its_priority(driver: Driver, ticker: Ticker) -> None:
    await driver.one("plain")
    tick = await due_once(driver, ticker, priority=-10)
    await ticker.tick()

    (job,) = await driver.worker().claim()

    assert driver.hash("named")[job.run] == tick_id(NAME, tick)


async def test_a_job_of_a_schedule_expires_and_waits_for_its_lock(driver: Driver, ticker: Ticker) -> None:
    tick = await due_once(driver, ticker, body=body(task="report", lock="a"), expiry="+90000")
    await ticker.tick()
    (job,) = await driver.worker().claim()
    driver.advance(MINUTE)
    await driver.worker().beat(job)
    await ticker.tick()
    waiting = JobRef(QUEUE, tick_id(NAME, tick + MINUTE))
    assert await driver.state(waiting) == JobState.BLOCKED

    driver.advance(90_001)
    await driver.worker().claim()

    assert await driver.state(waiting) == JobState.CANCELLED


async def test_a_job_of_a_schedule_wakes_a_worker_that_waits(driver: Driver, ticker: Ticker) -> None:
    await due_once(driver, ticker)
    await driver.worker("w1").claim()

    with driver.inbox("w1") as inbox:
        await ticker.tick()
        assert inbox.told() == [f"wake {QUEUE}"]


async def test_a_tick_whose_job_is_already_there_is_not_run_again(driver: Driver, ticker: Ticker) -> None:
    """As after a failover that lost the advance of the schedule, or when a clock was set back."""
    tick = await due_once(driver, ticker)
    await ticker.tick()
    (job,) = await driver.worker().claim()
    await driver.worker().complete(job)
    driver.redis.zadd(driver.key("schedule_due"), {NAME: tick})

    assert await ticker.tick() == [FireResult("fired", 0, 0)]

    assert driver.counts() == {"completed": 1}
    assert (await ticker.read())[2] == tick + MINUTE


async def test_a_rule_without_another_tick_waits_for_nothing(driver: Driver, ticker: Ticker) -> None:
    await due_once(driver, ticker)
    ((known, revision, tick, _),) = await ticker.look()

    assert (await ticker.store.fire(known, revision, tick, FireDecision((tick,), 0, None))).outcome == "fired"

    assert (await ticker.read())[2] is None
    driver.advance(MINUTE)
    assert await ticker.tick() == []


async def test_a_full_server_refuses_a_tick_and_it_is_fired_later(own_server: OwnServers, namespace: str) -> None:
    driver = Driver(own_server(), namespace, patience=0.5)
    ticker = Ticker(driver)
    await due_once(driver, ticker)
    driver.redis.config_set("maxmemory", 1)

    with pytest.raises(StoreFull):
        await ticker.tick()
    driver.redis.config_set("maxmemory", 0)

    assert await ticker.tick() == [FireResult("fired", 1, 0)]
    await driver.close()


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_happens_in_whatever_order_no_tick_runs_early_or_twice(
    driver: Driver, ticker: Ticker, seed: int
) -> None:
    """Workers act upon what they saw long ago, while time passes and the schedule is changed under their eyes."""
    chance = random.Random(seed)
    rules = (Every(60), Every(90), Cron("*/2 * * * *", "Asia/Kolkata"))
    await ticker.put(schedule(misfire="all"))
    seen: list[tuple[Schedule, int, int, FireDecision]] = []
    made = 0
    for _ in range(60):
        match chance.choice(("advance", "look", "look", "fire", "fire", "fire", "put", "pause", "resume")):
            case "advance":
                driver.advance(chance.randrange(5 * MINUTE))
            case "look":
                seen += await ticker.look()
            case "fire" if seen:
                one = chance.choice(seen)
                before = driver.now()
                fired = await ticker.store.fire(*one)
                made += fired.made
                assert fired.outcome in ("fired", "moved", "changed")
                assert fired.outcome != "fired" or max(one[3].run) <= before
            case "put":
                arguments = body({"a": chance.randrange(3)}, task="report")
                await ticker.put(schedule(rule=chance.choice(rules), misfire="all", body=arguments))
            case "pause" | "resume" as verb:
                await ticker.pause("paused" if verb == "pause" else "open")
            case _:
                pass

    # An id names its tick, and a run for each: none was made over another.
    assert len(jobs(driver)) == len(driver.hash("named")) == made
    assert (await ticker.state()).fired == made
    assert all(job <= tick_id(NAME, driver.now() // 1000 * 1000) for job in jobs(driver))


async def test_a_damaged_schedule_does_not_fire_and_is_repaired_by_a_put(driver: Driver, ticker: Ticker) -> None:
    await due_once(driver, ticker)
    (seen,) = await ticker.look()
    driver.redis.hset(driver.key("schedules"), NAME, "not JSON\n{}\n{}\n\nt\n[]")

    assert await ticker.store.fire(*seen) == FireResult("changed")
    assert await ticker.store.run(seen[0], seen[1], "by-hand") == "missing"
    assert await ticker.put(schedule()) == "made"

    driver.advance(MINUTE)
    assert await ticker.tick() == [FireResult("fired", 1, 0)]


# --- missed ticks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("misfire", "made", "dropped"), [("once", 1, 500), ("all", 100, 401), ("skip", 1, 500)])
async def test_what_was_missed_is_run_as_the_policy_says_and_the_rest_is_said(
    driver: Driver, ticker: Ticker, misfire: str, made: int, dropped: int
) -> None:
    tick = await due_once(driver, ticker, misfire=misfire)
    driver.advance(500 * MINUTE)

    assert await ticker.tick() == [FireResult("fired", made, 0)]

    state = await ticker.state()
    assert (state.dropped, state.fired, state.last_tick) == (dropped, made, tick + 500 * MINUTE)
    assert jobs(driver)[-1] == tick_id(NAME, tick + 500 * MINUTE)
    assert await ticker.tick() == []


async def test_a_skipped_misfire_makes_no_job_but_goes_on(driver: Driver, ticker: Ticker) -> None:
    tick = await due_once(driver, ticker, rule=Every(3600), misfire="skip")
    driver.advance(30 * MINUTE)

    assert await ticker.tick() == [FireResult("fired", 0, 0)]

    state = await ticker.state()
    assert (state.dropped, state.last_tick) == (1, None)
    assert (await ticker.read())[2] == tick + 60 * MINUTE
    assert jobs(driver) == []


async def test_a_year_of_seconds_is_caught_up_with_in_one_call(driver: Driver, ticker: Ticker) -> None:
    await due_once(driver, ticker, rule=Every(1), misfire="all")
    driver.advance(365 * 24 * 3_600_000)

    assert await ticker.tick() == [FireResult("fired", 100, 0)]
    assert (await ticker.state()).dropped >= 365 * 24 * 3600 - 100


# --- overlap -----------------------------------------------------------------------------------------------------


async def test_with_overlap_skip_no_job_is_made_while_the_one_before_has_not_ended(
    driver: Driver, ticker: Ticker
) -> None:
    await due_once(driver, ticker, overlap="skip")
    worker = driver.worker()
    await ticker.tick()

    driver.advance(MINUTE)  # it waits
    assert await ticker.tick() == [FireResult("fired", 0, 1)]
    (job,) = await worker.claim()
    driver.advance(MINUTE)  # it is being processed
    await worker.beat(job)
    assert await ticker.tick() == [FireResult("fired", 0, 1)]
    await worker.fail(job, "+600000")
    driver.advance(MINUTE)  # it waits for its next attempt
    assert await ticker.tick() == [FireResult("fired", 0, 1)]
    driver.advance(10 * MINUTE)
    (job,) = await worker.claim()
    await driver.client.cancel(JobRef(QUEUE, (await ticker.state()).last_id))
    assert await ticker.tick() == [FireResult("fired", 0, 1)], "it is cancelled, but its handler has yet to stop"
    await worker.hand_back(job)
    driver.advance(MINUTE)

    assert await ticker.tick() == [FireResult("fired", 1, 0)]
    state = await ticker.state()
    assert (state.skipped, state.fired) == (4, 2)


async def test_a_tick_that_was_skipped_is_not_the_last_run(driver: Driver, ticker: Ticker) -> None:
    tick = await due_once(driver, ticker, overlap="skip")
    await ticker.tick()
    driver.advance(MINUTE)
    await ticker.tick()

    state = await ticker.state()

    assert (state.last_tick, state.last_id) == (tick, tick_id(NAME, tick))


async def test_with_overlap_skip_a_run_asked_for_by_hand_counts_too(driver: Driver, ticker: Ticker) -> None:
    await due_once(driver, ticker, overlap="skip")
    known, state, _ = await ticker.read()
    await ticker.store.run(known, state.revision, "by-hand")

    assert await ticker.tick() == [FireResult("fired", 0, 1)]


async def test_with_overlap_queue_jobs_line_up(driver: Driver, ticker: Ticker) -> None:
    tick = await due_once(driver, ticker)
    for _ in range(3):
        await ticker.tick()
        driver.advance(MINUTE)

    claimed = await driver.worker().claim(5)

    assert [driver.hash("named")[run] for run in refs_of(claimed)] == [
        tick_id(NAME, tick + at * MINUTE) for at in range(3)
    ]


async def test_missed_ticks_and_overlap_skip_make_one_job(driver: Driver, ticker: Ticker) -> None:
    await due_once(driver, ticker, overlap="skip", misfire="all")
    driver.advance(9 * MINUTE)

    assert await ticker.tick() == [FireResult("fired", 1, 9)]


# --- putting -----------------------------------------------------------------------------------------------------


async def test_the_same_again_changes_nothing_and_a_missed_tick_stays_missed(driver: Driver, ticker: Ticker) -> None:
    assert await ticker.put(schedule()) == "made"
    driver.advance(90 * MINUTE)
    before = driver.dump("reply")

    assert await ticker.put(schedule()) == "same"

    assert driver.dump("reply") == before
    assert len(await ticker.look()) == 1


async def test_other_arguments_or_policies_keep_the_next_tick(driver: Driver, ticker: Ticker) -> None:
    tick = await due_once(driver, ticker)

    assert await ticker.put(schedule(body=body({"a": 2}, task="report"), overlap="skip")) == "changed"

    assert (await ticker.read())[2] == tick
    await ticker.tick()
    assert json.loads((await driver.read(JobRef(QUEUE, tick_id(NAME, tick)))).record.arguments) == {"a": 2}


async def test_another_rule_has_its_own_next_tick_from_now_on(driver: Driver, ticker: Ticker) -> None:
    await due_once(driver, ticker)

    assert await ticker.put(schedule(rule=Cron("0 3 * * *", "Europe/Oslo"))) == "changed"

    following = (await ticker.read())[2]
    assert following == Cron("0 3 * * *", "Europe/Oslo").next_after(driver.now())
    assert await ticker.tick() == []


async def test_older_code_never_overwrites_a_newer_version(driver: Driver, ticker: Ticker) -> None:
    assert await ticker.put(schedule(version=2)) == "made"
    before = driver.dump("reply")

    assert await ticker.store.put(schedule(version=1, rule=Every(5))) == ("older", 2)

    assert driver.dump("reply") == before
    assert await ticker.put(schedule(version=2, rule=Every(30))) == "changed"
    assert await ticker.put(schedule(version=3, rule=Every(30))) == "changed"
    assert (await ticker.state()).version == 3


async def test_who_read_a_schedule_before_it_was_changed_does_not_fire_it(driver: Driver, ticker: Ticker) -> None:
    await due_once(driver, ticker)
    (seen,) = await ticker.look()
    await ticker.put(schedule(body=body({"a": 2}, task="report")))
    before = driver.dump()

    assert await ticker.store.fire(*seen) == FireResult("changed")

    assert driver.dump() == before
    assert await ticker.tick() == [FireResult("fired", 1, 0)]


async def test_a_put_tells_workers_that_wait_and_workers_at_work(driver: Driver, ticker: Ticker) -> None:
    await driver.one()
    (job,) = await driver.worker("busy").claim()
    await driver.worker("busy").beat(job)
    await driver.worker("idle").claim()

    with driver.inbox("busy") as busy, driver.inbox("idle") as idle:
        await ticker.put(schedule())
        assert busy.told() == idle.told() == [f"schedules {QUEUE}"]
        await ticker.put(schedule())
        assert busy.told() == idle.told() == []
        await ticker.pause("paused")
        assert busy.told() == []
        await ticker.pause("open")
        assert busy.told() == idle.told() == [f"schedules {QUEUE}"]


# --- pausing, removing, by hand ----------------------------------------------------------------------------------


async def test_a_paused_schedule_does_not_tick_and_goes_on_from_when_it_is_resumed(
    driver: Driver, ticker: Ticker
) -> None:
    await due_once(driver, ticker)
    (seen,) = await ticker.look()

    assert await ticker.pause("paused") == "paused"
    assert await ticker.store.fire(*seen) == FireResult("moved")
    driver.advance(10 * MINUTE)
    assert await ticker.tick() == []
    assert await ticker.pause("open") == "open"

    assert await ticker.tick() == [], "what came meanwhile was not wanted"
    assert (await ticker.read())[2] == Every(60).next_after(driver.now())
    driver.advance(MINUTE)
    assert await ticker.tick() == [FireResult("fired", 1, 0)]


@pytest.mark.parametrize("rule", [Every(60), Every(30)])
async def test_a_put_leaves_a_paused_schedule_paused(driver: Driver, ticker: Ticker, rule: Every) -> None:
    await ticker.put(schedule())
    await ticker.pause("paused")

    await ticker.put(schedule(rule=rule, version=2))
    driver.advance(10 * MINUTE)

    assert await ticker.tick() == []
    assert (await ticker.state()).is_paused


async def test_pausing_twice_is_harmless_and_what_was_changed_must_be_read_again(
    driver: Driver, ticker: Ticker
) -> None:
    await ticker.put(schedule())
    _, state, _ = await ticker.read()
    assert await ticker.pause("paused") == await ticker.pause("paused") == "paused"

    stale = await ticker.store.pause(QUEUE, NAME, wanted="open", revision=state.revision, next_tick=1)

    assert stale == "changed"
    assert await ticker.store.pause(QUEUE, "other", wanted="open", revision=1, next_tick=1) == "missing"
    assert driver.index("schedule_due") == {}


@pytest.mark.parametrize("newer", ["put", "remove"])
async def test_a_put_that_arrives_late_reverts_nothing(driver: Driver, ticker: Ticker, newer: str) -> None:
    with recorded(driver) as recording:
        await ticker.put(schedule())
    if newer == "put":
        await ticker.put(schedule(rule=Every(30)))
    else:
        await ticker.store.remove(QUEUE, NAME)
    before = driver.dump()

    await recording.send_again("put_schedule")

    assert driver.dump() == before


@pytest.mark.parametrize(("late", "newer"), [("paused", "open"), ("open", "paused")])
async def test_a_pause_that_arrives_late_reverts_nothing(driver: Driver, ticker: Ticker, late: str, newer: str) -> None:
    await ticker.put(schedule())
    await ticker.pause(newer)
    with recorded(driver) as recording:
        await ticker.pause(late)
    await ticker.pause(newer)
    before = driver.dump()

    assert await recording.send_again("pause_or_resume_schedule") == late.encode()

    assert driver.dump() == before


async def test_a_removed_schedule_is_gone_and_its_jobs_stay(driver: Driver, ticker: Ticker) -> None:
    await due_once(driver, ticker)
    (seen,) = await ticker.look()
    await ticker.tick()

    assert await ticker.store.remove(QUEUE, NAME)
    assert not await ticker.store.remove(QUEUE, NAME)

    assert (await ticker.store.read(QUEUE, [NAME]))[1] == []
    assert await ticker.store.fire(*seen) == FireResult("moved")
    assert len(jobs(driver)) == 1
    assert driver.index("schedule_due") == {}


async def test_a_run_by_hand_changes_no_tick_and_works_while_it_is_paused(driver: Driver, ticker: Ticker) -> None:
    await ticker.put(schedule())
    tick = (await ticker.read())[2]
    known, state, _ = await ticker.read()

    run = await ticker.store.run(known, state.revision, "by-hand")

    assert (await driver.read(JobRef(QUEUE, "by-hand"))).record.ref.run == run
    assert (await ticker.read())[2] == tick
    assert await ticker.store.run(known, state.revision, "by-hand") == "in_use"
    await ticker.pause("paused")
    assert await ticker.store.run(known, state.revision, "again") == "changed"
    assert len(await ticker.store.run(known, state.revision + 1, "again")) == 9
    await ticker.store.remove(QUEUE, NAME)
    assert await ticker.store.run(known, state.revision + 1, "more") == "missing"


async def test_a_removal_and_a_run_by_hand_sent_twice_say_what_the_first_one_did(
    driver: Driver, ticker: Ticker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ticker.put(schedule())
    known, state, _ = await ticker.read()
    monkeypatch.setattr("rota.store.schedules.secrets.token_hex", lambda _bytes: "token")  # pyright: ignore[reportUnknownLambdaType]

    first = await ticker.store.run(known, state.revision, "by-hand")
    assert await ticker.store.run(known, state.revision, "by-hand") == first
    driver.redis.delete(driver.key("reply", "token"))
    assert await ticker.store.remove(QUEUE, NAME)
    assert await ticker.store.remove(QUEUE, NAME)


async def test_schedules_are_read_in_batches_and_due_ones_up_to_a_bound(driver: Driver, ticker: Ticker) -> None:
    for number in range(130):
        await ticker.put(schedule(f"s{number:03}"))
    driver.advance(MINUTE)

    names = await ticker.store.names(QUEUE)
    _, found = await ticker.store.read(QUEUE, [*names, "missing"])
    due = await ticker.store.due(QUEUE)

    assert [stored.name for stored in found] == [f"s{number:03}" for number in range(130)]
    assert len(due.schedules) == 100
    await ticker.tick()
    assert len(await ticker.tick()) == 30
    assert await ticker.store.queues() == [QUEUE]


def test_the_keys_of_schedules_share_the_slot_of_their_queue() -> None:
    keys = Keys("rota")

    assert {keys.queue("mail", name).partition("}")[0] for name in ("schedules", "schedule_due", "pending")} == {
        "rota:{mail"
    }


async def test_times_are_stored_as_whole_numbers(driver: Driver, ticker: Ticker) -> None:
    tick = await due_once(driver, ticker)
    await ticker.tick()
    driver.advance(MINUTE)
    await ticker.tick()

    record = cast(bytes, driver.redis.hget(driver.key("schedules"), NAME)).split(b"\n")[0].decode()

    assert f'"last_tick":{tick + MINUTE}' in record


async def test_jobs_of_ticks_and_of_manual_runs_are_distinguished_from_others(driver: Driver) -> None:
    ticker = Ticker(driver)
    await ticker.put(schedule(overlap="skip"))
    for _ in range(2):
        driver.advance(MINUTE)
        await ticker.tick()
    known, state, _ = await ticker.read()
    made = await ticker.store.run(known, state.revision, "by-hand")
    (first,) = [run for run in driver.index("pending") if run != made]

    assert driver.events()[1:] == [
        ("enqueue", first),
        ("fire_schedule", NAME),
        ("fire_schedule", NAME),  # skipped: the job before has not ended
        ("enqueue", made),
        ("run_schedule_now", NAME),
    ]
