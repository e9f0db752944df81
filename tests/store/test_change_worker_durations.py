"""change_worker_durations: the durations that all workers share."""

from __future__ import annotations

from rota.core.lease_heartbeat_poll_and_grace_durations import DurationSettings
from rota.store.namespace_settings import SettingsStore
from tests.store.driver import Driver


def _store(driver: Driver) -> SettingsStore:
    return SettingsStore(driver.redis_client, driver.keys)


async def test_settings_are_kept_with_their_version_and_the_lease_before(driver: Driver) -> None:
    store = _store(driver)
    none = await store.read()
    assert none == DurationSettings()

    assert await store.change(none, DurationSettings(lease_ms=30_000, poll_ms=10_000))

    first = await store.read()
    assert (first.version, first.lease_ms, first.poll_ms, first.heartbeat_ms) == (1, 30_000, 10_000, None)
    assert first.previous_lease_ms == 4_500
    assert first.changed_at <= driver.now()
    driver.advance(61_000)
    assert await store.change(first, DurationSettings())
    assert (await store.read()).previous_lease_ms == 30_000


async def test_of_two_changes_at_once_one_is_refused_and_changes_nothing(driver: Driver) -> None:
    store = _store(driver)
    read = await store.read()
    assert await store.change(read, DurationSettings(lease_ms=30_000))

    assert not await store.change(read, DurationSettings(lease_ms=9_000))

    assert (await store.read()).lease_ms == 30_000


async def test_after_two_changes_in_a_minute_the_shortest_lease_counts(driver: Driver) -> None:
    """Some workers may still use the first one."""
    store = _store(driver)
    await store.change(await store.read(), DurationSettings(lease_ms=30_000))
    driver.advance(2_000)

    await store.change(await store.read(), DurationSettings(lease_ms=60_000))

    assert (await store.read()).previous_lease_ms == 4_500
