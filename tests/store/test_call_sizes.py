"""No call does more than a few milliseconds of work: what is asked for at once is cut into calls of a known size.

The times themselves are for `benchmarks/scripts.py`; here it is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest

from rota.core.after import Parent
from rota.core.job import JobRef
from rota.store.bounds import BATCH, CHORES, LEASE_MS, PURGED, SLICES
from rota.store.gateway import Argument, Call
from rota.store.reports import Cancelled, Completed, Failed, Lost, Report, Returned, Snoozed
from rota.store.ties import COMMITS, FAILURE_WEIGHT, FLOW_WEIGHT, FLOWS, SLICE, Message, Tied
from tests.store.driver import QUEUE, Driver, failed, new_job, refs_of

MANY = 1_000


def _sizes(total: int, size: int) -> list[int]:
    return [min(size, total - start) for start in range(0, total, size)]


@pytest.fixture
def calls(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[int]]:
    """How many arguments each call of a script had, so far."""
    seen: list[tuple[str, int]] = []
    run, run_many = driver.gateway.run, driver.gateway.run_many

    async def spy(name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        seen.append((name, len(arguments)))
        return await run(name, keys, arguments)

    async def spy_many(calls: Sequence[Call]) -> list[Any]:
        seen.extend((call.script, len(call.arguments)) for call in calls)
        return await run_many(calls)

    monkeypatch.setattr(driver.gateway, "run", spy)
    monkeypatch.setattr(driver.gateway, "run_many", spy_many)
    return lambda script: [size for name, size in seen if name == script]


#: A report of each kind, but for its run.
REPORTS: Final[dict[str, Report]] = {
    "complete": Completed("", "1.t", "0:0", b""),
    "fail": Failed("", "1.t", "final", "0:0", b"{}"),
    "snooze": Snoozed("", "1.t", "+1"),
    "return": Returned("", "1.t", "started"),
    "give_up": Cancelled("", "1.t", ""),
    "reap": Lost("", "1.t"),
}


@pytest.mark.parametrize("verb", REPORTS)
async def test_reports_are_cut_by_what_their_verb_costs(driver: Driver, verb: str) -> None:
    reports: list[Report] = [REPORTS[verb]._replace(run=f"{number:09}") for number in range(MANY)]

    calls = driver.client.report_calls(QUEUE, reports)

    assert {call.script for call, _ in calls} == {verb}
    assert [len(part) for _, part in calls] == _sizes(MANY, SLICES[verb])
    assert [report for _, part in calls for report in part] == reports
    assert SLICES[verb] <= BATCH


async def test_redrives_are_cut(driver: Driver, calls: Callable[[str], list[int]]) -> None:
    refs = [JobRef(QUEUE, f"x{number}") for number in range(100)]

    assert await driver.client.redrive(QUEUE, refs) == ["missing"] * 100
    assert [(size - 2) // 2 for size in calls("redrive")] == _sizes(100, SLICES["redrive"])


async def test_news_and_commits_are_cut(driver: Driver, calls: Callable[[str], list[int]]) -> None:
    ref = await driver.one("parent")
    heirs = 3 * SLICE // FAILURE_WEIGHT + 5
    await driver.ties.enqueue("heirs", [Tied(new_job(after=(str(ref),)), [Parent(ref)]) for _ in range(heirs)])
    (job,) = await driver.worker().claim()
    await driver.worker().report(failed(job))
    await driver.post()

    assert max(size - 2 for size in calls("commit")) <= COMMITS
    assert sum(size - 2 for size in calls("commit")) == heirs
    assert [(size - 2) // 6 for size in calls("deliver")] == _sizes(heirs, SLICE // FAILURE_WEIGHT)
    assert driver.counts(queue="heirs") == {"cancelled": heirs}
    messages = [Message("nowhere", f"s{number}", "1", "completed", "", b"", "1") for number in range(SLICE + 1)]
    await driver.ties.pass_on(FLOWS, messages)
    assert [(size - 1) // 6 for size in calls("advance")] == _sizes(SLICE + 1, SLICE // FLOW_WEIGHT)


async def test_a_claim_reaps_only_so_many_and_leases_no_more(driver: Driver) -> None:
    count = CHORES + 10
    await driver.enqueue(*[new_job()] * count)
    await driver.worker("dead").claim(count)
    await driver.advance_with_ticks(LEASE_MS + 1000)

    claims = await driver.worker().claims(BATCH)

    assert (len(claims.jobs), claims.wait_ms) == (CHORES, 0)
    assert len(await driver.worker().claim(BATCH)) == 10


async def test_a_claim_promotes_only_so_many_that_have_locks(driver: Driver) -> None:
    count = CHORES + 10
    await driver.enqueue(*[new_job(due="+1000", lock=f"lock{number}") for number in range(count)])
    driver.advance(1_000)

    claims = await driver.worker().claims(BATCH)

    assert (len(claims.jobs), claims.wait_ms) == (CHORES, 0)
    assert len(await driver.worker().claim(BATCH)) == 10


async def test_a_claim_expires_only_so_many_and_starts_none_of_the_others(driver: Driver) -> None:
    count = CHORES + 10
    await driver.enqueue(*[new_job(expiry="+1000")] * count)
    refs = await driver.enqueue(*[new_job()] * 5)
    driver.advance(1_000)

    claims = await driver.worker().claims(BATCH)

    assert (claims.jobs, claims.wait_ms) == ([], 0)
    assert driver.counts() == {"cancelled": CHORES, "pending": 15}
    assert refs_of(await driver.worker().claim(BATCH)) == [ref.run for ref in refs]
    assert driver.counts() == {"cancelled": count, "processing": 5}


async def test_a_purge_deletes_less_at_once_where_runs_are_tied(driver: Driver) -> None:
    await driver.enqueue(*[new_job()] * MANY)
    assert await driver.client.purge(QUEUE, MANY) == PURGED
    await driver.one(lock="door")
    calls, rest = divmod(MANY - PURGED + 1, 50)
    purged = [await driver.client.purge(QUEUE) for _ in range(calls + 1)]

    assert purged == [*[50] * calls, rest]
    assert driver.counts() == {}
