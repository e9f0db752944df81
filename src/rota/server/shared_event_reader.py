"""Reads the event streams once for all clients of `/api/events`.

The streams are read while there is at least one listener. Each listener receives every batch and keeps what it needs,
in bounded memory, so that a client that reads nothing for an hour does not delay the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from rota.client.events import NO_QUEUE, EventBatch, EventEntry, follow_batches
from rota.client.session import checked_session, sessions_of
from rota.errors import RotaError

if TYPE_CHECKING:
    from rota.client.rota import Rota

#: Interval between two reads of the streams; it keeps events less than a second old.
PACE_S: Final = 0.25
#: Interval of pings, and the time after which the store counts as not responding.
PING_S: Final = 1.0
SILENT_S: Final = 2.0


class Listener(Protocol):
    """Receives event batches. Called from the feed's loop, so it must not block."""

    def on_events(self, batch: EventBatch) -> None:
        """Receives a batch."""
        ...

    def on_error(self, error: RotaError) -> None:
        """The feed has stopped with this error."""
        ...

    def on_store_state(self, is_responding: bool) -> None:
        """The store has stopped responding, or responds again."""
        ...


class SharedEventReader:
    """Follows the events of all queues, and those outside any queue, while there are listeners."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota
        self._listeners: set[Listener] = set()
        #: Listeners, including those that are joining.
        self._count = 0
        self._task: asyncio.Task[None] | None = None
        self._is_responding = True
        #: Set once the positions of the streams are known, which `_at` then has.
        self._ready: asyncio.Future[None] | None = None
        self._at: Mapping[str, str] = {}

    async def join(self, listener: Listener) -> Mapping[str, str]:
        """Adds a listener. Returns the current stream positions: it receives every event after them."""
        self._count += 1
        try:
            if self._ready is None or self._task is None or self._task.done():
                self._ready = asyncio.get_running_loop().create_future()
                self._task = asyncio.create_task(self._run(self._ready), name="rota-events")
            await asyncio.shield(self._ready)
        except BaseException:
            self._release()
            raise
        # No await until the return, so no batch is delivered in between.
        self._listeners.add(listener)
        if not self._is_responding:
            listener.on_store_state(False)
        return self._at

    def leave(self, listener: Listener) -> None:
        """Removes a listener."""
        self._listeners.discard(listener)
        self._release()

    def _release(self) -> None:
        self._count -= 1
        if not self._count and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self, ready: asyncio.Future[None]) -> None:
        watch = asyncio.create_task(self._watch_store(), name="rota-events-ping")
        try:
            await self._follow(ready)
        finally:
            watch.cancel()

    async def _watch_store(self) -> None:
        """Pings the store: a read of the streams that waits for events does not show that the store is frozen."""
        self._is_responding = True
        try:
            session = await checked_session(self._rota)
        except RotaError:
            return  # the feed reports it
        while True:
            ping = asyncio.ensure_future(session.redis.command("PING"))
            try:
                # The ping is not cancelled when it is late: its reply ends the outage.
                await asyncio.wait({ping}, timeout=SILENT_S)
                self._set_responding(ping.done() and ping.exception() is None)
                await asyncio.wait({ping})
                self._set_responding(ping.exception() is None)
            finally:
                ping.cancel()
            await asyncio.sleep(PING_S)

    def _set_responding(self, is_responding: bool) -> None:
        if is_responding != self._is_responding:
            self._is_responding = is_responding
            for listener in tuple(self._listeners):
                listener.on_store_state(is_responding)

    async def _follow(self, ready: asyncio.Future[None]) -> None:
        try:
            session = await checked_session(self._rota)

            async def queues() -> Sequence[str]:
                return [NO_QUEUE, *await session.views.queues()]

            async for batch in follow_batches(session.redis, sessions_of(self._rota).keys, queues, pace_s=PACE_S):
                self._at = batch.after
                if not ready.done():
                    ready.set_result(None)
                merged = merge_events(batch)
                for listener in tuple(self._listeners):
                    listener.on_events(merged)
        except RotaError as error:
            if not ready.done():
                ready.set_exception(error)
                ready.exception()  # marks the exception as retrieved if no listener waits
            for listener in tuple(self._listeners):
                listener.on_error(error)


def merge_events(batch: EventBatch) -> EventBatch:
    """Merges the events of each queue and verb into one, which shortens the work of every listener."""
    by_verb: dict[tuple[str, str], list[EventEntry]] = {}
    for event in batch.events:
        by_verb.setdefault((event.queue, event.verb), []).append(event)
    events = [each[-1]._replace(runs=tuple(run for event in each for run in event.runs)) for each in by_verb.values()]
    return replace(batch, events=events)
