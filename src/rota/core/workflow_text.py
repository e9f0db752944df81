"""Workflows as text: an explanation in one sentence, a list of steps, and a Mermaid flowchart."""

from __future__ import annotations

from typing import Final

from rota.core.workflow_record_and_decisions import StepRecord, WorkflowRecord, compensations

MARKS: Final = {"completed": "✔", "failed": "✘", "cancelled": "–", "deleted": "–", "waiting": "·"}
#: Only the first steps of a larger workflow are listed.
MAX_DRAWN: Final = 500


def explain_workflow(workflow: WorkflowRecord) -> str:
    """Returns one sentence: the state of a workflow, its reason, and what happens next."""
    progress = f"{workflow.done} of {len(workflow.steps)} steps done"
    match workflow.state:
        case "waiting":
            running = f"{workflow.limit} workflows named {workflow.name} are running already"
            return f"waiting: {running}; it starts when one of them ends"
        case "running":
            return f"running: {progress}"
        case "failed":
            return f"failed: {workflow.cause}; {progress}; resume it to go on there"
        case "undoing":
            wanted = compensations(workflow)
            undone = sum(state.outcome == "completed" for state in workflow.undo_states.values())
            why = workflow.cause or "it was cancelled"
            what = (
                f"{undone} of {len(wanted)} steps undone"
                if workflow.is_compensating
                else "running steps are being stopped"
            )
            return f"undoing: {why}; {what}"
        case "parked":
            failed = [
                workflow.steps[index].name for index, state in workflow.undo_states.items() if state.outcome == "failed"
            ]
            return f"parked: undoing {', '.join(failed)} keeps failing; fix the cause, then resume"
        case _:
            return f"{workflow.state}: {workflow.cause or progress}"


def draw(workflow: WorkflowRecord) -> str:
    """Returns the steps, one per line, each with its state and its parents."""
    lines = [f"workflow {workflow.name} {workflow.id}: {explain_workflow(workflow)}"]
    for index, step in enumerate(workflow.steps[:MAX_DRAWN]):
        lines.append(
            f"  {MARKS.get(outcome_of(workflow, index), '?')} {index:>3} {step.name}{_detail(workflow, index, step)}"
        )
    if len(workflow.steps) > MAX_DRAWN:
        lines.append(f"  … and {len(workflow.steps) - MAX_DRAWN:,} more")
    return "\n".join(lines)


def mermaid(workflow: WorkflowRecord) -> str:
    """Returns the graph as a Mermaid flowchart, coloured by state."""
    lines = ["flowchart TD"]
    for index, step in enumerate(workflow.steps):
        label = step.name.replace('"', "'")
        node = f'[["{label}"]]' if step.items is not None else f'["{label}"]'
        lines.append(f"  s{index}{node}:::{outcome_of(workflow, index)}")
        lines += [f"  s{parent} --> s{index}" for parent in step.after]
        if step.undo is not None:
            lines.append(f'  s{index} -. undo .-> u{index}(["undo {label}"]):::{_undo_outcome(workflow, index)}')
    lines += [
        "  classDef completed fill:#d3f9d8,stroke:#2b8a3e",
        "  classDef failed fill:#ffe3e3,stroke:#c92a2a",
        "  classDef cancelled fill:#e9ecef,stroke:#868e96",
        "  classDef waiting fill:#fff,stroke:#868e96,stroke-dasharray: 4",
    ]
    return "\n".join(lines)


def outcome_of(workflow: WorkflowRecord, index: int) -> str:
    """Returns the outcome of a step, as a job state."""
    outcome = workflow.step_state(index).outcome
    return "cancelled" if outcome == "deleted" else outcome


def _detail(workflow: WorkflowRecord, index: int, step: StepRecord) -> str:
    parts = [outcome_of(workflow, index)]
    if step.after:
        parts.append("after " + ", ".join(map(str, step.after)))
    if step.items is not None and index in workflow.lengths:
        done = sum(state.outcome == "completed" for state in workflow.item_states.get(index, {}).values())
        parts.append(f"{done} of {workflow.lengths[index]} items")
    if step.undo is not None:
        parts.append(f"undo {_undo_outcome(workflow, index)}" if workflow.is_compensating else "can be undone")
    return f"  ({'; '.join(parts)})"


def _undo_outcome(workflow: WorkflowRecord, index: int) -> str:
    state = workflow.undo_states.get(index)
    return "waiting" if state is None else state.outcome
