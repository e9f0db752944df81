"""Enqueues the jobs of request bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from rota.client.job import Job
from rota.client.session import sessions_of
from rota.client.tasks import Call
from rota.core.dependencies import known as known_parent
from rota.core.dependencies import may_fail
from rota.core.encrypted_values import decrypt_arguments
from rota.core.ids import JobRef
from rota.core.job_record import AttemptCounts, JobRecord
from rota.core.json_schema_validator import is_array
from rota.core.same_id_policy import Ignore, OnSameId, Reject, Update
from rota.core.state_transitions import JobState
from rota.errors import InvalidOption, JobNotFound
from rota.server.http.problem_responses import Problem
from rota.server.request_context_and_permissions import RequestContext
from rota.server.schemas.jobs import Dependency, JobOptions, NewJob, SameId
from rota.server.task_catalog import KnownTask

_SAME_ID: Final[Mapping[str, OnSameId]] = {"update": Update(), "ignore": Ignore(), "reject": Reject()}
#: Options that `Task.using` takes unchanged.
_PLAIN: Final = (
    "queue",
    "priority",
    "delay",
    "lock",
    "timeout",
    "max_stalls",
    "at_most_once",
    "expires",
    "tags",
    "meta",
)
#: Options of `Task.using` that have another name in a request.
_FIELDS: Final[Mapping[str, str]] = {"after": "dependencies", "retry": "attempts"}


def make_call(known: KnownTask, data: Any, options: JobOptions, **more: Any) -> Call[Any]:
    """Returns the call, with its data checked. `more` are further options of `Task.using`."""
    check_data(known, data)
    return make_unchecked_call(known, data, options, **more)


def make_unchecked_call(known: KnownTask, data: Any, options: JobOptions, **more: Any) -> Call[Any]:
    """Returns the call without checking its data, which may contain placeholders."""
    task = known.task
    chosen = {name: value for name in _PLAIN if (value := getattr(options, name)) is not None}
    chosen |= {name: value for name, value in more.items() if value is not None}
    if options.run_at is not None:
        chosen["run_at"] = read_time(options.run_at)
    if options.attempts is not None:  # the backoff stays that of the task
        chosen["retry"] = msgspec.structs.replace(task.options.retry, attempts=options.attempts)
    if options.dependencies:
        chosen["after"] = [_parent(one) for one in options.dependencies]
    args, kwargs = split_data(data)
    try:
        return (task.using(**chosen) if chosen else task).call(*args, **kwargs)
    except InvalidOption as error:
        raise InvalidOption(_FIELDS.get(error.option, error.option), error.reason) from error


def check_data(known: KnownTask, data: Any) -> None:
    """Refuses data that does not match the schema announced by workers."""
    if data is not None or known.source == "worker":
        known.check({} if data is None else data)


def split_data(data: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Returns positional and named arguments."""
    if data is None:
        return (), {}
    return (data, {}) if is_array(data) else ((), data)


def read_time(text: str, option: str = "run_at") -> datetime:
    """Parses an ISO 8601 time with a zone. Raises InvalidOption."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidOption(option, f"{text!r} is not a time: write it as 2026-12-24T18:00:00Z") from None
    if when.utcoffset() is None:
        raise InvalidOption(option, f"{text!r} has no time zone: add Z or +01:00")
    return when


def same_id(chosen: str | SameId | None) -> OnSameId | None:
    """Returns the policy for an id that has an unfinished run."""
    if chosen is None or isinstance(chosen, str):
        return None if chosen is None else _SAME_ID[chosen]
    return Update(**chosen.model_dump())


async def enqueue(context: RequestContext, body: NewJob, token: str | None) -> tuple[Job[Any], JobRecord]:
    """Enqueues a job. Returns its handle and its record as stored."""
    known = await context.runnable_task(body.type, body.queue)  # before the arguments: their errors describe the task
    call = make_call(known, body.data, body, id=body.id, on_same_id=same_id(body.on_same_id))
    for parent in call.parents:
        context.check_queue(parent.ref.queue)
    context.count_enqueues(1)
    call = call.attributed(context.identity.name)
    if token is not None:
        call = call.once(token)
    try:
        job = await context.rota.enqueue(call)
    except JobNotFound as error:
        raise unknown_dependency(error) from error
    return job, await _record(context, job, call)


async def _record(context: RequestContext, job: Job[Any], call: Call[Any]) -> JobRecord:
    """Returns the stored record. It is read only if its state depends on other jobs: by its id, lock or parents."""
    if call.job.id or call.options.lock or call.parents:
        snapshot = await context.server.job_reader.find(job.ref)
        if snapshot is not None:  # else it has ended and was not kept
            return snapshot.record
    at = job.enqueued_at or 0
    due = call.job.due
    due_at = at + int(due) if due.startswith("+") else int(due or at)
    return JobRecord(
        ref=job.ref,
        task=call.task.name,
        state=JobState.SCHEDULED if due_at > at else JobState.PENDING,
        arguments=decrypt_arguments(sessions_of(context.rota).codec, call.task.name, call.job.body.split(b"\n", 2)[2]),
        options=call.options,
        counts=AttemptCounts(),
        enqueued_at=at,
        due_at=max(at, due_at),
    )


def unknown_dependency(error: JobNotFound) -> Problem:
    """The problem of a dependency that does not exist."""
    entry = {"source": "body", "field": "dependencies", "message": str(error)}
    return Problem(422, "unknown_dependency", f"dependencies: {error}", errors=[entry])


def _parent(given: str | Dependency) -> Any:
    try:
        JobRef.parse(given if isinstance(given, str) else given.job)
    except InvalidOption as error:
        raise InvalidOption("dependencies", f"{error.option} {error.reason}") from error
    if isinstance(given, str):
        return given
    parent = known_parent(given.job, if_gone=given.if_gone)
    return may_fail(parent) if given.may_fail else parent
