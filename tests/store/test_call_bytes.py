"""Calls are bounded by bytes: where records, results or errors are long, a call handles fewer of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest

from rota.core.dependencies import Parent, checked_parents
from rota.core.ids import JobRef
from rota.core.lua_constants import CALL_BYTES, SHORT_RECORD
from rota.core.same_id_policy import Update
from rota.core.state_transitions import JobState
from rota.core.workflow_record_and_decisions import StepRecord
from rota.store.batch_limit_constants import BATCH
from rota.store.claim_replies import ClaimedJob
from rota.store.create_dependents_and_deliver_outcomes import Edge, JobWithParents
from rota.store.job_search import Search, SearchQuery
from rota.store.job_store import LEASE_MS
from rota.store.redis.retrying_client import Argument, ScriptCall
from rota.store.report_encoding import Cancelled, Completed, Failed, Lost, Report, Returned, Snoozed
from rota.store.workflow_records import workflow_edge
from tests.store.driver import QUEUE, Driver, completed, failed, new_job, parts, run_of

LONG: Final = "x" * 300_000
#: As many records with `LONG` fit into one call.
FIT: Final = CALL_BYTES // len(LONG)
#: A call that reads records stops after the one that exceeds the bound.
READ: Final = FIT + 1
COUNT: Final = 10


class Watch:
    """The calls that a client sends: script, bytes of its arguments, and its reply."""

    def __init__(self, driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, int, Any]] = []
        run, run_many = driver.redis_client.run, driver.redis_client.run_many

        async def watched(name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
            reply = await run(name, keys, arguments)
            self.calls.append((name, _size(arguments), reply))
            return reply

        async def watched_many(calls: Sequence[ScriptCall]) -> list[Any]:
            replies = await run_many(calls)
            self.calls += [
                (call.script, _size(call.arguments), reply) for call, reply in zip(calls, replies, strict=True)
            ]
            return replies

        monkeypatch.setattr(driver.redis_client, "run", watched)
        monkeypatch.setattr(driver.redis_client, "run_many", watched_many)

    def count(self, script: str) -> int:
        return sum(name == script for name, _, _ in self.calls)

    def most_sent(self, script: str) -> int:
        return max(size for name, size, _ in self.calls if name == script)

    def most_received(self, script: str) -> int:
        return max(_size(reply) for name, _, reply in self.calls if name == script)


def _size(words: Any) -> int:
    if isinstance(words, list | tuple):
        return sum(map(_size, words))
    return len(words) if isinstance(words, bytes | str) else 8


@pytest.fixture
def watch(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(driver, monkeypatch)


async def long_jobs(driver: Driver, count: int = COUNT, **options: Any) -> list[JobRef]:
    return await driver.enqueue(*[new_job("", [LONG], **options) for _ in range(count)])


async def claim_all(driver: Driver) -> list[ClaimedJob]:
    claimed: list[ClaimedJob] = []
    while jobs := await driver.worker().claim(BATCH):
        claimed += jobs
    return claimed


async def test_a_claim_returns_as_many_records_as_fit_and_is_to_be_sent_again_at_once(driver: Driver) -> None:
    refs = await long_jobs(driver)

    first = await driver.worker().claims(COUNT)

    assert [job.run for job in first.jobs] == [ref.run for ref in refs[:FIT]]
    assert first.wait_ms == 0
    assert driver.index("idle") == {}
    assert [job.run for job in await claim_all(driver)] == [ref.run for ref in refs[FIT:]]


async def test_a_claim_that_was_cut_wakes_another_worker_for_the_rest(driver: Driver) -> None:
    await long_jobs(driver)
    with driver.inbox("w2") as inbox:
        driver.redis.zadd(driver.key("idle"), {"w2": driver.now()})

        await driver.worker().claim(COUNT)

        assert inbox.told() == ["wake q"]


async def test_a_record_that_is_longer_than_a_call_may_return_travels_alone(driver: Driver) -> None:
    refs = await driver.enqueue(*[new_job("", ["x" * (CALL_BYTES + 1)]) for _ in range(2)], new_job())

    found = [[job.run for job in await driver.worker().claim(3)] for _ in range(3)]

    assert found == [[ref.run] for ref in refs]


async def test_short_records_behind_a_long_one_come_with_it(driver: Driver) -> None:
    await long_jobs(driver, FIT - 1)
    await driver.enqueue(*[new_job()] * 50)

    assert len(await driver.worker().claim(BATCH)) == FIT - 1 + 50


async def test_a_queue_of_short_records_pays_nothing(driver: Driver) -> None:
    await driver.enqueue(*[new_job("", ["x" * (SHORT_RECORD - 200)])] * BATCH)

    assert len(await driver.worker().claim(BATCH)) == BATCH
    assert "longest_job" not in driver.hash("meta")


async def test_enqueues_are_cut_by_bytes(driver: Driver, watch: Watch) -> None:
    await long_jobs(driver)

    assert watch.most_sent("enqueue_fast") < CALL_BYTES + 1_000
    assert watch.count("enqueue_fast") == -(-COUNT // FIT)


@pytest.mark.parametrize("kind", ["complete", "fail"])
async def test_reports_are_cut_by_their_bytes(driver: Driver, kind: str) -> None:
    text = json.dumps(LONG).encode()
    reports: list[Report] = [
        Completed(f"{number:09}", "1.t", "0:0", text)
        if kind == "complete"
        else Failed(f"{number:09}", "1.t", "final", "0:0", text)
        for number in range(COUNT)
    ]

    calls = driver.client.report_calls(QUEUE, reports)

    assert [len(part) for _, part in calls] == [FIT, FIT, FIT, COUNT - 3 * FIT]
    assert [report for _, part in calls for report in part] == reports


def _returned(job: ClaimedJob) -> Report:
    return Returned(job.run, job.claim, "started")


def _lost(job: ClaimedJob) -> Report:
    return Lost(job.run, job.claim)


def _cancelled(job: ClaimedJob) -> Report:
    return Cancelled(job.run, job.claim, "")


REPORTS: Final[dict[str, Callable[[ClaimedJob], Report]]] = {
    "fail": failed,
    "return": _returned,
    "report_dead_process": _lost,
    "cancel_self": _cancelled,
}


@pytest.mark.parametrize("verb", REPORTS)
async def test_reports_about_long_jobs_are_stored_by_several_calls(driver: Driver, watch: Watch, verb: str) -> None:
    await long_jobs(driver, max_stalls=9)
    jobs = await claim_all(driver)

    refused = await driver.worker().store.report(QUEUE, [REPORTS[verb](job) for job in jobs])

    assert refused == {}
    assert driver.index("processing") == {}
    assert watch.count(verb) >= COUNT // READ


async def test_a_short_report_about_a_long_job_is_stored_by_one_call(driver: Driver, watch: Watch) -> None:
    """A snooze reads no record."""
    await long_jobs(driver)
    jobs = await claim_all(driver)

    await driver.worker().store.report(QUEUE, [Snoozed(job.run, job.claim, "+1000") for job in jobs])

    assert watch.count("snooze") == 1
    assert driver.counts() == {"scheduled": COUNT}


async def test_failure_jobs_of_long_jobs_are_claimed_within_the_bound(driver: Driver) -> None:
    await driver.worker().store.publish_failure_handlers(QUEUE, {"noop": ""})
    await long_jobs(driver)
    await driver.worker().store.report(QUEUE, [failed(job) for job in await claim_all(driver)])

    found = await driver.worker().claim(COUNT, queue="q-fail")

    assert len(found) == FIT
    driver.check(queue="q-fail")


async def test_a_claim_takes_back_long_jobs_of_a_dead_worker_bit_by_bit(driver: Driver) -> None:
    await long_jobs(driver)
    dead = driver.worker("dead")
    while await dead.claim(BATCH):
        pass
    await driver.advance_with_ticks(LEASE_MS + 1_000)

    claims = await driver.worker().claims(0)

    assert (claims.wait_ms, driver.counts()) == (0, {"processing": COUNT - FIT, "pending": FIT})
    while (await driver.worker().claims(0)).wait_ms == 0:
        pass
    assert driver.counts() == {"pending": COUNT}


async def test_a_claim_expires_long_jobs_bit_by_bit(driver: Driver) -> None:
    await long_jobs(driver, expiry="+1000")
    driver.advance(1_000)

    assert (await driver.worker().claims(COUNT)).jobs == []
    assert 0 < driver.counts()["cancelled"] <= READ
    assert await claim_all(driver) == []
    while (await driver.worker().claims(0)).wait_ms == 0:
        pass
    assert driver.counts() == {"cancelled": COUNT}


async def test_long_dead_letters_are_redriven_by_several_calls(driver: Driver, watch: Watch) -> None:
    refs = await long_jobs(driver)
    await driver.worker().store.report(QUEUE, [failed(job) for job in await claim_all(driver)])

    assert await driver.client.redrive(QUEUE, refs) == ["redriven"] * COUNT
    assert watch.count("redrive") >= COUNT // READ


async def test_the_outbox_is_taken_and_delivered_within_the_bound(driver: Driver, watch: Watch) -> None:
    parents = [Parent(await driver.one(), placeholder=f"rota.result.0.{number}") for number in range(COUNT)]
    for number, parent in enumerate(parents):
        join = JobWithParents(new_job(f"join{number}", [parent.placeholder]), [parent])
        (one,), _ = await driver.ties.prepare_dependents(QUEUE, {0: join})
        await driver.ties.register_dependents([Edge(QUEUE, one.run, parent)])
        await driver.ties.publish_prepared_runs(QUEUE, [one.run])
    jobs = await driver.worker().claim(COUNT)
    await driver.worker().store.report(QUEUE, [completed(job, json.dumps(LONG).encode()) for job in jobs])

    await driver.post()

    assert driver.counts() == {"completed": COUNT, "pending": COUNT}
    for script in ("take_outbox", "apply_parent_outcomes"):
        assert watch.most_received(script) < CALL_BYTES + len(LONG)
        assert watch.most_sent(script) < CALL_BYTES + len(LONG)


async def test_results_of_ended_parents_are_read_within_the_bound(driver: Driver, watch: Watch) -> None:
    parents = [Parent(await driver.one(), placeholder=f"rota.result.0.{number}") for number in range(COUNT)]
    jobs = await driver.worker().claim(COUNT)
    await driver.worker().store.report(QUEUE, [completed(job, json.dumps(LONG).encode()) for job in jobs])
    join = JobWithParents(new_job("join", [parent.placeholder for parent in parents]), parents)
    (one,), _ = await driver.ties.prepare_dependents(QUEUE, {0: join}, max_payload=2**23)

    await driver.ties.register_dependents([Edge(QUEUE, one.run, parent) for parent in parents])
    await driver.ties.publish_prepared_runs(QUEUE, [one.run])

    assert watch.most_received("register_dependents") < CALL_BYTES + len(LONG)
    assert driver.hash("jobs")[one.run].count(LONG) == COUNT


async def test_long_dependents_are_made_and_cancelled_within_the_bound(driver: Driver, watch: Watch) -> None:
    parent = await driver.one("parent")
    parents = checked_parents([parent])
    job = JobWithParents(new_job("", [LONG], after=("q:parent",)), parents)
    await driver.ties.enqueue_dependents(QUEUE, [job] * COUNT)
    assert watch.most_sent("prepare_dependents") < CALL_BYTES + len(LONG)
    (claimed,) = await driver.worker().claim()
    await driver.worker().fail(claimed)

    await driver.post()

    assert driver.counts() == {"failed": 1, "cancelled": COUNT}
    assert watch.count("apply_parent_outcomes") >= COUNT // READ


@pytest.mark.parametrize("how", ["same id", "follow-up", "update of a dead letter"])
async def test_a_record_that_becomes_long_later_counts_as_long(driver: Driver, how: str) -> None:
    """`check` compares all records with what a claim expects."""
    ref = await driver.one("a")
    again = new_job("a", [LONG], again=Update())
    jobs = await driver.worker().claim() if how != "same id" else []
    if how == "update of a dead letter":
        await driver.worker().fail(jobs[0])
        seen = hashlib.sha1(driver.hash("jobs")[run_of(ref)].encode()).hexdigest()
        updated = await driver.client.update(
            ref, seen_digest=seen, parts=parts(data=True), priority=0, due="", expiry="", body=again.body
        )
        assert updated == "updated"
    else:
        await driver.client.enqueue(QUEUE, [again])
    if how == "follow-up":
        await driver.worker().fail(jobs[0], "+1000")

    assert len(driver.hash("jobs")[run_of(ref)]) > len(LONG)
    driver.check()


async def test_long_jobs_are_read_by_several_calls(driver: Driver, watch: Watch) -> None:
    """Also where their arguments are cut: the server reads them as a whole."""
    refs = await long_jobs(driver)

    found = await driver.views.read_runs(QUEUE, refs)
    cut = await driver.views.read_runs(QUEUE, refs, detail="brief", max_arguments=10)

    assert [one is not None and one.record.ref for one in found] == refs
    assert [one is not None and len(one.record.arguments) for one in cut] == [10] * COUNT
    assert watch.count("read_runs") >= 2 * -(-COUNT // READ)
    assert watch.most_received("read_runs") < CALL_BYTES + 2 * len(LONG)


async def test_long_jobs_of_an_ended_workflow_are_put_under_retention_by_several_calls(
    driver: Driver, watch: Watch
) -> None:
    steps: list[StepRecord] = []
    for number in range(COUNT):
        job = JobWithParents(new_job(f"w.{number}", [LONG], due="+1000"), ())
        (one,), _ = await driver.ties.prepare_dependents(QUEUE, {0: job}, kind="step", keep_ms=60_000)
        steps.append(StepRecord(one.id, QUEUE, one.run, "noop", (), f"step{number}"))
    await driver.ties.register_dependents(
        [workflow_edge("w", f"s{number}", QUEUE, step.id, step.run) for number, step in enumerate(steps)]
    )
    await driver.flows.open("w", steps, {"name": "order", "limit": "0", "gate": "open"}, nonce="w")
    await driver.flows.drive("w")

    await driver.flows.save_decision(await driver.flow("w"), fields={"cancel": "leave"}, next_ms=0)
    await driver.flows.drive("w")

    assert (await driver.flow("w")).state == "cancelled"
    assert watch.count("put_ended_workflow_runs_under_retention") >= -(-COUNT // READ)
    assert not driver.redis.exists(driver.keys.queue(QUEUE, "steps"))


async def test_names_of_long_jobs_are_read_by_several_calls(driver: Driver, watch: Watch) -> None:
    refs = await long_jobs(driver)

    names = await driver.views.read_run_names({QUEUE: [ref.run or "" for ref in refs]})

    assert names == {(QUEUE, ref.run): (ref.id, "noop") for ref in refs}
    assert watch.count("read_runs_without_arguments") == -(-COUNT // READ)


async def test_a_page_of_long_jobs_ends_early_although_their_arguments_are_cut(driver: Driver) -> None:
    refs = await long_jobs(driver)

    found = await driver.views.list_runs(
        JobState.PENDING, {QUEUE: (None, "")}, limit=COUNT, order="oldest", max_arguments=10
    )

    rows, is_more = found[QUEUE]
    assert [run for _, run, _ in rows] == [ref.run for ref in refs[:READ]]
    assert is_more


async def test_a_search_reads_no_more_long_jobs_than_are_wanted(driver: Driver, watch: Watch) -> None:
    refs = await long_jobs(driver)
    search = Search(driver.redis_client, driver.keys, driver.views)
    query = SearchQuery(task="noop")
    found: list[str] = []

    async for run, _ in search.find(QUEUE, query, after="", order="oldest"):
        found.append(run)
        if len(found) == READ:
            break
    assert watch.count("read_runs") == 1
    assert [run async for run, _ in search.find(QUEUE, query, after=found[-1], order="oldest")] == [
        ref.run for ref in refs[READ:]
    ]
