"""`rota doctor`: checks the server's configuration and the state of the queues, and repairs their indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from rota.cli import output
from rota.cli.common_options import Settings, common_options
from rota.cli.connection import PATIENCE_S, run

if TYPE_CHECKING:
    from rota.monitoring.doctor import Finding

LEVELS: Final = {"ok": "OK", "warn": "WARN", "fail": "FAIL"}


@click.command()
@click.option("--strict", is_flag=True, help="Exit with 1 on warnings as well.")
@click.option("--repair", is_flag=True, help="Repair indexes, counters and records that do not agree.")
@common_options
@click.pass_obj
def command(settings: Settings, /, *, strict: bool, repair: bool) -> int:
    """Check the server and the state of the queues. Each finding has a level (OK, WARN, FAIL) and the remedy.

    With --repair, jobs that an index has lost return to it, and entries of jobs that are gone are removed. It works in
    short steps, so workers and producers may continue, and it may be repeated at any time.

    The exit code is 1 if any finding is FAIL; with --strict, also if any is WARN.
    """
    return run(_examine(settings, is_strict=strict, is_repairing=repair))


async def _examine(settings: Settings, *, is_strict: bool, is_repairing: bool) -> int:
    from rota.client.rota import Rota
    from rota.monitoring.doctor import examine
    from rota.monitoring.index_findings import examine_indexes

    async with Rota(settings.url, namespace=settings.namespace or "rota", patience=PATIENCE_S) as rota:
        findings = await examine(rota)
        if _can_check_indexes(findings):
            findings += await examine_indexes(rota, is_repairing=is_repairing)
        address = rota.address
    levels = {finding.level for finding in findings}
    is_healthy = "fail" not in levels
    if settings.json:
        shown = [{"level": f.level, "check": f.check, "message": f.message} for f in findings]
        output.document({"server": address, "is_healthy": is_healthy, "findings": shown})
    else:
        rows = [(LEVELS[finding.level], finding.check, finding.message) for finding in findings]
        output.table(output.Table(("level", "check", "finding"), rows))
    return 0 if is_healthy and not (is_strict and "warn" in levels) else 1


def _can_check_indexes(findings: Sequence[Finding]) -> bool:
    """False if the server is unreachable, too old, a replica or full, or holds data of a newer version."""
    return not any(f.level == "fail" and f.check in ("server", "version", "role", "memory", "format") for f in findings)
