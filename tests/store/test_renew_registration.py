"""The reply to a registration names workflows and bulk operations that wait for a driver."""

from __future__ import annotations

from tests.store.driver import Driver


async def test_a_registration_returns_what_waits_for_a_driver(driver: Driver) -> None:
    """So no worker has to poll an index that is usually empty."""
    store = driver.worker("w1").store
    assert (await store.renew_registration("{}")).due == set()

    driver.redis.zadd(driver.keys.shared("workflow_due"), {"f1": driver.now() + 60_000})
    driver.redis.zadd(driver.keys.shared("operation_due"), {"o1": driver.now()})
    assert (await store.renew_registration("{}")).due == {"operations"}

    driver.advance(60_000)
    now, due = await store.renew_registration("{}")
    assert due == {"workflows", "operations"}
    assert abs(now - driver.now()) < 5_000
