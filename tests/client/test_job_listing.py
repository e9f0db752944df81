"""Listing jobs: by state, filtered, page by page, while jobs come and go."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from datetime import UTC, datetime
from typing import Any

import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st

from rota import Call, InvalidOption, Job, JobRecord, JobState, Page, Rota, Task
from rota.client.session import session_of
from rota.core.job_options import Keep
from rota.core.job_record import ErrorRecord
from rota.core.job_record_codec import encode_error
from rota.store.claim_replies import ClaimedJob
from rota.store.report_encoding import Completed, Failed
from tests.client.manual_worker import Hand, calls_of
from tests.eventually import eventually
from tests.leaks import delete_keys
from tests.servers import Server

EXAMINED_AT_MOST = 1_000


@pytest.fixture
def send(rota: Rota) -> Task[[int], Any, Any]:
    @rota.task
    async def send(number: int) -> Any: ...

    return send


def numbers(jobs: list[JobRecord]) -> list[int]:
    return [json.loads(job.arguments)[0] for job in jobs]


async def all_pages(rota: Rota, state: JobState | None, limit: int, **filters: Any) -> list[Page]:
    pages = [await rota.jobs(state, limit=limit, **filters)]
    while pages[-1].cursor is not None:
        pages.append(await rota.jobs(state, limit=limit, cursor=pages[-1].cursor, **filters))
    return pages


async def all_numbers(rota: Rota, state: JobState | None, limit: int, **filters: Any) -> list[int]:
    return [n for page in await all_pages(rota, state, limit, **filters) for n in numbers(page.jobs)]


async def many(send: Task[[int], Any, Any], count: int, **options: Any) -> list[Job[Any]]:
    made = await send.client.enqueue_many(send.using(**options).call(n) for n in range(count))
    return [job for job in made if isinstance(job, Job)]


async def end_all(
    hand: Hand, state: JobState, count: int, *, error: str = "ValueError", queue: str = "default"
) -> None:
    """Ends the next jobs of the queue, one moment for all."""
    if count:
        claimed = await hand.claim(count, queue=queue)
        assert len(claimed) == count
        reports = [_report(job, state, Keep().retention(state), error) for job in claimed]
        assert await hand.store.report(queue, reports) == {}


def _report(job: ClaimedJob, state: JobState, rule: str, error: str) -> Completed | Failed:
    if state is JobState.COMPLETED:
        return Completed(job.run, job.claim, rule, b"")
    return Failed(job.run, job.claim, "final", rule, encode_error(ErrorRecord(type=error, message="boom")))


# --- states and orders -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("S0-17")
@pytest.mark.usefixtures("on_each")
async def test_each_state_has_its_list(send: Task[[int], Any, Any], rota: Rota, hand: Hand) -> None:
    """What waits and what is being processed can be looked at."""
    for state in JobState:
        page = await rota.jobs(state)
        assert (page.jobs, page.cursor, page.examined) == ([], None, 0)
    await many(send, 2)
    await end_all(hand, JobState.COMPLETED, 1)
    await end_all(hand, JobState.FAILED, 1)
    await (await send.enqueue(2)).cancel()
    await send.enqueue(3)
    await hand.claim(queue="default")
    await send.enqueue(4)
    await send.using(delay=60).enqueue(5)

    found = {state: numbers((await rota.jobs(state)).jobs) for state in JobState}

    assert found == {
        JobState.COMPLETED: [0],
        JobState.FAILED: [1],
        JobState.CANCELLED: [2],
        JobState.PROCESSING: [3],
        JobState.PENDING: [4],
        JobState.SCHEDULED: [5],
        JobState.BLOCKED: [],
    }
    for state, listed in found.items():
        assert numbers((await rota.jobs(state.value.upper())).jobs) == listed
        assert all(job.state == state for job in (await rota.jobs(state)).jobs)


@pytest.mark.usefixtures("on_each")
@pytest.mark.parametrize("limit", [2, 100])
async def test_jobs_of_several_queues_are_listed_in_one_order(
    send: Task[[int], Any, Any], rota: Rota, hand: Hand, limit: int
) -> None:
    """A queue that is busy does not hide the others."""
    for number in range(9):
        await send.using(queue="mail" if number % 3 == 0 else "reports", delay=60 if number == 8 else 0).enqueue(number)
        await _next_moment(rota)

    assert await all_numbers(rota, None, limit) == [8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert await all_numbers(rota, None, limit, order="oldest") == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert await all_numbers(rota, JobState.PENDING, limit) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert await all_numbers(rota, JobState.PENDING, limit, task="send", order="newest") == [7, 6, 5, 4, 3, 2, 1, 0]
    for number in range(8):
        await end_all(hand, JobState.COMPLETED, 1, queue="mail" if number % 3 == 0 else "reports")
        await _next_moment(rota)
    assert await all_numbers(rota, JobState.COMPLETED, limit) == [7, 6, 5, 4, 3, 2, 1, 0]


async def test_a_job_that_arrives_while_a_list_is_read_is_not_in_the_middle_of_it(
    send: Task[[int], Any, Any], rota: Rota
) -> None:
    for number in range(4):
        await send.using(queue="mail" if number < 2 else "reports").enqueue(number)
        await _next_moment(rota)
    page = await rota.jobs(limit=1)
    await send.using(queue="mail").enqueue(4)
    await send.using(queue="new").enqueue(5)

    rest = await rota.jobs(limit=9, cursor=page.cursor)

    assert numbers(page.jobs) + numbers(rest.jobs) == [3, 2, 1, 0]


async def _next_moment(rota: Rota) -> None:
    """Waits until the store's clock shows another millisecond."""
    before = await session_of(rota).views.now()

    async def has_moved() -> bool:
        return await session_of(rota).views.now() > before

    await eventually(has_moved)


