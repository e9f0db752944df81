"""A collector of the tests' own: takes OTLP over HTTP and gRPC, and keeps what it was sent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

import grpc
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

KINDS: Final = {1: "INTERNAL", 2: "SERVER", 3: "CLIENT", 4: "PRODUCER", 5: "CONSUMER"}


@dataclass(frozen=True, slots=True)
class SeenSpan:
    """One span, as it came."""

    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    links: tuple[str, ...]
    attributes: dict[str, Any]
    is_error: bool
    #: What its status says beyond that.
    status: str
    began_ns: int
    ended_ns: int
    events: tuple[str, ...]
    service: str
    instance: str

    @property
    def job(self) -> str:
        """The job that it speaks of; "" where it speaks of none."""
        return self.attributes.get("messaging.message.id", "")


@dataclass(frozen=True, slots=True)
class SeenPoint:
    """The latest value of one series: a number, or how many a histogram holds, and its bounds."""

    metric: str
    unit: str
    attributes: dict[str, Any]
    value: float
    bounds: tuple[float, ...]


class Collector:
    """Listens on a free port of the loopback until it is closed."""

    def __init__(self) -> None:
        self.spans: list[SeenSpan] = []
        self._points: dict[tuple[str, ...], SeenPoint] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        #: Over gRPC each signal has a method that takes the same message.
        methods = {
            "/opentelemetry.proto.collector.trace.v1.TraceService/Export": self.take_traces,
            "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export": self.take_metrics,
        }
        self._grpc = grpc.server(ThreadPoolExecutor(2), handlers=[_GrpcMethods(methods)])
        self._grpc_port = self._grpc.add_insecure_port("127.0.0.1:0")
        self._thread = threading.Thread(target=self._server.serve_forever, name="collector", daemon=True)

    @property
    def url(self) -> str:
        """What `OTEL_EXPORTER_OTLP_ENDPOINT` takes."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def grpc_url(self) -> str:
        """The same over gRPC."""
        return f"http://127.0.0.1:{self._grpc_port}"

    @property
    def points(self) -> list[SeenPoint]:
        """The latest of every series."""
        return list(self._points.values())

    def metric(self, name: str) -> list[SeenPoint]:
        """The series of one metric."""
        return [point for point in self.points if point.metric == name]

    def named(self, name: str) -> list[SeenSpan]:
        """The spans of that name, in the order in which they came."""
        return [span for span in self.spans if span.name == name]

    def of_job(self, job: str, name: str = "") -> list[SeenSpan]:
        """The spans that speak of one job."""
        return [span for span in self.spans if span.job == job and span.name.startswith(name)]

    def take_traces(self, body: bytes) -> None:
        """Keeps the spans of a request."""
        for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = _attributes(of_resource.resource.attributes)
            for scope in of_resource.scope_spans:
                self.spans += [_span(span, resource) for span in scope.spans]

    def take_metrics(self, body: bytes) -> None:
        """Keeps the points of a request; of each series the latest."""
        for of_resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            instance = _attributes(of_resource.resource.attributes).get("service.instance.id", "")
            for scope in of_resource.scope_metrics:
                for metric in scope.metrics:
                    for point in (*metric.sum.data_points, *metric.gauge.data_points):
                        self._keep(instance, metric, point, point.as_int or point.as_double, ())
                    for histogram in metric.histogram.data_points:
                        self._keep(instance, metric, histogram, histogram.count, tuple(histogram.explicit_bounds))

    def _keep(self, instance: str, metric: Any, point: Any, value: float, bounds: tuple[float, ...]) -> None:
        attributes = _attributes(point.attributes)
        seen = SeenPoint(metric.name, metric.unit, attributes, value, bounds)
        self._points[instance, metric.name, *map(str, sorted(attributes.items()))] = seen

    def __enter__(self) -> Self:
        self._thread.start()
        self._grpc.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._grpc.stop(None).wait()
        self._thread.join()


class _GrpcMethods(grpc.GenericRpcHandler):
    """Takes the bytes of each request, and answers with an empty message."""

    def __init__(self, methods: dict[str, Callable[[bytes], None]]) -> None:
        self._methods = methods

    def service(self, handler_call_details: Any) -> Any:
        """The handler of a method; None for an unknown one."""
        take = self._methods.get(handler_call_details.method)

        def handle(body: bytes, _: Any) -> bytes:
            assert take is not None
            take(body)
            return b""

        return None if take is None else grpc.unary_unary_rpc_method_handler(handle)


def _handler(collector: Collector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            {"/v1/traces": collector.take_traces, "/v1/metrics": collector.take_metrics}[self.path](body)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def _span(span: Any, resource: dict[str, Any]) -> SeenSpan:
    return SeenSpan(
        name=span.name,
        kind=KINDS[span.kind],
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        links=tuple(link.span_id.hex() for link in span.links),
        attributes=_attributes(span.attributes),
        is_error=span.status.code == 2,
        status=span.status.message,
        began_ns=span.start_time_unix_nano,
        ended_ns=span.end_time_unix_nano,
        events=tuple(event.name for event in span.events),
        service=resource.get("service.name", ""),
        instance=resource.get("service.instance.id", ""),
    )


def _attributes(pairs: Iterable[Any]) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
