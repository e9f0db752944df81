"""When a schedule ticks, and what is to be done about ticks that were missed. Pure: the time comes as an argument.

A tick is a moment, in ms since 1970. A rule says which moments those are; nothing here walks over all of them, so that
a year of missed seconds is decided as quickly as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import islice, takewhile
from typing import Any, Final, Literal, cast, get_args
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim, CronSimError

from rota.core.codec import decode_options
from rota.core.history import HOUR_MS
from rota.core.job import MAX_TIME_MS, checked_time_ms
from rota.core.retry import Seconds, to_seconds
from rota.errors import InvalidOption

Misfire = Literal["once", "all", "skip"]
Overlap = Literal["queue", "skip"]

#: Missed ticks that `misfire="all"` runs at most, the latest ones.
MISFIRE_LIMIT: Final = 100
#: A tick that comes no later than this is not missed: a worker was restarted, or the machine was busy.
GRACE_MS: Final = 60_000
#: Ticks of a cron rule that are counted one by one; of more than that are dropped, "so many at least" is said.
COUNT_LIMIT: Final = 1_000
MAX_VERSION: Final = 2**31
_QUARTER: Final = timedelta(minutes=15)
_QUARTER_MS: Final = 900_000
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
_ALIASES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
#: What never comes within 50 years from here never comes at all.
_SOME_TIME: Final = datetime(2024, 1, 1, tzinfo=UTC)


# --- rules -------------------------------------------------------------------------------------------------------


class Cron(msgspec.Struct, frozen=True, tag="cron"):
    """At the times that a cron expression names, by the clock on the wall in a time zone.

    Five fields (minute, hour, day, month, weekday), or six with the second first; or @daily and its kind. Where minute
    and hour are given, as in `30 2 * * *`, every day has that time exactly once: a time that the clocks skip in spring
    comes when they have been changed, one that they show twice in autumn comes the first time. Where one of the two
    begins with a star, as in `*/10 * * * *`, it follows the clock: nothing in an hour that is skipped, and all of it
    again in an hour that comes again.
    """

    expression: str
    tz: str = "UTC"

    def __post_init__(self) -> None:
        _check_expression(self.expression)
        if not isinstance(self.tz, str):
            raise InvalidOption("tz", f"takes the name of a time zone, as 'Europe/Oslo', not {self.tz!r}")
        _zone(self.tz)
        if next(_Search(_fields(self.expression), _SOME_TIME), None) is None:
            raise InvalidOption("cron", f"{self.expression!r} never comes")

    @property
    def has_its_time(self) -> bool:
        """Minute and hour are given, and the clocks of its zone may be changed: each day has them exactly once."""
        fields = _fields(self.expression).split()
        return _zone(self.tz) is not UTC and not any(field.startswith("*") for field in fields[-5:-3])

    def next_after(self, ms: int) -> int | None:
        """The first tick after that moment; None when there is none before 2109."""
        return next(self.all_after(ms), None)

    def all_after(self, ms: int) -> Iterator[int]:
        """The ticks after that moment, one by one, until 2109."""
        zone, fields, is_fixed = _zone(self.tz), _fields(self.expression), self.has_its_time
        # Times in a gap of the clocks come in the minute after it: that minute may have begun.
        start = datetime.fromtimestamp(ms // 1000 - (60 if is_fixed else 0), zone)
        for moment in _Search(fields, start.replace(tzinfo=None) if is_fixed else start):
            tick = int((_once(moment, zone) if is_fixed else moment).timestamp()) * 1000
            if tick > MAX_TIME_MS:
                return
            if tick > ms:  # in the second of two equal hours the search begins with times of the first
                ms = tick
                yield tick

    def latest(self, after: int, until: int) -> int | None:
        """The last tick in (after, until], by halving: a handful of searches, however many ticks there are."""
        found = self.next_after(after)
        if found is None or found > until:
            return None
        step = 1_000
        while until - step > after:  # steps back that grow, as the last tick is rarely far away
            later = self.next_after(until - step)
            if later is not None and later <= until:
                found = later
                break
            step *= 4
        none_after = until
        while found < none_after:
            middle = (found + none_after) // 2
            later = self.next_after(middle)
            if later is not None and later <= until:
                found = later
            else:
                none_after = middle
        return found

    def count(self, after: int, until: int) -> int:
        """How many ticks are in (after, until]; counted no further than COUNT_LIMIT."""
        return sum(1 for _ in islice(ticks(self, after, until), COUNT_LIMIT))

    def __str__(self) -> str:
        return f"{self.expression} {self.tz}"


class Every(msgspec.Struct, frozen=True, tag="every", omit_defaults=True):
    """At equal distances, counted from an anchor: `Every(3600)` is on the hour, by UTC. One second is the shortest."""

    interval: Seconds
    anchor: datetime | None = None

    def __post_init__(self) -> None:
        seconds = to_seconds(self.interval, "every")
        if seconds < 1:
            raise InvalidOption("every", f"{self.interval!r} is less than a second")
        msgspec.structs.force_setattr(self, "interval", round(seconds * 1000) / 1000)
        if self.anchor is not None:
            checked_time_ms(self.anchor, "anchor")
            msgspec.structs.force_setattr(self, "anchor", self.anchor.astimezone(UTC))

    @property
    def interval_ms(self) -> int:
        """The distance."""
        return round(cast("float", self.interval) * 1000)

    @property
    def anchor_ms(self) -> int:
        """One of the ticks; there are others before it."""
        return 0 if self.anchor is None else checked_time_ms(self.anchor, "anchor") % self.interval_ms

    def next_after(self, ms: int) -> int | None:
        """The first tick after that moment; None when there is none before 2109."""
        return next(self.all_after(ms), None)

    def all_after(self, ms: int) -> Iterator[int]:
        """The ticks after that moment, one by one, until 2109."""
        return iter(range(self._at_or_before(ms) + self.interval_ms, MAX_TIME_MS + 1, self.interval_ms))

    def latest(self, after: int, until: int) -> int | None:
        """The last tick in (after, until]."""
        tick = self._at_or_before(until)
        return tick if tick > after else None

    def count(self, after: int, until: int) -> int:
        """How many ticks are in (after, until]."""
        return max(0, (self._at_or_before(until) - self._at_or_before(after)) // self.interval_ms)

    def _at_or_before(self, ms: int) -> int:
        return (ms - self.anchor_ms) // self.interval_ms * self.interval_ms + self.anchor_ms

    def __str__(self) -> str:
        return in_words(self)


ScheduleRule = Cron | Every


def checked_zone(name: str) -> tzinfo:
    """The time zone of that name. Raises InvalidOption."""
    return _zone(name)


def zone_of(rule: ScheduleRule) -> tzinfo:
    """The time zone that its times are told in."""
    return _zone(rule.tz) if isinstance(rule, Cron) else UTC


def ticks(rule: ScheduleRule, after: int, until: int = MAX_TIME_MS) -> Iterator[int]:
    """The ticks in (after, until], one by one: for a caller who knows when to stop."""
    return takewhile(lambda tick: tick <= until, rule.all_after(after))


def count_by_hour(rule: ScheduleRule, after: int, first: int, hours: int) -> list[int]:
    """How many ticks later than `after` each hour has, from hour number `first` on, counted from 1970.

    By arithmetic: a rule that ticks each second takes no longer than one that ticks each day.
    """
    if isinstance(rule, Every):
        ends = [(hour + 1) * HOUR_MS - 1 for hour in range(first, first + hours)]
        return [rule.count(max(after, end - HOUR_MS), end) for end in ends]
    begun = after // _QUARTER_MS
    found = [0] * hours
    for place, count in enumerate(_by_quarter(rule, first, hours)):
        number = first * 4 + place
        if number > begun:
            found[place // 4] += count
        elif number == begun:  # 900 seconds: less than what is counted one by one
            found[place // 4] += rule.count(after, (number + 1) * _QUARTER_MS - 1)
    return found


@lru_cache(maxsize=1_024)
def _by_quarter(rule: Cron, first: int, hours: int) -> tuple[int, ...]:
    """The ticks in each quarter of some hours.

    Every zone is whole quarters of an hour away from UTC, and its clocks are changed between two of them. So minutes
    pass evenly within a quarter, and it has all ticks that the expression has there, or none.
    """
    zone, search = _zone(rule.tz), _Search(_fields(rule.expression), _SOME_TIME)
    per_quarter = [len(search.seconds) * sum(minute // 15 == part for minute in search.minutes) for part in range(4)]

    def shown(clock: datetime) -> int:
        is_day = clock.month in search.months and search.match_day(clock.date())
        return per_quarter[clock.minute // 15] if is_day and clock.hour in search.hours else 0

    found: list[int] = []
    before = datetime.fromtimestamp((first * 4 - 1) * 900, zone).replace(tzinfo=None)
    for number in range(first * 4, (first + hours) * 4):
        moment = datetime.fromtimestamp(number * 900, zone)
        clock, expected = moment.replace(tzinfo=None), before + _QUARTER
        count = 0 if rule.has_its_time and moment.fold else shown(clock)
        if rule.has_its_time and clock > expected and not (shown(clock) and clock.minute in search.minutes):
            # What the clocks have just skipped comes now, in one minute; see `_once`.
            skipped = (expected + _QUARTER * part for part in range((clock - expected) // _QUARTER))
            count += len(search.seconds) if any(map(shown, skipped)) else 0
        found.append(count)
        before = clock
    return tuple(found)


def in_words(rule: ScheduleRule) -> str:
    """The rule as a person says it: “at 03:00 every day, Europe/Oslo”, “every 1 h 30 min”."""
    if isinstance(rule, Every):
        return f"every {_length(rule.interval_ms)}"
    try:
        said = CronSim(_fields(rule.expression), _SOME_TIME).explain()
    except (CronSimError, ValueError, KeyError, IndexError):  # it is only a nicety
        return str(rule)
    return f"{said[:1].lower()}{said[1:]}, {rule.tz}"


# --- decisions ---------------------------------------------------------------------------------------------------


class Decision(msgspec.Struct, frozen=True):
    """What is to be done now: ticks to run, how many are not (of a cron rule: at least), and the one to wait for."""

    run: tuple[int, ...]
    dropped: int
    next_tick: int | None


def decide(rule: ScheduleRule, misfire: Misfire, tick: int, now: int) -> Decision:
    """What becomes of `tick`, for which the schedule has been waiting and which is due, and of those missed since.

    "once" runs the latest of them, "all" the latest hundred, "skip" the latest if it is not late by more than a minute.
    """
    latest = rule.latest(tick, now) or tick
    following = rule.next_after(now)
    run: tuple[int, ...]
    if latest == tick:
        run = () if misfire == "skip" and now - tick > GRACE_MS else (tick,)
        return Decision(run, 1 - len(run), following)
    missed = 2 + rule.count(tick, latest - 1)
    if misfire == "all":
        run = _last(rule, tick, latest, missed)
    elif misfire == "skip" and now - latest > GRACE_MS:
        run = ()
    else:
        run = (latest,)
    return Decision(run, missed - len(run), following)


def _last(rule: ScheduleRule, tick: int, latest: int, missed: int) -> tuple[int, ...]:
    """The latest of the ticks from `tick` to `latest`, in order."""
    if missed <= MISFIRE_LIMIT:
        return (tick, *ticks(rule, tick, latest))
    # Looks at one stretch of time after the other, backwards, the next one twice as long; or half as long, if there
    # are too many ticks in it to be looked at.
    found: list[int] = []
    until, length = latest, 60_000
    while len(found) < MISFIRE_LIMIT and until >= tick:
        after = max(tick - 1, until - length)
        part = list(islice(ticks(rule, after, until), COUNT_LIMIT))
        if len(part) == COUNT_LIMIT:
            length //= 2
            continue
        found = part + found
        until, length = after, 2 * length
    return tuple(found[-MISFIRE_LIMIT:])


# --- what is stored ----------------------------------------------------------------------------------------------


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A recurring rule that enqueues jobs, as it was asked for."""

    name: str
    queue: str
    rule: ScheduleRule
    #: Record of the jobs to come, without its head: options, task, arguments.
    body: bytes
    priority: int = 0
    #: Moment by which a job must have started: "", "+ms" from its tick on, or ms since 1970.
    expiry: str = ""
    misfire: Misfire = "once"
    overlap: Overlap = "queue"
    version: int = 1
    #: It stands in the code of a worker; else it was put at run time.
    is_declared: bool = False

    @property
    def full_name(self) -> str:
        """`queue:name`, which says where it lives."""
        return f"{self.queue}:{self.name}"

    @property
    def task(self) -> str:
        """The name of the task that its jobs call."""
        return self.body.split(b"\n", 2)[1].decode()

    @property
    def lock(self) -> str:
        """The lock of its jobs; "" for none."""
        options = self.body.split(b"\n", 1)[0]
        return decode_options(options).lock if options else ""

    @property
    def arguments(self) -> bytes:
        """The arguments of its jobs, encoded."""
        return self.body.split(b"\n", 2)[2]


