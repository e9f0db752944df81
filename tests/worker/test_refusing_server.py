"""A server that refuses: full, read-only, asking for a password, or with one queue that is damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota import StoreFull
from rota.store.keys import QUEUE_KEYS
from tests.eventually import eventually
from tests.servers import OwnServers
from tests.worker.harness import Stopwatch, WorkerHarness


async def test_a_full_server_drains(own_server: OwnServers, namespace: str, tmp_path: Path) -> None:
    """Kue #1016: enqueueing is refused and leaves nothing; what is there is claimed, run, logged and finished."""
    server = own_server()
    with WorkerHarness(server, namespace, tmp_path) as harness, server.client() as client:
        await harness.start()
        running = await harness.program.wait.enqueue("running")
        await harness.noted("running")
        await harness.rota.queue().pause()
        jobs = await harness.enqueue_many(harness.program.write_log.call("a line") for _ in range(20))

        client.config_set("maxmemory", "1mb")
        with pytest.raises(StoreFull):
            await harness.program.add.enqueue(1, 2)
        await harness.rota.queue().resume()
        harness.allow("running")

        assert await running.result(10) == "running"
        for job in jobs:
            assert await job.result(10) == 1
        client.config_set("maxmemory", "0")
        assert await (await harness.program.add.enqueue(1, 2)).result(10) == 3
        await harness.rota.close()


@pytest.mark.parametrize("trouble", ["password", "replica"])
async def test_a_server_that_refuses_for_a_while_loses_no_job(
    own_server: OwnServers, namespace: str, tmp_path: Path, trouble: str
) -> None:
    """Spec 4, 15: a job that ends meanwhile is acknowledged afterwards; the worker lives and goes on within 2 s."""
    server = own_server()
    with WorkerHarness(server, namespace, tmp_path) as harness, server.client() as client:
        worker = await harness.start()
        ending = await harness.program.wait.enqueue("ending")
        running = await harness.program.wait.enqueue("running")
        await harness.noted("ending")
        await harness.noted("running")

        if trouble == "password":
            client.config_set("requirepass", "secret")
        else:
            client.replicaof("127.0.0.1", "1")
        client.client_kill_filter(_type="normal", skipme=True)
        client.client_kill_filter(_type="pubsub")
        harness.allow("ending")
        await harness.noted("ending", 2)
        watch = Stopwatch()
        await eventually(lambda: watch.seconds > 2, 4)
        if trouble == "password":
            client.config_set("requirepass", "")
        else:
            client.replicaof("NO", "ONE")

        back = Stopwatch()
        assert await ending.result(5) == "ending"
        assert await (await harness.program.add.enqueue(1, 2)).result(5) == 3
        assert back.seconds < 2.5
        harness.allow("running")
        assert await running.result(5) == "running"
        for job in (ending, running):
            counts = (await job.refresh()).counts
            assert (counts.attempt, counts.stalls, counts.failures) == (1, 0, 0)
        assert worker.is_alive
        await harness.rota.close()


async def test_a_damaged_queue_does_not_hold_up_the_others(harness: WorkerHarness) -> None:
    """One key of the first queue has the wrong type: claims of it fail, until it is repaired."""
    with harness.redis() as client:
        client.set(harness.key("pending", "damaged"), "this should be a sorted set", ex=600)
        worker = await harness.start(queues="damaged,default")
        assert [await (await harness.program.add.enqueue(1, n)).result(5) for n in range(5)] == [1, 2, 3, 4, 5]

        client.delete(harness.key("pending", "damaged"))
        job = await harness.program.add.using(queue="damaged").enqueue(2, 2)

        assert await job.result(5) == 4
    assert worker.is_alive


@pytest.mark.timeout(120)
@pytest.mark.parametrize("is_weighted", [False, True])
async def test_keys_of_a_wrong_type_stop_their_queues_only(harness: WorkerHarness, *, is_weighted: bool) -> None:
    """Each queue but one has another key of a wrong type. The worker starts, and serves the one."""
    damaged = [name for name, spec in QUEUE_KEYS.items() if "{name}" not in spec.pattern]
    with harness.redis() as client:
        for name in damaged:
            key = harness.key(name, f"x-{name}")
            if QUEUE_KEYS[name].type == "string":
                client.sadd(key, "this should be a string")
            else:
                client.set(key, "this should be another type")
            client.expire(key, 600)
        queues = [f"x-{name}" for name in damaged] + ["default"]
        worker = await harness.start(queues=",".join(f"{queue}=1" if is_weighted else queue for queue in queues))

        assert [await (await harness.program.add.enqueue(1, n)).result(20) for n in range(5)] == [1, 2, 3, 4, 5]

    assert worker.is_alive
    assert "`rota doctor` names the key" in worker.log
    assert "Traceback" not in worker.log


async def test_a_burst_that_cannot_reach_its_server_says_so_and_leaves(harness: WorkerHarness) -> None:
    worker = harness.launch("--burst", environment={"ROTA_URL": "unix:///nowhere/at/all"})

    assert await worker.ended(20) == 5
    assert "does not answer" in worker.log
    assert "Traceback" not in worker.log


async def test_a_program_that_does_not_start_is_said_so_and_the_worker_leaves(harness: WorkerHarness) -> None:
    harness.allow("broken-start")
    worker = harness.launch()

    assert await worker.ended(20) == 6
    assert "this program does not start any more" in worker.log


@pytest.mark.requirement("S4-4")
async def test_large_arguments_and_results_pass_through_every_pipe(harness: WorkerHarness) -> None:
    """Up to the limit of 1 MiB, many at once."""
    await harness.start(concurrency=20)
    texts = [f"{number}" + "x" * 900_000 for number in range(20)]

    jobs = [await harness.program.echo.enqueue(text) for text in texts]

    assert [await job.result(20) for job in jobs] == texts


async def test_a_flood_of_log_lines_costs_no_job_its_lease(harness: WorkerHarness) -> None:
    """Handlers that talk without end are no reason for the supervisor to miss a heartbeat."""
    await harness.start("--processes", "2")
    await harness.start()
    floods = [await harness.program.write_log_in_thread.enqueue(50_000) for _ in range(2)]
    running = await harness.program.wait.enqueue("running")

    for flood in floods:
        await flood.result(40)
    harness.allow("running")

    assert await running.result(10) == "running"
    for job in (*floods, running):
        assert (await job.refresh()).counts.stalls == 0
    assert [len(await flood.logs()) for flood in floods] == [1000, 1000]


@pytest.mark.requirement("S0-16", "S2-28")
async def test_the_server_may_be_given_by_host_port_and_password(
    own_server: OwnServers, namespace: str, tmp_path: Path
) -> None:
    """From `REDIS_HOST`, `REDIS_PORT` and `REDIS_PASSWORD`."""
    server = own_server(tcp=True, requirepass="sesame & open")
    with WorkerHarness(server, namespace, tmp_path) as harness:
        where = {"REDIS_HOST": "127.0.0.1", "REDIS_PORT": str(server.port), "REDIS_PASSWORD": "sesame & open"}
        worker = await harness.start(environment={"ROTA_URL": "", **where})

        assert await (await harness.program.add.enqueue(1, 2)).result(10) == 3
        assert "sesame" not in worker.log
        await harness.rota.close()
