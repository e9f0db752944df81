"""The OpenTelemetry metrics, with buckets for seconds: the SDK's default buckets suit milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from opentelemetry.metrics import Histogram, Meter

#: Histogram bounds for a round trip to the server.
ROUND_TRIP_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
#: Histogram bounds for the time that jobs wait and run.
JOB_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)


class TelemetryMetrics:
    """The metrics of enqueues and attempts."""

    def __init__(self, meter: Meter) -> None:
        def histogram(name: str, description: str, buckets: tuple[float, ...]) -> Histogram:
            return meter.create_histogram(
                name, unit="s", description=description, explicit_bucket_boundaries_advisory=buckets
            )

        self._sent = meter.create_counter("messaging.client.sent.messages", "{message}", "Jobs enqueued.")
        self._consumed = meter.create_counter("messaging.client.consumed.messages", "{message}", "Attempts started.")
        self._in_flight = meter.create_up_down_counter("rota.job.in_flight", "{job}", "Running attempts.")
        self._enqueue = histogram("messaging.client.operation.duration", "Duration of an enqueue.", ROUND_TRIP_SECONDS)
        self._process = histogram("messaging.process.duration", "Duration of an attempt.", JOB_SECONDS)
        self._wait = histogram("rota.job.wait", "From the enqueue to the start of the first attempt.", JOB_SECONDS)
        self._end_to_end = histogram(
            "rota.job.end_to_end", "From the enqueue to the end of a completed job.", JOB_SECONDS
        )

    def record_enqueue(self, by_queue: Mapping[str, int], took_s: float, error_type: str) -> None:
        """Records an enqueue: queue -> number of jobs, its duration, and its error, if any."""
        for queue, count in by_queue.items():
            attributes = _attributes("enqueue", queue, error_type)
            self._sent.add(count, attributes)
            self._enqueue.record(took_s, attributes)

    def record_start(self, queue: str, task: str, waited_s: float | None) -> None:
        """Records the start of an attempt; `waited_s` is given for the first attempt of a job."""
        attributes = {**_attributes("process", queue), "rota.job.task": task}
        self._consumed.add(1, attributes)
        self._in_flight.add(1, attributes)
        if waited_s is not None:
            self._wait.record(waited_s, attributes)

    def record_end(
        self, queue: str, task: str, took_s: float, outcome: str, error_type: str, *, since_enqueue_s: float
    ) -> None:
        """Records the end of an attempt."""
        attributes = {**_attributes("process", queue), "rota.job.task": task}
        self._in_flight.add(-1, attributes)
        ended = {**_attributes("process", queue, error_type), "rota.job.task": task, "rota.job.outcome": outcome}
        self._process.record(took_s, ended)
        if outcome == "completed":
            self._end_to_end.record(since_enqueue_s, attributes)

    def record_lost(self, queue: str, task: str, took_s: float, outcome: str, error_type: str) -> None:
        """Records the end of a lost attempt. The process that recorded its start is gone, and its counts with it."""
        ended = {**_attributes("process", queue, error_type), "rota.job.task": task, "rota.job.outcome": outcome}
        self._process.record(took_s, ended)


def _attributes(operation: str, queue: str, error_type: str = "") -> dict[str, str]:
    attributes = {
        "messaging.system": "rota",
        "messaging.operation.name": operation,
        "messaging.destination.name": queue,
    }
    if error_type:
        attributes["error.type"] = error_type
    return attributes
