"""Middleware that records spans and metrics of every enqueue and every attempt.

Names follow OpenTelemetry's conventions for messaging.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final, Literal, TypeVar, cast, get_args
from urllib.parse import urlsplit

from opentelemetry import context as contexts
from opentelemetry import metrics, propagate, trace
from opentelemetry.context import Context as TraceContext
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, TracerProvider

from rota.client.context import Context
from rota.client.failure_handlers import SUFFIX
from rota.client.job import Job
from rota.client.middleware import AMBIENT, Middleware
from rota.client.session import Sessions, sessions_of
from rota.client.tasks import Call
from rota.client.workflows import Workflow
from rota.core.attempts_from_history import LostAttempt
from rota.core.error_record import class_names
from rota.core.job_record import JobRecord
from rota.core.job_record_codec import UndecodableRecord, decode_failure
from rota.core.next_attempt_time import next_attempt
from rota.errors import Cancel, InvalidOption, Snooze, Timeout
from rota.otel.asgi_middleware import TracedRequests
from rota.otel.metrics import TelemetryMetrics

T = TypeVar("T")
Propagation = Literal["parent", "link", "none"]

SYSTEM: Final = "rota"
#: Jobs enqueued together get a span each up to this number; beyond it they share the span of the batch.
MAX_CREATE_SPANS: Final = 100
#: Longer headers are not stored with the job: large baggage must not fill the store.
MAX_HEADER: Final = 1_024


class OpenTelemetry(Middleware):
    """Middleware that traces and measures what a `Rota` enqueues and runs.

    `propagation` says how attempts relate to the enqueue: "parent", in the same trace, however late they run; "link",
    each in its own trace with a link; "none". Without providers the global ones are used, even if set up later.
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
        self._metrics = TelemetryMetrics(metrics.get_meter("rota", version("rota"), meter_provider))
        self._server_attributes: weakref.WeakKeyDictionary[Sessions, dict[str, str | int]] = weakref.WeakKeyDictionary()
        self._client_id = f"{socket.gethostname()}-{os.getpid()}"

    # --- enqueueing --------------------------------------------------------------------------------------------

    async def store(self, calls: Sequence[Call[Any]], run: Callable[[Sequence[Call[Any]]], Awaitable[T]]) -> T:
        """Adds a span for jobs enqueued together, and one for each of them up to MAX_CREATE_SPANS."""
        if not calls:
            return await run(calls)
        by_queue = Counter(call.queue for call in calls)
        queue = next(iter(by_queue)) if len(by_queue) == 1 else ""
        attributes = {**self._message("enqueue", "send", queue), **self._server(sessions_of(calls[0].task))}
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
                self._metrics.record_enqueue(by_queue, time.perf_counter() - began, error_type)
            _set_result_attributes(span, made)
            return made

    def _traced(self, calls: Sequence[Call[Any]], batch: Span) -> Sequence[Call[Any]]:
        """Returns the calls, each with the context of its span."""
        if 1 < len(calls) <= MAX_CREATE_SPANS and batch.is_recording():
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
        """Wraps an ASGI application: adds a span for each request."""
        return TracedRequests(app, self._tracer)

    # --- running -----------------------------------------------------------------------------------------------

    async def attempt(self, context: Context, run: Callable[[], Awaitable[Any]]) -> Any:
        """Adds a span for the attempt, which is the handler's current span."""
        job = context.job
        waited_s = max(0.0, time.time() - job.enqueued_at / 1000)
        origin, links = self._origin(job)
        attributes = {**self._message("process", "process", job.ref.queue), **_job_attributes(job)}
        attributes["rota.job.wait_seconds"] = round(waited_s, 3)
        self._metrics.record_start(job.ref.queue, job.task, waited_s if context.attempt == 1 else None)
        began, outcome, error_type = time.perf_counter(), "completed", ""
        token = contexts.attach(origin)
        try:
            with self._tracer.start_as_current_span(
                _name("process", job.ref.queue),
                kind=SpanKind.CONSUMER,
                links=links,
                attributes=attributes,
                record_exception=False,
                set_status_on_exception=False,
            ) as span:
                try:
                    return await run()
                except BaseException as error:
                    outcome = _outcome(error, context)
                    if outcome not in ("snoozed", "cancelled"):
                        is_stopped = not isinstance(error, Exception) or outcome == "timeout"
                        error_type = outcome if is_stopped else _type_of(error)
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
            self._metrics.record_end(
                job.ref.queue, job.task, took_s, outcome, error_type, since_enqueue_s=waited_s + took_s
            )

    async def attempt_lost(self, attempt: LostAttempt) -> None:
        """Adds the span that the attempt's own process could not export, and flushes the exporter."""
        job, outcome = attempt.job, attempt.outcome
        error_type = "" if outcome == "cancelled" else outcome
        origin, links = self._origin(job)
        attributes = {**self._message("process", "process", job.ref.queue), **_job_attributes(job)}
        attributes["rota.job.wait_seconds"] = round(max(0.0, attempt.began_at - job.enqueued_at / 1000), 3)
        attributes["rota.job.outcome"] = outcome
        if error_type:
            attributes["error.type"] = error_type
        span = self._tracer.start_span(
            _name("process", job.ref.queue),
            origin,
            SpanKind.CONSUMER,
            attributes,
            links,
            start_time=round(attempt.began_at * 1e9),
        )
        if error_type:
            span.set_status(Status(StatusCode.ERROR, f"{outcome}: {attempt.note}"))
        span.end(round(attempt.ended_at * 1e9))
        took_s = attempt.ended_at - attempt.began_at
        self._metrics.record_lost(job.ref.queue, job.task, took_s, outcome, error_type)
        # The reason that killed that process may kill this one next.
        flush = getattr(self._provider or trace.get_tracer_provider(), "force_flush", None)
        if flush is not None:
            await asyncio.to_thread(flush)

    def _origin(self, job: JobRecord) -> tuple[TraceContext, list[Link]]:
        """Returns the context that an attempt starts in, and its links."""
        headers = _carried_headers(job)
        found = propagate.extract(headers, TraceContext()) if headers else TraceContext()
        creator = trace.get_current_span(found).get_span_context()
        if not creator.is_valid:
            return found, []
        links = [] if self._propagation == "none" else [Link(creator)]
        if self._propagation == "parent":
            return found, links
        return trace.set_span_in_context(trace.INVALID_SPAN, found), links  # keeps baggage

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

    def _server(self, sessions: Sessions) -> dict[str, str | int]:
        """Returns the attributes of the server's address, cached."""
        if sessions not in self._server_attributes:
            url = urlsplit(sessions.address)
            attributes: dict[str, str | int] = {"server.address": url.hostname or url.path}
            if url.hostname and "," not in url.netloc and url.port:
                attributes["server.port"] = url.port
            self._server_attributes[sessions] = attributes
        return self._server_attributes[sessions]


