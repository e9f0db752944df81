"""Encodes and decodes what the store keeps of a job: its record, its status line and its arguments.

The record of an enqueued job has four lines: `=<chosen id> <enqueued_at>` or `<random suffix> <enqueued_at>`; the
options, or nothing; the task; the arguments. Options are separated by tabs, because the scripts replace single ones
when an id is enqueued again: general options, attempts, backoff, max_stalls, tags with meta and trace, lock, parents,
search terms, blobs. The status of a run is one line, see `parse_and_format_run_record.lua`. Arguments are a JSON
array if all are positional, else a JSON object with positional arguments beyond the named ones under `*`.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, NamedTuple, cast

import msgspec

from rota.core.encrypted_values import Codec, decrypt_arguments, decrypt_result, escape_marks
from rota.core.ids import JobRef, auto_id
from rota.core.job_options import DEFAULT_MAX_STALLS, DEFAULT_OPTIONS, DEFAULT_TIMEOUT_MS, Keep, Options
from rota.core.job_record import AttemptCounts, ErrorRecord, HistoryEntry, JobRecord, Obstacle, Progress
from rota.core.retry import Backoff, Retry, RulesByException
from rota.core.state_transitions import JobState
from rota.core.workflow_record_and_decisions import StepResult
from rota.errors import Undecryptable


class ContainsStepResult(Exception):
    """Raised by the plain encoder at a `StepResult`: the caller encodes again, with placeholders.

    An exception, because looking for results before encoding would cost every enqueue a walk through its arguments.
    """


def encode_placeholder_hook(value: Any) -> Any:
    """Encodes the result of a step as its placeholder."""
    return value.placeholder if isinstance(value, StepResult) else encode_hook(value)


def encode_hook(value: Any) -> Any:
    """Encodes Pydantic models. Raises `ContainsStepResult`, or TypeError for values that JSON has no type for."""
    if isinstance(value, StepResult):
        raise ContainsStepResult(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} is not JSON")


def decode_hook(annotation: type, value: Any) -> Any:
    """Decodes Pydantic models. Raises TypeError for types that JSON cannot be read into."""
    if isinstance(value, annotation):
        return value
    model: Any = annotation
    if hasattr(model, "model_validate"):
        return model.model_validate(value)
    raise TypeError(f"{annotation.__name__} cannot be read from JSON")


_encode_with_placeholders: Final = msgspec.json.Encoder(enc_hook=encode_placeholder_hook).encode
_encode: Final = msgspec.json.Encoder(enc_hook=encode_hook).encode
_arguments: Final = msgspec.json.Decoder(list[Any] | dict[str, Any])
_error: Final = msgspec.json.Decoder(ErrorRecord)
_entry: Final = msgspec.json.Decoder(HistoryEntry)


DEFAULT_RETRY: Final = Retry()
FIRST_ATTEMPT: Final = AttemptCounts(attempt=1)


class UndecodableRecord(ValueError):
    """A record that this version cannot read. It is kept as a dead letter, never dropped."""


class _GeneralOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    priority: int = 0
    timeout_ms: int | None = DEFAULT_TIMEOUT_MS
    progress_timeout_ms: int | None = None
    at_most_once: bool = False
    expires_ms: int | None = None
    expires_at: int | None = None
    keep: Keep = DEFAULT_OPTIONS.keep  # the same object, so that omit_defaults leaves it out
    workflow: str = ""


class _RetryOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    backoff: Backoff = cast("Backoff", DEFAULT_OPTIONS.retry.backoff)
    on: RulesByException = {}


class _Metadata(msgspec.Struct, frozen=True, omit_defaults=True):
    tags: tuple[str, ...] = ()
    meta: dict[str, Any] = {}
    trace: dict[str, str] = {}
    by: str = ""


class _FailureArguments(msgspec.Struct, frozen=True):
    """The failed job in the arguments of a failure job, as `enqueue_failure_jobs.lua` writes it."""

    ref: str
    task: str
    options: str
    enqueued_at: int
    attempt: int
    failures: int
    stalls: int
    snoozes: int
    handbacks: int
    worker: str
    claimed_at: int
    ended_at: int
    reason: str


_failure_arguments: Final = msgspec.json.Decoder(tuple[ErrorRecord, _FailureArguments, msgspec.Raw])
_general_options: Final = msgspec.json.Decoder(_GeneralOptions)
_retry_options: Final = msgspec.json.Decoder(_RetryOptions)
_metadata: Final = msgspec.json.Decoder(_Metadata)


class Body(msgspec.Struct, frozen=True):
    """The parts of a job's record."""

    id: str
    enqueued_at: int
    options: Options
    task: str
    arguments: bytes


