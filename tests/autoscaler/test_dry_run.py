"""Dry runs: what the planner would decide now."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from rota import InvalidOption, WrongState
from rota.autoscaler.dry_run_responder import MAX_REQUESTS, DryRunResponder
from rota.autoscaler.machine_provider import ProviderError
from rota.client.session import checked_session, session_of
from rota.store.autoscaler_lease_decisions_and_demand import PlannerInfo, ScalingSettings
from rota.store.scaling_dry_run import REQUEST, ScalingDryRun
from tests.autoscaler.conftest import Pool
from tests.eventually import eventually

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
async def running(pool: Pool) -> AsyncIterator[Pool]:
    """A planner at work that is paused, so that a dry run differs from its rounds."""
    await pool.rota.scaling.pause()
    task = asyncio.create_task(pool.planner.run())

    async def has_planned() -> bool:
        return (await pool.rota.scaling.status()).latest is not None

    await eventually(has_planned)
    yield pool
    pool.planner.stop()
    await task


async def test_a_dry_run_says_what_would_be_done_and_does_nothing(running: Pool) -> None:
    await running.enqueue(5)
    stored = (await running.rota.scaling.decisions()).decisions

    found = await running.rota.scaling.dry_run()
    with_more = await running.rota.scaling.dry_run(max_workers=4)

    assert (found.planner, found.launch, found.decision.wanted, found.decision.normal) == (running.planner.id, 3, 3, 5)
    assert found.decision.reasons
    assert (with_more.launch, with_more.max_workers) == (4, 4)
    assert running.cloud.made("launch") == []
    status = await running.rota.scaling.status()
    assert status.settings.max_workers is None
    assert (await running.rota.scaling.decisions()).decisions == stored


async def test_a_dry_run_names_the_machines_that_would_leave(running: Pool) -> None:
    await running.rota.scaling.resume()
    await running.enqueue(2)
    await eventually(lambda: len(running.cloud.existing) == 2)
    for machine in running.cloud.existing:
        await running.register(machine, busy=1)
    await running.rota.scaling.pause()

    found = await running.rota.scaling.dry_run(min_workers=0, max_workers=1)

    assert (found.decision.drain_count, len(found.decision.drained), found.launch) == (1, 1, 0)


async def test_a_provider_that_fails_leads_to_a_hold(running: Pool) -> None:
    running.cloud.fails["machines"] = ProviderError("no answer")

    found = await running.rota.scaling.dry_run()

    assert found.decision.is_hold
    assert "no answer" in found.decision.reasons[0]


async def test_without_a_planner_there_is_no_dry_run(pool: Pool) -> None:
    with pytest.raises(WrongState, match="not running; start it with `rota autoscale`"):
        await pool.rota.scaling.dry_run()
    with pytest.raises(InvalidOption):
        await pool.rota.scaling.dry_run(max_workers=-1)


async def test_a_planner_that_does_not_answer_is_named(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    await (await checked_session(pool.rota)).scaling.take_lease("silent", PlannerInfo(max_workers=3))
    monkeypatch.setattr("rota.store.scaling_dry_run.ANSWER_WITHIN_S", 0.2)

    with pytest.raises(WrongState, match="planner silent sent nothing"):
        await pool.rota.scaling.dry_run()


async def test_requests_that_are_not_readable_or_too_many_are_dropped(
    pool: Pool, caplog: pytest.LogCaptureFixture
) -> None:
    async def decide(_session: object, _settings: ScalingSettings) -> ScalingDryRun:
        raise AssertionError("nothing is decided here")

    responder = DryRunResponder(decide)

    assert not responder.take("settings")
    assert responder.take(REQUEST + "{")
    assert "not readable" in caplog.text
    for _ in range(MAX_REQUESTS + 1):
        assert responder.take(REQUEST + '{"answer_to":"x","settings":{}}')
    assert "was dropped" in caplog.text


async def test_planners_that_stand_by_are_listed_until_they_take_over(pool: Pool) -> None:
    first, second = pool.planner, pool.new_planner()
    session = await checked_session(pool.rota)
    await first.try_lease(session)
    await second.try_lease(session)
    assert (await pool.rota.scaling.status()).standby == [second.id]

    await session_of(pool.rota).redis.command("HDEL", session.keys.shared("planner"), "holder")
    await second.try_lease(session)

    status = await pool.rota.scaling.status()
    assert (status.planner, status.standby) == (second.id, [])


async def test_settings_are_reported_by_the_round_that_applies_them(pool: Pool) -> None:
    await pool.round()
    await pool.rota.scaling.change(max_workers=7)
    session = await checked_session(pool.rota)
    await pool.planner.plan_round(session)
    assert (info := (await pool.rota.scaling.status()).info) is not None
    assert info.max_workers == 7

    await pool.rota.scaling.change(max_workers=None)
    await pool.planner.plan_round(session)

    assert (info := (await pool.rota.scaling.status()).info) is not None
    assert info.max_workers == 3
