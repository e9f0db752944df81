"""A copy of a call that arrives after newer calls changes nothing.

Further ones: `test_pause_or_resume_queue.py`, `test_schedules.py`, `test_bulk_operations.py`, `test_call_numbers.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from rota.core.ids import JobRef
from rota.core.schedule import Every, Schedule
from rota.store.autoscaler_lease_decisions_and_demand import (
    Launch,
    PlannerInfo,
    ScalingDecision,
    ScalingSettings,
    ScalingStore,
)
from rota.store.bulk_operation_records import HOLD_MS, BulkOperationStore, OperationInfo
from rota.store.claim_replies import ClaimedJob
from rota.store.http_server_state import HttpServerStore
from rota.store.schedules import ScheduleStore
from tests.store.driver import QUEUE, Driver, body
from tests.store.late_copies import recorded

ACTIVE: Final = '{"state":"active"}'


class Scene:
    """The stores of one namespace, a running job, a planner with the lease, and a worker."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.worker = driver.worker().store
        self.client = driver.client
        self.scaling = ScalingStore(driver.redis_client, driver.keys)
        self.server = HttpServerStore(driver.redis_client, driver.keys)
        self.schedules = ScheduleStore(driver.redis_client, driver.keys)
        self.operations = BulkOperationStore(driver.redis_client, driver.keys)
        self.fence = ""
        self.rounds = 0
        self.jobs: list[ClaimedJob] = []

    async def prepare(self) -> None:
        await self.driver.one()
        self.jobs = await self.driver.worker().claim()
        await self.worker.renew_registration(ACTIVE)
        self.fence = (await self.scaling.take_lease("planner", PlannerInfo())).fence
        await self.schedules.put(schedule())

    async def progress(self, done: str) -> None:
        (job,) = self.jobs
        await self.worker.save_progress(QUEUE, [(job.run, job.claim, done, "4", "")])

    async def record(self) -> None:
        self.rounds += 1
        decision = ScalingDecision(at=self.rounds, wanted=self.rounds)
        await self.scaling.record(self.fence, self.rounds, decision, is_kept=True)

    async def pause_schedule(self) -> str:
        return await self.schedules.pause(QUEUE, "nightly", wanted="paused", revision=1, next_tick=None)

    async def create_schedule_again(self) -> None:
        await self.schedules.remove(QUEUE, "nightly")
        await self.schedules.put(schedule())


def schedule() -> Schedule:
    return Schedule(queue=QUEUE, name="nightly", rule=Every(60), body=body())


