"""Explores every state of a model breadth first, and finds traces that take every step at least once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, NamedTuple, Protocol, TypeVar, cast


class Stepped(Protocol):
    """A step of a model: what is done, and the state after it."""

    @property
    def action(self) -> Hashable: ...
    @property
    def state(self) -> Hashable: ...


S = TypeVar("S", bound=Hashable)
P = TypeVar("P", bound=Stepped)


class Explored(NamedTuple, Generic[S, P]):
    """All states that can be reached, each with the steps that can follow, and the first step to each."""

    steps: dict[S, list[P]]
    came_by: dict[S, tuple[S, P]]

    @property
    def edges(self) -> int:
        """The number of steps, over all states."""
        return sum(map(len, self.steps.values()))

    def path_to(self, state: S) -> list[P]:
        """A shortest path from the first state."""
        path: list[P] = []
        while state in self.came_by:
            state, step = self.came_by[state]
            path.append(step)
        return path[::-1]


class Violated(AssertionError):
    """A step violates an invariant; the message has the shortest path to it."""


def explore(
    first: S,
    steps: Callable[[S], Iterator[P]],
    violation: Callable[[S, P], str],
    stuck: Callable[[S], str],
    normalized: Callable[[S], S],
) -> Explored[S, P]:
    """Visits every state once. Raises Violated with the shortest path to a violation.

    `normalized` maps states in which the same can happen to one of them.
    """
    explored: Explored[S, P] = Explored({}, {})
    waiting: deque[S] = deque([first])
    seen = {first}
    while waiting:
        state = waiting.popleft()
        following = explored.steps[state] = list(steps(state))
        problem = stuck(state)
        for step in following:
            problem = problem or violation(state, step)
            if problem:
                path = "\n  ".join(str(taken.action) for taken in [*explored.path_to(state), step])
                raise Violated(f"{problem} after\n  {path}")
            after = normalized(cast(S, step.state))
            if after not in seen:
                seen.add(after)
                explored.came_by[after] = (state, step)
                waiting.append(after)
    return explored


def covering_traces(explored: Explored[S, P], normalized: Callable[[S], S]) -> Iterator[list[P]]:
    """Yields traces from the first state that together take every step of every state."""
    left = {state: list(steps) for state, steps in explored.steps.items()}
    for start in list(left):
        while left[start]:
            trace, state = explored.path_to(start), start
            while left[state]:
                step = left[state].pop()
                trace.append(step)
                state = normalized(cast(S, step.state))
            yield trace
