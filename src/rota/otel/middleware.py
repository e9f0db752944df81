"""Spans and metrics around every enqueue and every attempt, under OpenTelemetry's conventions for messaging.

An enqueue is a PRODUCER span whose context travels in the job's record; every attempt is a CONSUMER span that belongs
to it. A failure handler belongs to the span that enqueued the job which failed. Nothing is carried where nothing is
traced.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any, Final, Literal, TypeVar, cast, get_args
from urllib.parse import urlsplit

from opentelemetry import context as contexts
from opentelemetry import metrics, propagate, trace
from opentelemetry.context import Context as TraceContext
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, TracerProvider

from rota.client import Rota
from rota.context import Context
from rota.core.attempts import Vanished
from rota.core.codec import UndecodableRecord, decode_failure
from rota.core.job import JobRecord
from rota.core.outcome import kinds_of, next_attempt
from rota.errors import Cancel, InvalidOption, Snooze
from rota.failures import SUFFIX
from rota.jobs import Job
from rota.middleware import AMBIENT, Middleware
from rota.otel.figures import Figures
from rota.otel.requests import TracedRequests
from rota.tasks import Call
from rota.workflows import Workflow

T = TypeVar("T")
Propagation = Literal["parent", "link", "none"]

SYSTEM: Final = "rota"
#: Jobs enqueued together get a span each, up to this many; more of them share the span of the batch.
MOST_CREATES: Final = 100
#: A header that is longer does not travel: baggage that somebody filled must not fill the store.
MAX_HEADER: Final = 1_024
#: The supervisor, which stops a handler at its timeout, began to count a moment before the handler began.
HEAD_START: Final = timedelta(milliseconds=100)


class OpenTelemetry(Middleware):
    """Traces and measures what a `Rota` enqueues and runs.

    `propagation` says how attempts belong to the enqueue: "parent", in its trace, however late they come; "link", each
    in a trace of its own that is linked to it; "none". Without providers the global ones are used, also if they are set
    up later.
    """

    def __init__(
        self,
        *,
        propagation: Propagation = "parent",
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        if propagation not in get_args(Propagation):
            raise InvalidOption("propagation", f"{propagation!r} is none of {', '.join(get_args(Propagation))}")
        self._propagation: Propagation = propagation
        self._provider = tracer_provider
        self._tracer = trace.get_tracer("rota", version("rota"), tracer_provider)
        self._figures = Figures(metrics.get_meter("rota", version("rota"), meter_provider))
        self._places: weakref.WeakKeyDictionary[Rota, dict[str, str | int]] = weakref.WeakKeyDictionary()
        self._client_id = f"{socket.gethostname()}-{os.getpid()}"

    # --- enqueueing --------------------------------------------------------------------------------------------

    async def store(self, calls: Sequence[Call[Any]], run: Callable[[Sequence[Call[Any]]], Awaitable[T]]) -> T:
        """One span for what is enqueued together, and one for each job of it unless there are very many."""
        if not calls:
            return await run(calls)
        by_queue = Counter(call.queue for call in calls)
        queue = next(iter(by_queue)) if len(by_queue) == 1 else ""
        attributes = {**self._message("enqueue", "send", queue), **self._place(calls[0].task.rota)}
        kind = SpanKind.PRODUCER
        if len(calls) == 1:
            attributes |= _call_attributes(calls[0])
        else:
            kind = SpanKind.CLIENT
            attributes["messaging.batch.message_count"] = len(calls)
        began, error_type = time.perf_counter(), ""
        with self._tracer.start_as_current_span(_name("enqueue", queue), kind=kind, attributes=attributes) as span:
            try:
                made = await run(self._traced(calls, span))
            except BaseException as error:
                error_type = _type_of(error)
                span.set_attribute("error.type", error_type)
                raise
            finally:
                self._figures.sent(by_queue, time.perf_counter() - began, error_type)
            _note_made(span, made)
            return made

    def _traced(self, calls: Sequence[Call[Any]], batch: Span) -> Sequence[Call[Any]]:
        """The calls, each carrying the context of its span."""
        if 1 < len(calls) <= MOST_CREATES and batch.is_recording():
            return [self._created(call) for call in calls]
        headers = _headers()
        return [call.traced(headers) for call in calls] if headers else calls

    def _created(self, call: Call[Any]) -> Call[Any]:
        attributes = {**self._message("create", "create", call.queue), **_call_attributes(call)}
        name = _name("create", call.queue)
        with self._tracer.start_as_current_span(name, kind=SpanKind.PRODUCER, attributes=attributes):
            headers = _headers()
        return call.traced(headers) if headers else call

    def serve(self, app: Any) -> Any:
        """One span for each request."""
        return TracedRequests(app, self._tracer)

    # --- running -----------------------------------------------------------------------------------------------

    async def attempt(self, context: Context, run: Callable[[], Awaitable[Any]]) -> Any:
        """One span for the attempt, which handlers see as the current one."""
        job = context.job
        waited_s = max(0.0, time.time() - job.enqueued_at / 1000)
        origin, links = self._origin(job)
        attributes = {**self._message("process", "process", job.ref.queue), **_job_attributes(job)}
        attributes["rota.job.wait_seconds"] = round(waited_s, 3)
        self._figures.begin(job.ref.queue, job.task, waited_s if context.attempt == 1 else None)
        began, outcome, error_type = time.perf_counter(), "completed", ""
        token = contexts.attach(origin)
        try:
            with self._tracer.start_as_current_span(
                _name("process", job.ref.queue), kind=SpanKind.CONSUMER, links=links, attributes=attributes,
                record_exception=False, set_status_on_exception=False,
            ) as span:  # fmt: skip
                try:
                    return await run()
                except BaseException as error:
                    outcome = _outcome(error, context)
                    if outcome not in ("snoozed", "cancelled"):
                        error_type = _type_of(error) if isinstance(error, Exception) else outcome
                        span.set_attribute("error.type", error_type)
                        span.set_status(Status(StatusCode.ERROR, f"{outcome}: {error_type}"))
                        if isinstance(error, Exception):
                            span.record_exception(error)
                    raise
                finally:
                    span.set_attribute("rota.job.outcome", outcome)
        finally:
            contexts.detach(token)
            took_s = time.perf_counter() - began
            self._figures.end(job.ref.queue, job.task, took_s, outcome, error_type, since_enqueue_s=waited_s + took_s)

    async def vanished(self, attempt: Vanished) -> None:
        """The span that the attempt's own process could not send. It is sent before this returns, if it can be."""
        job, outcome = attempt.job, attempt.outcome
        error_type = "" if outcome == "cancelled" else outcome
        origin, links = self._origin(job)
        attributes = {**self._message("process", "process", job.ref.queue), **_job_attributes(job)}
        attributes["rota.job.wait_seconds"] = round(max(0.0, attempt.began_at - job.enqueued_at / 1000), 3)
        attributes["rota.job.outcome"] = outcome
        if error_type:
            attributes["error.type"] = error_type
        span = self._tracer.start_span(
            _name("process", job.ref.queue), origin, SpanKind.CONSUMER, attributes, links,
            start_time=round(attempt.began_at * 1e9),
        )  # fmt: skip
        if error_type:
            span.set_status(Status(StatusCode.ERROR, f"{outcome}: {attempt.note}"))
        span.end(round(attempt.ended_at * 1e9))
        took_s = attempt.ended_at - attempt.began_at
        self._figures.vanish(job.ref.queue, job.task, took_s, outcome, error_type)
        # What killed that process may kill this one next.
        flush = getattr(self._provider or trace.get_tracer_provider(), "force_flush", None)
        if flush is not None:
            await asyncio.to_thread(flush)

    def _origin(self, job: JobRecord) -> tuple[TraceContext, list[Link]]:
        """The context that an attempt starts in, and what it is linked to."""
        headers = _carried(job)
        found = propagate.extract(headers, TraceContext()) if headers else TraceContext()
        creator = trace.get_current_span(found).get_span_context()
        if not creator.is_valid:
            return found, []
        links = [] if self._propagation == "none" else [Link(creator)]
        if self._propagation == "parent":
            return found, links
        return trace.set_span_in_context(trace.INVALID_SPAN, found), links  # what else came along, as baggage, stays

    # --- attributes --------------------------------------------------------------------------------------------

    def _message(self, operation: str, kind: str, queue: str) -> dict[str, str | int | float]:
        attributes: dict[str, str | int | float] = {
            "messaging.system": SYSTEM,
            "messaging.operation.name": operation,
            "messaging.operation.type": kind,
            "messaging.client.id": self._client_id,
        }
        if queue:
            attributes["messaging.destination.name"] = queue
        return attributes

    def _place(self, rota: Rota) -> dict[str, str | int]:
        """Where the server is, asked once."""
        if rota not in self._places:
            url = urlsplit(rota.address)
            place: dict[str, str | int] = {"server.address": url.hostname or url.path}
            if url.hostname and "," not in url.netloc and url.port:
                place["server.port"] = url.port
            self._places[rota] = place
        return self._places[rota]


