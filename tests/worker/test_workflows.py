"""Workflows, with real workers: to the end, back again, held and resumed, and through the deaths of everyone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from rota import (
    Draft,
    Fixed,
    IdInUse,
    InvalidJob,
    InvalidOption,
    JobFailed,
    JobNotFound,
    JobRef,
    JobState,
    Keep,
    Retry,
    Workflow,
    WorkflowFailed,
    WorkflowNotFound,
    WrongState,
    may_fail,
)
from tests.client.hands import dump
from tests.eventually import eventually
from tests.scale import IS_LONG
from tests.worker.crew import Crew, Stopwatch

STEPS = 10_000 if IS_LONG else 1_000


async def until(flow: Workflow, state: str, timeout: float = 15) -> None:
    """Waits for a workflow's state."""

    async def is_there() -> bool:
        found = await flow.state()
        assert found == state, f"{await flow.show()}"
        return True

    await eventually(is_there, timeout)


def story(crew: Crew) -> list[str]:
    return crew.notes("story")


def begun(crew: Crew, name: str) -> int:
    """How often a handler began."""
    return story(crew).count(f"begin {name}")


def leftovers(crew: Crew, before: dict[str, Any]) -> set[str]:
    """Keys that differ from those before, but for what every call leaves for ten minutes and counters."""
    with crew.redis() as client:
        after = dump(client, crew.namespace)
    return {
        key
        for key in before.keys() | after.keys()
        if before.get(key) != after.get(key)
        and ":calls:" not in key
        and not key.endswith((":meta", ":queues", ":format", ":events"))
    }


def snapshot(crew: Crew) -> dict[str, Any]:
    with crew.redis() as client:
        return dump(client, crew.namespace)


# --- to the end --------------------------------------------------------------------------------------------------


async def test_steps_run_in_order_and_hand_typed_results_on(crew: Crew) -> None:
    """S1-8: the values arrive as the types that the next task declares."""
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("post") as flow:
        packed = flow.step(app.parcel.call("book"))
        weight = flow.step(app.weigh.call(packed.result, more=3))
        flow.step(app.add.call(weight.result, 10))

    assert await flow.result(10) == 17
    assert await flow.state() == "completed"
    assert (await flow.refresh()).done == 3


async def test_several_last_steps_give_a_tuple(crew: Crew) -> None:
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("post") as flow:
        first = flow.step(app.parcel.call("a"))
        flow.step(app.weigh.call(first.result))
        flow.step(app.parcel.call("bc"), after=[first])

    weight, parcel = await flow.result(10)
    assert weight == 1
    assert parcel == app.Parcel("bc", [2])


async def test_a_diamond_waits_for_both_sides_across_queues(crew: Crew) -> None:
    """Spec 7: everything works across queues; results also stand inside other values."""
    await crew.start(queues="default,b,c")
    app = crew.program
    async with crew.rota.workflow("diamond") as flow:
        top = flow.step(app.echo.call(1))
        left = flow.step(app.add.using(queue="b").call(top.result, 10))
        right = flow.step(app.add.using(queue="c").call(top.result, 20))
        flow.step(app.echo.using(queue="b").call({"both": [left.result, right.result], "top": top.result}))

    assert await flow.result(10) == {"both": [11, 21], "top": 1}


async def test_nothing_exists_before_the_commit(crew: Crew) -> None:
    before = snapshot(crew)
    flow = crew.rota.workflow("order")
    try:
        async with flow:
            flow.step(crew.program.echo.call(1))
            raise RuntimeError("changed my mind")
    except RuntimeError:
        pass

    assert leftovers(crew, before) == set()
    with pytest.raises(WorkflowNotFound):
        await flow.state()


async def test_every_step_has_its_own_retry_backoff_and_timeout(crew: Crew) -> None:
    """S1-9, S1-10, S1-5: what comes after a failure never runs."""
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("order") as flow:
        first = flow.step(app.fail.using(retry=Retry(3, Fixed(0.01))).call("ValueError", times=2))
        second = flow.step(app.act.using(timeout=0.2, retry=1).call("slow", first.result, hold_at="never"))
        flow.step(app.act.call("third", second.result))

    with pytest.raises(WorkflowFailed, match="step act"):
        await flow.result(10)
    record = await flow.refresh()
    assert [record.stand(place).outcome for place in range(3)] == ["completed", "failed", "cancelled"]
    assert record.stand(0).attempts == 3
    assert begun(crew, "slow") == 1
    assert begun(crew, "third") == 0, "S1-9: what comes after a failure never runs"


async def test_results_reach_dependents_also_where_nothing_is_kept(crew: Crew) -> None:
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("order") as flow:
        one = flow.step(app.echo.using(keep=Keep(0, 0)).call({"a": [1, 2]}))
        two = flow.step(app.echo.using(keep=Keep(0, 0)).call(one.result))
        flow.step(app.echo.using(keep=Keep(0, 0)).call([two.result, None]))

    assert await flow.result(10) == [{"a": [1, 2]}, None]


