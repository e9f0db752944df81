"""Many jobs in one call, and their results.

rota worker examples.reports:rota --concurrency 50
python -m examples.reports
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from rota import JobState, Rota

rota = Rota()


@dataclass
class Sales:
    """A result. Arguments and results are checked against their annotations, dataclasses included."""

    region: str
    month: int
    total: float


@rota.task(queue="reports", keep=600)
async def summarise(region: str, month: int) -> Sales:
    """Stands in for a database query."""
    await asyncio.sleep(0.01)
    return Sales(region, month, total=100.0 * month + len(region))


async def main() -> None:
    """Enqueues a report for each region and month in one round trip."""
    regions = ("north", "east", "south", "west")
    async with rota:
        jobs = await rota.enqueue_many(
            # The id names the report, so enqueueing a report twice makes one job.
            summarise.using(id=f"2026-{month:02}-{region}", tags=[region]).call(region, month)
            for region in regions
            for month in range(1, 13)
        )
        results = await asyncio.gather(*(job.result(timeout=60) for job in jobs))
        print(f"{len(results)} reports, total {sum(sales.total for sales in results):,.0f}")
        best = max(results, key=lambda sales: sales.total)
        print(f"best: {best.region} in month {best.month}")
        page = await rota.jobs(JobState.COMPLETED, queue="reports", tag="north", limit=3)
        print("latest of the north:", len(page.jobs), "of", page.examined, "examined")


if __name__ == "__main__":
    asyncio.run(main())
