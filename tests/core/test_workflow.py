"""The decisions about a workflow, from the states of its steps: pure functions, tested without a server."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.workflow_record_and_decisions import (
    ENDED,
    STUCK,
    StepRecord,
    StepResult,
    StepState,
    Undo,
    WorkflowDecision,
    WorkflowRecord,
    compensations,
    decide,
    find_results,
    undo_order,
    unended_steps,
    why_not_resumable,
)
from tests.core.records import UNDO, a_step, a_workflow

UNSURE = Undo("q", 0, "\nundo\n[]", (), True)


def test_a_workflow_that_is_committed_only_in_part_is_committed_first() -> None:
    assert decide(a_workflow(a_step(0), is_committed=False)) == WorkflowDecision(commit=True, fields={"committed": "1"})


def test_while_steps_succeed_there_is_nothing_to_decide() -> None:
    assert decide(a_workflow(a_step(0), a_step(1, 0), outcomes={0: "completed"})) is None


def test_a_limited_workflow_opens_its_gate_when_it_may_start() -> None:
    assert decide(a_workflow(a_step(0), is_open=False, state="waiting")) is None
    opened = decide(a_workflow(a_step(0), is_open=False))
    assert opened is not None
    assert opened.open_gate


def test_a_workflow_whose_steps_have_completed_is_completed() -> None:
    assert decide(a_workflow(a_step(0), outcomes={0: "completed"})) == WorkflowDecision(state="completed")


def test_a_failure_is_undone_or_held_as_was_chosen() -> None:
    failed = {0: "completed", 1: "failed"}
    undone = decide(a_workflow(a_step(0), a_step(1, 0), outcomes=failed))
    held = decide(a_workflow(a_step(0), a_step(1, 0), outcomes=failed, on_failure="hold"))

    assert undone is not None
    assert undone.state == "undoing"
    assert held is not None
    assert held.state == "failed"
    assert held.fields["cause"] == "step step1 (q:w.1) failed"


def test_the_cause_is_the_step_that_failed_and_not_one_that_was_cancelled_for_it() -> None:
    workflow = a_workflow(a_step(0), a_step(1, 0), a_step(2), outcomes={1: "cancelled!", 0: "failed", 2: "cancelled"})
    decision = decide(workflow)

    assert decision is not None
    assert decision.fields["cause"] == "step step0 (q:w.0) failed"


def test_a_held_workflow_counts_towards_the_limit_until_its_other_branches_have_ended() -> None:
    going = a_workflow(a_step(0), a_step(1), outcomes={0: "failed"}, on_failure="hold", limit=1)
    decision = decide(going)
    assert decision is not None
    assert (decision.state, decision.fields["busy"]) == ("failed", "1")

    held = msgspec.structs.replace(going, state="failed", is_busy=True)
    assert decide(held) is None
    ended = msgspec.structs.replace(held, step_states={0: StepState(1, "failed", 1), 1: StepState(2, "completed", 1)})
    decision = decide(ended)
    assert decision is not None
    assert (decision.state, decision.fields["busy"]) == ("failed", "")


def test_resuming_redrives_what_failed_and_nothing_else() -> None:
    workflow = a_workflow(
        a_step(0),
        a_step(1, 0),
        a_step(2, 1),
        outcomes={0: "completed", 1: "failed", 2: "cancelled!"},
        on_failure="hold",
        resuming={"s1": 1},
    )

    assert workflow.failed_parts == {"s1": 1}
    assert decide(workflow) == WorkflowDecision(redrive=["s1"], fields={"resuming": ""})
    failed_again = msgspec.structs.replace(workflow, step_states={**workflow.step_states, 1: StepState(3, "failed", 2)})
    assert decide(failed_again) == WorkflowDecision(redrive=[], fields={"resuming": ""})


def test_a_failed_step_that_was_redriven_by_hand_lets_a_held_workflow_go_on() -> None:
    decision = decide(a_workflow(a_step(0), outcomes={0: "waiting"}, state="failed", on_failure="hold"))

    assert decision == WorkflowDecision(state="running", fields={"cause": "", "busy": ""})


@pytest.mark.parametrize("state", ["running", "failed"])
def test_a_workflow_that_completes_after_a_failure_has_no_cause(state: str) -> None:
    workflow = a_workflow(a_step(0), outcomes={0: "completed"}, state=state, on_failure="hold", cause="step0 failed")

    assert decide(workflow) == WorkflowDecision(state="completed", fields={"cause": "", "busy": ""})


@pytest.mark.parametrize("outcome", ["cancelled", "deleted"])
def test_what_was_cancelled_or_deleted_by_hand_cannot_be_resumed(outcome: str) -> None:
    workflow = a_workflow(
        a_step(0), a_step(1, 0), outcomes={0: outcome, 1: "cancelled!"}, on_failure="hold", state="failed"
    )

    assert why_not_resumable(workflow) == f"step step0 (q:w.0) was {outcome}"
    assert why_not_resumable(a_workflow(a_step(0), outcomes={0: "failed"}, on_failure="hold", state="failed")) == ""


def test_what_runs_is_stopped_before_anything_is_undone() -> None:
    workflow = a_workflow(
        a_step(0, undo=UNDO), a_step(1, 0), a_step(2, 0), outcomes={0: "completed", 1: "failed"}, state="undoing"
    )
    decision = decide(workflow)

    assert decision is not None
    assert (decision.cancel, decision.compensate) == ([2], [])
    stopped = msgspec.structs.replace(workflow, step_states={**workflow.step_states, 2: StepState(3, "cancelled", 1)})
    decision = decide(stopped)
    assert decision is not None
    assert (decision.cancel, decision.compensate) == ([], [0])


def test_steps_that_succeeded_are_undone_and_unsure_ones_that_say_so() -> None:
    steps = [a_step(0, undo=UNDO), a_step(1, undo=UNDO), a_step(2, undo=UNSURE), a_step(3, undo=UNSURE), a_step(4)]
    outcomes = {0: "completed", 1: "failed", 2: "failed", 3: "cancelled!", 4: "completed"}

    assert compensations(a_workflow(*steps, outcomes=outcomes)) == [0, 2]


def test_nothing_to_undo_ends_it_at_once() -> None:
    workflow = a_workflow(a_step(0), outcomes={0: "failed"}, state="undoing")

    assert decide(workflow) == WorkflowDecision(state="undone", release_jobs=True)
    assert decide(msgspec.structs.replace(workflow, cancel="undo")) == WorkflowDecision(
        state="cancelled", release_jobs=True
    )


def test_an_undo_that_fails_for_good_parks_it_and_a_redrive_brings_it_back() -> None:
    base = a_workflow(
        a_step(0, undo=UNDO),
        a_step(1, 0),
        outcomes={0: "completed", 1: "failed"},
        state="undoing",
        is_compensating=True,
    )
    failed = msgspec.structs.replace(base, undo_states={0: StepState(1, "failed", 9)})
    parked = msgspec.structs.replace(failed, state="parked")
    redriven = msgspec.structs.replace(parked, undo_states={0: StepState(2, "waiting", 9)})
    done = msgspec.structs.replace(redriven, undo_states={0: StepState(3, "completed", 10)}, state="undoing")

    assert decide(base) is None
    assert decide(failed) == WorkflowDecision(state="parked")
    assert decide(parked) is None
    assert decide(redriven) == WorkflowDecision(state="undoing")
    assert decide(done) == WorkflowDecision(state="undone", release_jobs=True)
    assert decide(msgspec.structs.replace(parked, cancel="leave")) == WorkflowDecision(
        state="cancelled", release_jobs=True
    )


def test_cancel_undoes_unless_it_says_leave() -> None:
    workflow = a_workflow(a_step(0, undo=UNDO), a_step(1, 0), outcomes={0: "completed"}, cancel="undo")
    assert decide(workflow) == WorkflowDecision(state="undoing")

    stopped = a_workflow(
        a_step(0, undo=UNDO), a_step(1, 0), outcomes={0: "completed", 1: "cancelled!"}, state="undoing"
    )
    undone = decide(msgspec.structs.replace(stopped, cancel="undo"))
    assert undone is not None
    assert undone.compensate == [0]
    left = decide(msgspec.structs.replace(stopped, cancel="leave"))
    assert left == WorkflowDecision(state="cancelled", release_jobs=True)


@pytest.mark.parametrize("state", ENDED)
def test_nothing_is_decided_about_a_workflow_that_has_ended(state: str) -> None:
    assert decide(a_workflow(a_step(0), outcomes={0: "failed"}, state=state, cancel="undo", is_committed=False)) is None


# --- lists -------------------------------------------------------------------------------------------------------


def over_a_list(**fields: Any) -> WorkflowRecord:
    return a_workflow(a_step(0), a_step(1), a_step(2, 0, 1, items=0), a_step(3, 2), on_failure="hold", **fields)


def test_a_list_is_expanded_when_all_parents_of_the_step_have_succeeded() -> None:
    assert decide(over_a_list(outcomes={0: "completed"})) is None
    assert decide(over_a_list(outcomes={0: "completed", 1: "completed"})) == WorkflowDecision(expand=[2])


def test_a_step_over_a_list_gets_its_outcome_from_its_items() -> None:
    outcomes = {0: "completed", 1: "completed"}
    none = over_a_list(outcomes=outcomes, lengths={2: 0})
    some = over_a_list(outcomes=outcomes, lengths={2: 2}, item_states={2: {0: StepState(1, "completed", 1)}})
    all_done = msgspec.structs.replace(some, item_states={2: {n: StepState(1, "completed", 1) for n in range(2)}})
    one_bad = msgspec.structs.replace(some, item_states={2: {0: StepState(1, "failed", 1)}})

    assert decide(none) == WorkflowDecision(step_outcomes=[(2, "completed")])
    assert decide(some) is None
    assert decide(all_done) == WorkflowDecision(step_outcomes=[(2, "completed")])
    assert decide(one_bad) == WorkflowDecision(step_outcomes=[(2, "failed")])


def test_a_result_that_is_no_list_fails_its_step_with_a_clear_cause() -> None:
    outcomes = {0: "completed", 1: "completed"}
    assert decide(over_a_list(outcomes=outcomes, lengths={2: -1})) == WorkflowDecision(step_outcomes=[(2, "failed")])
    told = over_a_list(outcomes={**outcomes, 2: "failed", 3: "cancelled!"}, lengths={2: -1})
    decision = decide(told)
    assert decision is not None
    assert "did not return a list" in decision.fields["cause"]
    assert "did not return a list" in why_not_resumable(told)


def test_a_list_whose_source_failed_is_cancelled_and_comes_back_with_it() -> None:
    assert decide(over_a_list(outcomes={0: "failed"})) == WorkflowDecision(step_outcomes=[(2, "cancelled")])
    assert decide(over_a_list(outcomes={0: "waiting", 2: "cancelled!"})) == WorkflowDecision(
        step_outcomes=[(2, "waiting")]
    )


def test_a_list_that_became_known_too_late_is_not_expanded() -> None:
    workflow = over_a_list(outcomes={0: "completed", 1: "completed", 3: "cancelled!"}, state="undoing", cancel="undo")

    assert decide(workflow) == WorkflowDecision(step_outcomes=[(2, "cancelled")])


def test_items_that_still_run_are_stopped_first() -> None:
    workflow = over_a_list(
        outcomes={0: "completed", 1: "completed", 3: "cancelled!"},
        state="undoing",
        cancel="undo",
        lengths={2: 2},
        item_states={2: {0: StepState(1, "completed", 1)}},
    )

    assert unended_steps(workflow) == [2]


# --- order -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("outcome", "state"), [("completed", "undone"), ("failed", "parked")])
def test_compensations_that_ended_before_they_were_recorded_are_not_waited_for(outcome: str, state: str) -> None:
    """Their news came while they were still being made, and comes only once."""
    workflow = a_workflow(
        a_step(0, undo=UNDO),
        a_step(1, 0),
        outcomes={0: "completed", 1: "failed"},
        state="undoing",
        undo_states={0: StepState(1, outcome, 1)},
    )

    assert decide(workflow) == WorkflowDecision(fields={"compensating": "1"}), "and it is looked at again at once"
    ended = decide(msgspec.structs.replace(workflow, is_compensating=True))
    assert ended is not None
    assert ended.state == state


def test_compensations_come_in_reverse_topological_order() -> None:
    """A diamond, of which the middle has nothing to undo on one side."""
    steps = [a_step(0, undo=UNDO), a_step(1, 0, undo=UNDO), a_step(2, 0), a_step(3, 1, 2, undo=UNDO)]

    assert undo_order(steps, [0, 1, 3]) == {3: [], 1: [3], 0: [1, 3]}


@st.composite
def graphs(draw: st.DrawFn) -> list[StepRecord]:
    steps: list[StepRecord] = []
    for index in range(draw(st.integers(1, 12))):
        after = draw(st.sets(st.integers(0, index - 1), max_size=3)) if index else set[int]()
        undo = draw(st.sampled_from([None, UNDO, UNSURE]))
        steps.append(a_step(index, *sorted(after), undo=undo))
    return steps


def _reaches(steps: list[StepRecord], start: int, goal: int) -> bool:
    return goal == start or any(_reaches(steps, start, parent) for parent in steps[goal].after)


@given(graphs(), st.data())
def test_no_step_is_undone_before_those_after_it(steps: list[StepRecord], data: st.DataObject) -> None:
    wanted = sorted(data.draw(st.sets(st.sampled_from(range(len(steps))))))
    order = undo_order(steps, wanted)

    assert sorted(order) == wanted
    made: set[int] = set()
    before: dict[int, set[int]] = {}
    for index, parents in order.items():
        assert set(parents) <= made, "whatever it waits for was made before it"
        made.add(index)
        before[index] = set(parents).union(*(before[parent] for parent in parents))
    for index in wanted:
        later = {other for other in wanted if other != index and _reaches(steps, index, other)}
        assert before[index] == later, "it waits for all that came after its step, and for nothing else"


@given(graphs(), st.sampled_from(["undo", "hold"]), st.sampled_from(["", "undo", "leave"]), st.data())
def test_decisions_come_to_an_end_whatever_happens(
    steps: list[StepRecord], on_failure: str, cancel: str, data: st.DataObject
) -> None:
    """Plays a whole life: jobs end in any order and in any way, and whatever is decided is done."""
    workflow = a_workflow(*steps, on_failure=on_failure, is_committed=False)
    number, log = 0, list[str]()
    made: dict[int, list[int]] = {}

    def news(kind: dict[int, StepState], index: int, outcome: str, attempts: int) -> dict[int, StepState]:
        nonlocal number
        number += 1
        return {**kind, index: StepState(number, outcome, attempts)}

    def tell(index: int, outcome: str, attempts: int) -> None:
        nonlocal workflow
        workflow = msgspec.structs.replace(workflow, step_states=news(workflow.step_states, index, outcome, attempts))

    for _ in range(400):
        decision = decide(workflow)
        if decision is not None:
            assert decision != WorkflowDecision(), "a decision does something"
            for index in decision.cancel:
                tell(index, "cancelled", data.draw(st.sampled_from([0, 1])))
            if decision.compensate:
                assert not unended_steps(workflow), "nothing runs any more"
                made = undo_order(steps, decision.compensate)
            fields = decision.fields
            workflow = msgspec.structs.replace(
                workflow,
                state=decision.state or workflow.state,
                is_committed=workflow.is_committed or decision.commit,
                is_compensating=workflow.is_compensating or fields.get("compensating") == "1",
                is_busy=fields.get("busy", "1" if workflow.is_busy else "") == "1",
            )
            continue
        ready = [
            index
            for index, one in enumerate(steps)
            if not workflow.step_state(index).has_ended
            and all(workflow.step_state(p).outcome == "completed" for p in one.after)
        ]
        to_cancel = [
            index
            for index, one in enumerate(steps)
            if not workflow.step_state(index).has_ended
            and any(workflow.step_state(p).is_unsuccessful for p in one.after)
        ]
        undoable = [
            index
            for index, parents in made.items()
            if index not in workflow.undo_states
            and all(workflow.undo_states.get(p, StepState()).outcome == "completed" for p in parents)
        ]
        if to_cancel:
            tell(to_cancel[0], "cancelled", 0)
        elif ready and workflow.state == "running":
            if cancel and data.draw(st.booleans()):
                workflow = msgspec.structs.replace(workflow, cancel=cancel)
            else:
                index = data.draw(st.sampled_from(ready))
                tell(index, data.draw(st.sampled_from(["completed", "completed", "failed", "cancelled", "deleted"])), 1)
        elif ready:
            tell(ready[0], "completed", 1)  # a sibling of what is held
        elif undoable:
            index = data.draw(st.sampled_from(undoable))
            workflow = msgspec.structs.replace(workflow, undo_states=news(workflow.undo_states, index, "completed", 1))
            log.append(str(index))
        else:
            break
    else:
        raise AssertionError("it never comes to an end")

    assert workflow.state in (*ENDED, *STUCK)
    if workflow.state == "completed":
        assert workflow.done == len(steps)
    elif workflow.state in ("undone", "cancelled"):
        expected = set() if workflow.cancel == "leave" else set(compensations(workflow))
        assert {int(index) for index in log} == expected
        assert not unended_steps(workflow)
    else:
        assert workflow.unsuccessful_steps


# --- results of steps --------------------------------------------------------------------------------------------


def test_results_are_found_anywhere_in_a_value() -> None:
    one, two = StepResult(0, "a"), StepResult(1, "b")

    assert find_results({"x": [one, {"y": (two,)}], "z": 1}) == [one, two]
    assert find_results("nothing") == []
