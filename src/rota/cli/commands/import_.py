"""`rota import`: restores an export, on this or another server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TextIO

import click

from rota.cli import output
from rota.cli.audit import audit
from rota.cli.common_options import Settings, common_options
from rota.cli.connection import connected, run
from rota.core.explain import format_count

if TYPE_CHECKING:
    from rota.client.import_jobs_schedules_and_workflows import ImportReport

#: Jobs that are named, of those that were left out.
SHOWN: Final = 10


@click.command()
@click.argument("file", type=click.File("r", encoding="utf-8"))
@common_options
@click.pass_obj
def command(settings: Settings, /, file: TextIO) -> int:
    """Restore the lines of FILE ("-" for stdin), which `rota export` wrote.

    Repeat it if it was interrupted: nothing is restored twice. A job that was processing counts as one whose worker
    died. The exit code is 1 if a job was left out or the file ends early.
    """
    return run(_import(settings, file))


async def _import(settings: Settings, file: TextIO) -> int:
    async with connected(settings) as rota:
        report = await rota.import_lines(file)
        await audit(rota, "import", file.name, jobs=report.jobs, workflows=report.workflows, schedules=report.schedules)
    return print_report(settings, report)


def print_report(settings: Settings, report: ImportReport) -> int:
    """Prints what an import has done. Returns the exit code."""
    if settings.json:
        output.document(
            {
                "jobs": report.jobs,
                "schedules": report.schedules,
                "workflows": report.workflows,
                "present": report.present,
                "in_use": report.in_use,
                "without_blob": report.without_blob,
                "is_complete": report.is_complete,
            }
        )
    else:
        restored = (
            format_count(report.jobs, "job"),
            format_count(report.schedules, "schedule"),
            format_count(report.workflows, "workflow"),
        )
        output.text(f"restored {', '.join(restored)}; {report.present:,} were there already")
        for job in report.in_use[:SHOWN]:
            output.text(f"left out {job}: its id has another unfinished job here; cancel that one and import again")
        if len(report.in_use) > SHOWN:
            output.text(f"left out {len(report.in_use) - SHOWN:,} more")
        for job in report.without_blob[:SHOWN]:
            output.text(f"left out {job}: a blob of it is not in the file, or another job here has it; export it again")
        if len(report.without_blob) > SHOWN:
            output.text(f"left out {len(report.without_blob) - SHOWN:,} more without their blobs")
        if not report.is_complete:
            output.text("the file ends early: restore the whole export if there is one; nothing is restored twice")
    return 0 if report.is_complete and not report.in_use and not report.without_blob else 1
