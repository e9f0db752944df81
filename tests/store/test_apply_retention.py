"""sweep: finished runs are kept by age and by count, and no longer."""

from __future__ import annotations

import itertools

import pytest

from rota.core.ids import JobRef
from rota.core.job_options import Keep
from rota.core.state_transitions import JobState
from rota.store.batch_limit_constants import BATCH_BY_VERB
from rota.store.create_dependents_and_deliver_outcomes import JobWithParents
from tests.store.driver import DEFAULT_KEEP, HISTORY, QUEUE, Driver, completed, failed, new_job

HOUR = 3_600_000
DAY = 24 * HOUR


async def _finish(driver: Driver, count: int, *, keep: Keep = DEFAULT_KEEP, end: str = "completed") -> list[JobRef]:
    refs = await driver.enqueue(*[new_job("", [], keep=keep)] * count)
    jobs = await driver.worker().claim(count)
    assert len(jobs) == count
    if end == "cancelled":
        for job in jobs:
            await driver.worker().give_up(job)
    else:
        report = completed if end == "completed" else failed
        await driver.worker().store.report(QUEUE, [report(job, keep=keep) for job in jobs])
    return refs


async def _kept(driver: Driver, refs: list[JobRef]) -> list[bool]:
    return [await driver.exists(ref) for ref in refs]


@pytest.mark.requirement("K-10")
@pytest.mark.parametrize(("end", "kept_ms"), [("completed", HOUR), ("cancelled", HOUR), ("failed", 30 * DAY)])
async def test_what_has_ended_is_kept_for_its_time_and_then_forgotten(driver: Driver, end: str, kept_ms: int) -> None:
    """kue #94, #582: every kind of end has a retention."""
    refs = await _finish(driver, 3, end=end)

    driver.advance(kept_ms - 60_000)
    assert await driver.client.apply_retention(QUEUE) is False
    assert await _kept(driver, refs) == [True] * 3

    driver.advance(60_000)
    await driver.client.apply_retention(QUEUE)
    assert await _kept(driver, refs) == [False] * 3
    left = {key.partition("}:")[2].partition(":")[0] for key in driver.all_keys()}
    assert left <= {"meta", "events", "last_reply", "idle", "heartbeats"} | HISTORY


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
async def test_no_more_are_kept_than_the_rule_says_and_the_oldest_go_first(driver: Driver, end: str) -> None:
    keep = Keep(finished_count=3, failed_count=3)
    refs = [ref for _ in range(5) for ref in await _finish(driver, 1, keep=keep, end=end)]

    assert await _kept(driver, refs) == [False, False, True, True, True]


async def test_each_task_may_be_kept_for_its_own_time(driver: Driver) -> None:
    brief = await _finish(driver, 2, keep=Keep(finished=10))
    usual = await _finish(driver, 2)
    driver.advance(11_000)

    await driver.client.apply_retention(QUEUE)

    assert await _kept(driver, [*brief, *usual]) == [False, False, True, True]


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
@pytest.mark.parametrize("what", ["age", "count"])
async def test_keep_0_keeps_nothing(driver: Driver, end: str, what: str) -> None:
    keep = Keep(finished=0, failed=0) if what == "age" else Keep(finished_count=0, failed_count=0)

    refs = await _finish(driver, 5, keep=keep, end=end)

    assert await _kept(driver, refs) == [False] * 5
    assert driver.counts() == {}
    assert driver.hash("meta")[end] == "5"


async def test_ending_jobs_push_out_what_is_over_without_a_sweep(driver: Driver) -> None:
    old = await _finish(driver, 3)
    driver.advance(HOUR)

    new = await _finish(driver, 1)

    assert await _kept(driver, [*old, *new]) == [False, False, False, True]


async def test_a_sweep_forgets_a_bounded_number_and_says_that_there_is_more(driver: Driver) -> None:
    for _ in range(3):
        await _finish(driver, 400)
    driver.advance(HOUR)

    answers: list[bool] = []
    while not answers or answers[-1]:
        answers.append(await driver.client.apply_retention(QUEUE))

    assert answers[:2] == [True, True]
    assert driver.counts() == {}


