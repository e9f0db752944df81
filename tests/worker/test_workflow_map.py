"""Steps over a list that is known at run time."""

from __future__ import annotations

import pytest

from rota import (
    InvalidJob,
    InvalidOption,
    WorkflowFailed,
    WrongState,
)
from tests.worker.harness import WorkerHarness
from tests.worker.workflow_helpers import begun, until


@pytest.mark.parametrize("count", [0, 1, 5])
async def test_a_step_runs_over_a_list_that_an_earlier_step_returned(harness: WorkerHarness, count: int) -> None:
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("batch") as flow:
        found = flow.step(app.numbers.call(count))
        doubled = flow.map(app.double, found.result)
        flow.step(app.echo.call(doubled.result))

    assert await flow.result(10) == [2 * number for number in range(count)]
    assert len(harness.notes("double")) == count


async def test_a_thousand_items_and_a_map_over_a_map(harness: WorkerHarness) -> None:
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("batch") as flow:
        found = flow.step(app.numbers.call(1_000))
        once = flow.map(app.double.using(keep=0), found.result)
        flow.map(app.double, once.result)

    assert await flow.result(60) == [4 * number for number in range(1_000)]
    assert len(harness.notes("double")) == 2_000


@pytest.mark.parametrize("taker", ["another step", "the caller"])
async def test_a_list_whose_results_are_longer_than_a_payload_fails(harness: WorkerHarness, taker: str) -> None:
    await harness.start()
    app = harness.program
    harness.rota.tasks.max_payload = 100
    async with harness.rota.workflow("batch") as flow:
        found = flow.step(app.numbers.call(60))
        doubled = flow.map(app.double, found.result)
        if taker == "another step":
            flow.step(app.echo.call(doubled.result))
    await until(flow, "failed")

    assert "the results of its items exceed 100 bytes together" in await flow.explain()
    assert len(harness.notes("double")) == 60


async def test_results_of_a_list_that_no_step_takes_have_no_limit(harness: WorkerHarness) -> None:
    await harness.start()
    app = harness.program
    harness.rota.tasks.max_payload = 100
    async with harness.rota.workflow("batch") as flow:
        found = flow.step(app.numbers.call(60))
        doubled = flow.map(app.double, found.result)
        flow.step(app.echo.call("end"), after=[doubled])

    assert await flow.result(20) == "end"


async def test_a_step_whose_arguments_would_be_too_long_is_cancelled_and_the_workflow_held(
    harness: WorkerHarness,
) -> None:
    await harness.start()
    app = harness.program
    harness.rota.tasks.max_payload = 200
    async with harness.rota.workflow("batch") as flow:
        parts = [flow.step(app.echo.call("x" * 70)) for _ in range(3)]
        flow.step(app.echo.call([part.result for part in parts]), name="join")
    await until(flow, "failed")

    assert "step join" in await flow.explain()
    join = await harness.rota.job(f"default:{flow.id}.3").refresh()
    assert "longer than 200 bytes with the results of the jobs before it" in join.reason


async def test_a_list_waits_for_the_other_steps_that_its_step_comes_after(harness: WorkerHarness) -> None:
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("batch") as flow:
        found = flow.step(app.numbers.call(2))
        gate = flow.step(app.run_step.call("gate", hold_at="go"))
        flow.map(app.double, found.result, after=[gate])
    await harness.noted("gate")
    assert harness.notes("double") == []
    harness.allow("go")

    assert await flow.result(10) == [0, 2]


async def test_an_item_that_fails_holds_the_workflow_and_only_it_is_run_again(harness: WorkerHarness) -> None:
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("batch") as flow:
        found = flow.step(app.numbers.call(4))
        doubled = flow.map(app.double_once_allowed, found.result)
        flow.step(app.echo.call(doubled.result))
    harness.allow("rest")
    await until(flow, "failed")
    assert f"1 of 4 items: default:{flow.id}.1.2" in await flow.explain()
    harness.allow("two")
    await flow.resume()

    assert await flow.result(10) == [0, 2, 4, 6]
    assert sorted(harness.notes("double")) == ["0", "1", "2", "2", "3"]


async def test_a_failed_item_stops_its_siblings_before_the_rest_is_undone(harness: WorkerHarness) -> None:
    await harness.start(concurrency=2)
    app = harness.program
    async with harness.rota.workflow("batch") as flow:
        found = flow.step(app.numbers.call(50))
        found.undo(app.undo_step.call("found"))
        flow.map(app.double_once_allowed, found.result)
    await until(flow, "undone")

    assert begun(harness, "undo found") == 1
    assert len(harness.notes("double")) < 50


async def test_what_is_no_list_fails_with_a_clear_word(harness: WorkerHarness) -> None:
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("batch") as flow:
        found = flow.step(app.echo.call({"not": "a list"}))
        doubled = flow.map(app.double, found.result)
        flow.step(app.echo.call(doubled.result))
    with pytest.raises(WorkflowFailed, match="step echo did not return a list"):
        await flow.result(10)
    with pytest.raises(WrongState, match="did not return a list"):
        await flow.resume()
    await flow.cancel()

    assert await flow.state() == "cancelled"


async def test_map_refuses_what_it_cannot_do(harness: WorkerHarness) -> None:
    app = harness.program
    flow = harness.rota.workflow("batch")
    with pytest.raises(InvalidJob, match="runs over the result of a step"):
        flow.map(app.double, [1, 2])
    found = flow.step(app.numbers.call(2))
    mapped = flow.map(app.double, found.result)
    with pytest.raises(InvalidJob, match="cannot be undone as a whole"):
        mapped.undo(app.undo_step.call("x"))
    with pytest.raises(InvalidOption, match="steps of its workflow"):
        flow.map(app.double.using(after=["default:x"]), found.result)
