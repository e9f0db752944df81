"""Ten thousand dependents, ten thousand parents: every call stays bounded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, Final, cast

import pytest

from rota.core.dependencies import checked_parents
from rota.core.ids import JobRef
from rota.store.create_dependents_and_deliver_outcomes import SLICE, DependencyStore, JobWithParents
from rota.store.job_store import JobStore
from rota.store.redis.retrying_client import Argument, ScriptCall
from rota.store.redis.script_compiler import script
from tests.store.dependency_helpers import OTHER, THIRD, complete_run, fail_run, redrive_run, states_of
from tests.store.driver import CLOCK, QUEUE, Driver, completed, failed, new_job, ref_of

pytestmark = pytest.mark.usefixtures("check_every_queue")


MANY: Final = 10_000
#: Scripts whose calls are timed.
SCRIPTS: Final = (
    "prepare_dependents",
    "add_parents_to_prepared_run",
    "register_dependents",
    "apply_parent_outcomes",
    "publish_prepared_runs",
    "take_outbox",
    "ack_outbox",
)


class Watched:
    """A redis_client that counts what each call carries."""

    def __init__(self, driver: Driver) -> None:
        self._redis = driver.redis_client
        self.most: dict[str, int] = {}

    async def run(self, name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        per: dict[str, Callable[[], int]] = {
            "register_dependents": lambda: len(arguments) // 3,
            "unregister_dependents": lambda: len(arguments) // 3,
            "apply_parent_outcomes": lambda: (len(arguments) - 2) // 6,
            "ack_outbox": lambda: len(arguments) - 2,
            "publish_prepared_runs": lambda: len(arguments) - 2,
            "prepare_dependents": lambda: sum(len(str(names).split(" ")) for names in arguments[10::7]),
            "add_parents_to_prepared_run": lambda: len(str(arguments[1]).split(" ")),
        }
        if name in per:
            self.most[name] = max(self.most.get(name, 0), per[name]())
        answer = await self._redis.run(name, keys, arguments)
        if name == "take_outbox":
            heirs = sum(len(part.split(b"\n")) for part in answer[7::7])
            self.most[name] = max(self.most.get(name, 0), heirs)
        return answer

    async def run_many(self, calls: Sequence[ScriptCall]) -> list[Any]:
        return [await self.run(*call) for call in calls]


def _watched(driver: Driver) -> tuple[DependencyStore, Watched]:
    watched = Watched(driver)
    ties = JobStore(driver.redis_client, driver.keys, "many").dependencies
    ties._redis = ties._store.redis = cast("Any", watched)
    driver.redis.config_set("slowlog-log-slower-than", 200)
    driver.redis.config_set("slowlog-max-len", 10_000)
    driver.redis.slowlog_reset()
    return ties, watched


def _is_bounded(driver: Driver, watched: Watched, record_property: Callable[[str, object], None]) -> None:
    """No call carried more than a slice. How long they took is said, not judged: the machine may be busy."""
    entries = driver.redis.slowlog_get(10_000)
    driver.redis.config_set("slowlog-log-slower-than", 10_000)
    driver.redis.config_set("slowlog-max-len", 128)
    names = {script(name, CLOCK).digest: name for name in SCRIPTS}
    times: dict[str, list[int]] = {}
    for entry in entries:
        words = entry["command"].decode(errors="replace").split(" ")
        if words[0] == "EVALSHA" and words[1] in names:
            times.setdefault(names[words[1]], []).append(entry["duration"])
    slowest = {name: (max(of), round(median(of)), len(of)) for name, of in times.items()}
    record_property("slowest script calls, us", slowest)
    print(f"max, median and count of script calls, us: {slowest}; items per call: {watched.most}")
    assert max(watched.most.values()) <= SLICE


@pytest.mark.parametrize("end", ["complete", "fail"])
async def test_ten_thousand_jobs_come_after_one(
    driver: Driver, end: str, record_property: Callable[[str, object], None]
) -> None:
    """Spec 4: no script call does more than a bounded piece of it."""
    ties, watched = _watched(driver)
    parent = await driver.one(queue=OTHER)
    named = checked_parents([parent])
    job = JobWithParents(new_job(after=(str(parent),)), named)
    await ties.enqueue_dependents(QUEUE, [job] * MANY)
    assert driver.counts() == {"blocked": MANY}

    await (complete_run if end == "complete" else fail_run)(driver, parent)
    await ties.deliver_all(OTHER)

    assert driver.counts() == {"pending" if end == "complete" else "cancelled": MANY}
    if end == "fail":
        await redrive_run(driver, parent)
        await ties.deliver_all(OTHER)
        assert driver.counts() == {"blocked": MANY}
    _is_bounded(driver, watched, record_property)


async def test_one_job_comes_after_ten_thousand(driver: Driver, record_property: Callable[[str, object], None]) -> None:
    ties, watched = _watched(driver)
    parents: list[JobRef] = []
    for queue in (QUEUE, OTHER):
        parents += await driver.enqueue(*[new_job()] * (MANY // 2), queue=queue)
    named = checked_parents(parents)
    (made,) = await ties.enqueue_dependents(THIRD, [JobWithParents(new_job(after=tuple(map(str, named))), named)])
    child = ref_of(made, THIRD)
    obstacle = (await driver.read(child)).record.obstacle
    assert obstacle is not None
    assert obstacle.count == MANY

    for queue in (QUEUE, OTHER):
        while jobs := await driver.worker().claim(500, queue=queue):
            await driver.client.report(queue, [completed(job) for job in jobs])
        assert await states_of(driver, child) == ["blocked"]
        await ties.deliver_all(queue)

    assert await states_of(driver, child) == ["pending"]
    assert driver.index("outbox") == driver.index("outbox", queue=OTHER) == {}
    _is_bounded(driver, watched, record_property)


async def test_many_parents_that_fail_cancel_and_return_one_job(driver: Driver) -> None:
    parents = await driver.enqueue(*[new_job()] * 300, queue=OTHER)
    child = await driver.after(*parents)
    jobs = await driver.worker().claim(300, queue=OTHER)
    await driver.client.report(OTHER, [failed(job) for job in jobs])
    await driver.post(OTHER)
    assert await states_of(driver, child) == ["cancelled"]

    assert set(await driver.client.redrive(OTHER, parents)) == {"redriven"}
    await driver.post(OTHER)

    assert await states_of(driver, child) == ["blocked"]
