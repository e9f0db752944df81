"""Workflows that fail or are cancelled: compensations undo the completed steps."""

from __future__ import annotations

import pytest

from rota import (
    Fixed,
    JobState,
    Retry,
    WorkflowFailed,
    WrongState,
)
from tests.worker.harness import WorkerHarness
from tests.worker.workflow_helpers import begun, story, until

# --- back again -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S1-12")
async def test_a_failure_undoes_what_was_done_in_reverse_order_after_all_has_stopped(harness: WorkerHarness) -> None:
    """Running siblings are stopped first; nothing overlaps."""
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("order") as flow:
        paid = flow.step(app.run_step.call("pay", returns={"charge": 7}))
        paid.undo(app.undo_step.call("pay", paid.result, takes=0.1))
        packed = flow.step(app.run_step.call("pack", paid.result))
        packed.undo(app.undo_step.call("pack", [paid.result, packed.result], takes=0.1))
        label = flow.step(app.run_step.call("label"), after=[paid])
        label.undo(app.undo_step.call("label", takes=0.1))
        sibling = flow.step(app.run_step.call("sibling", hold_at="never", lingers=0.7), after=[paid])
        sibling.undo(app.undo_step.call("sibling"))
        flow.step(
            app.run_step.using(retry=1).call("ship", [packed.result, label.result], hold_at="fail", needs="never")
        )
        flow.step(app.run_step.call("never", sibling.result))
    await harness.noted("sibling")
    await harness.noted("ship")
    harness.allow("fail")

    with pytest.raises(WorkflowFailed, match=r"undone.*step run_step") as failed:
        await flow.result(15)
    assert failed.value.state == "undone"
    lines = story(harness)
    steps_end = max(place for place, line in enumerate(lines) if line.startswith("end ") and "undo" not in line)
    undo_begins = min(place for place, line in enumerate(lines) if line.startswith("begin undo"))
    assert steps_end < undo_begins, "a compensation starts when no handler of a step is at work any more"
    assert lines.index("end undo pack") < lines.index("begin undo pay")
    assert lines.index("end undo label") < lines.index("begin undo pay")
    assert begun(harness, "undo sibling") == 0, "it was stopped before it succeeded"
    assert begun(harness, "never") == 0
    assert harness.notes("undo-pay") == ["{'charge': 7}"]
    assert harness.notes("undo-pack") == ["[{'charge': 7}, 'pack']"]
    assert [begun(harness, f"undo {name}") for name in ("pay", "pack", "label")] == [1, 1, 1]


async def test_an_unsure_step_is_undone_where_that_was_asked_for(harness: WorkerHarness) -> None:
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("order") as flow:
        flow.step(app.run_step.using(retry=1).call("sure", needs="never")).undo(app.undo_step.call("sure"))
        unsure = flow.step(app.run_step.call("unsure", hold_at="never"))
        unsure.undo(app.undo_step.call("unsure"), even_if_unsure=True)
        late = flow.step(app.run_step.using(delay=3600).call("late"))
        late.undo(app.undo_step.call("late"), even_if_unsure=True)
    await until(flow, "undone")

    assert begun(harness, "undo sure") == 0
    assert begun(harness, "undo late") == 0, "it never started"
    assert begun(harness, "undo unsure") == begun(harness, "unsure")


async def test_an_undo_that_keeps_failing_is_parked_and_resumed_by_a_human(harness: WorkerHarness) -> None:
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("order") as flow:
        one = flow.step(app.run_step.call("one"))
        one.undo(app.undo_step.call("one"))
        two = flow.step(app.run_step.call("two", one.result))
        two.undo(app.undo_step.using(retry=Retry(2, Fixed(0.01))).call("two", needs="fixed"))
        flow.step(app.run_step.using(retry=1).call("three", two.result, needs="never"))
    with pytest.raises(WorkflowFailed) as parked:
        await flow.result(15)
    assert parked.value.state == "parked"
    assert "keeps failing; fix the cause, then resume" in await flow.explain()
    assert begun(harness, "undo two") == 2
    assert begun(harness, "undo one") == 0, "one is not undone before two"

    harness.allow("fixed")
    await flow.resume()
    await until(flow, "undone")
    assert begun(harness, "undo one") == 1
    assert begun(harness, "undo two") == 3


async def test_a_parked_workflow_may_be_left_as_it_is(harness: WorkerHarness) -> None:
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("order") as flow:
        one = flow.step(app.run_step.call("one"))
        one.undo(app.undo_step.using(retry=1).call("one", needs="never"))
        flow.step(app.run_step.using(retry=1).call("two", one.result, needs="never"))
    await until(flow, "parked")
    await flow.cancel()
    assert await flow.state() == "parked", "there is nothing more to undo"
    await flow.cancel(undo=False)

    assert await flow.state() == "cancelled"


