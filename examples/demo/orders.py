"""Workflows of the demo: one that succeeds, one that is undone, one that is held and resumed."""

from __future__ import annotations

import asyncio
from typing import Final

from examples.demo.kinds import Kind, Show
from examples.demo.tasks import pay, refund, restock, rota, send, take
from rota import Job, Workflow, WorkflowBuilder, WorkflowRecord


async def _order(show: Show, item: str, *, is_held: bool = False) -> Workflow:
    async with rota.workflow("order", on_failure="hold" if is_held else "undo") as workflow:
        paid = workflow.step(pay.call(item), name="pay")
        paid.undo(refund.call(paid.result))
        taken = workflow.step(take.call(item), name="take")
        taken.undo(restock.call(taken.result))
        workflow.step(send.call(taken.result, paid.result), name="send")
    await _name(show, workflow)
    return workflow


async def _name(show: Show, workflow: WorkflowBuilder) -> None:
    for step in (await workflow.refresh()).steps:
        job: Job[object] = rota.job(f"{step.queue}:{step.id}@{step.run}")
        show.name(job, f"order: {step.name}")


async def _ended(workflow: Workflow) -> WorkflowRecord:
    return await workflow.wait()


async def _play_done(show: Show) -> WorkflowRecord:
    return await _ended(await _order(show, "book"))


async def _play_undone(show: Show) -> WorkflowRecord:
    workflow = await _ended(await _order(show, "elephant"))
    show.say(f"the order of an elephant is undone: {len(workflow.undo_states)} steps compensated")
    return workflow


async def _play_resumed(show: Show) -> WorkflowRecord:
    workflow = await _order(show, "piano", is_held=True)
    await _ended(workflow)
    await asyncio.sleep(1)
    show.say("the demo resumes the order of a piano")
    await workflow.resume()
    return await _ended(workflow)


def _was_undone(workflow: WorkflowRecord) -> bool:
    return [workflow.undo_states[index].outcome for index in (0, 1)] == ["completed", "completed"]


def _was_resumed(workflow: WorkflowRecord) -> bool:
    return [workflow.step_state(index).attempts for index in range(3)] == [1, 1, 2]


WORKFLOWS: Final = (
    Kind("workflow", "completed, 3 of 3 steps", _play_done, lambda workflow: workflow.done == 3),
    Kind("workflow, compensated", "undone, 2 steps undone", _play_undone, _was_undone),
    Kind("workflow, held, resumed", "completed, only one step again", _play_resumed, _was_resumed),
)