class ScheduleState(msgspec.Struct, frozen=True, kw_only=True):
    """What has happened to a schedule, as the scripts write it down."""

    version: int = 1
    #: Grows with every change, so that nobody acts upon what he read before it.
    revision: int = 0
    is_paused: bool = False
    last_tick: int | None = None
    #: Id of the job that the last tick made, and of the one that was last asked for by hand.
    last_id: str = ""
    manual_id: str = ""
    fired: int = 0
    #: Ticks that were missed and not made up for.
    dropped: int = 0
    #: Ticks that made no job because the one before had not ended.
    skipped: int = 0


class _Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """The part of a schedule that is neither its rule nor its job."""

    priority: int = 0
    expiry: str = ""
    misfire: Misfire = "once"
    overlap: Overlap = "queue"
    is_declared: bool = False


class UnreadableSchedule(ValueError):
    """A schedule that this version cannot read: a newer one may have written it."""


_state: Final = msgspec.json.Decoder(ScheduleState)
_rule: Final = msgspec.json.Decoder(ScheduleRule)
_settings: Final = msgspec.json.Decoder(_Settings)


def encode_schedule(schedule: Schedule) -> tuple[bytes, bytes, bytes]:
    """Rule, settings and body, as the scripts keep them behind the state: on a line each, and the body on three."""
    settings = _Settings(**{name: getattr(schedule, name) for name in _Settings.__struct_fields__})
    return msgspec.json.encode(schedule.rule), msgspec.json.encode(settings), schedule.body


