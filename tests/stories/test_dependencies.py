"""An order is shipped when it has been paid for and baked."""

from __future__ import annotations

from types import ModuleType

import pytest

from rota import JobCancelled, may_fail


@pytest.mark.requirement("S2-13", "S2-14")
@pytest.mark.usefixtures("worker")
async def test_a_job_starts_when_all_that_it_comes_after_have_succeeded(shop: ModuleType) -> None:
    """Also where one of them has to be tried three times."""
    await shop.rota.queue().pause()
    paid = await shop.charge.enqueue("1234")
    baked = await shop.bake.enqueue(2)

    shipped = await shop.ship.using(after=[paid, baked]).enqueue("Oslo")

    assert await shipped.state() == "blocked"
    await shop.rota.queue().resume()
    assert await shipped.result(timeout=10) == "shipped to Oslo"
    ended = [(await job.refresh()).ended_at for job in (paid, baked)]
    assert (await shipped.refresh()).claimed_at >= max(ended)


@pytest.mark.requirement("S2-16")
@pytest.mark.usefixtures("worker")
async def test_what_comes_after_a_failure_is_called_off_unless_it_may_fail(shop: ModuleType) -> None:
    shipped = await shop.ship.using(retry=1).enqueue("nowhere")

    thanks = await shop.serve.using(after=[shipped]).enqueue("thank you")
    sorry = await shop.price.using(after=[may_fail(shipped)]).enqueue(1, 0.0)

    with pytest.raises(JobCancelled, match=f"comes after {shipped.ref}"):
        await thanks.result(timeout=10)
    assert await sorry.result(timeout=10) == 0.0