@pytest.mark.usefixtures("on_each")
async def test_waiting_jobs_come_as_they_will_start_and_finished_ones_latest_first(
    send: Task[[int], Any, Any], rota: Rota, hand: Hand
) -> None:
    for number, priority in enumerate((0, 5, -5, 100, -100, 0)):
        await send.using(priority=priority).enqueue(number)
    for number, delay in ((10, 60), (11, 30), (12, 90)):
        await send.using(delay=delay, priority=-number).enqueue(number)

    assert await all_numbers(rota, JobState.PENDING, 2) == [4, 2, 0, 5, 1, 3]
    assert await all_numbers(rota, JobState.PENDING, 2, order="newest") == [3, 1, 5, 0, 2, 4]
    assert await all_numbers(rota, JobState.SCHEDULED, 2) == [11, 10, 12]
    assert await all_numbers(rota, JobState.SCHEDULED, 1, order="newest") == [12, 10, 11]
    await end_all(hand, JobState.COMPLETED, 3)
    ended_at = await session_of(rota).views.now()

    async def is_later() -> bool:
        return await session_of(rota).views.now() > ended_at

    await eventually(is_later)
    await end_all(hand, JobState.COMPLETED, 3)
    latest_first = await all_numbers(rota, JobState.COMPLETED, 4)
    assert [set(latest_first[:3]), set(latest_first[3:])] == [{5, 1, 3}, {4, 2, 0}]
    assert await all_numbers(rota, JobState.COMPLETED, 1, order="oldest") == latest_first[::-1]


@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7, 100])
async def test_pages_go_over_all_queues(rota: Rota, send: Task[[int], Any, Any], limit: int) -> None:
    await rota.enqueue_many(send.using(queue=f"q{n // 2}").call(n) for n in range(6))
    await rota.enqueue_many([send.using(queue="q9", delay=60).call(9)])

    pages = await all_pages(rota, JobState.PENDING, limit)

    assert [n for page in pages for n in numbers(page.jobs)] == [0, 1, 2, 3, 4, 5]
    assert all(len(page.jobs) == limit for page in pages[:-1])
    assert await all_numbers(rota, JobState.PENDING, limit, queue="q1") == [2, 3]
    assert await all_numbers(rota, JobState.PENDING, limit, queue="unheard-of") == []


# --- filters ---------------------------------------------------------------------------------------------------------


