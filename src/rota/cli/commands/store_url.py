"""`rota store-url`: prints the URL of the Valkey or Redis server that an application started here would use."""

from __future__ import annotations

import os

import click

from rota.cli import output
from rota.cli.common_options import Settings, common_options


@click.command()
@common_options
@click.pass_obj
def command(settings: Settings) -> int:
    """Print the address of the server: the configured one, else the embedded one if it is running.

    Does not start a server. Passwords are not printed.
    """
    from rota.embedded.find_or_launch_shared_valkey import find_directory, running_url
    from rota.store.redis.address import find_address

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
        output.note(f"no embedded server is running for {directory}: `rota dev`, or any application here, starts it")
        return 1
    return 0
