"""A worker that says it lives hears what waits for somebody."""

from __future__ import annotations

from tests.store.driver import Driver


async def test_a_worker_hears_what_nobody_sees_to(driver: Driver) -> None:
    """So nobody has to look for it every few seconds, in a place that is empty."""
    store = driver.worker("w1").store
    assert (await store.announce("{}")).due == set()

    driver.redis.zadd(driver.keys.shared("flow_due"), {"f1": driver.now() + 60_000})
    driver.redis.zadd(driver.keys.shared("operation_due"), {"o1": driver.now()})
    assert (await store.announce("{}")).due == {"operations"}

    driver.advance(60_000)
    now, due = await store.announce("{}")
    assert due == {"flows", "operations"}
    assert abs(now - driver.now()) < 5_000