async def test_a_large_page_is_read_by_calls_that_read_few_jobs_each(
    rota: Rota, send: Task[[int], Any, Any], home_server: Server
) -> None:
    """No call keeps the server to itself for long, however many jobs are asked for."""
    await rota.enqueue_many(send.call(number) for number in range(250))
    with home_server.client() as client:
        before = _script_calls(client)
        page = await rota.jobs(JobState.PENDING, limit=1000)
        calls = _script_calls(client) - before

    assert numbers(page.jobs) == list(range(250))
    assert page.cursor is None
    assert calls >= 3


def _script_calls(client: redis.Redis) -> int:
    stats: Any = client.info("commandstats")
    return stats["cmdstat_evalsha_ro"]["calls"]


async def test_filters_find_what_they_say(rota: Rota, hand: Hand) -> None:
    @rota.task
    async def one(number: int, who: str = "") -> None: ...

    @rota.task
    async def two(number: int, who: str = "") -> None: ...

    await one.using(tags=["red", "big"]).enqueue(1, "Ärger")
    await two.using(tags=["red"], id="order-77").enqueue(2, "anna")
    await one.enqueue(3, "ANNA")

    async def found(**filters: Any) -> list[int]:
        return await all_numbers(rota, JobState.PENDING, 10, **filters)

    assert await found(task="one") == [1, 3]
    assert await found(task="on") == []
    assert await found(tag="red") == [1, 2]
    assert await found(tag="big", task="one") == [1]
    assert await found(tag="big", task="two") == []
    assert await found(text="anna") == [2, 3]
    assert await found(text="order-77") == [2]
    assert await found(text="ÄRGER") == [1]
    assert await found(error="ValueError") == []
    await end_all(hand, JobState.FAILED, 1)
    await end_all(hand, JobState.FAILED, 1, error="KeyError")
    dead = [numbers((await rota.dead.list(error=error)).jobs) for error in ("ValueError", "KeyError", "OSError")]
    assert dead == [[1], [2], []]
    assert numbers((await rota.dead.list(text="boom")).jobs) == [2, 1]


@pytest.mark.parametrize(
    ("matching", "limit"),
    [("1101", 3), ("110111", 3), ("0000", 2), ("1", 1), ("0110", 1), ("10101011", 2), ("1111", 4), ("01" * 20, 7)],
)
async def test_filtered_pages_find_every_match(
    rota: Rota, send: Task[[int], Any, Any], matching: str, limit: int
) -> None:
    await rota.enqueue_many(send.using(tags=["yes"] if yes == "1" else []).call(n) for n, yes in enumerate(matching))

    pages = await all_pages(rota, JobState.PENDING, limit, tag="yes")

    assert [n for page in pages for n in numbers(page.jobs)] == [n for n, yes in enumerate(matching) if yes == "1"]
    assert all(len(page.jobs) <= limit for page in pages)
    assert sum(page.examined for page in pages) == matching.count("1")


async def test_a_page_examines_a_bounded_number_of_records_in_few_calls(
    rota: Rota, send: Task[[int], Any, Any], raw: redis.Redis
) -> None:
    await many(send, 2_500)
    needle = await send.enqueue(9_999)
    before = calls_of(raw, "evalsha_ro")

    pages = await all_pages(rota, JobState.PENDING, 1, text="9999")

    assert [job.ref for page in pages for job in page.jobs] == [needle.ref]
    assert [page.examined for page in pages] == [EXAMINED_AT_MOST, EXAMINED_AT_MOST, 501]
    assert calls_of(raw, "evalsha_ro") - before <= 30