Act = Callable[[Scene], Awaitable[Any]]
SETTINGS: Final = ScalingSettings(max_workers=3)
#: name -> (script, a call, a newer call); then the copy of the first call arrives.
CASES: Final[dict[str, tuple[str, Act, Act]]] = {
    "progress": ("save_progress", lambda s: s.progress("1"), lambda s: s.progress("2")),
    "failure handlers": (
        "publish_failure_handlers",
        lambda s: s.worker.publish_failure_handlers(QUEUE, {"a": "old", "b": "old"}),
        lambda s: s.worker.publish_failure_handlers(QUEUE, {"a": "new"}, removed=["b"]),
    ),
    "failure handlers removed": (
        "publish_failure_handlers",
        lambda s: s.worker.publish_failure_handlers(QUEUE, {}, removed=["a"]),
        lambda s: s.worker.publish_failure_handlers(QUEUE, {"a": "new"}),
    ),
    "tasks": (
        "publish_tasks",
        lambda s: s.worker.publish_tasks({"a": "old"}),
        lambda s: s.worker.publish_tasks({"a": "new"}),
    ),
    "drain": ("drain_worker", lambda s: s.client.drain_worker("w1"), lambda s: s.client.undrain_worker("w1")),
    "undrain": ("undrain_worker", lambda s: s.client.undrain_worker("w1"), lambda s: s.client.drain_worker("w1")),
    "registration": (
        "renew_registration",
        lambda s: s.worker.renew_registration(ACTIVE),
        lambda s: s.worker.renew_registration('{"state":"stopped"}'),
    ),
    "planner lease": (
        "take_planner_lease",
        lambda s: s.scaling.take_lease("planner", PlannerInfo()),
        lambda s: s.scaling.release_lease(s.fence),
    ),
    "launch": (
        "save_launch",
        lambda s: s.scaling.save_launch(s.fence, "a", Launch(count=1, at=1)),
        lambda s: s.scaling.save_launch(s.fence, "a", None),
    ),
    "scaling decision": ("record_scaling_decision", lambda s: s.record(), lambda s: s.record()),
    "scaling settings": (
        "change_scaling_settings",
        lambda s: s.scaling.change_settings(ScalingSettings(), SETTINGS),
        lambda s: s.scaling.change_settings(SETTINGS, ScalingSettings()),
    ),
    "pause of a schedule that was created again": (
        "pause_or_resume_schedule",
        lambda s: s.pause_schedule(),
        lambda s: s.create_schedule_again(),
    ),
    "API token": ("put_token", lambda s: s.server.put_token("id", b"{}"), lambda s: s.server.delete_token("id")),
    "failed login": (
        "count_failed_login",
        lambda s: s.server.count_failed_login("127.0.0.1"),
        lambda s: s.server.count_failed_login("127.0.0.1"),
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_a_copy_that_arrives_after_a_newer_call_changes_nothing(driver: Driver, name: str) -> None:
    script, late, newer = CASES[name]
    scene = Scene(driver)
    await scene.prepare()
    with recorded(driver) as recording:
        await late(scene)
    await newer(scene)
    before = driver.dump()

    await recording.send_again(script)

    assert driver.dump() == before


async def test_progress_of_the_next_attempt_is_stored_whatever_number_the_last_one_had(driver: Driver) -> None:
    """The next attempt may run in another worker, which counts from one."""
    ref = await driver.one()
    (job,) = await driver.worker().claim()
    for done in "123":
        await driver.worker().store.save_progress(QUEUE, [(job.run, job.claim, done, "4", "")])
    driver.advance(10)
    await driver.worker().hand_back(job)
    (job,) = await driver.worker("w2").claim()

    await driver.worker("w2").store.save_progress(QUEUE, [(job.run, job.claim, "0", "4", "")])

    progress = (await driver.read(ref)).record.progress
    assert progress is not None
    assert progress.done == 0


async def test_a_session_that_was_closed_is_not_opened_by_a_late_copy(driver: Driver) -> None:
    server = HttpServerStore(driver.redis_client, driver.keys)
    await server.open_session("name", b"{}")
    await server.close_session("name")

    await server.open_session("name", b"{}")

    assert await server.session("name") is None
    assert 590_000 < driver.redis.pttl(driver.keys.shared("session", "name")) <= 600_000


async def test_a_session_that_is_not_open_leaves_nothing_when_it_is_closed(driver: Driver) -> None:
    await HttpServerStore(driver.redis_client, driver.keys).close_session("unknown")

    assert driver.redis.exists(driver.keys.shared("session", "unknown")) == 0


async def test_a_report_of_a_drained_worker_that_arrives_late_does_not_end_a_worker_that_went_on(
    driver: Driver,
) -> None:
    """It was asked to drain, the request was withdrawn, and it is asked again; the report is of the first request."""
    scene = Scene(driver)
    await scene.prepare()
    await scene.client.drain_worker("w1")
    with recorded(driver) as recording:
        await scene.worker.report_drained('{"state":"drained"}')
    driver.redis.hset(driver.keys.shared("workers"), "w1", ACTIVE)  # as if only its copy were on its way
    await scene.client.undrain_worker("w1")
    await scene.worker.renew_registration(ACTIVE)
    await scene.client.drain_worker("w1")
    before = driver.dump()

    assert await recording.send_again("report_drained") == b"active"

    assert driver.dump() == before


async def test_progress_of_an_operation_that_arrives_late_reverts_nothing_after_its_driver_was_replaced(
    driver: Driver,
) -> None:
    """The first driver saves, another one takes over, and the first one takes the operation again."""
    scene = Scene(driver)
    info = OperationInfo(id="op", verb="cancel", where={}, created_at=driver.now())
    await scene.operations.open(info)
    assert await scene.operations.take_due("first") == ["op"]
    with recorded(driver) as recording:
        await scene.operations.save(info, "first")
    for name in ("second", "first"):
        driver.advance(HOLD_MS + 1)
        assert await scene.operations.take_due(name) == ["op"]
    before = driver.dump()

    await recording.send_again("save_operation_progress")

    assert driver.dump() == before


async def test_a_heartbeat_that_arrives_late_does_not_forget_the_claim_given_up_last(driver: Driver) -> None:
    await driver.one()
    await driver.worker().claim()
    with recorded(driver) as recording:
        await driver.worker().store.heartbeat(QUEUE, [], given_up=16)
    await driver.worker().store.heartbeat(QUEUE, [], given_up=32)

    await recording.send_again("heartbeat")

    assert driver.redis.get(driver.key("last_reply", "w1") + ":given_up") == b"32"


async def test_parents_that_are_added_late_do_not_wait_again_for_one_that_has_ended(driver: Driver) -> None:
    """The copy arrives before the run is published: the run would wait for ever."""
    parents = [await driver.one(f"p{number}") for number in range(450)]
    jobs = await driver.worker().claim(500)
    while jobs:
        for job in jobs:
            await driver.worker().complete(job)
        jobs = await driver.worker().claim(500)
    run_script = driver.redis_client.run
    added: list[tuple[Any, ...]] = []

    async def send_copy_before_publishing(name: str, keys: Any, arguments: Any) -> Any:
        if name == "add_parents_to_prepared_run":
            added.append((name, keys, arguments))
        if name == "publish_prepared_runs":
            for call in added:
                await run_script(*call)
        return await run_script(name, keys, arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver.redis_client, "run", send_copy_before_publishing)
        ref = await driver.after(*parents)

    assert added
    assert isinstance(ref, JobRef)
    assert driver.counts()["pending"] == 1
