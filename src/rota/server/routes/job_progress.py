"""`/api/progress`: the progress of one job as server-sent events, for a browser with a token for that job.

The token permits nothing else, and the messages contain neither arguments nor results. `progress.js` is the client.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from importlib import resources
from typing import Annotated, Any, Final, Self

import msgspec
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from rota.client.events import EventBatch
from rota.client.session import checked_session
from rota.core.job_record import JobRecord
from rota.core.progress_token import MAX_LENGTH, InvalidToken, ProgressToken, read_token
from rota.errors import RotaError
from rota.server.http.problem_responses import Problem
from rota.server.request_context_and_permissions import Server
from rota.server.routes.events import HEARTBEAT_S, EventStream
from rota.server.shared_event_reader import PACE_S
from rota.store.progress_secret import read_secret_and_time

router = APIRouter(tags=["progress"])

#: Maximum number of streams of one job.
MAX_STREAMS_OF_JOB: Final = 10
CLIENT: Final = resources.files("rota.server").joinpath("progress.js").read_text(encoding="utf-8")


@router.get("/progress.js", include_in_schema=False)
async def progress_client() -> Response:
    """Returns the client for browsers."""
    return Response(CLIENT, media_type="text/javascript", headers={"Cache-Control": "no-cache"})


@router.get(
    "/api/progress",
    response_class=StreamingResponse,
    responses={
        200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "The event stream."}
    },
)
async def follow_progress(
    request: Request,
    token: Annotated[str, Query(max_length=MAX_LENGTH, description="A token from `job.progress_token()` in Python.")],
) -> StreamingResponse:
    """Streams the progress of one job. Needs no other authentication than the token.

    A `job` event has the state as it is now: `id`, `state`, `percent`, `done`, `total`, `note`, `seconds_left`,
    `attempt` and `is_ended`. The stream ends after the job; a job that no longer exists has the state DELETED. A
    `trouble` event says why it ends early.
    """
    server: Server = request.app.state.rota_server
    session = await checked_session(server.rota)
    secret, now = await read_secret_and_time(session.redis, session.keys)
    try:
        permitted = read_token(secret, token, now)
    except InvalidToken as error:
        raise Problem(401, "unauthenticated", str(error)) from error
    _check_streams(server, permitted.job.full_id)
    return EventStream(JobProgressReader(server, permitted, (permitted.expires_at - now) / 1000))


def _check_streams(server: Server, job: str) -> None:
    """Refuses a stream beyond the number that this job, or all jobs, may have: half of that of event streams, besides
    them. Raises Problem.
    """
    number = server.progress_readers_of[job]
    if number >= MAX_STREAMS_OF_JOB:
        message = f"job {job} has {number} progress streams, its share: close some of them"
        raise Problem(429, "too_many_readers", message, headers={"Retry-After": "5"})
    limit = max(1, server.settings.max_readers // 2)
    if server.progress_readers_of.total() >= limit:
        message = f"the limit of {limit} progress streams is reached: try again later"
        raise Problem(503, "too_many_readers", message, headers={"Retry-After": "5"})


class JobProgressReader:
    """The state of one stream: reads the job again whenever an event names it."""

    def __init__(self, server: Server, token: ProgressToken, lifetime_s: float) -> None:
        self._server = server
        self._job = token.job
        self._counted_as = token.job.full_id
        self._ends_at = asyncio.get_running_loop().time() + lifetime_s
        self._has_changes = asyncio.Event()
        self._is_feed_lost = False

    async def __aenter__(self) -> Self:
        _check_streams(self._server, self._counted_as)  # again: others may have been opened since
        self._server.progress_readers_of[self._counted_as] += 1
        try:
            await self._server.event_feed.join(self)
        except BaseException:
            self._release()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._release()
        self._server.event_feed.leave(self)

    def _release(self) -> None:
        self._server.progress_readers_of[self._counted_as] -= 1
        self._server.progress_readers_of += Counter()  # drops jobs without streams

    def on_events(self, batch: EventBatch) -> None:
        """Notes that the job has changed, or may have: a reset means that events were missed."""
        queue, run = self._job.queue, self._job.run
        if queue in batch.resets or any(event.queue == queue and run in event.runs for event in batch.events):
            self._has_changes.set()

    def on_error(self, error: RotaError) -> None:
        """Ends the stream: the browser opens it again."""
        self._is_feed_lost = True
        self._has_changes.set()

    def on_store_state(self, is_responding: bool) -> None:
        """Ignored: the page goes on to show the latest state."""

    async def messages(self) -> AsyncGenerator[bytes]:
        """Yields the messages of the stream."""
        yield b"retry: 1000\n\n"
        sent: dict[str, Any] = {}
        while not self._is_feed_lost:
            self._has_changes.clear()
            try:
                found = await self._server.job_reader.find(self._job)
            except RotaError:
                return
            if found is not None:
                self._job = found.record.ref  # a follow-up that was merged is a part of another run
            message = _job_json(found.record) if found is not None else _deleted_json(self._job.full_id)
            if message != sent:
                sent = message
                yield _encode("job", message)
            if message["is_ended"]:
                return
            async for comment in self._until_changed():
                yield comment
            if asyncio.get_running_loop().time() >= self._ends_at:
                yield _encode("trouble", {"message": "the token has expired"})
                return

    async def _until_changed(self) -> AsyncGenerator[bytes]:
        """Waits for a change or the end of the token. Yields comments that keep the connection open."""
        loop = asyncio.get_running_loop()
        while not self._has_changes.is_set() and (left := self._ends_at - loop.time()) > 0:
            try:
                async with asyncio.timeout(min(left, HEARTBEAT_S)):
                    await self._has_changes.wait()
            except TimeoutError:
                yield b": still here\n\n"
        await asyncio.sleep(PACE_S)  # changes that arrive meanwhile are sent together


def _job_json(record: JobRecord) -> dict[str, Any]:
    progress = record.progress
    is_completed = record.state.value == "completed"
    return {
        "id": record.ref.full_id,
        "state": record.state.value.upper(),
        "percent": 100 if is_completed else 0 if progress is None else progress.percent,
        "done": 0 if progress is None else progress.done,
        "total": 0 if progress is None else progress.total,
        "note": "" if progress is None else progress.note,
        "seconds_left": None if progress is None else progress.seconds_left,
        "attempt": record.counts.attempt,
        "is_ended": record.state.is_finished,
    }


def _deleted_json(full_id: str) -> dict[str, Any]:
    progress = {"percent": 0, "done": 0, "total": 0, "note": "", "seconds_left": None, "attempt": 0}
    return {"id": full_id, "state": "DELETED", **progress, "is_ended": True}


def _encode(event: str, data: dict[str, Any]) -> bytes:
    return f"event: {event}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"
