"""`rota.mirror(to=…)`: the copy on a second server follows the first one, survives kills, and is restored from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rota.client.import_jobs_schedules_and_workflows import import_lines
from rota.client.mirror_to_second_server import Mirror, mirrored_lines
from rota.core.ids import JobRef
from rota.core.lua_constants import CALL_BYTES
from rota.core.same_id_policy import Update
from rota.errors import ConfigurationError, InvalidOption
from rota.store.blob_store import BlobStore
from tests.client.test_export_and_import import comparable, export, populate, session, source, target
from tests.eventually import eventually
from tests.store.driver import QUEUE, Driver, new_job

__all__ = ["source", "target"]


@asynccontextmanager
async def mirroring(source: Driver, target: Driver) -> AsyncGenerator[Mirror]:
    """A mirror that has compared everything once."""
    mirror = Mirror(session(source), session(target))
    task = asyncio.create_task(mirror.run())
    try:
        done, _ = await asyncio.wait(
            [task, waiting := asyncio.create_task(mirror.is_current.wait())], return_when=asyncio.FIRST_COMPLETED
        )
        assert waiting in done, task.exception()
        yield mirror
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def lines_of(driver: Driver) -> dict[str, str]:
    """What the copy has of the jobs of the queue."""
    return {name: line for name, line in driver.hash("mirrored").items() if "-" not in name and len(name) == 9}


async def is_same(source: Driver, target: Driver) -> bool:
    """Whether the copy has the runs of the source, as they are. A run that its lock releases has no event."""
    lines = [line for line in await export(source) if '"kind":"job"' in line]
    return set(map(without_index, lines_of(target).values())) == set(map(without_index, lines))


def without_index(line: str) -> str:
    fields = json.loads(line)
    return json.dumps({name: value for name, value in fields.items() if name not in ("index", "score")})


@pytest.mark.requirement("S1-15")
async def test_the_copy_follows_every_change(source: Driver, target: Driver) -> None:
    await source.client.add_queue_names([QUEUE])
    async with mirroring(source, target):
        await populate(source)
        await eventually(lambda: is_same(source, target), 20)

        await source.client.delete(JobRef(QUEUE, "second"))
        (job,) = await source.worker("w9").claim()
        await source.worker("w9").complete(job, b"2")
        await eventually(lambda: is_same(source, target), 20)


@pytest.mark.requirement("S1-15")
async def test_a_mirror_that_is_started_again_catches_up(source: Driver, target: Driver) -> None:
    await source.client.add_queue_names([QUEUE])
    await source.one("before")
    async with mirroring(source, target):
        pass
    await populate(source)

    async with mirroring(source, target):
        await eventually(lambda: is_same(source, target), 20)


@pytest.mark.requirement("S1-15")
async def test_everything_is_restored_from_the_copy_after_the_first_server_has_lost_it(
    source: Driver, target: Driver
) -> None:
    await source.workflow("order", steps=2)
    for job in await source.worker().claim(1):
        await source.worker().complete(job)
    await source.post()
    await populate(source)
    await source.client.add_queue_names([QUEUE])
    async with mirroring(source, target):
        await eventually(lambda: is_same(source, target), 20)
    before = comparable(source)
    for key in source.all_keys():
        source.redis.delete(key)

    with pytest.raises(ExceptionGroup) as refused:
        await Mirror(session(source), session(target)).run() if await source.one() else None
    assert refused.group_contains(ConfigurationError, match="has lost data")
    for key in source.all_keys():
        source.redis.delete(key)

    report = await import_lines(session(source), mirrored_lines(session(target)))

    assert (report.in_use, report.is_complete, report.workflows) == ([], True, 1)
    assert comparable(source) == before
    source.check()
    again = await import_lines(session(source), mirrored_lines(session(target)))
    assert (again.jobs, again.in_use) == (0, [])


async def test_a_second_mirror_takes_over(source: Driver, target: Driver) -> None:
    await source.client.add_queue_names([QUEUE])
    await source.one()
    async with mirroring(source, target) as first:
        second = Mirror(session(source), session(target))
        task = asyncio.create_task(second.run())
        await asyncio.wait_for(second.is_current.wait(), 20)
        await source.one()

        with pytest.raises(ConfigurationError, match="another `rota mirror` has taken over"):
            await first.reconcile()

        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_what_a_mirror_has_missed_is_found_by_comparing(source: Driver, target: Driver) -> None:
    await source.client.add_queue_names([QUEUE])
    await populate(source)
    async with mirroring(source, target) as mirror:
        run = next(iter(lines_of(target)))
        target.redis.hset(target.key("mirrored"), mapping={run: "stale", "0000zzzzz": '{"kind":"job"}'})

        await mirror.reconcile()

        assert await is_same(source, target)


async def test_a_mirror_to_itself_is_refused(source: Driver) -> None:
    with pytest.raises(InvalidOption, match="name a second one"):
        await Mirror(session(source), session(source)).run()


async def test_without_a_copy_there_is_nothing_to_restore(source: Driver) -> None:
    with pytest.raises(ConfigurationError, match="there is no copy on this server"):
        await import_lines(session(source), mirrored_lines(session(source)))


async def copied(source: Driver, target: Driver, jobs: int = 5) -> Mirror:
    """A mirror that has copied jobs, ready for single steps."""
    await source.client.add_queue_names([QUEUE])
    for number in range(jobs):
        await source.one(f"j{number}")
    async with mirroring(source, target):
        pass
    mirror = Mirror(session(source), session(target))
    await mirror._target.open("id")
    return mirror


def lose_before(source: Driver, reader: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empties the source at the moment at which `name` would read."""
    real = getattr(reader, name)

    def read(*args: Any) -> Any:
        source.redis.delete(*source.all_keys())
        return real(*args)

    monkeypatch.setattr(reader, name, read)


