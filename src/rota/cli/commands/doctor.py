"""`rota doctor`: checks the server's configuration and the state of the queues."""

from __future__ import annotations

from typing import Final

import click

from rota.cli import output
from rota.cli.common_options import Settings, common_options
from rota.cli.connection import PATIENCE_S, run

LEVELS: Final = {"ok": "OK", "warn": "WARN", "fail": "FAIL"}


@click.command()
@common_options
@click.pass_obj
def command(settings: Settings) -> int:
    """Check the server and the state of the queues. Each finding has a level (OK, WARN, FAIL) and the remedy.

    The exit code is 1 if any finding is FAIL.
    """
    return run(_examine(settings))


async def _examine(settings: Settings) -> int:
    from rota.client.rota import Rota
    from rota.monitoring.doctor import examine

    async with Rota(settings.url, namespace=settings.namespace or "rota", patience=PATIENCE_S) as rota:
        findings = await examine(rota)
        address = rota.address
    is_healthy = all(finding.level != "fail" for finding in findings)
    if settings.json:
        shown = [{"level": f.level, "check": f.check, "message": f.message} for f in findings]
        output.document({"server": address, "is_healthy": is_healthy, "findings": shown})
    else:
        rows = [(LEVELS[finding.level], finding.check, finding.message) for finding in findings]
        output.table(output.Table(("level", "check", "finding"), rows))
    return 0 if is_healthy else 1
