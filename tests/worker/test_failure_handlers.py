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
from tests.worker.crew import Crew, failure

FAR_MS = 1_000_000


@pytest.fixture
async def crew(valkey: Server, namespace: str, tmp_path: Path) -> AsyncIterator[Crew]:
    """Workers of a program whose jobs fail."""
    with Crew(valkey, namespace, tmp_path, "tests.worker.failing") as crew:
        yield crew
        await crew.rota.close()


async def told(crew: Crew, subject: str) -> dict[str, Any]:
    """What the failure handler of that subject was told, once."""
    (text,) = await crew.noted(f"{subject}-failure", timeout=20)
    return json.loads(text)


async def failure_jobs(crew: Crew, state: JobState, queue: str = "default-fail") -> list[JobRecord]:
    return list((await crew.rota.jobs(state, queue=queue)).jobs)


def order(crew: Crew) -> Any:
    return crew.program.Order(7, date(2026, 1, 2))


@pytest.mark.parametrize(
    ("how", "kind", "type"),
    [
        ("exception", "exception", "Refused"),
        ("permanent", "permanent", "PermanentError"),
        ("timeout", "timeout", "Timeout"),
    ],
)
async def test_the_handler_gets_the_error_the_job_and_what_the_job_was_called_with(
    crew: Crew, how: str, kind: str, type: str
) -> None:
    """S4-21, S4-15, S4-18: with the types that the task declares. Q-6: the kind of the error is told."""
    await crew.start()
    prepared = crew.program.charge.using(id="order-7", tags=["a"], meta={"m": 1}, timeout=0.5)
    job = await prepared.enqueue("it", order(crew), how=how, loud=True)

    heard = await told(crew, "it")

    assert (heard["kind"], heard["type"]) == (kind, type)
    assert heard["attributes"] == ({"code": 402} if how == "exception" else {})
    assert (heard["ref"], heard["task"], heard["state"]) == (str(job.ref), "charge", "failed")
    assert (heard["attempt"], heard["failures"], heard["stalls"]) == (1, 1, 0)
    assert (heard["tags"], heard["meta"]) == (["a"], {"m": 1})
    assert heard["enqueued_at"] <= heard["ended_at"]
    order_seen, how_seen, loud, queue, task, lent = heard["more"]
    assert order_seen == "Order(number=7, day=datetime.date(2026, 1, 2))"
    assert (how_seen, loud, queue, task, lent) == (repr(how), "True", "'default-fail'", "'charge.on_failure'", "'lent'")
    await crew.noted("lend")
    assert await job.state() is JobState.FAILED


async def test_a_handler_runs_once_for_a_failure_and_ends_as_any_job_does(crew: Crew) -> None:
    """S4-22."""
    await crew.start()
    await crew.program.unlucky.enqueue("it", 0)

    await crew.noted("it-failure")
    (record,) = await eventually(lambda: failure_jobs(crew, JobState.COMPLETED))

    assert record.task == "unlucky.on_failure"
    assert await crew.rota.job(str(record.ref)).result() == "told"
    assert crew.notes("it-failure") == ["1"]


async def test_handlers_in_threads_and_processes_and_with_positional_arguments(crew: Crew) -> None:
    await crew.start()
    await crew.program.plain.enqueue(1, 2, 3, subject="it")
    await crew.program.shy.enqueue("x")

    heard = await told(crew, "it")
    assert heard["more"] == ["1", "2", "3"]
    assert (heard["attempt"], heard["failures"]) == (2, 2)
    runner = int((await told(crew, "shy"))["more"][0])
    assert runner in crew.workers[0].runners("process")


async def test_a_handler_that_fails_is_tried_again(crew: Crew) -> None:
    """S4-22: with its own retry."""
    await crew.start()
    await crew.program.unlucky.enqueue("it", 2)

    await crew.noted("it-failure", 3)
    await eventually(lambda: failure_jobs(crew, JobState.COMPLETED))

    assert crew.notes("it-failure") == ["1", "2", "3"]


async def test_a_handler_that_fails_for_good_is_a_dead_letter_and_can_be_redriven(crew: Crew) -> None:
    await crew.start()
    await crew.program.unlucky.enqueue("it", 3)

    (record,) = await eventually(lambda: failure_jobs(crew, JobState.FAILED))
    assert crew.notes("it-failure") == ["1", "2", "3"]
    assert record.error is not None
    assert record.error.type == "ConnectionError"
    assert await failure_jobs(crew, JobState.PENDING) == []

    await crew.rota.job(str(record.ref)).redrive()
    await crew.noted("it-failure", 4)


