"""Doing something to every job that matches."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from rota import InvalidOption, Job, JobState, OperationNotFound, Rota, StoreUnavailable, Task
from rota.client.bulk_operations import OperationDriver
from rota.client.session import checked_session, session_of, sessions_of
from rota.store.bulk_operation_records import HOLD_MS
from tests.client.manual_worker import Hand
from tests.client.test_job_listing import all_numbers, end_all, many
from tests.eventually import eventually
from tests.servers import OwnServers


@pytest.fixture
def send(rota: Rota) -> Task[[int], Any, Any]:
    @rota.task
    async def send(number: int) -> Any: ...

    return send


async def counts(rota: Rota) -> dict[str, int]:
    found = await rota.queue("default").counts()
    return {state: count for state, count in found.items() if count}


@pytest.mark.usefixtures("on_each")
async def test_every_job_that_matches_is_cancelled_and_no_other(rota: Rota, send: Task[[int], Any, Any]) -> None:
    await many(send, 250, tags=["old"])
    await many(send, 5)

    dry = await rota.operations.start("cancel", where={"tag": "old"}, dry_run=True)
    dry = await rota.operations.run(dry.id)
    assert (dry.state, dry.matched, dry.done) == ("completed", 250, 0)
    assert await counts(rota) == {"pending": 255}

    info = await rota.operations.start("cancel", where={"tag": "old", "state": "pending"}, reason="not needed")
    info = await rota.operations.run(info.id)

    assert (info.state, info.matched, info.done, info.failed) == ("completed", 250, 250, 0)
    assert await counts(rota) == {"pending": 5, "cancelled": 250}
    assert (await rota.jobs("cancelled", limit=1)).jobs[0].reason == "not needed"
    assert [one.id for one in await rota.operations.list()] == [info.id, dry.id]


async def test_dead_letters_are_redriven_by_their_error(rota: Rota, send: Task[[int], Any, Any], hand: Hand) -> None:
    await many(send, 6)
    await end_all(hand, JobState.FAILED, 4)
    await end_all(hand, JobState.FAILED, 2, error="KeyError")

    info = await rota.operations.start("redrive", where={"state": "failed", "error": "ValueError"}, per_second=1_000)
    info = await rota.operations.run(info.id)

    assert (info.done, await counts(rota)) == (4, {"pending": 4, "failed": 2})
    assert await all_numbers(rota, JobState.FAILED, 10) == [5, 4]


async def test_priorities_of_many_are_changed(rota: Rota, send: Task[[int], Any, Any]) -> None:
    await many(send, 3)
    await many(send, 2, tags=["urgent"])

    info = await rota.operations.start("update", where={"tag": "urgent"}, priority="high")
    await rota.operations.run(info.id)

    listed = (await rota.jobs("pending")).jobs
    assert [job.options.priority for job in listed] == [-10, -10, 0, 0, 0]


async def test_what_is_refused_is_reported(rota: Rota, hand: Hand) -> None:
    @rota.task
    async def send(number: int) -> None: ...

    await send.using(id="x").enqueue(1)
    await end_all(hand, JobState.FAILED, 1)
    await send.using(id="x").enqueue(2)

    info = await rota.operations.start("redrive", where={"task": "send"})
    info = await rota.operations.run(info.id)

    assert (info.matched, info.done, info.failed) == (1, 0, 1)
    assert info.failures[0].reason == "its id has a newer run"
    assert await counts(rota) == {"failed": 1, "pending": 1}


async def test_what_comes_meanwhile_is_left_alone_and_the_rest_is_done_by_who_takes_over(
    rota: Rota, send: Task[[int], Any, Any], hand: Hand
) -> None:
    await many(send, 120)
    info = await rota.operations.start("delete", where={"state": "pending"})
    operations = (await checked_session(rota)).operations
    assert await operations.take_due("one that dies") == [info.id]
    while await session_of(rota).views.now() <= info.created_at:
        pass  # until the clock has moved on
    late = await send.enqueue(9_999)
    # As if its hold had run out.
    redis_client = (await checked_session(rota)).redis
    await redis_client.command(
        "ZADD", sessions_of(rota).keys.shared("operation_due"), info.created_at - HOLD_MS, info.id
    )

    assert await OperationDriver(sessions_of(rota), rota.tasks).run_waiting() == 1
    assert await OperationDriver(sessions_of(rota), rota.tasks).run_waiting() == 0

    assert (await rota.operations.get(info.id)).done == 120
    assert [job.ref for job in (await rota.jobs("pending")).jobs] == [late.ref]


@pytest.mark.usefixtures("on_each")
async def test_chosen_jobs_are_cancelled_each_once_and_no_other(rota: Rota, send: Task[[int], Any, Any]) -> None:
    jobs = [*await many(send, 150), *await many(send, 3, queue="mail")]
    left = await many(send, 5)
    gone, over = jobs[0], jobs[1]
    await gone.delete()
    await over.cancel("by hand")
    named = [*jobs, jobs[2], str(jobs[3].ref)]

    dry = await rota.operations.run((await rota.operations.start("cancel", jobs=named, dry_run=True)).id)
    assert (dry.state, dry.chosen, dry.matched, dry.done) == ("completed", 153, 151, 0)
    assert dry.queues == ["default", "mail"]

    info = await rota.operations.start("cancel", jobs=named, reason="not needed")
    info = await rota.operations.run(info.id)

    assert (info.state, info.expected, info.matched, info.done, info.failed) == ("completed", 153, 151, 151, 0)
    assert [(await job.refresh()).reason for job in jobs[1:]] == ["by hand"] + ["not needed"] * 151
    assert [await job.state() for job in left] == [JobState.PENDING] * 5


async def test_a_later_run_of_a_chosen_id_is_left_alone(rota: Rota, send: Task[[int], Any, Any]) -> None:
    old = await send.using(id="x").enqueue(1)
    info = await rota.operations.start("delete", jobs=["default:x"])
    while await session_of(rota).views.now() <= info.created_at:
        pass  # until the clock has moved on
    await old.delete()
    new = await send.using(id="x").enqueue(2)

    ended = await rota.operations.run(info.id)

    assert (ended.state, ended.matched) == ("completed", 0)
    assert await new.state() is JobState.PENDING


async def test_who_takes_over_goes_on_with_the_chosen_jobs_where_the_last_one_was(
    rota: Rota, send: Task[[int], Any, Any]
) -> None:
    jobs = await many(send, 250)
    info = await rota.operations.start("update", jobs=jobs, priority="high")
    operations = (await checked_session(rota)).operations
    assert await operations.take_due("one that dies") == [info.id]
    behind = msgspec.structs.replace(info, cursor="200", matched=200, done=200)
    assert await operations.save(behind, "one that dies") == "saved"
    redis_client = (await checked_session(rota)).redis
    await redis_client.command(
        "ZADD", sessions_of(rota).keys.shared("operation_due"), info.created_at - HOLD_MS, info.id
    )

    assert await OperationDriver(sessions_of(rota), rota.tasks).run_waiting() == 1

    ended = await rota.operations.get(info.id)
    assert (ended.state, ended.matched, ended.done) == ("completed", 250, 250)
    assert [(await job.refresh()).options.priority for job in jobs] == [0] * 200 + [-10] * 50
    assert await operations.jobs(info.id) == []  # thousands of ids are not kept for a week


async def test_one_that_is_stopped_does_no_more(rota: Rota, send: Task[[int], Any, Any]) -> None:
    jobs = await many(send, 3)
    info = await rota.operations.start("cancel", where={"queue": "default"})

    await rota.operations.stop(info.id)
    ended = await rota.operations.run(info.id)

    assert (ended.state, ended.done) == ("stopped", 0)
    assert [await job.state() for job in jobs] == [JobState.PENDING] * 3
    await rota.operations.stop(info.id)
    assert (await rota.operations.get(info.id)).state == "stopped"


async def test_one_that_goes_slowly_stays_held_and_is_stopped_between_two_jobs(
    rota: Rota, send: Task[[int], Any, Any]
) -> None:
    await many(send, 3)
    info = await rota.operations.start("cancel", where={"queue": "default"}, per_second=0.001)
    redis_client = (await checked_session(rota)).redis

    async def is_held_until() -> float:
        return float(await redis_client.command("ZSCORE", sessions_of(rota).keys.shared("operation_due"), info.id))

    async def has_begun() -> bool:
        return (await rota.operations.get(info.id)).done == 1

    async def is_held_longer() -> bool:
        return await is_held_until() > before

    async with asyncio.TaskGroup() as group:
        driving = group.create_task(rota.operations.run(info.id))
        await eventually(has_begun)
        before = await is_held_until()
        await eventually(is_held_longer)
        await rota.operations.stop(info.id)
        await eventually(driving.done)

    assert (driving.result().state, driving.result().done) == ("stopped", 1)
    assert await counts(rota) == {"pending": 2, "cancelled": 1}


@pytest.mark.parametrize(
    ("verb", "asked"),
    [
        ("kill", {"where": {"state": "pending"}}),
        ("cancel", {"where": {}}),
        ("cancel", {"where": {"colour": "red"}}),
        ("cancel", {"where": {"state": "dead"}}),
        ("cancel", {"where": {"since": "yesterday"}}),
        ("cancel", {"where": {"state": "pending"}, "per_second": 0}),
        ("update", {"where": {"state": "pending"}}),
        ("update", {"where": {"state": "pending"}, "priority": "loud"}),
        ("cancel", {"where": {"fields": {"a": []}}}),
        ("cancel", {}),
        ("cancel", {"where": {"state": "pending"}, "jobs": ["default:x"]}),
        ("cancel", {"jobs": []}),
        ("cancel", {"jobs": ["a b"]}),
        ("cancel", {"jobs": [f"default:{number}" for number in range(10_001)]}),
    ],
)
async def test_what_makes_no_sense_is_refused(rota: Rota, verb: Any, asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        await rota.operations.start(verb, **asked)
    assert await rota.operations.list() == []
    with pytest.raises(OperationNotFound):
        await rota.operations.get("nowhere")


async def test_an_outage_in_the_middle_of_an_operation_refuses_no_job(
    own_server: OwnServers, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is away while the first job is cancelled. Afterwards the operation is resumed, and cancels all."""
    server = own_server()
    async with Rota(server.url, namespace=namespace, patience=0.2) as rota:

        @rota.task
        async def send(number: int) -> None: ...

        for number in range(3):
            await send.enqueue(number)
        cancel = Job.cancel

        async def cancel_without_server(job: Job[Any], *args: Any, **kwargs: Any) -> Any:
            monkeypatch.setattr(Job, "cancel", cancel)
            server.pause()
            try:
                return await cancel(job, *args, **kwargs)
            finally:
                server.resume()

        monkeypatch.setattr(Job, "cancel", cancel_without_server)
        info = await rota.operations.start("cancel", where={"state": "pending"})

        with pytest.raises(StoreUnavailable):
            await rota.operations.run(info.id)
        info = await rota.operations.run(info.id)

        assert (info.state, info.done, info.failed) == ("completed", 3, 0)
        assert await counts(rota) == {"cancelled": 3}
