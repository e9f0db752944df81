"""The durations that all workers share: what fits together, and how a worker passes from one setting to another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.lease_heartbeat_poll_and_grace_durations import (
    MAX_LEASE_MS,
    MIN_LEASE_MS,
    RETRY_MS,
    DurationSettings,
    WorkerDurations,
    max_heartbeat_ms,
    max_poll_ms,
    outage_gap_ms,
)
from rota.errors import InvalidOption
from rota.worker.follow_lease_and_heartbeat_settings import SETTLED_READS, CurrentDurations

LEASES = st.integers(MIN_LEASE_MS, MAX_LEASE_MS)


def test_the_defaults_are_those_of_the_documentation() -> None:
    assert DurationSettings().durations == WorkerDurations(
        lease_ms=4_500, heartbeat_ms=1_500, poll_ms=1_800, grace_ms=25_000
    )
    assert outage_gap_ms(4_500) == 2_200


@pytest.mark.requirement("S0-13")
@given(LEASES)
def test_an_outage_that_goes_unnoticed_leaves_time_to_renew_a_lease_of_any_length(lease_ms: int) -> None:
    """The worst moment for it to begin is just before a heartbeat: docs/decisions/0005."""
    durations = DurationSettings(lease_ms=lease_ms).durations

    renewed_by_ms = max_heartbeat_ms(lease_ms) + outage_gap_ms(lease_ms) + RETRY_MS

    assert renewed_by_ms <= lease_ms - 150
    assert durations.heartbeat_ms <= max_heartbeat_ms(lease_ms)
    assert durations.poll_ms <= outage_gap_ms(lease_ms) - 400, "a quiet queue does not look like an outage"
    assert 2_000 + durations.heartbeat_ms < lease_ms, "an overdue claim is given up before its lease ends"


@pytest.mark.requirement("S0-7")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (DurationSettings(lease_ms=3_999), r"lease.*4 to 600 s"),
        (DurationSettings(lease_ms=600_001), r"lease.*4 to 600 s"),
        (DurationSettings(heartbeat_ms=1_501), r"heartbeat.*0.2 to 1.5 s \(a third of the lease\)"),
        (DurationSettings(lease_ms=30_000, heartbeat_ms=10_001), r"heartbeat.*0.2 to 10 s"),
        (DurationSettings(poll_ms=1_801), r"poll.*0.2 to 1.8 s \(two thirds of the lease"),
        (DurationSettings(lease_ms=30_000, poll_ms=100), r"poll.*0.2 to 18.8 s"),
        (DurationSettings(grace_ms=-1), r"grace"),
    ],
)
def test_durations_that_do_not_fit_each_other_are_refused(settings: DurationSettings, message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        _ = settings.durations


def test_what_is_not_set_follows_a_short_lease() -> None:
    durations = DurationSettings(lease_ms=4_000).durations

    assert (durations.heartbeat_ms, durations.poll_ms) == (1_333, max_poll_ms(4_000))


def test_a_longer_lease_is_used_at_once_and_a_longer_gap_and_heartbeat_later() -> None:
    """Workers that have not read it yet have the shorter lease, which a longer outage would end unnoticed."""
    current = CurrentDurations()
    longer = DurationSettings(version=1, lease_ms=60_000, heartbeat_ms=20_000, poll_ms=30_000)

    assert current.follow(longer)

    assert (current.lease_ms, current.heartbeat_ms) == (60_000, 1_500)
    assert (current.outage_gap_ms, current.poll_s) == (2_200, 1.8)
    for _ in range(SETTLED_READS - 1):
        assert not current.follow(longer)
    assert (current.heartbeat_ms, current.poll_s, current.busy_poll_s) == (20_000, 30.0, 15.0)
    assert current.outage_gap_ms == outage_gap_ms(60_000)


def test_a_shorter_lease_is_used_with_its_heartbeat_at_once() -> None:
    current = CurrentDurations()
    longer = DurationSettings(version=1, lease_ms=60_000, heartbeat_ms=20_000)
    for _ in range(SETTLED_READS):
        current.follow(longer)
    current.changed.clear()

    current.follow(DurationSettings(version=2, previous_lease_ms=60_000))

    assert (current.lease_ms, current.heartbeat_ms, current.outage_gap_ms) == (4_500, 1_500, 2_200)
    assert current.changed.is_set(), "a heartbeat is sent now"


def test_stored_values_that_do_not_fit_change_nothing_and_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    current = CurrentDurations()

    assert not current.follow(DurationSettings(version=3, lease_ms=1))

    assert current.lease_ms == 4_500
    assert "settings 3 of the namespace are not used: lease" in caplog.text
