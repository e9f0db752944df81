"""The metrics, with buckets for seconds: OpenTelemetry's own are shaped for milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from opentelemetry.metrics import Histogram, Meter

#: Seconds of a round trip to the server.
ROUND_TRIP: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
#: Seconds that jobs wait and run: from milliseconds to an hour.
LIFE: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)


class Figures:
    """What is counted and timed around enqueues and attempts."""

    def __init__(self, meter: Meter) -> None:
        def histogram(name: str, description: str, buckets: tuple[float, ...]) -> Histogram:
            return meter.create_histogram(
                name, unit="s", description=description, explicit_bucket_boundaries_advisory=buckets
            )

        self._sent = meter.create_counter("messaging.client.sent.messages", "{message}", "Jobs enqueued.")
        self._consumed = meter.create_counter("messaging.client.consumed.messages", "{message}", "Attempts begun.")
        self._in_flight = meter.create_up_down_counter("rota.job.in_flight", "{job}", "Attempts under way.")
        self._enqueue = histogram("messaging.client.operation.duration", "Duration of an enqueue.", ROUND_TRIP)
        self._process = histogram("messaging.process.duration", "Duration of an attempt.", LIFE)
        self._wait = histogram("rota.job.wait", "From the enqueue to the start of the first attempt.", LIFE)
        self._end_to_end = histogram("rota.job.end_to_end", "From the enqueue to the end of a completed job.", LIFE)

    def sent(self, by_queue: Mapping[str, int], took_s: float, error_type: str) -> None:
        """So many jobs of each queue were enqueued together, or could not be."""
        for queue, count in by_queue.items():
            attributes = _attributes("enqueue", queue, error_type)
            self._sent.add(count, attributes)
            self._enqueue.record(took_s, attributes)

    def begin(self, queue: str, task: str, waited_s: float | None) -> None:
        """An attempt begins; the first of a job says how long that waited."""
        attributes = {**_attributes("process", queue), "rota.job.task": task}
        self._consumed.add(1, attributes)
        self._in_flight.add(1, attributes)
        if waited_s is not None:
            self._wait.record(waited_s, attributes)

    def end(
        self, queue: str, task: str, took_s: float, outcome: str, error_type: str, *, since_enqueue_s: float
    ) -> None:
        """An attempt has ended."""
        attributes = {**_attributes("process", queue), "rota.job.task": task}
        self._in_flight.add(-1, attributes)
        ended = {**_attributes("process", queue, error_type), "rota.job.task": task, "rota.job.outcome": outcome}
        self._process.record(took_s, ended)
        if outcome == "completed":
            self._end_to_end.record(since_enqueue_s, attributes)

    def vanish(self, queue: str, task: str, took_s: float, outcome: str, error_type: str) -> None:
        """An attempt has ended together with the process that had counted its begin."""
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
