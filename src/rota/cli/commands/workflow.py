"""`rota workflow`: lists, shows, cancels and resumes workflows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from rota.cli import output
from rota.cli.audit import audit
from rota.cli.commands.job import yes_option
from rota.cli.common_options import Settings, common_options
from rota.cli.confirmation import confirm
from rota.cli.connection import connected, run

if TYPE_CHECKING:
    from rota.core.workflow_record_and_decisions import WorkflowInfo

STATES = ("waiting", "running", "completed", "failed", "undoing", "parked", "undone", "cancelled")
workflow_argument = click.argument("workflow_id", metavar="ID")


@click.group()
def command() -> None:
    """Show, cancel and resume workflows."""


@command.command(name="list")
@common_options
@click.option(
    "--state", "states", type=click.Choice(STATES), multiple=True, help="Only workflows in this state; repeatable."
)
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@click.pass_obj
def list_(settings: Settings, states: tuple[str, ...], limit: int) -> None:
    """List workflows, newest first: those that have not ended, and those of the last 24 hours."""
    run(_list(settings, states, limit))


async def _list(settings: Settings, states: Sequence[str], limit: int) -> None:
    from rota.client.session import session_of
    from rota.core.json_for_cli_and_http import workflow_summary_json

    async with connected(settings) as rota:
        found = await rota.workflows.list(states=states, limit=limit)
        now = await session_of(rota).views.now()
    if settings.json:
        output.document({"workflows": [workflow_summary_json(info) for info in found]})
    elif found:
        output.table(_table(found, now))
    else:
        output.note("there are no workflows" if not states else "there are no workflows in this state")


def _table(infos: Sequence[WorkflowInfo], now: int) -> output.Table:
    from rota.core.explain import format_duration

    rows = [
        (
            info.id,
            info.name,
            info.state,
            f"{info.done} of {info.total}",
            format_duration(now - info.created_at),
            info.cause,
        )
        for info in infos
    ]
    return output.Table(("workflow", "name", "state", "steps done", "age", "cause"), rows)


@command.command()
@common_options
@click.option("--mermaid", is_flag=True, help="Print the graph as a Mermaid flowchart.")
@workflow_argument
@click.pass_obj
def show(settings: Settings, workflow_id: str, mermaid: bool) -> None:
    """Show a workflow and its steps."""
    run(_show(settings, workflow_id, mermaid=mermaid))


async def _show(settings: Settings, workflow_id: str, *, mermaid: bool) -> None:
    from rota.cli.to_json import workflow_json
    from rota.core import workflow_text

    async with connected(settings) as rota:
        workflow = await rota.workflows.get(workflow_id).refresh()
    if settings.json:
        output.document(workflow_json(workflow))
    else:
        output.text(workflow_text.mermaid(workflow) if mermaid else workflow_text.draw(workflow))


@command.command()
@common_options
@click.option("--no-undo", is_flag=True, help="Do not compensate completed steps.")
@yes_option
@workflow_argument
@click.pass_obj
def cancel(settings: Settings, workflow_id: str, no_undo: bool, yes: bool) -> None:
    """Cancel a workflow: stops running steps, and compensates completed ones."""
    run(_cancel(settings, workflow_id, undo=not no_undo, yes=yes))


async def _cancel(settings: Settings, workflow_id: str, *, undo: bool, yes: bool) -> None:
    async with connected(settings) as rota:
        workflow = rota.workflows.get(workflow_id)
        found = await workflow.refresh()
        rest = "completed steps are compensated" if undo else "completed steps are kept"
        progress = f"{found.state}, {found.done} of {len(found.steps)} steps done"
        # Without a question if it has ended: `cancel` refuses it.
        confirm(f"This cancels workflow {found.name} {found.id} ({progress}); {rest}.", yes=yes or found.is_over)
        await workflow.cancel(undo=undo)
        await audit(rota, "cancel", f"workflow {found.id}", undo=undo)
        state = await workflow.state()
    _print_state(settings, workflow_id, state)


@command.command()
@common_options
@workflow_argument
@click.pass_obj
def resume(settings: Settings, workflow_id: str) -> None:
    """Resume a workflow that is held after a failure, or parked after a failed compensation."""
    run(_resume(settings, workflow_id))


async def _resume(settings: Settings, workflow_id: str) -> None:
    async with connected(settings) as rota:
        workflow = rota.workflows.get(workflow_id)
        await workflow.resume()
        await audit(rota, "resume", f"workflow {workflow_id}")
        state = await workflow.state()
    _print_state(settings, workflow_id, state)


def _print_state(settings: Settings, workflow_id: str, state: str) -> None:
    if settings.json:
        output.document({"id": workflow_id, "state": state})
    else:
        output.text(f"workflow {workflow_id} is {state}")
