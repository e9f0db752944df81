"""One queue on all nodes: its shards are queues of their own, and what is said to the queue is said to all of them."""

from __future__ import annotations

import asyncio

import pytest

from rota import CancelOutcome, Every, Ignore, JobCancelled, JobState, Rota
from rota.core.shards import choose_shard, shard_names
from rota.errors import ConfigurationError, InvalidOption, JobNotFound
from rota.store.keys import Keys
from rota.store.redis.hash_slots import slot_of
from tests.cluster.conftest import QUEUES, WIDE
from tests.cluster.nodes import Cluster
from tests.worker.harness import WorkerHarness, failure

SHARDS = shard_names(WIDE, 6)


def test_each_node_has_as_many_shards_as_the_others(cluster: Cluster) -> None:
    ports = [cluster.node_of(slot_of(Keys("any").queue(shard, "meta"))).port for shard in SHARDS]

    assert sorted(map(ports.count, set(ports))) == [2, 2, 2]


async def test_jobs_are_spread_evenly_and_run_wherever_they_are(shared: WorkerHarness) -> None:
    add = shared.program.add.using(queue=WIDE)
    jobs = await shared.enqueue_many(add.call(n, 1) for n in range(600))
    jobs += [await add.enqueue(n, 2) for n in range(60)]
    jobs += await asyncio.gather(*(add.enqueue(n, 3) for n in range(60)))

    assert [await job.result(30) for job in jobs] == [*range(1, 601), *range(2, 62), *range(3, 63)]
    assert [sum(job.queue == shard for job in jobs) for shard in SHARDS] == [120] * 6
    assert len({job.id for job in jobs}) == 720


async def test_the_same_id_meets_itself_and_is_found_by_the_name_of_the_queue(shared: WorkerHarness) -> None:
    using = shared.program.echo.using
    for number in range(12):
        first = await using(queue=WIDE, id=f"same{number}", delay=3600).enqueue("old")
        again = await using(queue=WIDE, id=f"same{number}", on_same_id=Ignore()).enqueue("new")
        found = shared.rota.job(f"{WIDE}:same{number}")

        assert (again.ref, again.is_new) == (first.ref, False)
        assert (await found.refresh()).ref == first.ref
        assert await shared.rota.job(first.id).state() is JobState.SCHEDULED
        assert await shared.rota.job(f"{WIDE}:same{number}").cancel() is CancelOutcome.CANCELLED
        await found.delete()
    with pytest.raises(JobNotFound):
        await shared.rota.job(f"{WIDE}:same0").state()


async def test_a_follow_up_runs_after_the_run_before_it(shared: WorkerHarness) -> None:
    using = shared.program.wait.using
    first = await using(queue=WIDE, id="follow").enqueue("wide-1")
    await shared.noted("wide-1")
    second = await using(queue=WIDE, id="follow").enqueue("wide-2")

    assert await second.state() is JobState.BLOCKED
    shared.allow("wide-1")
    shared.allow("wide-2")
    assert (await first.result(10), await second.result(10)) == ("wide-1", "wide-2")


async def test_jobs_of_one_lock_never_overlap_and_keep_their_order(shared: WorkerHarness) -> None:
    alone = shared.program.hold_lock.using
    jobs = await asyncio.gather(
        *(alone(queue=WIDE, lock=f"account:{n % 2}").enqueue(f"wide-lock{n % 2}", str(n)) for n in range(12))
    )
    for job in jobs:
        await job.result(20)

    for parity in (0, 1):
        wanted = [f"{n} {what}" for n in range(parity, 12, 2) for what in ("in", "out")]
        assert shared.notes(f"wide-lock{parity}") == wanted
    assert {job.queue for job in jobs[::2]} == {choose_shard(WIDE, 6, id="", lock="account:0", turn=0)}


