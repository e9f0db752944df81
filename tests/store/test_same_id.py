"""The same id again: what waits is changed in place, what runs gets one follow-up, what has ended starts afresh."""

from __future__ import annotations

from typing import Any, Final

import pytest

from rota.core.dependencies import checked_parents
from rota.core.ids import JobRef
from rota.core.job_options import Keep, Options
from rota.core.job_record import JobRecord
from rota.core.job_record_codec import encode_options
from rota.core.lua_constants import MERGED_KEPT
from rota.core.retry import Fixed, Retry
from rota.core.same_id_policy import Ignore, OnSameId, Reject, Update
from rota.core.state_transitions import JobState
from rota.store.claim_replies import ClaimedJob
from rota.store.create_dependents_and_deliver_outcomes import JobWithParents
from rota.store.enqueue_batcher import EnqueueResult
from rota.store.job_store import LEASE_MS
from tests.store.driver import ENDS, QUEUE, Driver, body, new_job, ref_of, run_of

HOUR: Final = 3_600_000
DEFAULT: Final = Update()
WAITING: Final = ("scheduled", "backoff", "pending", "lane", "dependency", "follow-up")
BUSY: Final = ("processing", "cancelled and stopping", "deleted and stopping")
ENDED: Final = ("completed", "failed", "cancelled", "unknown")

OLD: Final[dict[str, Any]] = {
    "priority": 0,
    "timeout_ms": 1_000,
    "retry": Retry(5, Fixed(1)),
    "max_stalls": 5,
    "tags": ("old",),
    "meta": {"a": 1},
}
NEW: Final[dict[str, Any]] = {
    "priority": -10,
    "timeout_ms": 2_000,
    "retry": Retry(7, Fixed(2)),
    "max_stalls": 7,
    "tags": ("new",),
    "meta": {"b": 2},
}
FLAGS: Final = (
    DEFAULT,
    Update(data=False),
    Update(retry=False),
    Update(retry={"attempts"}),
    Update(retry={"backoff"}),
    Update(max_stalls=False),
    Update(options=False),
    Update(data=False, retry=False, max_stalls=False, options=False, run_at=False),
)
each_flags = pytest.mark.parametrize("flags", FLAGS, ids=lambda flags: flags.flags or "none")


