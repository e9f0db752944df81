"""Dependencies: a job starts when its parents have succeeded, and is cancelled when one cannot succeed any more."""

from __future__ import annotations

from typing import Final

import pytest

from rota.core.dependencies import checked_parents, known, may_fail
from rota.core.ids import JobRef
from rota.core.job_options import Keep
from rota.core.same_id_policy import Update
from rota.core.state_transitions import JobState
from rota.errors import JobNotFound
from rota.store.create_dependents_and_deliver_outcomes import JobWithParents
from tests.store.dependency_helpers import OTHER, QUEUES, THIRD, claim_run, complete_run, fail_run, states_of
from tests.store.driver import QUEUE, Driver, new_job

pytestmark = pytest.mark.usefixtures("check_every_queue")


# --- success ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S2-13", "S2-14")
@pytest.mark.parametrize("queue", [QUEUE, OTHER])
async def test_a_job_starts_when_all_it_comes_after_have_completed(driver: Driver, queue: str) -> None:
    """Also where they live in other queues, which on a cluster are other nodes."""
    parents = [await driver.one(queue=QUEUE), await driver.one(queue=OTHER), await driver.one(queue=THIRD)]
    child = await driver.after(*parents, queue=queue)

    for parent in parents:
        assert await states_of(driver, child) == ["blocked"]
        await complete_run(driver, parent)
        await driver.post(parent.queue)

    assert await states_of(driver, child) == ["pending"]
    await complete_run(driver, child)
    for name in ("parents", "dependents", "failed_parents"):
        assert not [key for key in driver.all_keys() if f":{name}:" in key]
    for found in QUEUES:
        assert driver.members("has_dependents", queue=found) == driver.members("has_parents", queue=found) == set()


async def test_a_blocked_job_says_what_it_waits_for(driver: Driver) -> None:
    parents = [await driver.one(), await driver.one(queue=OTHER)]
    child = await driver.after(*parents)

    obstacle = (await driver.read(child)).record.obstacle

    assert obstacle is not None
    assert (obstacle.kind, obstacle.count, set(obstacle.jobs)) == ("after", 2, {str(parent) for parent in parents})


@pytest.mark.requirement("S2-15")
async def test_a_job_after_completed_ones_starts_at_once(driver: Driver) -> None:
    """It does not wait for a completion that has already happened."""
    parent = await driver.one(queue=OTHER)
    await complete_run(driver, parent)

    child = await driver.after(parent)

    assert await states_of(driver, child) == ["pending"]
    assert driver.members("has_dependents", queue=OTHER) == set()


async def test_a_bare_id_means_the_newest_run_of_then(driver: Driver) -> None:
    """Spec 1: dependencies pin a run."""
    parent = await driver.one("p")
    child = await driver.after("q:p")
    await complete_run(driver, parent)
    newer = await driver.one("p")

    await driver.post()

    assert await states_of(driver, child, newer) == ["pending", "pending"]


async def test_a_parent_that_retries_or_is_returned_releases_no_dependents(driver: Driver) -> None:
    """Spec 7."""
    parent = await driver.one()
    child = await driver.after(parent)
    worker = driver.worker()
    for verb in ("fail", "snooze", "hand back", "lose"):
        await worker.end(await claim_run(driver, parent), verb)
        await driver.post()
        assert await states_of(driver, child) == ["blocked"]

    await complete_run(driver, parent)
    await driver.post()

    assert await states_of(driver, child) == ["pending"]


async def test_an_idle_worker_of_the_childs_queue_is_woken(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)
    await driver.after(parent)
    job = await claim_run(driver, parent)
    with driver.inbox("idle") as inbox, driver.inbox("courier") as courier:
        assert await driver.worker("idle").claim() == []
        assert await driver.worker("courier").claim(queue=OTHER) == []
        await driver.worker().complete(job)
        assert courier.told() == [f"wake {OTHER}"], "a worker is woken to deliver the outcome"
        assert (await driver.worker("courier").claims(queue=OTHER)).has_outbox
        await driver.post(OTHER)
        assert inbox.told() == [f"wake {QUEUE}"]
        assert not (await driver.worker("courier").claims(queue=OTHER)).has_outbox


# --- the other ends ---------------------------------------------------------------------------------------------------

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
    """Ends a pending parent that way; its dependents must not be notified before its handler has stopped."""
    client, worker = driver.client, driver.worker()
    match ending:
        case "completed":
            await complete_run(driver, parent)
        case "failed":
            await fail_run(driver, parent)
        case "given up":
            await worker.give_up(await claim_run(driver, parent))
        case "stalled too often":
            await worker.lose(await claim_run(driver, parent))
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
            job = await claim_run(driver, parent)
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


