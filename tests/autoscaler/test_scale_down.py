"""Scale-downs under load, with real processes: no job is interrupted, and none is charged an attempt."""

from __future__ import annotations

import asyncio
import importlib
import os
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from rota import Rota
from rota.autoscaler.config import AutoscalerConfig
from rota.autoscaler.planner import Planner
from rota.autoscaler.providers.local import LocalProvider
from rota.core.autoscaling.policy_settings import DrainTime
from tests.eventually import eventually
from tests.scale import IS_LONG
from tests.servers import Server
from tests.worker.harness import ROOT

SCALE_DOWNS: Final = int(os.environ.get("ROTA_TEST_SCALE_DOWNS", "0")) or (1_000 if IS_LONG else 20)
#: Workers of the pool when it is large; when it is small it has one.
LARGE: Final = 11
SLOTS: Final = 4
BACKLOG: Final = 300
WAIT_S: Final = 300.0


@pytest.fixture
async def program(
    valkey: Server, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ModuleType]:
    """The application of the workers, as the producer uses it."""
    monkeypatch.setenv("ROTA_URL", valkey.url)
    monkeypatch.setenv("ROTA_TEST_NAMESPACE", namespace)
    monkeypatch.setenv("ROTA_TEST_FOLDER", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT)]))
    module = importlib.reload(importlib.import_module("tests.autoscaler.app"))
    yield module
    await module.rota.close()


def provider(folder: Path) -> LocalProvider:
    """Starts workers of the application."""
    words = ["rota.cli.main", "worker", "tests.autoscaler.app:rota", "--queues", "default", "--log-level", "warning"]
    return LocalProvider([sys.executable, "-m", *words, "--concurrency", str(SLOTS)], folder / "children")


async def produce(program: ModuleType) -> None:
    """Keeps jobs waiting, so that every worker is busy."""
    rota: Rota = program.rota
    chance = random.Random(7)
    while True:
        waiting = (await rota.queue("default").counts())["pending"]
        if waiting < BACKLOG:
            await rota.enqueue_many(program.nap.call(chance.uniform(0.02, 0.4)) for _ in range(BACKLOG))
        await asyncio.sleep(0.2)


@pytest.mark.requirement("S2-26")
@pytest.mark.timeout(7_200 if IS_LONG or SCALE_DOWNS > 100 else 600)
async def test_scale_downs_under_load_interrupt_no_job(program: ModuleType, tmp_path: Path) -> None:
    rota: Rota = program.rota
    policy = DrainTime(boot_ms=0, interval_ms=1_000, down_cooldown_ms=0, min_workers=1, max_workers=1)
    local = provider(tmp_path)
    planner = Planner(rota, local, AutoscalerConfig(policy=policy, queues=("default",)))
    drained = set[str]()
    is_large = True
    async with asyncio.TaskGroup() as group:
        planning = group.create_task(planner.run())
        producing = group.create_task(produce(program))

        async def running() -> int:
            return sum(one.status == "ALIVE" and one.info.get("state") == "active" for one in await rota.workers())

        while len(drained) < SCALE_DOWNS:
            count = 1 + min(LARGE - 1, SCALE_DOWNS - len(drained)) if is_large else 1
            await rota.scaling.change(min_workers=count, max_workers=count)
            await eventually(partial(_is, running, count), WAIT_S)
            if not is_large:
                left = [one for one in await rota.workers() if one.info.get("was_drained")]
                drained |= {one.id for one in left}
                assert {one.info["state"] for one in left} <= {"drained", "stopped"}
            is_large = not is_large
        producing.cancel()
        await rota.queue("default").purge()
        await eventually(lambda: _is(lambda: _processing(rota), 0), WAIT_S)
        planner.stop()
        await planning
    await local.close()

    journal = [line.split() for line in (tmp_path / "journal").read_text().splitlines()]
    began = Counter(job for verb, job, _ in journal if verb == "began")
    ended = Counter(job for verb, job, _ in journal if verb == "ended")
    print(f"{len(drained)} scale-downs, {len(began)} jobs began, {len(ended)} ended")
    assert len(drained) >= SCALE_DOWNS
    assert [job for job, times in began.items() if times > 1] == [], "no job ran twice"
    assert began == ended, "every job that began has finished"
    assert {attempt for _, _, attempt in journal} == {"1"}, "no attempt was spent"
    assert (await rota.queue("default").info()).counts["failed"] == 0


async def _is(read: Callable[[], Awaitable[int]], expected: int) -> bool:
    return await read() == expected


async def _processing(rota: Rota) -> int:
    return (await rota.queue("default").counts())["processing"]