class RotaInstrumentor:
    """Entry point for `opentelemetry-instrument`: instruments every `Rota` of the program."""

    def instrument(self, **_: Any) -> None:
        """Instruments every `Rota` created from now on."""
        if not any(isinstance(one, OpenTelemetry) for one in AMBIENT):
            AMBIENT.append(OpenTelemetry())

    def uninstrument(self, **_: Any) -> None:
        """Stops instrumenting new `Rota` objects; existing ones stay instrumented."""
        AMBIENT[:] = [one for one in AMBIENT if not isinstance(one, OpenTelemetry)]


def _name(operation: str, queue: str) -> str:
    return f"{operation} {queue}" if queue else operation


def _headers() -> dict[str, str]:
    """Returns the current context as headers; empty without an active trace."""
    headers: dict[str, str] = {}
    propagate.inject(headers)
    return {name: value for name, value in headers.items() if len(value) <= MAX_HEADER}


def _carried_headers(job: JobRecord) -> Mapping[str, str]:
    """Returns the trace headers of a job; for a failure job, those of the job that failed."""
    if job.options.trace or not job.task.endswith(SUFFIX):
        return job.options.trace
    try:
        return decode_failure(job.arguments).job.options.trace
    except (ValueError, UndecodableRecord):  # damaged: the executor reports it
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


def _set_result_attributes(span: Span, made: object) -> None:
    """Adds the ids, which the server assigns when it stores the jobs."""
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
    """Returns the outcome of an attempt that raised: snoozed, cancelled, timeout, stopped, failed or retried."""
    if isinstance(error, Snooze):
        return "snoozed"
    if isinstance(error, Cancel):
        return "cancelled"
    if context.cancelled and isinstance(error, Timeout):
        return "timeout"
    if context.cancelled and not isinstance(error, Exception):
        return "stopped"
    job = context.job
    is_final = next_attempt(job.options, job.counts, class_names(error), 0.0, error) == "final"
    return "failed" if is_final else "retried"


def _type_of(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
