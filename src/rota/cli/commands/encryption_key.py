"""`rota encryption-key`: prints a new key that encrypts arguments and results."""

from __future__ import annotations

import click

from rota.cli import output


@click.command()
def command() -> int:
    """Print a new random key for ROTA_ENCRYPTION_KEYS or Encrypted(keys). It is not stored anywhere."""
    from rota.client.encryption import new_key

    output.text(new_key())
    return 0
