"""An explicit-state model of lease, fence and replay: what workers, a sweeper and lost replies can do to a few jobs.

The model is written for exhaustive exploration: a state is a tuple, an action is a function of it, and time is a flag
("the lease has run out"). A worker that is frozen is one that takes no steps while its leases run out; when it goes on
it is a zombie, which still knows its claims. `tests/properties/test_claim_model.py` explores all states of a small
scope, and carries out every action on the real scripts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")

#: How many jobs a claim asks for.
CLAIM_LIMIT: Final = 2


class StoredJob(NamedTuple):
    """A job as the store has it."""

    #: "absent", "pending", "processing" or "completed"
    state: str = "absent"
    #: The last claim, by worker and fence; -1 and 0 if there is none, or its lease ran out.
    owner: int = -1
    fence: int = 0
    #: Its lease has run out, and no claim has reaped it yet.
    is_expired: bool = False
    #: The greatest fence under which a handler was started.
    started: int = 0


class Held(NamedTuple):
    """A job that a worker believes to own, and the report that it has sent without a reply."""

    job: int
    fence: int
    sent: str = ""


class WorkerState(NamedTuple):
    """A worker as it sees itself, and what the store remembers of it."""

    #: Number of its latest claim, and whether it lacks the reply; whether it will not start what that reply brings.
    call: int = 0
    is_unanswered: bool = False
    has_given_up: bool = False
    held: tuple[Held, ...] = ()
    #: Of its latest claim that brought jobs: the number, the fence and the jobs.
    reply_call: int = 0
    reply_fence: int = 0
    reply_jobs: tuple[int, ...] = ()
    #: Number of the claim that a heartbeat gave up; 0 if none.
    given_up: int = 0


class State(NamedTuple):
    """All of it, and what is left of the scope's budgets."""

    jobs: tuple[StoredJob, ...]
    workers: tuple[WorkerState, ...]
    fence: int
    claims_left: int
    expiries_left: int
    losses_left: int


class Scope(NamedTuple):
    """How much may happen."""

    jobs: int
    workers: int
    claims: int
    expiries: int
    losses: int


class Action(NamedTuple):
    """One step: of a producer, a worker, the sweeper, or time."""

    name: str
    worker: int = -1
    job: int = -1
    #: Of a "report": which of the jobs that the worker holds, and what it says. Whether the reply gets lost.
    place: int = -1
    verb: str = ""
    is_lost: bool = False


class Charge(NamedTuple):
    """What a step adds to the counts of a job."""

    job: int
    attempts: int = 0
    stalls: int = 0
    handbacks: int = 0


class Step(NamedTuple):
    """An action, the state after it, the reply of the store (claimed jobs, or why a report was refused), and the counts
    that it changes."""

    action: Action
    state: State
    reply: object = None
    charges: tuple[Charge, ...] = ()


def first_state(scope: Scope) -> State:
    """Nothing has happened yet."""
    return State(
        jobs=(StoredJob(),) * scope.jobs,
        workers=(WorkerState(),) * scope.workers,
        fence=0,
        claims_left=scope.claims,
        expiries_left=scope.expiries,
        losses_left=scope.losses,
    )