async def test_what_is_indexed_is_found_without_examining_others(
    rota: Rota, send: Task[[int], Any, Any], hand: Hand
) -> None:
    @rota.task(index=["user", "amount"])
    async def pay(user: str, amount: float = 0, *, note: str = "") -> None: ...

    await many(send, 1_500)
    await rota.enqueue_many(pay.using(tags=["vip"] if n % 10 == 0 else []).call(f"u{n % 50}", n) for n in range(100))
    await end_all(hand, JobState.COMPLETED, 3)

    async def found(state: JobState | None, **filters: Any) -> tuple[int, int]:
        pages = [await rota.jobs(state, limit=50, **filters)]
        while pages[-1].cursor:
            pages.append(await rota.jobs(state, limit=50, cursor=pages[-1].cursor, **filters))
        refs = [job.ref for page in pages for job in page.jobs]
        assert len(refs) == len(set(refs))
        return len(refs), sum(page.examined for page in pages)

    assert await found(JobState.PENDING, task="pay") == (100, 100)
    assert await found(JobState.PENDING, task="pay", tag="vip") == (10, 10)
    assert await found(None, fields={"user": "u7"}) == (2, 2)
    assert await found(None, fields={"user": "u7", "amount": 57}) == (1, 1)
    assert await found(None, fields={"user": "u7"}, task="send") == (0, 0)
    assert await found(JobState.COMPLETED, task="send") == (3, 3)
    assert await found(JobState.COMPLETED, worker=hand.store.participant) == (3, 3)
    assert await found(None, worker="nobody") == (0, 0)
    assert await found(JobState.COMPLETED, task="pay") == (0, 0)
    assert await found(None) == (1_600, 1_600)


async def test_times_are_those_of_the_end_or_of_the_enqueueing(
    rota: Rota, send: Task[[int], Any, Any], hand: Hand
) -> None:
    await many(send, 3)
    await end_all(hand, JobState.FAILED, 1)
    first = (await rota.jobs(JobState.FAILED)).jobs[0]
    while await session_of(rota).views.now() <= (first.ended_at or 0) + 1:
        pass  # until the clock has moved on
    await end_all(hand, JobState.FAILED, 1, error="KeyError")
    await send.enqueue(3)
    middle = datetime.fromtimestamp(((first.ended_at or 0) + 1) / 1000, UTC)

    assert numbers((await rota.jobs(JobState.FAILED, since=middle)).jobs) == [1]
    assert numbers((await rota.jobs(JobState.FAILED, until=middle)).jobs) == [0]
    assert numbers((await rota.jobs(JobState.FAILED, until=middle, error="KeyError")).jobs) == []
    assert numbers((await rota.jobs(JobState.FAILED, since=middle, task="send")).jobs) == [1]
    assert numbers((await rota.jobs(JobState.PENDING, since=middle)).jobs) == [3]
    assert numbers((await rota.jobs(JobState.PENDING, until=middle)).jobs) == [2]
    assert numbers((await rota.jobs(since=middle, order="oldest")).jobs) == [1, 3]


async def test_processing_jobs_stay_on_their_pages_while_their_leases_move(
    rota: Rota, send: Task[[int], Any, Any], hand: Hand
) -> None:
    await many(send, 6)
    claimed = await hand.claim(6, queue="default")
    seen: list[int] = []
    cursor: str | None = None
    while True:
        page = await rota.jobs(JobState.PROCESSING, limit=2, cursor=cursor)
        seen += numbers(page.jobs)
        # Those that were listed last are renewed first.
        for job in claimed[::-1]:
            await hand.store.heartbeat("default", [(job.run, job.claim)])
        cursor = page.cursor
        if cursor is None:
            break

    assert seen == [0, 1, 2, 3, 4, 5]


async def test_what_is_changed_in_place_is_found_by_what_it_is_now(rota: Rota) -> None:
    @rota.task(index=["user"])
    async def pay(user: str) -> None: ...

    await pay.using(id="x", tags=["old"], delay=60).enqueue("anna")
    await pay.using(id="x", tags=["new"], delay=60).enqueue("berta")

    async def found(**filters: Any) -> int:
        return len((await rota.jobs(**filters)).jobs)

    assert [await found(tag="old"), await found(fields={"user": "anna"})] == [0, 0]
    assert [await found(tag="new"), await found(fields={"user": "berta"}), await found(task="pay")] == [1, 1, 1]
    await rota.job("x").delete()
    assert [await found(tag="new"), await found(fields={"user": "berta"}), await found(task="pay")] == [0, 0, 0]


# --- while jobs come and go ------------------------------------------------------------------------------------------

STATES = (JobState.PENDING, JobState.SCHEDULED, JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED)


