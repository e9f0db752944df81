"""What happens after a job has failed for good: its failure handler runs, as a job of its own, on any worker."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from rota import JobRecord, JobState, Retry, WorkerInfo
from rota.core.retry import Exponential
from rota.worker.config import WorkerConfig
from tests.eventually import eventually
from tests.servers import Server
from tests.worker.harness import WorkerHarness, failure

FAR_MS = 1_000_000


@pytest.fixture
async def harness(valkey: Server, namespace: str, tmp_path: Path) -> AsyncIterator[WorkerHarness]:
    """Workers of a program whose jobs fail."""
    with WorkerHarness(valkey, namespace, tmp_path, "tests.worker.failing") as harness:
        yield harness
        await harness.rota.close()


async def handled(harness: WorkerHarness, subject: str) -> dict[str, Any]:
    """The arguments of the only call of the failure handler of that subject."""
    (text,) = await harness.noted(f"{subject}-failure", timeout=20)
    return json.loads(text)


async def failure_jobs(harness: WorkerHarness, state: JobState, queue: str = "default-fail") -> list[JobRecord]:
    return list((await harness.rota.jobs(state, queue=queue)).jobs)


def order(harness: WorkerHarness) -> Any:
    return harness.program.Order(7, date(2026, 1, 2))


@pytest.mark.requirement("S4-21", "S4-15", "S4-18", "Q-6")
@pytest.mark.parametrize(
    ("how", "kind", "type"),
    [
        ("exception", "exception", "Refused"),
        ("permanent", "permanent", "PermanentError"),
        ("timeout", "timeout", "Timeout"),
    ],
)
async def test_the_handler_gets_the_error_the_job_and_what_the_job_was_called_with(
    harness: WorkerHarness, how: str, kind: str, type: str
) -> None:
    """With the types that the task declares. The kind of the error is included."""
    await harness.start()
    prepared = harness.program.charge.using(id="order-7", tags=["a"], meta={"m": 1}, timeout=0.5)
    job = await prepared.enqueue("it", order(harness), how=how, loud=True)

    call = await handled(harness, "it")

    assert (call["kind"], call["type"]) == (kind, type)
    assert call["attributes"] == ({"code": 402} if how == "exception" else {})
    assert (call["ref"], call["task"], call["state"]) == (str(job.ref), "charge", "failed")
    assert (call["attempt"], call["failures"], call["stalls"]) == (1, 1, 0)
    assert (call["tags"], call["meta"]) == (["a"], {"m": 1})
    assert call["enqueued_at"] <= call["ended_at"]
    order_seen, how_seen, loud, queue, task, lent = call["more"]
    assert order_seen == "Order(number=7, day=datetime.date(2026, 1, 2))"
    assert (how_seen, loud, queue, task, lent) == (repr(how), "True", "'default-fail'", "'charge.on_failure'", "'lent'")
    await harness.noted("lend")
    assert await job.state() is JobState.FAILED


@pytest.mark.requirement("S4-22")
async def test_a_handler_runs_once_for_a_failure_and_ends_as_any_job_does(harness: WorkerHarness) -> None:
    await harness.start()
    await harness.program.unlucky.enqueue("it", 0)

    await harness.noted("it-failure")
    (record,) = await eventually(lambda: failure_jobs(harness, JobState.COMPLETED))

    assert record.task == "unlucky.on_failure"
    assert await harness.rota.job(str(record.ref)).result() == "told"
    assert harness.notes("it-failure") == ["1"]
    assert [job.ref for job in (await harness.rota.jobs(queue="default-fail", tag="alarm")).jobs] == [record.ref]


async def test_handlers_in_threads_and_processes_and_with_positional_arguments(harness: WorkerHarness) -> None:
    await harness.start()
    await harness.program.plain.enqueue(1, 2, 3, subject="it")
    await harness.program.shy.enqueue("x")

    call = await handled(harness, "it")
    assert call["more"] == ["1", "2", "3"]
    assert (call["attempt"], call["failures"]) == (2, 2)
    runner = int((await handled(harness, "shy"))["more"][0])
    assert runner in harness.workers[0].runners("process")


@pytest.mark.requirement("S4-22")
async def test_a_handler_that_fails_is_tried_again(harness: WorkerHarness) -> None:
    """With its own retry."""
    await harness.start()
    await harness.program.unlucky.enqueue("it", 2)

    await harness.noted("it-failure", 3)
    await eventually(lambda: failure_jobs(harness, JobState.COMPLETED))

    assert harness.notes("it-failure") == ["1", "2", "3"]


async def test_a_handler_that_fails_for_good_is_a_dead_letter_and_can_be_redriven(harness: WorkerHarness) -> None:
    await harness.start()
    await harness.program.unlucky.enqueue("it", 3)

    (record,) = await eventually(lambda: failure_jobs(harness, JobState.FAILED))
    assert harness.notes("it-failure") == ["1", "2", "3"]
    assert record.error is not None
    assert record.error.type == "ConnectionError"
    assert await failure_jobs(harness, JobState.PENDING) == []

    await harness.rota.job(str(record.ref)).redrive()
    await harness.noted("it-failure", 4)


async def test_a_redriven_job_that_fails_again_has_its_handler_run_again(harness: WorkerHarness) -> None:
    await harness.start()
    job = await harness.program.unlucky.enqueue("it", 0)
    await harness.noted("it-failure")

    await job.redrive()

    await harness.noted("it-failure", 2)


@pytest.mark.requirement("S4-23")
async def test_without_a_handler_nothing_is_made(harness: WorkerHarness) -> None:
    await harness.start()
    job = await harness.program.careless.enqueue("it")

    assert (await failure(job)).type == "ValueError"

    assert sum((await harness.rota.queue("default-fail").counts()).values()) == 0


@pytest.mark.requirement("S4-21")
async def test_stalls_used_up_reach_the_handler(harness: WorkerHarness) -> None:
    """StallError if the last run neither returned nor threw."""
    await harness.start()
    await harness.program.charge.using(max_stalls=1).enqueue("it", order(harness), how="die")

    call = await handled(harness, "it")

    assert (call["kind"], call["type"], call["stalls"]) == ("stall", "StallError", 2)
    assert harness.notes("it") == ["begin", "begin"]


async def test_a_killed_worker_whose_job_may_run_only_once_reaches_the_handler_on_another(
    harness: WorkerHarness,
) -> None:
    first = await harness.start()
    job = await harness.program.once.enqueue("it")
    await harness.noted("it")
    second = await harness.start()

    first.kill()
    harness.expire_leases(first)
    call = await handled(harness, "it")

    assert call["kind"] == "stall"
    assert call["ref"] == str(job.ref)
    assert second.is_alive


async def test_a_job_that_may_run_only_once_and_is_handed_back_reaches_the_handler(harness: WorkerHarness) -> None:
    first = await harness.start("--grace", "0")
    await harness.program.once.enqueue("it")
    await harness.noted("it")

    first.terminate()
    await first.ended()
    await harness.start()

    assert (await handled(harness, "it"))["kind"] == "stall"


@pytest.mark.requirement("S4-23")
async def test_a_worker_that_dies_between_failure_and_handler_leaves_it_to_another(harness: WorkerHarness) -> None:
    """One script does both, so no crash can separate them."""
    first = await harness.start()
    await harness.rota.queue("default-fail").pause()
    job = await harness.program.unlucky.enqueue("it", 0)
    await failure(job)

    first.kill()
    await harness.rota.queue("default-fail").resume()
    await harness.start()

    assert await harness.noted("it-failure") == ["1"]


async def test_a_handler_whose_worker_is_killed_runs_again_elsewhere(harness: WorkerHarness) -> None:
    first = await harness.start()
    await harness.program.patient.enqueue("it")
    await harness.noted("it-failure")
    await harness.start()

    first.kill()
    harness.expire_leases(first)
    await harness.noted("it-failure", 2, timeout=12)
    harness.allow("it")
    await harness.noted("it-failure", 3)

    assert harness.notes("it-failure") == ["begin 1", "begin 2", "end 2"]


async def test_a_handler_of_a_stopping_worker_is_handed_back(harness: WorkerHarness) -> None:
    first = await harness.start("--grace", "0")
    await harness.program.patient.enqueue("it")
    await harness.noted("it-failure")

    first.terminate()
    await first.ended()
    second = await harness.start()
    harness.allow("it")

    await harness.noted("it-failure", 3)
    assert second.is_alive
    assert harness.notes("it-failure") == ["begin 1", "begin 2", "end 2"]


@pytest.mark.requirement("Q-6", "S4-31")
async def test_a_periodic_job_that_enqueues_itself_survives_a_permanent_failure(harness: WorkerHarness) -> None:
    """Its handler makes the next round, under the same id."""
    await harness.start()

    await harness.program.periodic.using(id="tick-1").enqueue("tick", 1)
    await harness.noted("tick", 5)

    assert harness.notes("tick") == ["round 1", "round 2", "handler after 2", "round 3", "round 4"]


async def test_a_worker_of_failures_alone_serves_just_them(harness: WorkerHarness) -> None:
    first = await harness.start()
    await harness.rota.queue("default-fail").pause()
    job = await harness.program.unlucky.enqueue("it", 0)
    await failure(job)
    first.terminate()
    await first.ended()
    waiting = await harness.program.careless.enqueue("other")
    await harness.rota.queue("default-fail").resume()

    await harness.start(queues="default-fail")

    await harness.noted("it-failure")
    assert await waiting.state() is JobState.PENDING


async def test_a_worker_in_burst_mode_runs_the_handlers_too(harness: WorkerHarness) -> None:
    await harness.program.unlucky.enqueue("it", 0)

    worker = harness.launch("--burst")

    assert await worker.ended(30) == 0
    assert harness.notes("it-failure") == ["1"]


async def test_handlers_run_for_every_queue_a_worker_serves_and_by_weight_too(harness: WorkerHarness) -> None:
    await harness.start(queues="mail=3,other=1")

    for queue in ("mail", "other"):
        await harness.program.unlucky.using(queue=queue).enqueue(queue, 0)

    for queue in ("mail", "other"):
        await harness.noted(f"{queue}-failure")
        assert await eventually(lambda queue=queue: failure_jobs(harness, JobState.COMPLETED, f"{queue}-fail"))


@pytest.mark.requirement("S4-2", "S4-22")
async def test_options_come_from_the_handler_then_the_queue_then_the_defaults(harness: WorkerHarness) -> None:
    """100 attempts, 10 s to 15 min, unless configured otherwise."""
    await harness.start(queues="default,mail")
    for queue in ("default", "mail"):
        await harness.program.charge.using(queue=queue).enqueue(f"charge-{queue}", order(harness))
        await harness.program.plain.using(queue=queue).enqueue(subject=f"plain-{queue}")
    for subject in ("charge-default", "charge-mail", "plain-default", "plain-mail"):
        await harness.noted(f"{subject}-failure")

    async def ended(queue: str) -> dict[str, JobRecord]:
        found = {record.task: record for record in await failure_jobs(harness, JobState.COMPLETED, queue)}
        assert len(found) == 2
        return found

    default, mail = await eventually(lambda: ended("default-fail")), await eventually(lambda: ended("mail-fail"))
    options = default["charge.on_failure"].options
    assert options.retry == Retry(attempts=100, backoff=Exponential(10, 900))
    assert (options.timeout_ms, options.max_stalls) == (300_000, 3)
    options = mail["charge.on_failure"].options
    assert options.retry.attempts == 100
    assert (options.timeout_ms, options.max_stalls) == (44_000, 7)
    options = mail["plain.on_failure"].options
    assert (options.timeout_ms, options.max_stalls, options.priority) == (20_000, 7, -10)


async def test_the_history_of_the_job_names_its_failure_job(harness: WorkerHarness) -> None:
    await harness.start()
    job = await harness.program.unlucky.enqueue("it", 0)
    await failure(job)

    (record,) = await eventually(lambda: failure_jobs(harness, JobState.COMPLETED))
    history = await job.history()

    assert [entry.verb for entry in history] == ["enqueue", "claim", "fail", "failure_job"]
    assert history[-1].note == record.ref.full_id
    assert (await job.explain()).endswith(f"its failure handler is job {record.ref.full_id}")


async def test_the_registry_shows_the_failures_that_a_worker_serves(harness: WorkerHarness) -> None:
    worker = await harness.start(queues="default,mail")

    info = await harness.info(worker)

    assert info.info["queues"] == ["default", "default-fail", "mail", "mail-fail"]
    assert {"default-fail", "mail-fail"} <= {queue.name for queue in await harness.rota.queues()}


async def test_a_worker_whose_program_lost_the_handler_takes_the_announcement_back(harness: WorkerHarness) -> None:
    await harness.start()
    with harness.redis() as client:
        key = harness.key("failure_handlers")
        assert b"charge" in client.hgetall(key)
        client.hset(key, mapping={"careless": "", "of another program": ""})

        await harness.start()

        kept = set(client.hkeys(key))
        assert b"careless" not in kept
        assert {b"charge", b"of another program"} <= kept
        assert client.pttl(key) == -1


@pytest.mark.parametrize(
    ("queues", "served"),
    [
        (("mail",), ("mail", "mail-fail")),
        (("b", "a"), ("b", "b-fail", "a", "a-fail")),
        (("mail-fail",), ("mail-fail",)),
        (("mail-fail", "x", "mail"), ("mail-fail", "x", "x-fail", "mail")),
    ],
)
def test_a_worker_serves_failures_after_their_queue_unless_an_order_is_given(
    queues: tuple[str, ...], served: tuple[str, ...]
) -> None:
    assert WorkerConfig(app="a:b", queues=queues).served == served


def test_a_worker_of_a_queue_counts_as_one_of_its_failures() -> None:
    worker = WorkerInfo("w", "ALIVE", 0, 0, {"queues": ["mail", "x-fail"]})

    assert [queue for queue in ("mail", "mail-fail", "x", "x-fail", "other-fail") if worker.serves(queue)] == [
        "mail",
        "mail-fail",
        "x-fail",
    ]
    assert not WorkerInfo("w", "DEAD", 0, 0, {"queues": ["mail"]}).serves("mail")


async def test_a_queue_of_failures_that_is_not_used_costs_nothing(harness: WorkerHarness) -> None:
    """The worker looks at its own queue alone: every claim of another would leave its tick there."""
    await harness.start()
    job = await harness.program.careless.enqueue("it")
    await failure(job)

    with harness.redis() as client:
        assert not list(client.scan_iter(match=f"{harness.namespace}:{{default}}:fail:*"))


async def test_a_failure_that_waits_for_its_retry_does_not_keep_an_idle_worker_busy(harness: WorkerHarness) -> None:
    """An alarm is set for it, and nothing is asked meanwhile."""
    await harness.start()
    await harness.program.charge.enqueue("it", order(harness))
    await handled(harness, "it")
    await eventually(lambda: failure_jobs(harness, JobState.COMPLETED))
    with harness.redis() as client:
        later = (harness.now_ms() + FAR_MS) * 256 + 100
        client.zadd(harness.key("scheduled", "default-fail"), {"zzzzzzzzz": later})

        looks, looks_at_failures = set[object](), set[object]()

        def has_looked() -> bool:
            looks.add(client.hget(harness.key("meta"), "server_seen"))
            looks_at_failures.add(client.hget(harness.key("meta", "default-fail"), "server_seen"))
            return len(looks) >= 4

        await eventually(has_looked, 20)

    assert len(looks_at_failures) <= 2