async def test_an_id_and_a_lock_together_are_refused_and_nothing_is_stored(shared: WorkerHarness) -> None:
    call = shared.program.echo.using(queue=WIDE, id="both", lock="account:7").call(1)
    before = await shared.rota.queue(WIDE).info()

    with pytest.raises(InvalidOption, match="use an id or a lock"):
        await shared.rota.enqueue(call)
    with pytest.raises(InvalidOption, match="use an id or a lock"):
        await shared.rota.enqueue_many([shared.program.echo.using(queue=WIDE, delay=60).call(1), call])

    assert (await shared.rota.queue(WIDE).info()).totals["run"] == before.totals["run"]


@pytest.mark.parametrize("queue", ["wide~3of6", "wide~3of6-fail"])
def test_jobs_are_not_put_into_one_shard_by_name(shared: WorkerHarness, queue: str) -> None:
    with pytest.raises(InvalidOption, match=r"shard|reserved"):
        shared.program.echo.using(queue=queue)
    with pytest.raises(InvalidOption):
        shared.rota.queue(queue, shards=2)


async def test_dependencies_cross_shards_and_queues(shared: WorkerHarness) -> None:
    echo = shared.program.echo.using
    first = await shared.program.wait.using(queue=WIDE, id="root").enqueue("wide-root")
    seconds = [await echo(queue=WIDE, after=[first]).enqueue(n) for n in range(6)]
    by_name = await echo(queue=QUEUES[1], after=[f"{WIDE}:root", *seconds]).enqueue("all")

    assert await by_name.state() is JobState.BLOCKED
    assert {job.queue for job in seconds} == set(SHARDS)
    shared.allow("wide-root")
    assert await by_name.result(20) == "all"
    with pytest.raises(JobNotFound, match="nowhere"):
        await echo(queue=WIDE, after=[f"{WIDE}:nowhere"]).enqueue(1)


async def test_a_cancel_reaches_dependents_in_other_shards(shared: WorkerHarness) -> None:
    first = await shared.program.echo.using(queue=WIDE, delay=3600).enqueue(1)
    second = await shared.program.echo.using(queue=WIDE, after=[first]).enqueue(2)
    await first.cancel()

    with pytest.raises(JobCancelled):
        await second.result(10)


async def test_failures_are_handled_listed_and_redriven(shared: WorkerHarness) -> None:
    failing = [await shared.program.fail_for_good.using(queue=WIDE).enqueue("wide-handled") for _ in range(6)]
    for job in failing:
        assert (await failure(job)).type == "ValueError"
    handled = await shared.noted("wide-handled", 6)
    assert sorted(handled) == sorted(f"ValueError of {job.id}" for job in failing)

    failed = [await shared.program.fail_until.using(queue=WIDE, retry=1).enqueue("wide-fixed") for _ in range(6)]
    for job in failed:
        await failure(job)
    listed = await shared.rota.dead.list(queue=WIDE, task="fail_until")
    assert {str(record.ref) for record in listed.jobs} == {str(job.ref) for job in failed}
    shared.allow("wide-fixed")
    assert await shared.rota.dead.redrive(queue=WIDE, task="fail_until") == 6
    assert [await job.result(10) for job in failed] == ["wide-fixed"] * 6


async def test_workflows_run_in_it(shared: WorkerHarness) -> None:
    program = shared.program
    async with shared.rota.workflow("wide") as flow:
        numbers = flow.step(program.numbers.using(queue=WIDE).call(10))
        each = flow.map(program.echo.using(queue=WIDE), numbers.result)
        flow.step(program.total.using(queue=WIDE).call(each.result))

    assert await flow.result(20) == 45


async def test_a_workflow_is_undone_where_its_undo_belongs(shared: WorkerHarness) -> None:
    program = shared.program
    async with shared.rota.workflow("wide") as flow:
        first = flow.step(program.effect.using(queue=WIDE).call("wide-undo", "done"))
        first.undo(program.effect.using(queue=WIDE).call("wide-undo", "undone"))
        flow.step(program.fail_for_good.using(queue=WIDE).call("wide-undo-reason"), after=[first])

    assert await shared.noted("wide-undo", 2, 20) == ["done", "undone"]
    with pytest.raises(InvalidOption, match="an id or a lock"):
        async with shared.rota.workflow("wide") as refused:
            refused.step(program.echo.using(queue=WIDE, lock="x").call(1))


