"""`rota mirror`: keeps a copy of every job on a second server, and restores from it."""

from __future__ import annotations

import asyncio

import click

from rota.cli import output
from rota.cli.audit import audit
from rota.cli.commands.import_ import print_report
from rota.cli.common_options import Settings, common_options
from rota.cli.connection import PATIENCE_S, connected, run


@click.group()
def command() -> None:
    """Keep a copy of every job, schedule and workflow on a second server, and restore from it.

    The second server is given as a URL. It may be small, and shared with other programs; no worker runs the copies.
    """


@command.command(name="run")
@common_options
@click.option(
    "--reconcile",
    type=click.FloatRange(min=1),
    default=300.0,
    show_default=True,
    help="Seconds from one comparison of everything to the next.",
)
@click.argument("second", metavar="URL")
@click.pass_obj
def run_(settings: Settings, second: str, reconcile: float) -> None:
    """Keep the copy on the server at URL current, until Ctrl-C.

    It follows the events of the jobs, continues where it stopped, and compares everything from time to time. One that
    is started beside another takes over. It ends, and leaves the copy as it is, when the mirrored server has lost data.
    """
    run(_mirror(settings, second, reconcile))


@command.command()
@common_options
@click.argument("second", metavar="URL")
@click.pass_obj
def restore(settings: Settings, second: str) -> int:
    """Restore the copy on the server at URL into the server of --url. As `rota import`: it may be repeated."""
    return run(_restore(settings, second))


@command.command()
@common_options
@click.argument("second", metavar="URL")
@click.pass_obj
def export(settings: Settings, second: str) -> None:
    """Print the copy on the server at URL as lines that `rota import` restores."""
    run(_export(settings, second))


async def _mirror(settings: Settings, second: str, reconcile_s: float) -> None:
    from rota.client.rota import Rota

    async with connected(settings) as rota, Rota(second, namespace=rota.namespace, patience=PATIENCE_S) as other:
        output.note(f"mirroring {rota.address} to {other.address}")
        try:
            await rota.mirror(to=other, reconcile=reconcile_s)
        except asyncio.CancelledError:
            output.note("stopped; it continues here when it is started again")
            raise


async def _restore(settings: Settings, second: str) -> int:
    from rota.client.rota import Rota

    async with connected(settings) as rota, Rota(second, namespace=rota.namespace, patience=PATIENCE_S) as other:
        report = await rota.import_lines(other.mirrored_lines())
        await audit(rota, "import", f"mirror on {other.address}", jobs=report.jobs, workflows=report.workflows)
    return print_report(settings, report)


async def _export(settings: Settings, second: str) -> None:
    from rota.client.rota import Rota

    async with Rota(second, namespace=settings.namespace or "rota", patience=PATIENCE_S) as other:
        async for line in other.mirrored_lines():
            click.echo(line)
