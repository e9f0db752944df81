"""Every mutating call that is sent twice has the outcome of once: replies get lost, and the client sends again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest

from rota.core.dependencies import known
from rota.core.health.acknowledgement import Acknowledgement
from rota.core.ids import JobRef
from rota.core.job_options import Keep
from rota.core.lease_heartbeat_poll_and_grace_durations import DurationSettings
from rota.core.lua_constants import BLOB_UNTAKEN_MS
from rota.core.same_id_policy import Update
from rota.core.workflow_record_and_decisions import StepRecord
from rota.errors import JobNotFound
from rota.store.annotations import Annotation, AnnotationStore
from rota.store.attention import AttentionStore
from rota.store.autoscaler_lease_decisions_and_demand import (
    Launch,
    PlannerInfo,
    ScalingDecision,
    ScalingSettings,
    ScalingStore,
)
from rota.store.blob_store import BlobStore
from rota.store.carry_out_workflow_decisions import WorkflowStore
from rota.store.claim_replies import ClaimedJob
from rota.store.create_dependents_and_deliver_outcomes import WORKFLOWS, ParentOutcome
from rota.store.job_store import LEASE_MS
from rota.store.namespace_settings import SettingsStore
from rota.store.redis.retrying_client import Argument, ScriptCall
from tests.store.driver import QUEUE, Driver, body, new_job, parts

#: Where a sign of life leaves its time, which is later when it comes again.
LIFE: Final = ("meta", "heartbeats", "worker_seen", "processing", "stopping")


class Echo:
    """Sends each script twice, and compares what is stored after the first time and after the second."""

    def __init__(self, driver: Driver, but_for: Sequence[str]) -> None:
        self.driver = driver
        self.but_for = but_for
        self.answers: list[tuple[Any, Any]] = []
        self._run, self._run_many = driver.redis_client.run, driver.redis_client.run_many
        #: What is sent at the same time is looked at one by one.
        self._alone = asyncio.Lock()

    def start(self) -> None:
        self.driver.redis_client.run = self.run
        self.driver.redis_client.run_many = self.run_many

    def stop(self) -> None:
        self.driver.redis_client.run = self._run
        self.driver.redis_client.run_many = self._run_many

    async def run(self, name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        return await self._twice(lambda: self._run(name, keys, arguments))

    async def run_many(self, calls: Sequence[ScriptCall]) -> list[Any]:
        return await self._twice(lambda: self._run_many(calls))

    async def _twice(self, send: Callable[[], Awaitable[Any]]) -> Any:
        async with self._alone:
            first = await send()
            after_first = self.driver.dump(*self.but_for)
            self.driver.advance(5)
            second = await send()
            assert self.driver.dump(*self.but_for) == after_first
        self.answers.append((first, second))
        return second


@dataclass
class Scene:
    """What a call may need: a job in each state."""

    driver: Driver
    pending: JobRef
    scheduled: JobRef
    dead: JobRef
    done: JobRef
    jobs: list[ClaimedJob]

    @property
    def job(self) -> ClaimedJob:
        return self.jobs[0]


async def _scene(driver: Driver) -> Scene:
    dead = await driver.dead_letter("dead")
    worker = driver.worker()
    done = await driver.one("done")
    (job,) = await worker.claim()
    await worker.complete(job)
    await driver.enqueue(new_job("p1"), new_job("p2", max_stalls=0), new_job("p3", lock="a"))
    jobs = await worker.claim(3)
    await driver.enqueue(new_job("p1", again=Update()), new_job("behind", lock="a"))
    child = await driver.after("q:p2", "q:p3", id="child")
    await driver.after(child, "q:dead", id="grandchild")
    pending = await driver.one("pending", expiry="+60000")
    await driver.enqueue(*[new_job()] * 5)
    scheduled = await driver.one("scheduled", due="+30000")
    for name in ("idle1", "idle2"):
        driver.redis.zadd(driver.key("idle"), {name: driver.now()})
    scene = Scene(driver, pending, scheduled, dead, done, jobs)
    await opened(scene)
    return scene


def flows(scene: Scene) -> WorkflowStore:
    return WorkflowStore(scene.driver.client)


async def opened(scene: Scene, flow: str = "flow") -> None:
    """A workflow of one step."""
    step = StepRecord(f"{flow}.0", QUEUE, scene.pending.run or "", "noop", (), "noop")
    await flows(scene).open(flow, [step], {"name": "order", "limit": "1", "committed": "1"}, nonce="n")


async def turned(scene: Scene) -> None:
    flow = await flows(scene).read("flow")
    assert flow is not None
    await flows(scene).save_decision(flow, fields={"cause": "x"})


async def posted(scene: Scene) -> None:
    """A parent ends, and its dependents are notified."""
    await scene.driver.worker().complete(scene.jobs[1])
    await scene.driver.worker().fail(scene.jobs[2])
    await scene.driver.post()


async def updated(scene: Scene, ref: JobRef, replaced: Update) -> None:
    seen = (await scene.driver.read(ref)).digest
    new = body([9], priority=5)
    outcome = await scene.driver.client.update(
        ref, seen_digest=seen, parts=replaced, priority=5, due="+9", expiry="", body=new
    )
    assert outcome == "updated"


async def drained(scene: Scene) -> str:
    worker = scene.driver.worker()
    await worker.store.renew_registration('{"state":"active"}')
    return await scene.driver.client.drain_worker(worker.store.participant)


async def undrained(scene: Scene) -> str:
    await drained(scene)
    return await scene.driver.client.undrain_worker("w1")


async def reported(scene: Scene) -> bool:
    await drained(scene)
    return await scene.driver.worker().store.report_drained('{"state":"drained"}')


def scaling(scene: Scene) -> ScalingStore:
    return ScalingStore(scene.driver.redis_client, scene.driver.keys)


async def planned(scene: Scene) -> None:
    """All that a planner writes."""
    store = scaling(scene)
    fence = (await store.take_lease("p1", PlannerInfo())).fence
    await store.save_launch(fence, "a", Launch(count=1, at=1))
    await store.save_launch(fence, "b", Launch(count=1, at=1))
    await store.save_launch(fence, "b", None)
    await store.bar_machine(fence, "m1")
    await store.record(fence, 1, ScalingDecision(at=1, wanted=1), is_kept=True)
    await store.release_lease(fence)


async def refused(made: Awaitable[Any]) -> None:
    with pytest.raises(JobNotFound):
        await made


async def _undo_workflow(scene: Scene) -> str:
    """From its commit to its end, with a step that fails for good."""
    driver = scene.driver
    await driver.workflow("w", steps=2, on_failure="hold")
    await driver.client.cancel(JobRef(QUEUE, "w.0"))
    await driver.ties.deliver_all(QUEUE, include="all")
    await driver.flows.drive_due()  # the first reply takes the workflow, the second finds it taken
    await driver.flows.drive("w")
    assert await driver.flows.watch("w") == "failed"
    await driver.flows.save_decision(await driver.flow("w"), fields={"cancel": "leave"}, next_ms=0)
    await driver.flows.drive("w")
    return (await driver.flow("w")).state


def annotations_of(scene: Scene) -> AnnotationStore:
    return AnnotationStore(scene.driver.redis_client, scene.driver.keys)


def attention_of(scene: Scene) -> AttentionStore:
    return AttentionStore(scene.driver.redis_client, scene.driver.keys)


async def took_blobs(scene: Scene) -> list[str]:
    """A blob in the user's store is due to be removed there, and a worker gets it."""
    blobs = BlobStore(scene.driver.client)
    await blobs.reserve(QUEUE, "x1")
    scene.driver.advance(BLOB_UNTAKEN_MS)
    return await blobs.take_removable(QUEUE)


