"""The tasks of `benchmarks.dependencies`. `ROTA_URL` selects the server."""

from __future__ import annotations

from rota import Rota

rota = Rota(namespace="bench")


@rota.task
async def noop(payload: str = "") -> None:
    """Does nothing: what remains is the queue."""


@rota.task
async def echo(value: int) -> int:
    """A step of a workflow."""
    return value
