"""What follows from how the steps of a workflow stand: decided without a server."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.picture import draw, explain_flow, mermaid
from rota.core.workflow import (
    ENDED,
    STUCK,
    Decision,
    Flow,
    Stand,
    Step,
    StepResult,
    Undo,
    beyond_repair,
    compensations,
    decide,
    find_results,
    undo_order,
    unended,
)

UNDO = Undo("q", 0, "\nundo\n[]", ())
UNSURE = Undo("q", 0, "\nundo\n[]", (), True)


def step(place: int, *after: int, undo: Undo | None = None, items: int | None = None) -> Step:
    return Step(f"w.{place}", "q", f"run{place}", "task", after, f"step{place}", undo, items)


def make(*steps: Step, stands: dict[int, str] | None = None, **fields: Any) -> Flow:
    """A running workflow whose steps stand as said; `!` behind a word: it was never started."""
    known = {
        place: Stand(1, word.rstrip("!"), 0 if word.endswith("!") or word == "waiting" else 1)
        for place, word in (stands or {}).items()
    }
    flow = Flow(
        id="w", name="order", state="running", version="1", on_failure="undo", resume="", limit=0, created_at=0,
        ended_at=None, cause="", steps=list(steps), stands=known, undos={}, items={}, lengths={}, results={},
        is_committed=True, is_open=True, cancel="", is_compensating=False,
    )  # fmt: skip
    return msgspec.structs.replace(flow, **fields)


def test_what_is_committed_only_half_is_committed_first() -> None:
    assert decide(make(step(0), is_committed=False)) == Decision(commit=True, fields={"committed": "1"})


def test_while_all_goes_well_nothing_is_decided() -> None:
    assert decide(make(step(0), step(1, 0), stands={0: "completed"})) is None


def test_a_workflow_with_a_limit_opens_its_gate_when_it_has_a_place() -> None:
    assert decide(make(step(0), is_open=False, state="waiting")) is None
    opened = decide(make(step(0), is_open=False))
    assert opened is not None
    assert opened.open_gate


def test_one_that_finished_while_it_waited_for_a_place_is_completed() -> None:
    assert decide(make(step(0), stands={0: "completed"})) == Decision(state="completed")


def test_a_failure_is_undone_or_held_as_was_chosen() -> None:
    failed = {0: "completed", 1: "failed"}
    undone = decide(make(step(0), step(1, 0), stands=failed))
    held = decide(make(step(0), step(1, 0), stands=failed, on_failure="hold"))

    assert undone is not None
    assert undone.state == "undoing"
    assert held is not None
    assert held.state == "failed"
    assert held.fields["cause"] == "step step1 (q:w.1) failed"


def test_the_cause_is_the_step_that_failed_and_not_one_that_was_cancelled_for_it() -> None:
    flow = make(step(0), step(1, 0), step(2), stands={1: "cancelled!", 0: "failed", 2: "cancelled"})
    decision = decide(flow)

    assert decision is not None
    assert decision.fields["cause"] == "step step0 (q:w.0) failed"


def test_a_held_workflow_keeps_its_place_until_its_other_branches_have_ended() -> None:
    going = make(step(0), step(1), stands={0: "failed"}, on_failure="hold", limit=1)
    decision = decide(going)
    assert decision is not None
    assert (decision.state, decision.fields["busy"]) == ("failed", "1")

    held = msgspec.structs.replace(going, state="failed", is_busy=True)
    assert decide(held) is None
    ended = msgspec.structs.replace(held, stands={0: Stand(1, "failed", 1), 1: Stand(2, "completed", 1)})
    decision = decide(ended)
    assert decision is not None
    assert (decision.state, decision.fields["busy"]) == ("failed", "")


def test_resuming_redrives_what_failed_and_nothing_else() -> None:
    flow = make(step(0), step(1, 0), step(2, 1), stands={0: "completed", 1: "failed", 2: "cancelled!"},
                on_failure="hold", resuming={"s1": 1})  # fmt: skip

    assert flow.failed == {"s1": 1}
    assert decide(flow) == Decision(redrive=["s1"], fields={"resuming": ""})
    failed_again = msgspec.structs.replace(flow, stands={**flow.stands, 1: Stand(3, "failed", 2)})
    assert decide(failed_again) == Decision(redrive=[], fields={"resuming": ""})


def test_a_failed_step_that_was_redriven_by_hand_lets_a_held_workflow_go_on() -> None:
    decision = decide(make(step(0), stands={0: "waiting"}, state="failed", on_failure="hold"))

    assert decision == Decision(state="running")


@pytest.mark.parametrize("outcome", ["cancelled", "deleted"])
def test_what_was_cancelled_or_deleted_by_hand_cannot_be_resumed(outcome: str) -> None:
    flow = make(step(0), step(1, 0), stands={0: outcome, 1: "cancelled!"}, on_failure="hold", state="failed")

    assert beyond_repair(flow) == f"step step0 (q:w.0) was {outcome}"
    assert beyond_repair(make(step(0), stands={0: "failed"}, on_failure="hold", state="failed")) == ""


def test_what_runs_is_stopped_before_anything_is_undone() -> None:
    flow = make(step(0, undo=UNDO), step(1, 0), step(2, 0), stands={0: "completed", 1: "failed"}, state="undoing")
    decision = decide(flow)

    assert decision is not None
    assert (decision.cancel, decision.compensate) == ([2], [])
    stopped = msgspec.structs.replace(flow, stands={**flow.stands, 2: Stand(3, "cancelled", 1)})
    decision = decide(stopped)
    assert decision is not None
    assert (decision.cancel, decision.compensate) == ([], [0])


def test_steps_that_succeeded_are_undone_and_unsure_ones_that_say_so() -> None:
    steps = [step(0, undo=UNDO), step(1, undo=UNDO), step(2, undo=UNSURE), step(3, undo=UNSURE), step(4)]
    stands = {0: "completed", 1: "failed", 2: "failed", 3: "cancelled!", 4: "completed"}

    assert compensations(make(*steps, stands=stands)) == [0, 2]


def test_nothing_to_undo_ends_it_at_once() -> None:
    flow = make(step(0), stands={0: "failed"}, state="undoing")

    assert decide(flow) == Decision(state="undone", let_go=True)
    assert decide(msgspec.structs.replace(flow, cancel="undo")) == Decision(state="cancelled", let_go=True)


def test_an_undo_that_fails_for_good_parks_it_and_a_redrive_brings_it_back() -> None:
    base = make(step(0, undo=UNDO), step(1, 0), stands={0: "completed", 1: "failed"}, state="undoing",
                is_compensating=True)  # fmt: skip
    failed = msgspec.structs.replace(base, undos={0: Stand(1, "failed", 9)})
    parked = msgspec.structs.replace(failed, state="parked")
    redriven = msgspec.structs.replace(parked, undos={0: Stand(2, "waiting", 9)})
    done = msgspec.structs.replace(redriven, undos={0: Stand(3, "completed", 10)}, state="undoing")

    assert decide(base) is None
    assert decide(failed) == Decision(state="parked")
    assert decide(parked) is None
    assert decide(redriven) == Decision(state="undoing")
    assert decide(done) == Decision(state="undone", let_go=True)
    assert decide(msgspec.structs.replace(parked, cancel="leave")) == Decision(state="cancelled", let_go=True)


def test_cancel_undoes_unless_told_otherwise() -> None:
    flow = make(step(0, undo=UNDO), step(1, 0), stands={0: "completed"}, cancel="undo")
    assert decide(flow) == Decision(state="undoing")

    stopped = make(step(0, undo=UNDO), step(1, 0), stands={0: "completed", 1: "cancelled!"}, state="undoing")
    undone = decide(msgspec.structs.replace(stopped, cancel="undo"))
    assert undone is not None
    assert undone.compensate == [0]
    left = decide(msgspec.structs.replace(stopped, cancel="leave"))
    assert left == Decision(state="cancelled", let_go=True)


@pytest.mark.parametrize("state", ENDED)
def test_nothing_is_decided_about_what_is_over(state: str) -> None:
    assert decide(make(step(0), stands={0: "failed"}, state=state, cancel="undo", is_committed=False)) is None


# --- lists -------------------------------------------------------------------------------------------------------


def over_a_list(**fields: Any) -> Flow:
    return make(step(0), step(1), step(2, 0, 1, items=0), step(3, 2), on_failure="hold", **fields)


def test_a_list_is_gone_through_when_all_that_the_step_comes_after_has_succeeded() -> None:
    assert decide(over_a_list(stands={0: "completed"})) is None
    assert decide(over_a_list(stands={0: "completed", 1: "completed"})) == Decision(expand=[2])


def test_a_step_over_a_list_speaks_through_its_workflow() -> None:
    stands = {0: "completed", 1: "completed"}
    none = over_a_list(stands=stands, lengths={2: 0})
    some = over_a_list(stands=stands, lengths={2: 2}, items={2: {0: Stand(1, "completed", 1)}})
    all_done = msgspec.structs.replace(some, items={2: {n: Stand(1, "completed", 1) for n in range(2)}})
    one_bad = msgspec.structs.replace(some, items={2: {0: Stand(1, "failed", 1)}})

    assert decide(none) == Decision(announce=[(2, "completed")])
    assert decide(some) is None
    assert decide(all_done) == Decision(announce=[(2, "completed")])
    assert decide(one_bad) == Decision(announce=[(2, "failed")])


def test_what_is_no_list_fails_its_step_with_a_clear_word() -> None:
    stands = {0: "completed", 1: "completed"}
    assert decide(over_a_list(stands=stands, lengths={2: -1})) == Decision(announce=[(2, "failed")])
    told = over_a_list(stands={**stands, 2: "failed", 3: "cancelled!"}, lengths={2: -1})
    decision = decide(told)
    assert decision is not None
    assert "did not return a list" in decision.fields["cause"]
    assert "did not return a list" in beyond_repair(told)


def test_a_list_whose_source_failed_is_cancelled_and_comes_back_with_it() -> None:
    assert decide(over_a_list(stands={0: "failed"})) == Decision(announce=[(2, "cancelled")])
    assert decide(over_a_list(stands={0: "waiting", 2: "cancelled!"})) == Decision(announce=[(2, "waiting")])


def test_a_list_that_became_known_too_late_is_not_gone_through() -> None:
    flow = over_a_list(stands={0: "completed", 1: "completed", 3: "cancelled!"}, state="undoing", cancel="undo")

    assert decide(flow) == Decision(announce=[(2, "cancelled")])


def test_items_that_still_run_are_stopped_first() -> None:
    flow = over_a_list(stands={0: "completed", 1: "completed", 3: "cancelled!"}, state="undoing", cancel="undo",
                       lengths={2: 2}, items={2: {0: Stand(1, "completed", 1)}})  # fmt: skip

    assert unended(flow) == [2]


# --- order -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("outcome", "state"), [("completed", "undone"), ("failed", "parked")])
def test_compensations_that_were_quicker_than_their_maker_are_not_waited_for(outcome: str, state: str) -> None:
    """Their news came while they were still being made, and comes only once."""
    flow = make(
        step(0, undo=UNDO), step(1, 0), stands={0: "completed", 1: "failed"}, state="undoing",
        undos={0: Stand(1, outcome, 1)},
    )  # fmt: skip

    assert decide(flow) == Decision(fields={"compensating": "1"}), "and it is looked at again at once"
    ended = decide(msgspec.structs.replace(flow, is_compensating=True))
    assert ended is not None
    assert ended.state == state


def test_compensations_come_in_reverse_topological_order() -> None:
    """A diamond, of which the middle has nothing to undo on one side."""
    steps = [step(0, undo=UNDO), step(1, 0, undo=UNDO), step(2, 0), step(3, 1, 2, undo=UNDO)]

    assert undo_order(steps, [0, 1, 3]) == {3: [], 1: [3], 0: [1, 3]}


@st.composite
def graphs(draw: st.DrawFn) -> list[Step]:
    steps: list[Step] = []
    for place in range(draw(st.integers(1, 12))):
        after = draw(st.sets(st.integers(0, place - 1), max_size=3)) if place else set[int]()
        undo = draw(st.sampled_from([None, UNDO, UNSURE]))
        steps.append(step(place, *sorted(after), undo=undo))
    return steps


def _reaches(steps: list[Step], start: int, goal: int) -> bool:
    return goal == start or any(_reaches(steps, start, parent) for parent in steps[goal].after)


@given(graphs(), st.data())
def test_no_step_is_undone_before_those_after_it(steps: list[Step], data: st.DataObject) -> None:
    wanted = sorted(data.draw(st.sets(st.sampled_from(range(len(steps))))))
    order = undo_order(steps, wanted)

    assert sorted(order) == wanted
    made: set[int] = set()
    before: dict[int, set[int]] = {}
    for place, parents in order.items():
        assert set(parents) <= made, "whatever it waits for was made before it"
        made.add(place)
        before[place] = set(parents).union(*(before[parent] for parent in parents))
    for place in wanted:
        later = {other for other in wanted if other != place and _reaches(steps, place, other)}
        assert before[place] == later, "it waits for all that came after its step, and for nothing else"


@given(graphs(), st.sampled_from(["undo", "hold"]), st.sampled_from(["", "undo", "leave"]), st.data())
def test_decisions_come_to_an_end_whatever_happens(
    steps: list[Step], on_failure: str, cancel: str, data: st.DataObject
) -> None:
    """Plays a whole life: jobs end in any order and in any way, and whatever is decided is done."""
    flow = make(*steps, on_failure=on_failure, is_committed=False)
    number, log = 0, list[str]()
    made: dict[int, list[int]] = {}

    def news(kind: dict[int, Stand], place: int, outcome: str, attempts: int) -> dict[int, Stand]:
        nonlocal number
        number += 1
        return {**kind, place: Stand(number, outcome, attempts)}

    def tell(place: int, outcome: str, attempts: int) -> None:
        nonlocal flow
        flow = msgspec.structs.replace(flow, stands=news(flow.stands, place, outcome, attempts))

    for _ in range(400):
        decision = decide(flow)
        if decision is not None:
            assert decision != Decision(), "a decision does something"
            for place in decision.cancel:
                tell(place, "cancelled", data.draw(st.sampled_from([0, 1])))
            if decision.compensate:
                assert not unended(flow), "nothing runs any more"
                made = undo_order(steps, decision.compensate)
            fields = decision.fields
            flow = msgspec.structs.replace(
                flow,
                state=decision.state or flow.state,
                is_committed=flow.is_committed or decision.commit,
                is_compensating=flow.is_compensating or fields.get("compensating") == "1",
                is_busy=fields.get("busy", "1" if flow.is_busy else "") == "1",
            )
            continue
        ready = [
            place
            for place, one in enumerate(steps)
            if not flow.stand(place).has_ended and all(flow.stand(p).outcome == "completed" for p in one.after)
        ]
        doomed = [
            place
            for place, one in enumerate(steps)
            if not flow.stand(place).has_ended and any(flow.stand(p).is_bad for p in one.after)
        ]
        undoable = [
            place
            for place, parents in made.items()
            if place not in flow.undos and all(flow.undos.get(p, Stand()).outcome == "completed" for p in parents)
        ]
        if doomed:
            tell(doomed[0], "cancelled", 0)
        elif ready and flow.state == "running":
            if cancel and data.draw(st.booleans()):
                flow = msgspec.structs.replace(flow, cancel=cancel)
            else:
                place = data.draw(st.sampled_from(ready))
                tell(place, data.draw(st.sampled_from(["completed", "completed", "failed", "cancelled", "deleted"])), 1)
        elif ready:
            tell(ready[0], "completed", 1)  # a sibling of what is held
        elif undoable:
            place = data.draw(st.sampled_from(undoable))
            flow = msgspec.structs.replace(flow, undos=news(flow.undos, place, "completed", 1))
            log.append(str(place))
        else:
            break
    else:
        raise AssertionError("it never comes to an end")

    assert flow.state in (*ENDED, *STUCK)
    if flow.state == "completed":
        assert flow.done == len(steps)
    elif flow.state in ("undone", "cancelled"):
        expected = set() if flow.cancel == "leave" else set(compensations(flow))
        assert {int(place) for place in log} == expected
        assert not unended(flow)
    else:
        assert flow.bad


# --- results that are not there yet, and pictures ----------------------------------------------------------------


def test_results_are_found_wherever_they_stand() -> None:
    one, two = StepResult(0, "a"), StepResult(1, "b")

    assert find_results({"x": [one, {"y": (two,)}], "z": 1}) == [one, two]
    assert find_results("nothing") == []


def test_pictures_show_every_step_and_how_it_stands() -> None:
    flow = make(step(0, undo=UNDO), step(1, 0), step(2, 1, items=1), stands={0: "completed", 1: "failed"}, cause="why")

    text = draw(flow)
    assert "✔   0 step0" in text
    assert "✘   1 step1  (failed; after 0" in text
    chart = mermaid(flow)
    assert chart.startswith("flowchart TD")
    assert "s0 --> s1" in chart
    assert 'u0(["undo step0"])' in chart


def test_a_picture_of_very_many_steps_shows_the_first_ones() -> None:
    text = draw(make(*(step(place) for place in range(2_000))))

    assert "… and 1,500 more" in text
    assert len(text.splitlines()) == 502


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"state": "waiting", "limit": 5}, "5 workflows called order advance already"),
        ({"state": "running"}, "1 of 2 steps done"),
        ({"state": "failed", "cause": "step b failed"}, "failed: step b failed; 1 of 2 steps done; resume it"),
        ({"state": "undoing", "cause": "step b failed"}, "running steps are being stopped"),
        ({"state": "undoing", "is_compensating": True}, "it was cancelled; 0 of 1 steps undone"),
        ({"state": "parked", "undos": {0: Stand(1, "failed", 50)}}, "undoing step0 keeps failing"),
        ({"state": "undone", "cause": "step b failed"}, "undone: step b failed"),
    ],
)
def test_a_workflow_explains_itself(fields: dict[str, Any], words: str) -> None:
    flow = make(step(0, undo=UNDO), step(1, 0), stands={0: "completed"}, **fields)

    assert words in explain_flow(flow)
