"""Enqueues jobs in batches: concurrent callers share one call, and jobs keep the order in which they were enqueued."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from rota.core.ids import encode_runs, make_suffixes
from rota.core.same_id_policy import Ignore, OnSameId
from rota.store.batch_limit_constants import BATCH, BATCH_BYTES
from rota.store.redis.retrying_client import FIRST_RETRY_S, Argument, RedisClient

#: Id, priority, due and expiry of a job with defaults only.
PLAIN: Final = ("", 0, "", "")
IGNORE: Final = Ignore()
#: Options with this many tabs name a lock, parents or search terms, their last parts: such jobs need the full script.
TABS_OF_RELATIONS: Final = 5
#: Random parts of ids that are generated at a time.
SUFFIX_BATCH: Final = 128


class NewJob(NamedTuple):
    """A job to enqueue. Times: "" is now, "+250" is in 250 ms by the server's clock, else ms since 1970."""

    id: str
    priority: int
    due: str
    expiry: str
    body: bytes
    #: What happens to an unfinished run of the same id.
    on_same_id: OnSameId = IGNORE
    #: "", or a token that makes one job for 24 h, however often it is sent. Needs an id.
    idempotency_token: str = ""


class EnqueueResult(NamedTuple):
    """The outcome of enqueueing one job: a new run ("made"), or what happened to the unfinished run of the same id.

    That is "updated", "in_use" (left unchanged), "again" (its idempotency token made that run before), "task" or
    "after" (it cannot be changed into a job with another task or other parents), "blob" (its blobs have expired), or
    "untied" (the run has ended meanwhile, and the new job has parents, so it must be prepared anew).
    """

    id: str
    run: str
    outcome: str = "made"
    #: When the run was made, ms; 0 if unknown.
    at: int = 0

    @property
    def is_new(self) -> bool:
        """True when this call made the run."""
        return self.outcome == "made"


class EnqueueBatcher:
    """Batches the new jobs of one queue.

    One call is in flight at a time, which keeps jobs in order; jobs enqueued meanwhile go with the next. Calls are
    numbered, so that the server recognises one that is sent again. If no call is in flight the caller sends its own
    jobs directly: spawning a task would cost more than the call.
    """

    def __init__(self, redis: RedisClient, queue: str, inbox: str, keys: Mapping[str, Sequence[str]]) -> None:
        self._redis = redis
        self._queue = queue
        self._inbox = inbox
        #: Script -> its keys.
        self._keys = keys
        self._waiting: deque[_Request] = deque()
        self._suffixes: list[str] = []
        self._call_number = 0
        self._is_busy = False
        self._sending: asyncio.Task[None] | None = None

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[EnqueueResult]:
        """Enqueues jobs, together with those of concurrent callers. Returns one result for each."""
        if not jobs:
            return []
        request = _Request(jobs)
        self._waiting.append(request)
        if not self._is_busy:
            self._is_busy = True
            batch = self._next_batch()
            try:
                await self._send(batch)
            except asyncio.CancelledError:
                # The call may have reached the server, so that it is sent again before the next one.
                if self._has_callers():
                    self._start_sending(batch)
                else:
                    # After a pause: if the event loop is ending, a task made now would be destroyed while it waits.
                    asyncio.get_running_loop().call_later(FIRST_RETRY_S, self._start_sending, batch)
                raise
            self._send_waiting()
        if not request.is_done:
            request.future = asyncio.get_running_loop().create_future()
            await request.future
        if request.error is not None:
            raise request.error
        return request.results

    def _send_waiting(self) -> None:
        if self._waiting:
            self._start_sending(self._next_batch())
        else:
            self._is_busy = False

    def _has_callers(self) -> bool:
        return any(request.future and not request.future.done() for request in self._waiting)

    def _start_sending(self, batch: _Batch) -> None:
        self._sending = asyncio.create_task(self._send_all(batch))

    async def _send_all(self, batch: _Batch) -> None:
        await self._send(batch)
        while self._waiting:
            await self._send(self._next_batch())
        self._is_busy = False

    async def _send(self, batch: _Batch) -> None:
        try:
            answer = await self._redis.run(batch.script, self._keys[batch.script], batch.words)
            _read_reply(batch, answer)
        except Exception as error:
            # Every caller with jobs in this batch gets the error; the callers after them are not affected.
            for request, _ in batch.parts:
                request.error = error
                request.sent = len(request.jobs)
            if self._waiting and self._waiting[0].error is not None:
                self._waiting.popleft()
        for request, _ in batch.parts:
            request.resolve()

    def _next_batch(self) -> _Batch:
        parts = self._take_parts()
        jobs = parts[0][1] if len(parts) == 1 else [job for _, part in parts for job in part]
        suffixes = self._take_suffixes(len(jobs))
        self._call_number += 1
        words: list[Argument] = [self._queue, self._inbox, self._call_number]
        head = _common_head(jobs)
        if head is None:
            for suffix, job in zip(suffixes, jobs, strict=True):
                words += (suffix + _encode_settings(job), job.body)
            return _Batch(parts, suffixes, "enqueue", words)
        words.append(head)
        start = len(head)
        for suffix, job in zip(suffixes, jobs, strict=True):
            words += (suffix, job.body[start:])
        return _Batch(parts, suffixes, "enqueue_fast", words)

    def _take_parts(self) -> list[tuple[_Request, Sequence[NewJob]]]:
        """Waiting jobs in order, as many as one call may carry."""
        parts: list[tuple[_Request, Sequence[NewJob]]] = []
        count = size = 0
        while self._waiting and count < BATCH and size < BATCH_BYTES:
            request = self._waiting[0]
            start = request.sent
            for job in request.jobs[start : start + BATCH - count]:
                size += len(job.body)
                if count and size > BATCH_BYTES:
                    break
                count += 1
                request.sent += 1
            if request.sent == start:
                break  # no room for its next job
            is_whole = request.sent == len(request.jobs)
            if is_whole:
                self._waiting.popleft()
            parts.append((request, request.jobs if is_whole and not start else request.jobs[start : request.sent]))
        return parts

    def _take_suffixes(self, count: int) -> list[str]:
        """Random parts of ids, generated in advance: reading random bytes costs the same for many as for one."""
        if len(self._suffixes) < count:
            self._suffixes = make_suffixes(secrets.token_bytes(8 * max(SUFFIX_BATCH, count)))
        taken = self._suffixes[-count:]
        del self._suffixes[-count:]
        return taken


