"""Reports of finished attempts that have not been stored yet."""

from __future__ import annotations

import asyncio
from typing import Final

from rota.store.report_encoding import Report
from rota.worker.running_jobs import RunningJobs

#: So many reports are enough for a round trip of their own, also while every slot is busy.
ENOUGH_REPORTS: Final = 60


class ReportBuffer:
    """Collects reports, by queue, from the dispatcher until the claim/report loop has stored them.

    A report is kept until the store has answered for it, however long that takes.
    """

    def __init__(self, running: RunningJobs, wake_up: asyncio.Event) -> None:
        self._running = running
        self._wake_up = wake_up
        self._by_queue: dict[str, list[Report]] = {}
        #: Reports added since the last round trip began.
        self.added = 0
        #: There are enough reports for a round trip, or a slot is free.
        self.is_urgent = asyncio.Event()

    def __bool__(self) -> bool:
        return bool(self._by_queue)

    def add(self, queue: str, report: Report) -> None:
        """Adds a report for the next round trip."""
        self._by_queue.setdefault(queue, []).append(report)
        self.added += 1
        self._wake_up.set()
        if self.added >= ENOUGH_REPORTS or not self._running.waiting:  # then a slot is free
            self.is_urgent.set()

    def snapshot(self) -> dict[str, list[Report]]:
        """The reports so far."""
        return {queue: list(reports) for queue, reports in self._by_queue.items()}

    def remove(self, stored: dict[str, list[Report]]) -> None:
        """Removes a snapshot that has been stored. More reports may have been added meanwhile."""
        for queue, reports in stored.items():
            left = self._by_queue[queue][len(reports) :]
            if left:
                self._by_queue[queue] = left
            else:
                del self._by_queue[queue]

    def remove_one(self, queue: str, report: Report) -> None:
        """Removes one report."""
        reports = self._by_queue[queue]
        reports.remove(report)
        if not reports:
            del self._by_queue[queue]
