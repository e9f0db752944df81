"""How records are written down. The store keeps three shapes of text, and this module knows all three.

A job's record, as enqueued, is four lines: `=<chosen id> <enqueued_at>` or `<random suffix> <enqueued_at>`; options, or
nothing; the task; the arguments. The options are parts with tabs between, because the scripts replace some of them when
an id is enqueued again: general ones, attempts, backoff, max_stalls, tags, meta and trace, lock, what it comes after,
terms. What happened to a run: one line, see `include/record.lua`. Arguments: a JSON array of positional ones, or a JSON
object of named ones, where positional ones beyond the names stand under `*`.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final, NamedTuple, cast

import msgspec

from rota.core.job import (
    DEFAULT_MAX_STALLS,
    DEFAULT_OPTIONS,
    DEFAULT_TIMEOUT_MS,
    Counts,
    ErrorRecord,
    HistoryEntry,
    JobRecord,
    JobRef,
    Keep,
    Obstacle,
    Options,
    Progress,
    auto_id,
)
from rota.core.retry import Backoff, Retry, Rule
from rota.core.states import JobState
from rota.core.workflow import StepResult


class HoldsResult(Exception):
    """A value that is to be written holds the result of a step, which nobody has yet."""


def encode_result_hook(value: Any) -> Any:
    """The result of a step is written as a token that stands for it."""
    return value.token if isinstance(value, StepResult) else encode_hook(value)


def encode_hook(value: Any) -> Any:
    """Pydantic models are written as what they hold."""
    if isinstance(value, StepResult):
        raise HoldsResult(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} is not JSON")


def decode_hook(annotation: type, value: Any) -> Any:
    """Pydantic models are read by themselves."""
    if isinstance(value, annotation):
        return value
    model: Any = annotation
    if hasattr(model, "model_validate"):
        return model.model_validate(value)
    raise TypeError(f"{annotation.__name__} cannot be read from JSON")


_encode_with_results: Final = msgspec.json.Encoder(enc_hook=encode_result_hook).encode
_encode: Final = msgspec.json.Encoder(enc_hook=encode_hook).encode
_arguments: Final = msgspec.json.Decoder(list[Any] | dict[str, Any])
_error: Final = msgspec.json.Decoder(ErrorRecord)
_entry: Final = msgspec.json.Decoder(HistoryEntry)


DEFAULT_RETRY: Final = Retry()
FIRST_ATTEMPT: Final = Counts(attempt=1)


class UndecodableRecord(ValueError):
    """A record that this version cannot read. It is kept as a dead letter, never dropped."""


class _General(msgspec.Struct, frozen=True, omit_defaults=True):
    priority: int = 0
    timeout_ms: int | None = DEFAULT_TIMEOUT_MS
    progress_timeout_ms: int | None = None
    at_most_once: bool = False
    expires_ms: int | None = None
    expires_at: int | None = None
    keep: Keep = DEFAULT_OPTIONS.keep  # the very same, which is left out
    workflow: str = ""


class _Pace(msgspec.Struct, frozen=True, omit_defaults=True):
    backoff: Backoff = cast("Backoff", DEFAULT_OPTIONS.retry.backoff)
    on: dict[str, Rule] = {}


class _Data(msgspec.Struct, frozen=True, omit_defaults=True):
    tags: tuple[str, ...] = ()
    meta: dict[str, Any] = {}
    trace: dict[str, str] = {}


class _Told(msgspec.Struct, frozen=True):
    """What `include/alert.lua` writes of a job that failed."""

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


_told: Final = msgspec.json.Decoder(tuple[ErrorRecord, _Told, msgspec.Raw])
_general: Final = msgspec.json.Decoder(_General)
_pace: Final = msgspec.json.Decoder(_Pace)
_data: Final = msgspec.json.Decoder(_Data)


class Body(msgspec.Struct, frozen=True):
    """The parts of a job's record."""

    id: str
    enqueued_at: int
    options: Options
    task: str
    arguments: bytes


def encode_body(options: Options, task: str, arguments: bytes) -> bytes:
    """The record without its head, which the server writes."""
    written = b"" if options is DEFAULT_OPTIONS else encode_options(options)
    return b"%b\n%b\n%b" % (written, task.encode(), arguments)


