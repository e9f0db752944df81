"""Workflows: the graph of steps, the state of each step, and the decision what to do next.

The steps are jobs with dependencies, so as long as they succeed there is nothing to decide: the outcome of a step
starts its dependents. Decisions are needed for a failure, for a cancel, and for a list that is known only at run time.
`store.drive_workflows` carries them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

import msgspec

WorkflowState = Literal["waiting", "running", "completed", "failed", "undoing", "parked", "undone", "cancelled"]
#: Final states.
ENDED: Final = ("completed", "undone", "cancelled")
#: A step over a longer list fails.
MAX_ITEMS: Final = 10_000
#: Length of a list that is not known to be valid, and of one whose results exceed the limit of a payload.
NO_LIST: Final = -1
RESULTS_TOO_LONG: Final = -2
#: States that wait for an operator.
STUCK: Final = ("failed", "parked")
#: Clears what a failure recorded, once its step has succeeded after all.
_NO_FAILURE: Final = {"cause": "", "busy": ""}


class StepResult:
    """The future result of a step, to be passed to another step of the same workflow."""

    __slots__ = ("placeholder", "step")

    def __init__(self, step: int, placeholder: str) -> None:
        self.step = step
        self.placeholder = placeholder

    def __repr__(self) -> str:
        return f"<result of step {self.step}>"


class Undo(msgspec.Struct, frozen=True, array_like=True):
    """The compensation of a step: the queue and the record of its job."""

    queue: str
    priority: int
    body: str
    #: Step -> placeholder in the body that the result of that step replaces.
    placeholders: tuple[tuple[int, str], ...]
    even_if_unsure: bool = False

    @property
    def task(self) -> str:
        """The name of its task, which is the second line of the record."""
        return self.body.split("\n", 2)[1]


class StepRecord(msgspec.Struct, frozen=True, array_like=True):
    """One step: a job; or, with `items`, one job for each item in the result of that step."""

    id: str
    queue: str
    run: str
    task: str
    after: tuple[int, ...]
    name: str
    undo: Undo | None = None
    #: Step whose result is the list; and the record and priority of the job for one item.
    items: int | None = None
    body: str = ""
    priority: int = 0
    due: str = ""
    expiry: str = ""
    #: Other steps, compensations or the caller take its result.
    is_result_taken: bool = True


class StepState(msgspec.Struct, frozen=True):
    """The latest reported outcome of a step."""

    #: Number of that report.
    number: int = -1
    outcome: str = "waiting"
    attempts: int = 0

    @property
    def has_ended(self) -> bool:
        """Whether the step has ended: nothing of it runs again unless it is redriven."""
        return self.outcome != "waiting"

    @property
    def is_unsuccessful(self) -> bool:
        """Whether the step ended without success."""
        return self.outcome not in ("waiting", "completed")


NOT_ENDED: Final = StepState()


class WorkflowRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow with its steps, as stored."""

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
    steps: list[StepRecord]
    step_states: dict[int, StepState]
    #: Step -> state of its compensation.
    undo_states: dict[int, StepState]
    #: Step over a list -> item -> state of its job.
    item_states: dict[int, dict[int, StepState]]
    #: Step over a list -> length of the list, once it is known; else `NO_LIST` or `RESULTS_TOO_LONG`.
    lengths: dict[int, int]
    #: Bytes that the arguments or the result of one of its jobs may have.
    max_payload: int
    is_committed: bool
    is_open: bool
    #: "" or how it was cancelled: "undo" or "leave".
    cancel: str
    is_compensating: bool
    #: Parts to redrive after a resume -> number of their latest report at that time.
    resuming: dict[str, int] = {}
    #: It failed and is held, while other branches still run.
    is_busy: bool = False

    def step_state(self, step: int) -> StepState:
        """Returns the state of a step."""
        return self.step_states.get(step, NOT_ENDED)

    @property
    def unsuccessful_steps(self) -> list[int]:
        """Steps that ended without success."""
        return [step for step in range(len(self.steps)) if self.step_state(step).is_unsuccessful]

    @property
    def failed_parts(self) -> dict[str, int]:
        """Jobs that are dead letters: step ("s3") or item of a list ("m3.7") -> number of the report."""
        steps = {f"s{index}": state for index, state in self.step_states.items() if self.steps[index].items is None}
        items = {f"m{index}.{item}": state for index, of in self.item_states.items() for item, state in of.items()}
        return {part: state.number for part, state in (steps | items).items() if state.outcome == "failed"}

    @property
    def root_causes(self) -> list[int]:
        """Unsuccessful steps whose parents all succeeded."""
        return [
            step
            for step in self.unsuccessful_steps
            if not any(self.step_state(other).is_unsuccessful for other in self.steps[step].after)
        ]

    @property
    def done(self) -> int:
        """Number of completed steps."""
        return sum(self.step_state(step).outcome == "completed" for step in range(len(self.steps)))

    @property
    def is_over(self) -> bool:
        """Whether the workflow is in a final state."""
        return self.state in ENDED


class WorkflowInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Summary of a workflow, as listed."""

    id: str
    name: str
    state: str
    done: int
    total: int
    created_at: int
    ended_at: int | None
    cause: str


class WorkflowDecision(msgspec.Struct, frozen=True, kw_only=True):
    """Actions on a workflow, carried out in this order; then `decide` is called again."""

    commit: bool = False
    open_gate: bool = False
    redrive: list[str] = []
    expand: list[int] = []
    step_outcomes: list[tuple[int, str]] = []
    cancel: list[int] = []
    compensate: list[int] = []
    #: The jobs of its steps, kept so that the workflow could be resumed, need not be kept any longer.
    release_jobs: bool = False
    state: str = ""
    fields: dict[str, str] = {}
    #: Seconds after which to decide again even if no outcome arrives.
    check_again_s: float | None = None


def decide(workflow: WorkflowRecord) -> WorkflowDecision | None:
    """Returns what to do now; None if the workflow only waits for outcomes."""
    if workflow.is_over:
        return None
    if not workflow.is_committed:
        return WorkflowDecision(commit=True, fields={"committed": "1"})
    if workflow.state == "waiting":
        return WorkflowDecision(state="undoing") if workflow.cancel else None
    if not workflow.is_open and workflow.state == "running":
        return WorkflowDecision(open_gate=True, fields={"gate": "open"})
    for_lists = _decide_lists(workflow)
    if for_lists is not None:
        return for_lists
    if workflow.state in ("running", "failed") and workflow.done == len(workflow.steps):
        return WorkflowDecision(state="completed", fields=_NO_FAILURE if workflow.cause else {})
    if workflow.state == "running" and workflow.resuming:
        # Parts that have failed again since the resume are not redriven a second time.
        failed = workflow.failed_parts
        again = [part for part, number in workflow.resuming.items() if failed.get(part) == number]
        return WorkflowDecision(redrive=again, fields={"resuming": ""})
    if workflow.state in ("running", "failed"):
        return _decide_failure(workflow)
    return _decide_undo(workflow)


def _decide_lists(workflow: WorkflowRecord) -> WorkflowDecision | None:
    """Expands lists that have become known, and sets the outcome of steps over a list from those of their items."""
    expand: list[int] = []
    step_outcomes: list[tuple[int, str]] = []
    for index, step in enumerate(workflow.steps):
        if step.items is None:
            continue
        length = workflow.lengths.get(index)
        if length is None:
            outcome = _decide_unknown_list(workflow, index)
            if outcome == "expand":
                expand.append(index)
            elif outcome and outcome != workflow.step_state(index).outcome:
                step_outcomes.append((index, outcome))
            continue
        item_states = workflow.item_states.get(index, {})
        completed = sum(state.outcome == "completed" for state in item_states.values())
        has_failed = length < 0 or any(state.is_unsuccessful for state in item_states.values())
        outcome = "failed" if has_failed else "completed" if completed == length else "waiting"
        if outcome != workflow.step_state(index).outcome:
            step_outcomes.append((index, outcome))
    return WorkflowDecision(expand=expand, step_outcomes=step_outcomes) if expand or step_outcomes else None


def _decide_unknown_list(workflow: WorkflowRecord, index: int) -> str:
    parents = [workflow.step_state(parent) for parent in workflow.steps[index].after]
    is_advancing = workflow.state in ("running", "failed")
    if any(state.is_unsuccessful for state in parents):
        return "cancelled"
    if all(state.outcome == "completed" for state in parents):
        return "expand" if is_advancing else "cancelled"
    return "waiting" if is_advancing else ""


def _decide_failure(workflow: WorkflowRecord) -> WorkflowDecision | None:
    if workflow.cancel:
        return WorkflowDecision(state="undoing")
    if not workflow.unsuccessful_steps:
        return WorkflowDecision(state="running", fields=_NO_FAILURE) if workflow.state == "failed" else None
    if workflow.on_failure == "undo":
        return WorkflowDecision(state="undoing", fields={"cause": _cause(workflow)})
    # While branches still run, the workflow counts towards the limit on workflows of its name.
    is_busy = workflow.limit > 0 and bool(unended_steps(workflow))
    if workflow.state == "failed" and workflow.is_busy == is_busy:
        return None
    return WorkflowDecision(state="failed", fields={"cause": _cause(workflow), "busy": "1" if is_busy else ""})


def _decide_undo(workflow: WorkflowRecord) -> WorkflowDecision | None:
    """Stops all running steps, then compensates completed ones in reverse order, then ends the workflow."""
    unfinished = unended_steps(workflow)
    if unfinished:
        return WorkflowDecision(cancel=unfinished, check_again_s=5.0)
    wanted = compensations(workflow)
    end = WorkflowDecision(state="cancelled" if workflow.cancel else "undone", release_jobs=True)
    # A cancel with "leave" skips compensations, unless they have started.
    is_left = workflow.cancel == "leave"
    if not wanted or (is_left and not workflow.is_compensating):
        return end
    states = [workflow.undo_states.get(step, NOT_ENDED) for step in wanted]
    if not workflow.is_compensating and all(state.has_ended for state in states):
        # All compensations ended before this was recorded: no further outcome will arrive to end the wait.
        return WorkflowDecision(fields={"compensating": "1"})
    if not workflow.is_compensating:
        return WorkflowDecision(compensate=wanted, fields={"compensating": "1"}, check_again_s=5.0)
    if all(state.outcome == "completed" for state in states):
        return end
    if all(state.has_ended for state in states):
        if is_left:
            return end
        return WorkflowDecision(state="parked") if workflow.state == "undoing" else None
    return WorkflowDecision(state="undoing") if workflow.state == "parked" else None


def unended_steps(workflow: WorkflowRecord) -> list[int]:
    """Returns the steps with a job that may still run."""
    found: list[int] = []
    for index, step in enumerate(workflow.steps):
        if step.items is not None and workflow.lengths.get(index) is not None:
            item_states = workflow.item_states.get(index, {})
            if any(not item_states.get(item, NOT_ENDED).has_ended for item in range(workflow.lengths[index])):
                found.append(index)
        elif step.items is None and not workflow.step_state(index).has_ended:
            found.append(index)
    return found


def compensations(workflow: WorkflowRecord) -> list[int]:
    """Returns the steps to compensate: completed ones, and attempted ones that declare `even_if_unsure`."""
    return [
        index
        for index, step in enumerate(workflow.steps)
        if step.undo is not None
        and (
            workflow.step_state(index).outcome == "completed"
            or (step.undo.even_if_unsure and workflow.step_state(index).attempts > 0)
        )
    ]


def undo_order(steps: Sequence[StepRecord], wanted: Iterable[int]) -> dict[int, list[int]]:
    """Returns compensation -> compensations that must complete before it: those of the nearest dependent steps."""
    targets = set(wanted)
    nearest: dict[int, set[int]] = {index: set() for index in range(len(steps))}
    # Steps are numbered in the order in which they were added, so parents have lower numbers than their dependents.
    for index in range(len(steps) - 1, -1, -1):
        dependents = {index} if index in targets else nearest[index]
        for parent in steps[index].after:
            nearest[parent] |= dependents
    return {index: sorted(nearest[index]) for index in sorted(targets, reverse=True)}


def last_steps(steps: Sequence[StepRecord]) -> list[int]:
    """Returns the steps without dependents."""
    parents = {parent for step in steps for parent in step.after}
    return [index for index in range(len(steps)) if index not in parents]


def why_not_resumable(workflow: WorkflowRecord) -> str:
    """Returns why resuming cannot succeed, a step that cannot be redriven; "" if it can."""
    for index in workflow.root_causes:
        item_states = workflow.item_states.get(index, {}).values()
        is_final = workflow.step_state(index).outcome != "failed" or any(
            state.is_unsuccessful and state.outcome != "failed" for state in item_states
        )
        if is_final or workflow.lengths.get(index, 0) < 0:
            return _describe_outcome(workflow, index)
    return ""


def _cause(workflow: WorkflowRecord) -> str:
    first = next(
        (step for step in workflow.root_causes if workflow.step_state(step).outcome == "failed"),
        workflow.root_causes[0],
    )
    return _describe_outcome(workflow, first)


def _describe_outcome(workflow: WorkflowRecord, index: int) -> str:
    step = workflow.steps[index]
    if workflow.lengths.get(index) == RESULTS_TOO_LONG:
        return f"step {step.name} failed: the results of its items exceed {workflow.max_payload:,} bytes together"
    if step.items is not None and workflow.lengths.get(index, 0) < 0:
        source = workflow.steps[step.items]
        return f"step {step.name} failed: step {source.name} did not return a list of at most {MAX_ITEMS:,} items"
    if step.items is not None:
        failed = [item for item, state in workflow.item_states.get(index, {}).items() if state.is_unsuccessful]
        items = ", ".join(f"{step.queue}:{step.id}.{item}" for item in sorted(failed)[:3])
        return f"step {step.name} failed ({len(failed):,} of {workflow.lengths.get(index, 0):,} items: {items})"
    outcome = workflow.step_state(index).outcome
    return f"step {step.name} ({step.queue}:{step.id}) {outcome if outcome == 'failed' else f'was {outcome}'}"


def find_results(value: Any) -> list[StepResult]:
    """Returns the step results inside a value."""
    if isinstance(value, StepResult):
        return [value]
    if isinstance(value, dict):
        return [found for item in value.values() for found in find_results(item)]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple | set | frozenset):
        return [found for item in value for found in find_results(item)]  # pyright: ignore[reportUnknownVariableType]
    return []
