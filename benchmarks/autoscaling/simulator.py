"""The model: queues, workers and machines in virtual time.

It calls the policy as the autoscaler does, with the figures that the store has: counters by minute, the mean run time
of the last minutes, registrations. Jobs start in order of priority and age, on the slot that has been free longest.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from benchmarks.autoscaling.traces import SimulatedJob, Trace
from rota.core.autoscaling.decide_launches_and_drains import Decision
from rota.core.autoscaling.observation import Observation, ObservedWorker, PastDecision, QueueDemand, WorkerState

#: The jobs of a dead worker come back after this time; it is listed as dead after the other.
LEASE: Final = 4.5
DEAD_AFTER: Final = 10.0
#: Fewer ended jobs than this do not make a mean run time.
FEW: Final = 10
SPOT_NOTICE: Final = 120.0
MS: Final = 1000

# Kinds of events, in the order in which those of one moment happen.
FINISH, READY, DIE, NOTICE, RETURN, DECIDE = range(6)


class Scaler(Protocol):
    """Decides about the number of workers."""

    #: Seconds between two decisions.
    interval: float
    #: Decides at once when a job falls due and there is no worker.
    wakes_on_first_job: bool
    #: For how long it wants to see its decisions.
    history: float
    #: It knows the future: its machines are ready at once, because they were launched ahead of time (their boot time is
    #: charged all the same), always boot, and are known to be dead at once; outages do not concern it.
    is_oracle: bool
    #: Set before each decision: slot-seconds that would have been done if every job had started at once, and were not.
    behind: float

    def decide(self, observation: Observation, now: float) -> Decision:
        """Decides."""
        ...


@dataclass(slots=True)
class Machine:
    """A machine with its worker."""

    id: int
    launched: float
    slots: int
    state: WorkerState = WorkerState.BOOTING
    busy: int = 0
    ready: float | None = None
    died: float | None = None
    running: dict[int, float] = field(default_factory=dict[int, float])


@dataclass(frozen=True, slots=True)
class Sample:
    """The state at one decision, for the plot."""

    at: float
    workers: int
    booting: int
    backlog: int
    oldest_wait: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one simulation."""

    #: Wait of every start, seconds.
    waits: Sequence[float]
    worker_hours: float
    #: Launched, drained, and jobs interrupted by a drain (none may be).
    launches: int
    drains: int
    samples: Sequence[Sample]

    def share_within(self, target: float) -> float:
        """Share of the waits that were at most `target`."""
        return sum(wait <= target for wait in self.waits) / len(self.waits) if self.waits else 1.0

    def percentile(self, share: float) -> float:
        """The wait that this share of the jobs did not exceed."""
        ordered = sorted(self.waits)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


