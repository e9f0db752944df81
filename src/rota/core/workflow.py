"""Workflows: the graph of steps, how each stands, and what follows from that. Pure decisions, carried out elsewhere.

A workflow's steps are jobs that come after one another, so while all goes well nobody decides anything: the news of a
step's end starts the next. What is left to decide is what to do about a failure, about a cancel, and about a list that
is known only at run time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

import msgspec

WorkflowState = Literal["waiting", "running", "completed", "failed", "undoing", "parked", "undone", "cancelled"]
OnFailure = Literal["undo", "hold"]
#: Nothing will happen to it any more.
ENDED: Final = ("completed", "undone", "cancelled")
#: A step over a list that is longer than this fails.
MAX_ITEMS: Final = 10_000
#: It waits for a human.
STUCK: Final = ("failed", "parked")


class StepResult:
    """Stands for the result of a step, until there is one. Pass it to another step of the same workflow."""

    __slots__ = ("step", "token")

    def __init__(self, step: int, token: str) -> None:
        self.step = step
        self.token = token

    def __repr__(self) -> str:
        return f"<result of step {self.step}>"


class Undo(msgspec.Struct, frozen=True, array_like=True):
    """The job that compensates a step: where it runs, its record, and whose results take the places of tokens in it."""

    queue: str
    priority: int
    body: str
    takes: tuple[tuple[int, str], ...]
    even_if_unsure: bool = False


class Step(msgspec.Struct, frozen=True, array_like=True):
    """One node: a job; or, where `items` is given, one job for each item of the result of that step."""

    id: str
    queue: str
    run: str
    task: str
    after: tuple[int, ...]
    name: str
    undo: Undo | None = None
    #: Whose result is the list that this step runs over; and the record and priority of a job for one item.
    items: int | None = None
    body: str = ""
    priority: int = 0
    due: str = ""
    expiry: str = ""


class Stand(msgspec.Struct, frozen=True):
    """The latest news of a step."""

    number: int = -1
    outcome: str = "waiting"
    attempts: int = 0

    @property
    def has_ended(self) -> bool:
        """True when nothing of it runs, or will, unless it is redriven."""
        return self.outcome != "waiting"

    @property
    def is_bad(self) -> bool:
        """True when it ended without success."""
        return self.outcome not in ("waiting", "completed")


OPEN: Final = Stand()


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """One workflow as the store holds it."""

    id: str
    name: str
    state: str
    version: str
    on_failure: str
    resume: str
    limit: int
    created_at: int
    ended_at: int | None
    cause: str
    steps: list[Step]
    #: Step -> its latest news; compensations likewise; and those of a step that runs over a list, by step and item.
    stands: dict[int, Stand]
    undos: dict[int, Stand]
    items: dict[int, dict[int, Stand]]
    #: Step -> how many items its list has, once that is known.
    lengths: dict[int, int]
    results: dict[str, bytes]
    is_committed: bool
    is_open: bool
    #: "" or what was asked for: "undo" or "leave".
    cancel: str
    is_compensating: bool
    #: What was to be run again when it was resumed: part -> number of its latest news then.
    resuming: dict[str, int] = {}
    #: It failed and is held, and other branches of it still go on.
    is_busy: bool = False

    def stand(self, step: int) -> Stand:
        """The latest news of a step."""
        return self.stands.get(step, OPEN)

    @property
    def bad(self) -> list[int]:
        """Steps that ended without success."""
        return [step for step in range(len(self.steps)) if self.stand(step).is_bad]

    @property
    def failed(self) -> dict[str, int]:
        """Jobs that failed for good: step ("s3") or item of a list ("m3.7") -> number of that news."""
        steps = {f"s{place}": stand for place, stand in self.stands.items() if self.steps[place].items is None}
        items = {f"m{place}.{item}": stand for place, of in self.items.items() for item, stand in of.items()}
        return {part: stand.number for part, stand in (steps | items).items() if stand.outcome == "failed"}

    @property
    def roots(self) -> list[int]:
        """Steps that ended without success for a reason of their own."""
        return [step for step in self.bad if not any(self.stand(other).is_bad for other in self.steps[step].after)]

    @property
    def done(self) -> int:
        """How many steps have succeeded."""
        return sum(self.stand(step).outcome == "completed" for step in range(len(self.steps)))

    @property
    def is_over(self) -> bool:
        """True when nothing will happen to it any more."""
        return self.state in ENDED


class WorkflowInfo(msgspec.Struct, frozen=True, kw_only=True):
    """How one workflow of many stands, in a line."""

    id: str
    name: str
    state: str
    done: int
    total: int
    created_at: int
    ended_at: int | None
    cause: str


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done about a workflow, in this order; then it is looked at again."""

    commit: bool = False
    open_gate: bool = False
    redrive: list[str] = []
    expand: list[int] = []
    announce: list[tuple[int, str]] = []
    cancel: list[int] = []
    compensate: list[int] = []
    #: What was kept of its steps, so that they could go on, need not be kept any more.
    let_go: bool = False
    state: str = ""
    fields: dict[str, str] = {}
    #: Seconds after which somebody looks again, though nothing was heard.
    look_again: float | None = None


