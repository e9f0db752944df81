"""`rota events`: prints events as they occur."""

from __future__ import annotations

import click

from rota.cli import output
from rota.cli.common_options import Settings, common_options
from rota.cli.complete_names_from_store import complete_task
from rota.cli.connection import connected, run
from rota.core.format_iso_time import iso_time_or_none


@click.command()
@common_options
@click.option(
    "--queue", "queues", multiple=True, help="Only this queue; repeatable. Default: all queues that exist now."
)
@click.option("--task", help="Only events of this task's jobs.", shell_complete=complete_task)
@click.option("--after", metavar="ID", help="Start after this event. Default: now.")
@click.pass_obj
def command(settings: Settings, queues: tuple[str, ...], task: str | None, after: str | None) -> None:
    """Print events of jobs as they occur, until Ctrl-C. With --json: one line per event."""
    run(_follow(settings, queues, task, after))


async def _follow(settings: Settings, queues: tuple[str, ...], task: str | None, after: str | None) -> None:
    from rota.cli.to_json import event_json
    from rota.client.session import session_of

    async with connected(settings) as rota:
        if not queues and not await session_of(rota).views.queues():
            raise NoQueues("no queue has been used yet: name one with --queue to wait for it")
        async for event in rota.events(queues=queues or None, task=task, after=after):
            if settings.json:
                output.json_line(event_json(event))
            else:
                output.text(f"{iso_time_or_none(event.at)}  {event.queue}  {event.verb:<10} {' '.join(event.runs)}")


class NoQueues(click.ClickException):
    """There is no queue to follow."""

    exit_code = 3