class Stage:
    """A queue in which id `x` is in a given state."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.worker = driver.worker()
        self.parents: tuple[JobRef, ...] = ()
        self.claimed: ClaimedJob | None = None

    async def set(self, state: str, *, due: str = "", **options: Any) -> JobRef:
        """Brings x into that state; the run that the id means."""
        driver, given = self.driver, {**OLD, **options}
        match state:
            case "scheduled":
                return await driver.one("x", arguments=["old"], due=due or "+60000", **given)
            case "backoff":
                ref = await self.set("processing", **options)
                await self.worker.fail(self.job, due or "+60000")
                return ref
            case "pending":
                return await driver.one("x", arguments=["old"], due=due, **given)
            case "lane":
                await driver.one("holder", lock="l")
                await self.worker.claim()
                return await driver.one("x", arguments=["old"], due=due, **{"lock": "l", **given})
            case "dependency":
                self.parents = (await driver.one("parent", due="+9000000"),)
                return await driver.after(*self.parents, id="x", arguments=["old"], due=due, **given)
            case "follow-up":
                await self.set("processing", **options)
                return ref_of(await self.again(DEFAULT, arguments=["old"], due=due, **given))
            case "unknown":
                return JobRef(QUEUE, "x", "000000000")
            case _:
                ref = await driver.one("x", arguments=["old"], **given)
                (self.claimed,) = await self.worker.claim()
                await self._end(state, ref)
                return ref

    @property
    def job(self) -> ClaimedJob:
        assert self.claimed is not None
        return self.claimed

    async def again(self, flags: OnSameId, *, arguments: object = ("new",), **options: Any) -> EnqueueResult:
        """Enqueues x again."""
        after = tuple(map(str, self.parents))
        job = new_job("x", arguments, again=flags, after=after, **{**NEW, **options})
        if self.parents:
            (made,) = await self.driver.ties.enqueue_dependents(
                QUEUE, [JobWithParents(job, checked_parents(self.parents))]
            )
        else:
            (made,) = await self.driver.client.enqueue(QUEUE, [job])
        return made

    async def _end(self, state: str, ref: JobRef) -> None:
        client = self.driver.client
        match state:
            case "completed":
                await self.worker.complete(self.job)
            case "failed":
                await self.worker.fail(self.job)
            case "cancelled":
                await self.worker.give_up(self.job)
            case "cancelled and stopping":
                assert await client.cancel(ref) == "stopping"
            case "deleted and stopping":
                assert await client.delete(ref) == "stopping"
            case _:
                assert state == "processing"


@pytest.fixture
def stage(driver: Driver) -> Stage:
    return Stage(driver)


def _has(record: JobRecord, flags: Update, old: dict[str, Any], new: dict[str, Any]) -> None:
    """The record has of the new job what the flags say, and of the old one the rest."""
    parts = {"attempts", "backoff"} if flags.retry is True else set(flags.retry or ())
    data, general = (new if flags.data else old), (new if flags.options else old)
    assert record.arguments == (b'["new"]' if flags.data else b'["old"]')
    assert (record.options.tags, record.options.meta) == (data["tags"], data["meta"])
    assert (record.options.priority, record.options.timeout_ms) == (general["priority"], general["timeout_ms"])
    assert record.options.retry.attempts == (new if "attempts" in parts else old)["retry"].attempts
    assert record.options.retry.backoff == (new if "backoff" in parts else old)["retry"].backoff
    assert record.options.max_stalls == (new if flags.max_stalls else old)["max_stalls"]


# --- the table: flags and states ---------------------------------------------------------------------------------


@pytest.mark.requirement("S4-8", "S4-9", "S4-11")
@each_flags
@pytest.mark.parametrize("state", WAITING)
async def test_what_waits_is_changed_by_the_flags_and_never_doubled(stage: Stage, state: str, flags: Update) -> None:
    ref = await stage.set(state)
    before = stage.driver.counts()

    made = await stage.again(flags)

    assert made == EnqueueResult("x", run_of(ref), "updated")
    _has((await stage.driver.read(ref)).record, flags, OLD, NEW)
    assert sum(stage.driver.counts().values()) == sum(before.values())


@pytest.mark.requirement("S4-10")
@pytest.mark.parametrize("is_later", [True, False], ids=["later", "earlier"])
@pytest.mark.parametrize("run_at", [True, False, "if_later", "if_earlier"])
@pytest.mark.parametrize("state", WAITING)
async def test_the_time_of_what_waits_is_replaced_as_run_at_says(
    stage: Stage, state: str, run_at: Any, is_later: bool
) -> None:
    now = stage.driver.now()
    old_due = now + (HOUR if state in ("scheduled", "backoff") else -60_000)
    ref = await stage.set(state, due=str(old_due))
    new_due = old_due + (HOUR if is_later else -30_000)

    await stage.again(Update(run_at=run_at), due=str(new_due))

    is_replaced = run_at is True or run_at == ("if_later" if is_later else "if_earlier")
    due = new_due if is_replaced else old_due
    record = (await stage.driver.read(ref)).record
    assert record.due_at == due
    if state in ("dependency", "follow-up"):
        assert record.state is JobState.BLOCKED
    elif due > now:
        assert record.state is JobState.SCHEDULED
    else:
        assert record.state is (JobState.BLOCKED if state == "lane" else JobState.PENDING)


@pytest.mark.requirement("S4-10")
@pytest.mark.parametrize("run_at", [True, False, "if_later", "if_earlier"])
@pytest.mark.parametrize("state", ENDED)
async def test_what_has_ended_or_never_was_starts_afresh_whatever_the_flags(
    stage: Stage, state: str, run_at: Any
) -> None:
    """All four also make the entry where the id is absent; spec 5."""
    old = await stage.set(state)
    flags = Update(data=False, run_at=run_at, retry=False, max_stalls=False, options=False, reset_counts=False)

    made = await stage.again(flags)

    assert made.is_new
    assert made.run > run_of(old)
    record = (await stage.driver.read(ref_of(made))).record
    assert (record.state, record.arguments) == (JobState.PENDING, b'["new"]')
    assert record.options.retry == NEW["retry"]
    assert (await stage.worker.claim())[0].run == made.run


@pytest.mark.requirement("S4-26", "S4-27")
@each_flags
@pytest.mark.parametrize("state", BUSY)
async def test_what_is_at_work_gets_a_follow_up_whatever_the_flags(stage: Stage, state: str, flags: Update) -> None:
    """Q 2.4: with the default run_at, which is now, it is not picked up while the first one runs."""
    ref = await stage.set(state)

    made = await stage.again(flags)

    assert made.is_new
    assert made.run > run_of(ref)
    record = (await stage.driver.read(ref_of(made))).record
    assert (record.state, record.arguments) == (JobState.BLOCKED, b'["new"]')
    assert record.obstacle is not None
    assert record.obstacle.kind == "same_id"
    assert await stage.worker.claim(5) == []
    assert (await stage.driver.read(JobRef(QUEUE, "x"))).record.ref.run == made.run


@pytest.mark.parametrize("flags", [Ignore(), Reject()], ids=["ignore", "reject"])
@pytest.mark.parametrize("state", [*WAITING, *BUSY])
async def test_ignore_and_reject_leave_the_unfinished_run_alone(stage: Stage, state: str, flags: OnSameId) -> None:
    """Spec 5: the caller receives the run."""
    ref = await stage.set(state)
    before = stage.driver.dump("last_reply")

    made = await stage.again(flags)

    assert made == EnqueueResult("x", run_of(ref), "in_use")
    assert stage.driver.dump("last_reply") == before


@pytest.mark.parametrize("flags", [Ignore(), Reject()], ids=["ignore", "reject"])
@pytest.mark.parametrize("state", ENDED)
async def test_ignore_and_reject_make_a_job_where_none_is_unfinished(stage: Stage, state: str, flags: OnSameId) -> None:
    await stage.set(state)

    assert (await stage.again(flags)).is_new


# --- refusals ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [*WAITING, "processing", "cancelled and stopping"])
async def test_another_task_is_refused_and_changes_nothing(stage: Stage, state: str) -> None:
    ref = await stage.set(state)
    after = tuple(map(str, stage.parents))
    before = stage.driver.dump("last_reply")

    (made,) = await stage.driver.client.enqueue(QUEUE, [new_job("x", task="other", again=DEFAULT, after=after)])

    assert made == EnqueueResult("x", run_of(ref), "task")
    assert stage.driver.dump("last_reply") == before


@pytest.mark.parametrize("state", [*WAITING, "processing", "cancelled and stopping", "deleted and stopping"])
async def test_another_after_is_refused_and_changes_nothing(stage: Stage, state: str) -> None:
    """Also behind a deleted run: its follow-up would start without having waited for what it comes after."""
    ref = await stage.set(state)
    other = await stage.driver.one("other", due="+9000000")
    stage.parents = (other,)
    before = stage.driver.dump("last_reply", "meta")

    made = await stage.again(DEFAULT)

    assert made == EnqueueResult("x", run_of(ref), "after")
    assert stage.driver.dump("last_reply", "meta") == before


async def test_a_job_that_comes_after_others_may_not_be_made_one_that_does_not(stage: Stage) -> None:
    ref = await stage.set("dependency")
    stage.parents = ()
    before = stage.driver.dump("last_reply")

    assert await stage.again(DEFAULT) == EnqueueResult("x", run_of(ref), "after")

    assert stage.driver.dump("last_reply") == before


async def test_a_damaged_record_is_refused_and_the_rest_of_the_batch_is_made(stage: Stage) -> None:
    """Spec 4: one bad record must not stop a queue."""
    ref = await stage.set("pending")
    stage.driver.redis.hset(stage.driver.key("jobs"), run_of(ref), "=x 1\nnonsense")

    made = await stage.driver.client.enqueue(QUEUE, [new_job("a"), new_job("x", again=DEFAULT), new_job("b")])

    assert [one.outcome for one in made] == ["made", "task", "made"]


# --- counts ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S4-12")
@pytest.mark.parametrize(
    ("flags", "is_reset"),
    [
        (Update(), True),
        (Update(data=False), False),
        (Update(reset_counts=False), False),
        (Update(data=False, reset_counts=True), True),
    ],
    ids=lambda value: getattr(value, "flags", str(value)),
)
async def test_counts_of_waiting_jobs_restart_with_new_data_unless_kept(
    stage: Stage, flags: Update, is_reset: bool
) -> None:
    ref = await stage.set("processing")
    await stage.worker.lose(stage.job)
    (job,) = await stage.worker.claim()
    await stage.worker.fail(job, "+60000")

    await stage.again(flags)

    counts = (await stage.driver.read(ref)).record.counts
    assert (counts.attempt, counts.failures, counts.stalls) == ((2, 0, 0) if is_reset else (2, 1, 1))


# --- follow-ups --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S4-27", "S4-28")
async def test_ten_re_adds_make_one_follow_up(stage: Stage) -> None:
    await stage.set("processing")

    made = [await stage.again(DEFAULT, arguments=[number]) for number in range(10)]

    assert [one.outcome for one in made] == ["made", *["updated"] * 9]
    assert len({one.run for one in made}) == 1
    assert stage.driver.counts() == {"processing": 1, "blocked": 1}
    assert (await stage.driver.read(ref_of(made[0]))).record.arguments == b"[9]"


async def test_re_adds_in_one_batch_make_one_follow_up(stage: Stage) -> None:
    await stage.set("processing")

    made = await stage.driver.client.enqueue(QUEUE, [new_job("x", [n], again=DEFAULT) for n in range(10)])

    assert [one.outcome for one in made] == ["made", *["updated"] * 9]
    assert stage.driver.counts() == {"processing": 1, "blocked": 1}


async def test_what_is_remembered_of_a_follow_up_does_not_grow_with_the_re_adds(stage: Stage) -> None:
    ref = await stage.set("processing")
    await stage.again(DEFAULT)
    once = stage.driver.hash("follow_ups")[run_of(ref)]

    for _ in range(20):
        await stage.again(DEFAULT)

    assert stage.driver.hash("follow_ups")[run_of(ref)] == once


ENDINGS: Final = (
    "complete",
    "fail for good",
    "give up",
    "cancelled and stopped",
    "deleted and stopped",
    "cancelled and lease out",
    "deleted and lease out",
    "stalled too often",
)


async def _end_it(stage: Stage, ref: JobRef, ending: str) -> None:
    driver = stage.driver
    if ending in ENDS:
        await stage.worker.end(stage.job, ending)
    elif ending == "stalled too often":
        await stage.worker.lose(stage.job)
    else:
        verb, _, rest = ending.partition(" and ")
        act = driver.client.cancel if verb == "cancelled" else driver.client.delete
        assert await act(ref) == "stopping"
        assert await stage.worker.claim(5) == [], "it has yet to stop"
        if rest == "stopped":
            assert await stage.worker.complete(stage.job) == "cancelled"
        else:
            await driver.advance_with_ticks(LEASE_MS + 1_000)


@pytest.mark.requirement("S4-29", "S4-31")
@pytest.mark.parametrize("run_at", [True, False, "if_later", "if_earlier"])
@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_follow_up_starts_when_the_running_one_has_ended(stage: Stage, ending: str, run_at: Any) -> None:
    """Q 2.4: also with run_at=False and "if_earlier", where queasy leaves it blocked."""
    ref = await stage.set("processing", max_stalls=0)
    made = await stage.again(Update(run_at=run_at))
    assert await stage.worker.claim(5) == []

    await _end_it(stage, ref, ending)

    (job,) = await stage.worker.claim(5)
    assert job.run == made.run
    assert job.counts.attempt == 1
    assert stage.driver.hash("follow_ups") == stage.driver.hash("follows") == {}
    assert await stage.worker.complete(job) == "ok"


@pytest.mark.requirement("S4-29")
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("keep", [0, 3600])
async def test_a_follow_up_waits_for_its_own_time(stage: Stage, ending: str, keep: int) -> None:
    """Released at its own run_at, whatever is kept of the first."""
    ref = await stage.set("processing", max_stalls=0, keep=Keep(finished=keep, failed=keep))
    made = await stage.again(DEFAULT, due="+60000")

    await _end_it(stage, ref, ending)

    assert await stage.worker.claim() == []
    assert await stage.driver.state(ref_of(made)) is JobState.SCHEDULED
    stage.driver.advance(61_000)
    assert (await stage.worker.claim())[0].run == made.run


async def test_an_idle_worker_is_woken_for_a_released_follow_up(stage: Stage) -> None:
    await stage.set("processing")
    await stage.again(DEFAULT)
    with stage.driver.inbox("w2") as inbox:
        assert await stage.driver.worker("w2").claim() == []
        await stage.worker.complete(stage.job)
        assert inbox.told() == [f"wake {QUEUE}"]


@pytest.mark.requirement("S4-13")
@pytest.mark.parametrize("how", ["cancel", "delete", "expire", "purge"])
@pytest.mark.parametrize("id", ["x", ""], ids=["chosen", "made up"])
async def test_a_follow_up_that_is_no_more_leaves_its_id_to_the_running_one(driver: Driver, how: str, id: str) -> None:
    """A follow-up counts as waiting. Then the next re-add makes another, and still nothing overlaps."""
    holder = await driver.one(id)
    (job,) = await driver.worker().claim()
    again = new_job(holder.id, again=DEFAULT, expiry="+1000" if how == "expire" else "")
    (first,) = await driver.client.enqueue(QUEUE, [again])

    match how:
        case "cancel":
            assert await driver.client.cancel(JobRef(QUEUE, holder.id), reach="waiting") == "cancelled"
        case "delete":
            assert await driver.client.delete(JobRef(QUEUE, holder.id)) == "deleted"
        case "expire":
            driver.advance(1_000)
            assert await driver.worker("w2").claim() == []
        case _:
            assert await driver.client.purge(QUEUE) == 1

    assert driver.hash("follow_ups") == {}
    assert (await driver.read(JobRef(QUEUE, holder.id))).record.ref == holder
    (second,) = await driver.client.enqueue(QUEUE, [new_job(holder.id, again=DEFAULT)])
    assert second.is_new
    assert second.run > first.run
    assert await driver.worker("w2").claim(5) == [], "two runs of one id never overlap"
    await driver.worker().complete(job)
    assert [found.run for found in await driver.worker("w2").claim(5)] == [second.run]


@pytest.mark.parametrize("id", ["x", ""], ids=["chosen", "made up"])
async def test_re_adds_behind_a_run_that_was_deleted_still_make_one_follow_up(driver: Driver, id: str) -> None:
    holder = await driver.one(id)
    (job,) = await driver.worker().claim()
    (first,) = await driver.client.enqueue(QUEUE, [new_job(holder.id, again=DEFAULT)])
    assert await driver.client.delete(holder) == "stopping"

    (second,) = await driver.client.enqueue(QUEUE, [new_job(holder.id, again=DEFAULT)])

    assert second == EnqueueResult(holder.id, first.run, "updated")
    assert await driver.worker().complete(job) == "cancelled"
    assert [found.run for found in await driver.worker().claim(5)] == [first.run]
    driver.check()


async def test_a_made_up_id_that_is_chosen_again_means_its_run(driver: Driver) -> None:
    ref = await driver.one(due="+60000")

    (made,) = await driver.client.enqueue(QUEUE, [new_job(ref.id, [7], again=DEFAULT)])

    assert made == EnqueueResult(ref.id, run_of(ref), "updated")
    assert (await driver.read(ref)).record.arguments == b"[7]"
    assert await driver.state(ref) is JobState.PENDING


async def test_a_made_up_id_that_runs_gets_a_follow_up_and_takes_it_in(driver: Driver) -> None:
    ref = await driver.one()
    worker = driver.worker()
    (job,) = await worker.claim()
    (made,) = await driver.client.enqueue(QUEUE, [new_job(ref.id, [7], again=DEFAULT)])

    await worker.fail(job, "")

    assert (await driver.read(JobRef(QUEUE, ref.id))).record.ref == ref
    assert (await driver.read(ref_of(made))).record.ref == ref
    (job,) = await worker.claim(5)
    assert job.run == ref.run
    assert not (await driver.client.enqueue(QUEUE, [new_job(ref.id)]))[0].is_new


async def test_a_dead_letter_stays_when_its_id_is_used_again(stage: Stage) -> None:
    """Spec 5: as `id@run`."""
    dead = await stage.set("failed")

    made = await stage.again(DEFAULT)

    assert await stage.driver.state(dead) is JobState.FAILED
    assert (await stage.driver.read(JobRef(QUEUE, "x"))).record.ref == ref_of(made)
    assert await stage.driver.client.redrive(QUEUE, [dead]) == ["in_use"]


# --- merging -----------------------------------------------------------------------------------------------------

COMES_BACK: Final = ("fail", "snooze", "stall", "reap", "hand back")


async def _comes_back(stage: Stage, how: str, again: str = "+60000") -> None:
    match how:
        case "fail":
            await stage.worker.fail(stage.job, again)
        case "snooze":
            await stage.worker.snooze(stage.job, again)
        case "stall":
            await stage.worker.lose(stage.job)
        case "reap":
            await stage.driver.advance_with_ticks(LEASE_MS + 1_000)
            await stage.driver.worker("w2").claim(0)
        case _:
            await stage.worker.hand_back(stage.job)


@pytest.mark.requirement("S4-30", "S4-28")
@each_flags
@pytest.mark.parametrize("how", COMES_BACK)
async def test_a_follow_up_merges_by_its_flags_into_a_run_that_comes_back(
    stage: Stage, how: str, flags: Update
) -> None:
    """The result is one waiting run."""
    ref = await stage.set("processing")
    made = await stage.again(flags)

    await _comes_back(stage, how)

    assert sum(stage.driver.counts().values()) == 1
    record = (await stage.driver.read(ref)).record
    _has(record, flags, OLD, NEW)
    assert record.state is (JobState.SCHEDULED if how in ("fail", "snooze") else JobState.PENDING)
    assert (await stage.driver.read(ref_of(made))).record.ref == ref, "a handle on the follow-up still resolves"
    assert (await stage.driver.read(JobRef(QUEUE, "x"))).record.ref == ref
    stage.driver.advance(60_000)
    (job,) = await stage.worker.claim(5)
    assert job.run == ref.run
    place = stage.driver.hash("runs")[run_of(ref)].split(" ")[4]
    assert int(place) // 2**42 == (NEW if flags.options else OLD)["priority"]


@pytest.mark.requirement("S4-30")
@pytest.mark.parametrize("is_later", [True, False], ids=["later", "earlier"])
@pytest.mark.parametrize("run_at", [True, False, "if_later", "if_earlier"])
@pytest.mark.parametrize("how", ["fail", "snooze"])
async def test_a_merged_run_starts_at_the_later_of_backoff_and_new_time(
    stage: Stage, how: str, run_at: Any, is_later: bool
) -> None:
    """The new time does not override the backoff."""
    now = stage.driver.now()
    backoff, wanted = now + 60_000, now + (HOUR if is_later else 1_000)
    ref = await stage.set("processing")
    await stage.again(Update(run_at=run_at), due=str(wanted))

    await _comes_back(stage, how, str(backoff))

    is_used = is_later and run_at in (True, "if_later")
    assert (await stage.driver.read(ref)).record.due_at == (wanted if is_used else backoff)


@pytest.mark.parametrize("how", ["stall", "reap", "hand back"])
async def test_a_run_that_comes_back_at_once_waits_for_the_time_of_its_follow_up(stage: Stage, how: str) -> None:
    ref = await stage.set("processing")
    due = stage.driver.now() + HOUR
    await stage.again(DEFAULT, due=str(due))

    await _comes_back(stage, how)

    record = (await stage.driver.read(ref)).record
    assert (record.state, record.due_at) == (JobState.SCHEDULED, due)


@pytest.mark.requirement("S4-12")
@pytest.mark.parametrize(
    ("flags", "failures"),
    [
        (Update(), 1),
        (Update(data=False), 1),
        (Update(reset_counts=False), 1),
        (Update(reset_counts=True), 0),
        (Update(data=False, reset_counts=True), 0),
    ],
    ids=lambda value: getattr(value, "flags", str(value)),
)
async def test_merging_resets_counts_only_where_that_was_asked_for_by_name(
    stage: Stage, flags: Update, failures: int
) -> None:
    ref = await stage.set("processing")
    await stage.again(flags)

    await stage.worker.fail(stage.job, "")

    assert (await stage.driver.read(ref)).record.counts.failures == failures


@pytest.mark.requirement("S4-12")
async def test_a_job_that_re_adds_itself_and_keeps_failing_reaches_its_limit(stage: Stage) -> None:
    """With default flags it would never, were the counts reset with the data."""
    ref = await stage.set("processing")
    for attempt in range(1, 5):
        await stage.again(DEFAULT, retry=Retry(5))
        assert stage.job.counts.failures == attempt - 1
        await stage.worker.fail(stage.job, "")
        (stage.claimed,) = await stage.worker.claim(5)
    assert (stage.job.run, stage.job.counts.failures) == (ref.run, 4)
    last = await stage.again(DEFAULT)
    await stage.worker.fail(stage.job)

    assert await stage.driver.state(ref) is JobState.FAILED
    assert [job.run for job in await stage.worker.claim(5)] == [last.run]


async def test_a_job_that_re_adds_itself_and_keeps_stalling_reaches_its_limit(stage: Stage) -> None:
    ref = await stage.set("processing", max_stalls=2)
    for _ in range(2):
        await stage.again(DEFAULT, max_stalls=2)
        await stage.worker.lose(stage.job)
        (stage.claimed,) = await stage.worker.claim(5)
    await stage.worker.lose(stage.job)

    assert await stage.driver.state(ref) is JobState.FAILED


async def test_what_any_of_several_re_adds_asked_for_is_merged(stage: Stage) -> None:
    ref = await stage.set("processing")
    nothing = {"retry": False, "max_stalls": False, "options": False, "run_at": False}
    await stage.again(Update(data=True, **nothing), arguments=[1])
    await stage.again(Update(data=False, **{**nothing, "max_stalls": True}), arguments=[2], max_stalls=9)

    await stage.worker.fail(stage.job, "")

    record = (await stage.driver.read(ref)).record
    assert (record.arguments, record.options.max_stalls) == (b"[1]", 9)
    assert record.options.retry == OLD["retry"]


@pytest.mark.parametrize("verb", ["cancel", "delete", "complete"])
async def test_a_handle_on_a_merged_follow_up_means_the_run_that_took_it_in(stage: Stage, verb: str) -> None:
    ref = await stage.set("processing")
    handle = ref_of(await stage.again(DEFAULT))
    with stage.driver.inbox("client") as inbox:
        assert await stage.driver.client.watch(handle) == (handle.run, False)
        await stage.worker.fail(stage.job, "")
        assert inbox.told() == [f"ended {QUEUE} {handle.run}"], "it must look again"
        assert await stage.driver.client.watch(handle) == (ref.run, False)
        match verb:
            case "cancel":
                assert await stage.driver.client.cancel(handle) == "cancelled"
            case "delete":
                assert await stage.driver.client.delete(handle) == "deleted"
                assert not await stage.driver.exists(handle)
                assert stage.driver.hash("merged_into") == stage.driver.hash("merged_from") == {}
            case _:
                (job,) = await stage.worker.claim()
                await stage.worker.complete(job, b'"r"')
                assert (await stage.driver.read(handle)).record.result == b'"r"'
        assert inbox.told() == [f"ended {QUEUE} {ref.run}"]


async def test_what_merged_is_forgotten_with_the_run_that_took_it_in(stage: Stage) -> None:
    await stage.set("processing")
    for _ in range(3):
        await stage.again(DEFAULT)
        await stage.worker.fail(stage.job, "")
        (stage.claimed,) = await stage.worker.claim(5)
    await stage.worker.complete(stage.job)
    assert len(stage.driver.hash("merged_into")) == 3

    stage.driver.advance(HOUR)
    await stage.driver.client.apply_retention(QUEUE)

    assert stage.driver.hash("merged_into") == stage.driver.hash("merged_from") == stage.driver.hash("jobs") == {}


async def test_what_is_remembered_of_merged_follow_ups_is_bounded(driver: Driver) -> None:
    """A job may enqueue its own id and snooze without end. Those that other jobs depend on are kept."""
    ref, worker, merged, child = await driver.one("x"), driver.worker(), list[JobRef](), None
    for _ in range(MERGED_KEPT + 20):
        (job,) = await worker.claim()
        (made,) = await driver.client.enqueue(QUEUE, [new_job("x", again=DEFAULT)])
        merged.append(ref_of(made))
        child = child or await driver.after(merged[0])
        await worker.snooze(job, "")

    known = [one for one in merged if await driver.exists(one)]

    assert known == [merged[0], *merged[-MERGED_KEPT + 1 :]]
    assert driver.hash("merged_into").keys() == {one.run for one in known}
    driver.check()
    (job,) = await worker.claim()
    assert job.run == ref.run
    await worker.complete(job)
    await driver.post()
    assert await driver.state(child or ref) is JobState.PENDING
    driver.check()


@pytest.mark.parametrize("how", COMES_BACK)
async def test_a_follow_up_that_must_start_in_time_does_not_expire_once_it_has_merged(stage: Stage, how: str) -> None:
    ref = await stage.set("processing")
    await stage.again(DEFAULT, expiry="+1000000")

    await _comes_back(stage, how)

    assert stage.driver.index("expiring") == {}
    assert await stage.driver.exists(ref)


async def test_merging_into_another_lock_moves_to_that_lane(stage: Stage) -> None:
    """Spec 5: a new lock moves it to that lane."""
    ref = await stage.set("processing", lock="old")
    behind = await stage.driver.one("behind", lock="old")
    await stage.driver.one("holder", lock="new")
    (holder,) = await stage.driver.worker("w2").claim()
    await stage.again(DEFAULT, lock="new")

    await stage.worker.fail(stage.job, "")

    assert await stage.driver.state(behind) is JobState.PENDING
    assert await stage.driver.state(ref) is JobState.BLOCKED
    assert [job.run for job in await stage.worker.claim(5)] == [behind.run]
    await stage.driver.worker("w2").complete(holder)
    assert [job.run for job in await stage.worker.claim(5)] == [ref.run]


async def test_a_damaged_record_that_stalls_does_not_stop_the_queue(stage: Stage) -> None:
    """Q 2.4: one zombie must not poison every claim of its queue."""
    ref = await stage.set("processing")
    await stage.again(DEFAULT)
    stage.driver.redis.hset(stage.driver.key("jobs"), run_of(ref), "=x 1\nnonsense")
    other = await stage.driver.one("other", due="+1000")

    await _comes_back(stage, "reap")

    assert {job.run for job in await stage.worker.claim(5)} == {ref.run, other.run}


# --- the defects of queasy ---------------------------------------------------------------------------------------


async def test_an_evicted_workers_late_finish_touches_nothing_of_the_new_owner(stage: Stage) -> None:
    """Q 2.4: nor of the follow-up, which stays behind the new owner."""
    ref = await stage.set("processing")
    late = stage.job
    await stage.driver.advance_with_ticks(LEASE_MS + 1_000)
    (job,) = await stage.driver.worker("w2").claim()
    assert job.run == ref.run
    made = await stage.again(DEFAULT)
    before = stage.driver.dump()

    for verb in ENDS:
        assert await stage.worker.end(late, verb) == "lease_lost"

    assert stage.driver.dump() == before
    assert await stage.driver.worker("w2").complete(job) == "ok"
    assert [found.run for found in await stage.worker.claim(5)] == [made.run]


async def test_after_a_late_finish_the_queue_goes_on_and_its_sweep_too(stage: Stage) -> None:
    """Q 2.4: there the next sweep raises on the missing record, for every client, every time."""
    ref = await stage.set("processing")
    await stage.driver.advance_with_ticks(LEASE_MS + 1_000)
    (again,) = await stage.driver.worker("w2").claim()
    await stage.worker.complete(stage.job)
    await stage.driver.advance_with_ticks(LEASE_MS + 1_000)

    (third,) = await stage.driver.worker("w3").claim()

    assert again.run == third.run == ref.run
    assert third.counts.stalls == 2
    await stage.driver.client.apply_retention(QUEUE)
    assert await stage.driver.worker("w3").complete(third) == "ok"


# --- lifetimes ---------------------------------------------------------------------------------------------------


async def test_an_update_may_give_and_take_a_time_to_have_started_by(stage: Stage) -> None:
    ref = await stage.set("pending")
    await stage.again(DEFAULT, expiry="+1000")
    assert stage.driver.index("expiring").keys() == {ref.run}
    await stage.again(Update(options=False), expiry="")
    assert stage.driver.index("expiring").keys() == {ref.run}

    await stage.again(DEFAULT)

    assert stage.driver.index("expiring") == {}


async def test_an_updated_run_that_has_started_before_does_not_expire(stage: Stage) -> None:
    await stage.set("backoff")

    await stage.again(DEFAULT, expiry="+1000")

    assert stage.driver.index("expiring") == {}


async def test_options_are_written_as_a_new_job_would_have_them(stage: Stage) -> None:
    """What an update leaves reads, and weighs, as if it had been asked for at once."""
    ref = await stage.set("pending")

    await stage.again(DEFAULT)

    stored = stage.driver.hash("jobs")[run_of(ref)].partition("\n")[2]
    assert stored.encode() == body(["new"], **NEW)
    assert encode_options(Options(**NEW)).decode() == stored.split("\n")[0]


async def test_calls_beyond_the_greatest_wait_do_not_retry_a_failed_job_early_or_postpone_it(driver: Driver) -> None:
    again, worker = Update(run_at="if_later", max_wait=60), driver.worker()
    await driver.one("k", again=again, due="+5000")
    await driver.advance_with_ticks(5_000)
    (job,) = await worker.claim()
    await driver.advance_with_ticks(56_000)
    await worker.fail(job, "+600000")
    retry_at = driver.index("scheduled")

    for due in ("+5000", "+5000", "+900000"):
        await driver.client.enqueue(QUEUE, [new_job("k", again=again, due=due)])
        assert await worker.claim() == []
        assert driver.index("scheduled") == retry_at
