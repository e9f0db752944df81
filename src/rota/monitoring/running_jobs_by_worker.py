"""The running jobs of each worker, read from their leases."""

from __future__ import annotations

from itertools import islice
from typing import Final, NamedTuple

from rota.client.rota import Rota
from rota.client.session import checked_session
from rota.store.reads import Lease

#: New runs whose id and task one call reads. Further ones are counted but not named.
MAX_NEW: Final = 1_000


class RunningAttempt(NamedTuple):
    """A run that a worker holds. `id` and `task` are empty if they were not read."""

    lease: Lease
    id: str
    task: str


class RunningJobsByWorker:
    """Reads running jobs, with a cache of their ids and tasks."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota
        self._names: dict[tuple[str, str], tuple[str, str]] = {}

    async def by_worker(self) -> tuple[dict[str, list[RunningAttempt]], bool]:
        """Returns worker -> its attempts in claim order, and whether the list is complete."""
        views = (await checked_session(self._rota)).views
        leases, is_complete = await views.leases(await views.queues())
        new: dict[str, list[str]] = {}
        for lease in islice((one for one in leases if (one.queue, one.run) not in self._names), MAX_NEW):
            new.setdefault(lease.queue, []).append(lease.run)
        names = self._names | await views.read_run_names(new)
        self._names = {key: names[key] for lease in leases if (key := (lease.queue, lease.run)) in names}
        held: dict[str, list[RunningAttempt]] = {}
        for lease in sorted(leases, key=lambda one: (one.claimed_at, one.run)):
            id_, task = self._names.get((lease.queue, lease.run), ("", ""))
            held.setdefault(lease.worker, []).append(RunningAttempt(lease, id_, task))
        return held, is_complete
