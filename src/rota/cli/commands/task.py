"""`rota task`: lists, pauses and resumes tasks."""

from __future__ import annotations

import click

from rota.cli import output
from rota.cli.audit import audit, user
from rota.cli.common_options import Settings, common_options
from rota.cli.complete_names_from_store import complete_task
from rota.cli.connection import connected, run

task_argument = click.argument("task", shell_complete=complete_task)
queue_option = click.option("--queue", help="Only in this queue; by default in all that have had its jobs.")


@click.group()
def command() -> None:
    """List, pause and resume tasks."""


@command.command(name="list")
@common_options
@click.pass_obj
def list_(settings: Settings) -> None:
    """List the tasks of the last day by queue, and which are paused."""
    run(_list(settings))


async def _list(settings: Settings) -> None:
    from rota.cli.to_json import paused_task_json

    async with connected(settings) as rota:
        counted = await rota.metrics_by_task(since=25 * 3600)
        paused = await rota.paused_tasks()
    pauses = {(one.queue, one.task): one for one in paused}
    names = sorted({(queue, task) for queue, tasks in counted.items() for task in tasks} | pauses.keys())
    if settings.json:
        tasks = [{"queue": queue, "task": task, "is_paused": (queue, task) in pauses} for queue, task in names]
        output.document({"tasks": tasks, "paused": [paused_task_json(one) for one in paused]})
        return
    rows: list[tuple[str, ...]] = []
    for queue, task in names:
        one = pauses.get((queue, task))
        why = "" if one is None else " ".join(filter(None, (one.pause.by, one.pause.note)))
        waiting = str(one.waiting) if one is not None else output.NOTHING
        rows.append((task, queue, "open" if one is None else "paused", waiting, why or output.NOTHING))
    if rows:
        output.table(output.Table(("task", "queue", "claims", "waiting", "paused by"), rows))
    else:
        output.note("no task has had a job in the last day")


@command.command()
@common_options
@task_argument
@queue_option
@click.option("--note", default="", help="Why: shown until the task is resumed.")
@click.pass_obj
def pause(settings: Settings, task: str, queue: str | None, note: str) -> None:
    """Pause a task on all workers: none of its jobs starts, the other jobs go on. Running jobs continue."""
    run(_pause(settings, task, queue, note))


async def _pause(settings: Settings, task: str, queue: str | None, note: str) -> None:
    async with connected(settings) as rota:
        queues = await rota.pause_task(task, queue=queue, note=note, by=user())
        await audit(rota, "pause", f"task {task}", queues=queues, note=note or None)
    if settings.json:
        output.document({"task": task, "queues": queues, "is_paused": True})
    else:
        output.text(f"task {task} is paused in {', '.join(queues)}")


@command.command()
@common_options
@task_argument
@queue_option
@click.pass_obj
def resume(settings: Settings, task: str, queue: str | None) -> None:
    """Resume a task: its jobs start in their order."""
    run(_resume(settings, task, queue))


async def _resume(settings: Settings, task: str, queue: str | None) -> None:
    async with connected(settings) as rota:
        queues = await rota.resume_task(task, queue=queue)
        await audit(rota, "resume", f"task {task}", queues=queues)
    if settings.json:
        output.document({"task": task, "queues": queues, "is_paused": False})
    else:
        output.text(f"task {task} is open in {', '.join(queues)}" if queues else f"task {task} was not paused")
