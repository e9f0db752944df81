"""Schedules: when a rule is due, and what to do about missed ticks.

A tick is one due time of a schedule, in ms since 1970. No function walks over all ticks of a period, so a year of
missed seconds is decided as quickly as one.
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

from rota.core.job_options import MAX_TIME_MS, checked_time_ms
from rota.core.job_record_codec import decode_options
from rota.core.metric_series import HOUR_MS
from rota.core.retry import Seconds, to_seconds
from rota.errors import InvalidOption

Misfire = Literal["once", "all", "skip"]
Overlap = Literal["queue", "skip"]

#: `misfire="all"` runs at most this many missed ticks, the latest ones.
MISFIRE_LIMIT: Final = 100
#: A tick fired within this time is not missed: a worker was restarted, or the machine was busy.
GRACE_MS: Final = 60_000
#: Ticks of a cron rule that are counted; beyond that the number of dropped ticks is a lower bound.
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
#: A cron expression without a tick in the 50 years from here is refused.
_SEARCH_START: Final = datetime(2024, 1, 1, tzinfo=UTC)


# --- rules -------------------------------------------------------------------------------------------------------


class Cron(msgspec.Struct, frozen=True, tag="cron"):
    """Ticks at the times of a cron expression, in local time of a time zone.

    Five fields (minute, hour, day, month, weekday), or six with the second first; or an alias such as @daily. With a
    fixed minute and hour, as in `30 2 * * *`, there is exactly one tick per day: a time skipped by daylight saving
    ticks right after the gap, a repeated time ticks the first time. If one of the two begins with a star, as in
    `*/10 * * * *`, ticks follow the clock: none in a skipped hour, and all of them again in a repeated hour.
    """

    expression: str
    tz: str = "UTC"

    def __post_init__(self) -> None:
        _check_expression(self.expression)
        if not isinstance(self.tz, str):
            raise InvalidOption("tz", f"takes the name of a time zone such as 'Europe/Oslo', not {self.tz!r}")
        _zone(self.tz)
        if next(_CronSearch(_fields(self.expression), _SEARCH_START), None) is None:
            raise InvalidOption("cron", f"{self.expression!r} is never due")

    @property
    def is_fixed_time(self) -> bool:
        """Whether minute and hour are fixed, in a zone with daylight saving: exactly one tick per day."""
        fields = _fields(self.expression).split()
        return _zone(self.tz) is not UTC and not any(field.startswith("*") for field in fields[-5:-3])

    def next_after(self, ms: int) -> int | None:
        """Returns the first tick after that time; None if there is none before 2109."""
        return next(self.all_after(ms), None)

    def all_after(self, ms: int) -> Iterator[int]:
        """Yields the ticks after that time, until 2109."""
        zone, fields, is_fixed = _zone(self.tz), _fields(self.expression), self.is_fixed_time
        # Skipped times tick in the minute after the gap, which may have begun.
        start = datetime.fromtimestamp(ms // 1000 - (60 if is_fixed else 0), zone)
        for moment in _CronSearch(fields, start.replace(tzinfo=None) if is_fixed else start):
            tick = int((_first_occurrence(moment, zone) if is_fixed else moment).timestamp()) * 1000
            if tick > MAX_TIME_MS:
                return
            if tick > ms:  # in a repeated hour the search starts with the ticks of its first occurrence
                ms = tick
                yield tick

    def latest(self, after: int, until: int) -> int | None:
        """Returns the last tick in (after, until], by bisection: few searches, however many ticks there are."""
        found = self.next_after(after)
        if found is None or found > until:
            return None
        step = 1_000
        while until - step > after:  # growing steps back, because the last tick is rarely far away
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
        """Returns the number of ticks in (after, until], at most COUNT_LIMIT."""
        return sum(1 for _ in islice(ticks(self, after, until), COUNT_LIMIT))

    def __str__(self) -> str:
        return f"{self.expression} {self.tz}"


class Every(msgspec.Struct, frozen=True, tag="every", omit_defaults=True):
    """Ticks at equal intervals of at least one second, counted from an anchor: `Every(3600)` ticks on the hour, UTC."""

    interval: Seconds
    anchor: datetime | None = None

    def __post_init__(self) -> None:
        seconds = to_seconds(self.interval, "every")
        if seconds < 1:
            raise InvalidOption("every", f"{self.interval!r} is less than one second")
        msgspec.structs.force_setattr(self, "interval", round(seconds * 1000) / 1000)
        if self.anchor is not None:
            checked_time_ms(self.anchor, "anchor")
            msgspec.structs.force_setattr(self, "anchor", self.anchor.astimezone(UTC))

    @property
    def interval_ms(self) -> int:
        """The interval in ms."""
        return round(cast("float", self.interval) * 1000)

    @property
    def anchor_ms(self) -> int:
        """The first tick since 1970."""
        return 0 if self.anchor is None else checked_time_ms(self.anchor, "anchor") % self.interval_ms

    def next_after(self, ms: int) -> int | None:
        """Returns the first tick after that time; None if there is none before 2109."""
        return next(self.all_after(ms), None)

    def all_after(self, ms: int) -> Iterator[int]:
        """Yields the ticks after that time, until 2109."""
        return iter(range(self._at_or_before(ms) + self.interval_ms, MAX_TIME_MS + 1, self.interval_ms))

    def latest(self, after: int, until: int) -> int | None:
        """Returns the last tick in (after, until]; None if there is none."""
        tick = self._at_or_before(until)
        return tick if tick > after else None

    def count(self, after: int, until: int) -> int:
        """Returns the number of ticks in (after, until]."""
        return max(0, (self._at_or_before(until) - self._at_or_before(after)) // self.interval_ms)

    def _at_or_before(self, ms: int) -> int:
        return (ms - self.anchor_ms) // self.interval_ms * self.interval_ms + self.anchor_ms

    def __str__(self) -> str:
        return describe_rule(self)


ScheduleRule = Cron | Every


def checked_zone(name: str) -> tzinfo:
    """Returns the time zone of that name. Raises InvalidOption."""
    return _zone(name)


def zone_of(rule: ScheduleRule) -> tzinfo:
    """Returns the time zone of a rule."""
    return _zone(rule.tz) if isinstance(rule, Cron) else UTC


def ticks(rule: ScheduleRule, after: int, until: int = MAX_TIME_MS) -> Iterator[int]:
    """Yields the ticks in (after, until]."""
    return takewhile(lambda tick: tick <= until, rule.all_after(after))


def count_by_hour(rule: ScheduleRule, after: int, first: int, hours: int) -> list[int]:
    """Returns the number of ticks after `after` in each of `hours` hours, from hour `first` since 1970.

    Computed by arithmetic: a rule that ticks every second takes no longer than one that ticks every day.
    """
    if isinstance(rule, Every):
        ends = [(hour + 1) * HOUR_MS - 1 for hour in range(first, first + hours)]
        return [rule.count(max(after, end - HOUR_MS), end) for end in ends]
    current = after // _QUARTER_MS
    found = [0] * hours
    for index, count in enumerate(_by_quarter(rule, first, hours)):
        quarter = first * 4 + index
        if quarter > current:
            found[index // 4] += count
        elif quarter == current:  # 900 seconds: below COUNT_LIMIT
            found[index // 4] += rule.count(after, (quarter + 1) * _QUARTER_MS - 1)
    return found


@lru_cache(maxsize=1_024)
def _by_quarter(rule: Cron, first: int, hours: int) -> tuple[int, ...]:
    """Returns the number of ticks in each quarter of an hour.

    Offsets from UTC are whole quarters of an hour, and they change between two quarters. So the minutes of a quarter
    are contiguous, and it has either all ticks that the expression has there, or none.
    """
    zone, search = _zone(rule.tz), _CronSearch(_fields(rule.expression), _SEARCH_START)
    per_quarter = [len(search.seconds) * sum(minute // 15 == part for minute in search.minutes) for part in range(4)]

    def shown(clock: datetime) -> int:
        is_day = clock.month in search.months and search.match_day(clock.date())
        return per_quarter[clock.minute // 15] if is_day and clock.hour in search.hours else 0

    found: list[int] = []
    before = datetime.fromtimestamp((first * 4 - 1) * 900, zone).replace(tzinfo=None)
    for number in range(first * 4, (first + hours) * 4):
        moment = datetime.fromtimestamp(number * 900, zone)
        clock, expected = moment.replace(tzinfo=None), before + _QUARTER
        count = 0 if rule.is_fixed_time and moment.fold else shown(clock)
        if rule.is_fixed_time and clock > expected and not (shown(clock) and clock.minute in search.minutes):
            # Times that the clock has just skipped tick now, in one minute; see `_first_occurrence`.
            skipped = (expected + _QUARTER * part for part in range((clock - expected) // _QUARTER))
            count += len(search.seconds) if any(map(shown, skipped)) else 0
        found.append(count)
        before = clock
    return tuple(found)


def describe_rule(rule: ScheduleRule) -> str:
    """Returns the rule in words: “at 03:00 every day, Europe/Oslo”, “every 1 h 30 min”."""
    if isinstance(rule, Every):
        return f"every {_exact_duration(rule.interval_ms)}"
    try:
        words = CronSim(_fields(rule.expression), _SEARCH_START).explain()
    except (CronSimError, ValueError, KeyError, IndexError):  # the expression itself will do
        return str(rule)
    return f"{words[:1].lower()}{words[1:]}, {rule.tz}"


# --- decisions ---------------------------------------------------------------------------------------------------


class FireDecision(msgspec.Struct, frozen=True):
    """The ticks to run, the number of dropped ones (for a cron rule: at least), and the next tick."""

    run: tuple[int, ...]
    dropped: int
    next_tick: int | None


def decide(rule: ScheduleRule, misfire: Misfire, tick: int, now: int) -> FireDecision:
    """Returns what to do about `tick`, which is due, and about those missed since.

    "once" runs the latest, "all" the latest hundred, "skip" the latest if it is at most a minute late.
    """
    latest = rule.latest(tick, now) or tick
    following = rule.next_after(now)
    run: tuple[int, ...]
    if latest == tick:
        run = () if misfire == "skip" and now - tick > GRACE_MS else (tick,)
        return FireDecision(run, 1 - len(run), following)
    missed = 2 + rule.count(tick, latest - 1)
    if misfire == "all":
        run = _last(rule, tick, latest, missed)
    elif misfire == "skip" and now - latest > GRACE_MS:
        run = ()
    else:
        run = (latest,)
    return FireDecision(run, missed - len(run), following)


def _last(rule: ScheduleRule, tick: int, latest: int, missed: int) -> tuple[int, ...]:
    """Returns the latest MISFIRE_LIMIT ticks from `tick` to `latest`, in order."""
    if missed <= MISFIRE_LIMIT:
        return (tick, *ticks(rule, tick, latest))
    # Searches period by period, backwards. Each period is twice as long as the one before; half as long if it has too
    # many ticks.
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
    """A recurring rule that enqueues jobs, as it was defined."""

    name: str
    queue: str
    rule: ScheduleRule
    #: Record of its jobs without the first line: options, task, arguments.
    body: bytes
    priority: int = 0
    #: Time by which a job must have started: "", "+ms" after its tick, or ms since 1970.
    expiry: str = ""
    misfire: Misfire = "once"
    overlap: Overlap = "queue"
    version: int = 1
    #: Declared in code; otherwise created at run time.
    is_declared: bool = False

    @property
    def full_name(self) -> str:
        """`queue:name`."""
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
    """The state of a schedule, as the scripts store it."""

    version: int = 1
    #: Grows with every change; the scripts refuse a decision made from an older revision.
    revision: int = 0
    is_paused: bool = False
    last_tick: int | None = None
    #: Id of the job of the last tick, and of the last job run manually.
    last_id: str = ""
    manual_id: str = ""
    fired: int = 0
    #: Missed ticks without a job.
    dropped: int = 0
    #: Ticks without a job because the previous one had not ended.
    skipped: int = 0


class _Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields of a schedule other than its rule and its job."""

    priority: int = 0
    expiry: str = ""
    misfire: Misfire = "once"
    overlap: Overlap = "queue"
    is_declared: bool = False


