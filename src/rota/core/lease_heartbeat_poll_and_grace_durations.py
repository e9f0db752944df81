"""The durations that all workers of a namespace share: lease, heartbeat, fallback poll and grace period.

They depend on each other. A lease must outlive a lost heartbeat, and an outage of the server that is too short to be
noticed (`outage_gap_ms`); and workers must poll often enough that a quiet queue does not look like an outage.
docs/decisions/0005 has the arithmetic. So they are settings of the namespace, and not of each worker.
"""

from __future__ import annotations

from typing import Final

import msgspec

from rota.errors import InvalidOption

LEASE_MS: Final = 4_500
HEARTBEAT_MS: Final = 1_500
POLL_MS: Final = 1_800
#: Less than the 30 s that Kubernetes gives a pod.
GRACE_MS: Final = 25_000
#: A claim whose reply is 2 s overdue is given up with a heartbeat: a shorter lease could end before that.
MIN_LEASE_MS: Final = 4_000
#: A job of a dead worker waits for so long.
MAX_LEASE_MS: Final = 600_000
MIN_INTERVAL_MS: Final = 200
MAX_GRACE_MS: Final = 24 * 3_600_000
#: A heartbeat without an answer is followed by another one after at most this long.
RETRY_MS: Final = 600
#: What is left of the lease when that one arrives.
RESERVE_MS: Final = 200
#: A poll that is late by less than this does not look like an outage.
POLL_MARGIN_MS: Final = 400
#: The settings, by the names that users give.
NAMES: Final = ("lease", "heartbeat", "poll", "grace")


class WorkerDurations(msgspec.Struct, frozen=True, kw_only=True):
    """The durations in force, in ms."""

    lease_ms: int = LEASE_MS
    heartbeat_ms: int = HEARTBEAT_MS
    poll_ms: int = POLL_MS
    grace_ms: int = GRACE_MS


class DurationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The durations that are set for a namespace; None: the default. `version` grows with each change."""

    version: int = 0
    lease_ms: int | None = None
    heartbeat_ms: int | None = None
    poll_ms: int | None = None
    grace_ms: int | None = None
    #: The lease before the latest change: workers that have not read the change yet still use it.
    previous_lease_ms: int = LEASE_MS
    changed_at: int = 0

    @property
    def durations(self) -> WorkerDurations:
        """The durations in force. Raises InvalidOption for values that do not fit each other."""
        lease = LEASE_MS if self.lease_ms is None else self.lease_ms
        _check("lease", lease, MIN_LEASE_MS, MAX_LEASE_MS)
        heartbeat = min(HEARTBEAT_MS, max_heartbeat_ms(lease)) if self.heartbeat_ms is None else self.heartbeat_ms
        _check("heartbeat", heartbeat, MIN_INTERVAL_MS, max_heartbeat_ms(lease), "a third of the lease")
        poll = min(POLL_MS, max_poll_ms(lease)) if self.poll_ms is None else self.poll_ms
        why = "two thirds of the lease, less 1.2 s: a longer silence counts as an outage of the server"
        _check("poll", poll, MIN_INTERVAL_MS, max_poll_ms(lease), why)
        grace = GRACE_MS if self.grace_ms is None else self.grace_ms
        _check("grace", grace, 0, MAX_GRACE_MS)
        return WorkerDurations(lease_ms=lease, heartbeat_ms=heartbeat, poll_ms=poll, grace_ms=grace)


def max_heartbeat_ms(lease_ms: int) -> int:
    """One heartbeat may get lost, and the next is still in time."""
    return lease_ms // 3


def outage_gap_ms(lease_ms: int) -> int:
    """The longest time without a claim or heartbeat that does not count as an outage of the server.

    An outage that is not noticed leaves every worker the time to renew its leases: with 4.5 s, the latest stored time
    is from second 1.5 of a lease, and the server is back by 1.5 + 2.2 = 3.7; the next heartbeat arrives by 4.3.
    """
    return lease_ms - max_heartbeat_ms(lease_ms) - RETRY_MS - RESERVE_MS


def max_poll_ms(lease_ms: int) -> int:
    """The longest time between two claims of an idle worker."""
    return outage_gap_ms(lease_ms) - POLL_MARGIN_MS


def _check(name: str, value: int, least: int, most: int, why: str = "") -> None:
    if not least <= value <= most:
        because = f" ({why})" if why else ""
        raise InvalidOption(name, f"{value / 1000:g} s is not {least / 1000:g} to {most / 1000:g} s{because}")
