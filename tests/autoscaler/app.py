"""The program of autoscaled workers: its handlers keep a journal of what they began and finished."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Final

from rota import Context, Retry, Rota

FOLDER: Final = Path(os.environ.get("ROTA_TEST_FOLDER", "."))
rota = Rota(os.environ.get("ROTA_URL"), namespace=os.environ.get("ROTA_TEST_NAMESPACE", "rota"))


def note(text: str) -> None:
    """Adds a line to the journal, whatever happens to this process afterwards."""
    file = os.open(FOLDER / "journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{text}\n".encode())
    os.close(file)


@rota.task(retry=Retry(attempts=1))
async def nap(ctx: Context, seconds: float) -> None:
    """Works for that long."""
    note(f"began {ctx.job.ref.id} {ctx.job.counts.attempt}")
    await asyncio.sleep(seconds)
    note(f"ended {ctx.job.ref.id} {ctx.job.counts.attempt}")