def encode_options(options: Options) -> bytes:
    """The options as the record has them: nothing where all are the default."""
    retry = options.retry
    general = _General(**{name: getattr(options, name) for name in _General.__struct_fields__})
    backoff = cast("Backoff", retry.backoff)  # Retry turned a list of seconds into Steps
    parts = (
        _encode(general),
        b"" if retry.attempts == DEFAULT_RETRY.attempts else str(retry.attempts).encode(),
        _encode(_Pace(backoff, retry.on)),
        b"" if options.max_stalls == DEFAULT_MAX_STALLS else str(options.max_stalls).encode(),
        _encode(_Data(options.tags, options.meta, options.trace)),
        options.lock.encode(),
        " ".join(options.after).encode(),
        " ".join(options.terms).encode(),
    )
    return b"\t".join(b"" if part == b"{}" else part for part in parts).rstrip(b"\t")


def decode_options(text: bytes) -> Options:
    """What `encode_options` wrote. Options without `meta`, which a handler could change, are the same object again."""
    return _decode_options(text) if b'"meta"' in text else _decode_options_once(text)


def _decode_options(text: bytes) -> Options:
    parts = text.split(b"\t")
    # What a newer version may have added behind is none of ours.
    general, attempts, pace, stalls, data, lock, after, terms = [*parts[:8], *[b""] * (8 - len(parts))]
    kept = _general.decode(general or b"{}")
    paced = _pace.decode(pace or b"{}")
    said = _data.decode(data or b"{}")
    return Options(
        **{name: getattr(kept, name) for name in _General.__struct_fields__},
        retry=Retry(int(attempts or DEFAULT_RETRY.attempts), paced.backoff, paced.on),
        max_stalls=int(stalls or DEFAULT_MAX_STALLS),
        tags=said.tags,
        meta=said.meta,
        trace=said.trace,
        lock=lock.decode(),
        after=tuple(after.decode().split()),
        terms=tuple(terms.decode().split()),
    )


_decode_options_once: Final = lru_cache(maxsize=1_000)(_decode_options)


class Failure(NamedTuple):
    """What a failure handler is told: why, and which job."""

    error: ErrorRecord
    job: JobRecord


def decode_failure(arguments: bytes) -> Failure:
    """What the arguments of a failure job say."""
    error, told, original = _told.decode(arguments)
    job = JobRecord(
        ref=JobRef.parse(told.ref),
        task=told.task,
        state=JobState.FAILED,
        arguments=bytes(original),
        options=decode_options(told.options.encode()) if told.options else DEFAULT_OPTIONS,
        counts=Counts(told.attempt, told.failures, told.stalls, told.snoozes, told.handbacks),
        enqueued_at=told.enqueued_at,
        worker=told.worker,
        claimed_at=told.claimed_at or None,
        ended_at=told.ended_at or None,
        reason=told.reason,
        error=error,
    )
    return Failure(error, job)


def decode_body(run: str, record: bytes) -> Body:
    """Takes a record apart; `UndecodableRecord` says what is wrong with it."""
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


def peek(run: str, record: bytes) -> tuple[bytes, Options]:
    """Task and options alone: what has to be known of a job before it is run."""
    try:
        _, options, task, _ = record.split(b"\n", 3)
        return task, decode_options(options) if options else DEFAULT_OPTIONS
    except (ValueError, RecursionError) as error:
        raise _undecodable(run, error) from error


def _undecodable(run: str, error: Exception) -> UndecodableRecord:
    return UndecodableRecord(f"record of run {run} cannot be read: {str(error) or type(error).__name__}")


def decode_counts(text: str) -> Counts:
    """Counts as a claim returns them: empty at the first attempt."""
    return Counts(*map(int, text.split())) if text else FIRST_ATTEMPT


def encode_error(error: ErrorRecord) -> bytes:
    """An error as the store keeps it."""
    return _encode(error)


def decode_error(text: bytes) -> ErrorRecord | None:
    """An error as the store keeps it; None for none."""
    return _error.decode(text) if text else None


def decode_history(text: bytes) -> list[HistoryEntry]:
    """The lines of a run's history, oldest first."""
    return [_entry.decode(line) for line in text.split(b"\n")] if text else []


def encode_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    """Arguments as JSON: an array when all are positional, else an object."""
    if not kwargs:
        return _encode_json(args)
    return _encode_json({**kwargs, "*": args} if args else kwargs)