@pytest.mark.requirement("S2-16")
@pytest.mark.parametrize("keep", [0, 3600])
@pytest.mark.parametrize("ending", ["completed", *ENDINGS])
@pytest.mark.parametrize("tie", ["must succeed", "may fail"])
async def test_every_end_of_a_parent_resolves_its_dependents(driver: Driver, ending: str, tie: str, keep: int) -> None:
    """It never blocks for good, however briefly the parent is kept."""
    parent = await driver.one(
        "p", queue=OTHER, max_stalls=0, expiry="+5000" if ending == "expired" else "", keep=Keep(keep, failed=keep)
    )
    child = await driver.after(may_fail(parent) if tie == "may fail" else parent)
    if ending in ("completed", "failed"):
        job, keeping = await claim_run(driver, parent), Keep(keep, failed=keep)
        end = driver.worker().complete if ending == "completed" else driver.worker().fail
        assert await end(job, keep=keeping) == "ok"
    else:
        await _end(driver, parent, ending)
    await driver.post(OTHER)

    if ending == "completed" or tie == "may fail":
        assert await states_of(driver, child) == ["pending"]
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

    assert await states_of(driver, child, brave) == ["cancelled", "pending"]


async def test_what_comes_after_a_cancelled_job_is_cancelled_too_and_so_on(driver: Driver) -> None:
    """Spec 7: transitively, across queues."""
    first = await driver.one()
    second = await driver.after(first, queue=OTHER)
    third = await driver.after(second, queue=THIRD)
    brave = await driver.after(may_fail(second), queue=THIRD)
    fourth = await driver.after(third, queue=QUEUE)

    await fail_run(driver, first)
    await driver.post()

    assert await states_of(driver, second, third, fourth) == ["cancelled"] * 3
    assert await states_of(driver, brave) == ["pending"]
    assert str(second) in (await driver.read(third)).record.reason


# --- unknown parents --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unknown", ["q:nobody", "other:nobody", "other:p@000000009", "nowhere:p"])
async def test_a_job_after_an_unknown_one_is_refused_and_leaves_nothing(driver: Driver, unknown: str) -> None:
    """Spec 7."""
    parents = [await driver.one("p"), await driver.one("p", queue=OTHER)]
    await driver.one("held", lock="l")
    before = driver.dump("last_reply", "meta")

    with pytest.raises(JobNotFound):
        await driver.after(*parents, unknown, id="x", lock="l", expiry="+1000")

    assert driver.dump("last_reply", "meta") == before


async def test_a_refusal_leaves_the_others_of_its_batch_alone_too(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)
    await driver.after(parent, id="x")
    named, unknown = checked_parents([parent]), checked_parents(["q:nobody"])
    wanted = [
        JobWithParents(new_job("x", [7], again=Update(), after=tuple(map(str, named))), named),
        JobWithParents(new_job("y", after=tuple(map(str, named))), named),
        JobWithParents(new_job("z", after=tuple(map(str, unknown))), unknown),
    ]
    before = driver.dump("last_reply", "meta")

    with pytest.raises(JobNotFound):
        await driver.ties.enqueue_dependents(QUEUE, wanted)

    assert driver.dump("last_reply", "meta") == before


async def test_a_refusal_leaves_other_dependents_of_the_parents_alone(driver: Driver) -> None:
    parent = await driver.one()
    child = await driver.after(parent)
    before = driver.dump("last_reply", "meta")

    with pytest.raises(JobNotFound):
        await driver.after(parent, "q:nobody")

    assert driver.dump("last_reply", "meta") == before
    await complete_run(driver, parent)
    await driver.post()
    assert await states_of(driver, child) == ["pending"]


async def test_a_refusal_leaves_nothing_at_a_parent_that_has_failed(driver: Driver) -> None:
    parent = await driver.one()
    child = await driver.after(parent)
    await fail_run(driver, parent)
    await driver.post()
    await driver.client.delete(child)
    before = driver.dump("last_reply", "meta")

    with pytest.raises(JobNotFound):
        await driver.after(parent, "q:nobody")

    assert driver.dump("last_reply", "meta") == before
    await driver.client.delete(parent)


async def test_a_job_that_is_gone_counts_as_completed_where_that_is_said(driver: Driver) -> None:
    parent = await driver.one()

    child = await driver.after(parent, known("q:gone", if_gone="satisfied"))

    assert await states_of(driver, child) == ["blocked"]
    await complete_run(driver, parent)
    await driver.post()
    assert await states_of(driver, child) == ["pending"]


async def test_a_known_job_that_is_kept_counts_as_it_stands(driver: Driver) -> None:
    parent = await driver.one()
    await fail_run(driver, parent)

    assert await states_of(driver, await driver.after(known(parent, if_gone="satisfied"))) == ["cancelled"]
