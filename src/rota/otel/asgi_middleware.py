"""ASGI middleware: a span for each request to Rota's HTTP API, in the trace of the caller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

from opentelemetry import context as contexts
from opentelemetry import propagate, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

#: Polled by machines, or open for as long as a dashboard: of no use in a trace.
UNTRACED: Final = ("/healthz", "/readyz", "/metrics", "/api/events")


class TracedRequests:
    """Wraps an ASGI application. A request that the host application has traced already gets no second span."""

    def __init__(self, app: Application, tracer: Tracer) -> None:
        self._app = app
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        is_traced = trace.get_current_span().get_span_context().is_valid
        if scope["type"] != "http" or is_traced or scope["path"].endswith(UNTRACED):
            await self._app(scope, receive, send)
            return
        token = contexts.attach(propagate.extract(_headers(scope)))
        try:
            with self._tracer.start_as_current_span(
                scope["method"], kind=SpanKind.SERVER, attributes=_attributes(scope)
            ) as span:
                await self._app(scope, receive, _recording_status(span, send))
                _name(span, scope)
        finally:
            contexts.detach(token)


def _headers(scope: Scope) -> Mapping[str, str]:
    wanted = propagate.get_global_textmap().fields
    named = ((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"])
    return {name: value for name, value in named if name in wanted}


def _attributes(scope: Scope) -> dict[str, str | int]:
    # Without the query, which may contain private data.
    return {
        "http.request.method": scope["method"],
        "url.path": scope["path"],
        "url.scheme": scope.get("scheme", "http"),
        "network.protocol.version": scope.get("http_version", "1.1"),
    }


def _recording_status(span: Span, send: Send) -> Send:
    async def send_and_record(message: Message) -> None:
        if message["type"] == "http.response.start":
            status: int = message["status"]
            span.set_attribute("http.response.status_code", status)
            if status >= 500:
                span.set_attribute("error.type", str(status))
                span.set_status(Status(StatusCode.ERROR))
        await send(message)

    return send_and_record


def _name(span: Span, scope: Scope) -> None:
    """Names the span after the route, which is known only after routing."""
    path: str | None = getattr(scope.get("route"), "path", None)
    if path is None and "endpoint" in scope and not scope.get("path_params"):
        path = scope["path"]  # a Starlette route without path parameters
    if path is not None:
        span.update_name(f"{scope['method']} {path}")
        span.set_attribute("http.route", path)
