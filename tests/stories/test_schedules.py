"""A rule can make jobs again and again."""

from __future__ import annotations

from types import ModuleType

import pytest

from rota import Cron, Every
from tests.eventually import eventually


@pytest.mark.usefixtures("worker")
async def test_a_schedule_makes_a_job_at_every_tick(shop: ModuleType) -> None:
    await shop.rota.schedules.put("daily-van", Every(1), shop.ship.call("Oslo"))

    async def has_shipped_twice() -> bool:
        return (await shop.rota.queue().counts())["completed"] >= 2

    await eventually(has_shipped_twice)

    jobs = (await shop.rota.jobs("completed", task="ship")).jobs
    assert all(job.ref.id.startswith("daily-van.20") for job in jobs)
    assert len({job.ref.id for job in jobs}) == len(jobs)


@pytest.mark.usefixtures("worker")
async def test_a_schedule_can_be_paused_and_run_by_hand(shop: ModuleType) -> None:
    info = await shop.rota.schedules.put("night-van", Cron("0 3 * * *", "Europe/Oslo"), shop.ship.call("Bergen"))
    assert info.words == "at 03:00 every day, Europe/Oslo"

    await shop.rota.schedules.pause("night-van")
    job = await shop.rota.schedules.run_now("night-van")

    assert await job.result(timeout=10) == "shipped to Bergen"
    assert (await shop.rota.schedules.get("night-van")).next_runs == ()
