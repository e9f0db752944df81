"""Workflows with real workers: steps, results, refusals, and the end of a workflow."""

from __future__ import annotations

from typing import Any, cast

import pytest

from rota import (
    Fixed,
    IdInUse,
    InvalidJob,
    InvalidOption,
    JobNotFound,
    JobRef,
    Keep,
    Retry,
    WorkflowBuilder,
    WorkflowFailed,
    WorkflowNotFound,
    WrongState,
    may_fail,
)
from rota.client.session import checked_session, sessions_of
from tests.eventually import eventually
from tests.worker.harness import WorkerHarness
from tests.worker.workflow_helpers import begun, leftovers, snapshot, until

# --- to the end -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S1-8")
async def test_steps_run_in_order_and_hand_typed_results_on(harness: WorkerHarness) -> None:
    """The values arrive as the types that the next task declares."""
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("post") as flow:
        packed = flow.step(app.parcel.call("book"))
        weight = flow.step(app.weigh.call(packed.result, more=3))
        flow.step(app.add.call(weight.result, 10))

    assert await flow.result(10) == 17
    assert await flow.state() == "completed"
    assert (await flow.refresh()).done == 3


async def test_several_last_steps_give_a_tuple(harness: WorkerHarness) -> None:
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("post") as flow:
        first = flow.step(app.parcel.call("a"))
        flow.step(app.weigh.call(first.result))
        flow.step(app.parcel.call("bc"), after=[first])

    weight, parcel = await flow.result(10)
    assert weight == 1
    assert parcel == app.Parcel("bc", [2])


async def test_the_result_may_be_that_of_any_steps(harness: WorkerHarness) -> None:
    """The steps are followed by others, so their results would not be kept otherwise."""
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("post") as flow:
        packed = flow.step(app.parcel.call("book"))
        weight = flow.step(app.weigh.call(packed.result, more=3))
        total = flow.step(app.add.call(weight.result, 10))
        first = flow.returning(packed)
        both = flow.returning(weight, total)

    assert await first.result(10) == app.Parcel("book", [4])
    assert await both.result() == (7, 17)
    assert await flow.result() == 17
    assert await harness.rota.workflows.get(flow.id, returns=int).result() == 17
    with pytest.raises(InvalidOption, match="its result is a tuple of 2 values"):
        await _two_last_steps(harness, returns=tuple[int, int, int])


async def _two_last_steps(harness: WorkerHarness, returns: Any) -> Any:
    async with harness.rota.workflow("pair") as flow:
        flow.step(harness.program.parcel.call("a"))
        flow.step(harness.program.add.call(1, 2))
    await flow.wait(10)
    return await harness.rota.workflows.get(flow.id, returns=returns).result()


async def test_a_handle_by_id_has_typed_results_of_several_last_steps(harness: WorkerHarness) -> None:
    await harness.start()

    found = await _two_last_steps(harness, returns=tuple[harness.program.Parcel, int])

    assert found == (harness.program.Parcel("a", [1]), 3)


async def test_steps_whose_results_are_not_kept_cannot_be_the_result(harness: WorkerHarness) -> None:
    app = harness.program
    async with harness.rota.workflow("post") as flow:
        packed = flow.step(app.parcel.call("book"))
        weight = flow.step(app.weigh.call(packed.result))
    async with harness.rota.workflow("other") as other:
        other.step(app.parcel.call("book"))

    flow.returning(weight)
    with pytest.raises(InvalidOption, match=r"not kept.*before the workflow is committed"):
        flow.returning(packed)
    with pytest.raises(InvalidOption, match="steps of the same workflow"):
        other.returning(packed)
    with pytest.raises(InvalidOption, match="at least one step"):
        cast(Any, flow).returning()
    await flow.cancel()
    await other.cancel()


async def test_a_diamond_waits_for_both_sides_across_queues(harness: WorkerHarness) -> None:
    """Spec 7: everything works across queues; results also stand inside other values."""
    await harness.start(queues="default,b,c")
    app = harness.program
    async with harness.rota.workflow("diamond") as flow:
        top = flow.step(app.echo.call(1))
        left = flow.step(app.add.using(queue="b").call(top.result, 10))
        right = flow.step(app.add.using(queue="c").call(top.result, 20))
        flow.step(app.echo.using(queue="b").call({"both": [left.result, right.result], "top": top.result}))

    assert await flow.result(10) == {"both": [11, 21], "top": 1}