async def test_a_result_of_null_arrives_as_such(crew: Crew) -> None:
    await crew.start()
    async with crew.rota.workflow("order") as flow:
        one = flow.step(crew.program.echo.call(None))
        flow.step(crew.program.echo.call([one.result]))

    assert await flow.result(10) == [None]


async def test_a_result_that_the_next_step_cannot_take_fails_the_workflow_clearly(crew: Crew) -> None:
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("order") as flow:
        text = flow.step(app.act.call("text"))
        text.undo(app.revert.call("text"))
        number: Any = text.result
        bad = flow.step(app.double.call(number))

    with pytest.raises(WorkflowFailed, match="step double"):
        await flow.result(10)
    error = (await crew.rota.job(f"default:{flow.id}.{bad.place}").refresh()).error
    assert error is not None
    assert "number" in error.message
    assert "Expected `int`, got `str`" in error.message
    assert crew.notes("undo-text") == ["None"]


async def test_a_step_may_come_after_a_job_of_somebody_else(crew: Crew) -> None:
    await crew.start()
    app = crew.program
    other = await app.wait.enqueue("other")
    async with crew.rota.workflow("order") as flow:
        flow.step(app.act.using(after=[other]).call("after it"))
    await crew.noted("other")
    assert begun(crew, "after it") == 0
    crew.allow("other")

    assert await flow.result(10) == "after it"


async def test_a_job_may_come_after_a_step(crew: Crew) -> None:
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("order") as flow:
        step = flow.step(app.act.call("step", hold_at="go"))
    job = await app.echo.using(after=[f"default:{flow.id}.{step.place}"]).enqueue(5)
    crew.allow("go")

    assert await job.result(10) == 5
    assert await flow.result(10) == "step"


async def test_what_others_need_that_fails_is_a_failure_of_the_workflow_and_may_be_redriven(crew: Crew) -> None:
    await crew.start()
    app = crew.program
    other = await app.act.using(retry=1).enqueue("other", needs="mended")
    async with crew.rota.workflow("order") as flow:
        flow.step(app.act.using(after=[other]).call("after it"))
        flow.step(app.act.using(after=[may_fail(other)]).call("regardless"))
    await until(flow, "failed")
    assert begun(crew, "regardless") == 1
    with pytest.raises(WrongState, match="was cancelled"):
        await flow.resume()
    crew.allow("mended")
    await other.redrive()

    await until(flow, "completed")
    assert await flow.result(10) == ("after it", "regardless")


async def test_the_idempotency_key_is_one_per_step_and_outlives_attempts_and_resumes(crew: Crew) -> None:
    """S1-17."""
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("order", on_failure="hold") as flow:
        one = flow.step(app.act.using(retry=Retry(2, Fixed(0.01))).call("one", needs="mended"))
        flow.step(app.act.call("two", one.result))
    await until(flow, "failed")
    crew.allow("mended")
    await flow.resume()
    await flow.result(10)

    attempts = [line.split() for line in crew.notes("one")]
    assert [attempt for attempt, _ in attempts] == ["1", "2", "3"]
    assert len({key for _, key in attempts}) == 1
    assert crew.notes("two")[0].split()[1] != attempts[0][1]


async def test_the_middleware_sees_every_step(crew: Crew) -> None:
    before = snapshot(crew)
    with pytest.raises(PermissionError):
        async with crew.rota.workflow("order") as flow:
            flow.step(crew.program.forbidden.call())

    assert leftovers(crew, before) == set()


async def test_workflows_work_without_async_too(crew: Crew) -> None:
    import asyncio

    await crew.start()

    def build() -> Any:
        with crew.rota.workflow("order") as flow:
            one = flow.step(crew.program.echo.call(1))
            flow.step(crew.program.add.call(one.result, 1))
        return flow.result_sync(10), flow.state_sync(), flow.explain_sync(), crew.rota.workflows.list_sync()

    result, state, said, listed = await asyncio.to_thread(build)
    assert (result, state) == (2, "completed")
    assert said == "completed: 2 of 2 steps done"
    assert [flow.name for flow in listed] == ["order"]


# --- refusals ----------------------------------------------------------------------------------------------------


async def test_an_unknown_parent_refuses_the_whole_workflow_and_leaves_nothing(crew: Crew) -> None:
    app = crew.program
    known = await app.echo.using(delay=3600).enqueue(1)
    before = snapshot(crew)
    flow = crew.rota.workflow("order")
    one = flow.step(app.echo.using(after=[known]).call(1))
    flow.step(app.echo.using(queue="b", after=["default:nowhere"]).call(one.result))
    with pytest.raises(JobNotFound, match="default:nowhere"):
        await flow.commit()

    assert leftovers(crew, before) == set()


