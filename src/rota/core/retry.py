"""Retry policy: how long to wait before the next attempt, and after how many failures to stop.

A `Retry` is stored with the job's options as JSON, so everything here is data, without callables. Durations are
seconds, as everywhere in the public API; computed delays are whole milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import msgspec

from rota.errors import InvalidOption

#: Longest duration that options accept: a year. Larger numbers are in the wrong unit.
MAX_SECONDS: Final = 366 * 24 * 3600
MAX_ATTEMPTS: Final = 1_000_000
Seconds = int | float | timedelta


def to_seconds(value: Any, option: str) -> float:
    """Returns a duration in seconds. Raises InvalidOption if it is negative, not a number, or longer than a year."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidOption(option, f"takes seconds or a timedelta, not {value!r}")
    if not 0 <= seconds <= MAX_SECONDS:
        raise InvalidOption(option, f"{value!r} is not between 0 s and a year")
    return seconds


def to_ms(value: Any, option: str) -> int:
    """Like `to_seconds`, in whole milliseconds."""
    return round(to_seconds(value, option) * 1000)


def _check_backoff(backoff: Any, *durations: str) -> None:
    """Checks the numbers of a backoff and converts each timedelta to seconds."""
    for name in durations:
        msgspec.structs.force_setattr(backoff, name, to_seconds(getattr(backoff, name), "backoff"))
    jitter = backoff.jitter
    if isinstance(jitter, bool) or not isinstance(jitter, int | float) or not 0 <= jitter <= 10:
        raise InvalidOption("backoff", f"jitter must be 0 to 10, not {jitter!r}")


def _check_attempts(attempts: Any) -> None:
    if isinstance(attempts, bool) or not isinstance(attempts, int) or not 1 <= attempts <= MAX_ATTEMPTS:
        raise InvalidOption("retry", f"attempts must be 1 to {MAX_ATTEMPTS:,}, not {attempts!r}")


class Exponential(msgspec.Struct, frozen=True, tag="exponential", omit_defaults=True):
    """min(max, base·2ⁿ⁻¹) seconds after failure n, plus up to `jitter` of it to spread simultaneous retries."""

    base: float = 2
    max: float = 300
    jitter: float = 0.1

    def __post_init__(self) -> None:
        _check_backoff(self, "base", "max")

    def delay_ms(self, failures: int, chance: float) -> int:
        """Returns the wait after failure number `failures`. The caller draws `chance` in [0, 1)."""
        # The exponent is bounded: after a million failures the power would have 300,000 digits.
        delay = min(self.max, self.base * 2 ** min(failures - 1, 63))
        return round(delay * 1000 * (1 + self.jitter * chance))


class Fixed(msgspec.Struct, frozen=True, tag="fixed", omit_defaults=True):
    """The same wait, in seconds, after every failure."""

    delay: float
    jitter: float = 0.0

    def __post_init__(self) -> None:
        _check_backoff(self, "delay")

    def delay_ms(self, failures: int, chance: float) -> int:
        """Returns the wait after any failure. The caller draws `chance` in [0, 1)."""
        return round(self.delay * 1000 * (1 + self.jitter * chance))


class Steps(msgspec.Struct, frozen=True, tag="steps", omit_defaults=True):
    """A wait in seconds for each failure in turn; the last one repeats."""

    delays: tuple[float, ...]
    jitter: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.delays, list | tuple) or not self.delays:
            raise InvalidOption("backoff", f"takes Exponential, Fixed or a list of seconds, not {self.delays!r}")
        seconds = tuple(to_seconds(delay, "backoff") for delay in self.delays)
        msgspec.structs.force_setattr(self, "delays", seconds)
        _check_backoff(self)

    def delay_ms(self, failures: int, chance: float) -> int:
        """Returns the wait after failure number `failures`. The caller draws `chance` in [0, 1)."""
        delay = self.delays[min(failures, len(self.delays)) - 1]
        return round(delay * 1000 * (1 + self.jitter * chance))


Backoff = Exponential | Fixed | Steps


def _steps(delays: Any) -> Steps:
    if not isinstance(delays, list | tuple):
        raise InvalidOption("backoff", f"takes Exponential, Fixed or a list of seconds, not {delays!r}")
    return Steps(tuple(cast("Sequence[float]", delays)))


