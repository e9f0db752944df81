"""Sets up OpenTelemetry's SDK as the environment says: OTLP over HTTP, in batches, from threads of its own.

A collector that is slow or gone holds nothing up: what does not fit into the bounded buffers is dropped.
"""

from __future__ import annotations

import logging
import os
import socket
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from opentelemetry import metrics, trace

from rota.client import Rota
from rota.otel.middleware import OpenTelemetry

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

logger = logging.getLogger("rota.otel")

#: What a process that is killed had not sent yet is lost with it: so spans leave sooner than OpenTelemetry's 5 s.
SPANS_EVERY_MS: Final = 1_000


def start(*, service: str = "rota") -> None:
    """Sends traces and metrics where the environment says; what the program has set up itself is left alone.

    Reads OpenTelemetry's own variables (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER`, …),
    and `TRACE_EXPORTER_URL` for traces alone. `service` is the service's name where they say none. Needs the extra
    `otlp`; raises ImportError without it.
    """
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    resource = Resource.create({"service.instance.id": f"{socket.gethostname()}-{os.getpid()}"})
    if str(resource.attributes.get("service.name", "unknown_service")).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": service}))
    if _is_wanted("traces", "TRACE_EXPORTER_URL") and not isinstance(trace.get_tracer_provider(), TracerProvider):
        _send_traces(resource)
    if _is_wanted("metrics") and not isinstance(metrics.get_meter_provider(), MeterProvider):
        _send_metrics(resource)


def equip(rota: Rota) -> None:
    """`start`, and has what this `Rota` enqueues and runs traced, unless the program has seen to that itself."""
    start()
    if not any(isinstance(one, OpenTelemetry) for one in rota.middleware):
        rota.middleware.insert(0, OpenTelemetry())


def _is_wanted(signal: str, *others: str) -> bool:
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    if os.environ.get(f"OTEL_{signal.upper()}_EXPORTER", "otlp") == "none":
        return False
    names = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT", *others)
    return any(os.environ.get(name) for name in names)


def _send_traces(resource: Resource) -> None:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=resource)
    every_ms = None if os.environ.get("OTEL_BSP_SCHEDULE_DELAY") else SPANS_EVERY_MS  # None: as the environment says
    exporter = OTLPSpanExporter(endpoint=_trace_endpoint())
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=every_ms))
    trace.set_tracer_provider(provider)


def _send_metrics(resource: Resource) -> None:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    reader = PeriodicExportingMetricReader(OTLPMetricExporter())
    metrics.set_meter_provider(MeterProvider(resource=resource, metric_readers=[reader]))


def _trace_endpoint() -> str | None:
    """What `TRACE_EXPORTER_URL` names; None leaves it to OpenTelemetry's own variables."""
    given = os.environ.get("TRACE_EXPORTER_URL")
    if not given:
        return None
    url = urlsplit(given)
    if url.port == 4317:
        logger.warning("TRACE_EXPORTER_URL names port 4317, which is usually for gRPC; OTLP over HTTP is on 4318")
    return given if url.path.strip("/") else f"{given.rstrip('/')}/v1/traces"
