"""`rota doctor`: is this server fit for jobs, and is anything left lying?"""

from __future__ import annotations

from typing import Final

import click

from rota.cli import output
from rota.cli.settings import PATIENCE_S, Settings, common_options, run

WORDS: Final = {"ok": "OK", "warn": "WARN", "fail": "FAIL"}


@click.command()
@common_options
@click.pass_obj
def command(settings: Settings) -> int:
    """Check the server, and what waits on it: each line says OK, WARN or FAIL, what is at risk, and what to do.

    Exit code 1 when anything is FAIL.
    """
    return run(_examine(settings))


async def _examine(settings: Settings) -> int:
    from rota.client import Rota
    from rota.doctor import examine

    async with Rota(settings.url, namespace=settings.namespace or "rota", patience=PATIENCE_S) as rota:
        findings = await examine(rota)
        address = rota.address
    is_healthy = all(finding.level != "fail" for finding in findings)
    if settings.json:
        shown = [{"level": f.level, "check": f.check, "message": f.message} for f in findings]
        output.document({"server": address, "is_healthy": is_healthy, "findings": shown})
    else:
        rows = [(WORDS[finding.level], finding.check, finding.message) for finding in findings]
        output.table(output.Table(("level", "check", "finding"), rows))
    return 0 if is_healthy else 1
