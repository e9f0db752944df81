"""The store as a dictionary: what every call should do, written down a second time, without a server.

Times are milliseconds of a clock that only the test moves, so the model is exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rota.core.job_record import AttemptCounts

LEASE_MS: Final = 4_500
TICK_GAP_MS: Final = 2_200
WAITING: Final = ("pending", "scheduled")
FINISHED: Final = ("completed", "failed", "cancelled")
UNCLAIMED: Final = "-"


@dataclass
class Run:
    """One life of a job id."""

    run: str
    id: str
    priority: int
    due: int
    state: str
    #: When it expires, while it waits for its first start; and when that is, whether it waits or not.
    expires: int | None = None
    deadline: int | None = None
    max_stalls: int = 3
    at_most_once: bool = False
    keeps_nothing: bool = False
    terms: tuple[str, ...] = ()
    claim: str = UNCLAIMED
    worker: str = UNCLAIMED
    claimed_at: int = 0
    lease: int = 0
    attempt: int = 0
    failures: int = 0
    stalls: int = 0
    snoozes: int = 0
    handbacks: int = 0
    #: Cancelled or deleted while its handler ran, which has yet to stop.
    is_stopping: bool = False
    #: False: only its claim and its id are still known, until its handler has stopped.
    has_record: bool = True

    @property
    def is_finished(self) -> bool:
        return self.state in FINISHED

    @property
    def holds_its_id(self) -> bool:
        return not self.is_finished or self.is_stopping

    @property
    def counts(self) -> AttemptCounts:
        return AttemptCounts(self.attempt, self.failures, self.stalls, self.snoozes, self.handbacks)


@dataclass
class Model:
    """All runs of one queue."""

    now: int
    runs: dict[str, Run] = field(default_factory=dict[str, Run])
    #: Worker -> its latest claim that brought jobs, and the token of the latest that it gave up.
    last_claims: dict[str, str] = field(default_factory=dict[str, str])
    given_up: dict[str, str] = field(default_factory=dict[str, str])
    is_paused: bool = False
    last_tick: int | None = None
    grace_until: int = 0
    fence: int = 0
    #: What has happened so far, and how long it took, as the history has it.
    counted: Counter[str] = field(default_factory=Counter[str])

    # --- looking -----------------------------------------------------------------------------------------------

    def in_state(self, state: str) -> set[str]:
        return {run.run for run in self.runs.values() if run.state == state and run.has_record}

    def pending(self) -> list[Run]:
        """In the order in which they are claimed."""
        found = [run for run in self.runs.values() if run.state == "pending"]
        return sorted(found, key=lambda run: (run.priority, run.due, run.run))

    def scheduled(self) -> list[Run]:
        found = [run for run in self.runs.values() if run.state == "scheduled"]
        return sorted(found, key=lambda run: (run.due, run.priority, run.run))

    def holder(self, id: str) -> Run | None:
        """The run that has an id for itself; there is never more than one."""
        holders = [run for run in self.runs.values() if run.id == id and run.holds_its_id]
        assert len(holders) <= 1, holders
        return holders[0] if holders else None

    def kept(self, run: str) -> Run | None:
        found = self.runs.get(run)
        return found if found is not None and found.has_record else None

    # --- producers ---------------------------------------------------------------------------------------------

    def add(self, run: Run) -> None:
        assert self.holder(run.id) is None
        run.state = "pending" if run.due <= self.now else "scheduled"
        self.runs[run.run] = run
        self.counted["enqueued"] += 1

    def cancel(self, name: str, reach: str) -> str:
        run = self.kept(name)
        if run is None:
            return "missing"
        if run.is_finished or (run.state == "processing" and reach == "waiting"):
            return run.state
        outcome = "cancelled"
        if run.state == "processing":
            outcome, run.is_stopping = "stopping", True
        self._end(run, "cancelled")
        return outcome

    def delete(self, name: str) -> str:
        run = self.kept(name)
        if run is None:
            return "missing"
        outcome = "deleted"
        if run.state == "processing":
            outcome, run.is_stopping, run.state = "stopping", True, "cancelled"
        self._forget(run)
        return outcome

    def redrive(self, name: str) -> str:
        run = self.kept(name)
        if run is None:
            return "missing"
        if run.state != "failed":
            return "waiting" if run.state in WAITING else run.state
        if self.holder(run.id) is not None:
            return "in_use"
        run.state, run.due, run.claim = "pending", self.now, UNCLAIMED
        run.failures = run.stalls = run.snoozes = run.handbacks = 0
        return "redriven"

    def purge(self, limit: int) -> int:
        gone = [*self.scheduled(), *self.pending()][:limit]
        for run in gone:
            self._forget(run)
        return len(gone)

    # --- workers -----------------------------------------------------------------------------------------------

    def claim(self, worker: str, token: str, limit: int) -> list[Run]:
        self._keep_house()
        taken = [] if self.is_paused else self.pending()[:limit]
        if taken:
            self.fence += 1
            self.last_claims[worker] = f"{self.fence}.{token}"
        for run in taken:
            run.state, run.claim, run.worker = "processing", f"{self.fence}.{token}", worker
            run.claimed_at, run.lease = self.now, self.now + LEASE_MS
            run.expires = None
            run.attempt += 1
            self.counted["started"] += 1
            self.counted["waited_ms"] += self.now - run.due
        return taken

    def heartbeat(self, worker: str, held: Sequence[tuple[str, str]], given_up: str = "") -> dict[str, str]:
        """`given_up`: the token of a claim that the worker gives up."""
        self._tick()
        if given_up:
            self.given_up[worker] = given_up
        told: dict[str, str] = {}
        for name, claim in held:
            run = self.runs.get(name)
            if run is not None and run.claim == claim and run.state == "processing":
                run.lease = self.now + LEASE_MS
            elif run is not None and run.claim == claim and run.state == "cancelled":
                told[name] = "cancelled"
                if run.is_stopping:
                    run.lease = self.now + LEASE_MS
            else:
                told[name] = "lost" if run is not None else "cancelled"
        return told

    def refusal(self, name: str, claim: str) -> str | None:
        """Why a report is refused; None when the claim owns its run. Any report says that a handler has stopped."""
        run = self.runs.get(name)
        if run is None:
            return "missing"
        if run.claim != claim:
            return "lease_lost"
        if run.state == "processing":
            return None
        if run.state != "cancelled":
            return "already"
        self._release(run)
        return "cancelled"

    def complete(self, name: str) -> None:
        self.counted["completed"] += 1
        self.counted["ran_ms"] += self.now - self.runs[name].claimed_at
        self._end(self.runs[name], "completed")

    def fail(self, name: str, delay: int | None) -> None:
        run = self.runs[name]
        run.failures += 1
        self.counted["failed"] += 1
        self.counted["ran_ms"] += self.now - run.claimed_at
        if delay is None:
            self._end(run, "failed")
        else:
            self.counted["retried"] += 1
            self._try_again(run, delay)

    def snooze(self, name: str, delay: int) -> None:
        self.runs[name].snoozes += 1
        self._try_again(self.runs[name], delay)

    def give_up(self, name: str) -> None:
        self._end(self.runs[name], "cancelled")

    def hand_back(self, name: str, started: str) -> None:
        run = self.runs[name]
        is_started = started == "started"
        self._come_back(run, is_charged=run.at_most_once and is_started, is_started=is_started)

    def lose(self, name: str) -> None:
        self._come_back(self.runs[name], is_charged=True, is_started=True)

    # --- within ------------------------------------------------------------------------------------------------

    def _tick(self) -> bool:
        last, self.last_tick = self.last_tick, self.now
        if last is not None and self.now - last > TICK_GAP_MS:
            self.grace_until = self.now + LEASE_MS
            return False
        return self.now >= self.grace_until

    def _keep_house(self) -> None:
        may_reap = self._tick()
        for run in self.scheduled():
            if run.due <= self.now:
                run.state = "pending"
        self._expire()
        if not may_reap:
            return
        for run in list(self.runs.values()):
            if run.state == "processing" and run.lease <= self.now:
                is_latest = run.claim == self.last_claims.get(run.worker)
                is_given_up = is_latest and run.claim.partition(".")[2] == self.given_up.get(run.worker)
                run.claim = UNCLAIMED
                self._come_back(run, is_charged=not is_given_up, is_started=not is_given_up)
            elif run.is_stopping and run.lease <= self.now:
                self._release(run)
        self._expire()

    def _expire(self) -> None:
        for run in [*self.pending(), *self.scheduled()]:
            if run.expires is not None and run.expires <= self.now:
                self._end(run, "cancelled")

    def _try_again(self, run: Run, delay: int) -> None:
        run.due = self.now + delay
        run.state = "pending" if delay == 0 else "scheduled"

    def _come_back(self, run: Run, *, is_charged: bool, is_started: bool) -> None:
        run.state = "pending"
        if not is_started:
            run.attempt -= 1
            run.expires = run.deadline if run.attempt == 0 else None
        if not is_charged:
            run.handbacks += 1
            return
        run.stalls += 1
        self.counted["stalled"] += 1
        if run.at_most_once or run.stalls > run.max_stalls:
            self._end(run, "failed")

    def _end(self, run: Run, state: str) -> None:
        run.state, run.expires = state, None
        if state != "completed":
            self.counted["dead" if state == "failed" else state] += 1
        if run.keeps_nothing:
            self._forget(run)

    def _forget(self, run: Run) -> None:
        run.has_record = False
        if not run.is_stopping:
            del self.runs[run.run]

    def _release(self, run: Run) -> None:
        run.is_stopping = False
        if not run.has_record:
            del self.runs[run.run]
