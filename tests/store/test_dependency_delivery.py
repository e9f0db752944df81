"""Delivering outcomes to dependents: repeated, late, and by workers and clients that die in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, cast

import pytest

from rota.core.dependencies import Parent, checked_parents
from rota.core.ids import JobRef
from rota.core.job_options import Keep
from rota.core.same_id_policy import Update
from rota.core.state_transitions import JobState
from rota.store.create_dependents_and_deliver_outcomes import HOLD_MS, SLICE, DependencyStore, Edge, JobWithParents
from rota.store.enqueue_batcher import EnqueueResult
from rota.store.job_store import JobStore
from rota.store.redis.retrying_client import Argument
from tests.store.dependency_helpers import (
    OTHER,
    QUEUES,
    THIRD,
    claim_run,
    complete_run,
    fail_run,
    redrive_run,
    states_of,
)
from tests.store.driver import QUEUE, Driver, completed, new_job, ref_of, run_of

pytestmark = pytest.mark.usefixtures("check_every_queue")


# --- news -------------------------------------------------------------------------------------------------------------


async def _deliver(driver: Driver, *messages: tuple[JobRef, JobRef, str, str]) -> None:
    """News by hand: dependent, parent, number, outcome."""
    words: list[Argument] = [QUEUE, driver.keys.inbox_prefix]
    for child, parent, number, outcome in messages:
        words += (run_of(child), str(parent), number, outcome, "")
    await driver.redis_client.run(
        "apply_parent_outcomes", driver.client.script_keys("apply_parent_outcomes", QUEUE), words
    )


@pytest.mark.parametrize("outcome", ["completed", "failed", "cancelled", "deleted", "waiting"])
async def test_late_or_repeated_news_changes_nothing(driver: Driver, outcome: str) -> None:
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent)
    for _ in range(2):
        await fail_run(driver, parent)
        await driver.post(OTHER)
        await redrive_run(driver, parent)
        await driver.post(OTHER)
    before = driver.dump()
    (need,) = driver.hash("parents", run_of(child)).values()

    for number in range(int(need[1:]) + 1):
        await _deliver(driver, (child, parent, str(number), outcome))

    assert driver.dump() == before


@pytest.mark.parametrize("outcome", ["completed", "failed", "waiting"])
async def test_news_for_one_who_has_started_or_is_gone_changes_nothing(driver: Driver, outcome: str) -> None:
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent)
    await complete_run(driver, parent)
    await driver.post(OTHER)
    await claim_run(driver, child)
    before = driver.dump()

    await _deliver(driver, (child, parent, "99", outcome), (JobRef(QUEUE, "x", "0000000zz"), parent, "1", outcome))

    assert driver.dump() == before


class Steps:
    """The steps of a courier, one at a time."""

    def __init__(self, driver: Driver, queue: str = OTHER) -> None:
        self.driver = driver
        self.queue = queue

    async def take(self) -> list[bytes]:
        _more, *taken = await self._run("take_outbox", [SLICE, HOLD_MS, "free"])
        return taken

    async def deliver(self, taken: Sequence[bytes]) -> None:
        _, number, outcome, _, rule, result, heirs = (word.decode() for word in taken)
        words: list[Argument] = [QUEUE, self.driver.keys.inbox_prefix]
        for heir in heirs.split("\n"):
            _, child, name = heir.split(" ")
            words += (child, name, number, outcome, rule, result)
        await self.driver.redis_client.run(
            "apply_parent_outcomes", self.driver.client.script_keys("apply_parent_outcomes", QUEUE), words
        )

    async def settle(self, taken: Sequence[bytes]) -> bytes:
        run, number, *_, heirs = (word.decode() for word in taken)
        return await self._run("ack_outbox", [run, number, *heirs.split("\n")])

    async def _run(self, name: str, words: Sequence[Argument]) -> Any:
        return await self.driver.redis_client.run(name, self.driver.client.script_keys(name, self.queue), words)


@pytest.mark.requirement("S2-14")
@pytest.mark.parametrize("died_after", ["take_outbox", "apply_parent_outcomes"])
@pytest.mark.parametrize("end", ["complete", "fail"])
async def test_another_courier_delivers_what_one_who_died_had_taken(driver: Driver, died_after: str, end: str) -> None:
    """A crash after COMPLETED strands no dependent."""
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent)
    await (complete_run if end == "complete" else fail_run)(driver, parent)
    steps = Steps(driver)
    taken = await steps.take()
    if died_after == "apply_parent_outcomes":
        await steps.deliver(taken)

    await driver.post(OTHER)
    if died_after == "take_outbox":
        assert await states_of(driver, child) == ["blocked"], "no other worker delivers it for a while"
    claims = await driver.worker("w2").claims(queue=OTHER)
    assert not claims.has_outbox
    assert claims.wait_ms is not None
    assert claims.wait_ms <= HOLD_MS
    driver.advance(HOLD_MS)
    assert (await driver.worker("w2").claims(queue=OTHER)).has_outbox
    await driver.post(OTHER)

    assert await states_of(driver, child) == ["pending" if end == "complete" else "cancelled"]
    assert driver.index("outbox", queue=OTHER) == {}
    assert driver.members("has_dependents", queue=OTHER) == (set() if end == "complete" else {parent.run})


async def test_a_slow_courier_who_settles_old_news_does_not_swallow_the_new(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent)
    await fail_run(driver, parent)
    slow = Steps(driver)
    taken = await slow.take()
    await slow.deliver(taken)
    await redrive_run(driver, parent)
    await complete_run(driver, parent)

    assert await slow.settle(taken) == b"more"
    await driver.post(OTHER)

    assert await states_of(driver, child) == ["pending"]


async def test_every_step_of_a_courier_may_be_repeated(driver: Driver) -> None:
    parents = [await driver.one(queue=OTHER) for _ in range(2)]
    child = await driver.after(parents[0])
    to_cancel = await driver.after(parents[1])
    await complete_run(driver, parents[0])
    await fail_run(driver, parents[1])
    steps = Steps(driver)
    taken = await steps.take()
    for _ in range(2):
        for at in (0, 7):
            await steps.deliver(taken[at : at + 7])
    before = driver.dump("outbox", "dependents", "has_dependents", "outcomes")
    for _ in range(2):
        for at in (0, 7):
            assert await steps.settle(taken[at : at + 7]) == b"done"

    assert driver.dump("outbox", "dependents", "has_dependents", "outcomes") == before
    assert await states_of(driver, child, to_cancel) == ["pending", "cancelled"]


# --- clients that die while making a dependent ------------------------------------------------------------------------


class Died(Exception):
    """The process is gone: nothing of it runs any more."""


class Mortal(DependencyStore):
    """Dies when it is about to call a script for the nth time."""

    def __init__(self, driver: Driver, before: str, turn: int = 1) -> None:
        super().__init__(JobStore(driver.redis_client, driver.keys, "mortal"))
        redis_client, left = driver.redis_client, [turn]

        class Fatal:
            async def run(self, name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
                if left[0] <= 0:
                    raise Died
                if name == before:
                    left[0] -= 1
                    if left[0] <= 0:
                        raise Died
                return await redis_client.run(name, keys, arguments)

        self._redis = self._store.redis = cast("Any", Fatal())


STOPS: Final = (
    ("prepare_dependents", 1),
    ("add_parents_to_prepared_run", 1),
    ("register_dependents", 1),
    ("register_dependents", 2),
    ("apply_parent_outcomes", 1),
    ("publish_prepared_runs", 1),
)


@pytest.mark.requirement("S2-17")
@pytest.mark.parametrize("is_early", [True, False], ids=["sweep first", "parents first"])
@pytest.mark.parametrize(("before", "turn"), STOPS)
async def test_who_dies_while_making_a_dependent_leaves_nothing_that_stays(
    driver: Driver, before: str, turn: int, is_early: bool
) -> None:
    """It is visible whole or not at all."""
    driver.stop_clock()
    done = await driver.one(queue=THIRD)
    await complete_run(driver, done)
    parents = [*(await driver.enqueue(*[new_job()] * SLICE)), await driver.one(queue=OTHER), done]
    at_first = driver.counts()
    named = checked_parents(parents)
    job = new_job("x", after=tuple(map(str, named)), lock="l", expiry="+900000")

    with pytest.raises(Died):
        await Mortal(driver, before, turn).enqueue_dependents(QUEUE, [JobWithParents(job, named)])

    driver.check()
    assert driver.counts() == at_first
    assert not await driver.exists(JobRef(QUEUE, "x"))
    driver.advance(59_000)
    await driver.client.apply_retention(QUEUE)
    assert len(driver.index("prepared")) == (before != "prepare_dependents")
    if is_early:
        driver.advance(1_000)
        await driver.client.apply_retention(QUEUE)
        assert driver.index("prepared") == driver.hash("prepared_plans") == {}
        driver.check()
    await driver.client.report(QUEUE, [completed(job) for job in await driver.worker().claim(300)])
    await fail_run(driver, parents[-2])
    for queue in QUEUES:
        await driver.post(queue)
    driver.advance(1_000)
    await driver.client.apply_retention(QUEUE)

    assert driver.counts() == {"completed": SLICE}
    for queue in QUEUES:
        assert driver.index("outbox", queue=queue) == {}
    for name in ("prepared", "prepared_plans", "has_parents", "has_dependents", "ids", "locked", "expiring"):
        assert not driver.redis.exists(driver.key(name)), name
    assert not [key for key in driver.all_keys() if ":parents:" in key or ":failed_parents:" in key]


async def test_an_id_that_was_taken_while_a_dependent_was_prepared_stays_with_the_other_job(driver: Driver) -> None:
    """The dependent is made anew, finds the id in use, and is refused as another `after`."""
    parent = await driver.one("p", due="+1000000")
    taken: list[JobRef] = []

    class Late(DependencyStore):
        async def register_dependents(self, edges: Sequence[Edge]) -> None:
            await super().register_dependents(edges)
            if not taken:
                taken.append(await driver.one("x", due="+1000000"))

    named = checked_parents([parent])
    job = new_job("x", after=(str(parent),), again=Update())

    (made,) = await Late(driver.client).enqueue_dependents(QUEUE, [JobWithParents(job, named)])

    assert made == EnqueueResult("x", run_of(taken[0]), "after")
    assert driver.counts() == {"scheduled": 2}
    assert driver.index("prepared") == driver.hash("prepared_plans") == {}


async def test_a_dependent_that_was_swept_while_it_was_tied_is_made_anew(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)
    turns: list[int] = []

    class Slow(DependencyStore):
        async def register_dependents(self, edges: Sequence[Edge]) -> None:
            await super().register_dependents(edges)
            if not turns:
                turns.append(1)
                driver.advance(61_000)
                await driver.client.apply_retention(QUEUE)

    named = checked_parents([parent])
    (made,) = await Slow(driver.client).enqueue_dependents(
        QUEUE, [JobWithParents(new_job("x", after=(str(parent),)), named)]
    )
    await complete_run(driver, parent)
    await driver.post(OTHER)

    assert made.is_new
    assert await states_of(driver, ref_of(made)) == ["pending"]
    assert driver.counts() == {"pending": 1}


@pytest.mark.parametrize(("end", "expected"), [(complete_run, "pending"), (fail_run, "cancelled")])
async def test_a_parent_that_ends_while_a_dependent_is_tied_is_not_missed(
    driver: Driver, end: Callable[[Driver, JobRef], Awaitable[None]], expected: str
) -> None:
    parent = await driver.one(queue=OTHER)

    class Racing(DependencyStore):
        async def register_dependents(self, edges: Sequence[Edge]) -> None:
            await super().register_dependents(edges)
            await end(driver, parent)
            await driver.post(OTHER)

    job = new_job(after=(str(parent),))
    (made,) = await Racing(driver.client).enqueue_dependents(QUEUE, [JobWithParents(job, checked_parents([parent]))])

    assert await states_of(driver, ref_of(made)) == [expected]


@pytest.mark.parametrize("is_failed", [True, False])
async def test_a_commit_sent_again_makes_nothing_twice_though_the_run_is_long_gone(
    driver: Driver, is_failed: bool
) -> None:
    """Its answer was lost; meanwhile the job has run, or was cancelled, and is kept no longer."""
    parent = await driver.one(queue=OTHER)
    await (fail_run if is_failed else complete_run)(driver, parent)
    redis_client = driver.redis_client

    class Lossy:
        async def run(self, name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
            answer = await redis_client.run(name, keys, arguments)
            if name == "publish_prepared_runs":
                for ref in await driver.worker("w9").claim(5):
                    await driver.worker("w9").complete(ref, keep=Keep(finished=0))
                for run in driver.index("cancelled"):
                    found = (await driver.views.read_runs(QUEUE, [JobRef(QUEUE, "", run)]))[0]
                    assert found is not None
                    await driver.client.delete(found.record.ref)
                answer = await redis_client.run(name, keys, arguments)
            return answer

    ties = JobStore(driver.redis_client, driver.keys, "lossy").dependencies
    ties._redis = ties._store.redis = cast("Any", Lossy())
    job = new_job(after=(str(parent),), keep=Keep(finished=0))
    (made,) = await ties.enqueue_dependents(QUEUE, [JobWithParents(job, checked_parents([parent]))])

    assert made.is_new
    assert driver.counts() == {}
    assert driver.hash("meta")["run"] == "1"


async def test_a_dependent_that_is_discarded_leaves_nothing_of_a_parent_that_has_ended(driver: Driver) -> None:
    parents = [Parent(await driver.one("parent"))]
    (job,) = await driver.worker().claim()
    (one,), _ = await driver.ties.prepare_dependents(QUEUE, {0: JobWithParents(new_job("child"), parents)})
    edges = [Edge(QUEUE, one.run, parent) for parent in parents]
    await driver.ties.register_dependents(edges)
    await driver.worker().complete(job, b'"result"')

    await driver.ties.discard_prepared_runs(QUEUE, [one.run], edges)

    assert [driver.hash(name) for name in ("outcomes", "outcome_results")] == [{}, {}]
    assert driver.index("outbox") == {}
    driver.check()


@pytest.mark.parametrize("include", ["free", "all"])
async def test_entries_without_anything_to_deliver_do_not_end_a_delivery(driver: Driver, include: str) -> None:
    """One call examines so many entries of the outbox; that none of them is for delivery says nothing of the others."""
    await driver.one("parent")
    child = await driver.after("q:parent")
    (job,) = await driver.worker().claim()
    driver.redis.zadd(driver.key("outbox"), {f"delivered{number}": 1 for number in range(120)})
    await driver.worker().complete(job)

    await driver.ties.deliver_outbox(QUEUE, include=include)

    assert await driver.state(child) is JobState.PENDING
    assert driver.index("outbox") == {}
