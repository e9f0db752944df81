"""What each worker runs now: as the store has it, and not as it was when the worker last said so.

A page that shows it asks twice a second while jobs come and go, so the names of runs are read once.
"""

from __future__ import annotations

from itertools import islice
from typing import Final, NamedTuple

from rota.client import Rota
from rota.store.views import Lease

#: Runs whose names one answer reads. Where more are new than that, the others are counted and not shown.
NAMED: Final = 1_000


class Held(NamedTuple):
    """A run that a worker holds, and what it is called; nothing where that was not read."""

    lease: Lease
    id: str
    task: str


class Leases:
    """Remembers what the runs that are at work are called."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota
        self._names: dict[tuple[str, str], tuple[str, str]] = {}

    async def by_worker(self) -> tuple[dict[str, list[Held]], bool]:
        """Worker -> what it holds, as it was claimed; and whether that is all, or the first of many."""
        views = (await self._rota.checked_link()).views
        leases, are_all = await views.leases(await views.queues())
        new: dict[str, list[str]] = {}
        for lease in islice((one for one in leases if (one.queue, one.run) not in self._names), NAMED):
            new.setdefault(lease.queue, []).append(lease.run)
        names = self._names | await views.names(new)
        self._names = {key: names[key] for lease in leases if (key := (lease.queue, lease.run)) in names}
        held: dict[str, list[Held]] = {}
        for lease in sorted(leases, key=lambda one: (one.claimed_at, one.run)):
            id_, task = self._names.get((lease.queue, lease.run), ("", ""))
            held.setdefault(lease.worker, []).append(Held(lease, id_, task))
        return held, are_all
