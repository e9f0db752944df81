"""The FastAPI application: routes, middleware and the OpenAPI document."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, Final

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.middleware.cors import CORSMiddleware

from rota.client.rota import Rota
from rota.server import dashboard
from rota.server.auth.api_tokens import Role
from rota.server.auth.authentication import COOKIE, CSRF_HEADER
from rota.server.http import problem_responses
from rota.server.http.body_limit import BodyLimit
from rota.server.http.idempotency_key import HEADER, REPLAYED, IdempotentRoute
from rota.server.http.security_headers import SecurityHeaders
from rota.server.request_context_and_permissions import Server
from rota.server.routes import annotations as annotation_routes
from rota.server.routes import (
    api_tokens,
    attention,
    audit_log,
    bulk_operations,
    dead_letters,
    events,
    health,
    job_progress,
    jobs,
    legacy_compatibility,
    locks,
    login,
    metrics,
    openapi_document,
    overview,
    queues,
    saved_views,
    scaling,
    schedules,
    search_suggestions,
    settings,
    tasks,
    workers,
    workflows,
)
from rota.server.schemas.common import ProblemResponse
from rota.server.schemas.jobs import NewJob
from rota.server.settings import BODY_OVERHEAD, MASKED, Auth, ServerSettings

VERSION: Final = version("rota")
DESCRIPTION: Final = """The HTTP API of Rota. A 2xx response means that the change is stored. Errors are `problem+json`
with a `code` and a `detail`. A POST with an Idempotency-Key can be repeated safely."""
ROUTERS: Final = (
    jobs.router,
    queues.router,
    tasks.router,
    locks.router,
    workers.router,
    workflows.router,
    schedules.router,
    dead_letters.router,
    bulk_operations.router,
    events.router,
    job_progress.router,
    login.router,
    audit_log.router,
    health.router,
    overview.router,
    attention.router,
    annotation_routes.router,
    saved_views.router,
    api_tokens.router,
    search_suggestions.router,
    metrics.router,
    scaling.router,
    settings.router,
    legacy_compatibility.router,
    dashboard.router,
)


def create_app(
    rota: Rota,
    *,
    auth: Auth = "tokens",
    cors_origins: Sequence[str] = (),
    mask: Sequence[str] = MASKED,
    max_readers: int = 200,
    trace_url: str | None = None,
    default_task: str | None = None,
) -> FastAPI:
    """Returns the HTTP API as an ASGI application, to be served or mounted: `app.mount("/rota", create_app(rota))`.

    `auth` is "tokens" (see `rota token`), "none" (every caller is an admin, and only loopback requests are served), or
    a function that takes the request and returns an `Identity`, or None. `trace_url`, such as
    https://tracing.example/trace/{trace_id}, is the target of the dashboard's trace links. `default_task` is the task
    of a `POST /` whose `name` is not that of a task. Raises ConfigurationError.
    """
    settings = ServerSettings(
        auth=auth,
        cors_origins=tuple(cors_origins),
        mask=tuple(mask),
        max_readers=max_readers,
        trace_url=trace_url,
        default_task=default_task,
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        yield
        for task in app.state.rota_server.background:
            task.cancel()  # a worker or another server resumes the operation
        await rota.close()

    # No /docs and /redoc: these pages load scripts from other hosts.
    app = Application(
        title="Rota",
        version=VERSION,
        description=DESCRIPTION,
        openapi_url=None,  # the framework would build the document on the event loop
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        separate_input_output_schemas=False,
        # Rota creates its own span for a request; see `rota.otel`.
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
    )
    app.state.rota_server = Server(rota, settings)
    app.state.rota_routes = api_routes()
    app.router.routes.insert(0, jobs.FAST_ENQUEUE)
    for router in ROUTERS:
        app.include_router(router)
    openapi_document.add_route(app)
    app.router.routes += dashboard.routes()
    problem_responses.install(app)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origins),
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", HEADER, "Last-Event-ID"],
            expose_headers=[REPLAYED, "Retry-After"],
        )
    app.add_middleware(BodyLimit, max_body=rota.tasks.max_payload + BODY_OVERHEAD)
    app.add_middleware(SecurityHeaders)
    for one in reversed(rota.middleware):
        app.add_middleware(one.serve)
    return app


class Application(FastAPI):
    """FastAPI with an OpenAPI document that has roles, errors and the idempotency header of each route."""

    def openapi(self) -> dict[str, Any]:
        """Returns the OpenAPI document."""
        if self.openapi_schema is None:
            self.openapi_schema = _complete(super().openapi())
        return self.openapi_schema


def _complete(document: dict[str, Any]) -> dict[str, Any]:
    components = document.setdefault("components", {})
    known: dict[str, Any] = components.setdefault("schemas", {})
    for name, model in (("Problem", ProblemResponse), ("NewJob", NewJob)):
        known[name] = model.model_json_schema(ref_template="#/components/schemas/{model}")
        known.update(known[name].pop("$defs", {}))
    for unused in ("HTTPValidationError", "ValidationError"):
        known.pop(unused, None)
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "`rota token create`"},
        "session": {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": f"with {CSRF_HEADER} for changes"},
    }
    idempotent = {route.path for route in api_routes() if isinstance(route, IdempotentRoute)} | {jobs.FAST_ENQUEUE.path}
    roles = {(method.lower(), route.path): role_of(route) for route in api_routes() for method in route.methods or ()}
    error = {
        "description": "The error: what happened and what to do.",
        "content": {problem_responses.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for path, methods in document.get("paths", {}).items():
        for method, operation in methods.items():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = error
            role = roles.get((method, path))
            if role is not None:
                operation["x-role"] = role
                operation["security"] = [{"token": []}, {"session": []}]
            # The other POST requests change nothing that a repeated one could change twice, or answer with a secret.
            if method == "post" and role not in (None, Role.VIEWER) and path in idempotent:
                operation.setdefault("parameters", []).append(_KEY)
    return document


_KEY: Final = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "A repeated request with the same key gets the first response again, for 24 hours.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
}


def api_routes() -> list[APIRoute]:
    """Returns all routes in matching order."""
    return [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]


def role_of(route: APIRoute) -> str | None:
    """Returns the role that a route requires; None for a public route."""
    callables = (route.endpoint, *(dependency.call for dependency in route.dependant.dependencies))
    roles = (getattr(one, "role", None) for one in callables)
    return next((role.value for role in roles if role is not None), None)