def encode_arguments_with_results(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    """The same where results of steps stand among them."""
    return _encode_with_results({**kwargs, "*": args} if args and kwargs else kwargs or args)


def decode_arguments(text: bytes) -> tuple[list[Any], dict[str, Any]]:
    """Positional and named arguments, untyped."""
    try:
        decoded: list[Any] | dict[str, Any] = _arguments.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UndecodableRecord(f"arguments are neither an array nor an object: {error}") from error
    if isinstance(decoded, list):
        return decoded, {}
    try:
        return msgspec.convert(decoded.pop("*", []), list[Any]), decoded
    except msgspec.ValidationError as error:
        raise UndecodableRecord("what stands under * is not an array") from error


def encode_result(value: Any) -> bytes:
    """A handler's result as it is stored; nothing for None."""
    return b"" if value is None else _encode_json(value)


def decode_result(text: bytes | None, annotation: Any = Any) -> Any:
    """What `encode_result` wrote, as the type that the task declares."""
    return None if not text else msgspec.json.decode(text, type=annotation, dec_hook=decode_hook)


def decode_record(queue: str, fields: list[bytes]) -> JobRecord:
    """One run as `read.lua` returns it. A record that cannot be read still shows its state, and what is wrong."""
    run_name, record, line, index, score, error, progress, result, _history, obstacle = fields
    run = run_name.decode()
    happened = line.decode().split(" ", 11) if line else []
    try:
        body = decode_body(run, record)
    except UndecodableRecord as undecodable:
        body = Body(run, 0, DEFAULT_OPTIONS, "?", b"[]")
        error = error or encode_error(ErrorRecord(type="UndecodableRecord", message=str(undecodable)))
    state = _state(happened, index.decode())
    return JobRecord(
        ref=JobRef(queue, body.id, run),
        task=body.task,
        state=state,
        arguments=body.arguments,
        options=body.options,
        enqueued_at=body.enqueued_at,
        counts=Counts(*map(int, happened[5:10])) if happened else Counts(),
        due_at=_due_at(state, score),
        lease_until=int(float(score)) if state is JobState.PROCESSING and score else None,
        claim=_or_empty(happened, 1),
        worker=_or_empty(happened, 2),
        claimed_at=int(_or_empty(happened, 3) or 0) or None,
        ended_at=int(_or_empty(happened, 10) or 0) or None,
        reason=happened[11] if len(happened) > 11 else "",
        progress=decode_progress(progress),
        error=decode_error(error),
        result=result or None,
        obstacle=decode_obstacle(queue, obstacle.decode()),
    )


def decode_obstacle(queue: str, text: str) -> Obstacle | None:
    """What `include/describe.lua` says of a blocked run."""
    match text.split(" ", 3):
        case ["same_id", holder]:
            return Obstacle("same_id", (f"{queue}:{holder}",))
        case ["lock", holder, since, lock]:
            return Obstacle("lock", (f"{queue}:{holder}",), lock=lock, since=None if since == "-" else int(since))
        case ["after", count, *_]:
            return Obstacle("after", tuple(text.split(" ")[2:]), count=int(count))
        case _:
            return None


def decode_progress(text: bytes) -> Progress | None:
    """Progress as `progress.lua` keeps it; None for none."""
    if not text:
        return None
    started_at, at, done, total, note = text.decode().split(" ", 4)
    return Progress(float(done), float(total), note, int(started_at), int(at))


def _encode_json(value: Any) -> bytes:
    """JSON. What JSON has no number for would be written as null, and come back as another value: a ValueError."""
    encoded = _encode(value)
    if b"null" in encoded:
        plain = msgspec.to_builtins(value, enc_hook=encode_hook, str_keys=True)
        try:
            json.dumps(plain, allow_nan=False)
        except ValueError as error:
            raise ValueError("NaN and infinity have no place in JSON") from error
    return encoded


def _state(happened: list[str], index: str) -> JobState:
    if happened and happened[0] != "waiting":
        return JobState(happened[0])
    # A waiting run is in one of three indexes; in none only if the indexes are damaged: `rota doctor` repairs that.
    return JobState(index) if index else JobState.BLOCKED


def _due_at(state: JobState, score: bytes) -> int | None:
    if not score or state is JobState.PROCESSING:
        return None
    number = int(float(score))
    return number // 256 if state is JobState.SCHEDULED else number % 2**42


def _or_empty(happened: list[str], place: int) -> str:
    return happened[place] if len(happened) > place and happened[place] != "-" else ""
