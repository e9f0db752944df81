"""A small web shop: the tasks that the stories tell of."""

from __future__ import annotations

import asyncio
import os

from rota import Context, ErrorRecord, JobRecord, Retry, Rota

rota = Rota(namespace=os.environ.get("ROTA_TEST_NAMESPACE", "rota"))

served: list[str] = []


@rota.task
async def price(amount: int, each: float) -> float:
    """What an order costs."""
    return amount * each


@rota.task
def resize(width: int, height: int) -> list[int]:
    """A plain function: it runs in a thread."""
    return [width // 2, height // 2]


@rota.task(run_in="process")
def count_primes(below: int) -> int:
    """Keeps a CPU busy: it runs in a process of its own."""
    return sum(all(number % divisor for divisor in range(2, int(number**0.5) + 1)) for number in range(2, below))


@rota.task(retry=Retry(attempts=5, backoff=[0.05]))
async def charge(ctx: Context, card: str) -> str:
    """The bank is only there at the third attempt."""
    if ctx.attempt < 3:
        raise ConnectionError("the bank does not answer")
    return f"charged {card} with key {ctx.idempotency_key}"


@rota.task(retry=2)
async def ship(address: str) -> str:
    """Refuses addresses that do not exist."""
    if address == "nowhere":
        raise ValueError("there is no such address")
    return f"shipped to {address}"


@ship.on_failure
async def call_customer(error: ErrorRecord, job: JobRecord, address: str) -> str:
    """Runs when an order could not be shipped, as a job of its own."""
    return f"could not ship to {address}: {error.message}"


@rota.task
async def serve(ctx: Context, customer: str) -> list[str]:
    """Says who was served before, in this process."""
    served.append(customer)
    return list(served)


@rota.task
async def bake(ctx: Context, cakes: int) -> str:
    """Takes its time, and says how far it is."""
    for cake in range(cakes):
        ctx.log(f"cake {cake + 1} is in the oven")
        ctx.progress(cake, cakes, "baking")
        await asyncio.sleep(0.1)
    ctx.progress(cakes, cakes, "all done")
    return f"{cakes} cakes"


@rota.task
async def wait_for_customer() -> None:
    """Would wait without end."""
    await asyncio.sleep(3600)
