"""Debounce and throttle: how many jobs come of many calls, and when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota import Debounce, IdInUse, InvalidJob, InvalidOption, JobState, Rota, Throttle, Update
from rota.client.session import checked_session
from rota.core.job_record import JobRecord
from tests.client.manual_worker import Hand


@pytest.fixture
def index(rota: Rota) -> Any:
    @rota.task(name="index")
    async def index(page: str) -> str:
        return page

    return index


async def _record(rota: Rota, job_id: str) -> JobRecord:
    return await rota.job(job_id).refresh()


async def test_a_debounced_job_starts_after_the_last_call_with_its_data(rota: Rota, index: Any) -> None:
    debounced = index.using(debounce=Debounce("page-7", wait=30))

    jobs = [await debounced.enqueue(f"version {number}") for number in range(5)]

    assert len({job.run for job in jobs}) == 1
    assert [job.is_new for job in jobs] == [True, False, False, False, False]
    record = await _record(rota, "page-7")
    assert record.arguments == b'["version 4"]'
    now = await (await checked_session(rota)).views.now()
    assert record.due_at is not None
    assert 29_000 < record.due_at - now <= 30_000


async def test_calls_without_end_do_not_postpone_a_job_beyond_max_wait(rota: Rota, index: Any) -> None:
    first = await index.using(debounce=Debounce("page-7", wait=30, max_wait=40)).enqueue("1")
    enqueued_at = (await first.refresh()).enqueued_at

    await index.using(debounce=Debounce("page-7", wait=3600, max_wait=3600)).enqueue("2")
    await index.using(debounce=Debounce("page-7", wait=39, max_wait=40)).enqueue("3")

    record = await first.refresh()
    assert record.arguments == b'["3"]'
    assert record.due_at == enqueued_at + 40_000


async def test_a_job_whose_greatest_wait_is_over_is_not_postponed(index: Any) -> None:
    job = await index.using(debounce=Debounce("page-7", wait=3600)).enqueue("1")

    await index.using(debounce=Debounce("page-7", wait=0.001, max_wait=0.001)).enqueue("2")

    record = await job.refresh()
    assert record.due_at == record.enqueued_at + 1


async def test_calls_while_the_job_runs_lead_to_one_more(rota: Rota, index: Any, hand: Hand) -> None:
    """It waits for the running one, and for its own time; the greatest wait counts from its own first call."""
    first = await index.using(id="page-7").enqueue("1")
    await hand.take(first)

    later = [await index.using(debounce=Debounce("page-7", wait=30, max_wait=60)).enqueue(f"{n}") for n in (2, 3)]

    assert len({job.run for job in later}) == 1
    assert (await later[0].refresh()).state is JobState.BLOCKED
    assert (await later[0].refresh()).arguments == b'["3"]'


async def test_a_throttled_call_makes_one_job_per_period(rota: Rota, index: Any, hand: Hand) -> None:
    """Also when that job has ended, and whatever it returned."""
    throttled = index.using(throttle=Throttle("page-7", period=60))
    first = await throttled.enqueue("1")
    await hand.finish(first)

    again = await throttled.enqueue("2")

    assert (again.run, again.is_new) == (first.run, False)
    assert (await index.using(throttle=Throttle("page-8", period=60)).enqueue("3")).is_new
    session = await checked_session(rota)
    key = session.keys.queue("default", "once", "60000~index~page-7")
    assert 0 < await session.redis.command("PTTL", key) <= 60_000
    await session.redis.command("UNLINK", key)  # the period is over
    assert (await throttled.enqueue("4")).is_new


async def test_a_throttled_call_never_returns_the_job_of_another_task(rota: Rota, index: Any, hand: Hand) -> None:
    """While that job is unfinished, the id is in use; then each task has its own period."""

    @rota.task(name="mail=!")
    async def mail(page: str) -> str:
        return page

    first = await index.using(throttle=Throttle("page-7", period=60)).enqueue("1")
    throttled = mail.using(throttle=Throttle("page-7", period=60))
    with pytest.raises(IdInUse):
        await throttled.enqueue("2")
    await hand.finish(first)

    second = await throttled.enqueue("3")

    assert second.is_new
    assert (await second.refresh()).task == "mail=!"
    assert (await index.using(throttle=Throttle("page-7", period=60)).enqueue("4")).run == first.run


async def test_the_trailing_edge_has_the_data_of_the_last_call(rota: Rota, index: Any) -> None:
    throttled = index.using(throttle=Throttle("page-7", period=60, edge="trailing"))
    first = await throttled.enqueue("1")
    due_at = (await first.refresh()).due_at

    second = await throttled.enqueue("2")

    record = await second.refresh()
    assert (second.run, record.due_at, record.arguments) == (first.run, due_at, b'["2"]')


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"debounce": Debounce("a", 1), "id": "b"}, "leave out id"),
        ({"debounce": Debounce("a", 1), "delay": 5}, "leave out delay"),
        ({"debounce": Debounce("a", 1), "run_at": datetime.now(UTC) + timedelta(hours=1)}, "leave out run_at"),
        ({"debounce": Debounce("a", 1), "on_same_id": Update()}, "leave out on_same_id"),
        ({"debounce": Debounce("a", 1), "throttle": Throttle("a", 1)}, "leave out throttle"),
        ({"debounce": 5}, r"takes Debounce\(...\), not 5"),
        ({"throttle": Debounce("a", 1)}, r"takes Throttle\(...\)"),
    ],
)
def test_options_that_contradict_each_other_are_refused(index: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        index.using(**options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Debounce("a", 0), "wait must be positive"),
        (lambda: Debounce("a", 5, max_wait=4), "max_wait 4 is shorter than wait 5"),
        (lambda: Debounce("a b", 5), "a b"),
        (lambda: Throttle("a", 0), "period must be positive and at most a day"),
        (lambda: Throttle("a", 90_000), "at most a day"),
        (lambda: Throttle("a", 5, edge="both"), "edge is 'leading' or 'trailing'"),  # type: ignore[arg-type]
        (lambda: Update(max_wait=-1), "-1"),
    ],
)
def test_impossible_values_are_refused_where_they_are_given(make: Any, message: str) -> None:
    with pytest.raises(InvalidJob, match=message):
        make()
