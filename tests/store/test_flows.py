"""Workflows in the store: committed once, advanced by news that counts once, given places, and forgotten."""

from __future__ import annotations

import pytest

from rota.store.flows import HOLD_MS
from rota.store.ties import FLOWS, Message
from tests.store.driver import QUEUE, Driver

DAY_MS = 86_400_000
SHARED = ("flows", "flow_due", "held")


def tell(part: str, number: int, outcome: str, flow: str = "w", result: bytes = b"") -> Message:
    return Message(flow, part, str(number), outcome, "", result, "1")


async def test_a_workflow_is_committed_once(driver: Driver) -> None:
    assert await driver.workflow("w", steps=2) == "running"
    before = driver.dump()

    assert await driver.flows.open("w", [], {"name": "order", "limit": "0"}, nonce="w") == "running"
    assert await driver.flows.open("w", [], {"name": "order", "limit": "0"}, nonce="another") == "in_use"
    assert driver.dump() == before


async def test_news_counts_once_and_in_the_order_of_its_numbers(driver: Driver) -> None:
    await driver.workflow("w", steps=2)
    await driver.ties.pass_on(FLOWS, [tell("s0", 5, "failed"), tell("s0", 5, "completed"), tell("s0", 4, "completed")])
    await driver.ties.pass_on(FLOWS, [tell("s1", 1, "completed", result=b"7")] * 2)

    flow = await driver.flow("w")
    assert (flow.stand(0).outcome, flow.stand(1).outcome) == ("failed", "completed")
    assert flow.results == {"1": b"7"}
    assert flow.state == "running"
    await driver.ties.pass_on(FLOWS, [tell("s0", 6, "waiting"), tell("s0", 7, "completed")])
    assert (await driver.flow("w")).state == "completed"


async def test_news_of_what_is_over_or_unknown_changes_nothing(driver: Driver) -> None:
    await driver.workflow("w")
    await driver.ties.pass_on(FLOWS, [tell("s0", 1, "completed")])
    before = driver.dump()

    await driver.ties.pass_on(FLOWS, [tell("s0", 9, "failed"), tell("s0", 1, "completed", flow="nowhere")])

    assert driver.dump() == before


async def test_a_decision_on_an_old_record_is_not_written(driver: Driver) -> None:
    await driver.workflow("w", steps=2)
    old = await driver.flow("w")
    await driver.ties.pass_on(FLOWS, [tell("s0", 1, "failed")])
    before = driver.dump()

    assert await driver.flows.turn(old, "completed") == "stale"
    assert driver.dump() == before


async def test_one_is_seen_to_by_one_at_a_time_and_by_another_after_a_while(driver: Driver) -> None:
    await driver.workflow("w", steps=2)
    await driver.ties.pass_on(FLOWS, [tell("s0", 1, "failed")])

    assert await driver.flows._run("take_flows", [16, HOLD_MS]) == [b"w"]
    assert await driver.flows._run("take_flows", [16, HOLD_MS]) == []
    driver.advance(HOLD_MS + 1)
    assert await driver.flows._run("take_flows", [16, HOLD_MS]) == [b"w"]


async def test_places_are_given_in_order_and_freed_by_every_end(driver: Driver) -> None:
    for name in "abcd":
        await driver.workflow(name, limit=2)

    async def states() -> str:
        return " ".join([(await driver.flow(name)).state for name in "abcd"])

    assert await states() == "running running waiting waiting"
    await driver.ties.pass_on(FLOWS, [tell("s0", 1, "completed", flow="b")])
    assert await states() == "running completed running waiting"
    await driver.flows.turn(await driver.flow("a"), "failed")
    assert await states() == "failed completed running running"
    # What is to be undone does not wait for a place, and lets nobody in while there are too many.
    await driver.flows.turn(await driver.flow("a"), "undoing")
    await driver.workflow("e", limit=2)
    await driver.flows.turn(await driver.flow("a"), "undone")
    assert (await driver.flow("e")).state == "waiting"
    for name in "cde":
        await driver.flows.turn(await driver.flow(name), "cancelled")
    assert not driver.redis.exists(driver.keys.shared("places", "order"), driver.keys.shared("queued", "order"))


async def test_every_change_of_a_workflow_is_told_in_the_slot_of_workflows(driver: Driver) -> None:
    for name in "ab":
        await driver.workflow(name, limit=1)
    told = len(driver.events(queue=FLOWS))

    async def news() -> list[str]:
        nonlocal told
        found = driver.events(queue=FLOWS)[told:]
        told += len(found)
        assert {verb for verb, _ in found} <= {"workflow"}
        return [flow for _, flow in found]

    await driver.flows.turn(await driver.flow("a"))
    assert await news() == [], "nothing has changed"
    await driver.flows.turn(await driver.flow("a"), fields={"cancel": "undo"})
    assert await news() == ["a"]
    await driver.flows.turn(await driver.flow("a"), "undoing")
    assert await news() == ["a"]
    await driver.flows.turn(await driver.flow("a"), "cancelled")
    assert sorted(await news()) == ["a", "b"], "its place is given on"
    await driver.ties.pass_on(FLOWS, [tell("s0", 1, "completed", flow="b")])
    assert await news() == ["b"]


async def test_places_of_workflows_that_are_no_more_are_free(driver: Driver) -> None:
    await driver.workflow("a", limit=1)
    driver.redis.delete(driver.keys.shared("flow", "a"))

    assert await driver.workflow("b", limit=1) == "running"


@pytest.mark.parametrize("state", ["completed", "undone", "cancelled"])
async def test_a_day_after_its_end_nothing_is_left_of_it(driver: Driver, state: str) -> None:
    await driver.workflow("w", limit=1)
    await driver.flows.turn(await driver.flow("w"), state)
    assert 0 < driver.redis.pttl(driver.keys.shared("flow", "w")) <= DAY_MS
    await driver.flows.drive_due()
    assert [info.id for info in await driver.flows.recent(5)] == ["w"]

    driver.redis.delete(driver.keys.shared("flow", "w"))  # the server's own clock would do that
    driver.advance(DAY_MS + 2_000)
    await driver.flows.drive_due()

    assert not driver.redis.exists(*(driver.keys.shared(key) for key in SHARED))


async def test_a_workflow_that_cannot_be_seen_to_does_not_keep_others_waiting(driver: Driver) -> None:
    for name in ("bad", "good"):
        await driver.workflow(name, steps=2)
    driver.redis.hset(driver.keys.shared("flow", "bad"), "graph", "no JSON")
    await driver.ties.pass_on(FLOWS, [tell("s0", 1, "failed", flow=name) for name in ("bad", "good")])

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
    while await driver.client.sweep(QUEUE):
        pass
    assert len(driver.redis.hkeys(driver.keys.queue(QUEUE, "jobs"))) == 3

    await driver.flows.turn(await driver.flow("w"), fields={"cancel": "leave"}, next_ms=0)
    await driver.flows.drive_due()
    assert (await driver.flow("w")).state == "cancelled"
    driver.advance(60 * DAY_MS)
    while await driver.client.sweep(QUEUE):
        pass
    assert not driver.redis.exists(*(driver.keys.queue(QUEUE, key) for key in ("jobs", "runs", "steps", "ids")))
