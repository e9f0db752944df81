"""Results that a job takes from its parents: collected beside its record, filled in once, and bounded."""

from __future__ import annotations

import json
from typing import Final

import pytest

from rota.core.dependencies import Parent
from rota.core.ids import JobRef
from rota.core.state_transitions import JobState
from rota.store.create_dependents_and_deliver_outcomes import WORKFLOWS, Edge, JobWithParents, ParentOutcome
from tests.store.driver import QUEUE, Driver, new_job, run_of

pytestmark = pytest.mark.usefixtures("check_every_queue")

LIMIT: Final = 1_000


def placeholder(number: int) -> str:
    return f"rota.result.abc.{number}"


async def fan_in(driver: Driver, parents: int, *, taken: int = 1, limit: int = LIMIT) -> tuple[list[JobRef], JobRef]:
    """Parents, and a job that takes the result of each, `taken` times."""
    refs = [await driver.one() for _ in range(parents)]
    takes = [Parent(ref, placeholder=placeholder(number)) for number, ref in enumerate(refs)]
    job = new_job("join", [placeholder(number) for number in range(parents)] * taken)
    (one,), _ = await driver.ties.prepare_dependents(QUEUE, {0: JobWithParents(job, takes)}, max_payload=limit)
    await driver.ties.register_dependents([Edge(QUEUE, one.run, parent) for parent in takes])
    await driver.ties.publish_prepared_runs(QUEUE, [one.run])
    return refs, JobRef(QUEUE, one.id, one.run)


async def complete_next(driver: Driver, result: str) -> None:
    (job,) = await driver.worker().claim()
    await driver.worker().complete(job, json.dumps(result).encode())
    await driver.post()


def arguments(driver: Driver, ref: JobRef) -> list[str]:
    return json.loads(driver.hash("jobs")[run_of(ref)].split("\n", 3)[3])


async def test_the_record_is_written_once_when_all_results_are_known(driver: Driver) -> None:
    _, join = await fan_in(driver, 3)
    before = driver.hash("jobs")[run_of(join)]

    for number in range(2):
        await complete_next(driver, f"result {number}")
        assert driver.hash("jobs")[run_of(join)] == before
    await complete_next(driver, "result 2")

    assert arguments(driver, join) == ["result 0", "result 1", "result 2"]
    assert await driver.state(join) is JobState.PENDING
    assert driver.hash("parent_results", run_of(join)) == {}


@pytest.mark.parametrize("sizes", [(400, 400, 400), (999,), (10, 2_000, 10)])
async def test_a_job_whose_results_are_too_long_is_cancelled_and_keeps_none_of_them(
    driver: Driver, sizes: tuple[int, ...]
) -> None:
    _, join = await fan_in(driver, len(sizes))

    for size in sizes:
        await complete_next(driver, "x" * size)
        held = driver.hash("parent_results", run_of(join))
        assert sum(map(len, held.values())) <= LIMIT + 50

    record = (await driver.read(join)).record
    assert record.state is JobState.CANCELLED
    assert "longer than 1000 bytes with the results of the jobs before it" in record.reason
    assert driver.hash("parent_results", run_of(join)) == {}


@pytest.mark.parametrize(("taken", "state"), [(9, JobState.PENDING), (10, JobState.CANCELLED)])
async def test_a_result_counts_as_often_as_it_is_taken(driver: Driver, taken: int, state: JobState) -> None:
    """["xxx…", "xxx…"]: the brackets, and for each 98 letters, quotes, and a comma between them."""
    _, join = await fan_in(driver, 1, taken=taken, limit=9 * 102)

    await complete_next(driver, "x" * 98)

    assert await driver.state(join) is state


async def test_results_that_were_known_before_it_was_published_are_filled_in(driver: Driver) -> None:
    parent = await driver.one()
    (job,) = await driver.worker().claim()
    await driver.worker().complete(job, b'"known"')
    takes = Parent(parent, placeholder=placeholder(0))
    job_with_parents = JobWithParents(new_job("join", [placeholder(0)]), [takes])
    (one,), _ = await driver.ties.prepare_dependents(QUEUE, {0: job_with_parents})
    await driver.ties.register_dependents([Edge(QUEUE, one.run, takes)])

    await driver.ties.publish_prepared_runs(QUEUE, [one.run])

    join = JobRef(QUEUE, one.id, one.run)
    assert (await driver.state(join), arguments(driver, join)) == (JobState.PENDING, ["known"])


async def test_a_discarded_job_leaves_no_results(driver: Driver) -> None:
    parent = await driver.one()
    takes = Parent(parent, placeholder=placeholder(0))
    job = JobWithParents(new_job("join", [placeholder(0)]), [takes])
    (one,), _ = await driver.ties.prepare_dependents(QUEUE, {0: job})
    edges = [Edge(QUEUE, one.run, takes)]
    await driver.ties.register_dependents(edges)
    await complete_next(driver, "late")

    await driver.ties.discard_prepared_runs(QUEUE, [one.run], edges)

    assert driver.hash("parent_results", one.run) == {}


# --- workflows --------------------------------------------------------------------------------------------------


def of_item(item: int, result: bytes) -> ParentOutcome:
    return ParentOutcome("w", f"m0.{item}", "1", "completed", "", result, "1")


async def test_the_results_of_a_workflow_are_not_in_its_record(driver: Driver) -> None:
    await driver.workflow("w", steps=2)
    await driver.ties.deliver_outcomes(WORKFLOWS, [ParentOutcome("w", "s0", "1", "completed", "", b"7" * 1_000, "1")])

    record = driver.redis.hgetall(driver.keys.shared("workflow", "w"))

    assert sum(map(len, record.values())) < 700
    assert await driver.flows.read_results("w", ["0"]) == [b"7" * 1_000]


async def test_the_results_of_a_list_are_kept_up_to_the_limit_of_a_payload(driver: Driver) -> None:
    await driver.workflow("w", steps=2)
    driver.redis.hset(driver.keys.shared("workflow", "w"), mapping={"max_payload": LIMIT, "n0": 5})

    await driver.ties.deliver_outcomes(WORKFLOWS, [of_item(item, b"7" * 300) for item in range(5)])

    found = await driver.flows.read_results("w", [*(f"0.{item}" for item in range(5)), "size:0"])
    assert found == [b"7" * 300] * 3 + [None] * 2 + [b"1500"]
