"""Workflows walked at random, while couriers, conductors and users die between any two calls: what holds at the end.

There is no second description of a workflow here, only what a user relies on: nothing runs above the limit, what has
succeeded is not run again, nothing is undone while anything runs, and once all who died are replaced every one ends.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

import pytest

from rota.core.dependencies import Parent
from rota.core.ids import JobRef
from rota.core.workflow_record_and_decisions import StepRecord, Undo, WorkflowRecord, why_not_resumable
from rota.store.carry_out_workflow_decisions import WorkflowStore
from rota.store.claim_replies import ClaimedJob
from rota.store.create_dependents_and_deliver_outcomes import Edge, JobWithParents
from rota.store.job_store import JobStore
from rota.store.redis.retrying_client import Argument, RedisClient, ScriptCall
from rota.store.workflow_records import compensation_id, find_part, gate_parent_name, list_parent_name, workflow_edge
from tests.scale import IS_LONG, random_seed
from tests.store.driver import CLOCK, Driver, body, new_job

T = TypeVar("T")
QUEUES: Final = ("q", "r")
NAMES: Final = {"free": 0, "one": 1, "two": 2}
ENDS: Final = ("complete", "complete", "complete", "fail", "fail for good", "hand back", "give up", "lose")
RESULT: Final = b"[1,2]"


class Died(BaseException):
    """The process that called is no more: nothing in it may notice."""


class Mortal(RedisClient):
    """Makes its user fail before or after one of the next calls."""

    fuse: int | None = None
    is_dead = False

    async def run(self, name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        return await self._maybe_die(partial(super().run, name, keys, arguments))

    async def run_many(self, calls: Sequence[ScriptCall]) -> list[Any]:
        return await self._maybe_die(partial(super().run_many, calls))

    async def _maybe_die(self, send: Callable[[], Awaitable[T]]) -> T:
        self._burn()
        answer = await send()
        self._burn()
        return answer

    def _burn(self) -> None:
        if self.fuse is not None:
            self.fuse -= 1
            self.is_dead = self.is_dead or self.fuse < 0
        if self.is_dead:
            raise Died


@dataclass
class Plan:
    """A workflow that was asked for."""

    id: str
    name: str
    on_failure: str
    steps: list[StepRecord] = field(default_factory=list[StepRecord])


class Walk:
    """One history."""

    def __init__(self, driver: Driver, redis_client: Mortal, rng: random.Random) -> None:
        self.driver, self.redis_client, self.rng = driver, redis_client, rng
        store = JobStore(redis_client, driver.keys, "actor")
        self.ties = store.dependencies
        self.flows = WorkflowStore(store)
        self.store = store
        self.plans: list[Plan] = []
        self.running: list[ClaimedJob] = []
        #: Jobs that have succeeded, by id: of a workflow they are used once.
        self.done: set[str] = set()

    # --- what may happen ---------------------------------------------------------------------------------------

    async def begin(self) -> None:
        name = self.rng.choice([*NAMES])
        plan = Plan(f"w{len(self.plans)}", name, self.rng.choice(["hold", "undo"]))
        self.plans.append(plan)
        edges: list[Edge] = []
        for place in range(self.rng.randint(1, 4)):
            queue = self.rng.choice(QUEUES)
            others = [other for other in range(place) if self.rng.random() < 0.6]
            sources = [other for other in others if plan.steps[other].items is None]
            is_list = bool(sources) and self.rng.random() < 0.3
            undo = None
            if not is_list and self.rng.random() < 0.5:
                undo = Undo(self.rng.choice(QUEUES), 0, body(task="undo", workflow=plan.id).decode(), ())
            id, after = f"{plan.id}.{place}", tuple(others)
            if is_list:
                item_body = body(workflow=plan.id).decode().removesuffix("[]")
                plan.steps.append(
                    StepRecord(id, queue, "", "noop", after, f"list{place}", None, self.rng.choice(sources), item_body)
                )
                continue
            names = [self._name(plan, other) for other in others]
            if NAMES[name] and not others:
                names.append(gate_parent_name(plan.id))
            tied = JobWithParents(
                new_job(id, workflow=plan.id), [Parent(JobRef(*called.split(":", 1))) for called in names]
            )
            (one,), _ = await self.ties.prepare_dependents(queue, {0: tied}, kind="step", keep_ms=10**9)
            plan.steps.append(StepRecord(id, queue, one.run, "noop", after, f"step{place}", undo))
            for other in others:
                parent = plan.steps[other]
                if parent.items is None:
                    ref = JobRef(parent.queue, parent.id, parent.run)
                    edges.append(Edge(queue, one.run, Parent(ref), self._name(plan, other)))
            edges.append(workflow_edge(plan.id, f"s{place}", queue, id, one.run))
        await self.ties.register_dependents(edges)
        fields = {
            "name": name,
            "limit": str(NAMES[name]),
            "on_failure": plan.on_failure,
            "gate": "shut" if NAMES[name] else "open",
        }
        fields |= {f"w{other}": "1" for step in plan.steps if step.items is not None for other in step.after}
        await self.flows.open(plan.id, plan.steps, fields, nonce=plan.id)
        await self.flows.drive(plan.id)

    def _name(self, plan: Plan, other: int) -> str:
        step = plan.steps[other]
        return list_parent_name(plan.id, other) if step.items is not None else f"{step.queue}:{step.id}"

    async def work(self) -> None:
        """A worker claims, or reports."""
        worker = self.driver.worker("w1")
        if self.running and self.rng.random() < 0.6:
            job = self.running.pop(self.rng.randrange(len(self.running)))
            verb = self.rng.choice(ENDS)
            if verb == "complete":
                if await worker.complete(job, RESULT) == "ok":
                    self.done.add(_id(job))
            else:
                await worker.end(job, verb)
            return
        for job in await worker.claim(queue=self.rng.choice(QUEUES)):
            self.running.append(job)
            await self._may_start(job)

    async def _may_start(self, job: ClaimedJob) -> None:
        id = _id(job)
        assert id not in self.done, f"{id} succeeded, and is run again"
        flow_id = id.partition(".")[0]
        flow = await self._flow(flow_id)
        others = {_id(one) for one in self.running if _id(one).partition(".")[0] == flow_id and await self._owns(one)}
        if ".undo." in id:
            assert not [other for other in others if ".undo." not in other], f"{id} runs beside {others}"
        elif flow.limit:
            at_work = {
                _id(one).partition(".")[0] for one in self.running if ".undo." not in _id(one) and await self._owns(one)
            }
            same = [other for other in at_work if (await self._flow(other)).name == flow.name]
            assert len(same) <= flow.limit, f"{same} run at once, and {flow.limit} may"

    async def _owns(self, job: ClaimedJob) -> bool:
        line = self.driver.hash("runs", queue=job.queue).get(job.run, "")
        return line.startswith(f"processing {job.claim} ")

    async def carry(self) -> None:
        await self.ties.deliver_all(self.rng.choice(QUEUES))

    async def conduct(self) -> None:
        await self.flows.drive_due()

    async def use(self) -> None:
        """A user does something about a workflow, or a step of it."""
        flow = await self._flow(self.rng.choice(self.plans).id)
        act = self.rng.choice(
            ["resume", "resume", "redrive", "redrive", "cancel", "leave", "cancel step", "delete step"]
        )
        if flow.is_over or not flow.steps:
            return
        if act == "resume" and flow.state == "failed" and not why_not_resumable(flow):
            await self.flows.resume(flow)
        elif act == "redrive":
            await self._redrive(flow)
        elif act in ("cancel", "leave") and flow.state != "undoing" and self.rng.random() < 0.3:
            await self.flows.save_decision(flow, fields={"cancel": "undo" if act == "cancel" else "leave"}, next_ms=0)
            await self.flows.drive(flow.id)
        elif act.endswith("step") and self.rng.random() < 0.3:
            step = self.rng.choice([step for step in flow.steps if step.items is None])
            ref = JobRef(step.queue, step.id, step.run)
            await (self.store.cancel(ref) if act == "cancel step" else self.store.delete(ref))
            await self.ties.deliver_all(step.queue, include="all")

    async def _redrive(self, flow: WorkflowRecord) -> None:
        """As `rota.workflows.redrive` does."""
        if flow.state not in ("waiting", "running", "failed", "parked"):
            return
        dead = [JobRef(step.queue, step.id, step.run) for step in flow.steps if step.items is None]
        dead += [
            JobRef(step.undo.queue, compensation_id(flow.id, place))
            for place, step in enumerate(flow.steps)
            if step.undo
        ]
        ref = self.rng.choice(dead)
        if flow.limit and await self.flows.resume_steps(flow.id, [ref]):
            return
        await self.store.redrive(ref.queue, [ref])
        await self.ties.deliver_all(ref.queue, include="all")

    # --- the end -----------------------------------------------------------------------------------------------

    async def heal(self) -> None:
        """Without further failures every workflow ends."""
        worker = self.driver.worker("w1")
        for job in self.running:
            if await worker.complete(job, RESULT) == "ok":
                self.done.add(_id(job))
        self.running = []
        quiet = 0
        for _ in range(200):
            await self.driver.advance_with_ticks(6_000)
            before = self.driver.dump(
                "meta", "heartbeats", "idle", "last_reply", "reply", "events", "workflow_due", "outbox"
            )
            for queue in QUEUES:
                while claimed := await worker.claim(queue=queue):
                    for job in claimed:
                        self.running = [job]
                        await self._may_start(job)
                        assert await worker.complete(job, RESULT) == "ok"
                        self.done.add(_id(job))
                    await self.ties.deliver_all(queue)
                await self.ties.deliver_all(queue)
            await self.flows.drive_due()
            after = self.driver.dump(
                "meta", "heartbeats", "idle", "last_reply", "reply", "events", "workflow_due", "outbox"
            )
            quiet = quiet + 1 if before == after else 0
            if quiet == 2:
                return
        raise AssertionError("it never comes to rest")

    async def check(self) -> None:
        for queue in QUEUES:
            self.driver.check(queue=queue)
        for plan in self.plans:
            flow = await self.flows.read(plan.id)
            if flow is not None:  # else it was never committed
                self._check(flow)
        for name in NAMES:
            places = [self.driver.keys.shared(key, name) for key in ("active_workflows", "waiting_workflows")]
            assert not self.driver.redis.exists(*places), f"a place of {name} is left"

    def _check(self, flow: WorkflowRecord) -> None:
        picture = f"{flow.id} is {flow.state}: {flow}"
        bad = flow.unsuccessful_steps
        wanted = [
            place
            for place, step in enumerate(flow.steps)
            if step.undo and flow.step_state(place).outcome == "completed"
        ]
        undone = [place for place in wanted if compensation_id(flow.id, place) in self.done]
        match flow.state:
            case "completed":
                assert not bad, picture
                assert flow.done == len(flow.steps), picture
                assert not undone, picture
            case "undone":
                assert undone == wanted, picture
            case "cancelled":
                assert flow.cancel == "leave" or undone == wanted, picture
            case "failed":
                assert bad, picture
                assert flow.on_failure == "hold", picture
            case "parked":
                assert undone != wanted, picture
            case _:
                raise AssertionError(f"it is stuck: {picture}")
        for place, step in enumerate(flow.steps):
            if step.items is None and flow.step_state(place).outcome == "completed":
                assert step.id in self.done, picture
            assert find_part(flow, step.id) is None or step.items is None

    async def _flow(self, flow_id: str) -> WorkflowRecord:
        flow = await self.driver.flows.read(flow_id)
        assert flow is not None
        return flow


def _id(job: ClaimedJob) -> str:
    """As the record has it: "=id time"."""
    return job.record.split(b" ", 1)[0][1:].decode()


@pytest.mark.requirement("S1-12", "S1-13", "Q-9")
@pytest.mark.timeout(7_200 if IS_LONG else 300)
async def test_workflows_end_correctly_whichever_process_dies(driver: Driver) -> None:
    """Never half done and forgotten."""
    seed = random_seed()
    redis_client = Mortal(driver.redis_client.address, clock=CLOCK)
    for number in range(400 if IS_LONG else 15):
        rng = random.Random(f"{seed}-{number}")
        driver.redis.delete(*(driver.all_keys() or ["none"]))
        walk = Walk(driver, redis_client, rng)
        try:
            await walk.begin()
            for _ in range(80):
                steps = [walk.begin, walk.work, walk.work, walk.work, walk.work, walk.carry, walk.conduct, walk.use]
                weights = [1 if len(walk.plans) < 5 else 0, 3, 3, 3, 3, 3, 2, 2]
                (act,) = rng.choices(steps, weights)
                if act not in (walk.work, walk.begin) and rng.random() < 0.3:
                    redis_client.fuse = rng.randrange(8)
                try:
                    await act()
                except Died:
                    pass
                finally:
                    redis_client.fuse, redis_client.is_dead = None, False
                driver.advance(rng.choice([0, 0, 100, 2_100, 5_100]))
                await driver.worker("w1").beat(*walk.running)
            await walk.heal()
            await walk.check()
        except BaseException as error:
            error.add_note(f"walk it again with ROTA_TEST_SEED={seed}; it was walk {number}")
            raise
    await redis_client.close()
