"""Sets up the OpenTelemetry SDK from environment variables: OTLP over HTTP or gRPC, in batches."""

from __future__ import annotations

import logging
import os
import socket
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from opentelemetry import metrics, trace

from rota.client.rota import Rota
from rota.otel.job_middleware import OpenTelemetry

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

logger = logging.getLogger("rota.otel")

#: The port of collectors for OTLP over gRPC; HTTP is on 4318.
GRPC_PORT: Final = 4317
#: A killed process loses the spans it has not exported, so the interval is shorter than OpenTelemetry's 5 s.
SPAN_EXPORT_INTERVAL_MS: Final = 1_000


def start(*, service: str = "rota") -> None:
    """Exports traces and metrics as configured by environment variables. Providers set up by the program are kept.

    Reads OpenTelemetry's own variables (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_PROTOCOL`,
    `OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER`, …), and `TRACE_EXPORTER_URL` for traces only. `service` is the default
    service name. Needs the extra `otlp`, and `otlp-grpc` for gRPC; raises ImportError without it.
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


def instrument(rota: Rota) -> None:
    """Calls `start` and adds the `OpenTelemetry` middleware to this `Rota`, unless it has one."""
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
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=resource)
    # None: the SDK reads the variable.
    interval_ms = None if os.environ.get("OTEL_BSP_SCHEDULE_DELAY") else SPAN_EXPORT_INTERVAL_MS
    exporter = _exporters("traces", "trace_exporter").OTLPSpanExporter(endpoint=_trace_endpoint())
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=interval_ms))
    trace.set_tracer_provider(provider)


def _send_metrics(resource: Resource) -> None:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    reader = PeriodicExportingMetricReader(_exporters("metrics", "metric_exporter").OTLPMetricExporter())
    metrics.set_meter_provider(MeterProvider(resource=resource, metric_readers=[reader]))


def _exporters(signal: str, module: str) -> Any:
    """Returns the module with the exporter of a signal. Raises ImportError if its package is missing."""
    return import_module(f"opentelemetry.exporter.otlp.proto.{'grpc' if _is_grpc(signal) else 'http'}.{module}")


def _is_grpc(signal: str) -> bool:
    """Returns whether a signal is exported over gRPC. Port 4317 of `TRACE_EXPORTER_URL` is the one for gRPC."""
    for name in (f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if given := os.environ.get(name, "").strip().lower():
            if given not in ("grpc", "http/protobuf"):
                logger.warning("%s=%s is not supported, http/protobuf is used: set it to that or to grpc", name, given)
            return given == "grpc"
    return signal == "traces" and urlsplit(os.environ.get("TRACE_EXPORTER_URL", "")).port == GRPC_PORT


def _trace_endpoint() -> str | None:
    """Returns the endpoint in `TRACE_EXPORTER_URL`; None to use OpenTelemetry's own variables."""
    given = os.environ.get("TRACE_EXPORTER_URL")
    if not given or _is_grpc("traces") or urlsplit(given).path.strip("/"):
        return given or None
    return f"{given.rstrip('/')}/v1/traces"