class Crowd:
    """Jobs in one state that come and go, spread over one or more queues. Without a state they are pending."""

    def __init__(self, rota: Rota, hand: Hand, queues: tuple[str, ...], state: JobState | None) -> None:
        self._rota, self._hand, self._queues, self._state = rota, hand, queues, state
        self._send = rota.task(name="send")(_number)
        self._next = 0
        self.present: dict[int, Job[Any]] = {}

    async def add(self, count: int, spread: int) -> None:
        """Some in the same place, some before and some behind what is there."""
        calls: list[Call[Any]] = []
        numbers = range(self._next, self._next + count)
        queues = [self._queues[number % len(self._queues)] for number in numbers]
        for number, queue in zip(numbers, queues, strict=True):
            place = number % (spread + 1)
            delay = 100 + place if self._state is JobState.SCHEDULED else 0
            calls.append(self._send.using(queue=queue, priority=place, delay=delay).call(number))
        jobs = [job for job in await self._rota.enqueue_many(calls) if isinstance(job, Job)]
        if self._state is JobState.COMPLETED or self._state is JobState.FAILED:
            for queue in self._queues:
                await end_all(self._hand, self._state, queues.count(queue), queue=queue)
        elif self._state is JobState.CANCELLED:
            for job in jobs:
                await job.cancel()
        self.present |= {self._next + place: job for place, job in enumerate(jobs)}
        self._next += count

    async def remove(self, number: int) -> None:
        if number in self.present:
            await self.present.pop(number).delete()


#: What happens between two pages: how many come, over how many places, and which ones go.
steps = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), st.lists(st.integers(0, 30), max_size=4)), max_size=8)


@pytest.mark.parametrize("order", ["oldest", "newest"])
@pytest.mark.parametrize("state", [None, *STATES])
@pytest.mark.parametrize("count", [1, 3])
def test_every_job_that_stays_is_seen_exactly_once(
    valkey: Server, namespace: str, state: JobState | None, order: str, count: int
) -> None:
    async def page_through(start: int, limit: int, changes: list[tuple[int, int, list[int]]]) -> None:
        with valkey.client() as raw:
            delete_keys(raw, namespace)  # of the previous example
        async with Rota(valkey.url, namespace=namespace) as rota:
            hand = Hand(rota)
            crowd = Crowd(rota, hand, tuple(f"q{number}" for number in range(count)), state)
            await crowd.add(start, 2)
            stay, seen = set(crowd.present), list[int]()
            page = await rota.jobs(state, limit=limit, order=order)
            for added, spread, gone in itertools.chain(changes, itertools.repeat((0, 0, []))):
                seen += numbers(page.jobs)
                if page.cursor is None:
                    break
                await crowd.add(added, spread)
                for number in gone:
                    await crowd.remove(number)
                page = await rota.jobs(state, limit=limit, order=order, cursor=page.cursor)
            await hand.close()
        assert len(seen) == len(set(seen)), f"seen twice: {seen}"
        assert stay & set(crowd.present) <= set(seen), f"missed, but seen: {seen}"

    is_long = settings.get_current_profile_name() == "long"

    @settings(max_examples=200 if is_long else 20)
    @given(start=st.integers(1, 12), limit=st.integers(1, 5), changes=steps)
    def explore(start: int, limit: int, changes: list[tuple[int, int, list[int]]]) -> None:
        asyncio.run(page_through(start, limit, changes))

    explore()


async def _number(number: int) -> Any: ...


# --- what is refused -------------------------------------------------------------------------------------------------


def forged(*parts: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "ü",
        "AAAA",
        "null",
        forged(),
        forged(5),
        5,
        "",
        forged("pending oldest", "default", "abc", "000000001"),
        forged("pending oldest", "default", None, "x"),
        forged("pending oldest", "default", "5", "000000001"),
        forged("pending oldest", "default", 5, "no run"),
        forged("pending oldest", "default"),
        forged("pending oldest", "default", 5),
        forged("pending oldest", "nowhere", 5, "000000001"),
        forged("pending", "default", 5, "000000001"),
    ],
)
async def test_an_invalid_cursor_is_refused(rota: Rota, send: Task[[int], Any, Any], cursor: Any) -> None:
    await many(send, 3)

    with pytest.raises(InvalidOption, match="cursor"):
        await rota.jobs("pending", cursor=cursor)