async def test_a_schedule_lives_in_one_shard_and_is_found_by_the_name_of_the_queue(shared: WorkerHarness) -> None:
    call = shared.program.effect.using(queue=WIDE).call("wide-tick")
    put = await shared.rota.schedules.put("wide-tick", Every(1), call)
    try:
        await shared.noted("wide-tick", 2)
        assert put.queue in SHARDS
        assert (await shared.rota.schedules.get(f"{WIDE}:wide-tick")).id == put.id
        assert [info.id for info in await shared.rota.schedules.list(queue=WIDE)] == [put.id]
        assert (await shared.rota.schedules.run_now(f"{WIDE}:wide-tick")).queue == put.queue
    finally:
        await shared.rota.schedules.remove(f"{WIDE}:wide-tick")


async def test_pause_counts_listing_events_and_purge_speak_of_all_shards(harness: WorkerHarness) -> None:
    queue = harness.rota.queue(WIDE)
    await queue.pause()
    jobs = await harness.enqueue_many(harness.program.echo.using(queue=WIDE).call(n) for n in range(60))
    await harness.start(queues=WIDE)

    info = await queue.info()
    assert (info.name, info.is_paused, info.counts["pending"], info.totals["run"]) == (WIDE, True, 60, 60)
    assert {known.name: known.counts["pending"] for known in await harness.rota.queues()}[WIDE] == 60
    page = await harness.rota.jobs("pending", queue=WIDE, limit=50)
    rest = await harness.rota.jobs("pending", queue=WIDE, limit=50, cursor=page.cursor)
    assert {str(record.ref) for record in (*page.jobs, *rest.jobs)} == {str(job.ref) for job in jobs}
    assert "paused" in await jobs[0].explain()
    assert await queue.purge() == 60

    heard = harness.rota.events(queues=[WIDE])
    first = asyncio.ensure_future(anext(heard))
    await queue.resume()
    done = await harness.enqueue_many(harness.program.echo.using(queue=WIDE).call(n) for n in range(6))
    assert [await job.result(10) for job in done] == list(range(6))
    assert (await asyncio.wait_for(first, 10)).queue in SHARDS
    await heard.aclose()
    assert (await queue.counts())["completed"] == 6


async def test_a_job_of_a_killed_worker_runs_elsewhere(harness: WorkerHarness) -> None:
    victim = await harness.start(queues=WIDE)
    jobs = await harness.enqueue_many(harness.program.wait.using(queue=WIDE).call("wide-killed") for _ in range(6))
    await harness.noted("wide-killed", 6)
    await harness.start(queues=f"{WIDE}=2,default=1")
    victim.kill()
    harness.expire_leases(victim)
    harness.allow("wide-killed")

    assert [await job.result(20) for job in jobs] == ["wide-killed"] * 6


async def test_the_first_use_of_a_queue_decides_how_many_shards_it_has(cluster: Cluster, namespace: str) -> None:
    used, other, plain = (Rota(cluster.url, namespace=namespace) for _ in range(3))
    used.queue("a", shards=2)
    other.queue("a", shards=3)
    other.queue("b", shards=3)

    async def noop() -> None: ...

    tasks = [rota.task(name="noop")(noop) for rota in (used, other, plain)]

    assert (await tasks[0].using(queue="a").enqueue()).queue in ("a~1of2", "a~2of2")
    with pytest.raises(ConfigurationError, match="declared with 3 shards, and has been used with 2 shards"):
        await tasks[1].using(queue="a").enqueue()
    assert {(await tasks[2].using(queue="a").enqueue()).queue for _ in range(4)} == {"a~1of2", "a~2of2"}, (
        "it reads the shard count"
    )
    assert (await tasks[2].using(queue="b").enqueue()).queue == "b"
    with pytest.raises(ConfigurationError, match="used with none"):
        await tasks[1].using(queue="b").enqueue()
    assert (await used.queue("a").counts())["pending"] == 5
    for rota in (used, other, plain):
        await rota.close()
