"""Annotations: marks on the charts, and the one mark that the workers of a deploy make."""

from __future__ import annotations

from rota.store.annotations import ANNOTATIONS_KEPT, Annotation, AnnotationStore
from tests.store.driver import Driver
from tests.store.late_copies import recorded

HOUR = 3_600_000


def store_of(driver: Driver) -> AnnotationStore:
    return AnnotationStore(driver.redis_client, driver.keys)


def mark(number: int = 1, *, at: int = 0) -> Annotation:
    return Annotation(id=f"{number:016x}", text=f"mark {number}", at=at)


async def test_marks_are_listed_by_time_range_the_oldest_first(driver: Driver) -> None:
    store = store_of(driver)
    for number in (3, 1, 2):
        await store.add(mark(number, at=number * 1000))

    found = await store.between(1000, 3000, limit=10)

    assert [(one.text, one.at) for one in found] == [("mark 1", 1000), ("mark 2", 2000)]
    assert [one.at for one in await store.between(0, 9999, limit=1)] == [3000]


async def test_a_mark_without_a_time_is_now_and_can_be_removed(driver: Driver) -> None:
    driver.stop_clock()
    store = store_of(driver)
    made = await store.add(mark())

    assert made is not None
    assert made.at == driver.now()
    assert await store.remove(made.id)
    assert not await store.remove(made.id)


async def test_the_workers_of_one_deploy_make_one_mark_and_a_rollback_another(driver: Driver) -> None:
    store = store_of(driver)

    async def start(version: str) -> bool:
        return await store.add(mark(), announced_version=version) is not None

    assert [await start("v1"), await start("v1")] == [True, False]
    driver.advance(2 * HOUR)
    assert await start("v1") is False  # a restart of the same version
    assert [await start("v2"), await start("v1"), await start("v2")] == [True, False, False]  # while they are replaced
    driver.advance(2 * HOUR)
    assert [await start("v1"), await start("v1")] == [True, False]


async def test_a_full_list_loses_the_oldest(driver: Driver) -> None:
    store = store_of(driver)
    with driver.server.client() as client:
        old = {f'{{"id":"{number}","text":"x"}}': number + 1 for number in range(ANNOTATIONS_KEPT)}
        client.zadd(driver.keys.shared("annotations"), old)

    await store.add(mark(at=10**9))

    assert (await store.between(0, 3, limit=5))[0].at == 2


async def test_a_mark_that_is_sent_twice_is_made_once(driver: Driver) -> None:
    store = store_of(driver)
    with recorded(driver) as recording:
        made = await store.add(mark())
    assert made is not None
    await store.remove(made.id)

    await recording.send_again("annotate")

    assert await store.between(0, 2**50, limit=5) == []