async def test_nothing_exists_before_the_commit(harness: WorkerHarness) -> None:
    before = snapshot(harness)
    flow = harness.rota.workflow("order")
    try:
        async with flow:
            flow.step(harness.program.echo.call(1))
            raise RuntimeError("changed my mind")
    except RuntimeError:
        pass

    assert leftovers(harness, before) == set()
    with pytest.raises(WorkflowNotFound):
        await flow.state()


@pytest.mark.requirement("S1-9", "S1-10", "S1-5")
async def test_every_step_has_its_own_retry_backoff_and_timeout(harness: WorkerHarness) -> None:
    """What comes after a failure never runs."""
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("order") as flow:
        first = flow.step(app.fail.using(retry=Retry(3, Fixed(0.01))).call("ValueError", times=2))
        second = flow.step(app.run_step.using(timeout=0.2, retry=1).call("slow", first.result, hold_at="never"))
        flow.step(app.run_step.call("third", second.result))

    with pytest.raises(WorkflowFailed, match="step run_step"):
        await flow.result(10)
    record = await flow.refresh()
    assert [record.step_state(place).outcome for place in range(3)] == ["completed", "failed", "cancelled"]
    assert record.step_state(0).attempts == 3
    assert begun(harness, "slow") == 1
    assert begun(harness, "third") == 0, "what comes after a failure never runs"


async def test_results_reach_dependents_also_where_nothing_is_kept(harness: WorkerHarness) -> None:
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("order") as flow:
        one = flow.step(app.echo.using(keep=Keep(0, 0)).call({"a": [1, 2]}))
        two = flow.step(app.echo.using(keep=Keep(0, 0)).call(one.result))
        flow.step(app.echo.using(keep=Keep(0, 0)).call([two.result, None]))

    assert await flow.result(10) == [{"a": [1, 2]}, None]


async def test_a_result_of_null_arrives_as_such(harness: WorkerHarness) -> None:
    await harness.start()
    async with harness.rota.workflow("order") as flow:
        one = flow.step(harness.program.echo.call(None))
        flow.step(harness.program.echo.call([one.result]))

    assert await flow.result(10) == [None]


async def test_a_result_that_the_next_step_cannot_take_fails_the_workflow_clearly(harness: WorkerHarness) -> None:
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("order") as flow:
        text = flow.step(app.run_step.call("text"))
        text.undo(app.undo_step.call("text"))
        number: Any = text.result
        bad = flow.step(app.double.call(number))

    with pytest.raises(WorkflowFailed, match="step double"):
        await flow.result(10)
    error = (await harness.rota.job(f"default:{flow.id}.{bad.number}").refresh()).error
    assert error is not None
    assert "number" in error.message
    assert "Expected `int`, got `str`" in error.message
    assert harness.notes("undo-text") == ["None"]


async def test_a_step_may_depend_on_a_job_outside_its_workflow(harness: WorkerHarness) -> None:
    await harness.start()
    app = harness.program
    other = await app.wait.enqueue("other")
    async with harness.rota.workflow("order") as flow:
        flow.step(app.run_step.using(after=[other]).call("after it"))
    await harness.noted("other")
    assert begun(harness, "after it") == 0
    harness.allow("other")

    assert await flow.result(10) == "after it"


async def test_a_job_may_come_after_a_step(harness: WorkerHarness) -> None:
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("order") as flow:
        step = flow.step(app.run_step.call("step", hold_at="go"))
    job = await app.echo.using(after=[f"default:{flow.id}.{step.number}"]).enqueue(5)
    harness.allow("go")

    assert await job.result(10) == 5
    assert await flow.result(10) == "step"


