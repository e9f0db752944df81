"""An operation is held by one driver at a time, and goes on when that one dies."""

from __future__ import annotations

import msgspec

from rota.store.operations import HOLD_MS, OperationInfo, OperationStore
from tests.store.driver import Driver


async def opened(driver: Driver, id: str = "a") -> tuple[OperationStore, OperationInfo]:
    store = OperationStore(driver.gateway, driver.keys)
    info = OperationInfo(id=id, verb="cancel", where={"state": "pending"}, created_at=driver.now())
    await store.open(info)
    return store, info


async def test_an_operation_is_held_by_one_driver_and_taken_over_when_that_one_is_silent(driver: Driver) -> None:
    store, info = await opened(driver)

    assert await store.take("one") == ["a"]
    assert await store.take("one") == ["a"], "the answer was lost, and it asks again"
    assert await store.take("two") == []
    driver.advance(HOLD_MS)
    assert await store.take("two") == ["a"]
    assert await store.save(info, "one") == "lost"
    assert await store.save(msgspec.structs.replace(info, done=3), "two") == "saved"
    assert (await store.read("a") or info).done == 3


async def test_one_that_is_over_is_not_taken_again(driver: Driver) -> None:
    store, info = await opened(driver)
    await store.take("one")
    for _ in range(2):
        assert await store.save(info, "one", "completed") == "saved"

    driver.advance(2 * HOLD_MS)

    assert await store.take("two") == []
    kept = await store.read("a")
    assert kept is not None
    assert (kept.state, kept.has_ended) == ("completed", True)


async def test_one_that_is_asked_to_stop_hears_of_it_when_it_saves(driver: Driver) -> None:
    store, info = await opened(driver)
    await store.take("one")

    await store.stop("a")

    assert await store.save(info, "one") == "stop"
    assert await store.save(info, "one", "stopped") == "saved"
    await store.stop("a")
    assert (await store.read("a") or info).has_ended


async def test_what_is_no_longer_kept_is_not_listed(driver: Driver) -> None:
    store, _ = await opened(driver, "a")
    await opened(driver, "b")
    driver.redis.delete(driver.keys.shared("operation", "a"))

    assert await store.take("one", limit=5) == ["b"]

    assert [info.id for info in await store.recent(9)] == ["b"]
    assert driver.redis.zcard(driver.keys.shared("operations")) == 1
