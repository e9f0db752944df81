"""The work of a script grows with its data in proportion, and no further.

The server's own processor time is compared, never time by the clock: a busy machine does not change it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from rota.core.dependencies import Parent
from rota.store.batch_limit_constants import BATCH_BY_VERB
from rota.store.create_dependents_and_deliver_outcomes import Edge, JobWithParents, ParentOutcome
from tests.servers import OwnServers
from tests.store.driver import QUEUE, Driver, failed, new_job


@pytest.fixture
async def driver(own_server: OwnServers, namespace: str) -> AsyncIterator[Driver]:
    """A store on a server of its own: what others do would be measured, too."""
    driver = Driver(own_server(), namespace)
    yield driver
    await driver.close()


def cpu_s(driver: Driver) -> float:
    """Processor time that the server has used so far, s."""
    info = driver.redis.info("cpu")
    return info["used_cpu_user"] + info["used_cpu_sys"]


async def cost_of(driver: Driver, act: Callable[[], Awaitable[object]]) -> float:
    """Processor time that the server needs for one action, s."""
    before = cpu_s(driver)
    await act()
    return cpu_s(driver) - before


async def _cost_of_dead_letters(driver: Driver, message: str) -> float:
    """The cheapest of a few full calls."""
    count = BATCH_BY_VERB["fail"]
    costs: list[float] = []
    for _ in range(4):
        await driver.enqueue(*[new_job()] * count)
        reports = [failed(job, message=message) for job in await driver.worker().claim(count)]
        costs.append(await cost_of(driver, lambda reports=reports: driver.worker().store.report(QUEUE, reports)))
    return min(costs)


@pytest.mark.parametrize("word", ["x", "a", "9", "@", '"', "'", "://", "x@", "é"])
async def test_a_long_unbroken_message_costs_a_dead_letter_no_more_than_one_of_short_words(
    driver: Driver, word: str
) -> None:
    short_words = await _cost_of_dead_letters(driver, "lorem x1 " * 111)

    assert await _cost_of_dead_letters(driver, word * (1_000 // len(word))) < 3 * short_words


async def test_each_result_that_a_job_takes_costs_the_same_however_many_came_before(driver: Driver) -> None:
    parents = [Parent(await driver.one(), placeholder=f"rota.result.0.{number}") for number in range(40)]
    join = JobWithParents(new_job("join", [parent.placeholder for parent in parents]), parents)
    (one,), _ = await driver.ties.prepare_dependents(QUEUE, {0: join})
    await driver.ties.register_dependents([Edge(QUEUE, one.run, parent) for parent in parents])
    await driver.ties.publish_prepared_runs(QUEUE, [one.run])
    result = b'"' + b"x" * 25_000 + b'"'

    async def deliver(some: list[Parent]) -> None:
        for parent in some:
            outcome = ParentOutcome(one.run, parent.name, "1", "completed", "", result, "1")
            await driver.ties.apply_parent_outcomes(QUEUE, [outcome])

    await deliver(parents[:1])  # loads the script
    first = await cost_of(driver, lambda: deliver(parents[1:13]))
    last = await cost_of(driver, lambda: deliver(parents[27:39]))

    assert last < 2 * first
    await deliver(parents)
    assert driver.counts() == {"pending": 41}
