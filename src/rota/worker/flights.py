"""The jobs that this worker holds, from claim to acknowledgement, and when each must be looked at."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rota.core.codec import UndecodableRecord, decode_body
from rota.core.job import DEFAULT_OPTIONS, Options
from rota.store.reports import Claimed

if TYPE_CHECKING:
    from rota.worker.pool import RunnerProcess

#: What is to happen, and how many seconds after it was asked for.
Reminder = tuple[str, float]


@dataclass(slots=True, eq=False)
class Flight:
    """One claimed job. It has a slot while its handler runs, and a lease until the store knows how it ended."""

    job: Claimed
    options: Options = DEFAULT_OPTIONS
    #: Which kind of runner it needs: loop or process.
    kind: str = "loop"
    #: None while it waits for a slot.
    runner: RunnerProcess | None = None
    #: What its runner calls it.
    number: int = 0
    claimed_at: float = 0.0
    started_at: float = 0.0
    #: Why it is to stop: timeout, progress, cancelled, lost, shutdown, retired; None while it may go on.
    stop_reason: str | None = None
    #: The handler has ended, or never began, and its report waits to be stored.
    is_landed: bool = False
    has_slot: bool = False
    reminders: tuple[Reminder, ...] = ()

    @property
    def job_id(self) -> str:
        """`queue:id`, for people."""
        try:
            return f"{self.job.queue}:{decode_body(self.job.run, self.job.record).id}"
        except UndecodableRecord:
            return f"{self.job.queue}:@{self.job.run}"

    @property
    def task(self) -> str:
        """The name of its task, for people."""
        try:
            return decode_body(self.job.run, self.job.record).task
        except UndecodableRecord:
            return ""


class Calendar:
    """When flights must be looked at. Those that got the same time stand in one line: who came later is due later."""

    def __init__(self) -> None:
        self._lines: dict[Reminder, dict[Flight, float]] = {}

    def put(self, reminder: Reminder, flight: Flight, now: float) -> float:
        """Reminds of a flight, that many seconds from now; returns when. Put in again, it goes to the end."""
        line = self._lines.get(reminder)
        if line is None:
            line = self._lines[reminder] = {}
        if line.pop(flight, None) is None:
            flight.reminders = (*flight.reminders, reminder)
        due = line[flight] = now + reminder[1]
        return due

    def drop(self, flight: Flight) -> None:
        """Forgets all about it."""
        for reminder in flight.reminders:
            line = self._lines[reminder]
            del line[flight]
            if not line:
                del self._lines[reminder]
        flight.reminders = ()

    def next(self) -> float | None:
        """When something is due; None when nothing is."""
        return min((next(iter(line.values())) for line in self._lines.values()), default=None)

    def due(self, now: float) -> list[tuple[Flight, str]]:
        """What is due by now. It is not told again."""
        found: list[tuple[Flight, str]] = []
        for reminder, line in list(self._lines.items()):
            for flight, at in list(line.items()) if next(iter(line.values())) <= now else ():
                if at > now:
                    break
                del line[flight]
                flight.reminders = tuple(other for other in flight.reminders if other != reminder)
                found.append((flight, reminder[0]))
            if not line:
                del self._lines[reminder]
        return found

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))


@dataclass(slots=True)
class Flights:
    """All of them, by queue and run; and those that wait for a slot, in the order in which they were claimed.

    A run whose lease was lost may come back to the worker that lost it. Then the newer flight is the one that is held.
    """

    by_run: dict[tuple[str, str], Flight] = field(default_factory=dict[tuple[str, str], Flight])
    waiting: deque[Flight] = field(default_factory=deque[Flight])
    calendar: Calendar = field(default_factory=Calendar)
    #: Slots in use.
    busy: int = 0
    #: How many have had a slot, and left it.
    landed: int = 0

    def add(self, flight: Flight) -> Flight | None:
        """Takes one in; returns the flight of the same run that it takes the place of, if there is one."""
        key = flight.job.queue, flight.job.run
        older = self.by_run.get(key)
        self.by_run[key] = flight
        return older

    def start(self, flight: Flight) -> None:
        """It gets a slot."""
        flight.has_slot = True
        self.busy += 1

    def land(self, flight: Flight) -> None:
        """Its handler has ended: the slot is free, the lease is not."""
        flight.is_landed = True
        if flight.has_slot:
            flight.has_slot = False
            self.busy -= 1
            self.landed += 1
        if flight.reminders:
            self.calendar.drop(flight)

    def settle(self, queue: str, run: str, claim: str) -> None:
        """The store knows: nothing is held any more."""
        flight = self.by_run.get((queue, run))
        if flight is not None and flight.job.claim == claim:
            del self.by_run[queue, run]

    def held(self) -> dict[str, list[tuple[str, str]]]:
        """Queue -> (run, claim) of every lease."""
        held: dict[str, list[tuple[str, str]]] = {}
        for flight in self.by_run.values():
            held.setdefault(flight.job.queue, []).append((flight.job.run, flight.job.claim))
        return held

    def airborne(self) -> Iterator[Flight]:
        """Those whose handler is at work."""
        return (flight for flight in self.by_run.values() if flight.has_slot)