def decide(flow: Flow) -> Decision | None:
    """What is to be done now; None when only news can change anything."""
    if flow.is_over:
        return None
    if not flow.is_committed:
        return Decision(commit=True, fields={"committed": "1"})
    if flow.state == "waiting":
        return Decision(state="undoing") if flow.cancel else None
    if not flow.is_open and flow.state == "running":
        return Decision(open_gate=True, fields={"gate": "open"})
    listed = _decide_lists(flow)
    if listed is not None:
        return listed
    if flow.state in ("running", "failed") and flow.done == len(flow.steps):
        return Decision(state="completed")
    if flow.state == "running" and flow.resuming:
        # What has failed again since then is not tried once more.
        failed = flow.failed
        again = [part for part, number in flow.resuming.items() if failed.get(part) == number]
        return Decision(redrive=again, fields={"resuming": ""})
    if flow.state in ("running", "failed"):
        return _decide_failure(flow)
    return _decide_undo(flow)


def _decide_lists(flow: Flow) -> Decision | None:
    """Lists that have become known; and steps that run over one, of which all items have ended, or one badly."""
    expand: list[int] = []
    announce: list[tuple[int, str]] = []
    for place, step in enumerate(flow.steps):
        if step.items is None:
            continue
        length = flow.lengths.get(place)
        if length is None:
            announced = _decide_unknown_list(flow, place)
            if announced == "expand":
                expand.append(place)
            elif announced and announced != flow.stand(place).outcome:
                announce.append((place, announced))
            continue
        of_items = flow.items.get(place, {})
        completed = sum(stand.outcome == "completed" for stand in of_items.values())
        is_bad = any(stand.is_bad for stand in of_items.values())
        # A step over a list that is not one has failed, and stays so.
        outcome = "failed" if is_bad or length < 0 else "completed" if completed == length else "waiting"
        if outcome != flow.stand(place).outcome:
            announce.append((place, outcome))
    return Decision(expand=expand, announce=announce) if expand or announce else None


def _decide_unknown_list(flow: Flow, place: int) -> str:
    before = [flow.stand(other) for other in flow.steps[place].after]
    is_going_on = flow.state in ("running", "failed")
    if any(stand.is_bad for stand in before):
        return "cancelled"
    if all(stand.outcome == "completed" for stand in before):
        return "expand" if is_going_on else "cancelled"
    return "waiting" if is_going_on else ""


def _decide_failure(flow: Flow) -> Decision | None:
    if flow.cancel:
        return Decision(state="undoing")
    if not flow.bad:
        return Decision(state="running") if flow.state == "failed" else None
    if flow.on_failure == "undo":
        return Decision(state="undoing", fields={"cause": _cause(flow)})
    # What still goes on keeps its place among those of its name, if they are limited.
    is_busy = flow.limit > 0 and bool(unended(flow))
    if flow.state == "failed" and flow.is_busy == is_busy:
        return None
    return Decision(state="failed", fields={"cause": _cause(flow), "busy": "1" if is_busy else ""})


