"""Builders of records for the tests of `core`."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.core.ids import JobRef
from rota.core.job_options import DEFAULT_OPTIONS
from rota.core.job_record import AttemptCounts, JobRecord
from rota.core.state_transitions import JobState
from rota.core.workflow_record_and_decisions import StepRecord, StepState, Undo, WorkflowRecord

#: The server's time in these tests, in ms.
NOW = 1_800_000_000_000
RUN = "000000012"


def a_job(state: JobState = JobState.PENDING, **fields: Any) -> JobRecord:
    """Returns the record of job `mail:welcome`, enqueued a minute before NOW."""
    given: dict[str, Any] = {
        "ref": JobRef("mail", "welcome", RUN),
        "task": "send",
        "arguments": b'["a@b.c"]',
        "options": DEFAULT_OPTIONS,
        "counts": AttemptCounts(),
        "enqueued_at": NOW - 60_000,
    }
    return JobRecord(state=state, **{**given, **fields})


UNDO = Undo("q", 0, "\nundo\n[]", ())


def a_step(index: int, *after: int, undo: Undo | None = None, items: int | None = None) -> StepRecord:
    """Returns step `step<index>` of a workflow; `after` are its parents."""
    return StepRecord(f"w.{index}", "q", f"run{index}", "task", after, f"step{index}", undo, items)


def a_workflow(*steps: StepRecord, outcomes: dict[int, str] | None = None, **fields: Any) -> WorkflowRecord:
    """Returns a running workflow with these outcomes of steps; a `!` after an outcome: the step never started."""
    states = {
        index: StepState(1, outcome.rstrip("!"), 0 if outcome.endswith("!") or outcome == "waiting" else 1)
        for index, outcome in (outcomes or {}).items()
    }
    workflow = WorkflowRecord(
        id="w",
        name="order",
        state="running",
        version="1",
        on_failure="undo",
        resume="",
        limit=0,
        created_at=0,
        ended_at=None,
        cause="",
        steps=list(steps),
        step_states=states,
        undo_states={},
        item_states={},
        lengths={},
        max_payload=2**20,
        is_committed=True,
        is_open=True,
        cancel="",
        is_compensating=False,
    )
    return msgspec.structs.replace(workflow, **fields)
