"""The limit of workflows that advance at the same time, and workflows of very many steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rota import (
    JobFailed,
    Workflow,
)
from rota.client.session import sessions_of
from tests.scale import IS_LONG
from tests.worker.harness import Stopwatch, WorkerHarness
from tests.worker.workflow_helpers import begun, story, until

STEPS = 10_000 if IS_LONG else 1_000


# --- limits -----------------------------------------------------------------------------------------------------------


async def _limited(harness: WorkerHarness, name: str, **steps: Any) -> Workflow:
    async with harness.rota.workflow("limited", limit=2) as flow:
        first = flow.step(harness.program.run_step.using(retry=1).call(name, hold_at=f"go-{name}", **steps))
        flow.step(harness.program.run_step.call(f"{name}-end", first.result))
    return flow


@pytest.mark.requirement("S1-7")
async def test_no_more_than_the_limit_advance_and_the_next_starts_at_once(harness: WorkerHarness) -> None:
    await harness.start()
    flows = {name: await _limited(harness, name) for name in "abcd"}
    await harness.noted("a")
    await harness.noted("b")
    assert [await flow.state() for flow in flows.values()] == ["running", "running", "waiting", "waiting"]
    assert "2 workflows named limited are running already" in await flows["c"].explain()
    watch = Stopwatch()
    harness.allow("go-b")
    await harness.noted("c", timeout=2)
    assert watch.seconds < 1.5
    assert begun(harness, "d") == 0

    await flows["a"].cancel()
    await harness.noted("d", timeout=3)
    harness.allow("go-c")
    harness.allow("go-d")
    for name in "bcd":
        assert await flows[name].result(10) == f"{name}-end"
    with harness.redis() as client:
        left = [
            client.exists(sessions_of(harness.rota).keys.shared(key, "limited"))
            for key in ("active_workflows", "waiting_workflows")
        ]
    assert left == [0, 0]


async def _held_and_its_place_taken(harness: WorkerHarness) -> tuple[Workflow, Workflow, Workflow]:
    """Two of three may advance at once: the first is held, and the others run. Then the failed step succeeds."""
    await harness.start()
    a, b = await _limited(harness, "a", needs="fixed"), await _limited(harness, "b")
    c = await _limited(harness, "c")
    await harness.noted("b")
    harness.allow("go-a")
    await until(a, "failed")
    await harness.noted("c")
    harness.allow("fixed")
    return a, b, c


async def test_a_held_workflow_frees_its_place_and_takes_one_again(harness: WorkerHarness) -> None:
    a, b, c = await _held_and_its_place_taken(harness)
    await a.resume()
    assert await a.state() == "waiting", "its place has been taken"
    harness.allow("go-b")

    assert await a.result(10) == "a-end"
    harness.allow("go-c")
    assert await c.result(10) == "c-end"
    assert await b.state() == "completed"


async def _redrive_one(harness: WorkerHarness, flow: Workflow) -> None:
    await harness.rota.job(f"default:{flow.id}.0").redrive()


async def _redrive_all(harness: WorkerHarness, _flow: Workflow) -> None:
    assert await harness.rota.dead.redrive() == 1


async def _redrive_in_bulk(harness: WorkerHarness, _flow: Workflow) -> None:
    operation = await harness.rota.operations.start("redrive", where={"state": "failed"})
    assert (await harness.rota.operations.run(operation.id)).done == 1


@pytest.mark.parametrize("redrive", [_redrive_one, _redrive_all, _redrive_in_bulk])
async def test_a_step_that_is_redriven_waits_for_a_place_of_its_workflow(
    harness: WorkerHarness, redrive: Callable[[WorkerHarness, Workflow], Awaitable[None]]
) -> None:
    """Spec 7: held ones occupy no place, so that one which goes on must get one first."""
    a, b, c = await _held_and_its_place_taken(harness)
    await redrive(harness, a)
    assert await a.state() == "waiting", "its place has been taken"
    assert await harness.rota.job(f"default:{a.id}.0").state() == "failed"
    harness.allow("go-b")

    assert await a.result(10) == "a-end"
    assert begun(harness, "a") == 2
    harness.allow("go-c")
    assert [await b.result(10), await c.result(10)] == ["b-end", "c-end"]


async def test_one_of_several_failed_steps_is_redriven_alone(harness: WorkerHarness) -> None:
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("one", limit=1) as flow:
        for name in "ab":
            flow.step(app.run_step.using(retry=1).call(name, needs=f"fixed-{name}"))
    await until(flow, "failed")
    for place in (0, 1):
        with pytest.raises(JobFailed):
            await harness.rota.job(f"default:{flow.id}.{place}").result(10)
    harness.allow("fixed-a")
    await harness.rota.job(f"default:{flow.id}.0").redrive()
    assert await harness.rota.job(f"default:{flow.id}.0").result(10) == "a"
    await until(flow, "failed")
    harness.allow("fixed-b")
    await harness.rota.job(f"default:{flow.id}.1").redrive()

    assert await flow.result(10) == ("a", "b")
    assert (begun(harness, "a"), begun(harness, "b")) == (2, 2)


async def test_one_that_is_held_while_a_branch_goes_on_keeps_its_place(harness: WorkerHarness) -> None:
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("one", limit=1) as first:
        first.step(app.run_step.using(retry=1).call("bad", needs="never"))
        first.step(app.run_step.call("slow", hold_at="go"))
    async with harness.rota.workflow("one", limit=1) as second:
        second.step(app.run_step.call("second"))
    await until(first, "failed")
    assert await second.state() == "waiting"
    harness.allow("go")

    assert await second.result(10) == "second"
    assert await first.state() == "failed"


async def test_one_that_waits_for_a_place_may_be_cancelled(harness: WorkerHarness) -> None:
    await harness.start()
    app = harness.program
    flows: list[Workflow] = []
    for name in "abc":
        async with harness.rota.workflow("one", limit=1) as flow:
            flow.step(app.run_step.call(name, hold_at=f"go-{name}"))
        flows.append(flow)
    await flows[1].cancel()
    await until(flows[1], "cancelled")
    assert await flows[2].state() == "waiting", "the first one still has the only place"
    harness.allow("go-a")
    harness.allow("go-c")

    assert await flows[2].result(10) == "c"
    assert begun(harness, "b") == 0


# --- size -------------------------------------------------------------------------------------------------------------


@pytest.mark.timeout(400)
@pytest.mark.parametrize("shape", ["fan", "chains"])
async def test_a_workflow_of_very_many_steps_works(harness: WorkerHarness, shape: str) -> None:
    """All at once between one step and another; and many long chains."""
    await harness.start(concurrency=50)
    app = harness.program
    async with harness.rota.workflow("large") as flow:
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


async def test_many_steps_are_undone_once_each_however_many_conductors_there_are(harness: WorkerHarness) -> None:
    await harness.start(concurrency=20)
    await harness.start(concurrency=20)
    app = harness.program
    async with harness.rota.workflow("large") as flow:
        steps = [flow.step(app.run_step.call(f"step-{number}")) for number in range(200)]
        for number, step in enumerate(steps):
            step.undo(app.undo_step.call(f"step-{number}", step.result))
        flow.step(app.run_step.using(retry=1).call("last", needs="never"), after=steps)
    await until(flow, "undone", 60)

    undone = sorted(line for line in story(harness) if line.startswith("begin undo"))
    assert undone == sorted(f"begin undo step-{number}" for number in range(200))
