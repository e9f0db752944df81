"""Workflows whose steps live on three nodes, and their record on one of them."""

from __future__ import annotations

import pytest

from rota import WorkflowFailed
from rota.client.workflows import Workflow
from tests.cluster.conftest import QUEUES
from tests.eventually import eventually
from tests.worker.harness import WorkerHarness

MAIL, PRINT, BILLING = QUEUES


async def test_results_go_from_step_to_step_across_nodes(shared: WorkerHarness) -> None:
    add = shared.program.add
    async with shared.rota.workflow("sum") as flow:
        one = flow.step(add.using(queue=MAIL).call(1, 2))
        two = flow.step(add.using(queue=PRINT).call(one.result, 10))
        three = flow.step(add.using(queue=BILLING).call(one.result, 100))
        flow.step(add.using(queue=MAIL).call(two.result, three.result))

    assert await flow.result(15) == 116
    assert await flow.state() == "completed"


async def test_a_failure_undoes_what_was_done_on_every_node_in_reverse(shared: WorkerHarness) -> None:
    effect, echo = shared.program.effect, shared.program.echo
    async with shared.rota.workflow("undone") as flow:
        one = flow.step(echo.using(queue=MAIL).call("one"))
        one.undo(effect.using(queue=PRINT).call("undo", one.result))
        two = flow.step(echo.using(queue=PRINT).call("two"), after=[one])
        two.undo(effect.using(queue=BILLING).call("undo", two.result))
        flow.step(shared.program.fail_until.using(queue=BILLING, retry=1).call("never"), after=[two])

    with pytest.raises(WorkflowFailed, match="fail_until"):
        await flow.result(15)
    await eventually(lambda: _is(flow, "undone"))
    assert shared.notes("undo") == ["two", "one"]


async def test_a_held_workflow_goes_on_where_it_failed(shared: WorkerHarness) -> None:
    effect = shared.program.effect
    async with shared.rota.workflow("held", on_failure="hold") as flow:
        one = flow.step(effect.using(queue=MAIL).call("held"))
        two = flow.step(shared.program.fail_until.using(queue=PRINT, retry=1).call("held-fixed"), after=[one])
        flow.step(effect.using(queue=BILLING).call("held", "last"), after=[two])
    with pytest.raises(WorkflowFailed, match="fail_until"):
        await flow.result(15)
    shared.allow("held-fixed")
    await flow.resume()

    assert await flow.result(15) == "last"
    assert shared.notes("held") == ["effect", "last"], "the first step was not run again"


async def test_a_step_runs_for_each_item_of_a_list_on_another_node(shared: WorkerHarness) -> None:
    program = shared.program
    async with shared.rota.workflow("mapped") as flow:
        items = flow.step(program.numbers.using(queue=MAIL).call(250))
        mapped = flow.map(program.echo.using(queue=PRINT), items.result)
        flow.step(program.total.using(queue=BILLING).call(mapped.result))

    assert await flow.result(30) == sum(range(250))


async def test_no_more_than_the_limit_advance_at_once(shared: WorkerHarness) -> None:
    flows: list[Workflow] = []
    for number in range(4):
        async with shared.rota.workflow("limited", limit=2) as flow:
            first = flow.step(shared.program.wait.using(queue=QUEUES[number % 3]).call(f"limited-{number}"))
            flow.step(shared.program.echo.using(queue=QUEUES[(number + 1) % 3]).call(number), after=[first])
        flows.append(flow)
    await shared.noted("limited-0")
    await shared.noted("limited-1")

    assert [await flow.state() for flow in flows] == ["running", "running", "waiting", "waiting"]
    for number in range(4):
        shared.allow(f"limited-{number}")
    assert [await flow.result(20) for flow in flows] == list(range(4))


async def test_a_cancel_stops_steps_on_every_node_and_undoes(shared: WorkerHarness) -> None:
    async with shared.rota.workflow("stopped") as flow:
        one = flow.step(shared.program.echo.using(queue=MAIL).call("one"))
        one.undo(shared.program.effect.using(queue=BILLING).call("cancelled-flow", one.result))
        flow.step(shared.program.wait.using(queue=PRINT).call("cancelled-step"), after=[one])
    await shared.noted("cancelled-step")
    await flow.cancel()

    await eventually(lambda: _is(flow, "cancelled"))
    assert shared.notes("cancelled-flow") == ["one"]


async def _is(flow: Workflow, state: str) -> bool:
    assert await flow.state() == state
    return True
