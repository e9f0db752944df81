"""Workflows in the store: committed once, advanced by news that counts once, given places, and forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rota.core.workflow_record_and_decisions import StepRecord
from rota.store.carry_out_workflow_decisions import WorkflowStore
from rota.store.create_dependents_and_deliver_outcomes import WORKFLOWS, Edge, JobWithParents, ParentOutcome
from rota.store.redis.retrying_client import Argument
from rota.store.workflow_records import HOLD_MS, workflow_edge
from tests.store.driver import QUEUE, Driver, new_job

DAY_MS = 86_400_000
SHARED = ("workflows", "workflow_due", "stuck_workflows")


def tell(part: str, number: int, outcome: str, flow: str = "w", result: bytes = b"") -> ParentOutcome:
    return ParentOutcome(flow, part, str(number), outcome, "", result, "1")


async def test_a_workflow_is_committed_once(driver: Driver) -> None:
    assert await driver.workflow("w", steps=2) == "running"
    before = driver.dump()

    assert await driver.flows.open("w", [], {"name": "order", "limit": "0"}, nonce="w") == "running"
    assert await driver.flows.open("w", [], {"name": "order", "limit": "0"}, nonce="another") == "in_use"
    assert driver.dump() == before


async def test_news_counts_once_and_in_the_order_of_its_numbers(driver: Driver) -> None:
    await driver.workflow("w", steps=2)
    await driver.ties.deliver_outcomes(
        WORKFLOWS, [tell("s0", 5, "failed"), tell("s0", 5, "completed"), tell("s0", 4, "completed")]
    )
    await driver.ties.deliver_outcomes(WORKFLOWS, [tell("s1", 1, "completed", result=b"7")] * 2)

    flow = await driver.flow("w")
    assert (flow.step_state(0).outcome, flow.step_state(1).outcome) == ("failed", "completed")
    assert await driver.flows.read_results("w", ["0", "1"]) == [None, b"7"]
    assert flow.state == "running"
    await driver.ties.deliver_outcomes(WORKFLOWS, [tell("s0", 6, "waiting"), tell("s0", 7, "completed")])
    assert (await driver.flow("w")).state == "completed"


async def test_news_of_what_is_over_or_unknown_changes_nothing(driver: Driver) -> None:
    await driver.workflow("w")
    await driver.ties.deliver_outcomes(WORKFLOWS, [tell("s0", 1, "completed")])
    before = driver.dump()

    await driver.ties.deliver_outcomes(WORKFLOWS, [tell("s0", 9, "failed"), tell("s0", 1, "completed", flow="nowhere")])

    assert driver.dump() == before


async def test_a_decision_on_an_old_record_is_not_written(driver: Driver) -> None:
    await driver.workflow("w", steps=2)
    old = await driver.flow("w")
    await driver.ties.deliver_outcomes(WORKFLOWS, [tell("s0", 1, "failed")])
    before = driver.dump()

    assert await driver.flows.save_decision(old, "completed") == "stale"
    assert driver.dump() == before


async def test_a_resume_that_is_sent_again_has_resumed(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its reply was lost, and before it was sent again a worker has run the failed step again."""
    await driver.workflow("w")
    (job,) = await driver.worker().claim()
    await driver.worker().fail(job)
    await driver.post()
    await driver.flows.drive("w")
    failed = await driver.flow("w")
    assert failed.state == "failed"
    run, sent = driver.redis_client.run, list[str]()

    async def lose_reply(name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        answer = await run(name, keys, arguments)
        sent.append(name)
        if name != "save_workflow_decision" or sent.count(name) > 1:
            return answer
        driver.advance(HOLD_MS + 1)
        await WorkflowStore(driver.worker().store).drive_due()
        assert not (await driver.flow("w")).resuming, "a worker has carried it out"
        return await run(name, keys, arguments)

    monkeypatch.setattr(driver.redis_client, "run", lose_reply)

    assert await driver.flows.resume(failed)

    assert (await driver.flow("w")).state == "running"
    assert driver.counts() == {"pending": 1}


async def test_one_is_seen_to_by_one_at_a_time_and_by_another_after_a_while(driver: Driver) -> None:
    await driver.workflow("w", steps=2)
    await driver.ties.deliver_outcomes(WORKFLOWS, [tell("s0", 1, "failed")])

    assert await driver.flows._run("take_due_workflows", [16, HOLD_MS]) == [b"w"]
    assert await driver.flows._run("take_due_workflows", [16, HOLD_MS]) == []
    driver.advance(HOLD_MS + 1)
    assert await driver.flows._run("take_due_workflows", [16, HOLD_MS]) == [b"w"]


async def test_places_are_given_in_order_and_freed_by_every_end(driver: Driver) -> None:
    for name in "abcd":
        await driver.workflow(name, limit=2)

    async def states() -> str:
        return " ".join([(await driver.flow(name)).state for name in "abcd"])

    assert await states() == "running running waiting waiting"
    await driver.ties.deliver_outcomes(WORKFLOWS, [tell("s0", 1, "completed", flow="b")])
    assert await states() == "running completed running waiting"
    await driver.flows.save_decision(await driver.flow("a"), "failed")
    assert await states() == "failed completed running running"
    # Compensation does not wait for the concurrency limit, and starts no other workflow while it is exceeded.
    await driver.flows.save_decision(await driver.flow("a"), "undoing")
    await driver.workflow("e", limit=2)
    await driver.flows.save_decision(await driver.flow("a"), "undone")
    assert (await driver.flow("e")).state == "waiting"
    for name in "cde":
        await driver.flows.save_decision(await driver.flow(name), "cancelled")
    assert not driver.redis.exists(
        driver.keys.shared("active_workflows", "order"), driver.keys.shared("waiting_workflows", "order")
    )


async def test_every_change_of_a_workflow_is_published_in_the_slot_of_workflows(driver: Driver) -> None:
    for name in "ab":
        await driver.workflow(name, limit=1)
    told = len(driver.events(queue=WORKFLOWS))

    async def news() -> list[str]:
        nonlocal told
        found = driver.events(queue=WORKFLOWS)[told:]
        told += len(found)
        assert {verb for verb, _ in found} <= {"workflow"}
        return [flow for _, flow in found]

    await driver.flows.save_decision(await driver.flow("a"))
    assert await news() == [], "nothing has changed"
    await driver.flows.save_decision(await driver.flow("a"), fields={"cancel": "undo"})
    assert await news() == ["a"]
    await driver.flows.save_decision(await driver.flow("a"), "undoing")
    assert await news() == ["a"]
    await driver.flows.save_decision(await driver.flow("a"), "cancelled")
    assert sorted(await news()) == ["a", "b"], "its place is given on"
    await driver.ties.deliver_outcomes(WORKFLOWS, [tell("s0", 1, "completed", flow="b")])
    assert await news() == ["b"]


async def test_places_of_workflows_that_are_no_more_are_free(driver: Driver) -> None:
    await driver.workflow("a", limit=1)
    driver.redis.delete(driver.keys.shared("workflow", "a"))

    assert await driver.workflow("b", limit=1) == "running"


@pytest.mark.parametrize("state", ["completed", "undone", "cancelled"])
async def test_a_day_after_its_end_nothing_is_left_of_it(driver: Driver, state: str) -> None:
    await driver.workflow("w", limit=1)
    await driver.flows.save_decision(await driver.flow("w"), state)
    assert 0 < driver.redis.pttl(driver.keys.shared("workflow", "w")) <= DAY_MS
    await driver.flows.drive_due()
    assert [info.id for info in await driver.flows.recent(5)] == ["w"]

    driver.redis.delete(driver.keys.shared("workflow", "w"))  # the server's own clock would do that
    driver.advance(DAY_MS + 2_000)
    await driver.flows.drive_due()

    assert not driver.redis.exists(*(driver.keys.shared(key) for key in SHARED))


@pytest.mark.parametrize("damage", ["no JSON", "another type"])
async def test_a_workflow_that_cannot_be_seen_to_does_not_keep_others_waiting(driver: Driver, damage: str) -> None:
    for name in ("bad", "good"):
        await driver.workflow(name, steps=2)
    await driver.ties.deliver_outcomes(WORKFLOWS, [tell("s0", 1, "failed", flow=name) for name in ("bad", "good")])
    bad = driver.keys.shared("workflow", "bad")
    if damage == "no JSON":
        driver.redis.hset(bad, "graph", damage)
    else:  # the server refuses to read it
        driver.redis.set(bad, "theirs")

    await driver.flows.drive_due()

    assert (await driver.flow("good")).state == "failed"


async def test_what_a_workflow_needs_is_kept_until_it_ends(driver: Driver) -> None:
    await driver.workflow("w", steps=3)
    (job,) = await driver.worker().claim()
    await driver.worker().fail(job)
    await driver.post()
    await driver.flows.drive_due()
    assert (await driver.flow("w")).state == "failed"
    driver.advance(60 * DAY_MS)
    while await driver.client.apply_retention(QUEUE):
        pass
    assert len(driver.redis.hkeys(driver.keys.queue(QUEUE, "jobs"))) == 3

    await driver.flows.save_decision(await driver.flow("w"), fields={"cancel": "leave"}, next_ms=0)
    await driver.flows.drive_due()
    assert (await driver.flow("w")).state == "cancelled"
    driver.advance(60 * DAY_MS)
    while await driver.client.apply_retention(QUEUE):
        pass
    assert not driver.redis.exists(*(driver.keys.queue(QUEUE, key) for key in ("jobs", "runs", "steps", "ids")))


async def test_items_that_were_discarded_before_they_were_published_are_enqueued_again(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their driver was interrupted for minutes. The workflow would wait for jobs that do not exist."""
    (source,), _ = await driver.ties.prepare_dependents(
        QUEUE, {0: JobWithParents(new_job("w.0"), ())}, kind="step", keep_ms=60_000
    )
    await driver.ties.register_dependents([workflow_edge("w", "s0", QUEUE, source.id, source.run)])
    steps = [
        StepRecord(source.id, QUEUE, source.run, "noop", (), "list"),
        StepRecord("w.1", QUEUE, "", "noop", (0,), "items", items=0, body=bytes(new_job().body).decode()[:-2]),
    ]
    await driver.flows.open("w", steps, {"name": "order", "limit": "0", "gate": "open"}, nonce="w")
    await driver.flows.drive("w")
    (job,) = await driver.worker().claim()
    await driver.worker().complete(job, result=b"[1,2]")
    await driver.post()
    register, interruptions = driver.ties.register_dependents, [True]

    async def register_and_be_interrupted(edges: Sequence[Edge]) -> None:
        await register(edges)
        while interruptions:
            interruptions.pop()
            driver.advance(120_000)
            while await driver.client.apply_retention(QUEUE):
                pass
            assert driver.index("prepared") == {}

    monkeypatch.setattr(driver.ties, "register_dependents", register_and_be_interrupted)
    await driver.flows.drive("w")

    assert not interruptions
    assert len(await driver.worker().claim(5)) == 2
    assert set(driver.redis.hkeys(driver.keys.queue(QUEUE, "ids"))) == {b"w.0", b"w.1.0", b"w.1.1"}
