"""`rota annotate`: marks a moment on the charts, such as a deploy."""

from __future__ import annotations

from typing import Literal

import click

from rota.cli import output
from rota.cli.audit import user
from rota.cli.common_options import Settings, common_options
from rota.cli.complete_names_from_store import complete_queue
from rota.cli.connection import connected, run


@click.command()
@common_options
@click.argument("text")
@click.option("--deploy", is_flag=True, help="The mark of a deploy instead of a note.")
@click.option("--code-version", default="", help="The version that is deployed; implies --deploy.")
@click.option("--queue", default="", shell_complete=complete_queue, help="Only on the charts of this queue.")
@click.pass_obj
def command(settings: Settings, text: str, deploy: bool, code_version: str, queue: str) -> None:
    """Mark this moment on the charts of the dashboard."""
    run(_annotate(settings, text, "deploy" if deploy or code_version else "note", code_version, queue))


async def _annotate(settings: Settings, text: str, kind: Literal["deploy", "note"], version: str, queue: str) -> None:
    from rota.core.format_iso_time import iso_time

    async with connected(settings) as rota:
        made = await rota.annotations.add(text, kind=kind, version=version, queue=queue, by=user())
    if settings.json:
        output.document({"id": made.id, "at": iso_time(made.at), "kind": made.kind, "text": made.text})
    else:
        output.text(f"marked {iso_time(made.at)}: {made.text}")
