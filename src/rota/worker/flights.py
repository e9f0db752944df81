"""The jobs that this worker holds, from claim to acknowledgement, and when each must be stopped."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rota.core.codec import Body
from rota.store.store import Claimed

if TYPE_CHECKING:
    from rota.worker.pool import RunnerProcess

Key = tuple[str, str, str]  # queue, run, claim: a run whose lease was lost may come back to the worker that lost it
#: Entries of the calendar whose flights have ended are swept out when there are this many, and most are such.
_CROWDED: Final = 1_000


@dataclass(slots=True, eq=False)
class Flight:
    """One claimed job. It has a slot until its handler has ended, and a lease until the store knows."""

    job: Claimed
    body: Body | None
    runner: RunnerProcess | None = None
    started_at: float = 0.0
    progressed_at: float = 0.0
    #: Why it is to stop: timeout, progress, cancelled, lost, shutdown, retired; None while it may go on.
    stop_reason: str | None = None
    #: The handler has ended, and its report waits to be stored.
    is_landed: bool = False

    @property
    def key(self) -> Key:
        """Queue, run and claim."""
        return self.job.queue, self.job.run, self.job.claim

    @property
    def job_id(self) -> str:
        """`queue:id`, for people."""
        return f"{self.job.queue}:{self.body.id if self.body else '@' + self.job.run}"


@dataclass(slots=True)
class Flights:
    """All of them, by key; and a calendar of what must happen to them when."""

    by_key: dict[Key, Flight] = field(default_factory=dict[Key, Flight])
    busy: int = 0
    _newest: dict[tuple[str, str], Flight] = field(default_factory=dict[tuple[str, str], Flight])
    _calendar: list[tuple[float, int, Flight, str]] = field(default_factory=list[tuple[float, int, Flight, str]])
    _entries: int = 0

    def add(self, flight: Flight) -> Flight | None:
        """A claimed job takes a slot. Returns the flight of an earlier claim of the same run, which is lost then."""
        older = self._newest.get(flight.key[:2])
        self._newest[flight.key[:2]] = self.by_key[flight.key] = flight
        self.busy += 1
        return older

    def land(self, flight: Flight) -> None:
        """Its handler has ended: the slot is free, the lease is not."""
        if not flight.is_landed:
            flight.is_landed = True
            self.busy -= 1

    def settle(self, key: Key) -> None:
        """The store knows: nothing is held any more."""
        flight = self.by_key.pop(key, None)
        if flight is not None:
            self.land(flight)
            if self._newest.get(key[:2]) is flight:
                del self._newest[key[:2]]

    def held(self) -> dict[str, list[tuple[str, str]]]:
        """Queue -> (run, claim) of every lease."""
        held: dict[str, list[tuple[str, str]]] = {}
        for flight in self._newest.values():
            held.setdefault(flight.job.queue, []).append((flight.job.run, flight.job.claim))
        return held

    def airborne(self) -> Iterator[Flight]:
        """Those whose handler has not ended."""
        return (flight for flight in self.by_key.values() if not flight.is_landed)

    def remind(self, at: float, flight: Flight, what: str) -> None:
        """Puts something into the calendar."""
        if len(self._calendar) > max(_CROWDED, 4 * len(self.by_key)):
            self._calendar = [entry for entry in self._calendar if not entry[2].is_landed]
            heapq.heapify(self._calendar)
        self._entries += 1
        heapq.heappush(self._calendar, (at, self._entries, flight, what))

    def next_reminder(self) -> float | None:
        """When the calendar has something; entries of flights that have ended are dropped."""
        while self._calendar and self._calendar[0][2].is_landed:
            heapq.heappop(self._calendar)
        return self._calendar[0][0] if self._calendar else None

    def due(self, now: float) -> list[tuple[Flight, str]]:
        """What the calendar has for now."""
        due: list[tuple[Flight, str]] = []
        while self._calendar and self._calendar[0][0] <= now:
            _, _, flight, what = heapq.heappop(self._calendar)
            if not flight.is_landed:
                due.append((flight, what))
        return due
