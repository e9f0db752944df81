"""The program behind the pages that the browser opens. Server, namespace and folder come from the environment."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from pathlib import Path
from typing import Final

from rota import Context, Fixed, Retry, Rota

FOLDER: Final = Path(os.environ["ROTA_TEST_FOLDER"])
STEP_SECONDS: Final = 0.02
#: What a run of `newsletter` takes; as a rule 50 ms, says the history that a test writes.
PARTNER_SECONDS: Final = 1.5
NO_RETRY: Final = Retry(attempts=1)

rota = Rota(namespace=os.environ["ROTA_TEST_NAMESPACE"])


@rota.task(queue="mail", index=["to"])
async def greet(to: str, subject: str = "Hello", copies: int = 1) -> str:
    """Writes a letter."""
    return f"{subject}, {to}" * copies


@rota.task(queue="mail", retry=NO_RETRY)
async def bounce(to: str) -> None:
    """Fails for good."""
    raise ConnectionError(f"no such mailbox: {to}")


@rota.task(queue="mail", index=["customer"])
async def newsletter(customer: int) -> None:
    """Waits for a partner that takes its time."""
    await asyncio.sleep(PARTNER_SECONDS)


@rota.task(retry=Retry(attempts=3, backoff=Fixed(0.05)))
async def stumble(name: str) -> None:
    """Fails three times."""
    raise ValueError(f"{name} stumbles")


@rota.task(timeout=3600)
async def download(ctx: Context, name: str, parts: int = 10) -> int:
    """Says how far it is, until the test lets it go on."""
    for part in range(parts):
        ctx.progress(part, parts, f"part {part} of {name}")
        ctx.log(f"part {part} of {name}")
        while part == parts // 2 and not (FOLDER / f"allowed-{name}").exists():  # noqa: ASYNC110  # another process
            await asyncio.sleep(STEP_SECONDS)
    return parts


@rota.task(queue="orders", retry=NO_RETRY)
async def charge(order: str) -> str:
    """Takes the money."""
    return f"paid {order}"


@rota.task(queue="orders", retry=NO_RETRY)
async def refund(receipt: str) -> None:
    """Gives the money back."""


@rota.task(queue="orders", retry=NO_RETRY)
async def pack(order: str) -> str:
    """Packs; as long as the test does not allow it, it cannot."""
    if not (FOLDER / f"allowed-{order}").exists():
        raise LookupError(f"{order} is not in stock")
    return f"parcel {order}"


@rota.task(queue="orders", retry=NO_RETRY)
async def ship(parcel: str, receipt: str) -> str:
    """Ships."""
    return f"shipped {parcel}, {receipt}"


@rota.every(timedelta(hours=6))
@rota.task
async def tidy() -> None:
    """Comes back by itself."""


@rota.task(retry=NO_RETRY)
async def spite(ctx: Context, text: str) -> None:
    """Says and does the worst that a text can."""
    ctx.progress(1, 2, text[:200])
    ctx.log(text)
    raise RuntimeError(text)


@rota.task(queue="orders", retry=NO_RETRY)
async def regret(receipt: str) -> None:
    """Gives the money back; as long as the test does not allow it, it cannot."""
    if not (FOLDER / "allowed-regret").exists():
        raise ConnectionError("the bank is closed")


if "ROTA_TEST_FORMER" in os.environ:

    @rota.every(timedelta(hours=1))
    @rota.task
    async def forgotten() -> None:
        """Was in the program before; now no worker declares it."""
