"""`rota server-url`: where the server is that a program started here would use."""

from __future__ import annotations

import os

import click

from rota.cli import output
from rota.cli.settings import Settings, common_options


@click.command()
@common_options
@click.pass_obj
def command(settings: Settings) -> int:
    """Print where the server is: the configured one, else the embedded one if it is running.

    Starts nothing. A password is never shown.
    """
    from rota.embedded import find_directory, running_url
    from rota.store.address import find_address

    address = find_address(settings.url, os.environ)
    directory = None
    if address.kind == "embedded":
        directory = find_directory()
        url = running_url(directory)
    else:
        url = str(address)
    if settings.json:
        output.document({"url": url, "kind": address.kind, "directory": str(directory) if directory else None})
    elif url is not None:
        output.text(url)
    if url is None:
        output.note(
            f"no embedded server is running for {directory}; `rota dev` or any program that uses Rota here starts it"
        )
        return 1
    return 0