class RotaInstrumentor:
    """For `opentelemetry-instrument`: every `Rota` that the program makes is traced and measured."""

    def instrument(self, **_: Any) -> None:
        """From now on."""
        if not any(isinstance(one, OpenTelemetry) for one in AMBIENT):
            AMBIENT.append(OpenTelemetry())

    def uninstrument(self, **_: Any) -> None:
        """No longer. What has been made keeps what it has."""
        AMBIENT[:] = [one for one in AMBIENT if not isinstance(one, OpenTelemetry)]


def _name(operation: str, queue: str) -> str:
    return f"{operation} {queue}" if queue else operation


def _headers() -> dict[str, str]:
    """The current context as headers; nothing where nothing is traced."""
    headers: dict[str, str] = {}
    propagate.inject(headers)
    return {name: value for name, value in headers.items() if len(value) <= MAX_HEADER}


def _carried(job: JobRecord) -> Mapping[str, str]:
    """What the job carries, or, for one that handles a failure, what the job that failed did."""
    if job.options.trace or not job.task.endswith(SUFFIX):
        return job.options.trace
    try:
        return decode_failure(job.arguments).job.options.trace
    except (ValueError, UndecodableRecord):  # damaged: whoever decodes it next says so
        return {}


def _call_attributes(call: Call[Any]) -> dict[str, str | int | float]:
    attributes: dict[str, str | int | float] = {
        "messaging.message.body.size": len(call.job.body),
        "rota.job.task": call.task.name,
    }
    if call.job.id:
        attributes["messaging.message.id"] = f"{call.queue}:{call.job.id}"
    return attributes