def _decide_undo(flow: Flow) -> Decision | None:
    """First everything stops; then what was done is undone, last things first; then it is over."""
    unfinished = unended(flow)
    if unfinished:
        return Decision(cancel=unfinished, look_again=5.0)
    wanted = compensations(flow)
    end = Decision(state="cancelled" if flow.cancel else "undone", let_go=True)
    # To leave things as they are can be asked for only while no compensation is at work.
    is_left = flow.cancel == "leave"
    if not wanted or (is_left and not flow.is_compensating):
        return end
    stands = [flow.undos.get(step, OPEN) for step in wanted]
    if not flow.is_compensating and all(stand.has_ended for stand in stands):
        # They were quicker than whoever made them: no news will come that could end the wait for it.
        return Decision(fields={"compensating": "1"})
    if not flow.is_compensating:
        return Decision(compensate=wanted, fields={"compensating": "1"}, look_again=5.0)
    if all(stand.outcome == "completed" for stand in stands):
        return end
    if all(stand.has_ended for stand in stands):
        if is_left:
            return end
        return Decision(state="parked") if flow.state == "undoing" else None
    return Decision(state="undoing") if flow.state == "parked" else None


def unended(flow: Flow) -> list[int]:
    """Steps of which something may still run."""
    found: list[int] = []
    for place, step in enumerate(flow.steps):
        if step.items is not None and flow.lengths.get(place) is not None:
            of_items = flow.items.get(place, {})
            if any(not of_items.get(item, OPEN).has_ended for item in range(flow.lengths[place])):
                found.append(place)
        elif step.items is None and not flow.stand(place).has_ended:
            found.append(place)
    return found


def compensations(flow: Flow) -> list[int]:
    """Steps to be undone: those that succeeded, and those that may have and say so."""
    return [
        place
        for place, step in enumerate(flow.steps)
        if step.undo is not None
        and (flow.stand(place).outcome == "completed" or (step.undo.even_if_unsure and flow.stand(place).attempts > 0))
    ]


def undo_order(steps: Sequence[Step], wanted: Iterable[int]) -> dict[int, list[int]]:
    """Compensation -> those that must be done before it: of the steps that came after its own, the nearest."""
    targets = set(wanted)
    nearest: dict[int, set[int]] = {place: set() for place in range(len(steps))}
    # Steps are numbered in the order in which they were added, so whatever a step comes after has a lower number.
    for place in range(len(steps) - 1, -1, -1):
        behind = {place} if place in targets else nearest[place]
        for parent in steps[place].after:
            nearest[parent] |= behind
    return {place: sorted(nearest[place]) for place in sorted(targets, reverse=True)}


def last_steps(steps: Sequence[Step]) -> list[int]:
    """Places of the steps that nothing comes after."""
    inner = {parent for step in steps for parent in step.after}
    return [place for place in range(len(steps)) if place not in inner]


def beyond_repair(flow: Flow) -> str:
    """Why going on at the failed steps would lead nowhere; "" if it may."""
    for place in flow.roots:
        of_items = flow.items.get(place, {}).values()
        is_lost = flow.stand(place).outcome != "failed" or any(
            stand.is_bad and stand.outcome != "failed" for stand in of_items
        )
        if is_lost or flow.lengths.get(place, 0) < 0:
            return _fate(flow, place)
    return ""


def _cause(flow: Flow) -> str:
    first = next((step for step in flow.roots if flow.stand(step).outcome == "failed"), flow.roots[0])
    return _fate(flow, first)


def _fate(flow: Flow, place: int) -> str:
    step = flow.steps[place]
    if step.items is not None and flow.lengths.get(place, 0) < 0:
        source = flow.steps[step.items]
        return f"step {step.name} failed: step {source.name} did not return a list of at most {MAX_ITEMS:,} items"
    if step.items is not None:
        bad = [item for item, stand in flow.items.get(place, {}).items() if stand.is_bad]
        items = ", ".join(f"{step.queue}:{step.id}.{item}" for item in sorted(bad)[:3])
        return f"step {step.name} failed ({len(bad):,} of {flow.lengths.get(place, 0):,} items: {items})"
    outcome = flow.stand(place).outcome
    return f"step {step.name} ({step.queue}:{step.id}) {outcome if outcome == 'failed' else f'was {outcome}'}"


def find_results(value: Any) -> list[StepResult]:
    """The results of steps that stand somewhere in a value."""
    if isinstance(value, StepResult):
        return [value]
    if isinstance(value, dict):
        return [found for item in value.values() for found in find_results(item)]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple | set | frozenset):
        return [found for item in value for found in find_results(item)]  # pyright: ignore[reportUnknownVariableType]
    return []
