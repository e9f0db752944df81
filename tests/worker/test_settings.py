"""Settings of the namespace: running workers follow a change, and keep their jobs while they do."""

from __future__ import annotations

from typing import cast

import pytest

from rota.errors import InvalidOption
from rota.store.reads import WorkerInfo
from tests.eventually import eventually
from tests.worker.harness import WorkerHarness


def _lease(harness: WorkerHarness) -> float:
    """The deadline of the only lease, ms."""
    with harness.redis() as client:
        found = cast("list[tuple[bytes, float]]", client.zrange(harness.key("processing"), 0, 0, withscores=True))
    return found[0][1]


@pytest.mark.requirement("S0-7", "S0-13")
async def test_running_workers_follow_a_change_and_keep_their_jobs(harness: WorkerHarness) -> None:
    worker = await harness.start()
    job = await harness.program.wait.enqueue("long")
    await harness.noted("long")

    await harness.rota.settings.change(lease=20, poll=5, heartbeat=4)

    async def version() -> int:
        return (await harness.info(worker)).info["settings"]

    async def follows() -> bool:
        return await version() == 1

    await eventually(follows, 15)
    assert _lease(harness) > harness.now_ms() + 14_000, "the job that ran before has the longer lease"
    line = "settings 1 of the namespace: lease 20 s, heartbeat 4 s, poll 5 s, grace 25 s"
    await eventually(lambda: line in worker.log)  # a thread writes it

    await harness.rota.settings.change(lease=None, poll=None, heartbeat=None)

    async def follows_again() -> bool:
        return await version() == 2

    await eventually(follows_again, 15)
    harness.allow("long")
    await job.result(20)
    assert (await job.refresh()).counts.stalls == 0


async def test_a_worker_starts_with_the_settings(harness: WorkerHarness) -> None:
    await harness.rota.settings.change(lease=30)
    worker = await harness.start()

    await harness.program.wait.enqueue("long")
    await harness.noted("long")

    assert _lease(harness) > harness.now_ms() + 25_000
    harness.allow("long")
    info: WorkerInfo = await harness.info(worker)
    assert info.info["settings"] == 1


async def test_the_grace_period_is_that_of_the_settings_unless_a_worker_has_its_own(harness: WorkerHarness) -> None:
    await harness.rota.settings.change(grace=0)
    worker = await harness.start()
    await harness.program.wait.enqueue("long")
    await harness.noted("long")

    worker.terminate()

    assert await worker.ended() == 0
    assert "unfinished and returned: 1 job" in worker.log
    assert "time to finish 1 job: 0 s" in worker.log
    harness.allow("long")


async def test_durations_that_do_not_fit_are_refused_and_nothing_is_stored(harness: WorkerHarness) -> None:
    with pytest.raises(InvalidOption, match="a third of the lease"):
        await harness.rota.settings.change(heartbeat=3)
    with pytest.raises(InvalidOption, match="is no setting; settings are lease, heartbeat, poll, grace"):
        await harness.rota.settings.change(lese=3)

    assert (await harness.rota.settings.get()).version == 0
