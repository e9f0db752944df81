"""How many jobs of a task this worker may run at once: `@rota.task(per_worker=5)`.

A claim names the tasks that may be full (`claim_words`), and the server passes over their runs, so that other tasks of
the queue do not wait behind them. What comes nevertheless, by a push or by the claims of two queues at once, is
returned unstarted and uncharged. No job is held back here: it could start on another worker.
"""

from __future__ import annotations

from collections.abc import Mapping

from rota.worker.runners.protocol import AppDescription


def limits_per_worker(app: AppDescription) -> dict[bytes, int]:
    """Task -> how many of its jobs one worker may run, for those that have such a limit."""
    limits = {name: declared.get("per_worker") for name, declared in app.tasks.items()}
    return {name.encode(): limit for name, limit in limits.items() if limit is not None}


class TaskSlots:
    """Counts the jobs of each limited task that the worker holds, from their dispatch to the end of their handlers."""

    def __init__(self, per_worker: Mapping[bytes, int]) -> None:
        self._room = dict(per_worker)
        self._per_worker = per_worker
        #: A slot of a task was freed since `take_freed`.
        self._has_freed = False

    def take(self, task: bytes) -> bool:
        """Takes a slot of the task. False if it has none left."""
        room = self._room.get(task)
        if room == 0:
            return False
        if room is not None:
            self._room[task] = room - 1
        return True

    def release(self, task: bytes) -> None:
        """Frees a slot of the task."""
        if task in self._room:
            self._room[task] += 1
            self._has_freed = True

    def take_freed(self) -> bool:
        """True if a slot was freed since the last call."""
        has_freed, self._has_freed = self._has_freed, False
        return has_freed

    def has_room_for(self, jobs: int) -> bool:
        """True if no limited task is full after so many jobs more."""
        return all(room >= jobs for room in self._room.values())

    def claim_words(self, limit: int, passed_until: int) -> str:
        """What a claim for `limit` jobs says of the tasks that it may fill; "" if there is none.

        `passed_until` is where the last claim of the queue ended.
        """
        words = [f"{task.decode()}={room}" for task, room in self._room.items() if room < limit]
        return f"{passed_until} {' '.join(words)}" if words else ""