def encode_body(options: Options, task: str, arguments: bytes) -> bytes:
    """Returns the record without its first line, which the server writes."""
    encoded = b"" if options is DEFAULT_OPTIONS else encode_options(options)
    return b"%b\n%b\n%b" % (encoded, task.encode(), arguments)


def encode_options(options: Options) -> bytes:
    """Returns the options line of a record; empty if all options have their defaults."""
    retry = options.retry
    general = _GeneralOptions(**{name: getattr(options, name) for name in _GeneralOptions.__struct_fields__})
    backoff = cast("Backoff", retry.backoff)  # Retry turned a list of seconds into Steps
    parts = (
        _encode(general),
        b"" if retry.attempts == DEFAULT_RETRY.attempts else str(retry.attempts).encode(),
        _encode(_RetryOptions(backoff, retry.on)),
        b"" if options.max_stalls == DEFAULT_MAX_STALLS else str(options.max_stalls).encode(),
        _encode(_Metadata(options.tags, options.meta, options.trace, options.enqueued_by)),
        options.lock.encode(),
        " ".join(options.after).encode(),
        " ".join(options.terms).encode(),
        " ".join(options.blobs).encode(),
    )
    return b"\t".join(b"" if part == b"{}" else part for part in parts).rstrip(b"\t")


def decode_options(text: bytes) -> Options:
    """Decodes what `encode_options` wrote. The result is cached, except with `meta`, which a handler could change."""
    return _decode_options(text) if b'"meta"' in text else _decode_options_once(text)


def _decode_options(text: bytes) -> Options:
    parts = text.split(b"\t")
    # Parts beyond the ninth were added by a newer version, and are ignored.
    general_json, attempts, retry_json, stalls, metadata_json, lock, after, terms, blobs = [
        *parts[:9],
        *[b""] * (9 - len(parts)),
    ]
    general = _general_options.decode(general_json or b"{}")
    retry = _retry_options.decode(retry_json or b"{}")
    metadata = _metadata.decode(metadata_json or b"{}")
    return Options(
        **{name: getattr(general, name) for name in _GeneralOptions.__struct_fields__},
        retry=Retry(int(attempts or DEFAULT_RETRY.attempts), retry.backoff, retry.on),
        max_stalls=int(stalls or DEFAULT_MAX_STALLS),
        tags=metadata.tags,
        meta=metadata.meta,
        trace=metadata.trace,
        enqueued_by=metadata.by,
        lock=lock.decode(),
        after=tuple(after.decode().split()),
        terms=tuple(terms.decode().split()),
        blobs=tuple(blobs.decode().split()),
    )


_decode_options_once: Final = lru_cache(maxsize=1_000)(_decode_options)


class FailureDetails(NamedTuple):
    """The arguments of a failure handler: the error, and the job that failed."""

    error: ErrorRecord
    job: JobRecord


def decode_failure(arguments: bytes) -> FailureDetails:
    """Decodes the arguments of a failure job."""
    error, failed, original = _failure_arguments.decode(arguments)
    job = JobRecord(
        ref=JobRef.parse(failed.ref),
        task=failed.task,
        state=JobState.FAILED,
        arguments=bytes(original),
        options=decode_options(failed.options.encode()) if failed.options else DEFAULT_OPTIONS,
        counts=AttemptCounts(failed.attempt, failed.failures, failed.stalls, failed.snoozes, failed.handbacks),
        enqueued_at=failed.enqueued_at,
        worker=failed.worker,
        claimed_at=failed.claimed_at or None,
        ended_at=failed.ended_at or None,
        reason=failed.reason,
        error=error,
    )
    return FailureDetails(error, job)


