"""An explicit-state model of the outbox: a dependent, its parent in another queue, a producer that may die on the way,
and two notifiers whose calls are repeated, late or lost.

The outcome of a parent is numbered. It stays in the outbox until it was delivered, and a dependent applies a number
once. `tests/properties/test_outbox_model.py` explores all states, and carries out every step on the real scripts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

NOTIFIERS: Final = 2
#: state of the parent -> state that its published dependent reaches
SETTLED: Final = {"waiting": "blocked", "completed": "pending", "failed": "cancelled"}


class Outcome(NamedTuple):
    """An outcome of the parent under its number."""

    number: int
    kind: str


NO_OUTCOME: Final = Outcome(0, "")


class Taken(NamedTuple):
    """What a notifier has taken, and whether it has delivered that at least once."""

    outcome: Outcome
    is_delivered: bool = False


class State(NamedTuple):
    """Parent, outbox, dependent, and those who carry between them."""

    parent: str = "waiting"
    #: The latest outcome on record, the next number, and whether it is in the outbox and may be taken.
    outcome: Outcome = NO_OUTCOME
    numbers: int = 0
    is_in_outbox: bool = False
    is_due: bool = False
    #: The dependent as the parent's queue knows it: None if it does not, else the latest number delivered.
    delivered: int | None = None
    #: The dependent: "none", "prepared", "blocked", "pending" or "cancelled".
    child: str = "none"
    is_met: bool = False
    latest: int = -1
    is_cancelled_by: bool = False
    #: The producer: 0 begins, 1 has prepared, 2 has registered, 3 has published; and what the registration returned.
    progress: int = 0
    registered: Outcome = NO_OUTCOME
    taken: tuple[Taken | None, ...] = (None,) * NOTIFIERS
    redrives_left: int = 1
    #: How often the hold of an outcome that was taken may still run out: a notifier died, or was slow.
    holds_left: int = 1


class Action(NamedTuple):
    """One call, or time."""

    name: str
    notifier: int = -1
    #: The reply does not arrive: what it says is not known, and the call is made again later.
    is_lost: bool = False


class Step(NamedTuple):
    """An action, and the state after it."""

    action: Action
    state: State


class OutboxModel:
    """The rules. A subclass that breaks one of them must be found out by the exploration."""

    def steps(self, state: State) -> Iterator[Step]:
        """Every step that can follow."""
        yield from self._steps_of_producer(state)
        if state.parent == "waiting":
            yield Step(Action("complete"), self.end(state, "completed"))
            yield Step(Action("fail"), self.end(state, "failed"))
        if state.parent == "failed" and state.redrives_left:
            again = state._replace(redrives_left=state.redrives_left - 1)
            yield Step(Action("redrive"), self.end(again, "waiting"))
        if state.is_in_outbox and not state.is_due and state.holds_left:
            yield Step(Action("hold ends"), state._replace(is_due=True, holds_left=state.holds_left - 1))
        for notifier in range(NOTIFIERS):
            yield from self._steps_of_notifier(state, notifier)

    def _steps_of_producer(self, state: State) -> Iterator[Step]:
        if state.progress == 0:
            yield Step(Action("prepare"), state._replace(progress=1, child="prepared"))
        elif state.progress in (1, 2):
            after, found = self.register(state)
            yield Step(Action("register"), after._replace(progress=2, registered=found))
            if state.progress == 1:
                yield Step(Action("register", is_lost=True), after)
        if state.progress == 2:
            if state.registered.kind:
                applied = self.apply(state, state.registered)
                yield Step(Action("apply registered"), applied._replace(registered=NO_OUTCOME))
            else:
                yield Step(Action("publish"), self.publish(state)._replace(progress=3))

    def _steps_of_notifier(self, state: State, notifier: int) -> Iterator[Step]:
        taken = state.taken[notifier]
        if taken is None:
            if state.is_in_outbox and state.is_due:
                after, outcome = self.take(state)
                yield Step(Action("take", notifier), _with_taken(after, notifier, Taken(outcome) if outcome else None))
                yield Step(Action("take", notifier, is_lost=True), after)
            return
        delivered = _with_taken(self.apply(state, taken.outcome), notifier, taken._replace(is_delivered=True))
        yield Step(Action("deliver", notifier), delivered)
        if taken.is_delivered:
            acknowledged = self.acknowledge(state, taken.outcome)
            yield Step(Action("acknowledge", notifier), _with_taken(acknowledged, notifier, None))
            yield Step(Action("acknowledge", notifier, is_lost=True), acknowledged)

    # --- the queue of the parent -------------------------------------------------------------------------------

    def end(self, state: State, kind: str) -> State:
        """The parent ends, or waits again: dependents that are registered will receive that."""
        state = state._replace(parent=kind)
        if state.delivered is None:
            return state
        numbers = state.numbers + 1
        return state._replace(outcome=Outcome(numbers, kind), numbers=numbers, is_in_outbox=True, is_due=True)

    def register(self, state: State) -> tuple[State, Outcome]:
        """The parent's queue learns of the dependent; returns how the parent ended, if it has."""
        if state.parent == "completed":
            return state, Outcome(0, "completed")
        number = state.outcome.number if state.parent == "failed" else 0
        if state.delivered is None:
            state = state._replace(delivered=number)
        return state, Outcome(number, "failed") if state.parent == "failed" else NO_OUTCOME

    def take(self, state: State) -> tuple[State, Outcome | None]:
        """Takes the outcome out of the outbox for a while."""
        if state.delivered is None or state.delivered >= state.outcome.number:
            return self.remove(state), None
        return state._replace(is_due=False), state.outcome

    def acknowledge(self, state: State, outcome: Outcome) -> State:
        """The dependent has this outcome."""
        if state.outcome == outcome and outcome.kind == "completed":
            state = state._replace(delivered=None)
        elif state.delivered is not None:
            state = state._replace(delivered=max(state.delivered, outcome.number))
        if state.delivered is not None and state.delivered < state.outcome.number:
            return state._replace(is_due=state.is_in_outbox)
        return self.remove(state)

    def remove(self, state: State) -> State:
        """The outcome leaves the outbox; a completed parent forgets its dependents."""
        state = state._replace(is_in_outbox=False, is_due=False)
        if state.outcome.kind == "completed":
            state = state._replace(delivered=None, outcome=NO_OUTCOME)
        return state

    # --- the queue of the dependent ----------------------------------------------------------------------------

    def apply(self, state: State, outcome: Outcome) -> State:
        """The dependent receives an outcome; an older one, or one it has, changes nothing."""
        if state.is_met or outcome.number <= state.latest:
            return state
        if outcome.kind == "failed":
            child = "cancelled" if state.child == "blocked" else state.child
            return state._replace(latest=outcome.number, is_cancelled_by=True, child=child)
        child = "blocked" if state.child == "cancelled" else state.child
        if outcome.kind == "waiting":
            return state._replace(latest=outcome.number, is_cancelled_by=False, child=child)
        return state._replace(is_met=True, is_cancelled_by=False, child="pending" if child == "blocked" else child)

    def publish(self, state: State) -> State:
        """The dependent becomes visible: it waits, starts, or is cancelled."""
        child = "cancelled" if state.is_cancelled_by else "pending" if state.is_met else "blocked"
        return state._replace(child=child)


def violation(before: State, step: Step) -> str:
    """What a step violates; "" if nothing."""
    after = step.state
    if after.child == "pending" and before.child != "pending" and after.parent != "completed":
        return f"the dependent starts while its parent is {after.parent}"
    if before.child == "pending" and after.child != "pending":
        return f"the dependent had started, and is {after.child}"
    return ""


def is_stuck(model: OutboxModel, state: State) -> str:
    """Says if a published dependent does not reach the state that its parent's asks for; "" otherwise."""
    if state.progress < 3 or state.child == "pending":
        return ""
    while state.is_in_outbox:
        state, outcome = model.take(state._replace(is_due=True))
        if outcome is not None:
            state = model.acknowledge(model.apply(state, outcome), outcome)
    wanted = SETTLED[state.parent]
    return "" if state.child == wanted else f"the dependent stays {state.child}, and its parent is {state.parent}"


def normalized(state: State) -> State:
    """The state as it is: it has few numbers, which the redrives bound."""
    return state


def _with_taken(state: State, notifier: int, taken: Taken | None) -> State:
    return state._replace(taken=(*state.taken[:notifier], taken, *state.taken[notifier + 1 :]))
