"""Findings that exist, since when, and who acknowledged them."""

from __future__ import annotations

from rota.core.health.acknowledgement import Acknowledgement
from rota.store.attention import FINDING_KEPT_MS, AttentionStore
from tests.store.driver import Driver
from tests.store.late_copies import recorded


def store_of(driver: Driver) -> AttentionStore:
    return AttentionStore(driver.redis_client, driver.keys)


async def test_a_finding_exists_since_it_was_found_first(driver: Driver) -> None:
    store = store_of(driver)
    first, _ = await store.record(["slow_queue:mail"])
    driver.advance(60_000)

    now, found = await store.record(["slow_queue:mail", "saturated:mail"])

    assert found["slow_queue:mail"].since == first
    assert found["saturated:mail"].since == now > first


async def test_an_acknowledgement_ends_with_its_finding(driver: Driver) -> None:
    store = store_of(driver)
    await store.record(["slow_queue:mail"])
    assert await store.acknowledge("slow_queue:mail", Acknowledgement(by="ana", at=1, note="partner"))
    driver.advance(FINDING_KEPT_MS - 1_000)
    _, found = await store.record([])
    assert found["slow_queue:mail"].acknowledgement == Acknowledgement(by="ana", at=1, note="partner")

    driver.advance(2_000)

    assert await store.record([]) == (driver.now(), {}) or (await store.record([]))[1] == {}
    assert not driver.redis.exists(driver.keys.shared("acknowledgements"))


async def test_only_a_finding_that_exists_is_acknowledged_and_it_can_be_taken_back(driver: Driver) -> None:
    store = store_of(driver)
    assert not await store.acknowledge("slow_queue:mail", Acknowledgement(by="ana", at=1))
    await store.record(["slow_queue:mail"])
    with recorded(driver) as recording:
        await store.acknowledge("slow_queue:mail", Acknowledgement(by="ana", at=1))

    await store.acknowledge("slow_queue:mail", None)
    await recording.send_again("acknowledge_finding")

    assert (await store.record([]))[1]["slow_queue:mail"].acknowledgement is None
