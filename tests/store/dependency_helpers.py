"""What the tests of dependencies share: queues, and the ends of jobs."""

from __future__ import annotations

from typing import Final

from rota.core.ids import JobRef
from rota.store.claim_replies import ClaimedJob
from tests.store.driver import QUEUE, Driver

OTHER: Final = "other"
THIRD: Final = "third"
QUEUES: Final = (QUEUE, OTHER, THIRD)
DAY: Final = 24 * 3_600_000


async def claim_run(driver: Driver, ref: JobRef, worker: str = "w1") -> ClaimedJob:
    """Claims that very run, which is the first of its queue."""
    (job,) = await driver.worker(worker).claim(queue=ref.queue)
    assert job.run == ref.run
    return job


async def states_of(driver: Driver, *refs: JobRef) -> list[str]:
    return [(await driver.state(ref)).value for ref in refs]


async def complete_run(driver: Driver, ref: JobRef) -> None:
    assert await driver.worker().complete(await claim_run(driver, ref)) == "ok"


async def fail_run(driver: Driver, ref: JobRef) -> None:
    assert await driver.worker().fail(await claim_run(driver, ref)) == "ok"


async def redrive_run(driver: Driver, ref: JobRef) -> None:
    assert await driver.client.redrive(ref.queue, [ref]) == ["redriven"]
