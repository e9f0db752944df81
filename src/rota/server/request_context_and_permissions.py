"""The context of a request: the server's shared components and the authenticated caller."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from glob import escape
from typing import Annotated, Any, Final, TypeAlias, TypeVar

import msgspec
from fastapi import Depends, Request, Response

from rota.client.queue_metrics import read_minutes
from rota.client.record_audit_entry import record_change
from rota.client.rota import Rota
from rota.client.session import checked_session, sessions_of
from rota.core.health.acknowledgement import FindingState
from rota.core.health.finding import Finding
from rota.core.ids import checked_queue
from rota.core.job_record import JobRecord
from rota.core.masking import Mask
from rota.core.metric_series import Counts
from rota.core.shards import base_of
from rota.monitoring.current_alerts import read_server_status
from rota.monitoring.health_reader import HealthReader
from rota.monitoring.queue_and_task_detail import DetailReader
from rota.monitoring.running_jobs_by_worker import RunningJobsByWorker
from rota.server.auth.api_tokens import Role
from rota.server.auth.authentication import Authenticator, Identity, caller_of, rate_limited
from rota.server.http.problem_responses import Problem, QueueNotFound
from rota.server.job_read_batcher import JobReadBatcher
from rota.server.queue_and_task_details import DetailCache
from rota.server.serializers import JobSerializer
from rota.server.settings import ServerSettings
from rota.server.shared_event_reader import SharedEventReader
from rota.server.task_catalog import KnownTask, TaskCatalog
from rota.server.ttl_cache import TtlCache
from rota.store.compute_in_thread import compute_in_thread
from rota.store.reads import WorkerInfo

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")
#: Values of an audit entry.
_Values: TypeAlias = Mapping[str, Any] | None

#: Lifetimes of cached values.
OVERVIEW_S: Final = 0.5
HEALTH_S: Final = 2.0
FINDING_STATES_S: Final = 10.0
SERVER_STATUS_S: Final = 15.0
SUGGESTIONS_S: Final = 5.0
FORECAST_S: Final = 1.0
#: Data that is masked in less than 5 ms.
SMALL_BYTES: Final = 32_000
#: Minutes in a queue's sparkline.
SPARK_MINUTES: Final = 60


class Server:
    """Components shared by the routes of one application."""

    def __init__(self, rota: Rota, settings: ServerSettings) -> None:
        self.rota = rota
        self.settings = settings
        self.authenticator = Authenticator(rota, settings)
        self.catalog = TaskCatalog(rota)
        self.mask = Mask(settings.mask)
        self.serializer = JobSerializer(self.mask, self.catalog)
        self.job_reader = JobReadBatcher(rota)
        self.running_jobs = RunningJobsByWorker(rota)
        self.overview = TtlCache(rota.overview, OVERVIEW_S)
        self.server_status = TtlCache(partial(read_server_status, rota), SERVER_STATUS_S)
        self.suggestions = TtlCache(rota.suggestions, SUGGESTIONS_S)
        self.forecast = TtlCache(rota.schedules.forecast, FORECAST_S)
        self.finding_states = TtlCache(self._finding_states, FINDING_STATES_S)
        self.minutes = TtlCache(self._minutes, SERVER_STATUS_S)
        self.health_reader = HealthReader(rota)
        self.details = DetailCache(DetailReader(rota, self.health_reader))
        self.health = TtlCache(self._findings, HEALTH_S)
        #: The events of all `/api/events` streams, and the number of these streams.
        self.event_feed = SharedEventReader(rota)
        self.readers = 0
        self.readers_of: Counter[str] = Counter()
        #: The number of `/api/progress` streams, by job. They have a limit of their own.
        self.progress_readers_of: Counter[str] = Counter()
        #: Bulk operations that run in this process.
        self.background: set[asyncio.Task[None]] = set()

    async def _findings(self) -> list[Finding]:
        return await self.health_reader.findings(await self.overview.get(), await self.server_status.get())

    async def _finding_states(self) -> tuple[int, Mapping[str, FindingState]]:
        found = await self.health.get()
        return await (await checked_session(self.rota)).attention.record([one.key for one in found])

    async def _minutes(self) -> dict[str, list[Counts]]:
        return await read_minutes(await checked_session(self.rota), SPARK_MINUTES)


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A request whose caller has the required role."""

    server: Server
    identity: Identity
    request: Request

    @property
    def rota(self) -> Rota:
        """Returns the Rota client."""
        return self.server.rota

    def check_queue(self, queue: str) -> None:
        """Refuses an invalid queue name, or a queue outside the caller's scope, before any lookup."""
        checked_queue(queue)
        if not self.identity.may_see(queue):
            allowed = ", ".join(self.identity.queues)
            raise Problem(
                403, "forbidden", f"queue {queue} is outside the scope of this token, which is limited to {allowed}"
            )

    async def runnable_task(self, name: str, queue: str | None) -> KnownTask:
        """Returns a task that the caller may run in a queue, by default that of the task.

        The refusal is the same for a task that exists and one that does not.
        """
        known = await self.server.catalog.find(name)
        if not self.identity.may_run(name, known.task.queue if known.source else None):
            raise Problem(403, "forbidden", f"this token may not run task {name!r}: see `rota token create --task`")
        self.check_queue(queue or known.task.queue)
        return known

    async def may_run(self, name: str) -> bool:
        """True for a declared or announced task that the caller may run."""
        if not await self.server.catalog.has(name):
            return False
        return self.identity.may_run(name, (await self.server.catalog.find(name)).task.queue)

    async def runnable_tasks(self) -> list[str]:
        """Returns the tasks that the caller may run, with wildcards as in file names."""
        if self.identity.tasks:
            return list(self.identity.tasks)
        known = [one.task for one in await self.server.catalog.all()]
        return [escape(task.name) for task in known if self.identity.may_run(task.name, task.queue)]

    def count_enqueues(self, number: int) -> None:
        """Counts jobs that are about to be enqueued. Raises Problem if the caller has reached its limit."""
        limits = self.identity.limits
        wait_s = self.server.authenticator.limiter.count_enqueues(self.identity.caller_id, limits, number)
        if wait_s:
            raise rate_limited(self.identity, f"{limits.enqueues_per_minute} enqueues per minute", wait_s)

    def check_unlimited(self, resource: str) -> None:
        """Refuses a caller limited to some queues, for a resource that covers all queues."""
        if self.identity.queues:
            raise Problem(403, "forbidden", f"{resource} requires access to all queues; this token is limited to some")

    def visible(self, queues: Iterable[str]) -> list[str]:
        """Returns the queues that the caller may see."""
        return [queue for queue in queues if self.identity.may_see(queue)]

    def concerns(self, worker: WorkerInfo) -> bool:
        """True if the worker serves a queue that the caller may see."""
        served = worker.info.get("queues", [])
        return not self.identity.queues or any(self.identity.may_see(queue) for queue in served)

    async def known_queue(self, queue: str) -> str:
        """Returns the queue if the caller may see it. Raises QueueNotFound if it was never used."""
        self.check_queue(queue)
        names = await (await checked_session(self.rota)).views.queues()
        if queue.removesuffix("-fail") not in {*names, *map(base_of, names)}:
            raise QueueNotFound(queue)
        return queue

    async def audit(self, action: str, target: str, *, before: _Values = None, after: _Values = None) -> None:
        """Adds a change by the caller to the audit log. With encryption, of `data` only that it changed."""
        mask = self.server.mask
        if sessions_of(self.rota).codec is not None:
            before, after = _without_data(before, after)
        await record_change(
            self.rota,
            caller_of(self.identity, self.request),
            action,
            target,
            before=mask.value(before),
            after=mask.value(after),
        )


