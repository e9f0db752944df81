"""Turns what was asked for over HTTP into a call of a task, and stores it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from rota.core.after import known as known_parent
from rota.core.after import may_fail
from rota.core.job import Counts, JobRecord
from rota.core.same_id import Ignore, OnSameId, Reject, Update
from rota.core.states import JobState
from rota.core.values import is_array
from rota.errors import InvalidOption, JobNotFound
from rota.jobs import Job
from rota.server.catalog import KnownTask
from rota.server.problems import Problem
from rota.server.schemas.jobs import Dependency, JobOptions, NewJob, SameId
from rota.server.visits import Visit
from rota.tasks import Call

_SAME_ID: Final[Mapping[str, OnSameId]] = {"update": Update(), "ignore": Ignore(), "reject": Reject()}
#: Options that mean the same to `Task.using`.
_PLAIN: Final = (
    "queue", "priority", "delay", "lock", "timeout", "max_stalls", "at_most_once", "expires", "tags", "meta",
)  # fmt: skip


def make_call(known: KnownTask, data: Any, options: JobOptions, **more: Any) -> Call[Any]:
    """The call, checked as far as it can be here. `more` are options for `Task.using` as they are."""
    check_data(known, data)
    return make_unchecked_call(known, data, options, **more)


def make_unchecked_call(known: KnownTask, data: Any, options: JobOptions, **more: Any) -> Call[Any]:
    """The same with data that is only known in part."""
    task = known.task
    chosen = {name: value for name in _PLAIN if (value := getattr(options, name)) is not None}
    chosen |= {name: value for name, value in more.items() if value is not None}
    if options.run_at is not None:
        chosen["run_at"] = read_time(options.run_at)
    if options.attempts is not None:  # the backoff stays the task's own
        chosen["retry"] = msgspec.structs.replace(task.options.retry, attempts=options.attempts)
    if options.dependencies:
        chosen["after"] = [_parent(one) for one in options.dependencies]
    args, kwargs = split_data(data)
    return (task.using(**chosen) if chosen else task).call(*args, **kwargs)


def check_data(known: KnownTask, data: Any) -> None:
    """Refuses data that does not fit what workers announced."""
    if data is not None or known.source == "worker":
        known.check({} if data is None else data)


def split_data(data: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Positional and named arguments."""
    if data is None:
        return (), {}
    return (data, {}) if is_array(data) else ((), data)


def read_time(text: str, option: str = "run_at") -> datetime:
    """A moment, which has to say of which clock it is."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidOption(option, f"{text!r} is no time: write it as 2026-12-24T18:00:00Z") from None
    if when.utcoffset() is None:
        raise InvalidOption(option, f"{text!r} has no zone: add Z, or +01:00")
    return when


def same_id(chosen: str | SameId | None) -> OnSameId | None:
    """What to do where the id has an unfinished run."""
    if chosen is None or isinstance(chosen, str):
        return None if chosen is None else _SAME_ID[chosen]
    return Update(**chosen.model_dump())


async def enqueue(visit: Visit, body: NewJob, token: str | None) -> tuple[Job[Any], dict[str, Any]]:
    """Stores a job; the handle, and the job as it is then."""
    known = await visit.server.catalog.find(body.type)
    visit.check_queue(body.queue or known.task.queue)  # first: what tasks of other queues take is nobody's business
    call = make_call(known, body.data, body, id=body.id, on_same_id=same_id(body.on_same_id))
    for parent in call.parents:
        visit.check_queue(parent.ref.queue)
    if token is not None:
        call = call.once(token)
    try:
        job = await visit.rota.enqueue(call)
    except JobNotFound as error:
        raise Problem(422, "unknown_dependency", f"dependencies: {error}") from error
    return job, visit.server.shapes.job(await _record(visit, job, call))


async def _record(visit: Visit, job: Job[Any], call: Call[Any]) -> JobRecord:
    """The job as it was stored. Where that depends on others, which hold its id, its lock or it up, it is read."""
    if call.job.id or call.options.lock or call.parents:
        snapshot = await visit.server.reads.find(job.ref)
        if snapshot is not None:  # else it is not kept, and over by now
            return snapshot.record
    at = job.enqueued_at or 0
    due = call.job.due
    due_at = at + int(due) if due.startswith("+") else int(due or at)
    return JobRecord(
        ref=job.ref,
        task=call.task.name,
        state=JobState.SCHEDULED if due_at > at else JobState.PENDING,
        arguments=call.job.body.split(b"\n", 2)[2],
        options=call.options,
        counts=Counts(),
        enqueued_at=at,
        due_at=max(at, due_at),
    )


def _parent(given: str | Dependency) -> Any:
    if isinstance(given, str):
        return given
    parent = known_parent(given.job, if_gone=given.if_gone)
    return may_fail(parent) if given.may_fail else parent
