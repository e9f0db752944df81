"""Locks: bookings of one account run one at a time, bookings of different accounts in parallel.

rota worker examples.locks:rota
python -m examples.locks
"""

from __future__ import annotations

import asyncio

from rota import Rota

rota = Rota()
#: Account -> balance. Two concurrent bookings of one account would overwrite each other.
balances: dict[str, int] = {}


@rota.task(queue="bank")
async def book(account: str, amount: int) -> int:
    """Reads, waits, writes: safe because no other job holds the account's lock."""
    before = balances.get(account, 0)
    await asyncio.sleep(0.02)
    balances[account] = before + amount
    return balances[account]


async def main() -> None:
    """Enqueues sixty bookings of three accounts at once, and one more that has to wait."""
    async with rota:
        accounts = ("ann", "ben", "cat")
        calls = [book.using(lock=f"account:{account}").call(account, 1) for _ in range(20) for account in accounts]
        jobs = await rota.enqueue_many(calls)
        waiting = await book.using(lock="account:ann", priority="low").enqueue("ann", 100)
        obstacle = (await waiting.refresh()).obstacle
        print("waits for:", obstacle.lock if obstacle else "nothing")
        results = [await job.result(timeout=30) for job in jobs]
        print("in order, none lost:", all(results[n::3] == list(range(1, 21)) for n in range(3)))
        print("ann has", await waiting.result(timeout=30))


if __name__ == "__main__":
    asyncio.run(main())
