"""Carries out traces of `outbox_model` on the real scripts, and compares the state after each step."""

from __future__ import annotations

import secrets
from collections.abc import Coroutine, Sequence
from typing import Any, Final, TypeVar

from rota.core.dependencies import checked_parents
from rota.core.ids import JobRef
from rota.store.create_dependents_and_deliver_outcomes import (
    HOLD_MS,
    Edge,
    JobWithParents,
    ParentOutcome,
    PreparedJob,
    _edge_words,
)
from rota.store.job_store import JobStore
from rota.store.keys import Keys
from rota.store.redis.retrying_client import ScriptCall
from tests.leaks import delete_keys
from tests.properties.outbox_model import NOTIFIERS, Action, State, Step
from tests.properties.state_machine import EPOCH_MS, FROZEN, Bench
from tests.store.driver import completed, failed, new_job

T = TypeVar("T")
PARENT_QUEUE: Final = "a"
CHILD_QUEUE: Final = "b"
CHILD_STATES: Final = ("blocked", "pending", "cancelled")


class OutboxReplay:
    """Two queues on a real server, a producer and the notifiers of the model."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._driver = bench.driver
        self._driver.keys = Keys(f"p{secrets.token_hex(5)}")
        self._store = JobStore(bench.redis_client, self._driver.keys, "client")
        self._now = EPOCH_MS
        self._pass_time(0)
        (made,) = self._do(self._store.enqueue(PARENT_QUEUE, [new_job("parent")]))
        self._parent = JobRef(PARENT_QUEUE, made.id, made.run)
        self._claims = 0
        self._child: PreparedJob | None = None
        self._registered: list[ParentOutcome] = []
        self._taken: list[Any] = [None] * NOTIFIERS

    def run(self, trace: Sequence[Step]) -> None:
        """Carries out a trace. Raises AssertionError with what was done so far."""
        done: list[Action] = []
        try:
            for step in trace:
                done.append(step.action)
                self._take_step(step.action)
                self._compare(step.state)
        except AssertionError as error:
            error.add_note("after\n  " + "\n  ".join(map(str, done)))
            raise
        finally:
            delete_keys(self._driver.redis, self._driver.keys.namespace)

    def _take_step(self, action: Action) -> None:
        match action.name:
            case "prepare":
                parents = checked_parents([str(self._parent)])
                job = new_job("child", after=tuple(map(str, parents)))
                (self._child,), _ = self._do(
                    self._store.dependencies.prepare_dependents(CHILD_QUEUE, {0: JobWithParents(job, parents)})
                )
            case "register":
                self._register(is_lost=action.is_lost)
            case "apply registered":
                self._do(self._store.dependencies.apply_parent_outcomes(CHILD_QUEUE, self._registered))
                self._registered = []
            case "publish":
                assert self._child is not None
                published = self._do(self._store.publish_prepared_runs(CHILD_QUEUE, [self._child.run]))
                assert published == ["visible"]
            case "complete" | "fail":
                self._end_parent(action.name)
            case "redrive":
                assert self._do(self._store.redrive(PARENT_QUEUE, [self._parent])) == ["redriven"]
            case "hold ends":
                self._pass_time(HOLD_MS)
            case _:
                self._notify(action)

    def _register(self, *, is_lost: bool) -> None:
        assert self._child is not None
        (parent,) = self._child.parents
        edge = Edge(CHILD_QUEUE, self._child.run, parent)
        keys = self._store.script_keys("register_dependents", PARENT_QUEUE)
        (reply,) = self._do(self._bench.redis_client.run("register_dependents", keys, _edge_words([edge])))
        state, number, retention, result = reply.split(b" ", 3)
        if not is_lost:
            words = (number.decode(), state.decode(), retention.decode(), result, "1")
            has_ended = state != b"waiting"
            self._registered = [ParentOutcome(self._child.run, edge.name, *words)] if has_ended else []

    def _end_parent(self, how: str) -> None:
        self._claims += 1
        claim = self._store.claim(PARENT_QUEUE, 1, call_number=self._claims, claim_token=f"t{self._claims}")
        (job,) = self._do(claim).jobs
        report = completed(job) if how == "complete" else failed(job)
        assert self._do(self._store.report(PARENT_QUEUE, [report])) == {}

    def _notify(self, action: Action) -> None:
        dependencies, notifier = self._store.dependencies, action.notifier
        if action.name == "take":
            _, taken = self._do(dependencies._take_outbox(PARENT_QUEUE, "free"))
            if not action.is_lost:
                self._taken[notifier] = taken[0] if taken else None
            return
        entry = self._taken[notifier]
        if action.name == "deliver":
            (dependent,) = entry.dependents
            queue, run, name = dependent.split(" ", 2)
            outcome = ParentOutcome(
                run, name.removesuffix("="), entry.number, entry.outcome, entry.retention, entry.result, entry.attempts
            )
            self._do(dependencies.apply_parent_outcomes(queue, [outcome]))
            return
        assert action.name == "acknowledge"
        keys = self._store.script_keys("ack_outbox", PARENT_QUEUE)
        call = ScriptCall("ack_outbox", keys, [entry.run, entry.number, *entry.dependents])
        self._do(self._bench.redis_client.run_many([call]))
        if not action.is_lost:
            self._taken[notifier] = None

    def _compare(self, state: State) -> None:
        """The store is in the state that the model says."""
        assert self._parent.run is not None
        driver, run = self._driver, self._parent.run
        with driver.redis.pipeline(transaction=False) as pipe:
            for name in CHILD_STATES:
                pipe.zrange(driver.key(name, queue=CHILD_QUEUE), 0, -1)
            pipe.zscore(driver.key("outbox", queue=PARENT_QUEUE), run)
            pipe.hget(driver.key("outcomes", queue=PARENT_QUEUE), run)
            *indexes, due, outcome = pipe.execute()
        child = [name for name, runs in zip(CHILD_STATES, indexes, strict=True) if runs]
        assert child == ([state.child] if state.child in CHILD_STATES else []), f"the dependent is {child}"
        assert (due is not None) == state.is_in_outbox, f"outbox: {due}"
        if due is not None:
            assert (due <= self._now) == state.is_due, f"due: {due - self._now}"
        kind = outcome.decode().split(" ")[1] if outcome else ""
        assert kind == state.outcome.kind, f"outcome: {outcome}"
        taken = [entry.outcome if entry else "" for entry in self._taken]
        assert taken == [one.outcome.kind if one else "" for one in state.taken], f"taken: {taken}"
        registered = self._registered[0].outcome if self._registered else ""
        assert registered == state.registered.kind, f"registered: {registered}"

    def _pass_time(self, ms: int) -> None:
        self._now += ms
        self._driver.redis.set(FROZEN, self._now, px=600_000)

    def _do(self, call: Coroutine[Any, Any, T]) -> T:
        self._bench.redis_client.repeats = False
        return self._bench.loop.run_until_complete(call)
