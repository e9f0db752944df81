"""The application: puts the routes together, and says in its OpenAPI document what they take and give."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, Final

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.middleware.cors import CORSMiddleware

from rota.client import Rota
from rota.server import dashboard, problems
from rota.server.access import COOKIE, CSRF_HEADER
from rota.server.answers import HEADER, REPLAYED
from rota.server.guard import Guard
from rota.server.routes import (
    access,
    dead,
    events,
    health,
    jobs,
    operations,
    overview,
    queues,
    schedules,
    workers,
    workflows,
)
from rota.server.schemas.base import ProblemAnswer
from rota.server.schemas.jobs import NewJob
from rota.server.settings import BODY_OVERHEAD, MASKED, Auth, ServerSettings
from rota.server.visits import Server

VERSION: Final = version("rota")
DESCRIPTION: Final = """Everything Rota can do, for any language. Success means stored. An error is `problem+json` with
`success`, `message` and a `code`. A POST with an Idempotency-Key can be sent again."""
ROUTERS: Final = (
    jobs.router, queues.router, workers.router, workflows.router, schedules.router, dead.router, operations.router,
    events.router, access.router, health.router, overview.router, dashboard.router,
)  # fmt: skip


def create_app(
    rota: Rota,
    *,
    auth: Auth = "tokens",
    cors_origins: Sequence[str] = (),
    mask: Sequence[str] = MASKED,
    max_readers: int = 200,
    trace_url: str | None = None,
) -> FastAPI:
    """The HTTP API of a `Rota`, to be served, or mounted in an application of yours: `app.mount("/rota", …)`.

    `auth` is "tokens" (see `rota token`), "none" (everybody is an admin; only this machine is served), or a function
    that takes the request and returns an `Identity`, or None. `trace_url`, as https://tracing.example/trace/{trace_id},
    is where the dashboard links the traces of jobs to. Raises ConfigurationError.
    """
    settings = ServerSettings(
        auth=auth, cors_origins=tuple(cors_origins), mask=tuple(mask), max_readers=max_readers, trace_url=trace_url
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        yield
        for task in app.state.rota_server.background:
            task.cancel()  # a worker, or another server, goes on with it
        await rota.close()

    # The pages at /docs and /redoc would load scripts from elsewhere.
    app = Application(
        title="Rota", version=VERSION, description=DESCRIPTION, docs_url=None, redoc_url=None, lifespan=lifespan,
        separate_input_output_schemas=False,
        # Rota has a span of its own for a request, see `rota.otel`.
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
    )  # fmt: skip
    app.state.rota_server = Server(rota, settings)
    app.state.rota_routes = api_routes()
    app.router.routes.insert(0, jobs.QUICK)
    for router in ROUTERS:
        app.include_router(router)
    app.router.routes += dashboard.routes()
    problems.install(app)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origins),
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", HEADER, "Last-Event-ID"],
            expose_headers=[REPLAYED, "Retry-After"],
        )
    app.add_middleware(Guard, max_body=rota.max_payload + BODY_OVERHEAD)
    for one in reversed(rota.middleware):
        app.add_middleware(one.serve)
    return app


class Application(FastAPI):
    """FastAPI, with a document that says what every route has in common."""

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document."""
        if self.openapi_schema is None:
            self.openapi_schema = _complete(super().openapi())
        return self.openapi_schema


def _complete(document: dict[str, Any]) -> dict[str, Any]:
    components = document.setdefault("components", {})
    known: dict[str, Any] = components.setdefault("schemas", {})
    for name, model in (("Problem", ProblemAnswer), ("NewJob", NewJob)):
        known[name] = model.model_json_schema(ref_template="#/components/schemas/{model}")
        known.update(known[name].pop("$defs", {}))
    for unused in ("HTTPValidationError", "ValidationError"):
        known.pop(unused, None)
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "`rota token create`"},
        "session": {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": f"with {CSRF_HEADER} on changes"},
    }
    roles = {(method.lower(), route.path): role_of(route) for route in api_routes() for method in route.methods or ()}
    refusal = {
        "description": "Why not, and what to do.",
        "content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for path, methods in document.get("paths", {}).items():
        for method, operation in methods.items():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = refusal
            role = roles.get((method, path))
            if role is not None:
                operation["x-role"] = role
                operation["security"] = [{"token": []}, {"session": []}]
            if method == "post":
                operation.setdefault("parameters", []).append(_KEY)
    return document


_KEY: Final = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "Sent again with the same key, the request is answered as it was the first time, for a day.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
}


def api_routes() -> list[APIRoute]:
    """Every route, in the order in which they are tried."""
    return [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]


def role_of(route: APIRoute) -> str | None:
    """The role that a route asks for; None for one that anybody may use."""
    asked = (route.endpoint, *(dependency.call for dependency in route.dependant.dependencies))
    roles = (getattr(one, "role", None) for one in asked)
    return next((role.value for role in roles if role is not None), None)
