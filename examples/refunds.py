"""A failure handler: a task that runs when a job has failed for good.

rota worker examples.refunds:rota
python -m examples.refunds
"""

from __future__ import annotations

import asyncio

from rota import ErrorRecord, Fixed, JobFailed, JobRecord, Retry, Rota

rota = Rota()


class BankClosed(Exception):
    """An error with an attribute: attributes are stored, and passed to the failure handler."""

    def __init__(self, opens_at: str) -> None:
        super().__init__("the bank is closed")
        self.opens_at = opens_at


@rota.task(queue="orders", retry=Retry(attempts=2, backoff=Fixed(0.1)))
async def charge(order: int, amount: float) -> str:
    """Charges an order. The bank of this example rejects large amounts."""
    if amount > 100:
        raise BankClosed(opens_at="9:00")
    return f"order {order}: charged {amount:.2f}"


@charge.on_failure
async def release(error: ErrorRecord, job: JobRecord, order: int, amount: float) -> str:
    """Runs as a separate job, enqueued atomically with the failure of the first: no crash can lose it."""
    again = f"try {amount:.2f} again at {error.attributes['opens_at']}"
    return f"order {order}: released after {job.counts.failures} failures, {again}"


async def main() -> None:
    """Enqueues one order that can be charged and one that cannot."""
    async with rota:
        print(await (await charge.enqueue(1, 20)).result(timeout=30))
        failing = await charge.enqueue(2, 2_000)
        try:
            await failing.result(timeout=30)
        except JobFailed as failed:
            print(failed.error.message if failed.error else "")
        (handler,) = [entry for entry in await failing.history() if entry.verb == "failure_job"]
        print(await rota.job(handler.note).result(timeout=30))


if __name__ == "__main__":
    asyncio.run(main())