async def test_a_compensation_is_retried_by_its_own_patience_unless_given_another(harness: WorkerHarness) -> None:
    app = harness.program
    flow = harness.rota.workflow("order")
    flow.step(app.run_step.call("one")).undo(app.undo_step.call("one"))
    flow.step(app.run_step.call("two")).undo(app.undo_step.using(retry=4).call("two"))

    bodies = [
        step.undo.body
        for step in (flow._plan(0, "", is_result_taken=True), flow._plan(1, "", is_result_taken=True))
        if step.undo
    ]
    attempts = [body.split("\n")[0].split("\t")[1] for body in bodies]
    assert attempts == ["50", "4"]


async def test_an_undone_workflow_refuses_redrive(harness: WorkerHarness) -> None:
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("order", on_failure="undo") as flow:
        flow.step(app.run_step.using(retry=1).call("one", needs="fixed"))
    await until(flow, "undone")
    plain = await app.run_step.using(retry=1).enqueue("plain", needs="fixed")
    await harness.until(plain, JobState.FAILED)
    harness.allow("fixed")

    with pytest.raises(WrongState, match=f"belongs to workflow {flow.id}, which is undone"):
        await harness.rota.job(f"default:{flow.id}.0").redrive()
    assert await harness.rota.dead.redrive() == 1, "only the one that is no step"
    assert await plain.result(10) == "plain"
    assert begun(harness, "one") == 1


@pytest.mark.parametrize("act", ["cancel", "delete"])
async def test_a_step_that_a_user_cancels_or_deletes_is_a_failure_of_its_workflow(
    harness: WorkerHarness, act: str
) -> None:
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("order") as flow:
        one = flow.step(app.run_step.call("one"))
        one.undo(app.undo_step.call("one"))
        two = flow.step(app.run_step.call("two", one.result, hold_at="never", lingers=0.3))
        flow.step(app.run_step.call("three", two.result))
    await harness.noted("two")
    job = harness.rota.job(f"default:{flow.id}.1")
    await (job.cancel() if act == "cancel" else job.delete())
    await until(flow, "undone")

    lines = story(harness)
    assert lines.index("end two") < lines.index("begin undo one")
    assert begun(harness, "three") == 0
    assert "step run_step" in (await flow.refresh()).cause


@pytest.mark.parametrize("act", ["cancel", "delete"])
async def test_a_waiting_step_that_a_user_takes_away_is_one_too(harness: WorkerHarness, act: str) -> None:
    """The client that removes it drives the workflow: a worker without a wake-up would do so seconds later."""
    app = harness.program
    async with harness.rota.workflow("order") as flow:
        one = flow.step(app.run_step.call("one"))
        flow.step(app.run_step.call("two", one.result))
    job = harness.rota.job(f"default:{flow.id}.0")
    await (job.cancel() if act == "cancel" else job.delete())

    assert await flow.state() == "failed"
    with pytest.raises(WrongState, match="cannot be run again"):
        await flow.resume()
    await flow.cancel()
    assert await flow.state() == "cancelled"
    assert story(harness) == []


# --- cancelled --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("undo", [True, False])
async def test_cancel_stops_running_steps_and_compensates_unless_disabled(harness: WorkerHarness, undo: bool) -> None:
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("order") as flow:
        one = flow.step(app.run_step.call("one"))
        one.undo(app.undo_step.call("one"))
        two = flow.step(app.run_step.call("two", one.result, hold_at="never", lingers=0.3))
        flow.step(app.run_step.call("three", two.result))
    await harness.noted("two")
    await flow.cancel(undo=undo)
    await until(flow, "cancelled")

    assert "end two" in story(harness), "it has stopped by then"
    assert begun(harness, "undo one") == (1 if undo else 0)
    assert begun(harness, "three") == 0
    with pytest.raises(WrongState, match="has ended"):
        await flow.cancel()


async def test_cancel_works_before_any_worker_has_been_there(harness: WorkerHarness) -> None:
    app = harness.program
    async with harness.rota.workflow("order") as flow:
        one = flow.step(app.run_step.call("one"))
        one.undo(app.undo_step.call("one"))
        flow.step(app.run_step.using(queue="b").call("two", one.result))
    await flow.cancel()

    assert await flow.state() == "cancelled"


@pytest.mark.parametrize("undo", [True, False])
async def test_a_held_workflow_may_be_cancelled(harness: WorkerHarness, undo: bool) -> None:
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("order", on_failure="hold") as flow:
        one = flow.step(app.run_step.call("one"))
        one.undo(app.undo_step.call("one"))
        flow.step(app.run_step.using(retry=1).call("two", one.result, needs="never"))
    await until(flow, "failed")
    await flow.cancel(undo=undo)
    await until(flow, "cancelled")

    assert begun(harness, "undo one") == (1 if undo else 0)


async def test_while_it_is_being_undone_a_cancel_changes_nothing(harness: WorkerHarness) -> None:
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("order") as flow:
        one = flow.step(app.run_step.call("one"))
        one.undo(app.undo_step.call("one", takes=0.5))
        flow.step(app.run_step.using(retry=1).call("two", one.result, needs="never"))
    await harness.noted("undo-one")
    with pytest.raises(WrongState, match="let that end first"):
        await flow.cancel(undo=False)
    await flow.cancel()
    await until(flow, "undone")

    assert begun(harness, "undo one") == 1