class _Request:
    """One caller's jobs: how many were sent, and the results so far."""

    __slots__ = ("error", "future", "jobs", "results", "sent")

    def __init__(self, jobs: Sequence[NewJob]) -> None:
        self.jobs = jobs
        self.sent = 0
        self.results: list[EnqueueResult] = []
        self.error: Exception | None = None
        #: Set when the caller waits for a call that another caller sent.
        self.future: asyncio.Future[None] | None = None

    @property
    def is_done(self) -> bool:
        return self.error is not None or len(self.results) == len(self.jobs)

    def resolve(self) -> None:
        if self.future is not None and not self.future.done() and self.is_done:
            self.future.set_result(None)


class _Batch(NamedTuple):
    """One call: the parts of the requests that it carries, its script and its arguments."""

    parts: list[tuple[_Request, Sequence[NewJob]]]
    suffixes: list[str]
    script: str
    words: list[Argument]


def _encode_settings(job: NewJob) -> str:
    """What the script needs besides the record, after the random part of the id: nothing for most jobs."""
    if job[:4] == PLAIN:
        return ""
    name = ""
    if job.id:
        token = f"!{job.idempotency_token}" if job.idempotency_token else ""
        name = f"{job.on_same_id.flags}{token}={job.id}"
    return f"\t{job.priority}\t{job.due}\t{job.expiry}\t{name}"


def _common_head(jobs: Sequence[NewJob]) -> bytes | None:
    """The options and task that all jobs share; None if they differ, or any job needs the full script."""
    body = jobs[0].body
    head = body[: body.index(b"\n", body.index(b"\n") + 1) + 1]
    if head.count(b"\t") >= TABS_OF_RELATIONS:
        return None
    for job in jobs:
        if job[:4] != PLAIN or not job.body.startswith(head):
            return None
    return head


def _read_reply(batch: _Batch, answer: bytes) -> None:
    """Adds the results of a call to the requests that it carried."""
    made, _, changed = answer.partition(b"\n")
    before, _, now = made.partition(b" ")
    number, at = int(before or 0), int(now or 0)
    without_run = _read_without_run(changed.decode()) if changed else {}
    runs = iter(encode_runs(number + 1, len(batch.suffixes)))
    index = 0
    for request, jobs in batch.parts:
        for job in jobs:
            if index in without_run:
                outcome, holder = without_run[index]
                request.results.append(EnqueueResult(job.id, holder, outcome))
            else:
                run = next(runs)
                request.results.append(EnqueueResult(job.id or f"{run}-{batch.suffixes[index]}", run, "made", at))
            index += 1


def _read_without_run(text: str) -> dict[int, list[str]]:
    """Index of each job that got no new run -> its outcome, and the run of its id."""
    words = text.split("\n")
    return {int(words[at]): words[at + 1].split(" ") for at in range(0, len(words), 2)}
