"""`rota events`: what happens, as it happens."""

from __future__ import annotations

import click

from rota.cli import output
from rota.cli.settings import Settings, common_options, connected, run
from rota.core.shapes import moment


@click.command()
@common_options
@click.option("--queue", "queues", multiple=True, help="Only this queue; may be given again. Else all there are now.")
@click.option("--task", help="Only what happens to jobs of this task.")
@click.option("--after", metavar="ID", help="From after this event on, not from now on.")
@click.pass_obj
def command(settings: Settings, queues: tuple[str, ...], task: str | None, after: str | None) -> None:
    """Print what happens to jobs, as it happens, until Ctrl-C. With --json: a line for every event."""
    run(_follow(settings, queues, task, after))


async def _follow(settings: Settings, queues: tuple[str, ...], task: str | None, after: str | None) -> None:
    from rota.cli.shapes import event_shape

    async with connected(settings) as rota:
        if not queues and not await rota.views.queues():
            raise NoQueues("no queue has been used yet, so nothing can happen; name one with --queue to wait for it")
        async for event in rota.events(queues=queues or None, task=task, after=after):
            if settings.json:
                output.json_line(event_shape(event))
            else:
                output.text(f"{moment(event.at)}  {event.queue}  {event.verb:<10} {' '.join(event.runs)}")


class NoQueues(click.ClickException):
    """There is nothing to follow."""

    exit_code = 3