async def test_a_redriven_job_that_fails_again_has_its_handler_run_again(crew: Crew) -> None:
    await crew.start()
    job = await crew.program.unlucky.enqueue("it", 0)
    await crew.noted("it-failure")

    await job.redrive()

    await crew.noted("it-failure", 2)


async def test_without_a_handler_nothing_is_made(crew: Crew) -> None:
    """S4-23."""
    await crew.start()
    job = await crew.program.careless.enqueue("it")

    assert (await failure(job)).type == "ValueError"

    assert sum((await crew.rota.queue("default-fail").counts()).values()) == 0


async def test_stalls_used_up_reach_the_handler(crew: Crew) -> None:
    """S4-21: StallError if the last run neither returned nor threw."""
    await crew.start()
    await crew.program.charge.using(max_stalls=1).enqueue("it", order(crew), how="die")

    heard = await told(crew, "it")

    assert (heard["kind"], heard["type"], heard["stalls"]) == ("stall", "StallError", 2)
    assert crew.notes("it") == ["begin", "begin"]


async def test_a_killed_worker_whose_job_may_run_only_once_reaches_the_handler_on_another(crew: Crew) -> None:
    first = await crew.start()
    job = await crew.program.once.enqueue("it")
    await crew.noted("it")
    second = await crew.start()

    first.kill()
    crew.expire_leases(first)
    heard = await told(crew, "it")

    assert heard["kind"] == "stall"
    assert heard["ref"] == str(job.ref)
    assert second.is_alive


async def test_a_job_that_may_run_only_once_and_is_handed_back_reaches_the_handler(crew: Crew) -> None:
    first = await crew.start("--grace", "0")
    await crew.program.once.enqueue("it")
    await crew.noted("it")

    first.terminate()
    await first.ended()
    await crew.start()

    assert (await told(crew, "it"))["kind"] == "stall"


async def test_a_worker_that_dies_between_failure_and_handler_leaves_it_to_another(crew: Crew) -> None:
    """S4-23: nothing is between the two, so nobody's death is either."""
    first = await crew.start()
    await crew.rota.queue("default-fail").pause()
    job = await crew.program.unlucky.enqueue("it", 0)
    await failure(job)

    first.kill()
    await crew.rota.queue("default-fail").resume()
    await crew.start()

    assert await crew.noted("it-failure") == ["1"]


async def test_a_handler_whose_worker_is_killed_runs_again_elsewhere(crew: Crew) -> None:
    first = await crew.start()
    await crew.program.patient.enqueue("it")
    await crew.noted("it-failure")
    await crew.start()

    first.kill()
    crew.expire_leases(first)
    await crew.noted("it-failure", 2, timeout=12)
    crew.allow("it")
    await crew.noted("it-failure", 3)

    assert crew.notes("it-failure") == ["begin 1", "begin 2", "end 2"]


async def test_a_handler_of_a_stopping_worker_is_handed_back(crew: Crew) -> None:
    first = await crew.start("--grace", "0")
    await crew.program.patient.enqueue("it")
    await crew.noted("it-failure")

    first.terminate()
    await first.ended()
    second = await crew.start()
    crew.allow("it")

    await crew.noted("it-failure", 3)
    assert second.is_alive
    assert crew.notes("it-failure") == ["begin 1", "begin 2", "end 2"]


async def test_a_periodic_job_that_enqueues_itself_survives_a_permanent_failure(crew: Crew) -> None:
    """Q-6, S4-31: its handler makes the next round, under the same id."""
    await crew.start()

    await crew.program.periodic.using(id="tick-1").enqueue("tick", 1)
    await crew.noted("tick", 5)

    assert crew.notes("tick") == ["round 1", "round 2", "handler after 2", "round 3", "round 4"]


async def test_a_worker_of_failures_alone_serves_just_them(crew: Crew) -> None:
    first = await crew.start()
    await crew.rota.queue("default-fail").pause()
    job = await crew.program.unlucky.enqueue("it", 0)
    await failure(job)
    first.terminate()
    await first.ended()
    waiting = await crew.program.careless.enqueue("other")
    await crew.rota.queue("default-fail").resume()

    await crew.start(queues="default-fail")

    await crew.noted("it-failure")
    assert await waiting.state() is JobState.PENDING


async def test_a_worker_in_burst_mode_runs_the_handlers_too(crew: Crew) -> None:
    await crew.program.unlucky.enqueue("it", 0)

    worker = crew.launch("--burst")

    assert await worker.ended(30) == 0
    assert crew.notes("it-failure") == ["1"]


