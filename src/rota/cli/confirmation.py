"""Asks for confirmation before a command changes something."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    pass


class NotConfirmed(click.ClickException):
    """Nothing was changed, because the question was not confirmed."""

    exit_code = 2


def confirm(question: str, *, yes: bool) -> None:
    """Asks for confirmation, unless `--yes` was given. Raises NotConfirmed, also without a terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise NotConfirmed(f"{question} stdin is not a terminal: add --yes to confirm. Nothing was changed.")
    if not _ask(f"{question} Continue?"):
        raise NotConfirmed("not confirmed: nothing was changed.")


def _ask(question: str) -> bool:
    # A running event loop handles SIGINT itself, and would ignore the first Ctrl-C during the prompt.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return click.confirm(question, err=True)
    finally:
        signal.signal(signal.SIGINT, before)
