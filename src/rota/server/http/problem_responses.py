"""Error responses: RFC 9457 problem+json for errors of the library, of the routes and of the framework."""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match

from rota.core.json_schema_validator import is_array, is_object
from rota.errors import (
    ConfigurationError,
    IdInUse,
    InvalidArguments,
    InvalidJob,
    InvalidOption,
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
    Undecryptable,
    UnknownTask,
    WorkerNotFound,
    WorkflowNotFound,
    WrongState,
)
from rota.server import dashboard

logger = logging.getLogger("rota.server")

MEDIA_TYPE: Final = "application/problem+json"
#: Retry-After while the store is unavailable.
RETRY_AFTER_S: Final = 2
#: Bounds of `errors`: entries, and characters of each text.
_MAX_ERRORS: Final = 20
_MAX_LENGTH: Final = 200

#: Error class -> status and `code`. The first class that matches is used.
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
    (Undecryptable, 409, "undecryptable"),
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
    """An error response with a status, a `code` for programs, and a message: what happened and what to do."""

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
        self.errors: Sequence[Mapping[str, Any]] = errors
        #: The state of a job or workflow that does not allow the request.
        self.state = state


class QueueNotFound(Problem):
    """The queue was never used."""

    def __init__(self, queue: str) -> None:
        super().__init__(404, "queue_not_found", f"there is no queue {queue!r}: GET /api/queues lists them")


def problem_of(error: RotaError, source: str = "body") -> Problem:
    """Returns the problem for an error of the library. `source` is the part of the request with the wrong option."""
    status, code = next((status, code) for kind, status, code in STATUSES if isinstance(error, kind))
    headers = {"Retry-After": str(RETRY_AFTER_S)} if status == 503 else {}
    state = error.state.upper() if isinstance(error, WrongState) else ""
    errors: list[dict[str, str]] = []
    if isinstance(error, InvalidOption | InvalidArguments):
        field = error.option if isinstance(error, InvalidOption) else _join("data", error.field)
        errors.append(_entry(source, field, error.reason))
    return Problem(status, code, str(error), headers=headers, state=state, errors=errors)


@contextmanager
def fields_within(path: str) -> Generator[None]:
    """Locates the errors of one part of the body: a wrong `delay` of the second step is `steps.1.delay`."""
    try:
        yield
    except (InvalidJob, Problem) as error:
        problem = error if isinstance(error, Problem) else problem_of(error)
        problem.errors = [{**entry, "field": _join(path, entry["field"])} for entry in problem.errors]
        raise problem from error.__cause__ if error is problem else error


def _join(path: str, field: str) -> str:
    return f"{path}.{field}" if field else path


def _source_of(error: RotaError, request: Request) -> str:
    """Returns the part of the request that contained an option."""
    if not isinstance(error, InvalidOption):
        return "body"
    if error.option in request.query_params:
        return "query"
    is_in_path = request.method in ("GET", "DELETE") or (error.option == "id" and bool(request.path_params))
    return "path" if is_in_path else "body"


def problem_response(problem: Problem, request: Request) -> Response:
    """Returns the error response. For compatibility routes it also has `success` and `message`."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": problem.message,
        "instance": request.url.path,
        "code": problem.code,
    }
    if problem.state:
        body["state"] = problem.state
    if problem.errors:
        body["errors"] = problem.errors
    if is_legacy(request):
        body |= {"success": False, "message": problem.message}
    return Response(
        msgspec.json.encode(body), status_code=problem.status, headers=problem.headers, media_type=MEDIA_TYPE
    )


def is_legacy(request: Request) -> bool:
    """True for a request to a compatibility route; see `routes.legacy`."""
    return getattr(request.state, "is_legacy", False)


def install(app: FastAPI) -> None:
    """Registers the exception handlers of an application."""
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(RotaError, _on_rota_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(RecursionError, _on_deep_nesting)
    app.add_exception_handler(ClientDisconnect, _on_disconnect)
    app.add_exception_handler(Exception, _on_crash)


async def _on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return problem_response(error, request)


async def _on_rota_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RotaError)
    problem = problem_of(error, _source_of(error, request))
    if problem.status >= 500:
        # The path as it is sent, percent-encoded: decoded it may contain a new line, and forge a line of the log.
        path = quote(request.scope["path"], errors="replace")
        logger.warning("%s %.500s: %s", request.method, path, error)
    return problem_response(problem, request)


async def _on_invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = list(error.errors())
    if any(one["type"] == "json_invalid" for one in found):
        reason = found[0].get("ctx", {}).get("error", "it cannot be read")
        problem = Problem(400, "malformed", f"the body is not JSON: {reason}")
    else:
        errors = [_located(one, error.body) for one in found[:_MAX_ERRORS]]
        first = errors[0]
        message = f"{first['field']}: {first['message']}" if first["field"] else first["message"]
        others = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        problem = Problem(422, "invalid", message + others, errors=errors)
    return problem_response(problem, request)


def _located(error: Mapping[str, Any], body: Any) -> dict[str, str]:
    """An entry of `errors`: the part of the request, the path of the field in it, and what is wrong there."""
    source, *path = error["loc"]
    if source == "body":
        path = _field_path(path, body, is_missing=error["type"] == "missing")
    return _entry(str(source), ".".join(map(str, path)), str(error["msg"]))


def _field_path(path: Sequence[Any], body: Any, *, is_missing: bool) -> list[Any]:
    """The path without pydantic's names for the branches of a union: `priority`, not `priority.constrained-int`."""
    found: list[Any] = []
    for part in path:
        if (is_object(body) and part in body) or (is_array(body) and part in range(len(body))):
            body = body[part]
        else:
            continue
        found.append(part)
    return [*found, path[-1]] if is_missing and path else found


def _entry(source: str, field: str, message: str) -> dict[str, str]:
    return {"source": source, "field": field[:_MAX_LENGTH], "message": message[:_MAX_LENGTH]}


_HINTS: Final = {
    400: "the request cannot be read: send the body as JSON in UTF-8",
    404: "there is no such endpoint: /openapi.json lists them",
    405: "this endpoint does not support that method: /openapi.json lists the methods",
}


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404 and dashboard.wants_html(request):
        return dashboard.show_not_found(request)
    message = _HINTS.get(error.status_code, error.detail)
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
    headers = {"Allow": ", ".join(_allowed(request))} if error.status_code == 405 else error.headers
    return problem_response(Problem(error.status_code, code, message, headers=headers), request)


def _allowed(request: Request) -> list[str]:
    """Returns the methods of all routes with this path. The framework names those of the first route only."""
    routes: list[APIRoute] = request.app.state.rota_routes
    fitting = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    return sorted({method for route in fitting if route.path == fitting[0].path for method in route.methods or ()})


async def _on_deep_nesting(request: Request, error: Exception) -> Response:
    # Raised while the body is read and checked, before anything is changed.
    return problem_response(Problem(422, "invalid", "the data is nested too deeply: send a flatter structure"), request)


async def _on_disconnect(_request: Request, _error: Exception) -> Response:
    # No client receives it. Without a handler each one that leaves in the middle of its body logs a traceback, which
    # took most of the CPU time of a thousand half-open requests.
    return Response(status_code=400)


async def _on_crash(request: Request, error: Exception) -> Response:
    # The ASGI server logs the traceback; the caller gets no details.
    message = "internal error: see the server's log. The request may or may not have been carried out"
    return problem_response(Problem(500, "crash", message), request)
