"""Jobs on a cluster whose queues live on three nodes: all that one queue can do, and all that crosses them."""

from __future__ import annotations

import asyncio

import pytest
from redis.crc import key_slot

from rota import Event, Every, Ignore, JobCancelled, JobNotFound, JobState, Reject, Rota, may_fail
from rota.errors import IdInUse
from tests.cluster.conftest import QUEUES
from tests.cluster.nodes import Cluster
from tests.worker.harness import WorkerHarness, failure

MAIL, PRINT, BILLING = QUEUES


def test_the_queues_of_these_tests_live_on_three_nodes(cluster: Cluster) -> None:
    ports = {cluster.node_of(key_slot(queue.encode())).port for queue in QUEUES}

    assert len(ports) == 3


async def test_jobs_run_and_bring_results_on_every_node(shared: WorkerHarness) -> None:
    jobs = [
        job
        for queue in QUEUES
        for job in await shared.enqueue_many(shared.program.add.using(queue=queue).call(n, 1) for n in range(50))
    ]

    assert [await job.result(10) for job in jobs] == [n + 1 for _ in QUEUES for n in range(50)]
    infos = {info.name: info for info in await shared.rota.queues()}
    assert all(infos[queue].totals["completed"] >= 50 for queue in QUEUES)


async def test_one_call_enqueues_on_all_nodes_in_order(shared: WorkerHarness) -> None:
    add = shared.program.add
    jobs = await shared.enqueue_many(add.using(queue=QUEUES[n % 3]).call(n, 0) for n in range(30))

    assert [job.queue for job in jobs] == [QUEUES[n % 3] for n in range(30)]
    assert [await job.result(10) for job in jobs] == list(range(30))


async def test_jobs_of_one_lock_never_overlap(shared: WorkerHarness) -> None:
    jobs = [
        await shared.program.hold_lock.using(queue=BILLING, lock="account:7").enqueue("lock", str(n)) for n in range(10)
    ]
    for job in jobs:
        await job.result(10)

    assert shared.notes("lock") == [f"{n} {what}" for n in range(10) for what in ("in", "out")]


async def test_the_same_id_is_one_job(shared: WorkerHarness) -> None:
    using = shared.program.echo.using
    first = await using(queue=PRINT, id="same", delay=3600).enqueue("old")
    again = await using(queue=PRINT, id="same").enqueue("new")

    assert again.ref == first.ref
    assert await first.result(10) == "new"
    waiting = await using(queue=PRINT, id="taken", delay=3600).enqueue(1)
    assert (await using(queue=PRINT, id="taken", on_same_id=Ignore()).enqueue(2)).ref == waiting.ref
    with pytest.raises(IdInUse):
        await using(queue=PRINT, id="taken", on_same_id=Reject()).enqueue(3)
    await waiting.cancel()


async def test_a_follow_up_runs_after_the_run_before_it(shared: WorkerHarness) -> None:
    using = shared.program.wait.using
    first = await using(queue=MAIL, id="follow").enqueue("follow-1")
    await shared.noted("follow-1")
    second = await using(queue=MAIL, id="follow").enqueue("follow-2")

    assert await second.state() is JobState.BLOCKED
    shared.allow("follow-1")
    shared.allow("follow-2")
    assert (await first.result(10), await second.result(10)) == ("follow-1", "follow-2")


async def test_a_job_starts_when_jobs_on_other_nodes_have_succeeded(shared: WorkerHarness) -> None:
    b = await shared.program.wait.using(queue=PRINT).enqueue("after-b")
    c = await shared.program.wait.using(queue=BILLING).enqueue("after-c")
    a = await shared.program.echo.using(queue=MAIL, after=[b, c]).enqueue("a")

    await shared.noted("after-b")
    shared.allow("after-b")
    await b.result(10)
    assert await a.state() is JobState.BLOCKED
    assert str(c.ref) in await a.explain()
    shared.allow("after-c")

    assert await a.result(10) == "a"


async def test_what_has_already_succeeded_on_another_node_counts(shared: WorkerHarness) -> None:
    done = await shared.program.echo.using(queue=PRINT).enqueue(1)
    await done.result(10)

    assert await (await shared.program.echo.using(queue=BILLING, after=[done]).enqueue(2)).result(10) == 2


async def test_an_unknown_job_on_another_node_is_refused(shared: WorkerHarness) -> None:
    with pytest.raises(JobNotFound, match="billing:nowhere"):
        await shared.program.echo.using(queue=MAIL, after=["billing:nowhere"]).enqueue(2)


async def test_a_failure_cancels_across_nodes_and_a_redrive_brings_back(shared: WorkerHarness) -> None:
    first = await shared.program.fail_until.using(queue=MAIL, retry=1).enqueue("fixed")
    second = await shared.program.echo.using(queue=PRINT, after=[first]).enqueue(2)
    third = await shared.program.echo.using(queue=BILLING, after=[second]).enqueue(3)
    regardless = await shared.program.echo.using(queue=BILLING, after=[may_fail(first)]).enqueue(4)

    with pytest.raises(JobCancelled, match=f"comes after {first.ref}"):
        await second.result(10)
    with pytest.raises(JobCancelled, match=f"comes after {second.ref}"):
        await third.result(10)
    assert await regardless.result(10) == 4
    shared.allow("fixed")
    await first.redrive()

    assert await third.result(10) == 3