async def test_an_id_in_use_refuses_the_second_workflow_and_leaves_nothing(crew: Crew) -> None:
    app = crew.program
    async with crew.rota.workflow("order", id="once") as flow:
        flow.step(app.echo.using(delay=3600).call(1))
    before = snapshot(crew)
    with pytest.raises(IdInUse):
        async with crew.rota.workflow("order", id="once") as again:
            again.step(app.echo.call(1))
    assert leftovers(crew, before) == set()

    # The same, where the second did not see the first when it began.
    flows = await crew.rota.checked_flows()
    read = flows.read

    async def blind(flow_id: str) -> None:
        return None

    flows.read = blind
    try:
        with pytest.raises(IdInUse):
            async with crew.rota.workflow("order", id="once") as third:
                third.step(app.echo.using(queue="b").call(1))
    finally:
        flows.read = read
    assert leftovers(crew, before) == set()
    assert await flow.state() == "running"


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"on_failure": "retry"}, "on_failure"), ({"resume": "always"}, "resume"), ({"limit": 0}, "limit"),
        ({"limit": True}, "limit"), ({"id": "a b"}, "id"), ({"id": "x" * 101}, "id"),
    ],
)  # fmt: skip
async def test_options_are_checked_where_the_workflow_is_made(crew: Crew, options: dict[str, Any], option: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        crew.rota.workflow("order", **options)
    assert refused.value.option == option


async def test_a_draft_refuses_what_makes_no_sense(crew: Crew) -> None:
    app = crew.program
    flow: Draft = crew.rota.workflow("order")
    other: Draft = crew.rota.workflow("order")
    mine = flow.step(app.echo.call(1))
    theirs = other.step(app.echo.call(1))
    with pytest.raises(InvalidJob, match="own workflow"):
        flow.step(app.echo.call(theirs.result))
    with pytest.raises(InvalidOption, match="same workflow"):
        flow.step(app.echo.call(1), after=[theirs])
    with pytest.raises(InvalidOption, match="made by its workflow"):
        flow.step(app.echo.using(id="mine").call(1))
    with pytest.raises(InvalidJob, match="can only be a step"):
        await app.echo.enqueue(mine.result)
    with pytest.raises(InvalidJob, match="no steps"):
        await crew.rota.workflow("empty").commit()
    mine.undo(app.revert.call("x"))
    with pytest.raises(InvalidJob, match="already"):
        mine.undo(app.revert.call("x"))
    later = flow.step(app.echo.call(2))
    with pytest.raises(InvalidJob, match="later step"):
        flow.step(app.echo.call(3)).undo(app.revert.call("x", flow.step(app.echo.call(4)).result))
    await flow.commit()
    with pytest.raises(InvalidJob, match="fixed"):
        flow.step(app.echo.call(1), after=[later])
    with pytest.raises(InvalidJob, match="committed already"):
        await flow.commit()


# --- back again --------------------------------------------------------------------------------------------------


async def test_a_failure_undoes_what_was_done_in_reverse_order_after_all_has_stopped(crew: Crew) -> None:
    """S1-12: running siblings are stopped first; nothing overlaps."""
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("order") as flow:
        paid = flow.step(app.act.call("pay", returns={"charge": 7}))
        paid.undo(app.revert.call("pay", paid.result, takes=0.1))
        packed = flow.step(app.act.call("pack", paid.result))
        packed.undo(app.revert.call("pack", [paid.result, packed.result], takes=0.1))
        label = flow.step(app.act.call("label"), after=[paid])
        label.undo(app.revert.call("label", takes=0.1))
        sibling = flow.step(app.act.call("sibling", hold_at="never", lingers=0.7), after=[paid])
        sibling.undo(app.revert.call("sibling"))
        flow.step(app.act.using(retry=1).call("ship", [packed.result, label.result], hold_at="fail", needs="never"))
        flow.step(app.act.call("never", sibling.result))
    await crew.noted("sibling")
    await crew.noted("ship")
    crew.allow("fail")

    with pytest.raises(WorkflowFailed, match=r"undone.*step act") as failed:
        await flow.result(15)
    assert failed.value.state == "undone"
    told = story(crew)
    steps_end = max(place for place, line in enumerate(told) if line.startswith("end ") and "undo" not in line)
    undo_begins = min(place for place, line in enumerate(told) if line.startswith("begin undo"))
    assert steps_end < undo_begins, "a compensation starts when no handler of a step is at work any more"
    assert told.index("end undo pack") < told.index("begin undo pay")
    assert told.index("end undo label") < told.index("begin undo pay")
    assert begun(crew, "undo sibling") == 0, "it was stopped before it succeeded"
    assert begun(crew, "never") == 0
    assert crew.notes("undo-pay") == ["{'charge': 7}"]
    assert crew.notes("undo-pack") == ["[{'charge': 7}, 'pack']"]
    assert [begun(crew, f"undo {name}") for name in ("pay", "pack", "label")] == [1, 1, 1]


async def test_an_unsure_step_is_undone_where_that_was_asked_for(crew: Crew) -> None:
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("order") as flow:
        flow.step(app.act.using(retry=1).call("sure", needs="never")).undo(app.revert.call("sure"))
        unsure = flow.step(app.act.call("unsure", hold_at="never"))
        unsure.undo(app.revert.call("unsure"), even_if_unsure=True)
        late = flow.step(app.act.using(delay=3600).call("late"))
        late.undo(app.revert.call("late"), even_if_unsure=True)
    await until(flow, "undone")

    assert begun(crew, "undo sure") == 0
    assert begun(crew, "undo late") == 0, "it never started"
    assert begun(crew, "undo unsure") == begun(crew, "unsure")


async def test_an_undo_that_keeps_failing_is_parked_and_resumed_by_a_human(crew: Crew) -> None:
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("order") as flow:
        one = flow.step(app.act.call("one"))
        one.undo(app.revert.call("one"))
        two = flow.step(app.act.call("two", one.result))
        two.undo(app.revert.using(retry=Retry(2, Fixed(0.01))).call("two", needs="mended"))
        flow.step(app.act.using(retry=1).call("three", two.result, needs="never"))
    with pytest.raises(WorkflowFailed) as parked:
        await flow.result(15)
    assert parked.value.state == "parked"
    assert "keeps failing; mend it, then resume" in await flow.explain()
    assert begun(crew, "undo two") == 2
    assert begun(crew, "undo one") == 0, "one is not undone before two"

    crew.allow("mended")
    await flow.resume()
    await until(flow, "undone")
    assert begun(crew, "undo one") == 1
    assert begun(crew, "undo two") == 3


async def test_a_parked_workflow_may_be_left_as_it_is(crew: Crew) -> None:
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("order") as flow:
        one = flow.step(app.act.call("one"))
        one.undo(app.revert.using(retry=1).call("one", needs="never"))
        flow.step(app.act.using(retry=1).call("two", one.result, needs="never"))
    await until(flow, "parked")
    await flow.cancel()
    assert await flow.state() == "parked", "there is nothing more to undo"
    await flow.cancel(undo=False)

    assert await flow.state() == "cancelled"


async def test_a_compensation_is_retried_by_its_own_patience_unless_given_another(crew: Crew) -> None:
    app = crew.program
    flow = crew.rota.workflow("order")
    flow.step(app.act.call("one")).undo(app.revert.call("one"))
    flow.step(app.act.call("two")).undo(app.revert.using(retry=4).call("two"))

    bodies = [step.undo.body for step in (flow._plan(0, ""), flow._plan(1, "")) if step.undo]
    attempts = [body.split("\n")[0].split("\t")[1] for body in bodies]
    assert attempts == ["50", "4"]


async def test_an_undone_workflow_refuses_redrive(crew: Crew) -> None:
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("order", on_failure="undo") as flow:
        flow.step(app.act.using(retry=1).call("one", needs="mended"))
    await until(flow, "undone")
    plain = await app.act.using(retry=1).enqueue("plain", needs="mended")
    await crew.until(plain, JobState.FAILED)
    crew.allow("mended")

    with pytest.raises(WrongState, match=f"belongs to workflow {flow.id}, which is undone"):
        await crew.rota.job(f"default:{flow.id}.0").redrive()
    assert await crew.rota.dead.redrive() == 1, "only the one that is no step"
    assert await plain.result(10) == "plain"
    assert begun(crew, "one") == 1


@pytest.mark.parametrize("act", ["cancel", "delete"])
async def test_a_step_that_a_user_cancels_or_deletes_is_a_failure_of_its_workflow(crew: Crew, act: str) -> None:
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("order") as flow:
        one = flow.step(app.act.call("one"))
        one.undo(app.revert.call("one"))
        two = flow.step(app.act.call("two", one.result, hold_at="never", lingers=0.3))
        flow.step(app.act.call("three", two.result))
    await crew.noted("two")
    job = crew.rota.job(f"default:{flow.id}.1")
    await (job.cancel() if act == "cancel" else job.delete())
    await until(flow, "undone")

    told = story(crew)
    assert told.index("end two") < told.index("begin undo one")
    assert begun(crew, "three") == 0
    assert "step act" in (await flow.refresh()).cause


@pytest.mark.parametrize("act", ["cancel", "delete"])
async def test_a_waiting_step_that_a_user_takes_away_is_one_too(crew: Crew, act: str) -> None:
    """Whoever takes it away sees to the workflow: a worker that has heard nothing of it would, seconds later."""
    app = crew.program
    async with crew.rota.workflow("order") as flow:
        one = flow.step(app.act.call("one"))
        flow.step(app.act.call("two", one.result))
    job = crew.rota.job(f"default:{flow.id}.0")
    await (job.cancel() if act == "cancel" else job.delete())

    assert await flow.state() == "failed"
    with pytest.raises(WrongState, match="cannot be run again"):
        await flow.resume()
    await flow.cancel()
    assert await flow.state() == "cancelled"
    assert story(crew) == []


# --- held and resumed --------------------------------------------------------------------------------------------


async def test_a_held_workflow_goes_on_at_the_failed_step(crew: Crew) -> None:
    """S1-14: finished steps are not run again."""
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("order") as flow:
        one = flow.step(app.act.call("one"))
        two = flow.step(app.act.using(retry=1).call("two", one.result, needs="mended"))
        three = flow.step(app.act.call("three", two.result))
        flow.step(app.act.call("four", three.result))
    with pytest.raises(WorkflowFailed, match="step act") as failed:
        await flow.result(10)
    assert failed.value.state == "failed"
    await flow.resume()
    await until(flow, "failed")
    assert begun(crew, "two") == 2, "it failed again, and is held again"
    crew.allow("mended")
    await flow.resume()

    assert await flow.result(10) == "four"
    assert [begun(crew, name) for name in ("one", "two", "three", "four")] == [1, 3, 1, 1]
    with pytest.raises(WrongState, match="completed"):
        await flow.resume()


async def test_what_a_held_workflow_needs_is_not_trimmed(crew: Crew) -> None:
    """However little is kept, and however long it takes."""
    await crew.start()
    app = crew.program
    nothing = Keep(finished=0, finished_count=0, failed=0, failed_count=0)
    async with crew.rota.workflow("order", on_failure="hold") as flow:
        one = flow.step(app.act.using(retry=1, keep=nothing).call("one", needs="mended"))
        two = flow.step(app.act.using(keep=nothing).call("two", one.result))
        flow.step(app.act.using(keep=nothing).call("three", two.result))
    await until(flow, "failed")
    crew.allow("mended")
    await flow.resume()
    assert await flow.result(10) == "three"

    async with crew.rota.workflow("order", on_failure="hold") as gone:
        flow_step = gone.step(app.act.using(retry=1, keep=nothing).call("one", needs="never"))
        gone.step(app.act.using(keep=nothing).call("two", flow_step.result))
    await until(gone, "failed")
    await gone.cancel()
    await eventually(_swept(crew))


def _swept(crew: Crew) -> Any:
    async def is_swept() -> bool:
        store = await crew.rota.checked_store()
        while await store.sweep("default"):
            pass
        with crew.redis() as client:
            names = ("jobs", "runs", "ids", "steps", "failed", "cancelled")
            left = [name for name in names if client.exists(crew.key(name))]
        assert not left
        return True

    return is_swept


async def test_a_dead_letter_that_was_deleted_cannot_be_resumed_and_says_so(crew: Crew) -> None:
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("order") as flow:
        flow.step(app.act.using(retry=1).call("one", needs="never"))
    await until(flow, "failed")
    await crew.rota.job(f"default:{flow.id}.0").delete()
    await flow.resume()
    await until(flow, "failed")

    with pytest.raises(WrongState, match="was deleted, and cannot be run again"):
        await flow.resume()


async def test_held_workflows_are_resumed_when_a_worker_starts_where_asked_for(crew: Crew) -> None:
    """S1-14."""
    first = await crew.start()
    app = crew.program
    async with crew.rota.workflow("order", resume="on_start") as mended:
        mended.step(app.act.using(retry=1).call("one", needs="mended"))
    async with crew.rota.workflow("order") as held:
        held.step(app.act.using(retry=1).call("two", needs="mended"))
    await until(mended, "failed")
    await until(held, "failed")
    first.terminate()
    await first.ended()
    crew.allow("mended")
    await crew.start()

    await until(mended, "completed")
    assert await held.state() == "failed"


# --- cancelled ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("undo", [True, False])
async def test_cancel_stops_what_runs_and_undoes_unless_told_otherwise(crew: Crew, undo: bool) -> None:
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("order") as flow:
        one = flow.step(app.act.call("one"))
        one.undo(app.revert.call("one"))
        two = flow.step(app.act.call("two", one.result, hold_at="never", lingers=0.3))
        flow.step(app.act.call("three", two.result))
    await crew.noted("two")
    await flow.cancel(undo=undo)
    await until(flow, "cancelled")

    assert "end two" in story(crew), "it has stopped by then"
    assert begun(crew, "undo one") == (1 if undo else 0)
    assert begun(crew, "three") == 0
    with pytest.raises(WrongState, match="has ended"):
        await flow.cancel()


async def test_cancel_works_before_any_worker_has_been_there(crew: Crew) -> None:
    app = crew.program
    async with crew.rota.workflow("order") as flow:
        one = flow.step(app.act.call("one"))
        one.undo(app.revert.call("one"))
        flow.step(app.act.using(queue="b").call("two", one.result))
    await flow.cancel()

    assert await flow.state() == "cancelled"


@pytest.mark.parametrize("undo", [True, False])
async def test_a_held_workflow_may_be_cancelled(crew: Crew, undo: bool) -> None:
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("order", on_failure="hold") as flow:
        one = flow.step(app.act.call("one"))
        one.undo(app.revert.call("one"))
        flow.step(app.act.using(retry=1).call("two", one.result, needs="never"))
    await until(flow, "failed")
    await flow.cancel(undo=undo)
    await until(flow, "cancelled")

    assert begun(crew, "undo one") == (1 if undo else 0)


async def test_while_it_is_being_undone_a_cancel_changes_nothing(crew: Crew) -> None:
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("order") as flow:
        one = flow.step(app.act.call("one"))
        one.undo(app.revert.call("one", takes=0.5))
        flow.step(app.act.using(retry=1).call("two", one.result, needs="never"))
    await crew.noted("undo-one")
    with pytest.raises(WrongState, match="let that end first"):
        await flow.cancel(undo=False)
    await flow.cancel()
    await until(flow, "undone")

    assert begun(crew, "undo one") == 1


# --- limits ------------------------------------------------------------------------------------------------------


async def _limited(crew: Crew, name: str, **steps: Any) -> Workflow:
    async with crew.rota.workflow("limited", limit=2) as flow:
        first = flow.step(crew.program.act.using(retry=1).call(name, hold_at=f"go-{name}", **steps))
        flow.step(crew.program.act.call(f"{name}-end", first.result))
    return flow


async def test_no_more_than_the_limit_advance_and_the_next_starts_at_once(crew: Crew) -> None:
    """S1-7."""
    await crew.start()
    flows = {name: await _limited(crew, name) for name in "abcd"}
    await crew.noted("a")
    await crew.noted("b")
    assert [await flow.state() for flow in flows.values()] == ["running", "running", "waiting", "waiting"]
    assert "2 workflows called limited advance already" in await flows["c"].explain()
    watch = Stopwatch()
    crew.allow("go-b")
    await crew.noted("c", timeout=2)
    assert watch.seconds < 1.5
    assert begun(crew, "d") == 0

    await flows["a"].cancel()
    await crew.noted("d", timeout=3)
    crew.allow("go-c")
    crew.allow("go-d")
    for name in "bcd":
        assert await flows[name].result(10) == f"{name}-end"
    with crew.redis() as client:
        left = [client.exists(crew.rota.keys.shared(key, "limited")) for key in ("places", "queued")]
    assert left == [0, 0]


async def _held_and_its_place_taken(crew: Crew) -> tuple[Workflow, Workflow, Workflow]:
    """Two of three may advance at once: the first is held, and the others have the places. What failed is mended."""
    await crew.start()
    a, b = await _limited(crew, "a", needs="mended"), await _limited(crew, "b")
    c = await _limited(crew, "c")
    await crew.noted("b")
    crew.allow("go-a")
    await until(a, "failed")
    await crew.noted("c")
    crew.allow("mended")
    return a, b, c


async def test_a_held_workflow_frees_its_place_and_takes_one_again(crew: Crew) -> None:
    a, b, c = await _held_and_its_place_taken(crew)
    await a.resume()
    assert await a.state() == "waiting", "its place has been taken"
    crew.allow("go-b")

    assert await a.result(10) == "a-end"
    crew.allow("go-c")
    assert await c.result(10) == "c-end"
    assert await b.state() == "completed"


async def _redrive_one(crew: Crew, flow: Workflow) -> None:
    await crew.rota.job(f"default:{flow.id}.0").redrive()


async def _redrive_all(crew: Crew, _flow: Workflow) -> None:
    assert await crew.rota.dead.redrive() == 1


async def _redrive_in_bulk(crew: Crew, _flow: Workflow) -> None:
    operation = await crew.rota.operations.start("redrive", where={"state": "failed"})
    assert (await crew.rota.operations.run(operation.id)).done == 1


@pytest.mark.parametrize("redrive", [_redrive_one, _redrive_all, _redrive_in_bulk])
async def test_a_step_that_is_redriven_waits_for_a_place_of_its_workflow(
    crew: Crew, redrive: Callable[[Crew, Workflow], Awaitable[None]]
) -> None:
    """Spec 7: held ones occupy no place, so that one which goes on must get one first."""
    a, b, c = await _held_and_its_place_taken(crew)
    await redrive(crew, a)
    assert await a.state() == "waiting", "its place has been taken"
    assert await crew.rota.job(f"default:{a.id}.0").state() == "failed"
    crew.allow("go-b")

    assert await a.result(10) == "a-end"
    assert begun(crew, "a") == 2
    crew.allow("go-c")
    assert [await b.result(10), await c.result(10)] == ["b-end", "c-end"]


async def test_one_of_several_failed_steps_is_redriven_alone(crew: Crew) -> None:
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("one", limit=1) as flow:
        for name in "ab":
            flow.step(app.act.using(retry=1).call(name, needs=f"mended-{name}"))
    await until(flow, "failed")
    for place in (0, 1):
        with pytest.raises(JobFailed):
            await crew.rota.job(f"default:{flow.id}.{place}").result(10)
    crew.allow("mended-a")
    await crew.rota.job(f"default:{flow.id}.0").redrive()
    assert await crew.rota.job(f"default:{flow.id}.0").result(10) == "a"
    await until(flow, "failed")
    crew.allow("mended-b")
    await crew.rota.job(f"default:{flow.id}.1").redrive()

    assert await flow.result(10) == ("a", "b")
    assert (begun(crew, "a"), begun(crew, "b")) == (2, 2)


async def test_one_that_is_held_while_a_branch_goes_on_keeps_its_place(crew: Crew) -> None:
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("one", limit=1) as first:
        first.step(app.act.using(retry=1).call("bad", needs="never"))
        first.step(app.act.call("slow", hold_at="go"))
    async with crew.rota.workflow("one", limit=1) as second:
        second.step(app.act.call("second"))
    await until(first, "failed")
    assert await second.state() == "waiting"
    crew.allow("go")

    assert await second.result(10) == "second"
    assert await first.state() == "failed"


async def test_one_that_waits_for_a_place_may_be_cancelled(crew: Crew) -> None:
    await crew.start()
    app = crew.program
    flows: list[Workflow] = []
    for name in "abc":
        async with crew.rota.workflow("one", limit=1) as flow:
            flow.step(app.act.call(name, hold_at=f"go-{name}"))
        flows.append(flow)
    await flows[1].cancel()
    await until(flows[1], "cancelled")
    assert await flows[2].state() == "waiting", "the first one still has the only place"
    crew.allow("go-a")
    crew.allow("go-c")

    assert await flows[2].result(10) == "c"
    assert begun(crew, "b") == 0


# --- lists that are known at run time ----------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 5])
async def test_a_step_runs_over_a_list_that_an_earlier_step_returned(crew: Crew, count: int) -> None:
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("batch") as flow:
        found = flow.step(app.numbers.call(count))
        doubled = flow.map(app.double, found.result)
        flow.step(app.echo.call(doubled.result))

    assert await flow.result(10) == [2 * number for number in range(count)]
    assert len(crew.notes("double")) == count


async def test_a_thousand_items_and_a_map_over_a_map(crew: Crew) -> None:
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("batch") as flow:
        found = flow.step(app.numbers.call(1_000))
        once = flow.map(app.double.using(keep=0), found.result)
        flow.map(app.double, once.result)

    assert await flow.result(60) == [4 * number for number in range(1_000)]
    assert len(crew.notes("double")) == 2_000


async def test_a_list_waits_for_the_other_steps_that_its_step_comes_after(crew: Crew) -> None:
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("batch") as flow:
        found = flow.step(app.numbers.call(2))
        gate = flow.step(app.act.call("gate", hold_at="go"))
        flow.map(app.double, found.result, after=[gate])
    await crew.noted("gate")
    assert crew.notes("double") == []
    crew.allow("go")

    assert await flow.result(10) == [0, 2]


async def test_an_item_that_fails_holds_the_workflow_and_only_it_is_run_again(crew: Crew) -> None:
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("batch") as flow:
        found = flow.step(app.numbers.call(4))
        doubled = flow.map(app.double_once_allowed, found.result)
        flow.step(app.echo.call(doubled.result))
    crew.allow("rest")
    await until(flow, "failed")
    assert f"1 of 4 items: default:{flow.id}.1.2" in await flow.explain()
    crew.allow("two")
    await flow.resume()

    assert await flow.result(10) == [0, 2, 4, 6]
    assert sorted(crew.notes("double")) == ["0", "1", "2", "2", "3"]


async def test_a_failed_item_stops_its_siblings_before_the_rest_is_undone(crew: Crew) -> None:
    await crew.start(concurrency=2)
    app = crew.program
    async with crew.rota.workflow("batch") as flow:
        found = flow.step(app.numbers.call(50))
        found.undo(app.revert.call("found"))
        flow.map(app.double_once_allowed, found.result)
    await until(flow, "undone")

    assert begun(crew, "undo found") == 1
    assert len(crew.notes("double")) < 50


async def test_what_is_no_list_fails_with_a_clear_word(crew: Crew) -> None:
    await crew.start()
    app = crew.program
    async with crew.rota.workflow("batch") as flow:
        found = flow.step(app.echo.call({"not": "a list"}))
        doubled = flow.map(app.double, found.result)
        flow.step(app.echo.call(doubled.result))
    with pytest.raises(WorkflowFailed, match="step echo did not return a list"):
        await flow.result(10)
    with pytest.raises(WrongState, match="did not return a list"):
        await flow.resume()
    await flow.cancel()

    assert await flow.state() == "cancelled"


async def test_map_refuses_what_it_cannot_do(crew: Crew) -> None:
    app = crew.program
    flow = crew.rota.workflow("batch")
    with pytest.raises(InvalidJob, match="runs over the result of a step"):
        flow.map(app.double, [1, 2])
    found = flow.step(app.numbers.call(2))
    mapped = flow.map(app.double, found.result)
    with pytest.raises(InvalidJob, match="cannot be undone as a whole"):
        mapped.undo(app.revert.call("x"))
    with pytest.raises(InvalidOption, match="alone"):
        flow.map(app.double.using(after=["default:x"]), found.result)


# --- size --------------------------------------------------------------------------------------------------------


@pytest.mark.timeout(180)
@pytest.mark.parametrize("shape", ["fan", "chains"])
async def test_a_workflow_of_very_many_steps_works(crew: Crew, shape: str) -> None:
    """All at once between one step and another; and many long chains."""
    await crew.start(concurrency=50)
    app = crew.program
    async with crew.rota.workflow("large") as flow:
        if shape == "fan":
            source = flow.step(app.echo.call(1))
            middle = [flow.step(app.add.call(source.result, number)) for number in range(STEPS - 2)]
            flow.step(app.echo.call([step.result for step in middle]))
        else:
            for _ in range(STEPS // 100):
                step = flow.step(app.add.call(0, 1))
                for _ in range(99):
                    step = flow.step(app.add.call(step.result, 1))

    result = await flow.result(120)
    assert result == ([1 + number for number in range(STEPS - 2)] if shape == "fan" else (100,) * (STEPS // 100))


async def test_many_steps_are_undone_once_each_however_many_conductors_there_are(crew: Crew) -> None:
    await crew.start(concurrency=20)
    await crew.start(concurrency=20)
    app = crew.program
    async with crew.rota.workflow("large") as flow:
        steps = [flow.step(app.act.call(f"step-{number}")) for number in range(200)]
        for number, step in enumerate(steps):
            step.undo(app.revert.call(f"step-{number}", step.result))
        flow.step(app.act.using(retry=1).call("last", needs="never"), after=steps)
    await until(flow, "undone", 60)

    undone = sorted(line for line in story(crew) if line.startswith("begin undo"))
    assert undone == sorted(f"begin undo step-{number}" for number in range(200))


# --- housekeeping ------------------------------------------------------------------------------------------------


async def test_a_purge_leaves_steps_and_compensations_alone(crew: Crew) -> None:
    worker = await crew.start()
    app = crew.program
    async with crew.rota.workflow("order") as flow:
        one = flow.step(app.act.call("one"))
        one.undo(app.revert.using(queue="undo").call("one"))
        flow.step(app.act.using(retry=1).call("two", one.result, hold_at="go", needs="never"))
    async with crew.rota.workflow("later") as later:
        later.step(app.echo.using(delay=3600).call(1))
    await app.echo.using(delay=3600).enqueue(1)
    await crew.noted("two")
    assert await crew.rota.queue().purge() == 1
    crew.allow("go")

    async def waits() -> bool:
        assert (await crew.rota.queue("undo").counts())["pending"] == 1
        return True

    await eventually(waits)
    assert await crew.rota.queue("undo").purge() == 0
    worker.terminate()
    await worker.ended()
    await crew.start(queues="default,undo")
    await until(flow, "undone")

    assert begun(crew, "undo one") == 1
    assert await later.state() == "running"


async def test_a_workflow_that_has_ended_is_forgotten_after_a_day(crew: Crew) -> None:
    await crew.start()
    async with crew.rota.workflow("order") as flow:
        flow.step(crew.program.echo.call(1))
    await flow.result(10)
    keys = crew.rota.keys
    with crew.redis() as client:
        assert 86_000_000 < client.pttl(keys.shared("flow", flow.id)) <= 86_400_000
        client.delete(keys.shared("flow", flow.id))  # a day passes
        client.zadd(keys.shared("flow_due"), {flow.id: 1})

        # The news of another one has somebody look.
        async with crew.rota.workflow("order") as other:
            other.step(crew.program.act.using(retry=1).call("fails", needs="never"))

        def known() -> set[bytes]:
            shared = [keys.shared(key) for key in ("flows", "flow_due", "held")]
            return {member for key in shared for member in cast("list[bytes]", client.zrange(key, 0, -1))}

        await eventually(lambda: known() == {other.id.encode()})
    assert [info.id for info in await crew.rota.workflows.list()] == [other.id]


async def test_ids_of_steps_say_where_they_belong(crew: Crew) -> None:
    """S1-16: workflow id and number of the step."""
    async with crew.rota.workflow("order", id="o-1") as flow:
        flow.step(crew.program.echo.using(queue="b").call(1))
    record = await crew.rota.job("b:o-1.0").refresh()

    assert record.options.workflow == flow.id
    assert "(part of workflow o-1)" in await crew.rota.job("b:o-1.0").explain()
    assert record.ref == JobRef("b", "o-1.0", record.ref.run)