class Simulation:
    """One trace under one scaler."""

    def __init__(self, trace: Trace, scaler: Scaler) -> None:
        self._trace = trace
        self._scaler = scaler
        self._rng = random.Random(trace.seed * 1000 + 7)
        self._events: list[tuple[float, int, int, int]] = []
        self._machines: dict[int, Machine] = {}
        self._numbers = 0
        self._free: deque[int] = deque()
        self._pending: tuple[deque[tuple[float, int]], deque[tuple[float, int]]] = (deque(), deque())
        queues = max((job.queue for job in trace.jobs), default=0) + 1
        self._ready = [[0, 0] for _ in range(queues)]
        self._processing = [0] * queues
        minutes = int(trace.length // 60) + 600
        self._enqueued = [[0] * minutes for _ in range(queues)]
        self._runs = [[(0, 0.0)] * minutes for _ in range(queues)]
        self._all_runs = [(0, 0.0)] * queues
        self._due = [
            sorted(job.due for job in trace.jobs if job.queue == queue and job.enqueued >= 0) for queue in range(queues)
        ]
        self._due_from = [0] * queues
        self._history: deque[PastDecision] = deque()
        self._readable_since = 0.0
        self._seconds = 0.0
        self._waits: list[float] = []
        self._samples: list[Sample] = []
        self._launches = self._drains = 0
        self._unfinished = len(trace.jobs)

    def run(self) -> Outcome:
        """Runs the trace until every job has ended and the time is over."""
        jobs, events = self._trace.jobs, self._events
        arrival = 0
        self._add(0.0, DECIDE, 0)
        while True:
            due = jobs[arrival].due if arrival < len(jobs) else float("inf")
            if events and events[0][0] <= due:
                now, kind, _, subject = heapq.heappop(events)
                if kind == DECIDE and now >= self._trace.length and not self._unfinished:
                    break
                self._happen(now, kind, subject)
            else:
                self._arrive(due, arrival)
                arrival += 1
        end = now
        for machine in list(self._machines.values()):
            self._remove(machine, end)
        return Outcome(self._waits, self._seconds / 3600, self._launches, self._drains, self._samples)

    def _add(self, at: float, kind: int, subject: int) -> None:
        self._numbers += 1
        heapq.heappush(self._events, (at, kind, self._numbers, subject))

    def _happen(self, now: float, kind: int, subject: int) -> None:
        if kind == DECIDE:
            self._decide(now)
            self._add(now + self._scaler.interval, DECIDE, 0)
        elif kind == FINISH:
            self._finish(now, subject)
        elif kind == RETURN:
            self._enqueue(now, subject)
        elif (machine := self._machines.get(subject)) is not None:
            if kind == READY and machine.state is WorkerState.BOOTING:
                machine.state = WorkerState.RUNNING
                machine.ready = now
                self._free.extend([machine.id] * machine.slots)
                self._start_jobs(now)
            elif kind == NOTICE and machine.died is None:
                # The provider reports the notice; the worker drains.
                if machine.state is WorkerState.BOOTING or not machine.busy:
                    self._remove(machine, now)
                else:
                    machine.state = WorkerState.DRAINING
                    self._add(now + SPOT_NOTICE, DIE, machine.id)
            elif kind == DIE and machine.died is None:
                self._die(machine, now)

    def _arrive(self, now: float, index: int) -> None:
        job = self._trace.jobs[index]
        self._enqueued[job.queue][int((job.enqueued if job.enqueued >= 0 else now) // 60)] += 1
        self._enqueue(now, index)
        if self._scaler.wakes_on_first_job and not self._machines:
            self._decide(now + 1)

    def _enqueue(self, now: float, index: int) -> None:
        job = self._trace.jobs[index]
        self._pending[not job.is_high].append((now, index))
        self._ready[job.queue][not job.is_high] += 1
        self._start_jobs(now)

    def _start_jobs(self, now: float) -> None:
        free, machines = self._free, self._machines
        while free and (self._pending[0] or self._pending[1]):
            machine = machines.get(free[0])
            if machine is None or machine.state is not WorkerState.RUNNING or machine.died is not None:
                free.popleft()
                continue
            free.popleft()
            line = 0 if self._pending[0] else 1
            since, index = self._pending[line].popleft()
            job = self._trace.jobs[index]
            self._ready[job.queue][line] -= 1
            self._processing[job.queue] += 1
            self._waits.append(now - since)
            machine.busy += 1
            machine.running[index] = now
            # The machine's number is in the event's subject, since a job may run again elsewhere.
            self._add(now + job.run, FINISH, machine.id * len(self._trace.jobs) + index)

    def _finish(self, now: float, subject: int) -> None:
        number, index = divmod(subject, len(self._trace.jobs))
        machine = self._machines.get(number)
        if machine is None or machine.died is not None or index not in machine.running:
            return
        started = machine.running.pop(index)
        job = self._trace.jobs[index]
        machine.busy -= 1
        self._processing[job.queue] -= 1
        self._unfinished -= 1
        count, total = self._runs[job.queue][int(now // 60)]
        self._runs[job.queue][int(now // 60)] = (count + 1, total + now - started)
        count, total = self._all_runs[job.queue]
        self._all_runs[job.queue] = (count + 1, total + now - started)
        if machine.state is WorkerState.RUNNING:
            self._free.append(machine.id)
            self._start_jobs(now)
        elif not machine.busy:
            self._remove(machine, now)

    def _die(self, machine: Machine, now: float) -> None:
        machine.died = now
        for index in machine.running:
            self._processing[self._trace.jobs[index].queue] -= 1
            self._add(now + LEASE, RETURN, index)
        machine.running.clear()
        machine.busy = 0
        if machine.state is not WorkerState.RUNNING:
            self._remove(machine, now)

    def _remove(self, machine: Machine, now: float) -> None:
        self._seconds += (machine.died if machine.died is not None else now) - machine.launched
        del self._machines[machine.id]

    # decisions

    def _decide(self, now: float) -> None:
        observation = self._observe(now)
        decision = self._scaler.decide(observation, now)
        states = [machine.state for machine in self._machines.values() if machine.died is None]
        waiting = [line[0][0] for line in self._pending if line]
        self._samples.append(
            Sample(
                now,
                len(states),
                states.count(WorkerState.BOOTING),
                sum(map(len, self._pending)),
                max((now - since for since in waiting), default=0.0),
            )
        )
        if decision.is_hold:
            return
        self._history.append(decision.as_past(round(now * MS)))
        while self._history and self._history[0].at_ms < (now - self._scaler.history) * MS:
            self._history.popleft()
        for id in decision.replace:
            self._remove(self._machines[int(id)], now)
        for id in decision.drain:
            machine = self._machines[int(id)]
            self._drains += 1
            if machine.busy:
                machine.state = WorkerState.DRAINING
            else:
                self._remove(machine, now)
        for _ in range(decision.launch):
            self._launch(now)

    def _launch(self, now: float) -> None:
        trace, rng = self._trace, self._rng
        self._launches += 1
        self._numbers += 1
        machine = Machine(self._numbers, now, trace.slots)
        self._machines[machine.id] = machine
        boot = (trace.real_boot or trace.boot) * rng.uniform(0.8, 1.2)
        is_broken = rng.random() < trace.broken_boots
        lives = [rng.expovariate(1 / mean) if mean else None for mean in (trace.mean_life, trace.mean_spot_life)]
        if self._scaler.is_oracle:
            machine.launched -= boot
            boot = 0.0
        elif is_broken:
            return
        if lives[0] is not None:
            self._add(now + boot + lives[0], DIE, machine.id)
        if lives[1] is not None:
            self._add(now + boot + lives[1], NOTICE, machine.id)
        self._add(now + boot, READY, machine.id)

    def _observe(self, now: float) -> Observation:
        if self._scaler.is_oracle:
            self._scaler.behind = self._behind(now)
        elif any(start <= now < end for start, end in self._trace.outages):
            self._readable_since = now
            return Observation(at_ms=None, store_error="timed out")
        is_throttled = any(start <= now < end for start, end in self._trace.throttled)
        return Observation(
            at_ms=round(now * MS),
            readable_since_ms=round(self._readable_since * MS),
            queues=[self._demand(queue, now) for queue in range(len(self._ready))],
            workers=[self._observed(machine, now) for machine in self._machines.values()],
            history=tuple(self._history),
            provider_error="Throttling" if is_throttled else None,
        )

    def _behind(self, now: float) -> float:
        jobs = self._trace.jobs
        late = sum(min(jobs[index].run, now - since) for line in self._pending for since, index in line)
        for machine in self._machines.values():
            for index, started in machine.running.items():
                job = jobs[index]
                late += min(job.run, now - job.due) - min(job.run, now - started)
        return late

    def _observed(self, machine: Machine, now: float) -> ObservedWorker:
        is_dead = machine.died is not None and (self._scaler.is_oracle or now - machine.died > DEAD_AFTER)
        beat = machine.died if machine.died is not None else now
        return ObservedWorker(
            id=str(machine.id),
            state=WorkerState.FAILED if is_dead else machine.state,
            slots=machine.slots,
            busy=machine.busy,
            started_ms=round(machine.launched * MS),
            registered_ms=None if machine.ready is None else round(machine.ready * MS),
            heartbeat_ms=None if machine.state is WorkerState.BOOTING else round(beat * MS),
            work_started_ms=round(min(machine.running.values()) * MS) if machine.running else None,
        )

    def _demand(self, queue: int, now: float) -> QueueDemand:
        minute, part = divmod(now, 60)
        last = int(minute)
        enqueued = self._enqueued[queue]
        # As the store counts: whole minutes and the current part of one.
        minute_rate = sum(enqueued[max(0, last - 1) : last + 1]) / (part + 60)
        rate = sum(enqueued[max(0, last - 5) : last + 1]) / (part + 300)
        runs = self._runs[queue][max(0, last - 5) : last + 1]
        count, total = _sum(runs[-2:])
        dues, start = self._due[queue], self._due_from[queue]
        while start < len(dues) and dues[start] < now:
            start += 1
        self._due_from[queue] = start
        end = start
        while end < len(dues) and dues[end] <= now + self._trace.boot:
            end += 1
        high, normal = self._ready[queue]
        return QueueDemand(
            queue=str(queue),
            high=high,
            normal=normal,
            oldest_wait_ms=self._oldest_wait_ms(now),
            due=end - start,
            arrivals_per_second=minute_rate,
            arrivals_per_second_5m=rate,
            mean_run_ms=self._mean_run_ms(queue, runs),
            mean_run_ms_1m=total / count * MS if count >= FEW else None,
            processing=self._processing[queue],
        )

    def _mean_run_ms(self, queue: int, recent: Sequence[tuple[int, float]]) -> float | None:
        # A few jobs say little about the next: then over all that ever ended, which the store counts as well.
        count, total = _sum(recent)
        if count < FEW:
            count, total = self._all_runs[queue]
        return total / count * MS if count else None

    def _oldest_wait_ms(self, now: float) -> int | None:
        for line in self._pending:
            if line:
                return round((now - line[0][0]) * MS)
        return None


def simulate(trace: Trace, scaler: Scaler) -> Outcome:
    """Runs a trace under a scaler."""
    return Simulation(trace, scaler).run()


def _sum(runs: Sequence[tuple[int, float]]) -> tuple[int, float]:
    return sum(count for count, _ in runs), sum(total for _, total in runs)


def total_work(jobs: Sequence[SimulatedJob]) -> float:
    """Slot-seconds."""
    return sum(job.run for job in jobs)
