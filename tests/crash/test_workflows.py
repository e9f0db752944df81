"""The driver of a workflow is killed at each instant: no step is skipped, and none that ended is run again."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from typing import cast

import pytest

from rota import Workflow
from rota.client.session import checked_session
from tests.scale import IS_LONG
from tests.worker.harness import ROOT, WorkerHarness
from tests.worker.workflow_helpers import begun, leftovers, snapshot, story, until


def _points(*scripts: str) -> list[str]:
    """Right after each of them; the instants right before are as good as right after the one before that."""
    return [f"{when}:{script}" for script in scripts for when in (("before", "after") if IS_LONG else ("after",))]


#: Scripts between the failure of a step and the first compensation.
UNDO = _points(
    "take_outbox",
    "record_step_outcomes",
    "take_due_workflows",
    "cancel",
    "prepare_dependents",
    "register_dependents",
    "publish_prepared_runs",
    "save_workflow_decision",
)
LIST = _points("prepare_dependents", "register_dependents", "publish_prepared_runs", "save_workflow_decision")
CLIENT = list(
    dict.fromkeys(
        [
            "before:prepare_dependents",
            *_points(
                "prepare_dependents",
                "register_dependents",
                "open_workflow",
                "publish_prepared_runs",
                "apply_parent_outcomes",
                "save_workflow_decision",
            ),
        ]
    )
)
#: Of these, where the client had not committed yet.
EARLY = (
    "before:prepare_dependents",
    "after:prepare_dependents",
    "before:register_dependents",
    "after:register_dependents",
    "before:open_workflow",
)


async def _order(harness: WorkerHarness) -> Workflow:
    app = harness.program
    async with harness.rota.workflow("order") as flow:
        pay = flow.step(app.run_step.call("pay"))
        pay.undo(app.undo_step.using(queue="undo").call("pay", pay.result))
        pack = flow.step(app.run_step.call("pack", pay.result))
        pack.undo(app.undo_step.using(queue="undo").call("pack"))
        ship = flow.step(app.run_step.using(retry=1).call("ship", pack.result, hold_at="fail", needs="never"))
        late = flow.step(app.run_step.using(delay=3600).call("late"), after=[pay])
        flow.step(app.run_step.call("last", [ship.result, late.result]))
    return flow


@pytest.mark.requirement("S1-11", "S1-12")
@pytest.mark.parametrize("point", UNDO)
async def test_an_undo_is_carried_on_wherever_its_conductor_died(harness: WorkerHarness, point: str) -> None:
    """Compensations run elsewhere, so that only the death of the driver counts."""
    victim = await harness.start(hook=point)
    flow = await _order(harness)
    await harness.noted("ship")
    harness.allow("death")
    harness.allow("fail")
    assert await victim.ended(15) == -signal.SIGKILL
    harness.outlive()
    await harness.start(queues="default,undo")
    await until(flow, "undone", 30)

    lines = story(harness)
    assert [begun(harness, name) for name in ("pay", "pack", "undo pay", "undo pack", "last")] == [1, 1, 1, 1, 0]
    assert lines.index("end undo pack") < lines.index("begin undo pay")
    assert harness.notes("undo-pay") == ["pay"]


@pytest.mark.parametrize("point", _points("put_ended_workflow_runs_under_retention"))
async def test_its_end_is_carried_on_too(harness: WorkerHarness, point: str) -> None:
    victim = await harness.start(queues="default,undo", hook=point)
    harness.allow("death")
    harness.allow("fail")
    flow = await _order(harness)
    assert await victim.ended(15) == -signal.SIGKILL
    harness.outlive()
    await harness.start(queues="default,undo")
    await until(flow, "undone", 30)

    assert [begun(harness, name) for name in ("pay", "pack", "undo pay", "undo pack")] == [1, 1, 1, 1]


@pytest.mark.parametrize("point", LIST)
async def test_a_list_is_gone_through_wherever_its_conductor_died(harness: WorkerHarness, point: str) -> None:
    victim = await harness.start(hook=point)
    app = harness.program
    async with harness.rota.workflow("batch") as flow:
        gate = flow.step(app.run_step.call("gate", returns=300, hold_at="go"))
        found = flow.step(app.numbers.call(gate.result))
        doubled = flow.map(app.double.using(queue="items"), found.result)
        flow.step(app.echo.using(queue="items").call(doubled.result))
    await harness.noted("gate")
    harness.allow("death")
    harness.allow("go")
    assert await victim.ended(15) == -signal.SIGKILL
    harness.outlive()
    await harness.start(queues="default,items")

    await until(flow, "completed", 30)
    assert await flow.result(1) == [2 * number for number in range(300)]
    assert sorted(map(int, harness.notes("double"))) == list(range(300))


@pytest.mark.parametrize("point", ["before:redrive", "after:redrive", "after:save_workflow_decision"])
async def test_a_resumed_workflow_goes_on_once_wherever_its_conductor_died(harness: WorkerHarness, point: str) -> None:
    first = await harness.start()
    app = harness.program
    async with harness.rota.workflow("order", resume="on_start") as flow:
        one = flow.step(app.run_step.call("one"))
        two = flow.step(app.run_step.using(retry=1).call("two", one.result, needs="fixed"))
        flow.step(app.run_step.call("three", two.result))
    await until(flow, "failed")
    first.terminate()
    await first.ended()
    harness.allow("fixed")
    harness.allow("death")
    victim = harness.launch(hook=point, queues="other")
    assert await victim.ended(20) == -signal.SIGKILL
    harness.outlive()
    await harness.start()
    await until(flow, "completed", 30)

    assert [begun(harness, name) for name in ("one", "two", "three")] == [1, 2, 1]


@pytest.mark.parametrize("point", CLIENT)
async def test_a_workflow_exists_as_a_whole_or_not_at_all_wherever_its_client_died(
    harness: WorkerHarness, point: str
) -> None:
    before = snapshot(harness)
    harness.allow("death")
    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "tests.worker.killed_client", point],
        cwd=ROOT,
        env=harness.environment,
        timeout=30,
        capture_output=True,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    flow = harness.rota.workflows.get("killed")
    exists = await (await checked_session(harness.rota)).workflows.read("killed") is not None
    assert exists == (point not in EARLY)
    if exists:
        harness.outlive()
        await harness.start(queues="default,b")
        await until(flow, "completed", 30)
        assert [begun(harness, name) for name in ("one", "two", "three")] == [1, 1, 1]
        return

    store = (await checked_session(harness.rota)).store
    with harness.redis() as client:
        for queue in ("default", "b"):
            for run in cast(list[bytes], client.zrange(harness.key("prepared", queue), 0, -1)):
                client.zadd(harness.key("prepared", queue), {run: 1})  # more than an hour passes
            await store.apply_retention(queue)
    assert leftovers(harness, before) == set()
    async with harness.rota.workflow("killed", id="killed") as again:
        again.step(harness.program.run_step.call("again"))
    assert await again.state() == "running"
