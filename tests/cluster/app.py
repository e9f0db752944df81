"""The program of these tests. Server, namespace and folder come from the environment."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, Final

from rota import Context, ErrorRecord, JobRecord, Rota

FOLDER: Final = Path(os.environ["ROTA_TEST_FOLDER"])
STEP_SECONDS: Final = 0.01

rota = Rota(namespace=os.environ["ROTA_TEST_NAMESPACE"])
rota.queue("wide", shards=6)


def note(subject: str, text: object = "") -> None:
    """Leaves a line that the test can read, whatever happens to this process afterwards."""
    file = os.open(FOLDER / "notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{subject} {text}\n".encode())
    os.close(file)


def is_allowed(name: str) -> bool:
    """True once the test said so."""
    return (FOLDER / f"allowed-{name}").exists()


@rota.task
async def echo(value: Any = None) -> Any:
    return value


@rota.task
async def add(a: int, b: int) -> int:
    return a + b


@rota.task
async def numbers(count: int) -> list[int]:
    return list(range(count))


@rota.task
async def total(values: list[int]) -> int:
    return sum(values)


@rota.task
async def effect(subject: str, text: str = "effect") -> str:
    """Something that can be counted."""
    note(subject, text)
    return text


@rota.task
async def wait(subject: str) -> str:
    """Until the test allows it."""
    note(subject, "begin")
    while not is_allowed(subject):  # noqa: ASYNC110  # what it waits for happens in another process
        await asyncio.sleep(STEP_SECONDS)
    note(subject, "end")
    return subject


@rota.task
async def hold_lock(subject: str, name: str) -> None:
    """Records when it held the lock."""
    note(subject, f"{name} in")
    await asyncio.sleep(0.02)
    note(subject, f"{name} out")


@rota.task
async def fail_until(subject: str) -> str:
    """Fails until the test allows it to succeed."""
    if not is_allowed(subject):
        raise ValueError(subject)
    return subject


@rota.task(retry=1)
async def fail_for_good(ctx: Context, subject: str) -> None:
    """Fails for good."""
    raise ValueError(f"{subject} in attempt {ctx.attempt}")


@fail_for_good.on_failure
async def handle(error: ErrorRecord, job: JobRecord, subject: str) -> None:
    """What is done about it."""
    note(subject, f"{error.type} of {job.ref.full_id}")
