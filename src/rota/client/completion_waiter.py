"""Waits until a job or a workflow has ended: one subscription per session, with a poll as fallback."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from rota.core.ids import JobRef
from rota.core.workflow_record_and_decisions import ENDED, STUCK
from rota.errors import JobNotFound, StoreError, WorkflowNotFound
from rota.store.carry_out_workflow_decisions import WorkflowStore
from rota.store.create_dependents_and_deliver_outcomes import WORKFLOWS
from rota.store.job_store import JobStore

T = TypeVar("T")

#: Fallback poll interval: a push may be lost.
POLL_S: Final = 2.0


class CompletionWaiter:
    """Waits for ends, which the server pushes to the inbox of this session's participant."""

    def __init__(self, store: JobStore, workflows: WorkflowStore) -> None:
        self._store = store
        self._workflows = workflows
        self._listener: asyncio.Task[None] | None = None
        #: (queue, run) or (WORKFLOWS, workflow id) -> an event for each waiting caller.
        self._waiting: dict[tuple[str, str], set[asyncio.Event]] = {}

    async def wait_job(self, ref: JobRef) -> JobRef:
        """Returns the run, pinned, once it has ended. Raises JobNotFound when there is none, or no longer."""
        self._start_listening()
        if ref.run is None:
            ref = (await self._watch(ref))[0]
        while True:
            ref, has_ended = await self._wait((ref.queue, ref.run or ""), partial(self._look_at_job, ref))
            if has_ended:  # else it was a follow-up that has been merged into the run before it: wait for that one
                return ref

    async def wait_workflow(self, workflow_id: str) -> None:
        """Returns once a workflow has ended, or is stuck until an operator acts. Raises WorkflowNotFound."""
        self._start_listening()
        await self._wait((WORKFLOWS, workflow_id), partial(self._look_at_workflow, workflow_id))

    async def close(self) -> None:
        """Stops listening."""
        if self._listener is not None:
            self._listener.cancel()
            with suppress(asyncio.CancelledError):
                await self._listener

    async def _wait(self, key: tuple[str, str], look: Callable[[], Awaitable[T | None]]) -> T:
        """Calls `look` at once, after each push for `key`, and every `POLL_S`; returns its first result not None."""
        ended = asyncio.Event()
        # Registered before the first look, so that an end between the two is not missed.
        self._waiting.setdefault(key, set()).add(ended)
        try:
            while (found := await look()) is None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_S):
                        await ended.wait()
                ended.clear()
            return found
        finally:
            self._waiting[key].discard(ended)
            if not self._waiting[key]:
                del self._waiting[key]

    async def _look_at_job(self, ref: JobRef) -> tuple[JobRef, bool] | None:
        pinned, has_ended = await self._watch(ref)
        return (pinned, has_ended) if has_ended or pinned != ref else None

    async def _look_at_workflow(self, workflow_id: str) -> str | None:
        state = await self._workflows.watch(workflow_id)
        if state == "missing":
            raise WorkflowNotFound(workflow_id)
        return state if state in (*ENDED, *STUCK) else None

    async def _watch(self, ref: JobRef) -> tuple[JobRef, bool]:
        seen = await self._store.watch(ref)
        if seen is None:
            raise JobNotFound(str(ref))
        return JobRef(ref.queue, ref.id, seen[0]), seen[1]

    def _start_listening(self) -> None:
        if self._listener is None or self._listener.done():
            self._listener = asyncio.create_task(self._listen(), name="rota-inbox")

    async def _listen(self) -> None:
        with suppress(StoreError):  # the next poll raises it where a caller can handle it
            async for message in self._store.redis.listen(self._store.keys.inbox(self._store.participant)):
                word, _, rest = message.partition(" ")
                if word == "ended":
                    queue, _, run = rest.partition(" ")
                    woken = list(self._waiting.get((queue, run), ()))
                else:  # after a gap: anything may have ended
                    woken = [event for events in self._waiting.values() for event in events]
                for event in woken:
                    event.set()
