"""States of `claim_model` in which the same can happen, as one: with the smallest numbers, and workers in one order."""

from __future__ import annotations

from itertools import permutations

from tests.properties.claim_model import State, StoredJob, WorkerState


def normalized(state: State) -> State:
    """The same state with the smallest numbers, and without what the store remembers and nothing will ask for."""
    workers = tuple(_normalized_worker(own, number, state.jobs) for number, own in enumerate(state.workers))
    fences = {own.reply_fence for own in workers} | {held.fence for own in workers for held in own.held}
    fences |= {fence for job in state.jobs for fence in (job.fence, job.started)} | {0}
    rank = {fence: number for number, fence in enumerate(sorted(fences))}
    jobs = tuple(job._replace(fence=rank[job.fence], started=rank[job.started]) for job in state.jobs)
    return state._replace(
        jobs=jobs,
        fence=max(rank.values()),
        workers=tuple(
            own._replace(
                reply_fence=rank[own.reply_fence],
                held=tuple(held._replace(fence=rank[held.fence]) for held in own.held),
            )
            for own in workers
        ),
    )


def _normalized_worker(own: WorkerState, number: int, jobs: tuple[StoredJob, ...]) -> WorkerState:
    is_asked_for = own.is_unanswered and own.reply_call == own.call
    if not is_asked_for and own.given_up != own.reply_call:
        own = own._replace(reply_call=0, reply_fence=0, reply_jobs=())
    owned = tuple(
        job for job in own.reply_jobs if jobs[job].state == "processing" and jobs[job][1:3] == (number, own.reply_fence)
    )
    own = own._replace(reply_jobs=owned)
    if not owned:
        own = own._replace(reply_fence=0, reply_call=own.reply_call if is_asked_for else 0)
    if own.given_up not in (own.call, own.reply_call):
        own = own._replace(given_up=0)
    if not own.is_unanswered and own.given_up == own.call and own.reply_call != own.call:
        own = own._replace(given_up=0)
    rank = {call: place for place, call in enumerate(sorted({0, own.reply_call, own.given_up, own.call}))}
    return own._replace(call=rank[own.call], reply_call=rank[own.reply_call], given_up=rank[own.given_up])


def symmetric(state: State) -> State:
    """The least of the states that differ only in which worker is which."""
    return min(_permuted(state, order) for order in permutations(range(len(state.workers))))


def _permuted(state: State, order: tuple[int, ...]) -> State:
    place = {worker: new for new, worker in enumerate(order)} | {-1: -1}
    jobs = tuple(job._replace(owner=place[job.owner]) for job in state.jobs)
    return state._replace(jobs=jobs, workers=tuple(state.workers[worker] for worker in order))
