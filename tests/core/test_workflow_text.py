"""Workflows as text: one sentence, a list of steps, a Mermaid flowchart."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rota.core.workflow_record_and_decisions import StepState
from rota.core.workflow_text import MARKS, draw, explain_workflow, mermaid, outcome_of
from tests.core.records import UNDO, a_step, a_workflow


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"state": "waiting", "limit": 5},
            "waiting: 5 workflows named order are running already; it starts when one of them ends",
        ),
        ({"state": "running"}, "running: 1 of 2 steps done"),
        (
            {"state": "failed", "cause": "step b failed"},
            "failed: step b failed; 1 of 2 steps done; resume it to go on there",
        ),
        ({"state": "undoing", "cause": "step b failed"}, "undoing: step b failed; running steps are being stopped"),
        ({"state": "undoing", "is_compensating": True}, "undoing: it was cancelled; 0 of 1 steps undone"),
        (
            {"state": "undoing", "is_compensating": True, "undo_states": {0: StepState(1, "completed", 1)}},
            "undoing: it was cancelled; 1 of 1 steps undone",
        ),
        (
            {"state": "parked", "undo_states": {0: StepState(1, "failed", 50)}},
            "parked: undoing step0 keeps failing; fix the cause, then resume",
        ),
        ({"state": "undone", "cause": "step b failed"}, "undone: step b failed"),
        ({"state": "completed"}, "completed: 1 of 2 steps done"),
    ],
)
def test_a_workflow_explains_its_state_in_one_sentence(fields: dict[str, Any], sentence: str) -> None:
    workflow = a_workflow(a_step(0, undo=UNDO), a_step(1, 0), outcomes={0: "completed"}, **fields)

    assert explain_workflow(workflow) == sentence


def test_the_list_has_a_line_for_each_step_with_its_outcome_and_its_parents() -> None:
    workflow = a_workflow(
        a_step(0, undo=UNDO), a_step(1, 0), a_step(2, 0, 1), outcomes={0: "completed", 1: "failed", 2: "cancelled!"}
    )

    assert draw(workflow).splitlines() == [
        "workflow order w: running: 1 of 3 steps done",
        "  ✔   0 step0  (completed; can be undone)",
        "  ✘   1 step1  (failed; after 0)",
        "  –   2 step2  (cancelled; after 0, 1)",
    ]


def test_a_step_over_a_list_shows_its_items_once_their_number_is_known() -> None:
    steps = (a_step(0), a_step(1, 0, items=0))
    items = {1: {0: StepState(1, "completed", 1), 1: StepState(2, "failed", 1)}}

    assert "items" not in draw(a_workflow(*steps))
    assert draw(a_workflow(*steps, lengths={1: 3}, item_states=items)).endswith("(waiting; after 0; 1 of 3 items)")


def test_compensations_show_their_outcome_once_they_run() -> None:
    workflow = a_workflow(a_step(0, undo=UNDO), a_step(1, undo=UNDO), is_compensating=True)
    workflow.undo_states[0] = StepState(1, "completed", 1)

    assert [line.rpartition("; ")[2] for line in draw(workflow).splitlines()[1:]] == [
        "undo completed)",
        "undo waiting)",
    ]


def test_a_large_workflow_lists_its_first_steps_only() -> None:
    text = draw(a_workflow(*(a_step(index) for index in range(2_000))))

    assert "… and 1,500 more" in text
    assert len(text.splitlines()) == 502


def test_a_deleted_step_counts_as_cancelled() -> None:
    assert outcome_of(a_workflow(a_step(0), outcomes={0: "deleted"}), 0) == "cancelled"


def test_the_flowchart_has_a_node_for_each_step_and_an_arrow_for_each_dependency() -> None:
    workflow = a_workflow(a_step(0, undo=UNDO), a_step(1, 0, items=0), outcomes={0: "completed", 1: "failed"})

    lines = mermaid(workflow).splitlines()

    assert lines[0] == "flowchart TD"
    assert '  s0["step0"]:::completed' in lines
    assert '  s1[["step1"]]:::failed' in lines, "a step over a list has a double border"
    assert "  s0 --> s1" in lines
    assert '  s0 -. undo .-> u0(["undo step0"]):::waiting' in lines


def test_every_outcome_in_the_flowchart_has_a_colour() -> None:
    outcomes = dict(enumerate(MARKS))
    workflow = a_workflow(*map(a_step, outcomes), outcomes=outcomes)

    chart = mermaid(workflow)

    used = {line.rpartition(":::")[2] for line in chart.splitlines() if ":::" in line}
    defined = {line.split()[1] for line in chart.splitlines() if "classDef" in line}
    assert used <= defined


def test_quotes_in_a_name_do_not_break_the_flowchart() -> None:
    quoted = msgspec.structs.replace(a_step(0), name='say "hi"')

    assert "s0[\"say 'hi'\"]" in mermaid(a_workflow(quoted))