async def test_a_dead_letter_that_failed_again_is_kept_for_its_time_from_then_on(driver: Driver) -> None:
    """What is left of its first end must not take it away early."""
    (ref,) = await _finish(driver, 1, end="failed")
    driver.advance(29 * DAY)
    await driver.client.redrive(QUEUE, [ref])
    (job,) = await driver.worker().claim()
    await driver.worker().fail(job)

    driver.advance(2 * DAY)
    await driver.client.apply_retention(QUEUE)
    assert await driver.exists(ref)

    driver.advance(29 * DAY)
    await driver.client.apply_retention(QUEUE)
    assert not await driver.exists(ref)


async def test_a_dead_letter_that_was_redriven_is_not_forgotten_while_it_waits_or_runs(driver: Driver) -> None:
    waiting, running = await _finish(driver, 2, end="failed")
    await driver.client.redrive(QUEUE, [running])
    (job,) = await driver.worker().claim()
    await driver.client.redrive(QUEUE, [waiting])

    driver.advance(31 * DAY)
    await driver.worker().beat(job)
    await driver.client.apply_retention(QUEUE)

    assert [await driver.state(ref) for ref in (waiting, running)] == [JobState.PENDING, JobState.PROCESSING]


@pytest.mark.parametrize("left_by", ["redrive", "delete"])
async def test_runs_that_are_gone_do_not_count_against_those_that_are_kept(driver: Driver, left_by: str) -> None:
    """Otherwise redriving the newer half of the dead letters would throw the older half away."""
    keep = Keep(finished_count=4, failed_count=4)
    old = await _finish(driver, 2, keep=keep, end="failed")
    for ref in await _finish(driver, 2, keep=keep, end="failed"):
        if left_by == "redrive":
            await driver.client.redrive(QUEUE, [ref])
            (job,) = await driver.worker().claim()
            await driver.worker().complete(job, keep=keep)
        else:
            await driver.client.delete(ref)

    new = await _finish(driver, 2, keep=keep, end="failed")
    assert await _kept(driver, [*old, *new]) == [True] * 4

    newest = await _finish(driver, 1, keep=keep, end="failed")
    assert await _kept(driver, [*old, *new, *newest]) == [False, True, True, True, True]


async def test_what_is_left_of_gone_runs_does_not_pile_up(driver: Driver) -> None:
    keep = Keep(failed_count=5)
    (ref,) = await _finish(driver, 1, keep=keep, end="failed")
    for _ in range(60):
        await driver.client.redrive(QUEUE, [ref])
        (job,) = await driver.worker().claim()
        await driver.worker().fail(job, keep=keep)

    (key,) = [key for key in driver.all_keys() if ":kept:failed:" in key]
    assert driver.redis.llen(key) <= 10
    assert await driver.exists(ref)


async def test_logs_results_errors_and_history_go_with_their_job(driver: Driver) -> None:
    (ref,) = await driver.enqueue(new_job("x"))
    worker = driver.worker()
    (job,) = await worker.claim()
    await worker.fail(job, "")
    (job,) = await worker.claim()
    await worker.store.append_log(QUEUE, job.run, job.claim, 1, ["info x"])
    await worker.store.save_progress(QUEUE, [(job.run, job.claim, "1", "1", "")])
    await worker.complete(job, b'"result"')
    driver.advance(HOUR)

    await driver.client.apply_retention(QUEUE)

    for name in ("jobs", "runs", "ids", "named", "results", "errors", "history", "progress", "logs"):
        assert driver.hash(name) == {}
    assert not driver.redis.exists(driver.key("log", ref.run or ""))


async def test_a_sweep_forgets_the_heartbeats_of_workers_that_are_long_gone(driver: Driver) -> None:
    await driver.worker("gone").beat()
    driver.advance(HOUR + 1000)
    await driver.worker("alive").beat()

    await driver.client.apply_retention(QUEUE)

    assert driver.hash("heartbeats").keys() == {"alive"}


