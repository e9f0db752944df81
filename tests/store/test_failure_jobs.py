"""A run that fails for good makes the job of its failure handler, in the same step, wherever one is announced."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from rota.core.ids import JobRef
from rota.core.job_options import Keep, Options
from rota.core.job_record import ErrorRecord
from rota.core.job_record_codec import encode_error, encode_options
from rota.core.retry import Retry
from rota.core.state_transitions import JobState
from rota.store.claim_replies import ClaimedJob
from rota.store.job_store import LEASE_MS
from rota.store.report_encoding import Failed
from tests.servers import OwnServers
from tests.store.driver import QUEUE, Driver, new_job, parts

FAILURES: Final = f"{QUEUE}-fail"
#: Ways to fail for good: how the run is made, and the kind of its error.
WAYS: Final = {
    "exception": "exception",
    "timeout": "timeout",
    "permanent": "permanent",
    "stalls used up, its lease ran out": "stall",
    "stalls used up, its process died": "stall",
    "may run only once, its lease ran out": "stall",
    "may run only once, its process died": "stall",
    "may run only once, handed back": "stall",
}


async def announce(driver: Driver, task: str = "noop", options: Options | None = None) -> None:
    """A worker says that a task has a failure handler."""
    line = encode_options(options or Options()).decode()
    await driver.client.publish_failure_handlers(QUEUE, {task: line})


async def fail(driver: Driver, way: str = "exception", *, id: str = "", **options: Any) -> tuple[JobRef, ClaimedJob]:
    """Makes a run and has it fail for good in that way."""
    if "once" in way:
        options["at_most_once"] = True
    elif "stalls" in way:
        options["max_stalls"] = 0
    ref = await driver.one(id, **options)
    worker = driver.worker()
    (job,) = await worker.claim()
    await report(driver, job, way)
    assert await driver.state(ref) is JobState.FAILED
    return ref, job


async def report(driver: Driver, job: ClaimedJob, way: str) -> str:
    """Has the run end, or says again that it has."""
    worker = driver.worker()
    if "lease" in way:
        await driver.advance_with_ticks(LEASE_MS + 1)
        await driver.worker("observer").claims(0)
        return ""
    if "died" in way:
        return await worker.lose(job)
    if "handed back" in way:
        return await worker.hand_back(job)
    error = ErrorRecord(kind=way, type="Oops", message="boom")
    rule = Keep().retention(JobState.FAILED)
    return await worker.report(Failed(job.run, job.claim, "final", rule, encode_error(error)))


def failure_jobs(driver: Driver) -> list[list[Any]]:
    """Task, and error, job and arguments of every failure job, oldest first."""
    found: list[list[Any]] = []
    for _, record in sorted(driver.hash("jobs", queue=FAILURES).items()):
        _, _, task, arguments = record.split("\n", 3)
        found.append([task, *json.loads(arguments)])
    return found


@pytest.mark.requirement("S4-23", "S4-21")
@pytest.mark.parametrize("way", WAYS)
async def test_every_way_to_fail_for_good_makes_one_failure_job(driver: Driver, way: str) -> None:
    """In the step that fails the run; a stall is an error of its own kind."""
    await announce(driver)

    ref, job = await fail(driver, way, arguments=["a", {"b": 1.50}])

    ((task, error, told, arguments),) = failure_jobs(driver)
    assert task == "noop.on_failure"
    assert error.get("kind", "exception") == WAYS[way]
    assert (told["ref"], told["task"]) == (str(ref), "noop")
    assert told["attempt"] == 1
    assert arguments == ["a", {"b": 1.5}]
    assert driver.counts(queue=FAILURES) == {"pending": 1}
    assert driver.redis.xlen(driver.key("events", queue=FAILURES)) == 1
    driver.check(queue=FAILURES)
    # Said again, it is not made again.
    await report(driver, job, way)
    assert len(failure_jobs(driver)) == 1


@pytest.mark.requirement("S4-23")
@pytest.mark.parametrize("way", WAYS)
async def test_without_a_handler_there_is_no_failure_job(driver: Driver, way: str) -> None:
    """What counts is the announcement; that no failure job waits says nothing."""
    await announce(driver, task="another")

    await fail(driver, way)

    assert driver.counts(queue=FAILURES) == {}
    assert not [key for key in driver.all_keys() if key.startswith(driver.key("meta", queue=FAILURES)[:-4])]


@pytest.mark.requirement("S4-23")
async def test_the_first_failure_ever_makes_a_failure_job_though_the_queue_of_failures_is_empty(driver: Driver) -> None:
    """An empty sorted set does not exist, so its existence cannot be the sign."""
    await announce(driver)
    assert driver.counts(queue=FAILURES) == {}

    await fail(driver)

    assert driver.counts(queue=FAILURES) == {"pending": 1}


async def test_an_announcement_can_be_taken_back(driver: Driver) -> None:
    await announce(driver)
    await driver.client.publish_failure_handlers(QUEUE, {}, removed=["noop"])

    await fail(driver)

    assert failure_jobs(driver) == []


async def test_a_failure_that_is_tried_again_makes_none(driver: Driver) -> None:
    await announce(driver)
    await driver.one()
    (job,) = await driver.worker().claim()

    await driver.worker().fail(job, "+1000")

    assert failure_jobs(driver) == []


async def test_a_report_that_lost_its_lease_makes_none(driver: Driver) -> None:
    await announce(driver)
    await driver.one()
    (job,) = await driver.worker().claim()
    await driver.advance_with_ticks(LEASE_MS + 1)
    (again,) = await driver.worker("w2").claim()

    assert await driver.worker().fail(job) == "lease_lost"

    assert again.run == job.run
    assert failure_jobs(driver) == []


async def test_cancelled_and_deleted_runs_make_none(driver: Driver) -> None:
    await announce(driver)
    refs = await driver.enqueue(new_job(), new_job(), new_job())
    jobs = await driver.worker().claim(3)
    await driver.client.cancel(refs[0])
    await driver.client.delete(refs[1])

    for job in jobs[:2]:
        await driver.worker().fail(job)
    await driver.worker().give_up(jobs[2])

    assert failure_jobs(driver) == []


async def test_a_batch_makes_a_failure_job_for_each_that_has_a_handler(driver: Driver) -> None:
    await announce(driver)
    await driver.enqueue(new_job(), new_job(task="other"), new_job("chosen"))
    jobs = await driver.worker().claim(3)
    reports = [Failed(job.run, job.claim, "final", Keep().retention(JobState.FAILED), b"{}") for job in jobs]

    await driver.worker().store.report(QUEUE, reports)
    await driver.worker().store.report(QUEUE, reports)

    assert [told["ref"].partition("@")[0] for _, _, told, _ in failure_jobs(driver)][1] == f"{QUEUE}:chosen"
    assert len(failure_jobs(driver)) == 2


async def test_a_failure_job_that_fails_for_good_makes_no_other(driver: Driver) -> None:
    await announce(driver)
    await announce(driver, "noop.on_failure")
    await driver.client.publish_failure_handlers(FAILURES, {"noop.on_failure": "", "noop": ""})
    await fail(driver)
    (job,) = await driver.worker().claim(queue=FAILURES)

    await driver.worker().fail(job)

    assert driver.counts(queue=FAILURES) == {"failed": 1}
    driver.check(queue=FAILURES)


async def test_a_redriven_job_that_fails_again_makes_another(driver: Driver) -> None:
    await announce(driver)
    ref, _ = await fail(driver)

    await driver.client.redrive(QUEUE, [ref])
    (job,) = await driver.worker().claim()
    await driver.worker().fail(job)

    assert [told["attempt"] for _, _, told, _ in failure_jobs(driver)] == [1, 2]


@pytest.mark.requirement("S4-22", "S4-2")
async def test_a_failure_job_has_an_id_and_the_options_that_were_announced(driver: Driver) -> None:
    """With options of its own."""
    wanted = Options(priority=-5, retry=Retry(attempts=100), timeout_ms=7_000)
    await announce(driver, options=wanted)
    ref, _ = await fail(driver)

    (job,) = await driver.worker().claim(queue=FAILURES)
    suffix = job.record.decode().partition(" ")[0]
    found = (await driver.read(JobRef(FAILURES, f"{job.run}-{suffix}"))).record

    assert found.options == wanted
    assert found.ref.id == f"{job.run}-{suffix}"
    assert found.task == "noop.on_failure"
    history = (await driver.read(ref)).history
    assert (history[-1].verb, history[-1].note) == ("failure_job", f"{FAILURES}:{found.ref.id}")


async def test_failure_jobs_come_in_order_of_priority_and_time(driver: Driver) -> None:
    await announce(driver)
    await announce(driver, "urgent", Options(priority=-10))
    await fail(driver, id="first")
    await fail(driver, id="second", task="urgent")

    jobs = await driver.worker().claim(2, queue=FAILURES)

    assert [job.record.split(b"\n")[2] for job in jobs] == [b"urgent.on_failure", b"noop.on_failure"]


@pytest.mark.requirement("S4-23")
async def test_it_is_made_even_where_the_failed_run_is_not_kept(driver: Driver) -> None:
    """Without keeping it, the job just goes; its failure job does not."""
    await announce(driver)
    ref = await driver.one("x", arguments=[1])
    (job,) = await driver.worker().claim()

    await driver.worker().fail(job, keep=Keep(failed=0))

    assert not await driver.exists(ref)
    ((_, _, told, arguments),) = failure_jobs(driver)
    assert (told["ref"], arguments) == (str(ref), [1])


async def test_what_the_user_wrote_arrives_byte_for_byte(driver: Driver) -> None:
    await announce(driver)
    raw = '{"big":123456789012345678901,"small":1.10,"empty":{},"list":[],"text":"é/\\u0000"}'
    body = new_job("x", tags=("a/b", "ü"), meta={"n": 1}).body.partition(b"\n")[0]
    job = new_job("x")._replace(body=body + b"\nnoop\n" + raw.encode())
    await driver.enqueue(job)
    (claimed,) = await driver.worker().claim()

    await driver.worker().fail(claimed, message="ä\nb")

    (record,) = driver.hash("jobs", queue=FAILURES).values()
    assert record.endswith(f",{raw}]")
    ((_, error, told, _),) = failure_jobs(driver)
    assert error["message"] == "ä\nb"
    assert told["options"].encode() == body


@pytest.mark.parametrize(
    "record",
    [b"", b"x", b"head\n\nnoop\n[]", b"=x " + b"9" * 400 + b"\n\nnoop\n[]", b"=x 5\n{\t\t\nnoop\n{", b"\n\n\n\xff"],
)
async def test_a_damaged_record_keeps_no_other_from_failing(driver: Driver, record: bytes) -> None:
    await announce(driver)
    await announce(driver, "\n")
    (damaged, _) = await driver.enqueue(new_job("x"), new_job(max_stalls=0))
    jobs = await driver.worker().claim(2)
    driver.redis.hset(driver.key("jobs"), damaged.run, record)

    for job in jobs:
        assert await driver.worker().fail(job) == "ok"

    assert driver.counts() == {"failed": 2}
    assert "noop.on_failure" in driver.hash("jobs", queue=FAILURES).popitem()[1]


@pytest.mark.requirement("S4-31")
async def test_lock_and_follow_up_go_on_when_the_failure_job_is_made(driver: Driver) -> None:
    """Failure job created, blocked entry released."""
    await announce(driver)
    await driver.enqueue(new_job("same", lock="k"), new_job("behind", lock="k"))
    (job,) = await driver.worker().claim()
    (follow_up,) = await driver.client.enqueue(
        QUEUE, [new_job("same")._replace(on_same_id=parts(data=True, options=True, run_at=True))]
    )
    assert driver.counts() == {"processing": 1, "blocked": 2}

    await driver.worker().fail(job)

    assert driver.counts(queue=FAILURES) == {"pending": 1}
    assert driver.counts() == {"failed": 1, "pending": 2}
    assert follow_up.run in driver.index("pending")


async def test_a_full_server_still_makes_failure_jobs(own_server: OwnServers, namespace: str) -> None:
    server = own_server()
    driver = Driver(server, namespace)
    await announce(driver)
    refs = await driver.enqueue(new_job(), new_job(max_stalls=0))
    jobs = await driver.worker().claim(2)
    driver.redis.config_set("maxmemory", 1)

    await driver.worker().fail(jobs[0])
    await driver.worker().lose(jobs[1])

    assert len(failure_jobs(driver)) == 2
    assert len(await driver.worker().claim(2, queue=FAILURES)) == 2
    assert [await driver.state(ref) for ref in refs] == [JobState.FAILED] * 2
    await driver.close()


# --- being noticed -----------------------------------------------------------------------------------------------


async def test_a_claim_says_when_the_failures_of_its_queue_want_to_be_looked_at(driver: Driver) -> None:
    await announce(driver)
    assert (await driver.worker().claims()).failures_wait_ms is None
    await fail(driver)
    assert (await driver.worker().claims()).failures_wait_ms == 0
    (job,) = await driver.worker("w2").claim(queue=FAILURES)
    assert (await driver.worker().claims()).failures_wait_ms == 0, "its lease may have to be taken over"

    await driver.worker("w2").fail(job, "+10000")
    wait = (await driver.worker().claims()).failures_wait_ms
    assert wait is not None
    assert 9_000 < wait <= 10_000
    driver.advance(10_000)
    assert (await driver.worker().claims()).failures_wait_ms == 0

    (job,) = await driver.worker("w2").claim(queue=FAILURES)
    await driver.worker("w2").complete(job)
    assert (await driver.worker().claims()).failures_wait_ms is None


async def test_a_worker_that_waits_for_failures_is_woken_first(driver: Driver) -> None:
    await announce(driver)
    await driver.worker("f").claim(queue=FAILURES)
    with driver.inbox("f") as inbox:
        await fail(driver)

        assert inbox.told() == [f"wake {FAILURES}"]


async def test_else_one_that_waits_for_the_queue_is_woken(driver: Driver) -> None:
    await announce(driver)
    await driver.one()
    (job,) = await driver.worker().claim()
    await driver.worker("idle").claim()
    with driver.inbox("idle") as inbox:
        await driver.worker().fail(job)

        assert inbox.told() == [f"wake {QUEUE}"]


async def test_a_failure_job_is_found_by_the_tags_of_its_handler(driver: Driver) -> None:
    await announce(driver, options=Options(tags=("alarm", "night"), terms=("tag=alarm", "tag=night")))

    await fail(driver)

    (run,) = driver.hash("jobs", queue=FAILURES)
    assert driver.hash("terms", queue=FAILURES) == {run: "tag=alarm tag=night"}
    driver.check(queue=FAILURES)
    driver.check()