async def test_the_cursor_of_another_listing_is_refused(rota: Rota, send: Task[[int], Any, Any]) -> None:
    await many(send, 3)
    await many(send, 3, delay=60)
    await many(send, 3, queue="other")
    cursor = (await rota.jobs("pending", queue="default", limit=1)).cursor

    assert len((await rota.jobs("pending", cursor=cursor)).jobs) == 5, "one queue is part of all"
    others: list[dict[str, Any]] = [
        {"state": "scheduled"},
        {"state": "pending", "queue": "other"},
        {"state": "pending", "order": "newest"},
    ]
    for other in others:
        with pytest.raises(InvalidOption, match="belongs to another listing"):
            await rota.jobs(**other, cursor=cursor)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("state", "dead"),
        ("state", ""),
        ("state", 5),
        ("limit", 0),
        ("limit", 1001),
        ("limit", True),
        ("limit", "5"),
        ("limit", 2.5),
        ("order", "random"),
        ("queue", "a b"),
    ],
)
async def test_a_bad_question_is_refused(rota: Rota, option: str, value: Any) -> None:
    question: dict[str, Any] = {"state": "pending", option: value}

    with pytest.raises(InvalidOption, match=option):
        await rota.jobs(**question)


# --- dead letters that failed in the same way ------------------------------------------------------------------------


async def test_dead_letters_form_groups_by_the_shape_of_their_errors(
    rota: Rota, send: Task[[int], Any, Any], hand: Hand
) -> None:
    await many(send, 6)
    messages = (
        "user 7 of 'a' is gone",
        "user 8 of 'b' is gone",
        "user 9 of 'c' is gone",
        "disk full",
        "disk full",
        "x",
    )
    for message in messages:
        (job,) = await hand.claim(1, queue="default")
        error = encode_error(ErrorRecord(type="ValueError" if message != "x" else "KeyError", message=message))
        await hand.store.report("default", [Failed(job.run, job.claim, "final", "3600000:100", error)])

    groups = await rota.dead.groups(samples=2)

    assert [(group.type, group.message, group.count) for group in groups] == [
        ("ValueError", "user # of '…' is gone", 3),
        ("ValueError", "disk full", 2),
        ("KeyError", "x", 1),
    ]
    assert [numbers(group.samples) for group in groups] == [[2, 1], [4, 3], [5]]
    assert numbers((await rota.jobs("failed", group=groups[0].id)).jobs) == [2, 1, 0]
    await rota.job(str(groups[0].samples[0].ref)).redrive()
    await rota.job(str(groups[2].samples[0].ref)).delete()
    left = {(group.message, group.count) for group in await rota.dead.groups()}
    assert left == {("disk full", 2), ("user # of '…' is gone", 2)}


async def test_addresses_do_not_tell_dead_letters_apart(rota: Rota, send: Task[[int], Any, Any], hand: Hand) -> None:
    await many(send, 4)
    for message in ("no mailbox ann@a.b", "no mailbox ben@c.d", "GET https://a.b/c failed", "GET http://d failed"):
        (job,) = await hand.claim(1, queue="default")
        error = encode_error(ErrorRecord(type="ValueError", message=message))
        await hand.store.report("default", [Failed(job.run, job.claim, "final", "3600000:100", error)])

    groups = await rota.dead.groups()

    assert {(group.message, group.count) for group in groups} == {("no mailbox …", 2), ("GET … failed", 2)}


async def test_messages_beyond_a_thousand_are_grouped_by_their_class_alone(rota: Rota, hand: Hand) -> None:
    @rota.task
    async def send(number: int) -> None: ...

    words = ["".join(chr(103 + int(digit)) for digit in str(number)) for number in range(1_040)]
    await rota.enqueue_many(send.call(n) for n in range(len(words)))
    for start in range(0, len(words), 40):
        jobs = await hand.claim(40, queue="default")
        errors = [encode_error(ErrorRecord(type="E", message=word)) for word in words[start : start + 40]]
        reports = [Failed(j.run, j.claim, "final", "3600000:5000", e) for j, e in zip(jobs, errors, strict=True)]
        await hand.store.report("default", reports)

    groups = await rota.dead.groups(samples=0, limit=1_000)

    assert (groups[0].message, groups[0].count) == ("…", 40)
    assert len(groups) == 1_000
