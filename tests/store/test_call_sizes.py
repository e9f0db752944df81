"""No call does more than a few milliseconds of work: what is asked for at once is cut into calls of a known size.

The times themselves are for `benchmarks/scripts.py`; here it is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import pytest

from rota.core.dependencies import Parent
from rota.core.ids import JobRef
from rota.store.batch_limit_constants import BATCH, BATCH_BY_VERB, HOUSEKEEPING_BATCH, PURGE_BATCH
from rota.store.create_dependents_and_deliver_outcomes import (
    FAILURE_WEIGHT,
    PUBLISH_BATCH,
    SLICE,
    WORKFLOW_WEIGHT,
    WORKFLOWS,
    JobWithParents,
    ParentOutcome,
)
from rota.store.job_store import LEASE_MS
from rota.store.redis.retrying_client import Argument, ScriptCall
from rota.store.report_encoding import CancelConfirmed, Cancelled, Completed, Failed, Lost, Report, Returned, Snoozed
from tests.store.driver import QUEUE, Driver, failed, new_job, refs_of

MANY = 1_000


def _sizes(total: int, size: int) -> list[int]:
    return [min(size, total - start) for start in range(0, total, size)]


@pytest.fixture
def calls(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[int]]:
    """How many arguments each call of a script had, so far."""
    seen: list[tuple[str, int]] = []
    run, run_many = driver.redis_client.run, driver.redis_client.run_many

    async def spy(name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        seen.append((name, len(arguments)))
        return await run(name, keys, arguments)

    async def spy_many(calls: Sequence[ScriptCall]) -> list[Any]:
        seen.extend((call.script, len(call.arguments)) for call in calls)
        return await run_many(calls)

    monkeypatch.setattr(driver.redis_client, "run", spy)
    monkeypatch.setattr(driver.redis_client, "run_many", spy_many)
    return lambda script: [size for name, size in seen if name == script]


#: A report of each kind, but for its run.
REPORTS: Final[dict[str, Report]] = {
    "complete": Completed("", "1.t", "0:0", b""),
    "fail": Failed("", "1.t", "final", "0:0", b"{}"),
    "snooze": Snoozed("", "1.t", "+1"),
    "return": Returned("", "1.t", "started"),
    "cancel_self": Cancelled("", "1.t", ""),
    "confirm_cancelled_run_stopped": CancelConfirmed("", "1.t"),
    "report_dead_process": Lost("", "1.t"),
}


@pytest.mark.parametrize("verb", REPORTS)
async def test_reports_are_cut_by_what_their_verb_costs(driver: Driver, verb: str) -> None:
    reports: list[Report] = [msgspec.structs.replace(REPORTS[verb], run=f"{number:09}") for number in range(MANY)]

    calls = driver.client.report_calls(QUEUE, reports)

    assert {call.script for call, _ in calls} == {verb}
    assert [len(part) for _, part in calls] == _sizes(MANY, BATCH_BY_VERB[verb])
    assert [report for _, part in calls for report in part] == reports
    assert BATCH_BY_VERB[verb] <= BATCH


async def test_redrives_are_cut(driver: Driver, calls: Callable[[str], list[int]]) -> None:
    refs = [JobRef(QUEUE, f"x{number}") for number in range(100)]

    assert await driver.client.redrive(QUEUE, refs) == ["missing"] * 100
    assert [(size - 2) // 2 for size in calls("redrive")] == _sizes(100, BATCH_BY_VERB["redrive"])


async def test_news_and_commits_are_cut(driver: Driver, calls: Callable[[str], list[int]]) -> None:
    ref = await driver.one("parent")
    heirs = 3 * SLICE // FAILURE_WEIGHT + 5
    await driver.ties.enqueue_dependents(
        "heirs", [JobWithParents(new_job(after=(str(ref),)), [Parent(ref)]) for _ in range(heirs)]
    )
    (job,) = await driver.worker().claim()
    await driver.worker().report(failed(job))
    await driver.post()

    assert max(size - 2 for size in calls("publish_prepared_runs")) <= PUBLISH_BATCH
    assert sum(size - 2 for size in calls("publish_prepared_runs")) == heirs
    assert [(size - 2) // 6 for size in calls("apply_parent_outcomes")] == _sizes(heirs, SLICE // FAILURE_WEIGHT)
    assert driver.counts(queue="heirs") == {"cancelled": heirs}
    messages = [ParentOutcome("nowhere", f"s{number}", "1", "completed", "", b"", "1") for number in range(SLICE + 1)]
    await driver.ties.deliver_outcomes(WORKFLOWS, messages)
    assert [(size - 1) // 6 for size in calls("record_step_outcomes")] == _sizes(SLICE + 1, SLICE // WORKFLOW_WEIGHT)


async def test_a_claim_reaps_only_so_many_and_leases_no_more(driver: Driver) -> None:
    count = HOUSEKEEPING_BATCH + 10
    await driver.enqueue(*[new_job()] * count)
    await driver.worker("dead").claim(count)
    await driver.advance_with_ticks(LEASE_MS + 1000)

    claims = await driver.worker().claims(BATCH)

    assert (len(claims.jobs), claims.wait_ms) == (HOUSEKEEPING_BATCH, 0)
    assert len(await driver.worker().claim(BATCH)) == 10


async def test_a_claim_promotes_only_so_many_that_have_locks(driver: Driver) -> None:
    count = HOUSEKEEPING_BATCH + 10
    await driver.enqueue(*[new_job(due="+1000", lock=f"lock{number}") for number in range(count)])
    driver.advance(1_000)

    claims = await driver.worker().claims(BATCH)

    assert (len(claims.jobs), claims.wait_ms) == (HOUSEKEEPING_BATCH, 0)
    assert len(await driver.worker().claim(BATCH)) == 10


async def test_a_claim_expires_only_so_many_and_starts_none_of_the_others(driver: Driver) -> None:
    count = HOUSEKEEPING_BATCH + 10
    await driver.enqueue(*[new_job(expiry="+1000")] * count)
    refs = await driver.enqueue(*[new_job()] * 5)
    driver.advance(1_000)

    claims = await driver.worker().claims(BATCH)

    assert (claims.jobs, claims.wait_ms) == ([], 0)
    assert driver.counts() == {"cancelled": HOUSEKEEPING_BATCH, "pending": 15}
    assert refs_of(await driver.worker().claim(BATCH)) == [ref.run for ref in refs]
    assert driver.counts() == {"cancelled": count, "processing": 5}


async def test_a_purge_deletes_less_at_once_where_runs_are_tied(driver: Driver) -> None:
    await driver.enqueue(*[new_job()] * MANY)
    assert await driver.client.purge(QUEUE, MANY) == PURGE_BATCH
    await driver.one(lock="door")
    calls, rest = divmod(MANY - PURGE_BATCH + 1, 50)
    purged = [await driver.client.purge(QUEUE) for _ in range(calls + 1)]

    assert purged == [*[50] * calls, rest]
    assert driver.counts() == {}
