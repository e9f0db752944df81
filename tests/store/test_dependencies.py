"""Dependencies: a job starts when those it comes after have succeeded, wherever they live and whoever dies."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from statistics import median
from typing import Any, Final, cast

import pytest

from rota.core.after import Parent, checked_parents, known, may_fail
from rota.core.job import JobRef, Keep
from rota.core.same_id import Update
from rota.core.states import JobState
from rota.errors import JobNotFound
from rota.store.bounds import LEASE_MS
from rota.store.door import Made
from rota.store.gateway import Argument, Call
from rota.store.reports import Claimed
from rota.store.scripts import script
from rota.store.store import Store
from rota.store.ties import HOLD_MS, SLICE, Edge, Tied, Ties
from tests.store.driver import CLOCK, HISTORY, QUEUE, Driver, completed, failed, new_job, ref_of, refs_of, run_of

OTHER: Final = "other"
THIRD: Final = "third"
QUEUES: Final = (QUEUE, OTHER, THIRD)
DAY: Final = 24 * 3_600_000


@pytest.fixture(autouse=True)
async def _every_queue_agrees_with_itself(driver: Driver) -> AsyncIterator[None]:
    yield
    for queue in QUEUES:
        driver.check(queue=queue)


async def _claim(driver: Driver, ref: JobRef, worker: str = "w1") -> Claimed:
    """Claims that very run, which is the first of its queue."""
    (job,) = await driver.worker(worker).claim(queue=ref.queue)
    assert job.run == ref.run
    return job


async def _state(driver: Driver, *refs: JobRef) -> list[str]:
    return [(await driver.state(ref)).value for ref in refs]


async def _complete(driver: Driver, ref: JobRef) -> None:
    assert await driver.worker().complete(await _claim(driver, ref)) == "ok"


async def _fail(driver: Driver, ref: JobRef) -> None:
    assert await driver.worker().fail(await _claim(driver, ref)) == "ok"


async def _redrive(driver: Driver, ref: JobRef) -> None:
    assert await driver.client.redrive(ref.queue, [ref]) == ["redriven"]


# --- success -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("queue", [QUEUE, OTHER])
async def test_a_job_starts_when_all_it_comes_after_have_completed(driver: Driver, queue: str) -> None:
    """S2-13, S2-14: also where they live in other queues, which on a cluster are other nodes."""
    parents = [await driver.one(queue=QUEUE), await driver.one(queue=OTHER), await driver.one(queue=THIRD)]
    child = await driver.after(*parents, queue=queue)

    for parent in parents:
        assert await _state(driver, child) == ["blocked"]
        await _complete(driver, parent)
        await driver.post(parent.queue)

    assert await _state(driver, child) == ["pending"]
    await _complete(driver, child)
    for name in ("needs", "heirs", "dooms"):
        assert not [key for key in driver.all_keys() if f":{name}:" in key]
    for found in QUEUES:
        assert driver.members("parents", queue=found) == driver.members("tied", queue=found) == set()


async def test_a_blocked_job_says_what_it_waits_for(driver: Driver) -> None:
    parents = [await driver.one(), await driver.one(queue=OTHER)]
    child = await driver.after(*parents)

    obstacle = (await driver.read(child)).record.obstacle

    assert obstacle is not None
    assert (obstacle.kind, obstacle.count, set(obstacle.jobs)) == ("after", 2, {str(parent) for parent in parents})


async def test_a_job_after_completed_ones_starts_at_once(driver: Driver) -> None:
    """S2-15: in the seed it waits for ever."""
    parent = await driver.one(queue=OTHER)
    await _complete(driver, parent)

    child = await driver.after(parent)

    assert await _state(driver, child) == ["pending"]
    assert driver.members("parents", queue=OTHER) == set()


async def test_a_bare_id_means_the_newest_run_of_then(driver: Driver) -> None:
    """Spec 1: dependencies pin a run."""
    parent = await driver.one("p")
    child = await driver.after("q:p")
    await _complete(driver, parent)
    newer = await driver.one("p")

    await driver.post()

    assert await _state(driver, child, newer) == ["pending", "pending"]


async def test_a_dependency_that_retries_or_comes_back_releases_nobody(driver: Driver) -> None:
    """Spec 7."""
    parent = await driver.one()
    child = await driver.after(parent)
    worker = driver.worker()
    for verb in ("fail", "snooze", "hand back", "lose"):
        await worker.end(await _claim(driver, parent), verb)
        await driver.post()
        assert await _state(driver, child) == ["blocked"]

    await _complete(driver, parent)
    await driver.post()

    assert await _state(driver, child) == ["pending"]


async def test_an_idle_worker_of_the_childs_queue_hears_that_it_may_start(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)
    await driver.after(parent)
    job = await _claim(driver, parent)
    with driver.inbox("idle") as inbox, driver.inbox("courier") as courier:
        assert await driver.worker("idle").claim() == []
        assert await driver.worker("courier").claim(queue=OTHER) == []
        await driver.worker().complete(job)
        assert courier.told() == [f"wake {OTHER}"], "somebody must carry the news"
        assert (await driver.worker("courier").claims(queue=OTHER)).has_news
        await driver.post(OTHER)
        assert inbox.told() == [f"wake {QUEUE}"]
        assert not (await driver.worker("courier").claims(queue=OTHER)).has_news


# --- the other ends ----------------------------------------------------------------------------------------------

ENDINGS: Final = (
    "failed",
    "given up",
    "stalled too often",
    "cancelled waiting",
    "cancelled at work",
    "cancelled, lease out",
    "deleted waiting",
    "deleted at work",
    "deleted, lease out",
    "expired",
    "purged",
)


async def _end(driver: Driver, parent: JobRef, ending: str) -> None:
    """Ends a pending parent that way; whoever comes after it must not have heard before its handler stopped."""
    client, worker = driver.client, driver.worker()
    match ending:
        case "completed":
            await _complete(driver, parent)
        case "failed":
            await _fail(driver, parent)
        case "given up":
            await worker.give_up(await _claim(driver, parent))
        case "stalled too often":
            await worker.lose(await _claim(driver, parent))
        case "cancelled waiting":
            assert await client.cancel(parent) == "cancelled"
        case "deleted waiting":
            assert await client.delete(parent) == "deleted"
        case "expired":
            driver.advance(5_000)
            assert await worker.claim(queue=parent.queue) == []
        case "purged":
            assert await client.purge(parent.queue) == 1
        case _:
            job = await _claim(driver, parent)
            act = client.cancel if ending.startswith("cancelled") else client.delete
            assert await act(parent) == "stopping"
            await driver.post(parent.queue)
            assert driver.index("outbox", queue=parent.queue) == {}
            if ending.endswith("at work"):
                assert await worker.complete(job) == "cancelled"
            else:
                await driver.advance_with_ticks(1_000)
                for _ in range(5):
                    driver.advance(1_500)
                    await worker.claim(0, queue=parent.queue)


@pytest.mark.parametrize("keep", [0, 3600])
@pytest.mark.parametrize("ending", ["completed", *ENDINGS])
@pytest.mark.parametrize("tie", ["must succeed", "may fail"])
async def test_every_end_of_a_parent_resolves_its_dependents(driver: Driver, ending: str, tie: str, keep: int) -> None:
    """S2-16: undefined in the seed, where such a job waits for ever; however briefly the parent is kept."""
    parent = await driver.one(
        "p", queue=OTHER, max_stalls=0, expiry="+5000" if ending == "expired" else "", keep=Keep(keep, failed=keep)
    )
    child = await driver.after(may_fail(parent) if tie == "may fail" else parent)
    if ending in ("completed", "failed"):
        job, keeping = await _claim(driver, parent), Keep(keep, failed=keep)
        end = driver.worker().complete if ending == "completed" else driver.worker().fail
        assert await end(job, keep=keeping) == "ok"
    else:
        await _end(driver, parent, ending)
    await driver.post(OTHER)

    if ending == "completed" or tie == "may fail":
        assert await _state(driver, child) == ["pending"]
    else:
        found = (await driver.read(child)).record
        assert found.state is JobState.CANCELLED
        assert str(parent) in found.reason
    assert driver.index("outbox", queue=OTHER) == {}


@pytest.mark.parametrize("ending", ["failed", "given up", "cancelled waiting"])
async def test_a_job_after_one_that_can_no_longer_succeed_is_cancelled_at_once(driver: Driver, ending: str) -> None:
    parent = await driver.one(queue=OTHER)
    await _end(driver, parent, ending)

    child, brave = await driver.after(parent), await driver.after(may_fail(parent))

    assert await _state(driver, child, brave) == ["cancelled", "pending"]


async def test_what_comes_after_a_cancelled_job_is_cancelled_too_and_so_on(driver: Driver) -> None:
    """Spec 7: transitively, across queues."""
    first = await driver.one()
    second = await driver.after(first, queue=OTHER)
    third = await driver.after(second, queue=THIRD)
    brave = await driver.after(may_fail(second), queue=THIRD)
    fourth = await driver.after(third, queue=QUEUE)

    await _fail(driver, first)
    await driver.post()

    assert await _state(driver, second, third, fourth) == ["cancelled"] * 3
    assert await _state(driver, brave) == ["pending"]
    assert str(second) in (await driver.read(third)).record.reason


# --- unknown parents ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unknown", ["q:nobody", "other:nobody", "other:p@000000009", "nowhere:p"])
async def test_a_job_after_an_unknown_one_is_refused_and_leaves_nothing(driver: Driver, unknown: str) -> None:
    """Spec 7."""
    parents = [await driver.one("p"), await driver.one("p", queue=OTHER)]
    await driver.one("held", lock="l")
    before = driver.dump("calls", "meta")

    with pytest.raises(JobNotFound):
        await driver.after(*parents, unknown, id="x", lock="l", expiry="+1000")

    assert driver.dump("calls", "meta") == before


async def test_a_refusal_leaves_the_others_of_its_batch_alone_too(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)
    await driver.after(parent, id="x")
    named, unknown = checked_parents([parent]), checked_parents(["q:nobody"])
    wanted = [
        Tied(new_job("x", [7], again=Update(), after=tuple(map(str, named))), named),
        Tied(new_job("y", after=tuple(map(str, named))), named),
        Tied(new_job("z", after=tuple(map(str, unknown))), unknown),
    ]
    before = driver.dump("calls", "meta")

    with pytest.raises(JobNotFound):
        await driver.ties.enqueue(QUEUE, wanted)

    assert driver.dump("calls", "meta") == before


async def test_a_refusal_leaves_other_dependents_of_the_parents_alone(driver: Driver) -> None:
    parent = await driver.one()
    child = await driver.after(parent)
    before = driver.dump("calls", "meta")

    with pytest.raises(JobNotFound):
        await driver.after(parent, "q:nobody")

    assert driver.dump("calls", "meta") == before
    await _complete(driver, parent)
    await driver.post()
    assert await _state(driver, child) == ["pending"]


async def test_a_refusal_leaves_nothing_at_a_parent_that_has_failed(driver: Driver) -> None:
    parent = await driver.one()
    child = await driver.after(parent)
    await _fail(driver, parent)
    await driver.post()
    await driver.client.delete(child)
    before = driver.dump("calls", "meta")

    with pytest.raises(JobNotFound):
        await driver.after(parent, "q:nobody")

    assert driver.dump("calls", "meta") == before
    await driver.client.delete(parent)


async def test_a_job_that_is_gone_counts_as_completed_where_that_is_said(driver: Driver) -> None:
    parent = await driver.one()

    child = await driver.after(parent, known("q:gone", if_gone="satisfied"))

    assert await _state(driver, child) == ["blocked"]
    await _complete(driver, parent)
    await driver.post()
    assert await _state(driver, child) == ["pending"]


async def test_a_known_job_that_is_kept_counts_as_it_stands(driver: Driver) -> None:
    parent = await driver.one()
    await _fail(driver, parent)

    assert await _state(driver, await driver.after(known(parent, if_gone="satisfied"))) == ["cancelled"]


# --- redrive -----------------------------------------------------------------------------------------------------


async def test_a_redrive_brings_back_what_the_failure_had_cancelled_transitively(driver: Driver) -> None:
    """Spec 7."""
    first = await driver.one()
    second = await driver.after(first, queue=OTHER, lock="l")
    third = await driver.after(second, queue=THIRD, due="+1000000")
    await _fail(driver, first)
    await driver.post()
    assert await _state(driver, second, third) == ["cancelled"] * 2

    await _redrive(driver, first)
    await driver.post()

    assert await _state(driver, second, third) == ["blocked"] * 2
    await _complete(driver, first)
    await driver.post()
    await _complete(driver, second)
    await driver.post(OTHER)
    assert await _state(driver, third) == ["scheduled"]


async def test_a_redrive_brings_back_what_was_made_after_the_failure(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)
    await _fail(driver, parent)
    child = await driver.after(parent)

    await _redrive(driver, parent)
    await driver.post(OTHER)

    assert await _state(driver, child) == ["blocked"]
    await _complete(driver, parent)
    await driver.post(OTHER)
    assert await _state(driver, child) == ["pending"]


async def test_failing_and_redriving_again_and_again_ends_well(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent)
    for _ in range(3):
        await _fail(driver, parent)
        await driver.post(OTHER)
        assert await _state(driver, child) == ["cancelled"]
        await _redrive(driver, parent)
        await driver.post(OTHER)
        assert await _state(driver, child) == ["blocked"]
    await _complete(driver, parent)
    await driver.post(OTHER)

    await _complete(driver, child)


@pytest.mark.parametrize("id", ["x", ""], ids=["chosen", "made up"])
@pytest.mark.parametrize("newer", ["pending", "completed"])
async def test_a_redrive_does_not_bring_back_a_run_whose_id_has_a_newer_one(
    driver: Driver, id: str, newer: str
) -> None:
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent, id=id)
    await _fail(driver, parent)
    await driver.post(OTHER)
    new = await driver.one(child.id)
    if newer == "completed":
        await _complete(driver, new)

    await _redrive(driver, parent)
    await driver.post(OTHER)

    assert await _state(driver, child, new) == ["cancelled", newer]


@pytest.mark.parametrize("when", ["before the failure", "after a redrive"])
async def test_a_redrive_does_not_bring_back_what_a_user_cancelled(driver: Driver, when: str) -> None:
    parent = await driver.one()
    child = await driver.after(parent)
    if when == "after a redrive":
        await _fail(driver, parent)
        await driver.post()
        await _redrive(driver, parent)
        await driver.post()
    assert await driver.client.cancel(child) == "cancelled"
    await _fail(driver, parent)
    await driver.post()

    await _redrive(driver, parent)
    await driver.post()

    assert await _state(driver, child) == ["cancelled"]


async def test_a_redrive_does_not_bring_back_what_expired(driver: Driver) -> None:
    parent = await driver.one()
    child = await driver.after(parent, expiry="+1000")
    driver.advance(1_000)
    await _fail(driver, parent)
    await driver.post()

    await _redrive(driver, parent)
    await driver.post()

    assert await _state(driver, child) == ["cancelled"]


async def test_what_a_redrive_brings_back_must_still_start_in_time(driver: Driver) -> None:
    """Spec 3: not started for the first time by then, it is cancelled with that reason; also one whose time is over."""
    parent = await driver.one("p")
    soon = await driver.after(parent, expiry="+60000", queue=OTHER)
    late = await driver.after(parent, expiry="+180000", queue=OTHER)
    for wait in (30_000, 60_000, 120_000):
        await driver.worker().fail(await _claim(driver, parent))
        await driver.post()
        driver.advance(wait)
        await _redrive(driver, parent)
        await driver.post()
        await driver.worker().claim(0, queue=OTHER)

        is_over = wait > 30_000, wait > 60_000
        assert await _state(driver, soon, late) == ["cancelled" if over else "blocked" for over in is_over]
    for ref in (soon, late):
        assert (await driver.read(ref)).record.reason == "expired: it had not started in time"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_a_run_that_two_failures_hold_back_returns_with_the_redrive_of_both(
    driver: Driver, order: tuple[int, int]
) -> None:
    parents = [await driver.one(), await driver.one(queue=OTHER)]
    child = await driver.after(*parents)
    for parent in parents:
        await _fail(driver, parent)
        await driver.post(parent.queue)

    for at, expected in zip(order, ("cancelled", "blocked"), strict=True):
        await _redrive(driver, parents[at])
        await driver.post(parents[at].queue)
        assert await _state(driver, child) == [expected]


async def test_a_run_that_a_cancelled_parent_holds_back_stays_cancelled(driver: Driver) -> None:
    failing, cancelled = await driver.one(), await driver.one(due="+1000000")
    child = await driver.after(failing, cancelled)
    await _fail(driver, failing)
    await driver.client.cancel(cancelled)
    await driver.post()

    await _redrive(driver, failing)
    await driver.post()

    assert await _state(driver, child) == ["cancelled"]


async def test_what_completed_meanwhile_is_not_waited_for_again_after_a_redrive(driver: Driver) -> None:
    failing, other = await driver.one(), await driver.one(queue=OTHER)
    child = await driver.after(failing, other)
    await _fail(driver, failing)
    await driver.post()
    await _complete(driver, other)
    await driver.post(OTHER)

    await _redrive(driver, failing)
    await driver.post()
    await _complete(driver, failing)
    await driver.post()

    assert await _state(driver, child) == ["pending"]


async def test_a_redriven_parent_that_completes_before_its_news_was_told_releases_what_it_had_cancelled(
    driver: Driver,
) -> None:
    """The news that it had been redriven is overtaken, and must not be missed for that."""
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent)
    grandchild = await driver.after(child, queue=THIRD)
    await _fail(driver, parent)
    await driver.post(OTHER)
    assert await _state(driver, child, grandchild) == ["cancelled", "cancelled"]
    await _redrive(driver, parent)
    await _complete(driver, parent)

    await driver.post(OTHER)

    assert await _state(driver, child, grandchild) == ["pending", "blocked"]


async def test_a_redrive_that_overtakes_the_news_of_the_failure_cancels_nobody(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent)
    await _fail(driver, parent)
    await _redrive(driver, parent)

    await driver.post(OTHER)

    assert await _state(driver, child) == ["blocked"]


@pytest.mark.parametrize("made", ["before", "after"])
async def test_what_a_failure_cancelled_is_kept_for_as_long_as_the_dead_letter(driver: Driver, made: str) -> None:
    """Spec 3: what a redrive still needs is never trimmed; at any distance."""
    first = await driver.one()
    children: list[JobRef] = []

    async def add() -> None:
        children.append(await driver.after(first, queue=OTHER))
        children.append(await driver.after(children[-1], queue=THIRD))
        children.append(await driver.after(children[-1], queue=QUEUE))

    if made == "before":
        await add()
    await _fail(driver, first)
    await driver.post()
    if made == "after":
        await add()
    driver.advance(29 * DAY)
    for queue in QUEUES:
        await driver.client.sweep(queue)
    assert await _state(driver, *children) == ["cancelled"] * 3

    await _redrive(driver, first)
    await driver.post()

    assert await _state(driver, *children) == ["blocked"] * 3


async def test_what_a_failure_cancelled_is_forgotten_soon_after_the_dead_letter(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent)
    await _fail(driver, parent)
    await driver.post(OTHER)

    driver.advance(31 * DAY)
    for queue in (QUEUE, OTHER):
        await driver.client.sweep(queue)

    assert not await driver.exists(parent)
    assert not await driver.exists(child)
    left = {key.partition("}:")[2].partition(":")[0] for key in driver.all_keys()}
    assert left <= {"meta", "events", "calls", "idle", "beats", "call"} | HISTORY


async def test_what_a_cancelled_job_cancelled_is_kept_by_its_own_rule(driver: Driver) -> None:
    parent = await driver.one(due="+100000")
    child = await driver.after(parent)
    await driver.client.cancel(parent)
    await driver.post()

    driver.advance(3_600_000)
    await driver.client.sweep(QUEUE)

    assert not await driver.exists(child)


async def test_a_deleted_dependent_is_not_brought_back(driver: Driver) -> None:
    parent = await driver.one()
    child = await driver.after(parent)
    grandchild = await driver.after(child)
    await _fail(driver, parent)
    await driver.post()
    assert await driver.client.delete(child) == "deleted"

    await _redrive(driver, parent)
    await driver.post()

    assert not await driver.exists(child)
    assert await _state(driver, grandchild) == ["cancelled"]


async def test_the_death_of_a_dead_letter_leaves_its_dependents_cancelled(driver: Driver) -> None:
    parent = await driver.one()
    child = await driver.after(parent)
    await _fail(driver, parent)

    await driver.client.delete(parent)
    await driver.post()

    assert await _state(driver, child) == ["cancelled"]
    assert driver.members("parents") == set()


# --- news --------------------------------------------------------------------------------------------------------


async def _deliver(driver: Driver, *messages: tuple[JobRef, JobRef, str, str]) -> None:
    """News by hand: dependent, parent, number, outcome."""
    words: list[Argument] = [QUEUE, driver.keys.inbox_prefix]
    for child, parent, number, outcome in messages:
        words += (run_of(child), str(parent), number, outcome, "")
    await driver.gateway.run("deliver", driver.client.script_keys("deliver", QUEUE), words)


@pytest.mark.parametrize("outcome", ["completed", "failed", "cancelled", "deleted", "waiting"])
async def test_late_or_repeated_news_changes_nothing(driver: Driver, outcome: str) -> None:
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent)
    for _ in range(2):
        await _fail(driver, parent)
        await driver.post(OTHER)
        await _redrive(driver, parent)
        await driver.post(OTHER)
    before = driver.dump()
    (need,) = driver.hash("needs", run_of(child)).values()

    for number in range(int(need[1:]) + 1):
        await _deliver(driver, (child, parent, str(number), outcome))

    assert driver.dump() == before


@pytest.mark.parametrize("outcome", ["completed", "failed", "waiting"])
async def test_news_for_one_who_has_started_or_is_gone_changes_nothing(driver: Driver, outcome: str) -> None:
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent)
    await _complete(driver, parent)
    await driver.post(OTHER)
    await _claim(driver, child)
    before = driver.dump()

    await _deliver(driver, (child, parent, "99", outcome), (JobRef(QUEUE, "x", "0000000zz"), parent, "1", outcome))

    assert driver.dump() == before


class Steps:
    """The steps of a courier, one at a time."""

    def __init__(self, driver: Driver, queue: str = OTHER) -> None:
        self.driver = driver
        self.queue = queue

    async def take(self) -> list[bytes]:
        return await self._run("take", [SLICE, HOLD_MS, "free"])

    async def deliver(self, taken: Sequence[bytes]) -> None:
        _, number, outcome, _, rule, result, heirs = (word.decode() for word in taken)
        words: list[Argument] = [QUEUE, self.driver.keys.inbox_prefix]
        for heir in heirs.split("\n"):
            _, child, name = heir.split(" ")
            words += (child, name, number, outcome, rule, result)
        await self.driver.gateway.run("deliver", self.driver.client.script_keys("deliver", QUEUE), words)

    async def settle(self, taken: Sequence[bytes]) -> bytes:
        run, number, *_, heirs = (word.decode() for word in taken)
        return await self._run("settle", [run, number, *heirs.split("\n")])

    async def _run(self, name: str, words: Sequence[Argument]) -> Any:
        return await self.driver.gateway.run(name, self.driver.client.script_keys(name, self.queue), words)


@pytest.mark.parametrize("died_after", ["take", "deliver"])
@pytest.mark.parametrize("end", ["complete", "fail"])
async def test_another_courier_delivers_what_one_who_died_had_taken(driver: Driver, died_after: str, end: str) -> None:
    """S2-14: in the seed a crash after COMPLETED strands the dependents."""
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent)
    await (_complete if end == "complete" else _fail)(driver, parent)
    steps = Steps(driver)
    taken = await steps.take()
    if died_after == "deliver":
        await steps.deliver(taken)

    await driver.post(OTHER)
    if died_after == "take":
        assert await _state(driver, child) == ["blocked"], "nobody else delivers it for a while"
    claims = await driver.worker("w2").claims(queue=OTHER)
    assert not claims.has_news
    assert claims.wait_ms is not None
    assert claims.wait_ms <= HOLD_MS
    driver.advance(HOLD_MS)
    assert (await driver.worker("w2").claims(queue=OTHER)).has_news
    await driver.post(OTHER)

    assert await _state(driver, child) == ["pending" if end == "complete" else "cancelled"]
    assert driver.index("outbox", queue=OTHER) == {}
    assert driver.members("parents", queue=OTHER) == (set() if end == "complete" else {parent.run})


async def test_a_slow_courier_who_settles_old_news_does_not_swallow_the_new(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent)
    await _fail(driver, parent)
    slow = Steps(driver)
    taken = await slow.take()
    await slow.deliver(taken)
    await _redrive(driver, parent)
    await _complete(driver, parent)

    assert await slow.settle(taken) == b"more"
    await driver.post(OTHER)

    assert await _state(driver, child) == ["pending"]


async def test_every_step_of_a_courier_may_be_repeated(driver: Driver) -> None:
    parents = [await driver.one(queue=OTHER) for _ in range(2)]
    child = await driver.after(parents[0])
    doomed = await driver.after(parents[1])
    await _complete(driver, parents[0])
    await _fail(driver, parents[1])
    steps = Steps(driver)
    taken = await steps.take()
    for _ in range(2):
        for at in (0, 7):
            await steps.deliver(taken[at : at + 7])
    before = driver.dump("outbox", "heirs", "parents", "endings")
    for _ in range(2):
        for at in (0, 7):
            assert await steps.settle(taken[at : at + 7]) == b"done"

    assert driver.dump("outbox", "heirs", "parents", "endings") == before
    assert await _state(driver, child, doomed) == ["pending", "cancelled"]


# --- whoever dies while making a dependent -----------------------------------------------------------------------


class Died(Exception):
    """The process is gone: nothing of it runs any more."""


class Mortal(Ties):
    """Dies when it is about to call a script for the nth time."""

    def __init__(self, driver: Driver, before: str, turn: int = 1) -> None:
        super().__init__(Store(driver.gateway, driver.keys, "mortal"))
        gateway, left = driver.gateway, [turn]

        class Fatal:
            async def run(self, name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
                if left[0] <= 0:
                    raise Died
                if name == before:
                    left[0] -= 1
                    if left[0] <= 0:
                        raise Died
                return await gateway.run(name, keys, arguments)

        self._gateway = self._store.gateway = cast("Any", Fatal())


STOPS: Final = (("prepare", 1), ("tie_more", 1), ("register", 1), ("register", 2), ("deliver", 1), ("commit", 1))


@pytest.mark.parametrize("is_early", [True, False], ids=["sweep first", "parents first"])
@pytest.mark.parametrize(("before", "turn"), STOPS)
async def test_who_dies_while_making_a_dependent_leaves_nothing_that_stays(
    driver: Driver, before: str, turn: int, is_early: bool
) -> None:
    """S2-17: it is visible whole or not at all."""
    done = await driver.one(queue=THIRD)
    await _complete(driver, done)
    parents = [*(await driver.enqueue(*[new_job()] * SLICE)), await driver.one(queue=OTHER), done]
    at_first = driver.counts()
    named = checked_parents(parents)
    job = new_job("x", after=tuple(map(str, named)), lock="l", expiry="+900000")

    with pytest.raises(Died):
        await Mortal(driver, before, turn).enqueue(QUEUE, [Tied(job, named)])

    driver.check()
    assert driver.counts() == at_first
    assert not await driver.exists(JobRef(QUEUE, "x"))
    driver.advance(59_000)
    await driver.client.sweep(QUEUE)
    assert len(driver.index("unborn")) == (before != "prepare")
    if is_early:
        driver.advance(1_000)
        await driver.client.sweep(QUEUE)
        assert driver.index("unborn") == driver.hash("plans") == {}
        driver.check()
    await driver.client.report(QUEUE, [completed(job) for job in await driver.worker().claim(300)])
    await _fail(driver, parents[-2])
    for queue in QUEUES:
        await driver.post(queue)
    driver.advance(1_000)
    await driver.client.sweep(QUEUE)

    assert driver.counts() == {"completed": SLICE}
    for queue in QUEUES:
        assert driver.index("outbox", queue=queue) == {}
    for name in ("unborn", "plans", "tied", "parents", "ids", "locked", "expiring"):
        assert not driver.redis.exists(driver.key(name)), name
    assert not [key for key in driver.all_keys() if ":needs:" in key or ":dooms:" in key]


async def test_an_id_that_was_taken_while_a_dependent_was_tied_stays_with_whoever_took_it(driver: Driver) -> None:
    """The dependent is made anew, finds the id in use, and is refused as another `after`."""
    parent = await driver.one("p", due="+1000000")
    taken: list[JobRef] = []

    class Late(Ties):
        async def register(self, edges: Sequence[Edge]) -> None:
            await super().register(edges)
            if not taken:
                taken.append(await driver.one("x", due="+1000000"))

    named = checked_parents([parent])
    job = new_job("x", after=(str(parent),), again=Update())

    (made,) = await Late(driver.client).enqueue(QUEUE, [Tied(job, named)])

    assert made == Made("x", run_of(taken[0]), "after")
    assert driver.counts() == {"scheduled": 2}
    assert driver.index("unborn") == driver.hash("plans") == {}


async def test_a_dependent_that_was_swept_while_it_was_tied_is_made_anew(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)
    turns: list[int] = []

    class Slow(Ties):
        async def register(self, edges: Sequence[Edge]) -> None:
            await super().register(edges)
            if not turns:
                turns.append(1)
                driver.advance(61_000)
                await driver.client.sweep(QUEUE)

    named = checked_parents([parent])
    (made,) = await Slow(driver.client).enqueue(QUEUE, [Tied(new_job("x", after=(str(parent),)), named)])
    await _complete(driver, parent)
    await driver.post(OTHER)

    assert made.is_new
    assert await _state(driver, ref_of(made)) == ["pending"]
    assert driver.counts() == {"pending": 1}


@pytest.mark.parametrize(("end", "expected"), [(_complete, "pending"), (_fail, "cancelled")])
async def test_a_parent_that_ends_while_a_dependent_is_tied_is_not_missed(
    driver: Driver, end: Callable[[Driver, JobRef], Awaitable[None]], expected: str
) -> None:
    parent = await driver.one(queue=OTHER)

    class Racing(Ties):
        async def register(self, edges: Sequence[Edge]) -> None:
            await super().register(edges)
            await end(driver, parent)
            await driver.post(OTHER)

    job = new_job(after=(str(parent),))
    (made,) = await Racing(driver.client).enqueue(QUEUE, [Tied(job, checked_parents([parent]))])

    assert await _state(driver, ref_of(made)) == [expected]


@pytest.mark.parametrize("is_failed", [True, False])
async def test_a_commit_sent_again_makes_nothing_twice_though_the_run_is_long_gone(
    driver: Driver, is_failed: bool
) -> None:
    """Its answer was lost; meanwhile the job has run, or was cancelled, and is kept no longer."""
    parent = await driver.one(queue=OTHER)
    await (_fail if is_failed else _complete)(driver, parent)
    gateway = driver.gateway

    class Lossy:
        async def run(self, name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
            answer = await gateway.run(name, keys, arguments)
            if name == "commit":
                for ref in await driver.worker("w9").claim(5):
                    await driver.worker("w9").complete(ref, keep=Keep(finished=0))
                for run in driver.index("cancelled"):
                    found = (await driver.views.read(QUEUE, [JobRef(QUEUE, "", run)]))[0]
                    assert found is not None
                    await driver.client.delete(found.record.ref)
                answer = await gateway.run(name, keys, arguments)
            return answer

    ties = Ties(Store(driver.gateway, driver.keys, "lossy"))
    ties._gateway = ties._store.gateway = cast("Any", Lossy())
    job = new_job(after=(str(parent),), keep=Keep(finished=0))
    (made,) = await ties.enqueue(QUEUE, [Tied(job, checked_parents([parent]))])

    assert made.is_new
    assert driver.counts() == {}
    assert driver.hash("meta")["run"] == "1"


# --- many --------------------------------------------------------------------------------------------------------

MANY: Final = 10_000
#: Scripts whose calls are timed.
SCRIPTS: Final = (
    "prepare", "tie_more", "register", "deliver", "commit", "take", "settle",
)  # fmt: skip


class Watched:
    """A gateway that counts what each call carries."""

    def __init__(self, driver: Driver) -> None:
        self._gateway = driver.gateway
        self.most: dict[str, int] = {}

    async def run(self, name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        per: dict[str, Callable[[], int]] = {
            "register": lambda: len(arguments) // 3,
            "unregister": lambda: len(arguments) // 3,
            "deliver": lambda: (len(arguments) - 2) // 6,
            "settle": lambda: len(arguments) - 2,
            "commit": lambda: len(arguments) - 2,
            "prepare": lambda: sum(len(str(names).split(" ")) for names in arguments[9::7]),
            "tie_more": lambda: len(str(arguments[1]).split(" ")),
        }
        if name in per:
            self.most[name] = max(self.most.get(name, 0), per[name]())
        answer = await self._gateway.run(name, keys, arguments)
        if name == "take":
            heirs = sum(len(part.split(b"\n")) for part in answer[6::7])
            self.most[name] = max(self.most.get(name, 0), heirs)
        return answer

    async def run_many(self, calls: Sequence[Call]) -> list[Any]:
        return [await self.run(*call) for call in calls]


def _watched(driver: Driver) -> tuple[Ties, Watched]:
    watched = Watched(driver)
    ties = Ties(Store(driver.gateway, driver.keys, "many"))
    ties._gateway = ties._store.gateway = cast("Any", watched)
    driver.redis.config_set("slowlog-log-slower-than", 200)
    driver.redis.config_set("slowlog-max-len", 10_000)
    driver.redis.slowlog_reset()
    return ties, watched


def _is_bounded(driver: Driver, watched: Watched, record_property: Callable[[str, object], None]) -> None:
    """No call carried more than a slice. How long they took is said, not judged: the machine may be busy."""
    entries = driver.redis.slowlog_get(10_000)
    driver.redis.config_set("slowlog-log-slower-than", 10_000)
    driver.redis.config_set("slowlog-max-len", 128)
    names = {script(name, CLOCK).digest: name for name in SCRIPTS}
    times: dict[str, list[int]] = {}
    for entry in entries:
        words = entry["command"].decode(errors="replace").split(" ")
        if words[0] == "EVALSHA" and words[1] in names:
            times.setdefault(names[words[1]], []).append(entry["duration"])
    slowest = {name: (max(of), round(median(of)), len(of)) for name, of in times.items()}
    record_property("slowest script calls, us", slowest)
    print(f"max, median and count of script calls, us: {slowest}; items per call: {watched.most}")
    assert max(watched.most.values()) <= SLICE


@pytest.mark.timeout(120)
@pytest.mark.parametrize("end", ["complete", "fail"])
async def test_ten_thousand_jobs_come_after_one(
    driver: Driver, end: str, record_property: Callable[[str, object], None]
) -> None:
    """Spec 4: no script call does more than a bounded piece of it."""
    ties, watched = _watched(driver)
    parent = await driver.one(queue=OTHER)
    named = checked_parents([parent])
    job = Tied(new_job(after=(str(parent),)), named)
    await ties.enqueue(QUEUE, [job] * MANY)
    assert driver.counts() == {"blocked": MANY}

    await (_complete if end == "complete" else _fail)(driver, parent)
    await ties.post_all(OTHER)

    assert driver.counts() == {"pending" if end == "complete" else "cancelled": MANY}
    if end == "fail":
        await _redrive(driver, parent)
        await ties.post_all(OTHER)
        assert driver.counts() == {"blocked": MANY}
    _is_bounded(driver, watched, record_property)


@pytest.mark.timeout(120)
async def test_one_job_comes_after_ten_thousand(driver: Driver, record_property: Callable[[str, object], None]) -> None:
    ties, watched = _watched(driver)
    parents: list[JobRef] = []
    for queue in (QUEUE, OTHER):
        parents += await driver.enqueue(*[new_job()] * (MANY // 2), queue=queue)
    named = checked_parents(parents)
    (made,) = await ties.enqueue(THIRD, [Tied(new_job(after=tuple(map(str, named))), named)])
    child = ref_of(made, THIRD)
    obstacle = (await driver.read(child)).record.obstacle
    assert obstacle is not None
    assert obstacle.count == MANY

    for queue in (QUEUE, OTHER):
        while jobs := await driver.worker().claim(500, queue=queue):
            await driver.client.report(queue, [completed(job) for job in jobs])
        assert await _state(driver, child) == ["blocked"]
        await ties.post_all(queue)

    assert await _state(driver, child) == ["pending"]
    assert driver.index("outbox") == driver.index("outbox", queue=OTHER) == {}
    _is_bounded(driver, watched, record_property)


async def test_many_parents_that_fail_cancel_and_return_one_job(driver: Driver) -> None:
    parents = await driver.enqueue(*[new_job()] * 300, queue=OTHER)
    child = await driver.after(*parents)
    jobs = await driver.worker().claim(300, queue=OTHER)
    await driver.client.report(OTHER, [failed(job) for job in jobs])
    await driver.post(OTHER)
    assert await _state(driver, child) == ["cancelled"]

    assert set(await driver.client.redrive(OTHER, parents)) == {"redriven"}
    await driver.post(OTHER)

    assert await _state(driver, child) == ["blocked"]


# --- together ----------------------------------------------------------------------------------------------------


async def test_a_dependency_comes_first_then_the_time_then_the_lock(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)
    await driver.one(lock="l")
    (holder,) = await driver.worker().claim()
    child = await driver.after(parent, id="x", lock="l", due="+60000")
    assert await _obstacle(driver, child) == "after"

    await _complete(driver, parent)
    await driver.post(OTHER)
    assert await _state(driver, child) == ["scheduled"]
    driver.advance(60_000)
    await driver.worker("w2").claim(0)
    assert await _obstacle(driver, child) == "lock"
    (made,) = await driver.client.enqueue(QUEUE, [new_job("x", [7], again=Update(), after=(str(parent),))])
    assert made.outcome == "updated"
    await driver.worker().complete(holder)

    assert refs_of(await driver.worker().claim(5)) == [child.run]


async def _obstacle(driver: Driver, ref: JobRef) -> str:
    record = (await driver.read(ref)).record
    assert record.obstacle is not None, record.state
    return record.obstacle.kind


async def test_a_dependent_enqueued_again_while_it_runs_gets_a_follow_up(driver: Driver) -> None:
    """What it comes after is done by then: only the same id, then the time, then the lock are left."""
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent, id="x", lock="l")
    await _complete(driver, parent)
    await driver.post(OTHER)
    job = await _claim(driver, child)
    named = checked_parents([parent])
    again = new_job("x", [7], again=Update(), after=(str(parent),), lock="m", due="+1000")
    await driver.one(lock="m")
    (holder,) = await driver.worker("w2").claim()

    (made,) = await driver.ties.enqueue(QUEUE, [Tied(again, named)])

    assert made.is_new
    assert await _obstacle(driver, ref_of(made)) == "same_id"
    await driver.worker().complete(job)
    assert await _state(driver, ref_of(made)) == ["scheduled"]
    driver.advance(1_000)
    await driver.worker().claim(0)
    assert await _obstacle(driver, ref_of(made)) == "lock"
    await driver.worker("w2").complete(holder)
    assert refs_of(await driver.worker().claim(5)) == [made.run]


async def test_a_blocked_dependent_is_updated_and_stays_blocked(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent, id="x")
    again = new_job("x", [7], again=Update(), after=(str(parent),), priority=-10, lock="m", due="+1000")

    (made,) = await driver.ties.enqueue(QUEUE, [Tied(again, checked_parents([parent]))])

    assert made == Made("x", run_of(child), "updated")
    record = (await driver.read(child)).record
    assert (record.state, record.arguments, record.options.lock) == (JobState.BLOCKED, b"[7]", "m")
    await _complete(driver, parent)
    await driver.post(OTHER)
    assert await _state(driver, child) == ["scheduled"]


@pytest.mark.parametrize("end", ["complete", "fail", "retry", "cancel", "delete"])
async def test_what_comes_after_a_follow_up_waits_for_that_or_for_the_run_that_took_it_in(
    driver: Driver, end: str
) -> None:
    first = await driver.one("x")
    job = await _claim(driver, first)
    (made,) = await driver.client.enqueue(QUEUE, [new_job("x", again=Update())])
    child = await driver.after(ref_of(made), queue=OTHER)
    worker = driver.worker()

    match end:
        case "complete" | "fail":
            await (worker.complete(job) if end == "complete" else worker.fail(job))
            await driver.post()
            assert await _state(driver, child) == ["blocked"]
            await _complete(driver, ref_of(made))
        case "retry":
            await worker.fail(job, "")
            late = await driver.after(ref_of(made), queue=OTHER)
            await _fail(driver, first)
            await driver.post()
            assert await _state(driver, child, late) == ["cancelled", "cancelled"]
            await _redrive(driver, first)
            await driver.post()
            assert await _state(driver, child, late) == ["blocked", "blocked"]
            await _complete(driver, first)
            await driver.post()
            assert await _state(driver, late) == ["pending"]
        case "cancel":
            assert await driver.client.cancel(ref_of(made)) == "cancelled"
        case _:
            await worker.fail(job, "")
            assert await driver.client.delete(ref_of(made)) == "deleted"
    await driver.post()

    assert await _state(driver, child) == ["cancelled" if end in ("cancel", "delete") else "pending"]


async def test_a_dependent_behind_a_deleted_run_that_is_stopping_is_refused(driver: Driver) -> None:
    """As its follow-up it would not wait for its parents."""
    old = await driver.one("x")
    job = await _claim(driver, old)
    await driver.client.delete(old)
    parent = await driver.one("p", due="+1000000")
    tied = Tied(new_job("x", after=(str(parent),), again=Update()), checked_parents([parent]))

    (made,) = await driver.ties.enqueue(QUEUE, [tied])
    assert made.outcome == "after"
    assert await driver.worker().complete(job) == "cancelled"
    (made,) = await driver.ties.enqueue(QUEUE, [tied])

    assert made.is_new
    assert await _obstacle(driver, ref_of(made)) == "after"


async def test_a_cancelled_dependent_lets_go_of_all_that_it_was_tied_to(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent, id="x", lock="l", expiry="+1000")
    assert await driver.client.cancel(child) == "cancelled"
    driver.check()
    again = await driver.one("x", lock="l")
    await _complete(driver, parent)
    await driver.post(OTHER)

    assert await _state(driver, child, again) == ["cancelled", "pending"]


async def test_dependents_are_made_in_one_batch_each_with_its_own_parents(driver: Driver) -> None:
    parents = [await driver.one(queue=OTHER) for _ in range(3)]
    wanted = [
        Tied(new_job(f"c{at}", after=tuple(map(str, parents[: at + 1]))), checked_parents(parents[: at + 1]))
        for at in range(3)
    ]
    wanted.append(wanted[0]._replace(job=wanted[0].job._replace(id="c0")))

    made = await driver.ties.enqueue(QUEUE, wanted)

    assert [one.outcome for one in made] == ["made", "made", "made", "in_use"]
    assert made[3].run == made[0].run
    for at, parent in enumerate(parents):
        await _complete(driver, parent)
        await driver.post(OTHER)
        assert driver.counts() == {"pending": at + 1, **({"blocked": 2 - at} if at < 2 else {})}


async def test_a_parent_named_twice_is_waited_for_once(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)

    child = await driver.after(may_fail(parent), parent, Parent(parent))

    await _fail(driver, parent)
    await driver.post(OTHER)
    assert await _state(driver, child) == ["cancelled"]


async def test_a_worker_that_dies_with_a_parent_releases_nobody(driver: Driver) -> None:
    parent = await driver.one()
    child = await driver.after(parent)
    await _claim(driver, parent)
    await driver.advance_with_ticks(LEASE_MS + 1_000)

    (job,) = await driver.worker("w2").claim(5)

    assert job.run == parent.run
    assert await _state(driver, child) == ["blocked"]
    await driver.worker("w2").complete(job)
    await driver.post()
    assert await _state(driver, child) == ["pending"]
