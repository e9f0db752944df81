"""A span around each request to Rota's HTTP API, in the trace that its caller names."""

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

#: Asked for all the time by machines, or for as long as somebody looks: of no use in a trace.
UNTRACED: Final = ("/healthz", "/readyz", "/metrics", "/api/events")


class TracedRequests:
    """An ASGI application around another. Where the host application has traced a request, its span is used."""

    def __init__(self, app: Application, tracer: Tracer) -> None:
        self._app = app
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        is_traced = trace.get_current_span().get_span_context().is_valid
        if scope["type"] != "http" or is_traced or scope["path"].endswith(UNTRACED):
            await self._app(scope, receive, send)
            return
        token = contexts.attach(propagate.extract(_headers(scope)))
        try:
            with self._tracer.start_as_current_span(
                scope["method"], kind=SpanKind.SERVER, attributes=_attributes(scope)
            ) as span:
                await self._app(scope, receive, _noting(span, send))
                _name(span, scope)
        finally:
            contexts.detach(token)


def _headers(scope: Scope) -> Mapping[str, str]:
    wanted = propagate.get_global_textmap().fields
    named = ((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"])
    return {name: value for name, value in named if name in wanted}


def _attributes(scope: Scope) -> dict[str, str | int]:
    # Not the query: what is asked for may be nobody's business.
    return {
        "http.request.method": scope["method"],
        "url.path": scope["path"],
        "url.scheme": scope.get("scheme", "http"),
        "network.protocol.version": scope.get("http_version", "1.1"),
    }


def _noting(span: Span, send: Send) -> Send:
    async def noted(message: Message) -> None:
        if message["type"] == "http.response.start":
            status: int = message["status"]
            span.set_attribute("http.response.status_code", status)
            if status >= 500:
                span.set_attribute("error.type", str(status))
                span.set_status(Status(StatusCode.ERROR))
        await send(message)

    return noted


def _name(span: Span, scope: Scope) -> None:
    """Which route it was is known once it has been found."""
    path = getattr(scope.get("route"), "path", None)
    if path is not None:
        span.update_name(f"{scope['method']} {path}")
        span.set_attribute("http.route", path)
