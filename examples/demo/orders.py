"""Workflows of the demo: one that succeeds, one that is undone, one that is held and resumed."""

from __future__ import annotations

import asyncio
from typing import Final

from examples.demo.kinds import Kind, Show
from examples.demo.tasks import pay, refund, restock, rota, send, take
from rota import Draft, Flow, Job, Workflow


async def _order(show: Show, item: str, *, is_held: bool = False) -> Workflow:
    async with rota.workflow("order", on_failure="hold" if is_held else "undo") as flow:
        paid = flow.step(pay.call(item), name="pay")
        paid.undo(refund.call(paid.result))
        taken = flow.step(take.call(item), name="take")
        taken.undo(restock.call(taken.result))
        flow.step(send.call(taken.result, paid.result), name="send")
    await _name(show, flow)
    return flow


async def _name(show: Show, flow: Draft) -> None:
    for step in (await flow.refresh()).steps:
        job: Job[object] = rota.job(f"{step.queue}:{step.id}@{step.run}")
        show.name(job, f"order: {step.name}")


async def _ended(flow: Workflow) -> Flow:
    await rota.wait_flow_ended(flow.id)
    return await flow.refresh()


async def _play_done(show: Show) -> Flow:
    return await _ended(await _order(show, "book"))


async def _play_undone(show: Show) -> Flow:
    flow = await _ended(await _order(show, "elephant"))
    show.say(f"the order of an elephant is undone: {len(flow.undos)} steps compensated")
    return flow


async def _play_resumed(show: Show) -> Flow:
    flow = await _order(show, "piano", is_held=True)
    await _ended(flow)
    await asyncio.sleep(1)
    show.say("the demo resumes the order of a piano")
    await flow.resume()
    return await _ended(flow)


def _was_undone(flow: Flow) -> bool:
    return [flow.undos[place].outcome for place in (0, 1)] == ["completed", "completed"]


def _was_resumed(flow: Flow) -> bool:
    return [flow.stand(place).attempts for place in range(3)] == [1, 1, 2]


WORKFLOWS: Final = (
    Kind("workflow", "completed, 3 of 3 steps", _play_done, lambda flow: flow.done == 3),
    Kind("workflow, compensated", "undone, 2 steps undone", _play_undone, _was_undone),
    Kind("workflow, held, resumed", "completed, only one step again", _play_resumed, _was_resumed),
)
