"""Every state that lease, fence and replay can reach in a small scope; and the real scripts take the same steps."""

from __future__ import annotations

import random
from typing import Any, Final

import pytest

from tests.properties.claim_invariants import is_stuck, violation
from tests.properties.claim_model import Model, Scope, State, StoredJob, first_state
from tests.properties.claim_replay import ClaimReplay
from tests.properties.claim_symmetry import normalized, symmetric
from tests.properties.explore import Explored, Violated, covering_traces, explore
from tests.properties.state_machine import Bench
from tests.scale import IS_LONG, random_seed

#: All of these are explored.
SCOPES: Final = (
    Scope(jobs=1, workers=3, claims=3, expiries=2, losses=1),
    Scope(jobs=2, workers=2, claims=2, expiries=1, losses=1),
    Scope(jobs=3, workers=3, claims=2, expiries=1, losses=0),
    *((Scope(jobs=3, workers=3, claims=2, expiries=1, losses=1),) if IS_LONG else ()),
    *((Scope(jobs=2, workers=2, claims=3, expiries=2, losses=1),) if IS_LONG else ()),
)
#: Every step of the first is carried out on the real scripts; of the second a sample, unless the run is long.
REPLAYED: Final = (
    (Scope(jobs=1, workers=2, claims=2, expiries=1, losses=1), None),
    (Scope(jobs=2, workers=2, claims=2, expiries=1, losses=1), None if IS_LONG else 150),
)


def explored(model: Model, scope: Scope, *, is_symmetric: bool) -> Explored[State, Any]:
    def least(state: State) -> State:
        return symmetric(normalized(state)) if is_symmetric else normalized(state)

    return explore(least(first_state(scope)), model.steps, violation, lambda state: is_stuck(model, state), least)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("scope", SCOPES, ids=lambda scope: "-".join(map(str, scope)))
def test_no_state_that_can_be_reached_violates_an_invariant(scope: Scope) -> None:
    """A job is never lost, completed twice or by a passed fence, or started without its lease; and none gets stuck."""
    found = explored(Model(), scope, is_symmetric=True)

    print(f"{scope}: {len(found.steps)} states, {found.edges} steps")
    assert len(found.steps) > 1_000


@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("scope", "sample"), REPLAYED)
def test_the_scripts_take_the_same_steps_as_the_model(bench: Bench, scope: Scope, sample: int | None) -> None:
    """With late copies of earlier calls in between."""
    found = explored(Model(), scope, is_symmetric=False)
    traces = list(covering_traces(found, normalized))
    chance = random.Random(random_seed())
    if sample is not None:
        traces = chance.sample(traces, sample)

    for trace in traces:
        ClaimReplay(bench, scope.workers, chance).run(trace)

    print(f"{scope}: {len(traces)} traces, {sum(map(len, traces))} steps on the real scripts")


class IgnoresFences(Model):
    """Accepts every report of a job that is processing."""

    def owns(self, job: StoredJob, worker: int, fence: int) -> bool:
        return job.state == "processing"


class AcceptsTwice(Model):
    """Accepts a report of a job that has ended."""

    def owns(self, job: StoredJob, worker: int, fence: int) -> bool:
        return job.state in ("processing", "completed") and (job.owner, job.fence) == (worker, fence)


class IgnoresExpiries(Model):
    """Takes no job back from a worker that is gone."""

    def reap(self, state: State) -> Any:
        return state, (), ()


class LosesJobs(Model):
    """Drops a job whose lease has run out."""

    def reap(self, state: State) -> Any:
        gone = tuple(StoredJob() if job.is_expired else job for job in state.jobs)
        return state._replace(jobs=gone), (), ()


class StealsLeases(Model):
    """Takes a job back while its lease is valid."""

    def reap(self, state: State) -> Any:
        jobs = tuple(job._replace(is_expired=job.state == "processing") for job in state.jobs)
        return super().reap(state._replace(jobs=jobs))

    def owns(self, job: StoredJob, worker: int, fence: int) -> bool:
        return job.state == "processing"


@pytest.mark.parametrize("broken", [IgnoresFences, AcceptsTwice, IgnoresExpiries, LosesJobs, StealsLeases])
def test_a_model_with_a_broken_rule_is_found_out(broken: type[Model]) -> None:
    with pytest.raises(Violated) as found:
        explored(broken(), Scope(jobs=2, workers=2, claims=2, expiries=1, losses=1), is_symmetric=True)

    print(found.value)
