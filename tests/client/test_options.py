"""Options of a job: each one is stored as given, or refused with its name; a refusal leaves nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

import pytest
import redis

from rota import (
    Exponential,
    Fixed,
    IdInUse,
    Ignore,
    InvalidOption,
    Job,
    JobState,
    Keep,
    Reject,
    Retry,
    Rota,
    Rule,
    Steps,
)
from rota.core.job_index_terms import make_terms
from rota.core.job_options import Options
from tests.client.manual_worker import Hand, dump, job_keys

NOW = datetime.now(UTC)


def any_span(**parts: float) -> Any:
    """Programs without a type checker may pass one, because other options take a timedelta."""
    return timedelta(**parts)


class NoZone(tzinfo):
    """A time zone that does not know its offset."""

    def utcoffset(self, dt: datetime | None) -> None:
        return None


async def stored(job: Job[Any]) -> Options:
    return (await job.refresh()).options


GOOD: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"priority": "critical"}, {"priority": -15}),
    ({"priority": "high"}, {"priority": -10}),
    ({"priority": "medium"}, {"priority": -5}),
    ({"priority": "low"}, {"priority": 10}),
    ({"priority": -100}, {"priority": -100}),
    ({"priority": 100}, {"priority": 100}),
    ({"timeout": 0.25}, {"timeout_ms": 250}),
    ({"timeout": timedelta(days=1)}, {"timeout_ms": 86_400_000}),
    ({"timeout": None, "progress_timeout": 5}, {"timeout_ms": None, "progress_timeout_ms": 5_000}),
    ({"retry": 5}, {"retry": Retry(attempts=5)}),
    ({"retry": Retry(attempts=1)}, {"retry": Retry(attempts=1)}),
    ({"retry": Retry(backoff=[1, 2.5])}, {"retry": Retry(backoff=Steps((1, 2.5)))}),
    ({"retry": Retry(backoff=(1, any_span(minutes=1)))}, {"retry": Retry(backoff=Steps((1, 60)))}),
    ({"retry": Retry(backoff=Fixed(any_span(seconds=3)))}, {"retry": Retry(backoff=Fixed(3))}),
    (
        {"retry": Retry(backoff=Exponential(base=any_span(seconds=1), max=any_span(hours=1), jitter=0))},
        {"retry": Retry(backoff=Exponential(base=1, max=3600, jitter=0))},
    ),
    (
        {"retry": Retry(on={"OSError": Rule(attempts=9, backoff=[1, 2])})},
        {"retry": Retry(on={"OSError": Rule(attempts=9, backoff=Steps((1, 2)))})},
    ),
    ({"max_stalls": 0}, {"max_stalls": 0}),
    ({"at_most_once": True}, {"at_most_once": True}),
    ({"expires": 60}, {"expires_ms": 60_000}),
    ({"expires": NOW + timedelta(hours=1)}, {"expires_at": round((NOW.timestamp() + 3600) * 1000)}),
    ({"keep": 5}, {"keep": Keep(finished=5)}),
    ({"keep": timedelta(days=2)}, {"keep": Keep(finished=172_800)}),
    ({"keep": Keep(finished=0, failed_count=0)}, {"keep": Keep(finished=0, failed_count=0)}),
    ({"keep": Keep(failed=any_span(days=1))}, {"keep": Keep(failed=86_400)}),
    ({"tags": ["a", "b", "a"]}, {"tags": ("a", "b")}),
    ({"tags": (f"t{n}" for n in range(20))}, {"tags": tuple(f"t{n}" for n in range(20))}),
    ({"tags": ["ä" * 64]}, {"tags": ("ä" * 64,)}),
    ({"meta": {"a": [1, None, {"b": "ü"}]}}, {"meta": {"a": [1, None, {"b": "ü"}]}}),
    ({"meta": {"a": "x" * (4096 - len('{"a":""}'))}}, {"meta": {"a": "x" * (4096 - len('{"a":""}'))}}),
    ({}, {}),
]


@pytest.mark.parametrize(("given", "expected"), GOOD, ids=[f"{'-'.join(GOOD[n][0])}-{n}" for n in range(len(GOOD))])
async def test_an_option_is_stored_as_given(rota: Rota, given: dict[str, Any], expected: dict[str, Any]) -> None:
    @rota.task
    async def send() -> None: ...

    job = await send.using(**given).enqueue()

    # What it is found by is stored with it.
    assert await stored(job) == Options(**expected, terms=make_terms(expected.get("tags", ()), {}))


BAD: list[tuple[str, Any]] = [
    *(("id", value) for value in ("a b", "a:b", "a@b", "x" * 129, "ä", "a\n", 5, "", "a/b")),
    *(("queue", value) for value in ("a b", "a:b", "x" * 65, "ä", "{q}", "~", 5, "", "mail-fail", "-fail")),
    *(("priority", value) for value in ("urgent", "HIGH", 101, -101, 1.5, True, [])),
    *(("delay", value) for value in (-1, "5", float("nan"), float("inf"), 367 * 86_400, timedelta(-1), True, [1])),
    *(("run_at", value) for value in (NOW.replace(tzinfo=None), "2030-01-01", 5, NOW.replace(tzinfo=NoZone()))),
    ("run_at", datetime(2110, 1, 1, tzinfo=UTC)),
    ("run_at", datetime(1969, 1, 1, tzinfo=UTC)),
    ("run_at", datetime.max.replace(tzinfo=timezone(timedelta(hours=-14)))),
    ("run_at", datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))),
    *(("timeout", value) for value in (0, -1, 0.0001, "5", 367 * 86_400, True, None)),
    *(("progress_timeout", value) for value in (0, -1, "5", True)),
    *(("retry", value) for value in (0, -1, True, 1.5, "3", [1, 2], 10**7)),
    *(("max_stalls", value) for value in (-1, 1.5, True, "3", 10**7)),
    *(("at_most_once", value) for value in (1, "yes")),
    *(("expires", value) for value in (-1, "5", NOW.replace(tzinfo=None), True, 367 * 86_400)),
    *(("keep", value) for value in (-1, "5", [], 367 * 86_400, True)),
    *(
        ("tags", value)
        for value in ("a", 5, [5], [""], ["x" * 65], ["a\nb"], [[]], [f"{n}" for n in range(21)], [None])
    ),
    *(("meta", value) for value in (5, [], "a", {"a": object()}, {"a": "x" * 4096}, {"\ud800": 1}, {(1, 2): 3})),
    *(("on_same_id", value) for value in ("ignore", Ignore, 5)),
]


@pytest.mark.parametrize(("option", "value"), BAD, ids=[f"{BAD[n][0]}-{n}" for n in range(len(BAD))])
async def test_a_bad_option_is_refused_by_name_and_leaves_nothing(
    rota: Rota, raw: redis.Redis, namespace: str, option: str, value: Any
) -> None:
    @rota.task
    async def send() -> None: ...

    with pytest.raises(InvalidOption) as refusal:
        await send.using(**{option: value}).enqueue()

    assert refusal.value.option == option
    assert option in str(refusal.value)
    assert dump(raw, namespace) == {}


BAD_POLICIES: list[tuple[Any, dict[str, Any]]] = [
    *((Retry, {"attempts": value}) for value in (0, True, 2.5, "3")),
    *((Retry, {"backoff": value}) for value in (5, [], ["a"], "12", [-1], None)),
    *((Retry, {"on": value}) for value in ([], {"A": 5}, {5: Rule()})),
    *((Rule, {"attempts": value}) for value in (0, "3", True)),
    *((Rule, {"backoff": value}) for value in (5, [])),
    *((Fixed, {"delay": value}) for value in (-1, "x", True)),
    *((Fixed, {"delay": 1, "jitter": value}) for value in (-1, "x", 11, None)),
    *((Exponential, {name: value}) for name in ("base", "max") for value in (-1, float("nan"), "x")),
    (Exponential, {"jitter": 11}),
    *((Steps, {"delays": value}) for value in ((), ("x",), 5)),
    *((Keep, {name: value}) for name in ("finished", "failed") for value in (-1, "x", None)),
    *((Keep, {name: value}) for name in ("finished_count", "failed_count") for value in (-1, 1.5, "x", True)),
]


@pytest.mark.parametrize(
    ("policy", "values"), BAD_POLICIES, ids=[f"{BAD_POLICIES[n][0].__name__}-{n}" for n in range(len(BAD_POLICIES))]
)
def test_a_bad_policy_is_refused_where_it_is_written(policy: Any, values: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        policy(**values)


def test_there_is_no_other_option(rota: Rota) -> None:
    @rota.task
    async def send() -> None: ...

    with pytest.raises(TypeError, match="prioritee"):
        send.using(prioritee=1)  # pyright: ignore[reportCallIssue]
    with pytest.raises(InvalidOption, match="prioritee: unknown option; the options are at_most_once, expires"):
        rota.queue("q", defaults={"prioritee": 1})


def test_delay_and_run_at_exclude_each_other(rota: Rota) -> None:
    @rota.task
    async def send() -> None: ...

    with pytest.raises(InvalidOption, match="delay or run_at, not both"):
        send.using(delay=1, run_at=NOW)


async def test_what_was_given_may_be_changed_afterwards_without_effect(rota: Rota) -> None:
    @rota.task
    async def send() -> None: ...

    meta, tags = {"a": 1}, ["x"]
    prepared = send.using(meta=meta, tags=tags)
    meta["a"], meta["b"] = 2, 3
    tags.append("y")

    options = await stored(await prepared.enqueue())

    assert (options.meta, options.tags) == ({"a": 1}, ("x",))


# --- when ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("on_each")
async def test_a_job_never_starts_before_its_time(rota: Rota, hand: Hand) -> None:
    @rota.task
    async def send() -> None: ...

    far = datetime(2109, 1, 1, tzinfo=UTC)
    late = await send.using(delay=timedelta(hours=1)).enqueue()
    latest = await send.using(run_at=far).enqueue()
    at_once = await send.using(delay=0).enqueue()
    overdue = await send.using(run_at=NOW - timedelta(days=1)).enqueue()
    same_moment = await send.using(run_at=NOW.astimezone(timezone(timedelta(hours=9)))).enqueue()

    assert await late.state() == await latest.state() == JobState.SCHEDULED
    record = await late.refresh()
    assert record.due_at == record.enqueued_at + 3_600_000
    assert (await latest.refresh()).due_at == far.timestamp() * 1000
    assert (await same_moment.refresh()).due_at == round(NOW.timestamp() * 1000)
    assert [job.run for job in await hand.claim(10, queue="default")] == [overdue.run, same_moment.run, at_once.run]


async def test_each_priority_is_served_before_the_next(rota: Rota, hand: Hand) -> None:
    @rota.task
    async def send() -> None: ...

    order = (100, "low", 1, "normal", "medium", "high", "critical", -100)
    jobs = [await send.using(priority=priority).enqueue() for priority in order]

    claimed = await hand.claim(20, queue="default")
    assert [job.run for job in claimed] == [job.run for job in reversed(jobs)]


# --- ids -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", ["a", "A-Z_0.9", "x" * 128, ".", "000000001-00000000", "-", "000000001"])
async def test_an_id_names_its_job(rota: Rota, hand: Hand, id: str) -> None:
    @rota.task(queue="mail")
    async def send() -> None: ...

    job = await send.using(id=id).enqueue()

    assert job.id == f"mail:{id}"
    assert (await rota.job(f"mail:{id}").refresh()).ref == job.ref
    await hand.finish(job)
    assert await rota.job(job.id).state() == JobState.COMPLETED


async def test_generated_ids_differ_and_sort_by_age(rota: Rota) -> None:
    @rota.task
    async def send() -> None: ...

    ids = [(await send.enqueue()).id for _ in range(50)]

    assert ids == sorted(set(ids))


@pytest.mark.usefixtures("on_each")
async def test_an_id_whose_run_has_not_ended_is_rejected(
    rota: Rota, hand: Hand, raw: redis.Redis, namespace: str
) -> None:
    @rota.task
    async def send(text: str) -> None: ...

    first = await send.using(id="x").enqueue("first")
    before = job_keys(raw, namespace)
    for again in (send.using(id="x", on_same_id=Reject()), send.using(id="x", on_same_id=Reject(), delay=5)):
        with pytest.raises(IdInUse, match=f"default:x already has an unfinished run.*{first.run}") as refusal:
            await again.enqueue("second")
        assert (refusal.value.job_id, refusal.value.run) == ("default:x", first.run)
    after = job_keys(raw, namespace)
    assert {key: value for key, value in after.items() if ":last_reply" not in key} == {
        key: value for key, value in before.items() if ":last_reply" not in key
    }
    claimed = await hand.take(first)
    with pytest.raises(IdInUse):
        await send.using(id="x", on_same_id=Reject()).enqueue("third")
    await hand.complete(claimed)
    fresh = await send.using(id="x").enqueue("fourth")
    assert (fresh.id, fresh.run != first.run) == (first.id, True)


async def test_ignore_returns_the_run_that_is_there_and_changes_nothing(rota: Rota, hand: Hand) -> None:
    @rota.task
    async def send(text: str) -> str: ...

    again = send.using(id="x", on_same_id=Ignore(), priority="high")
    first = await again.enqueue("first")
    second = await again.enqueue("second")

    assert (first.is_new, second.is_new, second) == (True, False, first)
    record = await second.refresh()
    assert (record.arguments, record.options.priority) == (b'["first"]', -10)
    await hand.finish(first, "done")
    assert await second.result(timeout=5) == "done"
    third = await again.enqueue("third")
    assert (third.is_new, third == first) == (True, False)


async def test_the_same_id_in_two_queues_is_two_jobs(rota: Rota) -> None:
    @rota.task
    async def send() -> None: ...

    one = await send.using(id="x", queue="a").enqueue()
    other = await send.using(id="x", queue="b").enqueue()

    assert (one.id, other.id) == ("a:x", "b:x")
    await one.cancel()
    assert await other.state() == JobState.PENDING