async def test_what_others_need_that_fails_is_a_failure_of_the_workflow_and_may_be_redriven(
    harness: WorkerHarness,
) -> None:
    await harness.start()
    app = harness.program
    other = await app.run_step.using(retry=1).enqueue("other", needs="fixed")
    async with harness.rota.workflow("order") as flow:
        flow.step(app.run_step.using(after=[other]).call("after it"))
        flow.step(app.run_step.using(after=[may_fail(other)]).call("regardless"))
    await until(flow, "failed")
    assert begun(harness, "regardless") == 1
    with pytest.raises(WrongState, match="was cancelled"):
        await flow.resume()
    harness.allow("fixed")
    await other.redrive()

    await until(flow, "completed")
    assert await flow.result(10) == ("after it", "regardless")


@pytest.mark.requirement("S1-17")
async def test_the_idempotency_key_is_one_per_step_and_outlives_attempts_and_resumes(harness: WorkerHarness) -> None:
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("order", on_failure="hold") as flow:
        one = flow.step(app.run_step.using(retry=Retry(2, Fixed(0.01))).call("one", needs="fixed"))
        flow.step(app.run_step.call("two", one.result))
    await until(flow, "failed")
    harness.allow("fixed")
    await flow.resume()
    await flow.result(10)

    attempts = [line.split() for line in harness.notes("one")]
    assert [attempt for attempt, _ in attempts] == ["1", "2", "3"]
    assert len({key for _, key in attempts}) == 1
    assert harness.notes("two")[0].split()[1] != attempts[0][1]


async def test_the_middleware_sees_every_step(harness: WorkerHarness) -> None:
    before = snapshot(harness)
    with pytest.raises(PermissionError):
        async with harness.rota.workflow("order") as flow:
            flow.step(harness.program.forbidden.call())

    assert leftovers(harness, before) == set()


async def test_workflows_work_without_async_too(harness: WorkerHarness) -> None:
    import asyncio

    await harness.start()

    def build() -> Any:
        with harness.rota.workflow("order") as flow:
            one = flow.step(harness.program.echo.call(1))
            flow.step(harness.program.add.call(one.result, 1))
        return flow.result_sync(10), flow.state_sync(), flow.explain_sync(), harness.rota.workflows.list_sync()

    result, state, text, listed = await asyncio.to_thread(build)
    assert (result, state) == (2, "completed")
    assert text == "completed: 2 of 2 steps done"
    assert [flow.name for flow in listed] == ["order"]


# --- refusals ---------------------------------------------------------------------------------------------------------


async def test_an_unknown_parent_refuses_the_whole_workflow_and_leaves_nothing(harness: WorkerHarness) -> None:
    app = harness.program
    known = await app.echo.using(delay=3600).enqueue(1)
    before = snapshot(harness)
    flow = harness.rota.workflow("order")
    one = flow.step(app.echo.using(after=[known]).call(1))
    flow.step(app.echo.using(queue="b", after=["default:nowhere"]).call(one.result))
    with pytest.raises(JobNotFound, match="default:nowhere"):
        await flow.commit()

    assert leftovers(harness, before) == set()


async def test_an_id_in_use_refuses_the_second_workflow_and_leaves_nothing(harness: WorkerHarness) -> None:
    app = harness.program
    async with harness.rota.workflow("order", id="once") as flow:
        flow.step(app.echo.using(delay=3600).call(1))
    before = snapshot(harness)
    with pytest.raises(IdInUse):
        async with harness.rota.workflow("order", id="once") as again:
            again.step(app.echo.call(1))
    assert leftovers(harness, before) == set()

    # The same, where the second did not see the first when it began.
    flows = (await checked_session(harness.rota)).workflows
    read = flows.read

    async def blind(workflow_id: str) -> None:
        return None

    flows.read = blind
    try:
        with pytest.raises(IdInUse):
            async with harness.rota.workflow("order", id="once") as third:
                third.step(app.echo.using(queue="b").call(1))
    finally:
        flows.read = read
    assert leftovers(harness, before) == set()
    assert await flow.state() == "running"


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"on_failure": "retry"}, "on_failure"),
        ({"resume": "always"}, "resume"),
        ({"limit": 0}, "limit"),
        ({"limit": True}, "limit"),
        ({"id": "a b"}, "id"),
        ({"id": "x" * 101}, "id"),
    ],
)
async def test_options_are_checked_where_the_workflow_is_made(
    harness: WorkerHarness, options: dict[str, Any], option: str
) -> None:
    with pytest.raises(InvalidOption) as refused:
        harness.rota.workflow("order", **options)
    assert refused.value.option == option