def decode_body(run: str, record: bytes) -> Body:
    """Decodes a record. Raises `UndecodableRecord`."""
    try:
        head, options, task, arguments = record.split(b"\n", 3)
        name, enqueued_at = head.decode().split(" ")
        return Body(
            name[1:] if name.startswith("=") else auto_id(run, name),
            int(enqueued_at),
            decode_options(options) if options else DEFAULT_OPTIONS,
            task.decode(),
            arguments,
        )
    except (ValueError, RecursionError) as error:
        raise _undecodable(run, error) from error


def decode_task_and_options(run: str, record: bytes) -> tuple[bytes, Options]:
    """Returns task and options, which the dispatcher needs before the job runs. Raises `UndecodableRecord`."""
    try:
        _, options, task, _ = record.split(b"\n", 3)
        return task, decode_options(options) if options else DEFAULT_OPTIONS
    except (ValueError, RecursionError) as error:
        raise _undecodable(run, error) from error


def _undecodable(run: str, error: Exception) -> UndecodableRecord:
    return UndecodableRecord(f"record of run {run} cannot be read: {str(error) or type(error).__name__}")


def decode_counts(text: str) -> AttemptCounts:
    """Decodes the counts in the reply to a claim; empty at the first attempt."""
    return AttemptCounts(*map(int, text.split())) if text else FIRST_ATTEMPT


def encode_error(error: ErrorRecord) -> bytes:
    """Encodes an error for the store."""
    return _encode(error)


def decode_error(text: bytes) -> ErrorRecord | None:
    """Decodes a stored error; None if there is none."""
    return _error.decode(text) if text else None


def decode_history(text: bytes) -> list[HistoryEntry]:
    """Decodes the history of a run, oldest entry first."""
    return [_entry.decode(line) for line in text.split(b"\n")] if text else []


def encode_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    """Encodes arguments: a JSON array if all are positional, else an object. Raises `ContainsStepResult`."""
    if not kwargs:
        return _encode_json(args)
    return _encode_json({**kwargs, "*": args} if args else kwargs)


