"""Workflows as a person reads them: in a sentence, as a text picture, and as a Mermaid flowchart."""

from __future__ import annotations

from typing import Final

from rota.core.workflow import Flow, Step, compensations

MARKS: Final = {"completed": "✔", "failed": "✘", "cancelled": "–", "deleted": "–", "waiting": "·"}
#: A picture of more steps than this shows the first ones only.
MAX_DRAWN: Final = 500


def explain_flow(flow: Flow) -> str:
    """How a workflow stands, why, and what happens next."""
    progress = f"{flow.done} of {len(flow.steps)} steps done"
    match flow.state:
        case "waiting":
            return (
                f"waiting: {flow.limit} workflows called {flow.name} advance already; it starts when one of them ends"
            )
        case "running":
            return f"running: {progress}"
        case "failed":
            return f"failed: {flow.cause}; {progress}; resume it to go on there"
        case "undoing":
            wanted = compensations(flow)
            undone = sum(stand.outcome == "completed" for stand in flow.undos.values())
            why = flow.cause or "it was cancelled"
            what = (
                f"{undone} of {len(wanted)} steps undone" if flow.is_compensating else "running steps are being stopped"
            )
            return f"undoing: {why}; {what}"
        case "parked":
            failed = [flow.steps[place].name for place, stand in flow.undos.items() if stand.outcome == "failed"]
            return f"parked: undoing {', '.join(failed)} keeps failing; mend it, then resume"
        case _:
            return f"{flow.state}: {flow.cause or progress}"


def draw(flow: Flow) -> str:
    """The graph, level by level, with the state of every step and what it comes after."""
    lines = [f"workflow {flow.name} {flow.id}: {explain_flow(flow)}"]
    for place, step in enumerate(flow.steps[:MAX_DRAWN]):
        lines.append(f"  {MARKS.get(outcome_of(flow, place), '?')} {place:>3} {step.name}{_detail(flow, place, step)}")
    if len(flow.steps) > MAX_DRAWN:
        lines.append(f"  … and {len(flow.steps) - MAX_DRAWN:,} more")
    return "\n".join(lines)


def mermaid(flow: Flow) -> str:
    """The graph as a Mermaid flowchart, coloured by state."""
    lines = ["flowchart TD"]
    for place, step in enumerate(flow.steps):
        label = step.name.replace('"', "'")
        shape = f'[["{label}"]]' if step.items is not None else f'["{label}"]'
        lines.append(f"  s{place}{shape}:::{outcome_of(flow, place)}")
        lines += [f"  s{parent} --> s{place}" for parent in step.after]
        if step.undo is not None:
            lines.append(f'  s{place} -. undo .-> u{place}(["undo {label}"]):::{_undo_outcome(flow, place)}')
    lines += [
        "  classDef completed fill:#d3f9d8,stroke:#2b8a3e",
        "  classDef failed fill:#ffe3e3,stroke:#c92a2a",
        "  classDef cancelled fill:#e9ecef,stroke:#868e96",
        "  classDef waiting fill:#fff,stroke:#868e96,stroke-dasharray: 4",
    ]
    return "\n".join(lines)


def outcome_of(flow: Flow, place: int) -> str:
    """How a step stands, in the words of the states."""
    outcome = flow.stand(place).outcome
    return "cancelled" if outcome == "deleted" else outcome


def _detail(flow: Flow, place: int, step: Step) -> str:
    parts = [outcome_of(flow, place)]
    if step.after:
        parts.append("after " + ", ".join(map(str, step.after)))
    if step.items is not None and place in flow.lengths:
        done = sum(stand.outcome == "completed" for stand in flow.items.get(place, {}).values())
        parts.append(f"{done} of {flow.lengths[place]} items")
    if step.undo is not None:
        parts.append(f"undo {_undo_outcome(flow, place)}" if flow.is_compensating else "can be undone")
    return f"  ({'; '.join(parts)})"


def _undo_outcome(flow: Flow, place: int) -> str:
    stand = flow.undos.get(place)
    return "waiting" if stand is None else stand.outcome
