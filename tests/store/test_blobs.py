"""Blobs: stored before their job, taken by it, and removed with it on every way on which a job is removed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rota.core.dependencies import Parent
from rota.core.ids import JobRef
from rota.core.job_options import Keep
from rota.core.lua_constants import BLOB_UNTAKEN_MS
from rota.core.same_id_policy import Update
from rota.store.blob_store import BlobStore
from rota.store.create_dependents_and_deliver_outcomes import JobWithParents
from tests.store.driver import QUEUE, Driver, body, new_job, parts, ref_of, run_of

FIRST, SECOND = "c" + "1" * 32, "c" + "2" * 32
EXTERNAL = "x" + "3" * 32


@pytest.fixture
def blobs(driver: Driver) -> BlobStore:
    return BlobStore(driver.client)


async def store(blobs: BlobStore, *names: str) -> None:
    """Stores blobs of two chunks, as a producer does before it enqueues their job."""
    for name in names:
        if name.startswith("x"):
            await blobs.reserve(QUEUE, name)
        else:
            assert [await blobs.append(QUEUE, name, index, b"chunk") for index in range(2)] == ["ok", "ok"]


async def enqueue(driver: Driver, blobs: BlobStore, *names: str, id: str = "a", again: Any = None) -> JobRef:
    await store(blobs, *names)
    (result,) = await driver.client.enqueue(QUEUE, [new_job(id, blobs=names, again=again or Update())])
    return ref_of(result)


def stored(driver: Driver) -> set[str]:
    """The blobs in the server."""
    return {key.rpartition(":")[2] for key in driver.all_keys() if ":blob:" in key}


def removable(driver: Driver) -> dict[str, float]:
    return driver.index("external_blobs")


def ttl(driver: Driver, blob: str) -> int:
    return driver.redis.pttl(driver.key("blob", blob))


async def test_a_blob_that_no_job_takes_expires_after_an_hour(driver: Driver, blobs: BlobStore) -> None:
    await store(blobs, FIRST, EXTERNAL)

    assert 0 < ttl(driver, FIRST) <= BLOB_UNTAKEN_MS
    assert await blobs.take_removable(QUEUE) == []
    driver.advance(BLOB_UNTAKEN_MS)
    assert await blobs.take_removable(QUEUE) == [EXTERNAL]
    await blobs.discard(QUEUE, [FIRST])
    await blobs.ack_removed(QUEUE, [EXTERNAL])


async def test_a_job_takes_its_blobs_and_alone_can_read_them(driver: Driver, blobs: BlobStore) -> None:
    ref = await enqueue(driver, blobs, FIRST, EXTERNAL)
    other = await driver.one("b")

    assert ttl(driver, FIRST) == -1
    assert removable(driver) == {}
    assert [await blobs.read(QUEUE, run_of(ref), FIRST, index) for index in (0, 1, 2, None)] == [
        b"chunk",
        b"chunk",
        None,
        b"",
    ]
    assert await blobs.read(QUEUE, run_of(ref), EXTERNAL, None) == b""
    assert await blobs.read(QUEUE, run_of(other), FIRST, 0) is None


async def test_a_chunk_that_is_sent_again_is_stored_once(driver: Driver, blobs: BlobStore) -> None:
    await store(blobs, FIRST)

    assert await blobs.append(QUEUE, FIRST, 1, b"chunk") == "ok"
    assert await blobs.append(QUEUE, FIRST, 5, b"chunk") == "missing"

    assert driver.redis.lrange(driver.key("blob", FIRST), 0, -1) == [b"chunk", b"chunk"]


async def test_a_blob_of_another_job_or_one_that_expired_is_refused_and_nothing_is_stored(
    driver: Driver, blobs: BlobStore
) -> None:
    await enqueue(driver, blobs, FIRST)
    before = driver.counts()

    results = await driver.client.enqueue(QUEUE, [new_job("b", blobs=(FIRST,)), new_job("c", blobs=(SECOND,))])

    assert [result.outcome for result in results] == ["blob", "blob"]
    assert driver.counts() == before
    assert await blobs.append(QUEUE, FIRST, 2, b"more") == "taken"
    await blobs.discard(QUEUE, [FIRST])
    assert stored(driver) == {FIRST}


async def _delete(driver: Driver, ref: JobRef) -> None:
    assert await driver.client.delete(ref) == "deleted"


async def _delete_while_it_runs(driver: Driver, ref: JobRef) -> None:
    await driver.worker().claim()
    assert await driver.client.delete(ref) == "stopping"


async def _purge(driver: Driver, ref: JobRef) -> None:
    assert await driver.client.purge(QUEUE) == 1


async def _complete_and_forget(driver: Driver, ref: JobRef) -> None:
    (job,) = await driver.worker().claim()
    assert await driver.worker().complete(job, keep=Keep(finished=0)) == "ok"


async def _fail_and_expire(driver: Driver, ref: JobRef) -> None:
    (job,) = await driver.worker().claim()
    assert await driver.worker().fail(job, keep=Keep(failed=60)) == "ok"
    driver.advance(61_000)
    assert not await driver.client.apply_retention(QUEUE)


async def _cancel_and_expire(driver: Driver, ref: JobRef) -> None:
    assert await driver.client.cancel(ref) == "cancelled"
    driver.advance(round(Keep().finished * 1000) + 1_000)
    while await driver.client.apply_retention(QUEUE):
        pass


@pytest.mark.parametrize(
    "remove",
    [_delete, _delete_while_it_runs, _purge, _complete_and_forget, _fail_and_expire, _cancel_and_expire],
    ids=lambda remove: remove.__name__.strip("_"),
)
async def test_the_blobs_of_a_job_are_removed_with_it(
    driver: Driver, blobs: BlobStore, remove: Callable[[Driver, JobRef], Awaitable[None]]
) -> None:
    ref = await enqueue(driver, blobs, FIRST, EXTERNAL)

    await remove(driver, ref)

    assert stored(driver) == set()
    assert driver.hash("blobs") == {}
    assert await blobs.take_removable(QUEUE) == [EXTERNAL]
    await blobs.ack_removed(QUEUE, [EXTERNAL])
    assert removable(driver) == {}


async def test_a_redriven_dead_letter_still_has_its_blobs(driver: Driver, blobs: BlobStore) -> None:
    ref = await enqueue(driver, blobs, FIRST)
    (job,) = await driver.worker().claim()
    await driver.worker().fail(job)

    assert await driver.client.redrive(QUEUE, [ref]) == ["redriven"]

    assert await blobs.read(QUEUE, run_of(ref), FIRST, 0) == b"chunk"


async def test_new_data_of_a_waiting_id_replaces_its_blobs(driver: Driver, blobs: BlobStore) -> None:
    ref = await enqueue(driver, blobs, FIRST, EXTERNAL)

    again = await enqueue(driver, blobs, SECOND)

    assert run_of(again) == run_of(ref)
    assert stored(driver) == {SECOND}
    assert list(removable(driver)) == [EXTERNAL]
    assert await blobs.read(QUEUE, run_of(ref), SECOND, 0) == b"chunk"
    await driver.client.delete(ref)
    assert stored(driver) == set()


async def test_an_enqueue_that_leaves_the_data_alone_leaves_the_blobs_alone(driver: Driver, blobs: BlobStore) -> None:
    ref = await enqueue(driver, blobs, FIRST)

    await enqueue(driver, blobs, SECOND, again=Update(data=False))
    await blobs.discard(QUEUE, [SECOND])

    assert stored(driver) == {FIRST}
    await driver.client.delete(ref)


@pytest.mark.parametrize("is_data_new", [True, False])
async def test_a_follow_up_that_is_merged_gives_its_blobs_to_the_run(
    driver: Driver, blobs: BlobStore, is_data_new: bool
) -> None:
    ref = await enqueue(driver, blobs, FIRST)
    (job,) = await driver.worker().claim()
    await enqueue(driver, blobs, SECOND, again=Update(data=is_data_new))
    assert stored(driver) == {FIRST, SECOND}

    assert await driver.worker().fail(job, "+1000") == "ok"

    assert stored(driver) == {SECOND if is_data_new else FIRST}
    assert list(driver.hash("blobs")) == [run_of(ref)]
    await driver.client.delete(ref)
    assert stored(driver) == set()


@pytest.mark.parametrize("state", ["pending", "failed"])
async def test_an_update_of_the_arguments_removes_the_blobs_that_they_no_longer_name(
    driver: Driver, blobs: BlobStore, state: str
) -> None:
    ref = await enqueue(driver, blobs, FIRST, SECOND)
    if state == "failed":
        (job,) = await driver.worker().claim()
        await driver.worker().fail(job)
    snapshot = await driver.read(ref)

    outcome = await driver.client.update(
        ref,
        seen_digest=snapshot.digest,
        parts=parts(data=True),
        priority=0,
        due="",
        expiry="",
        body=body([], blobs=(SECOND,)),
    )

    assert outcome == "updated"
    assert stored(driver) == {SECOND}


async def test_a_dependent_takes_its_blobs_when_it_is_published(driver: Driver, blobs: BlobStore) -> None:
    parent = await driver.one("p")
    await store(blobs, FIRST)

    async def add(id: str, *names: str) -> str:
        job = JobWithParents(new_job(id, blobs=names, after=(str(parent),)), [Parent(parent)])
        (result,) = await driver.client.dependencies.enqueue_dependents(QUEUE, [job])
        return result.outcome

    assert await add("a", FIRST) == "made"
    assert await add("b", SECOND) == "blob"

    assert ttl(driver, FIRST) == -1
    assert await driver.client.purge(QUEUE) == 2
    assert stored(driver) == set()


async def test_external_blobs_are_given_to_one_worker_at_a_time_until_they_are_acknowledged(
    driver: Driver, blobs: BlobStore
) -> None:
    ref = await enqueue(driver, blobs, EXTERNAL)
    await driver.client.delete(ref)

    assert await blobs.take_removable(QUEUE) == [EXTERNAL]
    assert await blobs.take_removable(QUEUE) == []
    driver.advance(61_000)  # that worker was killed
    assert await blobs.take_removable(QUEUE) == [EXTERNAL]
    await blobs.ack_removed(QUEUE, [EXTERNAL])
    await blobs.ack_removed(QUEUE, [EXTERNAL])

    assert removable(driver) == {}


async def test_no_job_takes_an_external_blob_that_is_about_to_be_removed(driver: Driver, blobs: BlobStore) -> None:
    await blobs.reserve(QUEUE, EXTERNAL)
    driver.advance(BLOB_UNTAKEN_MS)
    await blobs.take_removable(QUEUE)

    (result,) = await driver.client.enqueue(QUEUE, [new_job("a", blobs=(EXTERNAL,))])

    assert result.outcome == "blob"
    await blobs.ack_removed(QUEUE, [EXTERNAL])