class Rule(msgspec.Struct, frozen=True, omit_defaults=True):
    """Retry rule for one exception class: other attempts, another backoff, or no retry at all (attempts=1)."""

    attempts: int | None = None
    backoff: Backoff | Sequence[float] | None = None

    def __post_init__(self) -> None:
        if self.attempts is not None:
            _check_attempts(self.attempts)
        if self.backoff is not None and not isinstance(self.backoff, Exponential | Fixed | Steps):
            msgspec.structs.force_setattr(self, "backoff", _steps(self.backoff))


if TYPE_CHECKING:

    class RulesByException(Protocol):
        """A mapping of exception classes, or their names, to rules.

        A protocol, because the keys of a `Mapping` are invariant: a dict may have one kind of key, or both.
        """

        def __iter__(self) -> Iterator[type[BaseException] | str]: ...
        def items(self) -> Iterable[tuple[type[BaseException] | str, Rule]]: ...
        def values(self) -> Iterable[Rule]: ...
else:
    RulesByException = dict[str, Rule]  # what is stored: classes are replaced by their names


class Retry(msgspec.Struct, frozen=True, omit_defaults=True):
    """Retry policy: how many attempts, and how long to wait in between.

    `attempts` limits failures (errors and timeouts), the first one included. `backoff` may be a list of seconds. `on`
    has rules for exceptions, by the class, any base class, or the name of one
    (`{ConnectionError: Rule(attempts=10), "HTTPError": Rule(attempts=1)}`); the nearest class wins.
    """

    attempts: int = 3
    backoff: Backoff | Sequence[float] = Exponential()
    on: RulesByException = {}

    def __post_init__(self) -> None:
        if not isinstance(self.backoff, Exponential | Fixed | Steps):
            msgspec.structs.force_setattr(self, "backoff", _steps(self.backoff))
        _check_attempts(self.attempts)
        on: Any = self.on
        if not isinstance(on, dict) or not all(isinstance(rule, Rule) for rule in self.on.values()):
            raise InvalidOption("retry", f"on takes a Rule(...) for each exception class, not {on!r}")
        if on:
            rules = {_class_name(kind): rule for kind, rule in self.on.items()}
            msgspec.structs.force_setattr(self, "on", rules)

    def next_delay_ms(self, failures: int, chance: float, kinds: Sequence[str] = ()) -> int | None:
        """Returns the wait before the next attempt; None after the last, when the job becomes a dead letter.

        `failures` includes the current one. `kinds` are the names of the error's classes, nearest first.
        """
        rules: Any = self.on  # __post_init__ has replaced the classes by their names
        rule: Rule = next((rules[kind] for kind in kinds if kind in rules), Rule())
        attempts = self.attempts if rule.attempts is None else rule.attempts
        backoff = self.backoff if rule.backoff is None else rule.backoff
        assert isinstance(backoff, Exponential | Fixed | Steps)  # __post_init__ turned a list into Steps
        return backoff.delay_ms(failures, chance) if failures < attempts else None


def _class_name(kind: Any) -> str:
    """Returns the name under which an exception class is matched. Raises InvalidOption if no exception has it."""
    if isinstance(kind, type) and issubclass(kind, BaseException):
        kind = kind.__name__
    if not isinstance(kind, str):
        raise InvalidOption("retry", f"on takes exception classes or their names, not {kind!r}")
    if not kind.isidentifier():
        name = kind.rpartition(".")[2]
        hint = f": write {name!r}" if name.isidentifier() else ""
        raise InvalidOption("retry", f"on: {kind!r} is not the name of an exception class{hint}")
    if kind in ("object", "BaseException"):
        raise InvalidOption("retry", f"on: {kind} matches no error: write 'Exception' for a rule about all of them")
    return kind


def checked_retry(retry: Any) -> Retry:
    """Returns the policy, made from a number of attempts if that is given. Raises InvalidOption."""
    if isinstance(retry, Retry):
        return retry
    if isinstance(retry, int) and not isinstance(retry, bool):
        return Retry(attempts=retry)
    raise InvalidOption("retry", f"takes Retry(...) or a number of attempts, not {retry!r}")