def _without_data(before: _Values, after: _Values) -> tuple[_Values, _Values]:
    """Returns the values of an audit entry without `data`, which is encrypted elsewhere in the store."""
    was, now = dict(before or {}), dict(after or {})
    if was.pop("data", None) != now.pop("data", None):
        now["data"] = {"encrypted": True}
    return was or None, now or None


async def serialize(record: JobRecord, function: Callable[..., R], *args: Any) -> R:
    """Calls a function that masks the data of a job: in a thread if it is long, so that other requests go on."""
    size = len(record.arguments) + len(record.result or b"")
    return await compute_in_thread(function, *args) if size > SMALL_BYTES else function(*args)


def json_response(body: Any, status: int = 200) -> Response:
    """Returns a JSON response. Encoded directly, because FastAPI would copy the body first."""
    return Response(msgspec.json.encode(body), status_code=status, media_type="application/json")


def require_role(role: Role) -> Callable[[Request], Awaitable[RequestContext]]:
    """Returns a dependency that authenticates the caller and requires at least this role."""

    async def authenticate(request: Request) -> RequestContext:
        server: Server = request.app.state.rota_server
        identity: Identity | None = getattr(request.state, "identity", None)
        if identity is None:
            identity = request.state.identity = await server.authenticator.identify(request)
        if not identity.role.covers(role):
            raise Problem(
                403, "forbidden", f"this requires the {role} role; {identity.name} has the role {identity.role}"
            )
        return RequestContext(server, identity, request)

    authenticate.role = role  # type: ignore[attr-defined]  # read by the OpenAPI document
    return authenticate


def marks_role(role: Role) -> Callable[[F], F]:
    """Marks an endpoint that authenticates callers itself with the role that it requires."""

    def mark(endpoint: F) -> F:
        endpoint.role = role  # type: ignore[attr-defined]
        return endpoint

    return mark


operator = require_role(Role.OPERATOR)
Viewer = Annotated[RequestContext, Depends(require_role(Role.VIEWER))]
Operator = Annotated[RequestContext, Depends(operator)]
Admin = Annotated[RequestContext, Depends(require_role(Role.ADMIN))]