class UnreadableSchedule(ValueError):
    """A stored schedule that this version cannot read: a newer version may have written it."""


_state: Final = msgspec.json.Decoder(ScheduleState)
_rule: Final = msgspec.json.Decoder(ScheduleRule)
_settings: Final = msgspec.json.Decoder(_Settings)


def encode_schedule(schedule: Schedule) -> tuple[bytes, bytes, bytes]:
    """Returns rule, settings and body; the scripts store them after the state, the body on three lines."""
    settings = _Settings(**{name: getattr(schedule, name) for name in _Settings.__struct_fields__})
    return msgspec.json.encode(schedule.rule), msgspec.json.encode(settings), schedule.body


def decode_schedule(queue: str, name: str, record: bytes) -> tuple[Schedule, ScheduleState]:
    """Decodes a stored schedule. Raises UnreadableSchedule."""
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
    """Returns the id of a tick's job: `nightly.20261116T030000Z`, the same from every worker."""
    milliseconds = tick % 1000
    fraction = f".{milliseconds:03}" if milliseconds else ""
    return f"{name}.{datetime.fromtimestamp(tick // 1000, UTC):%Y%m%dT%H%M%S}{fraction}Z"


# --- checks ------------------------------------------------------------------------------------------------------


def checked_schedule_name(name: Any) -> str:
    """Returns the name if it is 1 to 100 of A-Z a-z 0-9 - _ and the dot: its jobs' ids begin with it.

    Raises InvalidOption.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidOption("name", f"{name!r} is not a schedule name: 1 to 100 of A-Z a-z 0-9 - _ .")
    return name


def checked_rule(rule: Any) -> ScheduleRule:
    """Returns the rule. Raises InvalidOption for anything else."""
    if not isinstance(rule, Cron | Every):
        raise InvalidOption("rule", f"takes Cron(...) or Every(...), not {rule!r}")
    return rule


def checked_misfire(misfire: Any) -> Misfire:
    """Returns the misfire policy. Raises InvalidOption."""
    if misfire not in get_args(Misfire):
        raise InvalidOption("misfire", f"{misfire!r} is none of {', '.join(get_args(Misfire))}")
    return cast("Misfire", misfire)


def checked_overlap(overlap: Any) -> Overlap:
    """Returns the overlap policy. Raises InvalidOption."""
    if overlap not in get_args(Overlap):
        raise InvalidOption("overlap", f"{overlap!r} is none of {', '.join(get_args(Overlap))}")
    return cast("Overlap", overlap)


def checked_version(version: Any) -> int:
    """Returns the version, a whole number from 1. Raises InvalidOption."""
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= MAX_VERSION:
        raise InvalidOption("version", f"{version!r} is not a whole number from 1")
    return version


def _check_expression(expression: Any) -> None:
    if not isinstance(expression, str) or len(expression) > 200:
        raise InvalidOption("cron", f"{expression!r} is not a cron expression")
    if expression.startswith("@") and expression.lower() not in _ALIASES:
        raise InvalidOption("cron", f"{expression!r} is none of {', '.join(_ALIASES)}")
    try:
        CronSim(_fields(expression), _SEARCH_START)
    except (CronSimError, ValueError, AssertionError) as error:
        why = str(error).lower() or "it cannot be read"
        raise InvalidOption(
            "cron",
            f"{expression!r}: {why}; the fields are minute, hour, day, month and weekday, as in '0 3 * * *' for 03:00",
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
        raise InvalidOption("tz", f"there is no time zone {name!r}; names are like 'Europe/Oslo'") from error


def _first_occurrence(time: datetime, zone: tzinfo) -> datetime:
    """Returns the first time that local time is reached; for a skipped time, the minute after the gap.

    cronsim does the same, but not for expressions with seconds.
    """
    moment = time.replace(tzinfo=zone)
    while moment.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != moment.replace(tzinfo=None):
        moment += timedelta(minutes=1)
    return moment


class _CronSearch(CronSim):
    """cronsim, corrected for clock changes by half an hour, as on Lord Howe Island, and for changes at midnight.

    cronsim steps by whole hours and jumps to a minute, as if all minutes existed; here each step ends where an hour
    does. cronsim starts a day at midnight, which the clock may have skipped; here it starts at the day's first moment.
    """

    def advance_month(self) -> None:
        super().advance_month()
        self._normalize()

    def advance_day(self) -> bool:
        has_advanced = super().advance_day()
        self._normalize()
        return has_advanced

    @property
    def _has_fixed_offset(self) -> bool:
        """Whether the clock never changes."""
        return self.dt.tzinfo is None or self.dt.tzinfo is UTC

    def _normalize(self) -> None:
        if not self._has_fixed_offset:
            self.dt = self.dt.astimezone(UTC).astimezone(self.dt.tzinfo)

    def advance_hour(self) -> bool:
        if self._has_fixed_offset or self.dt.hour in self.hours:
            return super().advance_hour()
        while self.dt.hour not in self.hours:
            day = self.dt.day
            self.tick(seconds=3600 - self.dt.minute * 60 - self.dt.second)
            if self.dt.day != day:
                break  # the caller checks whether the rule includes that day
        return True

    def advance_minute(self) -> bool:
        if self._has_fixed_offset or self.dt.minute in self.minutes:
            return super().advance_minute()
        while self.dt.minute not in self.minutes:
            hour = self.dt.hour
            self.tick(seconds=60 - self.dt.second)
            if self.dt.hour != hour:
                break
        return True


def _exact_duration(ms: int) -> str:
    """Returns an exact duration: 90 min is “1 h 30 min”."""
    rest = timedelta(milliseconds=ms)
    parts: list[str] = []
    for unit, size in (("d", timedelta(days=1)), ("h", timedelta(hours=1)), ("min", timedelta(minutes=1))):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}")
    if rest:
        parts.append(f"{rest.total_seconds():g} s")
    return " ".join(parts)
