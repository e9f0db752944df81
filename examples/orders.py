"""Three orders as workflows: one succeeds, one is undone, and one is held and resumed.

rota worker examples.orders:rota
python -m examples.orders
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal

from rota import Context, PermanentError, Retry, Rota, Workflow, WorkflowFailed

rota = Rota()


@dataclass
class Order:
    """An order."""

    id: str
    item: str
    euros: int


@dataclass
class Payment:
    """A payment confirmed by the bank."""

    order: str
    reference: str


@rota.task
async def charge(ctx: Context, order: Order) -> Payment:
    """Charges the customer. The key is the same in every attempt, so the bank charges once."""
    return Payment(order.id, f"payment {order.euros} EUR, key …{ctx.idempotency_key[-4:]}")


@rota.task
async def refund(payment: Payment) -> None:
    """Undoes `charge`."""
    print(f"refunded {payment.reference}", flush=True)


@rota.task
async def pack(order: Order) -> str:
    """Takes the item from the shelf."""
    return f"box with a {order.item}"


@rota.task
async def unpack(box: str) -> None:
    """Undoes `pack`."""
    print(f"unpacked {box}", flush=True)


@rota.task
async def ship(ctx: Context, order: Order, box: str, payment: Payment) -> str:
    """Ships the box. Elephants are never accepted; a piano only after the workflow was resumed."""
    if order.item == "elephant":
        raise PermanentError("too heavy")
    if order.item == "piano" and ctx.attempt == 1:
        raise PermanentError("the customer was not at home")
    return f"{box}, paid by {payment.order}"


async def place(order: Order) -> Workflow:
    """Starts the workflow of one order: all of its steps or, if this raises, none."""
    on_failure: Literal["hold", "undo"] = "hold" if order.item == "piano" else "undo"
    async with rota.workflow("order", id=order.id, on_failure=on_failure, limit=50) as workflow:
        paid = workflow.step(charge.using(retry=Retry(attempts=8)).call(order))
        paid.undo(refund.call(paid.result))
        packed = workflow.step(pack.call(order))
        packed.undo(unpack.call(packed.result))
        workflow.step(ship.call(order, packed.result, paid.result))
    return workflow


async def main() -> None:
    """Places the three orders, and prints how each ended."""
    async with rota:
        book = await place(Order("o-1", "book", 20))
        print("o-1:", await book.result(timeout=30))

        elephant = await place(Order("o-2", "elephant", 9_000))
        try:
            await elephant.result(timeout=30)
        except WorkflowFailed as error:
            print("o-2:", error.state, "because", error.cause)

        piano = await place(Order("o-3", "piano", 3_000))
        try:
            await piano.result(timeout=30)
        except WorkflowFailed as error:
            print("o-3:", error.state, "because", error.cause)
        print(await piano.show())
        await piano.resume()
        print("o-3:", await piano.result(timeout=30))


if __name__ == "__main__":
    asyncio.run(main())
