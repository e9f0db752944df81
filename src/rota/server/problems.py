"""Every refusal in one shape: RFC 9457 problem+json, with seed 2's `success` and `message` in it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import Match

from rota.errors import (
    ConfigurationError,
    IdInUse,
    InvalidJob,
    JobNotFound,
    OperationNotFound,
    PayloadTooLarge,
    ResultTimeout,
    RotaError,
    ScheduleNotFound,
    ScheduleOutdated,
    StoreDenied,
    StoreError,
    StoreFull,
    StoreUnavailable,
    StoreUnsupported,
    UnknownTask,
    WorkerNotFound,
    WorkflowNotFound,
    WrongState,
)
from rota.server import dashboard

logger = logging.getLogger("rota.server")

MEDIA_TYPE: Final = "application/problem+json"
#: A store that is down is asked again after this.
RETRY_AFTER_S: Final = 2
#: What is said of a place in a request that pydantic's words would say badly.
_MAX_ERRORS: Final = 20
_SHOWN: Final = 200

#: The first class that fits decides: status, and a word for programs.
STATUSES: Final[tuple[tuple[type[RotaError], int, str], ...]] = (
    (PayloadTooLarge, 413, "payload_too_large"),
    (InvalidJob, 422, "invalid"),
    (JobNotFound, 404, "job_not_found"),
    (ScheduleNotFound, 404, "schedule_not_found"),
    (WorkflowNotFound, 404, "workflow_not_found"),
    (OperationNotFound, 404, "operation_not_found"),
    (WorkerNotFound, 404, "worker_not_found"),
    (UnknownTask, 422, "unknown_task"),
    (WrongState, 409, "wrong_state"),
    (IdInUse, 409, "id_in_use"),
    (ScheduleOutdated, 409, "schedule_outdated"),
    (ResultTimeout, 504, "timeout"),
    (StoreFull, 507, "store_full"),
    (StoreUnavailable, 503, "store_unavailable"),
    (StoreDenied, 503, "store_denied"),
    (StoreUnsupported, 503, "store_unsupported"),
    (StoreError, 503, "store_error"),
    (ConfigurationError, 500, "misconfigured"),
    (RotaError, 500, "error"),
)


class Problem(Exception):
    """A refusal that is no error of the library's: `status` says which kind, the message what to do."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        errors: Sequence[Mapping[str, Any]] = (),
        state: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})
        self.errors = list(errors)
        #: Of a job or workflow that is in the wrong one.
        self.state = state


class QueueNotFound(Problem):
    """No job was ever put into such a queue."""

    def __init__(self, queue: str) -> None:
        super().__init__(404, "queue_not_found", f"no queue is called {queue!r}: GET /api/queues says which there are")


def problem_of(error: RotaError) -> Problem:
    """What an error of the library's means over HTTP."""
    status, code = next((status, code) for kind, status, code in STATUSES if isinstance(error, kind))
    headers = {"Retry-After": str(RETRY_AFTER_S)} if status == 503 else {}
    state = error.state.upper() if isinstance(error, WrongState) else ""
    return Problem(status, code, str(error), headers=headers, state=state)


def respond(problem: Problem, instance: str) -> Response:
    """The problem as an answer."""
    title = HTTPStatus(problem.status).phrase
    body: dict[str, Any] = {
        "success": False,
        "message": problem.message,
        "type": "about:blank",
        "title": title,
        "status": problem.status,
        "detail": problem.message,
        "instance": instance,
        "code": problem.code,
    }
    if problem.state:
        body["state"] = problem.state
    if problem.errors:
        body["errors"] = problem.errors
    return Response(
        msgspec.json.encode(body), status_code=problem.status, headers=problem.headers, media_type=MEDIA_TYPE
    )


def install(app: FastAPI) -> None:
    """Lets every refusal of the application take that shape, its own and the framework's."""
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(RotaError, _on_rota_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(Exception, _on_crash)


async def _on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return respond(error, request.url.path)


async def _on_rota_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RotaError)
    problem = problem_of(error)
    if problem.status >= 500:
        logger.warning("%s %s: %s", request.method, request.url.path, error)
    return respond(problem, request.url.path)


async def _on_invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = list(error.errors())
    if any(one["type"] == "json_invalid" for one in found):
        why = found[0].get("ctx", {}).get("error", "it cannot be read")
        problem = Problem(400, "malformed", f"the body is not JSON: {why}")
    else:
        errors = [_place(one) for one in found[:_MAX_ERRORS]]
        first = errors[0]
        said = f"{first['field']}: {first['message']}" if first["field"] else first["message"]
        others = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        problem = Problem(422, "invalid", said + others, errors=errors)
    return respond(problem, request.url.path)


def _place(error: Mapping[str, Any]) -> dict[str, str]:
    """Where in the request, and what is wrong there."""
    source, *path = error["loc"]
    return {"source": str(source), "field": ".".join(map(str, path))[:_SHOWN], "message": str(error["msg"])[:_SHOWN]}


_HINTS: Final = {
    400: "the request cannot be read: its body has to be JSON in UTF-8",
    404: "there is nothing at this address: /openapi.json says what there is",
    405: "this address does not take that method: /openapi.json says which it takes",
}


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404 and dashboard.is_lost_reader(request):
        return dashboard.show_lost(request)
    message = _HINTS.get(error.status_code, error.detail)
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
    headers = {"Allow": ", ".join(_allowed(request))} if error.status_code == 405 else error.headers
    return respond(Problem(error.status_code, code, message, headers=headers), request.url.path)


def _allowed(request: Request) -> list[str]:
    """The methods of all routes of an address: the framework names those of the first alone."""
    routes: list[APIRoute] = request.app.state.rota_routes
    fitting = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    return sorted({method for route in fitting if route.path == fitting[0].path for method in route.methods or ()})


async def _on_crash(request: Request, error: Exception) -> Response:
    # Whoever serves the application logs it with its traceback; the caller hears no more than that it happened.
    return respond(
        Problem(500, "crash", "the server made a mistake: its log says which, and nothing is known of the outcome"),
        request.url.path,
    )
