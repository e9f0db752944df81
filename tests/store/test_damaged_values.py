"""One damaged value does not stop a queue: it is replaced before it does harm, and the repair is recorded."""

from __future__ import annotations

import pytest

from rota.core.state_transitions import JobState
from rota.store.batch_limit_constants import BATCH
from rota.store.create_dependents_and_deliver_outcomes import WORKFLOWS, ParentOutcome
from rota.store.job_store import LEASE_MS
from tests.store.driver import QUEUE, Driver, completed, new_job, run_of

JUNK = "junk"


async def use(driver: Driver) -> None:
    """Makes, claims and ends jobs in all ways; every call must succeed, and nothing may get lost."""
    worker = driver.worker()
    before = len(driver.hash("jobs"))
    made = await driver.enqueue(*[new_job()] * 3)
    made += await driver.enqueue(new_job(terms=("tag=red",)), new_job(task="other"), new_job(due="+1000"))
    assert len(driver.hash("jobs")) == before + 6
    refs = {run_of(ref): ref for ref in made}
    jobs = [job for job in await worker.claim(BATCH) if job.run in refs]
    assert len(jobs) == 5
    await worker.store.append_log(QUEUE, jobs[0].run, jobs[0].claim, 1, ["info x"])
    await worker.store.report(QUEUE, [completed(jobs[0], b"1")])
    await worker.fail(jobs[1], "+1")
    await worker.fail(jobs[2])
    await worker.give_up(jobs[3])
    await worker.lose(jobs[4])
    driver.advance(1_000)
    await driver.client.redrive(QUEUE, [refs[jobs[2].run]])
    await worker.beat()
    await driver.client.apply_retention(QUEUE)
    driver.check()


@pytest.mark.parametrize(
    ("key", "field", "name"),
    [
        ("meta", "server_seen", "meta server_seen"),
        ("meta", "grace_until", "meta grace_until"),
        ("meta", "fence", "meta fence"),
        ("meta", "run", "meta run"),
        ("meta", "completed", "meta completed"),
        ("meta", "redriven", "meta redriven"),
        ("meta", "longest_job", None),
        ("task_numbers", "noop", "task_numbers noop"),
        ("task_numbers", " minute", "task_numbers minute"),
        ("task_index_sizes", "0000000", "task_index_sizes 0000000"),
        ("heartbeats", "w1", None),
        ("heartbeats", "nobody", None),
    ],
)
@pytest.mark.parametrize("value", [JUNK, "", "1.5x", "nan"])
async def test_a_queue_works_on_with_a_damaged_field(
    driver: Driver, key: str, field: str, name: str | None, value: str
) -> None:
    await driver.enqueue(*[new_job()] * 2)
    await driver.worker().claim(1)
    driver.redis.hset(driver.key(key), field, value)

    await use(driver)

    assert driver.hash(key).get(field) != value or name is None
    repairs = driver.hash("repairs")
    assert list(repairs) == ([name] if name else [])
    assert all(text.partition(" ")[2] == value for text in repairs.values())
    await use(driver)


@pytest.mark.parametrize("number", ["0", "-3", "102", "99999999", "2.5"])
async def test_a_task_number_out_of_range_is_replaced_by_the_one_that_is_free(driver: Driver, number: str) -> None:
    await driver.enqueue(new_job(task="a"), new_job(task="b"), new_job(task="c"))
    before = driver.hash("task_numbers")
    driver.redis.hset(driver.key("task_numbers"), "b", number)

    await driver.enqueue(new_job(task="b"))

    assert driver.hash("task_numbers") == before
    assert driver.redis.strlen(driver.key("counters")) < 10_000


async def test_a_minute_far_ahead_does_not_end_the_metrics(driver: Driver) -> None:
    await driver.one()
    driver.redis.hset(driver.key("task_numbers"), " minute", "99999999999")

    await driver.one()

    assert abs(int(driver.hash("task_numbers")[" minute"]) - driver.now() // 60_000) <= 1


async def test_new_runs_do_not_take_the_names_of_old_ones_after_their_counter_was_damaged(driver: Driver) -> None:
    old = await driver.enqueue(*[new_job()] * 3)
    prepared = await driver.workflow("w")
    assert prepared == "running"
    driver.redis.hset(driver.key("meta"), "run", JUNK)

    new = await driver.enqueue(*[new_job()] * 3)

    assert len({run_of(ref) for ref in (*old, *new)}) == 6
    assert min(map(run_of, new)) > max(driver.hash("jobs").keys() - set(map(run_of, new)))


@pytest.mark.parametrize("part", ["claimed_at", "score"])
@pytest.mark.parametrize("end", ["complete", "fail", "snooze", "reap", "lose", "hand back"])
async def test_a_damaged_run_record_does_not_stop_the_queue(driver: Driver, part: str, end: str) -> None:
    ref = await driver.one(max_stalls=5)
    (job,) = await driver.worker().claim()
    words = driver.hash("runs")[job.run].split(" ")
    words[{"claimed_at": 3, "score": 4}[part]] = JUNK
    driver.redis.hset(driver.key("runs"), job.run, " ".join(words))
    await driver.one("other")

    if end == "reap":
        await driver.advance_with_ticks(LEASE_MS + 1_000)
    else:
        assert await driver.worker().end(job, end) == "ok"

    claimed = await driver.worker("w2").claim(2)
    assert len(claimed) == (1 if end == "complete" else 2)
    if end == "complete":
        assert await driver.state(ref) is JobState.COMPLETED


async def test_a_damaged_workflow_does_not_hold_up_the_outcomes_of_another(driver: Driver) -> None:
    for name in ("bad", "good"):
        await driver.workflow(name)
    key = driver.keys.shared("workflow", "bad")
    driver.redis.hset(key, mapping={"s0": JUNK, "done": JUNK, "version": JUNK})

    outcomes = [ParentOutcome(name, "s0", "5", "completed", "", b"", "1") for name in ("bad", "good")]
    await driver.ties.deliver_outcomes(WORKFLOWS, outcomes)

    assert (await driver.flow("good")).state == "completed"


async def test_a_workflow_whose_count_of_steps_was_damaged_completes(driver: Driver) -> None:
    """The count restarts and never reaches the total: a decision counts the steps themselves."""
    await driver.workflow("w", steps=2)
    for step in range(2):
        await driver.ties.deliver_outcomes(WORKFLOWS, [ParentOutcome("w", f"s{step}", "5", "completed", "", b"", "1")])
        if step == 0:
            driver.redis.hset(driver.keys.shared("workflow", "w"), "done", JUNK)

    await driver.flows.drive("w")

    assert (await driver.flow("w")).state == "completed"


async def test_nothing_is_written_by_an_enqueue_whose_task_number_is_damaged_and_cannot_be_replaced(
    driver: Driver,
) -> None:
    """The key has another type: that is refused, and before anything is written."""
    driver.redis.set(driver.key("task_numbers"), JUNK)
    before = driver.dump()

    with pytest.raises(Exception, match="WRONGTYPE"):
        await driver.one()

    assert driver.dump() == before
    driver.redis.delete(driver.key("task_numbers"))
