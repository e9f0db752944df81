"""`rota export`: writes every job, schedule and workflow as lines of JSON while the system runs."""

from __future__ import annotations

import os
from pathlib import Path

import click

from rota.cli import output
from rota.cli.common_options import Settings, common_options
from rota.cli.connection import connected, run


@click.command()
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@common_options
@click.pass_obj
def command(settings: Settings, /, file: Path | None) -> None:
    """Write every job, schedule and workflow to FILE, or to stdout, as lines of JSON.

    Workers and producers may continue. Each job is written as it was at one moment; one that is enqueued after the
    export began may be missing. `rota import` restores the lines. They contain arguments and results: keep them like
    the data of the server.
    """
    run(_export(settings, file))


async def _export(settings: Settings, file: Path | None) -> None:
    async with connected(settings) as rota:
        if file is None:
            async for line in rota.export_lines():
                click.echo(line)
            return
        # A file of that name is complete: one that was cut off has another name.
        partial, count = file.with_name(f"{file.name}.partial"), 0
        try:
            with partial.open("w", encoding="ascii") as lines:
                partial.chmod(0o600)
                async for line in rota.export_lines():
                    lines.write(f"{line}\n")
                    count += 1
                lines.flush()
                os.fsync(lines.fileno())
            partial.replace(file)
        except OSError as error:
            raise click.ClickException(f"{file} cannot be written: {error.strerror}") from error
    output.note(f"{count:,} lines written to {file}")
