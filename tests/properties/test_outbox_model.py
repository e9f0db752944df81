"""Every state that a parent, its outbox and a dependent can reach; and the real scripts take the same steps."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import Final

import pytest

from tests.properties.explore import Explored, Violated, covering_traces, explore
from tests.properties.outbox_model import OutboxModel, Outcome, State, Step, is_stuck, normalized, violation
from tests.properties.outbox_replay import OutboxReplay
from tests.properties.state_machine import Bench
from tests.scale import IS_LONG, random_seed

FIRST: Final = State(holds_left=2 if IS_LONG else 1)
#: How many of the traces are carried out on the real scripts; all of them if the run is long.
REPLAYED: Final = None if IS_LONG else 150


@cache
def explored_rules() -> Explored[State, Step]:
    """What follows from the rules as they are."""
    return explored(OutboxModel())


def explored(model: OutboxModel) -> Explored[State, Step]:
    return explore(FIRST, model.steps, violation, lambda state: is_stuck(model, state), normalized)


@pytest.mark.timeout(600)
def test_no_state_of_the_outbox_violates_an_invariant() -> None:
    """A dependent never starts before its parent has succeeded, and reaches the state that its parent asks for."""
    found = explored_rules()

    print(f"{len(found.steps)} states, {found.edges} steps")
    assert len(found.steps) > 1_000


@pytest.mark.timeout(7_200)
def test_the_scripts_take_the_same_steps_as_the_outbox_model(bench: Bench) -> None:
    traces = list(covering_traces(explored_rules(), normalized))
    chance = random.Random(random_seed())
    if REPLAYED is not None:
        traces = chance.sample(traces, REPLAYED)

    for trace in traces:
        OutboxReplay(bench).run(trace)

    print(f"{len(traces)} traces, {sum(map(len, traces))} steps on the real scripts")


class TakesForGood(OutboxModel):
    """An outcome that was taken is not in the outbox any more."""

    def take(self, state: State) -> tuple[State, Outcome | None]:
        after, outcome = super().take(state)
        return after._replace(is_in_outbox=False), outcome


class AppliesOldOutcomes(OutboxModel):
    """The number of an outcome is not compared."""

    def apply(self, state: State, outcome: Outcome) -> State:
        return super().apply(state._replace(latest=-1), outcome)


class RegistersWithoutLooking(OutboxModel):
    """A registration does not say that the parent has ended."""

    def register(self, state: State) -> tuple[State, Outcome]:
        return super().register(state)[0], Outcome(0, "")


class ForgetsNewerOutcomes(OutboxModel):
    """An acknowledgement removes whatever is in the outbox."""

    def acknowledge(self, state: State, outcome: Outcome) -> State:
        return self.remove(state)


class StartsUnmet(OutboxModel):
    """A dependent that is published starts."""

    def publish(self, state: State) -> State:
        return state._replace(child="pending")


class PublishesBeforeRegistering(OutboxModel):
    """The dependent is visible before its parent knows it."""

    def steps(self, state: State) -> Iterator[Step]:
        for step in super().steps(state):
            if step.action.name == "register":
                step = step._replace(state=self.publish(state)._replace(progress=3))
            yield step


@pytest.mark.parametrize(
    "broken",
    [
        *(TakesForGood, AppliesOldOutcomes, RegistersWithoutLooking, ForgetsNewerOutcomes, StartsUnmet),
        PublishesBeforeRegistering,
    ],
)
def test_an_outbox_with_a_broken_rule_is_found_out(broken: type[OutboxModel]) -> None:
    with pytest.raises(Violated) as found:
        explored(broken())

    print(found.value)