async def test_a_cancel_reaches_dependents_on_other_nodes(shared: WorkerHarness) -> None:
    first = await shared.program.wait.using(queue=MAIL).enqueue("stopped")
    second = await shared.program.echo.using(queue=PRINT, after=[first]).enqueue(2)
    await shared.noted("stopped")
    await first.cancel()

    with pytest.raises(JobCancelled):
        await second.result(10)


async def test_hundreds_of_dependents_of_one_job_all_start(shared: WorkerHarness) -> None:
    first = await shared.program.wait.using(queue=PRINT).enqueue("many")
    dependents = await shared.enqueue_many(
        shared.program.echo.using(queue=queue, after=[first]).call(n) for n in range(333) for queue in (MAIL, BILLING)
    )
    shared.allow("many")

    assert [await job.result(30) for job in dependents] == [n for n in range(333) for _ in range(2)]


async def test_a_failure_handler_runs_on_the_node_of_its_queue(shared: WorkerHarness) -> None:
    for queue in QUEUES:
        job = await shared.program.fail_for_good.using(queue=queue).enqueue(f"handled-{queue}")
        assert (await failure(job)).type == "ValueError"

        assert await shared.noted(f"handled-{queue}") == [f"ValueError of {job.id}"]


@pytest.mark.parametrize("queue", QUEUES)
async def test_a_schedule_makes_jobs(shared: WorkerHarness, queue: str) -> None:
    subject = f"tick-{queue}"
    call = shared.program.effect.using(queue=queue).call(subject)
    await shared.rota.schedules.put(subject, Every(1), call)
    try:
        await shared.noted(subject, 2)
        assert (await shared.rota.schedules.run_now(f"{queue}:{subject}")).queue == queue
        assert f"{queue}:{subject}" in [info.id for info in await shared.rota.schedules.list()]
    finally:
        await shared.rota.schedules.remove(f"{queue}:{subject}")


async def test_events_of_all_nodes_arrive_in_one_stream(shared: WorkerHarness) -> None:
    await shared.enqueue_many(shared.program.echo.using(queue=queue).call(0) for queue in QUEUES)
    heard: list[Event] = []
    listening = asyncio.Event()

    async def listen() -> None:
        stream = shared.rota.events(queues=QUEUES)
        listening.set()
        async for event in stream:
            heard.append(event)
            if {event.queue for event in heard if event.verb == "completed"} == set(QUEUES):
                await stream.aclose()
                return

    task = asyncio.create_task(listen())
    await listening.wait()
    async with asyncio.timeout(10):
        while not task.done():
            for queue in QUEUES:
                await (await shared.program.echo.using(queue=queue).enqueue(1)).result(10)
    await task

    resumed = shared.rota.events(queues=QUEUES, after=heard[0].id)
    missed = {(event.queue, event.verb, event.runs) for event in heard[1:]}
    async with asyncio.timeout(10):  # each node's events come in order, those of different nodes in any
        while missed:
            event = await anext(resumed)
            missed.discard((event.queue, event.verb, event.runs))
    await resumed.aclose()


async def test_pause_purge_and_listing_work_on_every_node(harness: WorkerHarness) -> None:
    for queue in QUEUES:
        await harness.rota.queue(queue).pause()
        await harness.enqueue_many(harness.program.echo.using(queue=queue).call(n) for n in range(20))
    page = await harness.rota.jobs("pending", limit=50)
    rest = await harness.rota.jobs("pending", limit=50, cursor=page.cursor)

    assert len(page.jobs) + len(rest.jobs) == 60
    assert sum([await harness.rota.queue(queue).purge() for queue in QUEUES]) == 60
    assert all(info.is_paused for info in await harness.rota.queues())


async def test_a_job_of_a_killed_worker_runs_elsewhere(harness: WorkerHarness) -> None:
    victim = await harness.start(queues=",".join(QUEUES))
    jobs = [await harness.program.wait.using(queue=queue).enqueue(f"killed-{queue}") for queue in QUEUES]
    for queue in QUEUES:
        await harness.noted(f"killed-{queue}")
    await harness.start(queues=",".join(QUEUES))
    victim.kill()
    for queue in QUEUES:
        harness.allow(f"killed-{queue}")

    assert [await job.result(20) for job in jobs] == [f"killed-{queue}" for queue in QUEUES]
    assert [(await job.refresh()).counts.stalls for job in jobs] == [1, 1, 1]


def test_the_sync_twins_work(cluster: Cluster, namespace: str) -> None:
    rota = Rota(cluster.url, namespace=namespace)

    @rota.task(queue=PRINT)
    def noop() -> None: ...

    job = noop.enqueue_sync()
    assert job.state_sync() is JobState.PENDING
    rota.close_sync()