@pytest.mark.parametrize("name", ["read_queue", "read_schedules", "walk_runs"])
async def test_a_source_that_is_emptied_while_it_is_compared_leaves_the_copy(
    source: Driver, target: Driver, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = await copied(source, target)
    before = target.hash("mirrored")
    lose_before(source, mirror._copies, name, monkeypatch)

    with pytest.raises(ConfigurationError, match="has lost data: its newest job had the number 5, now 0"):
        await mirror.reconcile()

    assert target.hash("mirrored") == before


async def test_a_source_that_is_emptied_between_an_event_and_its_copy_leaves_the_copy(
    source: Driver, target: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = await copied(source, target)
    before = target.hash("mirrored")
    lose_before(source, mirror._copies, "read_runs", monkeypatch)

    with pytest.raises(ConfigurationError, match="has lost data"):
        await mirror._copy(QUEUE, list(lines_of(target)))

    assert target.hash("mirrored") == before


@pytest.mark.parametrize("call", range(1, 7))
async def test_a_source_that_is_emptied_before_any_read_of_its_counter_leaves_the_copy(
    source: Driver, target: Driver, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = await copied(source, target)
    before = target.hash("mirrored")
    real, calls = mirror._copies.read_queue, 0

    async def read(queue: str) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        if calls == call:
            source.redis.delete(*source.all_keys())
        return await real(queue)

    monkeypatch.setattr(mirror._copies, "read_queue", read)

    async def compare_until_it_is_lost() -> None:
        for _ in range(call):
            await mirror.reconcile()

    with pytest.raises(ConfigurationError, match="has lost data"):
        await compare_until_it_is_lost()

    assert target.hash("mirrored") == before


OLD, NEW = "c" + "1" * 32, "c" + "2" * 32


@pytest.mark.parametrize("by_event", [True, False])
async def test_a_blob_that_was_replaced_is_copied_and_restored(source: Driver, target: Driver, by_event: bool) -> None:
    await source.client.add_queue_names([QUEUE])
    blobs = BlobStore(source.client)
    await blobs.append(QUEUE, OLD, 0, b"old")
    (job,) = await source.client.enqueue(QUEUE, [new_job("a", [1], blobs=(OLD,), again=Update())])
    async with mirroring(source, target):
        pass
    assert f"blob {job.run} {OLD} 0" in target.hash("mirrored")
    for index, chunk in enumerate((b"new", b"er")):
        await blobs.append(QUEUE, NEW, index, chunk)
    await source.client.enqueue(QUEUE, [new_job("a", [2], blobs=(NEW,), again=Update())])

    mirror = Mirror(session(source), session(target))
    await mirror._target.open("id")
    await (mirror._copy(QUEUE, [job.run]) if by_event else mirror.reconcile())

    chunks = {name for name in target.hash("mirrored") if name.startswith("blob ")}
    assert chunks == {f"blob {job.run} {NEW} {index}" for index in (0, 1)}
    lines = [line async for line in mirrored_lines(session(target))]
    kinds = [json.loads(line)["kind"] for line in lines]
    assert kinds[kinds.index("job") - 2 : kinds.index("job") + 1] == ["blob", "blob", "job"]
    report = await import_lines(session(target), lines)
    assert (report.jobs, report.without_blob) == (1, [])
    restored = BlobStore(target.client)
    assert [await restored.read(QUEUE, job.run, NEW, index) for index in (0, 1)] == [b"new", b"er"]


async def test_a_large_blob_is_copied_a_few_chunks_at_a_time(
    source: Driver, target: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await source.client.add_queue_names([QUEUE])
    for index in range(5):
        await BlobStore(source.client).append(QUEUE, OLD, index, b"x" * CALL_BYTES)
    await source.client.enqueue(QUEUE, [new_job("a", [1], blobs=(OLD,))])
    mirror = Mirror(session(source), session(target))
    await mirror._target.open("id")
    sizes: list[int] = []
    real = mirror._target.write

    async def write(queue: str, lines: Mapping[str, str], *rest: Any, **named: Any) -> None:
        sizes.append(sum(map(len, lines.values())))
        await real(queue, lines, *rest, **named)

    monkeypatch.setattr(mirror._target, "write", write)
    await mirror.reconcile()

    assert len([name for name in target.hash("mirrored") if name.startswith("blob ")]) == 5
    assert max(sizes) < 2 * CALL_BYTES
