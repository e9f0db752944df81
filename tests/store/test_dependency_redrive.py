"""Redriving a parent brings back the dependents that its failure cancelled."""

from __future__ import annotations

import pytest

from rota.core.ids import JobRef
from tests.store.dependency_helpers import (
    DAY,
    OTHER,
    QUEUES,
    THIRD,
    claim_run,
    complete_run,
    fail_run,
    redrive_run,
    states_of,
)
from tests.store.driver import HISTORY, QUEUE, Driver

pytestmark = pytest.mark.usefixtures("check_every_queue")


async def test_a_redrive_brings_back_what_the_failure_had_cancelled_transitively(driver: Driver) -> None:
    """Spec 7."""
    first = await driver.one()
    second = await driver.after(first, queue=OTHER, lock="l")
    third = await driver.after(second, queue=THIRD, due="+1000000")
    await fail_run(driver, first)
    await driver.post()
    assert await states_of(driver, second, third) == ["cancelled"] * 2

    await redrive_run(driver, first)
    await driver.post()

    assert await states_of(driver, second, third) == ["blocked"] * 2
    await complete_run(driver, first)
    await driver.post()
    await complete_run(driver, second)
    await driver.post(OTHER)
    assert await states_of(driver, third) == ["scheduled"]


async def test_a_redrive_brings_back_what_was_made_after_the_failure(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)
    await fail_run(driver, parent)
    child = await driver.after(parent)

    await redrive_run(driver, parent)
    await driver.post(OTHER)

    assert await states_of(driver, child) == ["blocked"]
    await complete_run(driver, parent)
    await driver.post(OTHER)
    assert await states_of(driver, child) == ["pending"]


async def test_failing_and_redriving_again_and_again_ends_well(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent)
    for _ in range(3):
        await fail_run(driver, parent)
        await driver.post(OTHER)
        assert await states_of(driver, child) == ["cancelled"]
        await redrive_run(driver, parent)
        await driver.post(OTHER)
        assert await states_of(driver, child) == ["blocked"]
    await complete_run(driver, parent)
    await driver.post(OTHER)

    await complete_run(driver, child)


@pytest.mark.parametrize("id", ["x", ""], ids=["chosen", "made up"])
@pytest.mark.parametrize("newer", ["pending", "completed"])
async def test_a_redrive_does_not_bring_back_a_run_whose_id_has_a_newer_one(
    driver: Driver, id: str, newer: str
) -> None:
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent, id=id)
    await fail_run(driver, parent)
    await driver.post(OTHER)
    new = await driver.one(child.id)
    if newer == "completed":
        await complete_run(driver, new)

    await redrive_run(driver, parent)
    await driver.post(OTHER)

    assert await states_of(driver, child, new) == ["cancelled", newer]


@pytest.mark.parametrize("when", ["before the failure", "after a redrive"])
async def test_a_redrive_does_not_bring_back_what_a_user_cancelled(driver: Driver, when: str) -> None:
    parent = await driver.one()
    child = await driver.after(parent)
    if when == "after a redrive":
        await fail_run(driver, parent)
        await driver.post()
        await redrive_run(driver, parent)
        await driver.post()
    assert await driver.client.cancel(child) == "cancelled"
    await fail_run(driver, parent)
    await driver.post()

    await redrive_run(driver, parent)
    await driver.post()

    assert await states_of(driver, child) == ["cancelled"]


async def test_a_redrive_does_not_bring_back_what_expired(driver: Driver) -> None:
    parent = await driver.one()
    child = await driver.after(parent, expiry="+1000")
    driver.advance(1_000)
    await fail_run(driver, parent)
    await driver.post()

    await redrive_run(driver, parent)
    await driver.post()

    assert await states_of(driver, child) == ["cancelled"]


async def test_what_a_redrive_brings_back_must_still_start_in_time(driver: Driver) -> None:
    """Spec 3: not started for the first time by then, it is cancelled with that reason; also one whose time is over."""
    parent = await driver.one("p")
    soon = await driver.after(parent, expiry="+60000", queue=OTHER)
    late = await driver.after(parent, expiry="+180000", queue=OTHER)
    for wait in (30_000, 60_000, 120_000):
        await driver.worker().fail(await claim_run(driver, parent))
        await driver.post()
        driver.advance(wait)
        await redrive_run(driver, parent)
        await driver.post()
        await driver.worker().claim(0, queue=OTHER)

        is_over = wait > 30_000, wait > 60_000
        assert await states_of(driver, soon, late) == ["cancelled" if over else "blocked" for over in is_over]
    for ref in (soon, late):
        assert (await driver.read(ref)).record.reason == "expired: it had not started in time"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_a_run_that_two_failures_hold_back_returns_with_the_redrive_of_both(
    driver: Driver, order: tuple[int, int]
) -> None:
    parents = [await driver.one(), await driver.one(queue=OTHER)]
    child = await driver.after(*parents)
    for parent in parents:
        await fail_run(driver, parent)
        await driver.post(parent.queue)

    for at, expected in zip(order, ("cancelled", "blocked"), strict=True):
        await redrive_run(driver, parents[at])
        await driver.post(parents[at].queue)
        assert await states_of(driver, child) == [expected]


