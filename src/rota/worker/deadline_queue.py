"""The deadlines of running jobs: timeouts, missing progress, ignored stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rota.worker.running_jobs import RunningJob

#: What becomes due (timeout, progress, ignored, kill), and how many seconds after it was set.
Deadline = tuple[str, float]


class Deadlines:
    """Deadlines of running jobs.

    Those of one kind and length are kept in one dict, in the order in which they were set, which is the order in which
    they become due. Setting and clearing a deadline is O(1).
    """

    def __init__(self) -> None:
        self._due_times: dict[Deadline, dict[RunningJob, float]] = {}

    def put(self, deadline: Deadline, job: RunningJob, now: float) -> float:
        """Sets a deadline, or restarts it if it is set; returns when it is due."""
        due_times = self._due_times.get(deadline)
        if due_times is None:
            due_times = self._due_times[deadline] = {}
        if due_times.pop(job, None) is None:
            job.deadlines = (*job.deadlines, deadline)
        due = due_times[job] = now + deadline[1]
        return due

    def drop(self, job: RunningJob) -> None:
        """Clears all deadlines of a job."""
        for deadline in job.deadlines:
            due_times = self._due_times[deadline]
            del due_times[job]
            if not due_times:
                del self._due_times[deadline]
        job.deadlines = ()

    def next(self) -> float | None:
        """When the first deadline is due; None when none is set."""
        return min((next(iter(due_times.values())) for due_times in self._due_times.values()), default=None)

    def due(self, now: float) -> list[tuple[RunningJob, str]]:
        """Removes and returns the deadlines that are due."""
        found: list[tuple[RunningJob, str]] = []
        for deadline, due_times in list(self._due_times.items()):
            for job, at in list(due_times.items()) if next(iter(due_times.values())) <= now else ():
                if at > now:
                    break
                del due_times[job]
                job.deadlines = tuple(other for other in job.deadlines if other != deadline)
                found.append((job, deadline[0]))
            if not due_times:
                del self._due_times[deadline]
        return found

    def __len__(self) -> int:
        return sum(map(len, self._due_times.values()))
