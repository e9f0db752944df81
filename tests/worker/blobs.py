"""Tasks that take blobs."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from rota import Blob, ErrorRecord, JobRecord, Rota

rota = Rota(namespace=os.environ["ROTA_TEST_NAMESPACE"], blobs=os.environ.get("ROTA_TEST_BLOBS"))


@rota.task
async def digest(blob: Blob, note: str = "") -> list[object]:
    """Reads it piece by piece."""
    found = hashlib.sha256()
    async for chunk in blob.chunks():
        found.update(chunk)
    return [found.hexdigest(), blob.size, blob.name, note]


@rota.task
def save(blob: Blob, folder: str) -> int:
    """Saves it, in a thread."""
    path = Path(folder, "saved")
    blob.save_sync(path)
    return path.stat().st_size


@rota.task(run_in="process")
def length(blobs: list[Blob]) -> int:
    """Reads several, in a process."""
    return sum(len(blob.read_sync()) for blob in blobs)


@rota.task
async def count(number: int) -> int:
    """Takes no blob."""
    return number


@rota.task(retry=1)
async def refuse(blob: Blob) -> None:
    """Always fails."""
    raise ValueError("refused")


@refuse.on_failure
async def report(error: ErrorRecord, job: JobRecord, blob: Blob) -> str:
    """Reads the blob of the job that failed."""
    return f"{error.message}: {(await blob.read()).decode()}"
