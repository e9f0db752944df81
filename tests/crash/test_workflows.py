"""Whoever carries a workflow on is killed at each instant: no step is skipped, and none that ended is run again."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from typing import cast

import pytest

from rota import Workflow
from tests.worker.crew import ROOT, Crew
from tests.worker.test_workflows import begun, leftovers, snapshot, story, until

#: Scripts between the failure of a step and the first compensation.
UNDO = [
    f"{when}:{script}"
    for script in ("take", "advance", "take_flows", "cancel", "prepare", "register", "commit", "turn")
    for when in ("before", "after")
]
LIST = [f"{when}:{script}" for script in ("prepare", "register", "commit", "turn") for when in ("before", "after")]
CLIENT = [
    f"{when}:{script}"
    for script in ("prepare", "register", "open_flow", "commit", "deliver", "turn")
    for when in ("before", "after")
]


async def _order(crew: Crew) -> Workflow:
    app = crew.program
    async with crew.rota.workflow("order") as flow:
        pay = flow.step(app.act.call("pay"))
        pay.undo(app.revert.using(queue="undo").call("pay", pay.result))
        pack = flow.step(app.act.call("pack", pay.result))
        pack.undo(app.revert.using(queue="undo").call("pack"))
        ship = flow.step(app.act.using(retry=1).call("ship", pack.result, hold_at="fail", needs="never"))
        late = flow.step(app.act.using(delay=3600).call("late"), after=[pay])
        flow.step(app.act.call("last", [ship.result, late.result]))
    return flow


@pytest.mark.parametrize("point", UNDO)
async def test_an_undo_is_carried_on_wherever_its_conductor_died(crew: Crew, point: str) -> None:
    """S1-11, S1-12. Compensations run elsewhere, so that only the death of the conductor counts."""
    victim = await crew.start(hook=point)
    flow = await _order(crew)
    await crew.noted("ship")
    crew.allow("death")
    crew.allow("fail")
    assert await victim.ended(15) == -signal.SIGKILL
    crew.outlive()
    await crew.start(queues="default,undo")
    await until(flow, "undone", 30)

    told = story(crew)
    assert [begun(crew, name) for name in ("pay", "pack", "undo pay", "undo pack", "last")] == [1, 1, 1, 1, 0]
    assert told.index("end undo pack") < told.index("begin undo pay")
    assert crew.notes("undo-pay") == ["pay"]


@pytest.mark.parametrize("point", ["before:let_go", "after:let_go"])
async def test_its_end_is_carried_on_too(crew: Crew, point: str) -> None:
    victim = await crew.start(queues="default,undo", hook=point)
    crew.allow("death")
    crew.allow("fail")
    flow = await _order(crew)
    assert await victim.ended(15) == -signal.SIGKILL
    crew.outlive()
    await crew.start(queues="default,undo")
    await until(flow, "undone", 30)

    assert [begun(crew, name) for name in ("pay", "pack", "undo pay", "undo pack")] == [1, 1, 1, 1]


@pytest.mark.parametrize("point", LIST)
async def test_a_list_is_gone_through_wherever_its_conductor_died(crew: Crew, point: str) -> None:
    victim = await crew.start(hook=point)
    app = crew.program
    async with crew.rota.workflow("batch") as flow:
        gate = flow.step(app.act.call("gate", returns=300, hold_at="go"))
        found = flow.step(app.numbers.call(gate.result))
        doubled = flow.map(app.double.using(queue="items"), found.result)
        flow.step(app.echo.using(queue="items").call(doubled.result))
    await crew.noted("gate")
    crew.allow("death")
    crew.allow("go")
    assert await victim.ended(15) == -signal.SIGKILL
    crew.outlive()
    await crew.start(queues="default,items")

    await until(flow, "completed", 30)
    assert await flow.result(1) == [2 * number for number in range(300)]
    assert sorted(map(int, crew.notes("double"))) == list(range(300))


@pytest.mark.parametrize("point", ["before:redrive", "after:redrive", "before:turn", "after:turn"])
async def test_a_resumed_workflow_goes_on_once_wherever_its_conductor_died(crew: Crew, point: str) -> None:
    first = await crew.start()
    app = crew.program
    async with crew.rota.workflow("order", resume="on_start") as flow:
        one = flow.step(app.act.call("one"))
        two = flow.step(app.act.using(retry=1).call("two", one.result, needs="mended"))
        flow.step(app.act.call("three", two.result))
    await until(flow, "failed")
    first.terminate()
    await first.ended()
    crew.allow("mended")
    crew.allow("death")
    victim = crew.launch(hook=point, queues="other")
    assert await victim.ended(20) == -signal.SIGKILL
    crew.outlive()
    await crew.start()
    await until(flow, "completed", 30)

    assert [begun(crew, name) for name in ("one", "two", "three")] == [1, 2, 1]


@pytest.mark.parametrize("point", CLIENT)
async def test_a_workflow_exists_as_a_whole_or_not_at_all_wherever_its_client_died(crew: Crew, point: str) -> None:
    before = snapshot(crew)
    crew.allow("death")
    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "tests.worker.doomed_client", point],
        cwd=ROOT, env=crew.environment, timeout=30, capture_output=True, check=False,
    )  # fmt: skip
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    flow = crew.rota.workflows.get("doomed")
    exists = await (await crew.rota.checked_flows()).read("doomed") is not None
    assert exists == (point not in [*CLIENT[:4], "before:open_flow"])
    if exists:
        crew.outlive()
        await crew.start(queues="default,b")
        await until(flow, "completed", 30)
        assert [begun(crew, name) for name in ("one", "two", "three")] == [1, 1, 1]
        return

    store = await crew.rota.checked_store()
    with crew.redis() as client:
        for queue in ("default", "b"):
            for run in cast(list[bytes], client.zrange(crew.key("unborn", queue), 0, -1)):
                client.zadd(crew.key("unborn", queue), {run: 1})  # more than an hour passes
            await store.sweep(queue)
    assert leftovers(crew, before) == set()
    async with crew.rota.workflow("doomed", id="doomed") as again:
        again.step(crew.program.act.call("again"))
    assert await again.state() == "running"
