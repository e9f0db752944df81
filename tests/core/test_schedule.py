"""Schedules: when they tick, also where clocks are changed, and what is done about ticks that were missed."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Any, Final, get_args
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from rota.core.ids import checked_id
from rota.core.schedule import (
    COUNT_LIMIT,
    GRACE_MS,
    MISFIRE_LIMIT,
    Cron,
    Every,
    Misfire,
    Schedule,
    ScheduleRule,
    UnreadableSchedule,
    checked_misfire,
    checked_overlap,
    checked_rule,
    checked_schedule_name,
    checked_version,
    count_by_hour,
    decide,
    decode_schedule,
    describe_rule,
    encode_schedule,
    tick_id,
    ticks,
)
from rota.errors import InvalidOption

MINUTE: Final = 60_000
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
YEAR: Final = 365 * DAY
ZONES: Final = (
    "UTC",
    "Europe/Oslo",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "America/Sao_Paulo",
    "America/Havana",
    "Africa/Casablanca",
    "Pacific/Apia",
    "Asia/Kathmandu",
)


def ms(text: str, zone: str = "UTC", *, fold: int = 0) -> int:
    """A moment by the clock of a zone: "2026-03-29 02:30"."""
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()) * 1000


def local(tick: int | None, zone: str) -> datetime:
    """That moment by the clock of the zone."""
    assert tick is not None
    return datetime.fromtimestamp(tick / 1000, ZoneInfo(zone))


def shown(rule: Cron, after: int, count: int) -> list[str]:
    """The next ticks by the clock on the wall."""
    return [f"{local(tick, rule.tz):%m-%d %H:%M:%S}" for tick in islice(ticks(rule, after), count)]


# --- clocks that are changed -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "day_before", "at", "comes"),
    [
        ("Europe/Oslo", "2026-03-28 12:00", "30 2", "03-29 03:00:00"),
        ("America/New_York", "2026-03-07 12:00", "30 2", "03-08 03:00:00"),
        ("Australia/Lord_Howe", "2026-10-03 12:00", "15 2", "10-04 02:30:00"),
        ("America/Sao_Paulo", "2018-11-03 12:00", "0 0", "11-04 01:00:00"),
        ("America/Havana", "2026-03-07 12:00", "30 0", "03-08 01:00:00"),
    ],
)
def test_a_time_that_the_clocks_skip_comes_once_when_they_have_been_changed(
    zone: str, day_before: str, at: str, comes: str
) -> None:
    rule = Cron(f"{at} * * *", zone)
    start = ms(day_before, zone)

    assert shown(rule, start, 1) == [comes]
    assert sum(1 for _ in ticks(rule, start, start + 10 * DAY)) == 10
    assert len({local(tick, zone).date() for tick in ticks(rule, start, start + 10 * DAY)}) == 10


@pytest.mark.parametrize(
    ("zone", "day_before", "at"),
    [
        ("Europe/Oslo", "2026-10-24 12:00", "30 2"),
        ("America/New_York", "2026-10-31 12:00", "30 1"),
        ("Australia/Lord_Howe", "2026-04-04 12:00", "45 1"),
        ("America/Sao_Paulo", "2018-02-16 12:00", "30 23"),
        ("America/Havana", "2026-10-31 12:00", "30 0"),
    ],
)
@pytest.mark.parametrize("second", ["", "20 "])
def test_a_time_that_the_clocks_show_twice_comes_once_the_first_time(
    zone: str, day_before: str, at: str, second: str
) -> None:
    rule = Cron(f"{second}{at} * * *", zone)
    start = ms(day_before, zone)
    found = list(ticks(rule, start, start + 10 * DAY))

    assert len(found) == len({local(tick, zone).date() for tick in found}) == 10
    assert all(local(tick, zone).fold == 0 for tick in found)


def test_in_the_second_of_two_equal_hours_the_next_tick_is_tomorrows() -> None:
    rule = Cron("30 2 * * *", "Europe/Oslo")

    for minute in (0, 10, 29, 30, 31, 59):
        second_time = ms(f"2026-10-25 02:{minute:02}", "Europe/Oslo", fold=1)
        assert shown(rule, second_time, 1) == ["10-26 02:30:00"]


def test_two_times_that_the_clocks_skip_come_as_one() -> None:
    assert shown(Cron("15,45 2 * * *", "Europe/Oslo"), ms("2026-03-28 12:00", "Europe/Oslo"), 3) == [
        "03-29 03:00:00",
        "03-30 02:15:00",
        "03-30 02:45:00",
    ]


def test_seconds_of_a_time_that_the_clocks_skip_are_found_from_everywhere() -> None:
    rule = Cron("10,40 30 2 * * *", "Europe/Oslo")
    after = ms("2026-03-29 03:00", "Europe/Oslo")

    assert shown(rule, after - HOUR, 3) == ["03-29 03:00:10", "03-29 03:00:40", "03-30 02:30:10"]
    assert shown(rule, after + 10_000, 1) == ["03-29 03:00:40"]
    assert shown(rule, after + 40_000, 1) == ["03-30 02:30:10"]


@pytest.mark.parametrize("zone", ZONES)
def test_what_follows_the_clock_keeps_its_distance_when_clocks_are_changed(zone: str) -> None:
    rule = Cron("*/10 * * * *", zone)
    start = ms("2026-01-01 00:00", zone)

    # Every shift of these clocks is a multiple of ten minutes: real time has no holes.
    for begin in range(start, start + YEAR, 29 * DAY):
        found = list(islice(ticks(rule, begin), 20))
        assert {later - earlier for earlier, later in pairwise(found)} == {10 * MINUTE}


expressions = st.builds(
    "{} {} {} {} {}".format,
    st.sampled_from(["*", "*/10", "*/7", "0", "15", "40", "59", "5,50", "10-20"]),
    st.sampled_from(["*", "*/2", "0", "1", "2", "3", "23", "1-3", "0,12"]),
    st.sampled_from(["*", "*", "*", "1", "L", "15,28", "29"]),
    st.sampled_from(["*", "*", "*", "3", "4,10,11"]),
    st.sampled_from(["*", "*", "*", "0", "1-5", "SAT", "0#1"]),
)
moments = st.integers(ms("2015-01-01 00:00"), ms("2032-01-01 00:00"))
#: Around the changes of each of these years, where the trouble is.
changes = st.sampled_from(
    [
        (zone, ms(day) + hour * HOUR)
        for zone, *days in (
            ("Europe/Oslo", "2026-03-29 00:00", "2026-10-25 00:00"),
            ("America/New_York", "2026-03-08 06:00", "2026-11-01 05:00"),
            ("Australia/Lord_Howe", "2026-10-03 15:00", "2026-04-04 14:00"),
            ("America/Sao_Paulo", "2018-11-04 02:00", "2018-02-18 01:00"),
            ("America/Havana", "2026-03-08 04:00", "2026-11-01 04:00"),
            ("Pacific/Apia", "2011-12-30 09:00", "2012-04-01 00:00"),
            ("UTC", "2026-01-01 00:00"),
            ("Asia/Kolkata", "2026-02-28 18:00"),
        )
        for day in days
        for hour in range(-3, 4)
    ]
)


def matches(expression: str, moment: datetime) -> bool:
    """True when the clock on the wall shows a time of the expression: as if it were one that is never changed."""
    at = int(moment.replace(tzinfo=UTC).timestamp()) * 1000
    return Cron(expression).next_after(at - 1_000) == at


@given(expressions, changes)
@example("* */2 * * 0", ("America/Sao_Paulo", ms("2018-11-04 00:00")))
def test_what_follows_the_clock_comes_whenever_the_clock_shows_it(expression: str, change: tuple[str, int]) -> None:
    zone, around = change
    minute, hour, *_ = expression.split()
    assume(minute.startswith("*") or hour.startswith("*"))
    rule = Cron(expression, zone)

    wanted = [at for at in range(around + MINUTE, around + 4 * HOUR, MINUTE) if matches(expression, local(at, zone))]

    assert list(ticks(rule, around, around + 4 * HOUR - 1)) == wanted


@given(expressions, changes)
def test_what_has_its_time_comes_once_for_each_time_that_a_day_has(expression: str, change: tuple[str, int]) -> None:
    zone, around = change
    minute, hour, *_ = expression.split()
    assume(not minute.startswith("*") and not hour.startswith("*"))
    rule = Cron(expression, zone)
    found = list(ticks(rule, around - DAY, around + DAY))

    for tick in found:
        seen = local(tick, zone)
        assert seen.fold == 0
        # It is the time asked for, or the first one after the clocks were put forward.
        before = local(tick - 1_000, zone)
        was_changed = before.utcoffset() != seen.utcoffset()
        assert matches(expression, seen) or was_changed
    assert found == sorted(set(found))


@given(expressions, st.sampled_from(ZONES), moments)
def test_the_next_tick_is_later_and_there_is_none_between(expression: str, zone: str, start: int) -> None:
    rule = Cron(expression, zone)
    tick = rule.next_after(start)
    assume(tick is not None)
    assert tick is not None

    assert tick > start
    assert tick % 1000 == 0
    for between in (start, (start + tick) // 2, tick - 1):
        assert rule.next_after(between) == tick
    assert rule.latest(start, tick) == tick
    assert rule.latest(start, tick - 1) is None


# --- counting by the hour ----------------------------------------------------------------------------------------


def counted(rule: ScheduleRule, after: int, first: int, hours: int) -> list[int]:
    """One by one."""
    found = [0] * hours
    for tick in ticks(rule, max(after, first * HOUR - 1), (first + hours) * HOUR - 1):
        found[tick // HOUR - first] += 1
    return found


@given(expressions, changes, st.integers(-2 * HOUR, 2 * HOUR))
@example("30 2 * * *", ("Europe/Oslo", ms("2026-03-29 00:00")), 0)
@example("0 2,3 * * *", ("Europe/Oslo", ms("2026-03-29 00:00")), 0)
@example("15,45 2 * * *", ("Europe/Oslo", ms("2026-10-25 00:00")), 0)
@example("0 0 * * *", ("America/Sao_Paulo", ms("2018-11-04 02:00")), 0)
@example("10 2 * * *", ("Australia/Lord_Howe", ms("2026-10-03 15:00")), 0)
@example("7 * * * *", ("Asia/Kolkata", ms("2026-02-28 18:00")), 1_234_567)
def test_ticks_are_counted_by_the_hour_as_they_come(expression: str, change: tuple[str, int], after: int) -> None:
    zone, around = change
    rule = Cron(expression, zone)
    first = around // HOUR - 4

    assert count_by_hour(rule, around + after, first, 12) == counted(rule, around + after, first, 12)


@pytest.mark.parametrize(
    "rule",
    [
        Cron("*/7 30 2 * * *", "Europe/Oslo"),  # seconds of a time that the clocks skip
        Cron("5,10,50 */20 1-4 * * *", "Europe/Oslo"),
        Every(7.5),
        Every(5400, datetime(2026, 3, 29, 0, 10, tzinfo=UTC)),
    ],
    ids=str,
)
def test_ticks_of_many_kinds_are_counted_by_the_hour(rule: ScheduleRule) -> None:
    around = ms("2026-03-29 00:00")

    assert count_by_hour(rule, around + 123, around // HOUR, 6) == counted(rule, around + 123, around // HOUR, 6)


@pytest.mark.parametrize("rule", [Cron("* * * * * *", "Asia/Kolkata"), Cron("* * * * * *"), Every(1)], ids=str)
def test_a_week_of_seconds_is_counted_without_walking_through_it(rule: ScheduleRule) -> None:
    now = ms("2026-06-01 10:20")
    started = time.process_time()

    found = count_by_hour(rule, now, now // HOUR, 7 * 24)

    assert time.process_time() - started < 1
    assert found == [40 * 60 - 1, *[3600] * 167]


# --- equal distances ---------------------------------------------------------------------------------------------

everys = st.builds(
    Every,
    st.one_of(st.integers(1, 100_000), st.floats(1, 1e6).map(lambda s: round(s, 3))),
    st.none() | st.datetimes(datetime(2000, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)


@given(everys, moments, st.integers(0, 1_000_000))
def test_equal_distances_are_arithmetic(rule: Every, start: int, length: int) -> None:
    tick = rule.next_after(start)
    assert tick is not None

    assert 0 < tick - start <= rule.interval_ms
    assert rule.next_after(tick) == tick + rule.interval_ms
    found = list(ticks(rule, start, start + length))
    assert len(found) == rule.count(start, start + length)
    assert rule.latest(start, start + length) == (found[-1] if found else None)


def test_an_anchor_is_a_tick() -> None:
    anchor = datetime(2026, 11, 16, 3, 7, 12, tzinfo=ZoneInfo("Europe/Oslo"))
    rule = Every(timedelta(hours=5), anchor)
    at = int(anchor.timestamp()) * 1000

    assert rule.next_after(at - 1) == at
    assert rule.next_after(at - 50 * HOUR - 1) == at - 50 * HOUR
    assert Every(3600).next_after(ms("2026-11-16 03:07")) == ms("2026-11-16 04:00")


# --- missed ticks ------------------------------------------------------------------------------------------------

rules: st.SearchStrategy[ScheduleRule] = everys | st.builds(
    Cron,
    st.sampled_from(["* * * * *", "*/10 * * * *", "30 2 * * *", "0 */6 * * *", "0 9 * * 1-5", "*/20 * * * * *"]),
    st.sampled_from(ZONES),
)


@given(rules, st.sampled_from(get_args(Misfire)), moments, st.integers(0, 40), st.integers(0, 3 * DAY))
def test_every_missed_tick_is_run_or_said_to_be_dropped(
    rule: ScheduleRule, misfire: Misfire, start: int, count: int, beyond: int
) -> None:
    due = list(islice(ticks(rule, start), count + 1))
    tick, now = due[0], due[-1] + beyond
    due += islice(ticks(rule, due[-1], now), 300)
    assume(len(due) < 300)

    decision = decide(rule, misfire, tick, now)

    assert set(decision.run) <= set(due)
    assert len(decision.run) + decision.dropped == len(due)
    assert decision.next_tick == rule.next_after(now)
    if misfire == "once":
        assert decision.run == (due[-1],)
    elif misfire == "all":
        assert decision.run == tuple(due[-MISFIRE_LIMIT:])
    else:
        assert decision.run == ((due[-1],) if now - due[-1] <= GRACE_MS else ())


@pytest.mark.parametrize(
    "rule", [Every(1), Cron("* * * * * *"), Cron("* * * * * *", "Europe/Oslo"), Cron("* * * * *", "Asia/Kolkata")]
)
@pytest.mark.parametrize("misfire", get_args(Misfire))
def test_a_year_of_missed_ticks_is_decided_at_once(rule: ScheduleRule, misfire: Misfire) -> None:
    tick = rule.next_after(ms("2026-01-01 00:00"))
    assert tick is not None
    now = tick + YEAR + 500

    began = time.perf_counter()
    decision = decide(rule, misfire, tick, now)
    took = time.perf_counter() - began

    assert took < 2, "it must not walk over all of them"
    latest = rule.latest(tick, now)
    assert decision.run[-1] == latest
    assert len(decision.run) == (MISFIRE_LIMIT if misfire == "all" else 1)
    assert decision.dropped + len(decision.run) >= COUNT_LIMIT
    if isinstance(rule, Every):
        assert decision.dropped + len(decision.run) == YEAR // 1000 + 1


def test_rare_ticks_are_found_from_far_away() -> None:
    rule = Cron("0 0 29 2 *", "Europe/Oslo")
    assert shown(rule, ms("2025-01-01 00:00"), 2) == ["02-29 00:00:00"] * 2

    found = rule.latest(ms("2001-01-01 00:00"), ms("2027-05-01 00:00"))

    assert local(found, "Europe/Oslo").isoformat() == "2024-02-29T00:00:00+01:00"


def test_a_stored_tick_that_is_none_of_the_rules_is_run_all_the_same() -> None:
    """As when a country has changed its clocks since."""
    decision = decide(Cron("0 3 * * *"), "once", ms("2026-01-01 02:00"), ms("2026-01-01 02:00"))

    assert decision == msgspec.convert(
        {"run": [ms("2026-01-01 02:00")], "dropped": 0, "next_tick": ms("2026-01-01 03:00")}, type(decision)
    )


# --- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("", "wrong number of fields"),
        ("0 3 * *", "wrong number of fields"),
        ("61 3 * * *", "bad minute"),
        ("0 25 * * *", "bad hour"),
        ("0 3 32 * *", "bad day-of-month"),
        ("0 3 * 13 *", "bad month"),
        ("0 3 * * 8", "bad day-of-week"),
        ("0 0 31 2 *", "bad day-of-month"),
        ("0 0 * 2 0#5 2099", "bad"),
        ("@sometimes", "is none of @hourly"),
        ("a b c d e", "bad minute"),
        ("*/0 * * * *", "bad minute"),
        ("9" * 5000 + " * * * *", "not a cron expression"),
        (None, "not a cron expression"),
        (7, "not a cron expression"),
    ],
)
def test_a_cron_expression_that_makes_no_sense_is_refused_with_the_reason(expression: Any, why: str) -> None:
    with pytest.raises(InvalidOption, match=why) as refused:
        Cron(expression)
    assert refused.value.option == "cron"


@pytest.mark.parametrize(
    "zone", ["Europe/Osla", "", "Europe", "../etc/passwd", "/etc/localtime", "Mars/Olympus", None, 1, "a\0b", ["UTC"]]
)
def test_a_time_zone_that_does_not_exist_is_refused(zone: Any) -> None:
    with pytest.raises(InvalidOption, match="time zone") as refused:
        Cron("0 3 * * *", zone)
    assert refused.value.option == "tz"


@pytest.mark.parametrize("interval", [0, 0.5, -1, True, "1 h", None, float("nan"), float("inf"), timedelta(days=400)])
def test_an_interval_that_makes_no_sense_is_refused(interval: Any) -> None:
    with pytest.raises(InvalidOption) as refused:
        Every(interval)
    assert refused.value.option == "every"


def test_an_anchor_needs_a_time_zone() -> None:
    with pytest.raises(InvalidOption, match="no time zone"):
        Every(60, datetime(2026, 1, 1))  # noqa: DTZ001


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (checked_schedule_name, "a.b-C_1", ["", "a b", "a:b", "x" * 101, "é", None, 1]),
        (checked_misfire, "all", ["twice", "", None]),
        (checked_overlap, "skip", ["wait", "", None]),
        (checked_version, 7, [0, -1, True, 1.5, "1", None]),
        (checked_rule, Every(60), ["0 3 * * *", 60, None]),
    ],
)
def test_what_a_schedule_is_made_of_is_checked(check: Any, good: Any, bad: list[Any]) -> None:
    assert check(good) == good
    for value in bad:
        with pytest.raises(InvalidOption):
            check(value)


# --- words and records -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Cron("0 3 * * *", "Europe/Oslo"), "at 03:00 every day, Europe/Oslo"),
        (Cron("@hourly"), "at the start of every hour, UTC"),
        (Every(5400), "every 1 h 30 min"),
        (Every(timedelta(days=2, seconds=1.5)), "every 2 d 1.5 s"),
    ],
)
def test_a_rule_is_said_in_words(rule: ScheduleRule, words: str) -> None:
    assert describe_rule(rule) == words


@given(st.from_regex(r"[A-Za-z0-9._-]{1,100}", fullmatch=True), st.integers(0, 2**42 - 1), st.integers(1, 2**40))
def test_ids_of_ticks_are_ids_and_tell_the_ticks_apart(name: str, tick: int, later: int) -> None:
    assert checked_id(tick_id(name, tick))
    assume(tick + later < 2**42)
    assert tick_id(name, tick) < tick_id(name, tick + later) or tick % 1000 or (tick + later) % 1000
    assert tick_id(name, tick) != tick_id(name, tick + later)


def test_an_id_says_which_tick_it_was() -> None:
    assert tick_id("nightly", ms("2026-11-16 03:00")) == "nightly.20261116T030000Z"
    assert tick_id("often", ms("2026-11-16 03:00") + 1500) == "often.20261116T030001.500Z"


@given(
    rules,
    st.binary(max_size=20).map(lambda tail: b"\nsend\n" + tail),
    st.sampled_from(get_args(Misfire)),
    st.booleans(),
)
def test_a_schedule_is_read_as_it_was_written(
    rule: ScheduleRule, body: bytes, misfire: Misfire, is_declared: bool
) -> None:
    schedule = Schedule(
        name="n",
        queue="q",
        rule=rule,
        body=body,
        misfire=misfire,
        priority=-5,
        expiry="+10",
        version=3,
        is_declared=is_declared,
    )

    record = b"\n".join([b'{"version":3,"revision":7,"last_tick":1763262000000}', *encode_schedule(schedule)])

    found, state = decode_schedule("q", "n", record)
    assert found == schedule
    assert (state.version, state.revision, state.last_tick) == (3, 7, 1763262000000)
    assert (found.task, found.full_name) == ("send", "q:n")


@given(st.binary(max_size=80) | st.just(b'{"version":1}\n{"type":"lunar"}\n{}\n\nt\n[]'))
def test_a_record_that_cannot_be_read_is_said_to_be_unreadable(record: bytes) -> None:
    with pytest.raises(UnreadableSchedule, match="schedule q:n cannot be read"):
        decode_schedule("q", "n", record)
