"""`rota settings`: shows and changes the durations that all workers of a namespace share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from rota.cli import output
from rota.cli.audit import audit
from rota.cli.commands.enqueue import duration
from rota.cli.common_options import Settings, common_options
from rota.cli.connection import connected, run
from rota.core.lease_heartbeat_poll_and_grace_durations import NAMES

if TYPE_CHECKING:
    from rota.core.lease_heartbeat_poll_and_grace_durations import DurationSettings

MEANINGS = {
    "lease": "how long a worker keeps a job without a heartbeat",
    "heartbeat": "how often a worker renews its leases",
    "poll": "how often an idle worker claims without a wake-up",
    "grace": "how long handlers may run on after a worker was asked to stop",
}


@click.group()
def command() -> None:
    """Show and change the durations that all workers of the namespace share."""


@command.command()
@common_options
@click.pass_obj
def show(settings: Settings) -> None:
    """Show lease, heartbeat, fallback poll and grace period, and which of them were set."""
    run(_show(settings))


@command.command(name="set")
@common_options
@click.argument("values", metavar="NAME=TIME...", nargs=-1, required=True)
@click.pass_context
def set_(context: click.Context, values: Sequence[str]) -> None:
    """Set durations: `lease=30 poll=10s grace=2m`; `poll=default` restores one. Running workers follow within 5 s.

    \b
    lease      how long a worker keeps a job without a heartbeat
    heartbeat  how often a worker renews its leases: at most a third of the lease
    poll       how often an idle worker claims without a wake-up
    grace      how long handlers may run on after a worker was asked to stop
    """
    changes = dict(_parsed(context, value) for value in values)
    run(_set(context.obj, changes))


def _parsed(context: click.Context, text: str) -> tuple[str, float | None]:
    name, equals, value = text.partition("=")
    if not equals or name not in NAMES:
        raise click.BadParameter(f"{text!r}: write NAME=TIME, where NAME is one of {', '.join(NAMES)}")
    return name, None if value == "default" else duration(context, context.command.params[0], value)


async def _show(settings: Settings) -> None:
    async with connected(settings) as rota:
        found = await rota.settings.get()
    _print(settings, found)


async def _set(settings: Settings, changes: dict[str, float | None]) -> None:
    async with connected(settings) as rota:
        found = await rota.settings.change(**changes)
        await audit(rota, "change", "settings", **{name: "default" if v is None else v for name, v in changes.items()})
    _print(settings, found)
    if not settings.json:
        output.note("running workers follow within 5 s")


def _print(settings: Settings, found: DurationSettings) -> None:
    in_force = {name: getattr(found.durations, f"{name}_ms") for name in NAMES}
    given = [name for name in NAMES if getattr(found, f"{name}_ms") is not None]
    if settings.json:
        output.document({"version": found.version, **{f"{n}_ms": ms for n, ms in in_force.items()}, "set": given})
        return
    rows = [
        (name, f"{in_force[name] / 1000:g} s", "set" if name in given else "default", MEANINGS[name]) for name in NAMES
    ]
    output.table(output.Table(("setting", "value", "", "meaning"), rows))