async def test_a_draft_refuses_what_makes_no_sense(harness: WorkerHarness) -> None:
    app = harness.program
    flow: WorkflowBuilder = harness.rota.workflow("order")
    other: WorkflowBuilder = harness.rota.workflow("order")
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
        await harness.rota.workflow("empty").commit()
    mine.undo(app.undo_step.call("x"))
    with pytest.raises(InvalidJob, match="already"):
        mine.undo(app.undo_step.call("x"))
    later = flow.step(app.echo.call(2))
    with pytest.raises(InvalidJob, match="later step"):
        flow.step(app.echo.call(3)).undo(app.undo_step.call("x", flow.step(app.echo.call(4)).result))
    await flow.commit()
    with pytest.raises(InvalidJob, match="fixed"):
        flow.step(app.echo.call(1), after=[later])
    with pytest.raises(InvalidJob, match="committed already"):
        await flow.commit()


# --- housekeeping -----------------------------------------------------------------------------------------------------


async def test_a_purge_leaves_steps_and_compensations_alone(harness: WorkerHarness) -> None:
    worker = await harness.start()
    app = harness.program
    async with harness.rota.workflow("order") as flow:
        one = flow.step(app.run_step.call("one"))
        one.undo(app.undo_step.using(queue="undo").call("one"))
        flow.step(app.run_step.using(retry=1).call("two", one.result, hold_at="go", needs="never"))
    async with harness.rota.workflow("later") as later:
        later.step(app.echo.using(delay=3600).call(1))
    await app.echo.using(delay=3600).enqueue(1)
    await harness.noted("two")
    assert await harness.rota.queue().purge() == 1
    harness.allow("go")

    async def waits() -> bool:
        assert (await harness.rota.queue("undo").counts())["pending"] == 1
        return True

    await eventually(waits)
    assert await harness.rota.queue("undo").purge() == 0
    worker.terminate()
    await worker.ended()
    await harness.start(queues="default,undo")
    await until(flow, "undone")

    assert begun(harness, "undo one") == 1
    assert await later.state() == "running"


async def test_a_workflow_that_has_ended_is_forgotten_after_a_day(harness: WorkerHarness) -> None:
    await harness.start()
    async with harness.rota.workflow("order") as flow:
        flow.step(harness.program.echo.call(1))
    await flow.result(10)
    keys = sessions_of(harness.rota).keys
    with harness.redis() as client:
        assert 86_000_000 < client.pttl(keys.shared("workflow", flow.id)) <= 86_400_000
        client.delete(keys.shared("workflow", flow.id))  # a day passes
        client.zadd(keys.shared("workflow_due"), {flow.id: 1})

        # The outcome of another one wakes a driver.
        async with harness.rota.workflow("order") as other:
            other.step(harness.program.run_step.using(retry=1).call("fails", needs="never"))

        def known() -> set[bytes]:
            shared = [keys.shared(key) for key in ("workflows", "workflow_due", "stuck_workflows")]
            return {member for key in shared for member in cast("list[bytes]", client.zrange(key, 0, -1))}

        await eventually(lambda: known() == {other.id.encode()})
    assert [info.id for info in await harness.rota.workflows.list()] == [other.id]


@pytest.mark.requirement("S1-16")
async def test_ids_of_steps_say_where_they_belong(harness: WorkerHarness) -> None:
    """Workflow id and number of the step."""
    async with harness.rota.workflow("order", id="o-1") as flow:
        flow.step(harness.program.echo.using(queue="b").call(1))
    record = await harness.rota.job("b:o-1.0").refresh()

    assert record.options.workflow == flow.id
    assert "(part of workflow o-1)" in await harness.rota.job("b:o-1.0").explain()
    assert record.ref == JobRef("b", "o-1.0", record.ref.run)
