"""Idempotency keys and fences: how a handler makes at-least-once execution safe for the systems it writes to.

A job may run twice, for example if its worker dies after the side effect. Two values let the other system detect it:

- `ctx.idempotency_key` is the same in every attempt of a run: a payment with that key is booked once.
- `ctx.fence` grows with every claim of the queue: a system that rejects a fence smaller than the last one is safe from
  a worker that was paused, lost its lease, and continues.

rota worker examples.fences:rota
python -m examples.fences
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from tempfile import gettempdir

from rota import Context, Retry, Rota

rota = Rota()
LEDGER = Path(gettempdir()) / "rota-fences.sqlite"


class Ledger:
    """The other system: a database that enforces both rules."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, timeout=10)
        with self._database:
            self._database.execute("create table if not exists payments (key text primary key, cents integer)")
            self._database.execute("create table if not exists balance (account text primary key, fence integer)")

    def pay(self, key: str, cents: int) -> bool:
        """Books a payment. Returns False if a payment with that key was booked before."""
        with self._database:
            booked = self._database.execute("insert or ignore into payments values (?, ?)", (key, cents))
        return booked.rowcount == 1

    def touch(self, account: str, fence: int) -> bool:
        """Accepts a write, unless one with a larger fence came first."""
        with self._database:
            written = self._database.execute(
                "insert into balance values (?, ?) on conflict (account) do update set fence = excluded.fence"
                " where excluded.fence >= fence",
                (account, fence),
            )
        return written.rowcount == 1

    def close(self) -> None:
        """Closes the file."""
        self._database.close()


@rota.task(queue="payments", retry=Retry(attempts=3, backoff=[0.1]))
def charge(ctx: Context, account: str, cents: int, ledger: str) -> str:
    """Pays, then fails once: the second attempt must not pay again."""
    with closing(Ledger(Path(ledger))) as books:
        is_first = books.pay(ctx.idempotency_key, cents)
        if not books.touch(account, ctx.fence):
            return "a newer owner has written: this attempt came too late"
    if ctx.attempt == 1:
        raise ConnectionError("paid, but the response was lost")
    return f"attempt {ctx.attempt}: {'paid' if is_first else 'had been paid already'}"


async def main(ledger: Path) -> None:
    """One charge, two attempts, one payment."""
    async with rota:
        job = await charge.enqueue("ann", 4200, str(ledger))
        print(await job.result(timeout=30))
    with closing(sqlite3.connect(ledger)) as database:
        print("payments of this job:", database.execute("select count(*) from payments").fetchone()[0])
    with closing(Ledger(ledger)) as books:
        print("an older fence is refused:", not books.touch("ann", 0))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else LEDGER))