async def test_a_run_that_a_cancelled_parent_holds_back_stays_cancelled(driver: Driver) -> None:
    failing, cancelled = await driver.one(), await driver.one(due="+1000000")
    child = await driver.after(failing, cancelled)
    await fail_run(driver, failing)
    await driver.client.cancel(cancelled)
    await driver.post()

    await redrive_run(driver, failing)
    await driver.post()

    assert await states_of(driver, child) == ["cancelled"]


async def test_what_completed_meanwhile_is_not_waited_for_again_after_a_redrive(driver: Driver) -> None:
    failing, other = await driver.one(), await driver.one(queue=OTHER)
    child = await driver.after(failing, other)
    await fail_run(driver, failing)
    await driver.post()
    await complete_run(driver, other)
    await driver.post(OTHER)

    await redrive_run(driver, failing)
    await driver.post()
    await complete_run(driver, failing)
    await driver.post()

    assert await states_of(driver, child) == ["pending"]


async def test_a_redriven_parent_that_completes_before_its_outcome_is_delivered_releases_what_it_had_cancelled(
    driver: Driver,
) -> None:
    """The news that it had been redriven is overtaken, and must not be missed for that."""
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent)
    grandchild = await driver.after(child, queue=THIRD)
    await fail_run(driver, parent)
    await driver.post(OTHER)
    assert await states_of(driver, child, grandchild) == ["cancelled", "cancelled"]
    await redrive_run(driver, parent)
    await complete_run(driver, parent)

    await driver.post(OTHER)

    assert await states_of(driver, child, grandchild) == ["pending", "blocked"]


async def test_a_redrive_that_overtakes_the_outcome_of_the_failure_cancels_no_dependent(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent)
    await fail_run(driver, parent)
    await redrive_run(driver, parent)

    await driver.post(OTHER)

    assert await states_of(driver, child) == ["blocked"]


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
    await fail_run(driver, first)
    await driver.post()
    if made == "after":
        await add()
    driver.advance(29 * DAY)
    for queue in QUEUES:
        await driver.client.apply_retention(queue)
    assert await states_of(driver, *children) == ["cancelled"] * 3

    await redrive_run(driver, first)
    await driver.post()

    assert await states_of(driver, *children) == ["blocked"] * 3


async def test_what_a_failure_cancelled_is_forgotten_soon_after_the_dead_letter(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent)
    await fail_run(driver, parent)
    await driver.post(OTHER)

    driver.advance(31 * DAY)
    for queue in (QUEUE, OTHER):
        await driver.client.apply_retention(queue)

    assert not await driver.exists(parent)
    assert not await driver.exists(child)
    left = {key.partition("}:")[2].partition(":")[0] for key in driver.all_keys()}
    assert left <= {"meta", "events", "last_reply", "idle", "heartbeats", "reply"} | HISTORY


async def test_what_a_cancelled_job_cancelled_is_kept_by_its_own_rule(driver: Driver) -> None:
    parent = await driver.one(due="+100000")
    child = await driver.after(parent)
    await driver.client.cancel(parent)
    await driver.post()

    driver.advance(3_600_000)
    await driver.client.apply_retention(QUEUE)

    assert not await driver.exists(child)


async def test_a_deleted_dependent_is_not_brought_back(driver: Driver) -> None:
    parent = await driver.one()
    child = await driver.after(parent)
    grandchild = await driver.after(child)
    await fail_run(driver, parent)
    await driver.post()
    assert await driver.client.delete(child) == "deleted"

    await redrive_run(driver, parent)
    await driver.post()

    assert not await driver.exists(child)
    assert await states_of(driver, grandchild) == ["cancelled"]


async def test_the_death_of_a_dead_letter_leaves_its_dependents_cancelled(driver: Driver) -> None:
    parent = await driver.one()
    child = await driver.after(parent)
    await fail_run(driver, parent)

    await driver.client.delete(parent)
    await driver.post()

    assert await states_of(driver, child) == ["cancelled"]
    assert driver.members("has_dependents") == set()