async def stored_and_discarded(scene: Scene) -> str:
    blobs = BlobStore(scene.driver.client)
    stored = await blobs.append(QUEUE, "c1", 0, b"chunk")
    await blobs.discard(QUEUE, ["c1"])
    return stored


Act = Callable[[Scene], Awaitable[Any]]
NO_ANSWER: Final = "no answer is compared"
EQUAL: Final = "equal"

#: name -> (the call, its second answer if not equal to the first, keys that may differ)
CALLS: Final[dict[str, tuple[Act, str, Sequence[str]]]] = {
    "enqueue": (lambda s: s.driver.client.enqueue(QUEUE, [new_job(), new_job("a"), new_job("pending")]), EQUAL, ()),
    "enqueue_fast": (lambda s: s.driver.client.enqueue(QUEUE, [new_job()]), EQUAL, ()),
    "enqueue_fast many": (
        lambda s: s.driver.client.enqueue(QUEUE, [new_job("", [n]) for n in range(1_200)]),
        EQUAL,
        (),
    ),
    "enqueue later": (lambda s: s.driver.client.enqueue(QUEUE, [new_job(due="+5", expiry="+9000")]), EQUAL, ()),
    "enqueue again": (
        lambda s: s.driver.client.enqueue(
            QUEUE, [new_job(id, [9], again=Update()) for id in ("p1", "p2", "pending", "n")]
        ),
        EQUAL,
        (),
    ),
    "enqueue locked": (lambda s: s.driver.client.enqueue(QUEUE, [new_job(lock=name) for name in "aabb"]), EQUAL, ()),
    "fail, with a follow-up": (lambda s: s.driver.worker().fail(s.jobs[0], ""), "already", ()),
    "complete, with a lane behind": (lambda s: s.driver.worker().complete(s.jobs[2]), "already", ()),
    "enqueue after": (lambda s: s.driver.after(s.pending, s.done, s.scheduled), NO_ANSWER, ("prepared",)),
    "enqueue after many": (
        lambda s: s.driver.after(s.pending, *(known(f"q:gone{n}", if_gone="satisfied") for n in range(450))),
        NO_ANSWER,
        ("prepared",),
    ),
    "enqueue after what is unknown": (
        lambda s: refused(s.driver.after(s.pending, "q:nowhere")),
        NO_ANSWER,
        ("prepared",),
    ),
    "post": (lambda s: posted(s), NO_ANSWER, ("outbox",)),
    "open_workflow": (lambda s: opened(s, "another"), EQUAL, ()),
    "record_step_outcomes": (
        lambda s: s.driver.ties.deliver_outcomes(
            WORKFLOWS, [ParentOutcome("flow", "s0", "1", "completed", "", b"1", "1")]
        ),
        EQUAL,
        (),
    ),
    "take_due_workflows": (lambda s: flows(s).drive_due(), EQUAL, ()),
    "save_workflow_decision": (turned, NO_ANSWER, ()),
    "watch_workflow_end": (lambda s: flows(s).watch("flow"), EQUAL, ()),
    "claim": (lambda s: s.driver.worker().claims(3), NO_ANSWER, ()),
    "claim more than there is": (lambda s: s.driver.worker().claims(50), NO_ANSWER, ()),
    "complete": (lambda s: s.driver.worker().complete(s.job, b'"x"'), "already", ()),
    "complete, keeping nothing": (lambda s: s.driver.worker().complete(s.job, keep=Keep(finished=0)), "missing", ()),
    "fail": (lambda s: s.driver.worker().fail(s.job, "+60000"), "already", ()),
    "fail, trying again now": (lambda s: s.driver.worker().fail(s.job, ""), "already", ()),
    "fail for good": (lambda s: s.driver.worker().fail(s.job), "already", ()),
    "fail for good, keeping nothing": (lambda s: s.driver.worker().fail(s.job, keep=Keep(failed=0)), "missing", ()),
    "snooze": (lambda s: s.driver.worker().snooze(s.job, "+60000"), "already", ()),
    "return": (lambda s: s.driver.worker().hand_back(s.job), "already", ()),
    "cancel_self": (lambda s: s.driver.worker().give_up(s.job, "no"), "cancelled", ()),
    "confirm_cancelled_run_stopped": (lambda s: s.driver.worker().confirm_cancelled_run_stopped(s.job), "ok", ()),
    "report_dead_process": (lambda s: s.driver.worker().lose(s.job), "already", ()),
    "report_dead_process for good": (lambda s: s.driver.worker().lose(s.jobs[1]), "already", ()),
    "heartbeat": (lambda s: s.driver.worker().beat(*s.jobs), EQUAL, LIFE),
    "save_progress": (
        lambda s: s.driver.worker().store.save_progress(QUEUE, [(s.job.run, s.job.claim, "1", "2", "")]),
        EQUAL,
        (),
    ),
    "append_log": (
        lambda s: s.driver.worker().store.append_log(QUEUE, s.job.run, s.job.claim, 1, ["info a", "info b"]),
        EQUAL,
        (),
    ),
    "cancel": (lambda s: s.driver.client.cancel(s.pending, reason="no"), EQUAL, ()),
    "cancel scheduled": (lambda s: s.driver.client.cancel(s.scheduled), EQUAL, ()),
    "cancel running": (lambda s: s.driver.client.cancel(JobRef(QUEUE, "p1")), EQUAL, ()),
    "cancel finished": (lambda s: s.driver.client.cancel(s.done), EQUAL, ()),
    "enqueue once": (
        lambda s: s.driver.client.enqueue(QUEUE, [new_job("once")._replace(idempotency_token="token")] * 2),
        EQUAL,
        (),
    ),
    "update": (lambda s: updated(s, s.pending, parts(data=True, options=True, run_at=True)), NO_ANSWER, ()),
    "update dead": (lambda s: updated(s, s.dead, parts(data=True)), NO_ANSWER, ()),
    "delete": (lambda s: s.driver.client.delete(s.pending), EQUAL, ()),
    "delete running": (lambda s: s.driver.client.delete(JobRef(QUEUE, "p1")), EQUAL, ()),
    "delete finished": (lambda s: s.driver.client.delete(s.done), EQUAL, ()),
    "purge": (lambda s: s.driver.client.purge(QUEUE, 2), EQUAL, ()),
    "redrive": (lambda s: s.driver.client.redrive(QUEUE, [s.dead, s.done]), EQUAL, ()),
    "pause_or_resume_queue": (lambda s: s.driver.client.pause_queue(QUEUE, wanted="paused"), EQUAL, ()),
    "open": (lambda s: s.driver.client.pause_queue(QUEUE, wanted="open"), EQUAL, ()),
    "pause_or_resume_task": (lambda s: s.driver.client.pause_task(QUEUE, "noop"), EQUAL, ()),
    "pause_or_resume_task open": (lambda s: s.driver.client.resume_task(QUEUE, "noop"), EQUAL, ()),
    "annotate": (lambda s: annotations_of(s).add(Annotation(id="a")), EQUAL, ()),
    "record_findings": (lambda s: attention_of(s).record(["slow_queue:mail"]), NO_ANSWER, ("findings",)),
    "acknowledge_finding": (
        lambda s: attention_of(s).acknowledge("slow_queue:mail", Acknowledgement(by="ada", at=1)),
        EQUAL,
        (),
    ),
    "append_blob_chunk": (lambda s: BlobStore(s.driver.client).append(QUEUE, "c1", 0, b"chunk"), EQUAL, ()),
    "reserve_external_blob": (
        lambda s: BlobStore(s.driver.client).reserve(QUEUE, "x1"),
        EQUAL,
        ("external_blobs",),  # the hour begins again
    ),
    "discard_blobs": (stored_and_discarded, "ok", ()),
    # The second reply leaves them to the first; they are given out again after a minute.
    "take_removable_external_blobs": (took_blobs, NO_ANSWER, ("external_blobs",)),
    "ack_removed_external_blobs": (lambda s: BlobStore(s.driver.client).ack_removed(QUEUE, ["x1"]), EQUAL, ()),
    "watch_run_end": (lambda s: s.driver.client.watch(s.pending), EQUAL, ()),
    "remove_worker_from_queue": (lambda s: s.driver.worker().store.leave_queue(QUEUE), EQUAL, ("idle",)),
    "apply_retention": (lambda s: s.driver.client.apply_retention(QUEUE), EQUAL, ()),
    "publish_tasks": (lambda s: s.driver.client.publish_tasks({"noop": "{}"}), NO_ANSWER, ()),
    "publish_failure_handlers": (
        lambda s: s.driver.client.publish_failure_handlers(QUEUE, {"noop": ""}, removed=["other"]),
        NO_ANSWER,
        (),
    ),
    "register_queues": (lambda s: s.driver.client.register_queues({"plain": 0, "wide": 3}), EQUAL, ()),
    "workflow": (lambda s: s.driver.workflow("w", steps=2), NO_ANSWER, ()),
    "workflow, undone": (_undo_workflow, "cancelled", ("workflow_due", "outbox")),
    "drain_worker": (drained, "draining", LIFE[:3]),
    "undrain_worker": (undrained, "active", LIFE[:3]),
    "report_drained": (reported, NO_ANSWER, LIFE[:3]),
    "plan": (planned, NO_ANSWER, ("planner",)),
    "change_scaling_settings": (
        lambda s: scaling(s).change_settings(ScalingSettings(), ScalingSettings(max_workers=3)),
        EQUAL,
        (),
    ),
    "change_worker_durations": (
        lambda s: SettingsStore(s.driver.redis_client, s.driver.keys).change(
            DurationSettings(), DurationSettings(lease_ms=9_000)
        ),
        EQUAL,
        (),
    ),
    "renew_registration": (
        lambda s: s.driver.worker().store.renew_registration('{"state":"active"}'),
        NO_ANSWER,
        LIFE[:3],
    ),
}


