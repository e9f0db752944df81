"""An operation is held by one driver at a time, and goes on when that one dies."""

from __future__ import annotations

import msgspec
import pytest

from rota.store.bulk_operation_records import HOLD_MS, BulkOperationStore, OperationInfo
from tests.store.driver import Driver
from tests.store.late_copies import recorded


async def opened(driver: Driver, id: str = "a") -> tuple[BulkOperationStore, OperationInfo]:
    store = BulkOperationStore(driver.redis_client, driver.keys)
    info = OperationInfo(id=id, verb="cancel", where={"state": "pending"}, created_at=driver.now())
    await store.open(info)
    return store, info


async def test_an_operation_is_held_by_one_driver_and_taken_over_when_that_one_is_silent(driver: Driver) -> None:
    store, info = await opened(driver)

    assert await store.take_due("one") == ["a"]
    assert await store.take_due("one") == ["a"], "the answer was lost, and it asks again"
    assert await store.take_due("two") == []
    driver.advance(HOLD_MS)
    assert await store.take_due("two") == ["a"]
    assert await store.save(info, "one") == "lost"
    assert await store.save(msgspec.structs.replace(info, done=3), "two") == "saved"
    assert (await store.read("a") or info).done == 3


async def test_one_that_is_over_is_not_taken_again(driver: Driver) -> None:
    store, info = await opened(driver)
    await store.take_due("one")
    for _ in range(2):
        assert await store.save(info, "one", "completed") == "saved"

    driver.advance(2 * HOLD_MS)

    assert await store.take_due("two") == []
    kept = await store.read("a")
    assert kept is not None
    assert (kept.state, kept.has_ended) == ("completed", True)


async def test_an_operation_that_is_asked_to_stop_learns_it_when_it_saves(driver: Driver) -> None:
    store, info = await opened(driver)
    await store.take_due("one")

    await store.stop("a")

    assert await store.save(info, "one") == "stop"
    assert await store.save(info, "one", "stopped") == "saved"
    await store.stop("a")
    assert (await store.read("a") or info).state == "stopped", "the second request came too late"


async def test_a_request_to_stop_one_that_is_no_longer_kept_stores_nothing(driver: Driver) -> None:
    store, _ = await opened(driver)
    driver.redis.delete(driver.keys.shared("operation", "a"))

    await store.stop("a")

    assert driver.redis.exists(driver.keys.shared("operation", "a")) == 0


@pytest.mark.parametrize("when", ["taken", "stopping", "completed"])
async def test_one_whose_start_is_sent_again_does_not_start_again(driver: Driver, when: str) -> None:
    store, info = await opened(driver)
    await store.take_due("one")
    if when == "stopping":
        await store.stop("a")
    elif when == "completed":
        await store.save(msgspec.structs.replace(info, done=3), "one", "completed")
    before = driver.dump()

    await store.open(info)

    assert driver.dump() == before
    assert await store.take_due("two") == []


@pytest.mark.parametrize("outcome", ["", "completed", "stopped"])
async def test_a_save_that_arrives_late_reverts_nothing(driver: Driver, outcome: str) -> None:
    store, info = await opened(driver)
    await store.take_due("one")
    with recorded(driver) as recording:
        await store.save(msgspec.structs.replace(info, done=1, cursor="early"), "one")
    await store.save(msgspec.structs.replace(info, done=2, cursor="late"), "one", outcome)
    before = driver.dump()

    driver.advance(5)
    await recording.send_again("save_operation_progress")

    assert driver.dump() == before
    driver.advance(2 * HOLD_MS)
    assert await store.take_due("two") == ([] if outcome else ["a"])


@pytest.mark.parametrize("gone", ["a", "b", "c"])
async def test_what_is_no_longer_kept_is_not_listed(driver: Driver, gone: str) -> None:
    """Nor does it come back: one that is asked for earlier may be kept for longer."""
    for id in ("a", "b", "c"):
        store, _ = await opened(driver, id)
        driver.advance(1)
    driver.redis.delete(driver.keys.shared("operation", gone))
    left = sorted({"a", "b", "c"} - {gone})

    assert sorted(await store.take_due("one", limit=5)) == left

    assert sorted(info.id for info in await store.recent(9)) == left
    assert driver.redis.zcard(driver.keys.shared("operations")) == 2
    assert driver.redis.exists(driver.keys.shared("operation", gone)) == 0