class Model:
    """The rules. A subclass that breaks one of them must be found out by the exploration."""

    def steps(self, state: State) -> Iterator[Step]:
        """Every step that can follow."""
        absent = next((number for number, job in enumerate(state.jobs) if job.state == "absent"), None)
        if absent is not None:
            jobs = _replaced(state.jobs, absent, StoredJob("pending"))
            yield Step(Action("enqueue", job=absent), state._replace(jobs=jobs))
        if any(job.is_expired for job in state.jobs):
            yield Step(Action("sweep"), *self.reap(state))
        for worker in range(len(state.workers)):
            yield from self._steps_of_worker(state, worker)

    def _steps_of_worker(self, state: State, worker: int) -> Iterator[Step]:
        own = state.workers[worker]
        for is_lost in (False, True) if state.losses_left else (False,):
            if own.is_unanswered:
                yield self.claim(state, Action("claim again", worker, is_lost=is_lost))
            elif state.claims_left:
                yield from self._new_claims(state, worker, is_lost=is_lost)
            for place, held in enumerate(own.held):
                for verb in (held.sent,) if held.sent else ("complete", "return"):
                    yield self.report(state, held, Action("report", worker, held.job, place, verb, is_lost))
        if own.held:
            yield self.heartbeat(state, Action("heartbeat", worker))
        if own.is_unanswered and not own.has_given_up:
            yield self.heartbeat(state, Action("give up", worker))
        if state.expiries_left and any(_is_leased(job, worker) for job in state.jobs):
            yield self.expire(state, worker)

    def _new_claims(self, state: State, worker: int, *, is_lost: bool) -> Iterator[Step]:
        """A claim that brings jobs; one that finds none is a sweep. It, or its reply, may get lost."""
        step = self.claim(state, Action("claim", worker, is_lost=is_lost))
        if step.reply:
            yield step
        if is_lost:
            own = state.workers[worker]
            own = own._replace(call=own.call + 1, is_unanswered=True)
            yield Step(Action("lose claim", worker), _with_worker(_lost_one(state), worker, own))

    # --- what the store does -----------------------------------------------------------------------------------

    def reap(self, state: State) -> tuple[State, tuple[tuple[()], ...], tuple[Charge, ...]]:
        """Takes back the jobs whose leases have run out."""
        charges: list[Charge] = []
        jobs = state.jobs
        for number, job in enumerate(jobs):
            if job.is_expired:
                own = state.workers[job.owner]
                is_abandoned = own.given_up > 0 and (own.reply_call, own.reply_fence) == (own.given_up, job.fence)
                charges.append(Charge(number, -1, 0, 1) if is_abandoned else Charge(number, 0, 1, 0))
                jobs = _replaced(jobs, number, job._replace(state="pending", owner=-1, fence=0, is_expired=False))
        return state._replace(jobs=jobs), (), tuple(charges)

    def claim(self, state: State, action: Action) -> Step:
        """A claim, or the same one sent again: reaps, then leases pending jobs under a new fence."""
        worker, own = action.worker, state.workers[action.worker]
        call = own.call if action.name == "claim again" else own.call + 1
        charges: tuple[Charge, ...] = ()
        if self.is_repeated(own, call):
            fence = own.reply_fence
            taken = tuple(job for job in own.reply_jobs if self.owns(state.jobs[job], worker, fence))
        else:
            state, _, charges = self.reap(state)
            pending = [number for number, job in enumerate(state.jobs) if job.state == "pending"]
            taken, fence = tuple(pending[:CLAIM_LIMIT]), state.fence + 1
            if taken:
                state = self._leased(state, worker, fence, taken)
                own = own._replace(reply_call=call, reply_fence=fence, reply_jobs=taken)
                charges += tuple(Charge(job, 1) for job in taken)
        own = own._replace(call=call, is_unanswered=action.is_lost)
        if action.is_lost:
            state = _lost_one(state)
        else:
            own, state = self._received(own, state, taken, fence)
        return Step(action, _with_worker(state, worker, own), taken, charges)

    def _received(
        self, own: WorkerState, state: State, taken: tuple[int, ...], fence: int
    ) -> tuple[WorkerState, State]:
        """The worker starts what its claim brought, unless it has given that claim up: then it returns it."""
        sent, jobs = "unstarted" if own.has_given_up else "", state.jobs
        if not sent:
            for number in taken:
                jobs = _replaced(jobs, number, jobs[number]._replace(started=max(fence, jobs[number].started)))
        held = tuple(sorted({*own.held, *(Held(job, fence, sent) for job in taken)}))
        return own._replace(held=held, has_given_up=False), state._replace(jobs=jobs)

    def _leased(self, state: State, worker: int, fence: int, taken: tuple[int, ...]) -> State:
        jobs = state.jobs
        for number in taken:
            jobs = _replaced(jobs, number, jobs[number]._replace(state="processing", owner=worker, fence=fence))
        return state._replace(jobs=jobs, fence=fence, claims_left=max(0, state.claims_left - 1))

    def is_repeated(self, own: WorkerState, call: int) -> bool:
        """True for a claim that was carried out before."""
        return own.reply_call == call

    def owns(self, job: StoredJob, worker: int, fence: int) -> bool:
        """True when a claim owns a job."""
        return job.state == "processing" and (job.owner, job.fence) == (worker, fence)

    def report(self, state: State, held: Held, action: Action) -> Step:
        """The end of an attempt: stored if its claim owns the job."""
        job, worker = state.jobs[held.job], action.worker
        charges: tuple[Charge, ...] = ()
        if self.owns(job, worker, held.fence):
            refusal = "ok"
            ended = job._replace(state="completed" if action.verb == "complete" else "pending", is_expired=False)
            state = state._replace(jobs=_replaced(state.jobs, held.job, ended))
            if action.verb != "complete":
                charges = (Charge(held.job, -1 if action.verb == "unstarted" else 0, 0, 1),)
        else:
            was_own = job.state in ("pending", "completed") and (job.owner, job.fence) == (worker, held.fence)
            refusal = "already" if was_own else "lease_lost"
        own = state.workers[worker]
        rest = set(own.held) - {held}
        if action.is_lost:
            rest.add(held._replace(sent=action.verb))
            state = _lost_one(state)
        own = own._replace(held=tuple(sorted(rest)))
        return Step(action, _with_worker(state, worker, own), refusal, charges)

    def heartbeat(self, state: State, action: Action) -> Step:
        """Renews the leases that a worker still has; the others are named, and it drops them."""
        worker, own, jobs = action.worker, state.workers[action.worker], state.jobs
        lost = {held for held in own.held if not self.owns(jobs[held.job], worker, held.fence)}
        for held in set(own.held) - lost:
            jobs = _replaced(jobs, held.job, jobs[held.job]._replace(is_expired=False))
        own = own._replace(held=tuple(held for held in own.held if held not in lost))
        if action.name == "give up":
            own = own._replace(given_up=own.call, has_given_up=True)
        after = _with_worker(state._replace(jobs=jobs), worker, own)
        return Step(action, after, frozenset(held.job for held in lost))

    def expire(self, state: State, worker: int) -> Step:
        """Time passes, in which a worker renews nothing: its leases run out, and those of the others do not."""
        jobs = tuple(job._replace(is_expired=True) if _is_leased(job, worker) else job for job in state.jobs)
        return Step(Action("expire", worker), state._replace(jobs=jobs, expiries_left=state.expiries_left - 1))


def _is_leased(job: StoredJob, worker: int) -> bool:
    return job.state == "processing" and job.owner == worker and not job.is_expired


def _lost_one(state: State) -> State:
    return state._replace(losses_left=state.losses_left - 1)


def _with_worker(state: State, worker: int, own: WorkerState) -> State:
    return state._replace(workers=_replaced(state.workers, worker, own))


def _replaced(items: tuple[T, ...], index: int, item: T) -> tuple[T, ...]:
    return (*items[:index], item, *items[index + 1 :])