def decode_schedule(queue: str, name: str, record: bytes) -> tuple[Schedule, ScheduleState]:
    """A schedule as the store holds it. Raises UnreadableSchedule."""
    try:
        state_line, rule, settings, body = record.split(b"\n", 3)
        state = _state.decode(state_line)
        _, _, _ = body.split(b"\n", 2)
        return (
            Schedule(
                name=name,
                queue=queue,
                rule=_rule.decode(rule),
                body=body,
                version=state.version,
                **msgspec.structs.asdict(_settings.decode(settings)),
            ),
            state,
        )
    except ValueError as error:
        raise UnreadableSchedule(f"schedule {queue}:{name} cannot be read: {error}") from error


def tick_id(name: str, tick: int) -> str:
    """The id of the job that a tick makes: `nightly.20261116T030000Z`. Whoever fires, it is the same."""
    milliseconds = tick % 1000
    fraction = f".{milliseconds:03}" if milliseconds else ""
    return f"{name}.{datetime.fromtimestamp(tick // 1000, UTC):%Y%m%dT%H%M%S}{fraction}Z"


# --- checks ------------------------------------------------------------------------------------------------------


def checked_schedule_name(name: Any) -> str:
    """The name, if it is 1 to 100 of A–Z a–z 0–9 - _ and the dot: it is the beginning of its jobs' ids."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidOption("name", f"{name!r} is not a schedule's name: 1 to 100 of A-Z a-z 0-9 - _ .")
    return name


def checked_rule(rule: Any) -> ScheduleRule:
    """The rule, if it is one."""
    if not isinstance(rule, Cron | Every):
        raise InvalidOption("rule", f"takes Cron(...) or Every(...), not {rule!r}")
    return rule


def checked_misfire(misfire: Any) -> Misfire:
    """One of the three."""
    if misfire not in get_args(Misfire):
        raise InvalidOption("misfire", f"{misfire!r} is none of {', '.join(get_args(Misfire))}")
    return cast("Misfire", misfire)


def checked_overlap(overlap: Any) -> Overlap:
    """One of the two."""
    if overlap not in get_args(Overlap):
        raise InvalidOption("overlap", f"{overlap!r} is none of {', '.join(get_args(Overlap))}")
    return cast("Overlap", overlap)


def checked_version(version: Any) -> int:
    """A whole number from 1."""
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= MAX_VERSION:
        raise InvalidOption("version", f"{version!r} is not a whole number from 1")
    return version


def _check_expression(expression: Any) -> None:
    if not isinstance(expression, str) or len(expression) > 200:
        raise InvalidOption("cron", f"{expression!r} is not a cron expression")
    if expression.startswith("@") and expression.lower() not in _ALIASES:
        raise InvalidOption("cron", f"{expression!r} is none of {', '.join(_ALIASES)}")
    try:
        CronSim(_fields(expression), _SOME_TIME)
    except (CronSimError, ValueError, AssertionError) as error:
        why = str(error).lower() or "it cannot be read"
        raise InvalidOption(
            "cron",
            f"{expression!r}: {why}; it takes minute, hour, day, month and weekday, as in '0 3 * * *' for 3 o'clock",
        ) from error


def _fields(expression: str) -> str:
    return _ALIASES.get(expression.lower(), expression)


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise InvalidOption("tz", f"there is no time zone {name!r}; they are called as 'Europe/Oslo' is") from error


def _once(time: datetime, zone: tzinfo) -> datetime:
    """When a clock on the wall shows that time: the first time, or, where it is skipped, in the minute after the gap.

    cronsim does the same, but not for expressions with seconds.
    """
    moment = time.replace(tzinfo=zone)
    while moment.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != moment.replace(tzinfo=None):
        moment += timedelta(minutes=1)
    return moment


class _Search(CronSim):
    """cronsim, right also where the clocks are changed by half an hour, as on Lord Howe Island, or at midnight.

    It steps by whole hours, and jumps to a minute, as if minutes passed evenly; here each step ends where an hour does.
    And it begins a day at midnight, which the clocks may have skipped; here at the first moment that the day has.
    """

    def advance_month(self) -> None:
        super().advance_month()
        self._settle()

    def advance_day(self) -> bool:
        has_moved = super().advance_day()
        self._settle()
        return has_moved

    @property
    def _is_even(self) -> bool:
        """True by a clock that is never changed."""
        return self.dt.tzinfo is None or self.dt.tzinfo is UTC

    def _settle(self) -> None:
        if not self._is_even:
            self.dt = self.dt.astimezone(UTC).astimezone(self.dt.tzinfo)

    def advance_hour(self) -> bool:
        if self._is_even or self.dt.hour in self.hours:
            return super().advance_hour()
        while self.dt.hour not in self.hours:
            day = self.dt.day
            self.tick(seconds=3600 - self.dt.minute * 60 - self.dt.second)
            if self.dt.day != day:
                break  # to see whether that is a day of the rule
        return True

    def advance_minute(self) -> bool:
        if self._is_even or self.dt.minute in self.minutes:
            return super().advance_minute()
        while self.dt.minute not in self.minutes:
            hour = self.dt.hour
            self.tick(seconds=60 - self.dt.second)
            if self.dt.hour != hour:
                break
        return True


def _length(ms: int) -> str:
    """A duration in words, exactly: 90 min is “1 h 30 min”."""
    rest = timedelta(milliseconds=ms)
    parts: list[str] = []
    for unit, size in (("d", timedelta(days=1)), ("h", timedelta(hours=1)), ("min", timedelta(minutes=1))):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}")
    if rest:
        parts.append(f"{rest.total_seconds():g} s")
    return " ".join(parts)
