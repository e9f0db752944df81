"""Rate limits of callers: requests per second and enqueues per minute, counted in this process without the store."""

from __future__ import annotations

import math
import time
from typing import Final

import msgspec

#: Callers whose buckets are remembered. A forgotten bucket is full again.
MAX_CALLERS: Final = 10_000
#: Requests that may come at once, unless a limit says otherwise: as many as this many seconds allow.
DEFAULT_BURST_S: Final = 2


class Limits(msgspec.Struct, frozen=True, omit_defaults=True):
    """The limits of one caller. None: no limit."""

    requests_per_second: float | None = None
    #: Requests that may come at once. None: those of two seconds, and at least ten.
    burst: int | None = None
    enqueues_per_minute: int | None = None

    @property
    def most_at_once(self) -> float:
        """The number of requests that may come at once."""
        if self.burst is not None:
            return self.burst
        return max(10.0, DEFAULT_BURST_S * (self.requests_per_second or 0))


NO_LIMITS: Final = Limits()


class Bucket:
    """A token bucket: holds at most `size`, refilled at `rate` per second."""

    def __init__(self, size: float, rate: float, now: float) -> None:
        self.size = size
        self.rate = rate
        self._level = size
        self._at = now

    def take(self, number: int, now: float) -> float:
        """Takes a number out. Returns 0, or the seconds after which there are enough; then nothing was taken.

        More than the bucket holds can be taken from a full one, and the next wait is longer by as much: a workflow
        with more steps than jobs are allowed per minute would never be accepted otherwise.
        """
        self._level = min(self.size, self._level + max(0.0, now - self._at) * self.rate)
        self._at = now
        needed = min(number, self.size)
        if self._level < needed:
            return (needed - self._level) / self.rate
        self._level -= number
        return 0.0


class RateLimiter:
    """The buckets of all callers of one server process."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[str, str], Bucket] = {}

    def count_request(self, caller: str, limits: Limits) -> int:
        """Counts a request. Returns 0, or the seconds after which the caller may send another."""
        if limits.requests_per_second is None:
            return 0
        return self._take("requests", caller, 1, limits.most_at_once, limits.requests_per_second)

    def count_enqueues(self, caller: str, limits: Limits, number: int) -> int:
        """Counts jobs that the caller is about to enqueue. Returns 0, or the seconds after which it may do so."""
        if limits.enqueues_per_minute is None:
            return 0
        return self._take("enqueues", caller, number, limits.enqueues_per_minute, limits.enqueues_per_minute / 60)

    def _take(self, kind: str, caller: str, number: int, size: float, rate: float) -> int:
        now = time.monotonic()
        bucket = self._buckets.get((kind, caller))
        if bucket is None or (bucket.size, bucket.rate) != (size, rate):
            if len(self._buckets) >= MAX_CALLERS:
                self._buckets.clear()
            bucket = self._buckets[kind, caller] = Bucket(size, rate, now)
        return math.ceil(bucket.take(number, now))
