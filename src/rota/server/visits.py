"""One request and what it needs: the server's parts, and the caller with what they may do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final, TypeVar

import msgspec
from fastapi import Depends, Request, Response

from rota.attention import read_surroundings
from rota.client import Rota
from rota.core.history import Counted
from rota.core.job import base_of, checked_queue
from rota.history import read_minutes
from rota.server.access import Gate, Identity
from rota.server.audit import note_change
from rota.server.catalog import Catalog
from rota.server.feed import Feed
from rota.server.leases import Leases
from rota.server.masking import Mask
from rota.server.problems import Problem, QueueNotFound
from rota.server.reads import Reads
from rota.server.settings import ServerSettings
from rota.server.shapes import JobShapes
from rota.server.shared import Shared
from rota.server.tokens import Role
from rota.store.views import WorkerInfo

F = TypeVar("F", bound=Callable[..., Any])

#: How old the overview may be, and what changes slowly around it.
OVERVIEW_S: Final = 0.5
SURROUNDINGS_S: Final = 15.0
SUGGESTIONS_S: Final = 5.0
AHEAD_S: Final = 1.0
#: What a small chart of a queue shows.
SPARK_MINUTES: Final = 60


class Server:
    """What the routes of one application share."""

    def __init__(self, rota: Rota, settings: ServerSettings) -> None:
        self.rota = rota
        self.settings = settings
        self.gate = Gate(rota, settings)
        self.catalog = Catalog(rota)
        self.mask = Mask(settings.mask)
        self.shapes = JobShapes(self.mask, self.catalog)
        self.reads = Reads(rota)
        self.leases = Leases(rota)
        self.overview = Shared(rota.overview, OVERVIEW_S)
        self.surroundings = Shared(partial(read_surroundings, rota), SURROUNDINGS_S)
        self.suggestions = Shared(rota.suggestions, SUGGESTIONS_S)
        self.ahead = Shared(rota.schedules.ahead, AHEAD_S)
        self.minutes = Shared(self._minutes, SURROUNDINGS_S)
        #: What the readers of `/api/events` hear, and how many they are.
        self.feed = Feed(rota)
        self.readers = 0
        #: Operations that are carried out here.
        self.background: set[asyncio.Task[None]] = set()

    async def _minutes(self) -> dict[str, list[Counted]]:
        return await read_minutes(await self.rota.checked_link(), SPARK_MINUTES)


@dataclass(frozen=True, slots=True)
class Visit:
    """A request by somebody who may make it."""

    server: Server
    identity: Identity
    request: Request

    @property
    def rota(self) -> Rota:
        """The client."""
        return self.server.rota

    def check_queue(self, queue: str) -> None:
        """Refuses what is no queue's name, and a queue beyond the caller's limits, before anybody looks for it."""
        checked_queue(queue)
        if not self.identity.may_see(queue):
            allowed = ", ".join(self.identity.queues)
            raise Problem(403, "forbidden", f"this token is for queue {allowed} alone, not for {queue}")

    def check_unlimited(self, what: str) -> None:
        """Refuses callers that are limited to some queues, where something concerns all of them."""
        if self.identity.queues:
            raise Problem(403, "forbidden", f"{what} concerns all queues, and this token is limited to some")

    def visible(self, queues: Iterable[str]) -> list[str]:
        """Those of the queues that the caller may see."""
        return [queue for queue in queues if self.identity.may_see(queue)]

    def concerns(self, worker: WorkerInfo) -> bool:
        """True when the worker serves a queue that the caller may see."""
        served = worker.info.get("queues", [])
        return not self.identity.queues or any(self.identity.may_see(queue) for queue in served)

    async def known_queue(self, queue: str) -> str:
        """The queue, if the caller may see it and anybody ever used it."""
        self.check_queue(queue)
        names = await (await self.rota.checked_views()).queues()
        if queue.removesuffix("-fail") not in {*names, *map(base_of, names)}:
            raise QueueNotFound(queue)
        return queue

    async def audit(self, action: str, target: str, *, before: Any = None, after: Any = None) -> None:
        """Writes down that the caller changed something: what, and from what to what."""
        mask = self.server.mask
        await note_change(
            self.rota, who=self.identity.name, role=self.identity.role, action=action, target=target,
            before=mask.value(before), after=mask.value(after),
        )  # fmt: skip


def reply(body: Any, status: int = 200) -> Response:
    """An answer. Encoded here, as most of what FastAPI would do to it is to copy it."""
    return Response(msgspec.json.encode(body), status_code=status, media_type="application/json")


def visitor(role: Role) -> Callable[[Request], Awaitable[Visit]]:
    """Lets callers of at least that role in."""

    async def visit(request: Request) -> Visit:
        server: Server = request.app.state.rota_server
        identity: Identity | None = getattr(request.state, "identity", None)
        if identity is None:
            identity = await server.gate.identify(request)
        if not identity.role.covers(role):
            raise Problem(403, "forbidden", f"this takes the role {role}, and {identity.name} is {identity.role}")
        return Visit(server, identity, request)

    visit.role = role  # type: ignore[attr-defined]  # what the OpenAPI document says of the route
    return visit


def asks_for(role: Role) -> Callable[[F], F]:
    """Says of an endpoint that lets callers in by itself which role it asks for."""

    def mark(endpoint: F) -> F:
        endpoint.role = role  # type: ignore[attr-defined]
        return endpoint

    return mark


operator = visitor(Role.OPERATOR)
Viewer = Annotated[Visit, Depends(visitor(Role.VIEWER))]
Operator = Annotated[Visit, Depends(operator)]
Admin = Annotated[Visit, Depends(visitor(Role.ADMIN))]
