"""What happens in the store, read once for all readers of `/api/events`: another reader costs the store nothing.

Somebody follows the streams as long as there is a reader. Each listener is told of every stretch, and keeps of it what
it wants: how much that is does not depend on how much happens, so one that takes nothing for an hour holds up nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from rota.errors import RotaError
from rota.events import EVERYWHERE, Moved, Stretch, follow_together

if TYPE_CHECKING:
    from rota.client import Rota

#: Between two looks at the store: what is shown is less than a second old.
PACE_S: Final = 0.25


class Listener(Protocol):
    """Hears what happens. Called from the feed's loop: it only takes notes."""

    def hear(self, stretch: Stretch) -> None:
        """This has happened."""
        ...

    def fail(self, error: RotaError) -> None:
        """Nobody can say what happens any more."""
        ...


class Feed:
    """Follows all queues, and what belongs to none, while anybody listens."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota
        self._listeners: set[Listener] = set()
        #: Who listens, or is about to.
        self._count = 0
        self._task: asyncio.Task[None] | None = None
        #: Done when it is known where the streams are; then, where the feed is.
        self._ready: asyncio.Future[None] | None = None
        self._at: Mapping[str, str] = {}

    async def join(self, listener: Listener) -> Mapping[str, str]:
        """From now on the listener hears of everything that comes after the positions returned, which are of now."""
        self._count += 1
        try:
            if self._ready is None or self._task is None or self._task.done():
                self._ready = asyncio.get_running_loop().create_future()
                self._task = asyncio.create_task(self._follow(self._ready), name="rota-events")
            await asyncio.shield(self._ready)
        except BaseException:
            self._release()
            raise
        # Nothing comes in between: the feed goes on when this has returned.
        self._listeners.add(listener)
        return self._at

    def leave(self, listener: Listener) -> None:
        """It hears no more."""
        self._listeners.discard(listener)
        self._release()

    def _release(self) -> None:
        self._count -= 1
        if not self._count and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _follow(self, ready: asyncio.Future[None]) -> None:
        try:
            link = await self._rota.checked_link()

            async def queues() -> Sequence[str]:
                return [EVERYWHERE, *await link.views.queues()]

            async for stretch in follow_together(link.gateway, self._rota.keys, queues, pace_s=PACE_S):
                self._at = stretch.after
                if not ready.done():
                    ready.set_result(None)
                shared = put_together(stretch)
                for listener in tuple(self._listeners):
                    listener.hear(shared)
        except RotaError as error:
            if not ready.done():
                ready.set_exception(error)
                ready.exception()  # it may be that nobody waits for it any more
            for listener in tuple(self._listeners):
                listener.fail(error)


def put_together(stretch: Stretch) -> Stretch:
    """The same with one event for each queue and verb: what many listeners go through is short."""
    together: dict[tuple[str, str], list[Moved]] = {}
    for event in stretch.events:
        together.setdefault((event.queue, event.verb), []).append(event)
    events = [each[-1]._replace(runs=tuple(run for event in each for run in event.runs)) for each in together.values()]
    return replace(stretch, events=events)
