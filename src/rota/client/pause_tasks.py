"""Pauses and resumes a task across all workers: see `Rota.pause_task`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rota.client.session import Session
from rota.core.ids import checked_queue, checked_task_name, checked_text
from rota.core.shards import base_of
from rota.errors import InvalidOption
from rota.store.batch_limit_constants import MAX_PAUSED_TASKS
from rota.store.reads import PausedTask

#: Characters of a note, and of the name of who pauses.
MAX_PAUSE_TEXT: Final = 500


async def pause_task(session: Session, task: str, *, queue: str | None, note: str, by: str) -> list[str]:
    """Pauses a task in one queue, or in all that have had its jobs. Returns the queues."""
    note, by = checked_pause_text(note, "note"), checked_pause_text(by, "by")
    names = await _names(session, checked_task_name(task), queue)
    if not names:
        raise InvalidOption("queue", f"no queue has had a job of task {task!r}: check the name, or give the queue")
    for name in names:
        if not await session.store.pause_task(name, task, by=by, note=note):
            raise InvalidOption("task", f"queue {name} has {MAX_PAUSED_TASKS} paused tasks: pause the queue instead")
    return list(dict.fromkeys(map(base_of, names)))


async def resume_task(session: Session, task: str, *, queue: str | None) -> list[str]:
    """Resumes a task. Returns the queues. What one call leaves, claims put back."""
    names = [one.queue for one in await read_paused_tasks(session, queue) if one.task == checked_task_name(task)]
    for name in names:
        await session.store.resume_task(name, task)
    return list(dict.fromkeys(map(base_of, names)))


async def read_paused_tasks(session: Session, queue: str | None = None) -> list[PausedTask]:
    """Returns the paused tasks of one queue or of all; a shard of a queue counts as a queue."""
    names = await session.shards.names_of_all(checked_queue(queue) if queue else None)
    return await session.views.paused_tasks(names)


def checked_pause_text(text: str, option: str) -> str:
    """Returns a note or a name. Raises InvalidOption."""
    if len(checked_text(text, option)) > MAX_PAUSE_TEXT:
        raise InvalidOption(option, f"has {len(text):,} characters: use at most {MAX_PAUSE_TEXT}")
    return text


async def _names(session: Session, task: str, queue: str | None) -> Sequence[str]:
    if queue is not None:
        return await session.shards.names_of(checked_queue(queue))
    return await session.views.queues_of_task(task, await session.shards.names_of_all(None))
