"""A program whose arguments and results are encrypted with the keys in the environment."""

from __future__ import annotations

import os

from rota import ErrorRecord, JobRecord, Rota

rota = Rota(namespace=os.environ["ROTA_TEST_NAMESPACE"])


@rota.task
async def greet(name: str) -> str:
    """Returns a text with its argument."""
    return f"hello {name}"


@rota.task
async def join(first: str, second: str, note: str = "") -> str:
    """Joins the results of two steps."""
    return f"{first} and {second}{note}"


@rota.task
async def marked(text: str = "") -> list[str]:
    """Returns strings that begin as encrypted values do."""
    return ["rota:encrypted:first", "rota:encrypted:1:2:3:4", text]


@rota.task
async def first_of(texts: list[str]) -> str:
    """Returns the first of its strings."""
    return texts[0]


@rota.task(retry=1)
async def refuse(card: str) -> None:
    """Always fails."""
    raise ValueError("refused")


@refuse.on_failure
async def report(error: ErrorRecord, job: JobRecord, card: str) -> str:
    """Returns what the failed job was called with."""
    return f"{error.message}: {card} {job.arguments.decode()}"
