"""Schedules from Python: declaring them, putting, pausing, running and removing them at run time."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
import redis

import rota as package
from rota import (
    ConfigurationError,
    Context,
    Cron,
    Depends,
    Every,
    InvalidArguments,
    InvalidOption,
    Rota,
    ScheduleInfo,
    ScheduleNotFound,
    ScheduleOutdated,
    StoreUnsupported,
    Task,
)
from rota.client.session import sessions_of
from tests.client.manual_worker import Hand, calls_of, dump, without_replies
from tests.servers import Server


@pytest.fixture
def report(rota: Rota) -> Task[Any, Any, Any]:
    """A task to be called on a schedule."""

    @rota.task(queue="reports", priority="high", tags=["report"])
    async def report(region: str, days: int = 1) -> str:
        return region * days

    return report


# --- declaring ---------------------------------------------------------------------------------------------------


def test_a_declaration_opens_no_socket_and_keeps_the_task_a_task() -> None:
    rota = Rota("redis://127.0.0.1:1")

    @rota.cron("0 3 * * *", tz="Europe/Oslo", args=["north"], name="nightly", misfire="all", overlap="skip", version=3)
    @rota.every(timedelta(minutes=5), kwargs={"region": "south"}, name="often")
    @rota.task(queue="reports")
    def report(region: str) -> str:
        return region.upper()

    assert report("north") == "NORTH"
    assert isinstance(report, Task)
    found = {declared.name: declared.schedule() for declared in rota.schedules.declared}
    assert found["often"].rule == Every(300)
    nightly = found["nightly"]
    assert (nightly.queue, nightly.rule, nightly.task) == ("reports", Cron("0 3 * * *", "Europe/Oslo"), "report")
    assert (nightly.misfire, nightly.overlap, nightly.version, nightly.is_declared) == ("all", "skip", 3, True)
    assert json.loads(nightly.arguments) == ["north"]


def test_a_plain_function_becomes_a_task_and_gives_the_schedule_its_name() -> None:
    rota = Rota("redis://127.0.0.1:1")

    @rota.every(60)
    async def clean_up(ctx: Context) -> None:
        """Sweeps."""

    assert rota.tasks.get("clean_up") is clean_up
    (declared,) = rota.schedules.declared
    assert (declared.name, declared.task) == ("clean_up", clean_up)


def test_two_schedules_of_one_name_are_an_error_where_the_second_is_declared() -> None:
    rota = Rota("redis://127.0.0.1:1")

    @rota.every(60)
    @rota.task
    def first() -> None: ...

    with pytest.raises(ConfigurationError, match="schedule 'first' is already declared, for task 'first'; give"):
        rota.every(30)(first)
    with pytest.raises(ConfigurationError, match="already declared"):
        rota.every(30, name="first")(rota.task(name="other")(print))
    assert [declared.rule for declared in rota.schedules.declared] == [Every(60)]


def test_a_function_declared_again_replaces_its_schedule() -> None:
    rota = Rota("redis://127.0.0.1:1")

    def cell(interval: int) -> None:
        @rota.every(interval)
        @rota.task
        def in_a_notebook() -> None: ...

    cell(60)
    cell(30)

    assert [declared.rule for declared in rota.schedules.declared] == [Every(30)]


@pytest.mark.parametrize(
    ("verb", "given", "options", "option"),
    [
        ("cron", "0 25 * * *", {}, "cron"),
        ("cron", "soon", {}, "cron"),
        ("cron", "0 3 * * *", {"tz": "Europe/Osla"}, "tz"),
        ("every", 0, {}, "every"),
        ("every", "1 h", {}, "every"),
        ("every", 60, {"name": "a b"}, "name"),
        ("every", 60, {"misfire": "never"}, "misfire"),
        ("every", 60, {"overlap": "never"}, "overlap"),
        ("every", 60, {"version": 0}, "version"),
    ],
)
def test_what_makes_no_sense_is_refused_where_it_is_declared(
    verb: str, given: Any, options: dict[str, Any], option: str
) -> None:
    rota = Rota("redis://127.0.0.1:1")

    with pytest.raises(InvalidOption) as refused:
        getattr(rota, verb)(given, **options)

    assert refused.value.option == option


def test_a_task_whose_name_cannot_be_a_schedules_needs_another() -> None:
    rota = Rota("redis://127.0.0.1:1")
    task = rota.task(name="é/é")(print)

    with pytest.raises(InvalidOption, match="not a schedule name"):
        rota.every(60)(task)
    rota.every(60, name="e")(task)

    assert [declared.name for declared in rota.schedules.declared] == ["e"]


def test_arguments_that_the_task_does_not_take_are_found_before_anything_is_stored() -> None:
    rota = Rota("redis://127.0.0.1:1")

    @rota.task
    def double(number: int) -> int:
        return 2 * number

    with pytest.raises(InvalidArguments, match="number"):
        rota.every(60, args=["not a number"])(double)
    assert len(rota.schedules.declared) == 0


@pytest.mark.parametrize(("args", "kwargs"), [((), {}), ((1, 2), {}), ((), {"count": 1}), ((1,), {"number": 1})])
def test_a_schedule_is_checked_by_name_while_a_type_is_defined_further_down(
    args: tuple[int, ...], kwargs: dict[str, int]
) -> None:
    rota = Rota("redis://127.0.0.1:1")

    def double(ctx: Context, number: NotYetDefined, db: str = Depends(str)) -> int:  # type: ignore[name-defined]  # noqa: F821
        return 2

    with pytest.raises(InvalidArguments):
        rota.every(60, args=args, kwargs=kwargs)(rota.task(double))
    rota.every(60, args=[1])(rota.task(double))
    assert len(rota.schedules.declared) == 1


# --- at run time -------------------------------------------------------------------------------------------------


async def test_a_schedule_is_put_and_shown(on_each: Server, rota: Rota, report: Task[Any, Any, Any]) -> None:
    rule = Cron("30 6 * * 1-5", "America/New_York")

    info = await rota.schedules.put("weekdays", rule, report.call("north", days=2), misfire="skip", overlap="skip")

    assert info == await rota.schedules.get("weekdays") == await rota.schedules.get("reports:weekdays")
    assert [info] == await rota.schedules.list() == await rota.schedules.list(queue="reports")
    assert (info.id, info.task, info.misfire, info.overlap) == ("reports:weekdays", "report", "skip", "skip")
    assert (info.args, info.kwargs) == ((), {"region": "north", "days": 2})
    assert (info.version, info.is_declared, info.is_paused, info.is_orphaned) == (1, False, False, False)
    assert (info.fired, info.dropped, info.skipped, info.last_run, info.last_job) == (0, 0, 0, None, None)
    assert len(info.next_runs) == 5
    assert list(info.next_runs) == sorted(info.next_runs)
    for run in info.next_runs:
        assert (run.hour, run.minute, run.tzname() in ("EST", "EDT"), run.weekday() < 5) == (6, 30, True, True)
    assert info.words == "at 06:30 on Monday through Friday, America/New_York"
    assert "reports" in {queue.name for queue in await rota.queues()}


async def test_run_now_makes_a_job_with_the_options_of_its_task(
    rota: Rota, report: Task[Any, Any, Any], hand: Hand
) -> None:
    await rota.schedules.put("nightly", Cron("0 3 * * *"), report.using(timeout=7).call("north"))

    job = await rota.schedules.run_now("nightly")
    again = await rota.schedules.run_now("nightly")

    record = await job.refresh()
    assert job.id.startswith("reports:nightly.20")
    assert job != again
    assert (record.task, record.options.priority, record.options.tags) == ("report", -10, ("report",))
    assert record.options.timeout_ms == 7000
    await hand.finish(job, "done")
    assert await job.result(5) == "done"


async def test_pause_stops_and_resume_goes_on_from_now(rota: Rota, report: Task[Any, Any, Any]) -> None:
    await rota.schedules.put("nightly", Every(3600), report.call("north"))

    await rota.schedules.pause("nightly")
    await rota.schedules.pause("nightly")
    paused = await rota.schedules.get("nightly")
    await rota.schedules.resume("nightly")
    await rota.schedules.resume("nightly")
    resumed = await rota.schedules.get("nightly")

    assert (paused.is_paused, paused.next_runs) == (True, ())
    assert not resumed.is_paused
    assert timedelta() < resumed.next_runs[0] - datetime.now(UTC) <= timedelta(hours=1)


async def test_remove_forgets_it(rota: Rota, report: Task[Any, Any, Any]) -> None:
    await rota.schedules.put("nightly", Every(3600), report.call("north"))

    await rota.schedules.remove("nightly")

    assert await rota.schedules.list() == []
    for act in (rota.schedules.get, rota.schedules.pause, rota.schedules.run_now, rota.schedules.remove):
        with pytest.raises(ScheduleNotFound, match="there is no schedule nightly") as missing:
            await act("nightly")
        assert missing.value.name == "nightly"


async def test_an_older_version_is_refused_and_changes_nothing(
    rota: Rota, report: Task[Any, Any, Any], raw: redis.Redis
) -> None:
    await rota.schedules.put("nightly", Every(3600), report.call("north"), version=5)
    before = without_replies(raw, rota.namespace)

    with pytest.raises(ScheduleOutdated, match="version 5, which is newer than 4: give version=5 or more") as refused:
        await rota.schedules.put("nightly", Every(60), report.call("north"), version=4)

    assert (refused.value.version, refused.value.stored) == (4, 5)
    assert without_replies(raw, rota.namespace) == before
    assert (await rota.schedules.put("nightly", Every(60), report.call("north"), version=5)).rule == Every(60)


async def test_a_name_in_two_queues_must_be_said_in_full(rota: Rota, report: Task[Any, Any, Any]) -> None:
    await rota.schedules.put("x", Every(3600), report.call("north"))
    await rota.schedules.put("x", Every(60), report.using(queue="other").call("north"))

    with pytest.raises(InvalidOption, match="'x' is the name of other:x, reports:x: use one of these"):
        await rota.schedules.get("x")

    assert (await rota.schedules.get("other:x")).rule == Every(60)
    await rota.schedules.remove("other:x")
    assert (await rota.schedules.get("x")).queue == "reports"


@pytest.mark.parametrize(("options", "option"), [({"id": "mine"}, "id"), ({"delay": 5}, "delay")])
async def test_ids_and_times_are_the_schedules_to_give(
    rota: Rota, report: Task[Any, Any, Any], options: dict[str, Any], option: str
) -> None:
    with pytest.raises(InvalidOption) as refused:
        await rota.schedules.put("x", Every(60), report.using(**options).call("north"))

    assert refused.value.option == option
    assert await rota.schedules.list() == []


@pytest.mark.parametrize(
    ("name", "rule", "options", "option"),
    [
        ("a b", Every(60), {}, "name"),
        ("x", "0 3 * * *", {}, "rule"),
        ("x", Every(60), {"misfire": "?"}, "misfire"),
        ("x", Every(60), {"overlap": "?"}, "overlap"),
        ("x", Every(60), {"version": "1"}, "version"),
    ],
)
async def test_what_makes_no_sense_is_refused_and_nothing_is_stored(
    rota: Rota, report: Task[Any, Any, Any], raw: redis.Redis, name: str, rule: Any, options: Any, option: str
) -> None:
    with pytest.raises(InvalidOption) as refused:
        await rota.schedules.put(name, rule, report.call("north"), **options)

    assert refused.value.option == option
    assert dump(raw, rota.namespace) == {}


async def test_one_that_cannot_be_read_does_not_hide_the_others(
    rota: Rota, report: Task[Any, Any, Any], raw: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    await rota.schedules.put("good", Every(60), report.call("north"))
    raw.hset(sessions_of(rota).keys.queue("reports", "schedules"), "bad", "nonsense")

    assert [info.name for info in await rota.schedules.list()] == ["good"]

    assert "schedule reports:bad cannot be read" in caplog.text
    with pytest.raises(StoreUnsupported, match="schedule reports:bad cannot be read"):
        await rota.schedules.get("bad")
    await rota.schedules.remove("bad")


def test_every_call_has_a_twin_for_code_that_is_not_async(valkey: Server, namespace: str) -> None:
    rota = Rota(valkey.url, namespace=namespace)

    @rota.task
    def report(region: str) -> str:
        return region

    info = rota.schedules.put_sync("nightly", Cron("@daily", "Asia/Kolkata"), report.call("north"))
    assert isinstance(info, ScheduleInfo)
    assert rota.schedules.get_sync("nightly") == info
    rota.schedules.pause_sync("nightly")
    assert rota.schedules.list_sync()[0].is_paused
    assert rota.schedules.forecast_sync().runs == {}
    rota.schedules.resume_sync("nightly")
    assert rota.schedules.run_now_sync("nightly").state_sync() == "pending"
    rota.schedules.remove_sync("nightly")
    assert rota.schedules.list_sync() == []
    rota.close_sync()


def test_the_names_are_public() -> None:
    for name in ("Cron", "Every", "Forecast", "ScheduleInfo", "ScheduleNotFound", "ScheduleOutdated", "Schedules"):
        assert name in package.__all__
        assert getattr(package, name)


# --- forecast ----------------------------------------------------------------------------------------------------

HOUR: Final = timedelta(hours=1)


def moment(ms: int) -> datetime:
    """As a datetime."""
    return datetime.fromtimestamp(ms / 1000, UTC)


async def test_the_forecast_is_grouped_by_hour(rota: Rota, report: Task[Any, Any, Any]) -> None:
    now = moment((await rota.schedules.forecast()).at)
    days = [now + timedelta(days=2, minutes=5), now + timedelta(days=3), now + timedelta(days=30)]
    await rota.enqueue_many(report.using(run_at=day).call("north") for day in days)
    await rota.schedules.put("often", Every(60), report.call("north"))
    await rota.schedules.put("daily", Cron("30 6 * * *", "Asia/Kolkata"), report.call("north"))  # at one, by UTC

    ahead = await rota.schedules.forecast()

    since = moment(ahead.since)
    assert (since.minute, ahead.hours, ahead.uncounted) == (0, 168, 0)
    places = [place for place, due in enumerate(ahead.due["reports"]) if due]
    assert places == [(day - since) // HOUR for day in days[:2]]
    left = 60 - moment(ahead.at).minute
    expected = [60 + ((since + place * HOUR).hour == 1) for place in range(168)]
    assert ahead.runs["reports"][1:] == expected[1:]
    assert left - 1 <= ahead.runs["reports"][0] <= left + 1


async def test_what_is_paused_is_not_ahead_and_what_is_overdue_comes_at_once(
    rota: Rota, report: Task[Any, Any, Any], valkey: Server
) -> None:
    late = await report.using(delay=3600).enqueue("north")
    for name in ("paused", "late"):
        await rota.schedules.put(name, Cron("0 0 1 1 *"), report.using(queue=name).call("north"))
    await rota.schedules.pause("paused")
    with valkey.client() as client:
        client.zadd(sessions_of(rota).keys.queue("late", "schedule_due"), {"late": 1_000})
        client.zadd(sessions_of(rota).keys.queue("reports", "scheduled"), {str(late.ref.run): 1_000 * 256})

    ahead = await rota.schedules.forecast(hours=2)

    assert ahead.runs == {"late": [1, 0]}
    assert ahead.due == {"reports": [1, 0]}


async def test_a_look_ahead_costs_the_store_little(rota: Rota, report: Task[Any, Any, Any], valkey: Server) -> None:
    await rota.enqueue_many(report.using(delay=60 * number + 1).call("north") for number in range(1_000))
    await report.using(queue="idle").enqueue("north")
    await rota.schedules.put("seconds", Cron("* * * * * *"), report.call("north"))
    with valkey.client() as client:
        counted, walked = calls_of(client, "zcount"), calls_of(client, "zrange")
        ahead = await rota.schedules.forecast()
        counts, walks = calls_of(client, "zcount") - counted, calls_of(client, "zrange") - walked

    assert sum(ahead.due["reports"]) == 1_000
    assert ahead.runs["reports"][1:] == [3600] * 167
    # One for each hour of a queue that has any, and one for each queue.
    assert counts == 168 + 2
    assert walks == 0


async def test_one_queue_may_be_asked_for_and_no_more_than_a_week(rota: Rota, report: Task[Any, Any, Any]) -> None:
    for queue in ("reports", "other"):
        await report.using(queue=queue, delay=60).enqueue("north")
        await rota.schedules.put(f"of-{queue}", Every(60), report.using(queue=queue).call("north"))

    ahead = await rota.schedules.forecast(queue="other", hours=24)

    assert (list(ahead.runs), list(ahead.due)) == (["other"], ["other"])
    assert len(ahead.runs["other"]) == 24
    for hours in (0, 169, True, "24"):
        with pytest.raises(InvalidOption, match="hours"):
            await rota.schedules.forecast(hours=hours)  # type: ignore[arg-type]