def _job_attributes(job: JobRecord) -> dict[str, str | int | float]:
    attributes: dict[str, str | int | float] = {
        "messaging.message.id": job.ref.full_id,
        "messaging.message.body.size": len(job.arguments),
        "rota.job.task": job.task,
        "rota.job.run": job.ref.run or "",
        "rota.job.attempt": job.counts.attempt,
    }
    if job.options.workflow:
        attributes["rota.workflow.id"] = job.options.workflow
    return attributes


def _note_made(span: Span, made: object) -> None:
    """Ids are the server's to give: they are known once the jobs are stored."""
    if isinstance(made, Workflow):
        span.set_attribute("rota.workflow.id", made.id)
    elif isinstance(made, list) and len(cast("list[object]", made)) == 1:
        only = cast("list[object]", made)[0]
        if isinstance(only, Job):
            span.set_attribute("messaging.message.id", only.id)
            span.set_attribute("rota.job.run", only.run or "")
        elif isinstance(only, Exception):
            span.set_attribute("error.type", _type_of(only))


def _outcome(error: BaseException, context: Context) -> str:
    """How an attempt ended that did not complete, in the words of the worker."""
    if isinstance(error, Snooze):
        return "snoozed"
    if isinstance(error, Cancel):
        return "cancelled"
    if not isinstance(error, Exception) and context.cancelled:
        is_late = context.deadline is not None and datetime.now(UTC) >= context.deadline - HEAD_START
        return "timeout" if is_late else "stopped"
    job = context.job
    is_final = next_attempt(job.options, job.counts, kinds_of(error), 0.0, error) == "final"
    return "failed" if is_final else "retried"


def _type_of(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