#: Sent twice in test_operations.py.
OPERATIONS: Final = {"open_operation", "take_due_operations", "save_operation_progress", "stop_operation"}
#: Sent twice in test_late_copies.py.
LOGIN: Final = {"put_token", "count_failed_login"}
#: Its entry is then in the log twice, and readers show it once: test_append_audit.py.
AUDIT: Final = {"append_audit"}
#: Sent twice in test_fire.py.
#: Scripts of `tests/client/test_export_and_import.py`, which imports twice.
COPIES: Final = {"import_runs", "import_schedule", "import_workflow", "write_mirror"}
#: Scripts of `tests/store/test_index_repair.py`, which sends each twice: the second finds nothing.
REPAIR: Final = {"check_runs", "check_index_entries", "check_task_index"}
SCHEDULES: Final = {"fire_schedule", "put_schedule", "pause_or_resume_schedule", "remove_schedule", "run_schedule_now"}
#: Scripts that are steps of such a call.
WITHIN: Final = {
    "enqueue after": {"prepare_dependents", "register_dependents", "apply_parent_outcomes", "publish_prepared_runs"},
    "enqueue after many": {"add_parents_to_prepared_run"},
    "enqueue after what is unknown": {"unregister_dependents", "discard_prepared_runs"},
    "plan": {
        "take_planner_lease",
        "save_launch",
        "bar_machine",
        "record_scaling_decision",
        "release_planner_lease",
    },
    "post": {"take_outbox", "apply_parent_outcomes", "ack_outbox"},
    "workflow": {"open_workflow", "save_workflow_decision"},
    "workflow, undone": {
        "record_step_outcomes",
        "take_due_workflows",
        "watch_workflow_end",
        "put_ended_workflow_runs_under_retention",
    },
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_sent_twice_has_the_outcome_of_once(driver: Driver, name: str) -> None:
    """Spec 4: a call that was cut off is sent again, and a repeat returns the first outcome."""
    act, second_answer, but_for = CALLS[name]
    scene = await _scene(driver)
    echo = Echo(driver, but_for)
    echo.start()
    try:
        outcome = await act(scene)
    finally:
        echo.stop()

    assert echo.answers
    for first, second in echo.answers:
        if second_answer == EQUAL:
            assert first == second
    if second_answer not in (EQUAL, NO_ANSWER):
        assert outcome == second_answer


async def test_every_script_that_writes_is_sent_twice_above(driver: Driver) -> None:
    from rota.store.redis import script_compiler

    reading = {
        name
        for name in script_compiler.names()
        if "flags=no-writes" in script_compiler.script(name).source.splitlines()[0]
    }
    assert reading == {
        "list_runs_of_state",
        "read_runs",
        "read_locks",
        "read_runs_without_arguments",
        "read_named_schedules",
        "read_counters",
        "read_due_schedules",
        "read_demand",
        "read_runs_to_copy",
        "read_blob_chunk",
    }
    named = {name.split(" ")[0].split(",")[0] for name in CALLS} - {"open", "plan", "post", "workflow"}
    elsewhere = SCHEDULES | OPERATIONS | AUDIT | LOGIN | REPAIR | COPIES
    assert named.union(*WITHIN.values()) | elsewhere == set(script_compiler.names()) - reading


async def test_a_call_sent_again_after_others_had_their_turn_does_not_undo_them(driver: Driver) -> None:
    """The copy of a claim may arrive when the jobs it brought have moved on."""
    await driver.enqueue(*[new_job()] * 2)
    worker = driver.worker()
    first, second = (await worker.claims(2)).jobs
    await worker.complete(first)
    await worker.fail(second, "")
    (again,) = await driver.worker("w2").claim()
    before = driver.dump()

    assert (await worker.claims_again(2)).jobs == []
    assert await worker.complete(first) == "already"
    assert await worker.fail(second, "") == "lease_lost"

    assert driver.dump() == before
    assert await driver.worker("w2").complete(again) == "ok"


async def test_a_repeat_counts_until_the_retry_window_is_over(driver: Driver) -> None:
    """What is remembered for repeats expires by itself, ten minutes after the call."""
    await driver.client.cancel(await driver.one("x"))
    await driver.one()
    await driver.worker().claim()

    for name in ("last_reply:client", "last_reply:w1", "reply:"):
        (key,) = [key for key in driver.all_keys() if f"}}:{name}" in key]
        assert 590_000 < driver.redis.pttl(key) <= 600_000


async def test_a_lease_that_is_renewed_twice_is_renewed_once(driver: Driver) -> None:
    ref = await driver.one()
    (job,) = await driver.worker().claim()
    driver.advance(2_000)

    await driver.worker().beat(job)
    await driver.worker().beat(job)

    lease = (await driver.read(ref)).record.lease_until
    assert lease is not None
    assert lease <= driver.now() + LEASE_MS