def encode_arguments_with_placeholders(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    """Like `encode_arguments`, with a placeholder for each step result."""
    return _encode_with_placeholders({**kwargs, "*": args} if args and kwargs else kwargs or args)


def decode_arguments(text: bytes) -> tuple[list[Any], dict[str, Any]]:
    """Returns positional and named arguments, untyped. Raises `UndecodableRecord`."""
    try:
        decoded: list[Any] | dict[str, Any] = _arguments.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UndecodableRecord(f"arguments are neither an array nor an object: {error}") from error
    if isinstance(decoded, list):
        return decoded, {}
    try:
        return msgspec.convert(decoded.pop("*", []), list[Any]), decoded
    except msgspec.ValidationError as error:
        raise UndecodableRecord("the value of * is not an array") from error


def encode_result(value: Any) -> bytes:
    """Encodes a handler's result for the store; empty for None. No plain result is read as an encrypted one."""
    return b"" if value is None else escape_marks(_encode_json(value))


def decode_result(text: bytes | None, annotation: Any = Any) -> Any:
    """Decodes what `encode_result` wrote, as the return type of the task."""
    return None if not text else msgspec.json.decode(text, type=annotation, dec_hook=decode_hook)


def decode_record(queue: str, fields: list[bytes], codec: Codec | None = None) -> JobRecord:
    """Decodes one run as `read_runs.lua` returns it. A damaged record keeps its state, with the reason as error.

    Values that the codec cannot decrypt stay encrypted.
    """
    run_name, record, status_line, index, score, error, progress, result, _history, obstacle = fields
    run = run_name.decode()
    status = status_line.decode().split(" ", 11) if status_line else []
    try:
        body = decode_body(run, record)
    except UndecodableRecord as undecodable:
        body = Body(run, 0, DEFAULT_OPTIONS, "?", b"[]")
        error = error or encode_error(ErrorRecord(type="UndecodableRecord", message=str(undecodable)))
    state = _state(status, index.decode())
    arguments = body.arguments
    if codec is not None:
        with suppress(Undecryptable):
            arguments = decrypt_arguments(codec, body.task, arguments)
        with suppress(Undecryptable):
            result = decrypt_result(codec, str(JobRef(queue, body.id, run)), result)
    return JobRecord(
        ref=JobRef(queue, body.id, run),
        task=body.task,
        state=state,
        arguments=arguments,
        options=body.options,
        enqueued_at=body.enqueued_at,
        counts=AttemptCounts(*map(_number, (*status[5:10], _crashes(status)))) if status else AttemptCounts(),
        due_at=_due_at(state, score),
        lease_until=int(float(score)) if state is JobState.PROCESSING and score else None,
        claim=_or_empty(status, 1),
        worker=_or_empty(status, 2),
        claimed_at=_number(_or_empty(status, 3)) or None,
        attempt_due_at=_attempt_due_at(_or_empty(status, 4)) if _number(_or_empty(status, 3)) else None,
        ended_at=None if _crashes(status) != "0" else _number(_or_empty(status, 10)) or None,
        reason=status[11] if len(status) > 11 else "",
        progress=decode_progress(progress),
        error=decode_error(error),
        result=result or None,
        obstacle=decode_obstacle(queue, obstacle.decode()),
    )


def _attempt_due_at(score: str) -> int | None:
    """The due time in the pending score of the latest attempt; None for a damaged one."""
    return int(score) % 2**42 if score.removeprefix("-").isdecimal() else None


def _number(text: str) -> int:
    """A number of a run record; 0 for a damaged one, which must not make a whole list unreadable."""
    return int(text) if text.isdecimal() else 0


def _crashes(status: list[str]) -> str:
    """Until a run ends, its crashes stand in the place of the time of its end."""
    return status[10][1:] if len(status) > 10 and status[10].startswith("!") else "0"


def decode_obstacle(queue: str, text: str) -> Obstacle | None:
    """Decodes the obstacle of a blocked run, as `read_all_data_of_run.lua` writes it."""
    match text.split(" ", 3):
        case ["same_id", holder]:
            return Obstacle("same_id", (f"{queue}:{holder}",))
        case ["lock", holder, since, lock]:
            return Obstacle("lock", (f"{queue}:{holder}",), lock=lock, since=_number(since) or None)
        case ["task_paused", task]:
            return Obstacle("task_paused", (), count=0, task=task)
        case ["after", count, *_]:
            return Obstacle("after", tuple(text.split(" ")[2:]), count=int(count))
        case _:
            return None


def decode_progress(text: bytes) -> Progress | None:
    """Decodes progress as `save_progress.lua` stores it; None if there is none."""
    if not text:
        return None
    try:
        started_at, at, done, total, note = text.decode().split(" ", 4)
        return Progress(float(done), float(total), note, int(started_at), int(at.partition(":")[0]))
    except ValueError:  # it is damaged
        return None


def _encode_json(value: Any) -> bytes:
    """Encodes JSON. Raises ValueError for NaN and infinity: msgspec writes null, which decodes to another value."""
    encoded = _encode(value)
    if b"null" in encoded:
        plain = msgspec.to_builtins(value, enc_hook=encode_hook, str_keys=True)
        try:
            json.dumps(plain, allow_nan=False)
        except ValueError as error:
            raise ValueError("JSON has no NaN and no infinity") from error
    return encoded


def _state(status: list[str], index: str) -> JobState:
    if status and status[0] != "waiting":
        return JobState(status[0])
    # A waiting run is in one of three indexes; in none only if the indexes are damaged.
    return JobState(index) if index else JobState.BLOCKED


def _due_at(state: JobState, score: bytes) -> int | None:
    if not score or state is JobState.PROCESSING:
        return None
    number = int(float(score))
    return number // 256 if state is JobState.SCHEDULED else number % 2**42


def _or_empty(status: list[str], field: int) -> str:
    return status[field] if len(status) > field and status[field] != "-" else ""