async def test_one_call_removes_no_more_than_its_bound_however_many_rules_there_are(driver: Driver) -> None:
    bound = BATCH_BY_VERB["apply_retention"]
    for seconds in range(1, 6):
        await _finish(driver, bound // 2, keep=Keep(finished=seconds))
    driver.advance(10_000)

    left, is_more = [5 * (bound // 2)], True
    while is_more:
        is_more = await driver.client.apply_retention(QUEUE)
        left.append(driver.counts().get("completed", 0))

    assert all(before - after <= bound for before, after in itertools.pairwise(left)), left
    assert driver.counts() == {}


async def test_prepared_jobs_count_towards_the_bound_of_a_call(driver: Driver) -> None:
    bound = BATCH_BY_VERB["apply_retention"]
    await _finish(driver, bound, keep=Keep(finished=1))
    await driver.ties.prepare_dependents(QUEUE, {n: JobWithParents(new_job(), ()) for n in range(5)})
    driver.advance(120_000)

    assert await driver.client.apply_retention(QUEUE)
    assert driver.counts() == {}
    assert len(driver.index("prepared")) == 5
    assert not await driver.client.apply_retention(QUEUE)
    assert driver.index("prepared") == {}


@pytest.mark.parametrize("end", ["completed", "failed"])
async def test_the_end_of_jobs_under_many_rules_removes_a_bounded_number_of_others(driver: Driver, end: str) -> None:
    """What is left over is removed by later ends, and by `apply_retention`."""
    rules = [Keep(finished=seconds, failed=seconds) for seconds in range(1, 11)]
    for keep in rules:
        await _finish(driver, 50, keep=keep, end=end)
    driver.advance(60_000)
    await driver.enqueue(*[new_job("", [], keep=keep) for keep in rules])
    jobs = await driver.worker().claim(len(rules))
    report = completed if end == "completed" else failed

    await driver.worker().store.report(QUEUE, [report(job, keep=keep) for job, keep in zip(jobs, rules, strict=True)])

    # Each job makes room for itself, and all of them together for a hundred.
    assert driver.counts() == {end: 500 - 100}
    while await driver.client.apply_retention(QUEUE):
        pass
    assert driver.counts() == {end: len(rules)}
    driver.check()


async def test_with_very_many_rules_calls_look_at_some_of_them(driver: Driver) -> None:
    for seconds in range(1, 201):
        await _finish(driver, 1, keep=Keep(finished=seconds))
    driver.advance(10**6)

    calls = 0
    while driver.counts():
        await driver.client.apply_retention(QUEUE)
        calls += 1

    assert calls >= 2
    assert not [key for key in driver.all_keys() if ":kept:" in key]


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
async def test_deleted_jobs_do_not_push_out_those_that_their_rule_retains(driver: Driver, end: str) -> None:
    """Also where many jobs are under another rule: those must not count for this one."""
    few = Keep(finished_count=3, failed_count=3)
    await _finish(driver, 20, end=end)
    old = await _finish(driver, 3, keep=few, end=end)
    for _ in range(5):
        (new,) = await _finish(driver, 1, keep=few, end=end)
        old = [*old[1:], new]
        await driver.client.delete(old.pop())
        (filled,) = await _finish(driver, 1, keep=few, end=end)
        old.append(filled)

    assert await _kept(driver, old) == [True] * 3


async def test_redriven_dead_letters_do_not_push_out_those_that_their_rule_retains(driver: Driver) -> None:
    few = Keep(failed_count=3)
    await _finish(driver, 20, end="failed")
    kept = await _finish(driver, 2, keep=few, end="failed")
    for _ in range(5):
        (ref,) = await _finish(driver, 1, keep=few, end="failed")
        await driver.client.redrive(QUEUE, [ref])
        (job,) = await driver.worker().claim()
        await driver.worker().complete(job)

    assert await _kept(driver, kept) == [True, True]


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
async def test_nothing_of_a_rule_is_left_when_all_its_jobs_were_deleted(driver: Driver, end: str) -> None:
    for ref in await _finish(driver, 3, end=end):
        await driver.client.delete(ref)

    assert not [key for key in driver.all_keys() if ":kept:" in key]
    assert driver.members("retention_rules") == set()


async def test_a_job_that_was_kept_for_a_waiting_client_leaves_no_entry_when_it_is_deleted(driver: Driver) -> None:
    ref = await driver.one(keep=Keep(finished=0))
    await driver.client.watch(ref)
    (job,) = await driver.worker().claim()
    await driver.worker().complete(job, keep=Keep(finished=0))
    assert await driver.exists(ref)

    await driver.client.delete(ref)

    assert not [key for key in driver.all_keys() if ":kept:" in key]


async def test_damaged_entries_and_rules_do_not_end_retention(driver: Driver) -> None:
    refs = await _finish(driver, 3)
    (rule,) = driver.members("retention_rules")
    driver.redis.lpush(driver.key("kept", rule), "junk")
    driver.redis.sadd(driver.key("retention_rules"), "junk", "completed:junk", "junk:1:1")
    driver.advance(HOUR)

    await driver.client.apply_retention(QUEUE)

    assert await _kept(driver, refs) == [False] * 3
    assert driver.members("retention_rules") == set()
