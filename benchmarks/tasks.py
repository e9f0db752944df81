"""The tasks that benchmarks run. `ROTA_URL` says on which server."""

from __future__ import annotations

import time

from rota import Rota

rota = Rota(namespace="bench")


@rota.task
async def noop(payload: str = "") -> None:
    """Does nothing: what remains is the queue."""


@rota.task
async def started_at() -> float:
    """When the handler began, by the clock that all processes of a machine share."""
    return time.monotonic()


@rota.task
async def echo(value: int) -> int:
    """A step of a workflow."""
    return value