async def test_handlers_run_for_every_queue_a_worker_serves_and_by_weight_too(crew: Crew) -> None:
    await crew.start(queues="mail=3,other=1")

    for queue in ("mail", "other"):
        await crew.program.unlucky.using(queue=queue).enqueue(queue, 0)

    for queue in ("mail", "other"):
        await crew.noted(f"{queue}-failure")
        assert await eventually(lambda queue=queue: failure_jobs(crew, JobState.COMPLETED, f"{queue}-fail"))


async def test_options_come_from_the_handler_then_the_queue_then_the_defaults(crew: Crew) -> None:
    """S4-2, S4-22: 100 attempts, 10 s to 15 min, unless something else was said."""
    await crew.start(queues="default,mail")
    for queue in ("default", "mail"):
        await crew.program.charge.using(queue=queue).enqueue(f"charge-{queue}", order(crew))
        await crew.program.plain.using(queue=queue).enqueue(subject=f"plain-{queue}")
    for subject in ("charge-default", "charge-mail", "plain-default", "plain-mail"):
        await crew.noted(f"{subject}-failure")

    async def ended(queue: str) -> dict[str, JobRecord]:
        found = {record.task: record for record in await failure_jobs(crew, JobState.COMPLETED, queue)}
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


async def test_the_history_of_the_job_names_its_failure_job(crew: Crew) -> None:
    await crew.start()
    job = await crew.program.unlucky.enqueue("it", 0)
    await failure(job)

    (record,) = await eventually(lambda: failure_jobs(crew, JobState.COMPLETED))
    history = await job.history()

    assert [entry.verb for entry in history] == ["enqueue", "claim", "fail", "alert"]
    assert history[-1].note == record.ref.full_id
    assert (await job.explain()).endswith(f"its failure handler is job {record.ref.full_id}")


async def test_the_registry_shows_the_failures_that_a_worker_serves(crew: Crew) -> None:
    worker = await crew.start(queues="default,mail")

    info = await crew.info(worker)

    assert info.info["queues"] == ["default", "default-fail", "mail", "mail-fail"]
    assert {"default-fail", "mail-fail"} <= {queue.name for queue in await crew.rota.queues()}


async def test_a_worker_whose_program_lost_the_handler_takes_the_announcement_back(crew: Crew) -> None:
    await crew.start()
    with crew.redis() as client:
        key = crew.key("handlers")
        assert b"charge" in client.hgetall(key)
        client.hset(key, mapping={"careless": "", "of another program": ""})

        await crew.start()

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
def test_a_worker_serves_failures_behind_their_queue_unless_told_where(
    queues: tuple[str, ...], served: tuple[str, ...]
) -> None:
    assert WorkerConfig(app="a:b", queues=queues).served == served


def test_a_worker_of_a_queue_counts_as_one_of_its_failures() -> None:
    worker = WorkerInfo("w", "ALIVE", 0, 0, {"queues": ["mail", "x-fail"]})

    assert [queue for queue in ("mail", "mail-fail", "x", "x-fail", "other-fail") if worker.serves(queue)] == [
        "mail", "mail-fail", "x-fail",
    ]  # fmt: skip
    assert not WorkerInfo("w", "DEAD", 0, 0, {"queues": ["mail"]}).serves("mail")


async def test_a_queue_of_failures_that_is_not_used_costs_nothing(crew: Crew) -> None:
    """The worker looks at its own queue alone: every claim of another would leave its tick there."""
    await crew.start()
    job = await crew.program.careless.enqueue("it")
    await failure(job)

    with crew.redis() as client:
        assert not list(client.scan_iter(match=f"{crew.namespace}:{{default}}:fail:*"))


async def test_a_failure_that_waits_for_its_retry_does_not_keep_an_idle_worker_busy(crew: Crew) -> None:
    """An alarm is set for it, and nothing is asked meanwhile."""
    await crew.start()
    await crew.program.charge.enqueue("it", order(crew))
    await told(crew, "it")
    await eventually(lambda: failure_jobs(crew, JobState.COMPLETED))
    with crew.redis() as client:
        later = (crew.now_ms() + FAR_MS) * 256 + 100
        client.zadd(crew.key("scheduled", "default-fail"), {"zzzzzzzzz": later})

        looks, looks_at_failures = set[object](), set[object]()

        def has_looked() -> bool:
            looks.add(client.hget(crew.key("meta"), "tick"))
            looks_at_failures.add(client.hget(crew.key("meta", "default-fail"), "tick"))
            return len(looks) >= 4

        await eventually(has_looked, 20)

    assert len(looks_at_failures) <= 2
