"""`rota workflow`: the workflows; list and show them, cancel and resume one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from rota.cli import output
from rota.cli.job import yes_option
from rota.cli.settings import Settings, common_options, confirm, connected, run

if TYPE_CHECKING:
    from rota.core.workflow import WorkflowInfo

STATES = ("waiting", "running", "completed", "failed", "undoing", "parked", "undone", "cancelled")
workflow_argument = click.argument("workflow_id", metavar="ID")


@click.group()
def command() -> None:
    """Look at workflows, cancel and resume them."""


@command.command(name="list")
@common_options
@click.option("--state", "states", type=click.Choice(STATES), multiple=True, help="Only those in this state.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@click.pass_obj
def list_(settings: Settings, states: tuple[str, ...], limit: int) -> None:
    """List workflows, the newest first: those that have not ended, and those that ended within a day."""
    run(_list(settings, states, limit))


async def _list(settings: Settings, states: Sequence[str], limit: int) -> None:
    from rota.core.shapes import workflow_shape

    async with connected(settings) as rota:
        found = await rota.workflows.list(states=states, limit=limit)
        now = await rota.views.now()
    if settings.json:
        output.document({"workflows": [workflow_shape(info) for info in found]})
    elif found:
        output.table(_table(found, now))
    else:
        output.note("no workflow is known" if not states else "no workflow is in that state")


def _table(infos: Sequence[WorkflowInfo], now: int) -> output.Table:
    from rota.core.explain import span

    rows = [
        (info.id, info.name, info.state, f"{info.done} of {info.total}", span(now - info.created_at), info.cause)
        for info in infos
    ]
    return output.Table(("workflow", "name", "state", "steps done", "age", "cause"), rows)


@command.command()
@common_options
@click.option("--mermaid", is_flag=True, help="Print the graph as a Mermaid flowchart.")
@workflow_argument
@click.pass_obj
def show(settings: Settings, workflow_id: str, mermaid: bool) -> None:
    """Show a workflow: how it stands, and each of its steps."""
    run(_show(settings, workflow_id, mermaid=mermaid))


async def _show(settings: Settings, workflow_id: str, *, mermaid: bool) -> None:
    from rota.cli.shapes import workflow_shape
    from rota.core import picture

    async with connected(settings) as rota:
        flow = await rota.workflows.get(workflow_id).refresh()
    if settings.json:
        output.document(workflow_shape(flow))
    else:
        output.text(picture.mermaid(flow) if mermaid else picture.draw(flow))


@command.command()
@common_options
@click.option("--no-undo", is_flag=True, help="Leave what was done as it is.")
@yes_option
@workflow_argument
@click.pass_obj
def cancel(settings: Settings, workflow_id: str, no_undo: bool, yes: bool) -> None:
    """Cancel a workflow: what runs is stopped, what was done is undone."""
    run(_cancel(settings, workflow_id, undo=not no_undo, yes=yes))


async def _cancel(settings: Settings, workflow_id: str, *, undo: bool, yes: bool) -> None:
    async with connected(settings) as rota:
        flow = rota.workflows.get(workflow_id)
        found = await flow.refresh()
        rest = "what was done is undone" if undo else "what was done stays"
        stands = f"{found.state}, {found.done} of {len(found.steps)} steps done"
        # One that has ended is refused by `cancel`, which says so.
        confirm(f"This cancels workflow {found.name} {found.id} ({stands}); {rest}.", yes=yes or found.is_over)
        await flow.cancel(undo=undo)
        state = await flow.state()
    _say(settings, workflow_id, state)


@command.command()
@common_options
@workflow_argument
@click.pass_obj
def resume(settings: Settings, workflow_id: str) -> None:
    """Go on with a workflow that failed and is held, or whose undo is parked."""
    run(_resume(settings, workflow_id))


async def _resume(settings: Settings, workflow_id: str) -> None:
    async with connected(settings) as rota:
        flow = rota.workflows.get(workflow_id)
        await flow.resume()
        state = await flow.state()
    _say(settings, workflow_id, state)


def _say(settings: Settings, workflow_id: str, state: str) -> None:
    if settings.json:
        output.document({"id": workflow_id, "state": state})
    else:
        output.text(f"workflow {workflow_id} is {state}")
