"""Jobs that belong together: all of them happen, or what happened is undone."""

from __future__ import annotations

from types import ModuleType

import pytest

from rota import WorkflowFailed


@pytest.mark.requirement("S1-8")
@pytest.mark.usefixtures("worker")
async def test_an_order_is_paid_and_then_shipped(shop: ModuleType) -> None:
    """Each step only if what it needs succeeded; a result is passed on when it exists."""
    async with shop.rota.workflow("order") as flow:
        cost = flow.step(shop.price.call(3, 2.5))
        paid = flow.step(shop.charge.call("card 7"), after=[cost])
        flow.step(shop.ship.call("Oslo"), after=[paid])

    assert await flow.result(timeout=10) == "shipped to Oslo"
    assert "3 of 3 steps done" in await flow.explain()


@pytest.mark.requirement("S1-12")
@pytest.mark.usefixtures("worker")
async def test_an_order_that_cannot_be_shipped_is_paid_back(shop: ModuleType) -> None:
    """Never half done and forgotten."""
    async with shop.rota.workflow("order") as flow:
        paid = flow.step(shop.charge.call("card 7"))
        paid.undo(shop.serve.call(paid.result))
        flow.step(shop.ship.using(retry=1).call("nowhere"), after=[paid])

    with pytest.raises(WorkflowFailed, match="undone"):
        await flow.result(timeout=10)
    refund = await shop.rota.job(f"default:{flow.id}.undo.0").result(timeout=10)
    assert refund[0].startswith("charged card 7 with key")
