"""What happens is counted by task and time, in the very step in which it happens."""

from __future__ import annotations

import msgspec

from rota.core.job_options import Keep
from rota.core.metric_series import Counts
from rota.store.read_metric_counters import CounterStore, QueueCounters
from rota.store.report_encoding import Cancelled, Completed, Failed, Lost
from tests.store.driver import QUEUE, Driver, new_job

MINUTE = 60_000
HOUR = 60 * MINUTE
RULE = "3600000:10000"
ERROR = b'{"type":"E"}'


async def tally(driver: Driver, unit: str = "minute", *, back: int = 0, queue: str = QUEUE) -> QueueCounters:
    unit_ms = MINUTE if unit == "minute" else HOUR
    last = driver.now() // unit_ms
    return (await CounterStore(driver.redis_client, driver.keys).read([queue], unit, last - back, last))[0]


async def sums(driver: Driver, queue: str = QUEUE) -> dict[str, Counts]:
    return (await tally(driver, queue=queue)).total_by_task()


def buckets(counts: tuple[int, ...]) -> dict[int, int]:
    return {place: amount for place, amount in enumerate(counts) if amount}


async def test_each_step_of_a_life_is_counted_under_its_task(driver: Driver) -> None:
    worker = driver.worker()
    await driver.enqueue(*[new_job(task="one")] * 3, new_job(task="two"))
    jobs = await worker.claim(4)
    await worker.store.report(QUEUE, [Completed(job.run, job.claim, f"{RULE} one", b"") for job in jobs[:2]])
    await worker.store.report(QUEUE, [Failed(jobs[2].run, jobs[2].claim, "+1", RULE, ERROR)])
    await worker.store.report(QUEUE, [Failed(jobs[3].run, jobs[3].claim, "final", RULE, ERROR)])

    found = await sums(driver)

    one, two = found["one"], found["two"]
    assert (one.enqueued, one.started, one.completed, one.failed, one.retried, one.dead) == (3, 3, 2, 1, 1, 0)
    assert (two.enqueued, two.started, two.completed, two.failed, two.retried, two.dead) == (1, 1, 0, 1, 0, 1)
    assert (one.wait.count, one.run.count, two.wait.count, two.run.count) == (3, 3, 1, 1)


async def test_waiting_and_running_are_timed(driver: Driver) -> None:
    await driver.enqueue(new_job(task="a"))
    driver.advance(1_000)
    await driver.enqueue(new_job(task="a"), new_job(task="b", priority=-5))
    driver.advance(100)
    jobs = await driver.worker().claim(3)
    driver.advance(5_000)
    tasks = {"a": jobs[1:], "b": jobs[:1]}
    for task, of_task in tasks.items():
        reports = [Completed(job.run, job.claim, f"{RULE} {task}", b"") for job in of_task]
        await driver.worker().store.report(QUEUE, reports)

    found = await sums(driver)

    assert buckets(found["a"].wait.buckets) == {7: 1, 11: 1}
    assert buckets(found["b"].wait.buckets) == {7: 1}
    assert 1_200 <= found["a"].wait.total_ms < 1_300
    assert buckets(found["a"].run.buckets) == {13: 2}
    assert 10_000 <= found["a"].run.total_ms < 10_200


async def test_tasks_that_were_claimed_and_completed_together_are_timed_alike(driver: Driver) -> None:
    """One claim of several tasks: their run records are equal, and each task is reported as a group of its own."""
    await driver.enqueue(*[new_job(task=task) for task in ("a", "b", "c")] * 5)
    jobs = await driver.worker().claim(15)
    driver.advance(5_000)
    reports = [Completed(job.run, job.claim, f"{RULE} {task}", b"") for job, task in zip(jobs, "abc" * 5, strict=True)]
    await driver.worker().store.report(QUEUE, reports)

    found = await sums(driver)

    for task in "abc":
        assert buckets(found[task].run.buckets) == {13: 5}
        assert 25_000 <= found[task].run.total_ms < 30_000


async def test_cancels_stalls_and_expiries_are_counted(driver: Driver) -> None:
    await driver.client.cancel(await driver.one())
    await driver.enqueue(new_job(expiry="+10"), new_job(max_stalls=0), new_job(), new_job())
    driver.advance(11)
    lost, back, given_up = await driver.worker().claim(3)
    await driver.worker().store.report(QUEUE, [Lost(lost.run, lost.claim), Lost(back.run, back.claim)])
    await driver.worker().store.report(QUEUE, [Cancelled(given_up.run, given_up.claim, "no")])

    counted = (await sums(driver))["noop"]

    assert (counted.cancelled, counted.stalled, counted.dead, counted.failed) == (3, 2, 1, 0)


async def test_what_is_sent_again_or_refused_is_not_counted(driver: Driver) -> None:
    await driver.one()
    (job,) = await driver.worker().claim()
    report = Completed(job.run, job.claim, f"{RULE} noop", b"")
    await driver.worker().store.report(QUEUE, [report])
    before = driver.dump()

    assert await driver.worker().store.report(QUEUE, [report]) == {job.run: "already"}
    assert await driver.worker().store.report(QUEUE, [msgspec.structs.replace(report, claim="9.x")]) == {
        job.run: "lease_lost"
    }

    assert driver.dump() == before


async def test_minutes_and_hours_are_written_down_as_they_pass(driver: Driver) -> None:
    await driver.enqueue(*[new_job()] * 3)
    driver.advance(2 * MINUTE)
    await driver.enqueue(*[new_job()] * 2)
    driver.advance(HOUR)
    await driver.one()

    minutes = (await tally(driver, back=70)).intervals
    hours = (await tally(driver, "hour", back=2)).intervals

    assert [added for _, added in sorted(minutes.items())] == [{64: 3}, {64: 2}, {64: 1}]
    first, second, third = sorted(minutes)
    assert (second - first, third - second) in {(2, 60), (2, 61), (3, 60)}
    assert sum(added[64] for added in hours.values()) == 6
    assert driver.redis.pttl(driver.key("minute_counters", str(first))) > 24 * HOUR
    assert driver.redis.pttl(driver.key("hour_counters", str(min(hours)))) > 30 * 24 * HOUR


async def test_a_clock_that_is_set_back_loses_nothing(driver: Driver) -> None:
    driver.advance(10 * MINUTE)
    await driver.one()
    driver.advance(-5 * MINUTE)
    await driver.one()
    driver.advance(6 * MINUTE)
    await driver.one()

    pages = (await tally(driver, back=30)).intervals

    assert [added[64] for _, added in sorted(pages.items())] == [2, 1]


async def test_beyond_a_hundred_tasks_only_their_sum_is_known(driver: Driver) -> None:
    await driver.enqueue(*[new_job(task=f"t{number}") for number in range(130)])
    await driver.enqueue(new_job(task="t7"), new_job(task="t120"))

    found = await sums(driver)

    assert len(found) == 101
    assert (found["t7"].enqueued, found["__other__"].enqueued) == (2, 31)
    assert "t120" not in found


async def test_failure_jobs_are_counted_in_their_own_queue(driver: Driver) -> None:
    await driver.worker().store.publish_failure_handlers(QUEUE, {"noop": ""})
    await driver.dead_letter(keep=Keep(failed=0))

    assert (await sums(driver))["noop"].dead == 1
    assert (await sums(driver, "q-fail"))["noop.on_failure"].enqueued == 1
