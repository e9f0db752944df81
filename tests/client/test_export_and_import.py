"""`rota.export_lines()` and `rota.import_lines()`: everything is restored, once, on this or another server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from rota.client.durability import DurabilityChecker
from rota.client.export_jobs_schedules_and_workflows import export_lines
from rota.client.import_jobs_schedules_and_workflows import ImportReport, import_lines
from rota.client.session import Session
from rota.core.ids import JobRef
from rota.core.job_options import Keep
from rota.core.lease_heartbeat_poll_and_grace_durations import DurationSettings
from rota.core.state_transitions import JobState
from rota.errors import InvalidOption
from rota.store.blob_store import BlobStore
from rota.store.index_repair import IndexRepair
from rota.store.namespace_settings import SettingsStore
from tests.servers import Server
from tests.store.driver import QUEUE, Driver, new_job, parts


@pytest.fixture
async def source(valkey: Server, namespace: str) -> AsyncIterator[Driver]:
    driver = Driver(valkey, namespace)
    yield driver
    await driver.close()


@pytest.fixture
async def target(redis7: Server, namespace: str) -> AsyncIterator[Driver]:
    driver = Driver(redis7, namespace)
    yield driver
    driver.check()
    await driver.close()


def session(driver: Driver) -> Session:
    durability = DurabilityChecker(driver.redis_client, driver.keys, default="memory", replicas=1)
    return Session(driver.client, durability, {})


async def export(driver: Driver) -> list[str]:
    await driver.client.add_queue_names([QUEUE])
    return [line async for line in export_lines(session(driver))]


async def restore(driver: Driver, lines: list[str]) -> ImportReport:
    return await import_lines(session(driver), lines)


async def populate(driver: Driver) -> None:
    worker = driver.worker()
    for id in ("done", "dead", "busy"):
        await driver.one(id, tags=("red",), terms=("tag=red",))
        (job,) = await worker.claim()
        await worker.store.append_log(QUEUE, job.run, job.claim, 1, ["info hello"])
        if id == "done":
            await worker.complete(job, b'{"a":1}')
        elif id == "dead":
            await worker.fail(job)
    await driver.client.enqueue(QUEUE, [new_job("busy", again=parts(data=True))])
    await driver.client.cancel(await driver.one("gone"))
    for id in ("first", "second", "third"):
        await driver.one(id, lock="one")
    await driver.one("later", due="+60000", expiry="+120000")
    parent = await driver.one("parent")
    child = await driver.after(parent, id="child")
    await driver.after(child, id="grandchild")
    await driver.enqueue(new_job("", [1, 2], priority=3))


def comparable(driver: Driver) -> dict[str, Any]:
    """What must be the same on both servers."""
    hashes = ("jobs", "ids", "named", "results", "errors", "locked", "locks", "terms", "follows", "follow_ups", "logs")
    indexes = ("pending", "scheduled", "blocked", "completed", "failed", "cancelled", "expiring")
    return {name: driver.hash(name) for name in hashes} | {name: driver.index(name) for name in indexes}


@pytest.mark.requirement("S1-15")
async def test_jobs_in_every_state_are_restored_on_another_server(source: Driver, target: Driver) -> None:
    await populate(source)

    lines = await export(source)
    report = await restore(target, lines)

    assert (report.jobs, report.present, report.in_use, report.is_complete) == (13, 0, [], True)
    assert comparable(target) == comparable(source)
    assert target.index("processing").keys() == source.index("processing").keys()
    assert {job["task"] for line in lines if (job := json.loads(line))["kind"] == "job"} == {"noop"}


@pytest.mark.requirement("S1-15")
async def test_an_export_that_is_imported_twice_makes_no_second_job(source: Driver, target: Driver) -> None:
    await populate(source)
    lines = await export(source)
    await restore(target, lines)
    before = comparable(target)

    again = await restore(target, lines)

    assert (again.jobs, again.present) == (0, 13)
    assert comparable(target) == before


async def test_a_job_that_has_run_and_is_gone_is_not_restored_again(source: Driver, target: Driver) -> None:
    await source.one("x")
    lines = await export(source)
    await restore(target, lines)
    (job,) = await target.worker().claim()
    await target.worker().complete(job, keep=Keep(finished=0))
    assert target.hash("jobs") == {}

    assert (await restore(target, lines)).jobs == 0
    assert target.hash("jobs") == {}


async def test_on_the_same_server_only_what_is_gone_is_restored(source: Driver) -> None:
    await populate(source)
    lines = await export(source)
    before = comparable(source)
    for id in ("second", "later"):
        (run,) = [run for run, name in source.hash("named").items() if name == id]
        await source.client.delete(JobRef(QUEUE, id, run))

    report = await restore(source, lines)

    assert report.jobs == 2
    assert comparable(source) == before
    source.check()


@pytest.mark.parametrize("cut", range(1, 16, 2))
async def test_an_import_that_is_killed_and_sent_again_restores_everything(
    source: Driver, target: Driver, cut: int
) -> None:
    await populate(source)
    lines = await export(source)
    first = await restore(target, lines[:cut])
    assert not first.is_complete

    second = await restore(target, lines)

    assert first.jobs + second.jobs == 13
    assert comparable(target) == comparable(source)


async def test_a_restored_chain_runs_to_its_end(source: Driver, target: Driver) -> None:
    await populate(source)
    await restore(target, await export(source))
    worker = target.worker("w2")

    for _ in range(12):
        await target.advance_with_ticks(6_000, by="w2")
        for job in await worker.claim(10):
            assert await worker.complete(job) == "ok"
        await target.post()

    states = {state: len(target.index(state)) for state in ("pending", "blocked", "scheduled", "processing")}
    assert states == dict.fromkeys(states, 0) | {"scheduled": states["scheduled"]}


async def test_a_number_that_is_taken_gets_another_run_and_the_same_id(source: Driver, target: Driver) -> None:
    parent = await source.one()
    child = await source.after(parent)
    lines = await export(source)
    taken = [await target.one(), await target.one()]
    assert [ref.run for ref in taken] == [parent.run, child.run]

    report = await restore(target, lines)

    assert report.jobs == 2
    restored = await target.read(JobRef(QUEUE, parent.id))
    assert restored.record.ref.run not in (parent.run, child.run)
    for job in await target.worker().claim(10):
        await target.worker().complete(job)
    await target.post()
    assert await target.state(JobRef(QUEUE, child.id)) is JobState.PENDING


async def test_an_id_with_another_unfinished_job_is_left_out_and_named(source: Driver, target: Driver) -> None:
    await source.one("x")
    await target.one()
    await target.one("x")

    report = await restore(target, await export(source))

    assert report.in_use == [f"{QUEUE}:x"]
    assert len(target.hash("jobs")) == 2


@pytest.mark.requirement("S1-15")
async def test_a_workflow_is_restored_and_completes(source: Driver, target: Driver) -> None:
    await source.workflow("order", steps=3)
    (job,) = await source.worker().claim()
    await source.worker().complete(job)

    report = await restore(target, await export(source))

    assert (report.workflows, report.jobs) == (1, 3)
    for _ in range(4):
        await target.post()
        await target.flows.drive_due()
        for job in await target.worker().claim(5):
            await target.worker().complete(job)
    await target.post()
    assert (await target.flow("order")).state == "completed"
    assert (await restore(target, await export(source))).workflows == 0


async def test_a_failed_parent_whose_redrive_restores_its_dependents_does_so_after_an_import(
    source: Driver, target: Driver
) -> None:
    parent = await source.dead_letter("parent")
    child = await source.after(parent, id="child")
    assert await source.state(child) is JobState.CANCELLED

    await restore(target, await export(source))
    assert await target.state(child) is JobState.CANCELLED
    await target.client.redrive(QUEUE, [parent])
    await target.post()

    assert await target.state(child) is JobState.BLOCKED


async def test_new_jobs_get_numbers_above_those_that_were_restored(source: Driver, target: Driver) -> None:
    await populate(source)
    await restore(target, await export(source))

    made = await target.one()

    assert str(made.run) > max(source.hash("jobs"))


async def test_an_export_while_jobs_move_has_each_of_them_whole(source: Driver, target: Driver) -> None:
    """What is restored agrees with itself, whatever moment each job was read in."""
    for _ in range(30):
        await source.enqueue(*[new_job(lock="one") for _ in range(20)])
    await source.client.add_queue_names([QUEUE])
    lines: list[str] = []
    async for line in export_lines(session(source)):
        lines.append(line)
        if len(lines) % 10 == 0:
            for job in await source.worker().claim(5):
                await source.worker().complete(job)
            await source.one(lock="one")

    report = await restore(target, lines)

    assert report.jobs >= 600
    await target.advance_with_ticks(6_000)
    walk = IndexRepair(target.client).walk(QUEUE, "check")
    assert [problem async for checked in walk for problem in checked.problems] == []


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["{"], "line 1 is not a line of `rota export`"),
        (["[]"], "it has no kind"),
        (['{"kind":"job"}'], "the first line is not that of an export"),
        (['{"kind":"export","version":99,"id":"x"}'], "version 99: upgrade Rota"),
        (['{"kind":"export","version":1,"id":"x"}', '{"kind":"job"}'], "queue"),
    ],
)
async def test_what_is_no_export_is_refused(target: Driver, lines: list[str], says: str) -> None:
    with pytest.raises(InvalidOption, match=says):
        await restore(target, lines)
    assert target.hash("jobs") == {}


async def test_the_blobs_of_a_job_are_restored_with_it(source: Driver, target: Driver) -> None:
    blobs = BlobStore(source.client)
    for index, chunk in enumerate((b"\x00\xff" * 10, b"end")):
        assert await blobs.append(QUEUE, "b1", index, chunk) == "ok"
    ref = await source.one("x", blobs=("b1",))

    await restore(target, await export(source))

    assert [await BlobStore(target.client).read(QUEUE, str(ref.run), "b1", index) for index in (0, 1, 2)] == [
        b"\x00\xff" * 10,
        b"end",
        None,
    ]
    assert target.redis.pttl(target.key("blob", "b1")) == -1


async def test_a_restored_run_that_was_processing_has_the_lease_of_the_namespace(
    source: Driver, target: Driver
) -> None:
    await source.one("busy")
    (job,) = await source.worker().claim()
    await SettingsStore(target.redis_client, target.keys).change(DurationSettings(), DurationSettings(lease_ms=60_000))

    await restore(target, await export(source))

    assert target.index("processing")[job.run] - target.now() > 50_000


async def test_a_job_of_a_paused_task_is_left_where_it_is_by_a_repair(source: Driver) -> None:
    await source.one("x")
    assert await source.client.pause_task(QUEUE, "noop")
    assert await source.worker().claim() == []

    walk = IndexRepair(source.client).walk(QUEUE, "repair")

    assert [problem async for checked in walk for problem in checked.problems] == []
    source.check()


@pytest.mark.parametrize("left_out", [0, 1])
async def test_a_job_whose_blob_is_not_in_the_lines_is_left_out_and_reported(
    source: Driver, target: Driver, left_out: int
) -> None:
    blob = "c" + "1" * 32
    for index in range(3):
        await BlobStore(source.client).append(QUEUE, blob, index, b"part")
    (job,) = await source.client.enqueue(QUEUE, [new_job("a", [1], blobs=(blob,))])
    await source.one("b")
    lines = await export(source)
    chunks = [line for line in lines if '"kind":"blob"' in line]
    removed = chunks if left_out == 0 else [chunks[1]]

    report = await restore(target, [line for line in lines if line not in removed])

    assert (report.jobs, report.without_blob, report.is_complete) == (1, [f"{QUEUE}:a"], True)
    assert job.run not in target.hash("jobs")

    whole = await restore(target, lines)
    assert (whole.jobs, whole.without_blob) == (1, [])
    assert await BlobStore(target.client).read(QUEUE, job.run, blob, 2) == b"part"
