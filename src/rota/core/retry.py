"""How long to wait before the next attempt, and when to stop trying. Pure arithmetic.

A `Retry` is part of a job's options and travels with it as JSON, so everything here is data: no callables.
Durations are seconds, as everywhere at the public edge; what they come to is whole milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, cast

import msgspec

from rota.errors import InvalidOption

#: Longest wait that may be asked for: a year. Larger numbers are a unit mixed up.
MAX_SECONDS: Final = 366 * 24 * 3600
MAX_ATTEMPTS: Final = 1_000_000
Seconds = int | float | timedelta


def to_seconds(value: Any, option: str) -> float:
    """A public duration in seconds, refused when negative, not a number, or longer than a year."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidOption(option, f"takes seconds or a timedelta, not {value!r}")
    if not 0 <= seconds <= MAX_SECONDS:
        raise InvalidOption(option, f"{value!r} is not between 0 s and a year")
    return seconds


def to_ms(value: Any, option: str) -> int:
    """The same in whole milliseconds."""
    return round(to_seconds(value, option) * 1000)


def _settle(backoff: Any, *durations: str) -> None:
    """Checks a backoff's numbers. A timedelta becomes seconds, as the record keeps them."""
    for name in durations:
        msgspec.structs.force_setattr(backoff, name, to_seconds(getattr(backoff, name), "backoff"))
    jitter = backoff.jitter
    if isinstance(jitter, bool) or not isinstance(jitter, int | float) or not 0 <= jitter <= 10:
        raise InvalidOption("backoff", f"jitter must be 0 to 10, not {jitter!r}")


def _check_attempts(attempts: Any) -> None:
    if isinstance(attempts, bool) or not isinstance(attempts, int) or not 1 <= attempts <= MAX_ATTEMPTS:
        raise InvalidOption("retry", f"attempts must be 1 to {MAX_ATTEMPTS:,}, not {attempts!r}")


class Exponential(msgspec.Struct, frozen=True, tag="exponential", omit_defaults=True):
    """min(max, base·2ⁿ⁻¹) seconds after failure n, plus up to `jitter` of it, so that a crowd spreads out."""

    base: float = 2
    max: float = 300
    jitter: float = 0.1

    def __post_init__(self) -> None:
        _settle(self, "base", "max")

    def delay_ms(self, failures: int, chance: float) -> int:
        """Wait after failure number `failures`. The caller draws `chance` in [0, 1)."""
        # Bounding the exponent keeps a million failures from building a number of a million digits.
        delay = min(self.max, self.base * 2 ** min(failures - 1, 63))
        return round(delay * 1000 * (1 + self.jitter * chance))


class Fixed(msgspec.Struct, frozen=True, tag="fixed", omit_defaults=True):
    """The same wait, in seconds, after every failure."""

    delay: float
    jitter: float = 0.0

    def __post_init__(self) -> None:
        _settle(self, "delay")

    def delay_ms(self, failures: int, chance: float) -> int:
        """Wait after any failure. The caller draws `chance` in [0, 1)."""
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
        _settle(self)

    def delay_ms(self, failures: int, chance: float) -> int:
        """Wait after failure number `failures`. The caller draws `chance` in [0, 1)."""
        delay = self.delays[min(failures, len(self.delays)) - 1]
        return round(delay * 1000 * (1 + self.jitter * chance))


Backoff = Exponential | Fixed | Steps


def _steps(delays: Any) -> Steps:
    if not isinstance(delays, list | tuple):
        raise InvalidOption("backoff", f"takes Exponential, Fixed or a list of seconds, not {delays!r}")
    return Steps(tuple(cast("Sequence[float]", delays)))


class Rule(msgspec.Struct, frozen=True, omit_defaults=True):
    """What to do about one kind of exception: other attempts, another backoff, or (attempts=1) no retry at all."""

    attempts: int | None = None
    backoff: Backoff | Sequence[float] | None = None

    def __post_init__(self) -> None:
        if self.attempts is not None:
            _check_attempts(self.attempts)
        if self.backoff is not None and not isinstance(self.backoff, Exponential | Fixed | Steps):
            msgspec.structs.force_setattr(self, "backoff", _steps(self.backoff))


class Retry(msgspec.Struct, frozen=True, omit_defaults=True):
    """How often to try, and how long to wait in between.

    `attempts` bounds failures (errors and timeouts), the first one included. `backoff` may be a plain list of
    seconds. `on` has rules per exception, by the name of its class or of any of its bases
    (`{"HTTPError": Rule(attempts=10), "ValueError": Rule(attempts=1)}`); the nearest base wins.
    """

    attempts: int = 3
    backoff: Backoff | Sequence[float] = Exponential()
    on: dict[str, Rule] = {}

    def __post_init__(self) -> None:
        if not isinstance(self.backoff, Exponential | Fixed | Steps):
            msgspec.structs.force_setattr(self, "backoff", _steps(self.backoff))
        _check_attempts(self.attempts)
        on: Any = self.on
        if not isinstance(on, dict) or not all(
            isinstance(name, str) and isinstance(rule, Rule) for name, rule in self.on.items()
        ):
            raise InvalidOption("retry", f"on takes a Rule(...) for each name of an exception, not {on!r}")

    def next_delay_ms(self, failures: int, chance: float, kinds: Sequence[str] = ()) -> int | None:
        """Wait before the next attempt, or None after the last: the job becomes a dead letter.

        `failures` counts the one just seen. `kinds` are the names of the error's classes, nearest first.
        """
        rule = next((self.on[kind] for kind in kinds if kind in self.on), Rule())
        attempts = self.attempts if rule.attempts is None else rule.attempts
        backoff = self.backoff if rule.backoff is None else rule.backoff
        assert isinstance(backoff, Exponential | Fixed | Steps)  # __post_init__ turned a list into Steps
        return backoff.delay_ms(failures, chance) if failures < attempts else None


def checked_retry(retry: Any) -> Retry:
    """The policy as given, or made of a bare number of attempts."""
    if isinstance(retry, Retry):
        return retry
    if isinstance(retry, int) and not isinstance(retry, bool):
        return Retry(attempts=retry)
    raise InvalidOption("retry", f"takes Retry(...) or a number of attempts, not {retry!r}")
