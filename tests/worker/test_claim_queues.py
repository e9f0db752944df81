"""Which queue a worker claims from next, and for how many jobs."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from rota.core.lease_heartbeat_poll_and_grace_durations import POLL_MS
from rota.store.claim_replies import ClaimedJob, ClaimReply
from rota.worker.claim_queues import ClaimQueue, ClaimQueues
from rota.worker.config import WorkerConfig, parse_queues

NOTHING = ClaimReply([], None)


def queues_of(text: str, *, is_subscribed: bool = True) -> ClaimQueues:
    """The queues of `--queues`; none of them has been asked."""
    names, weights = parse_queues(text)
    queues = ClaimQueues(WorkerConfig(app="a:b", queues=names, weights=weights), asyncio.Event())
    queues.is_subscribed = is_subscribed
    return queues


def ask(
    queues: ClaimQueues, name: str, reply: ClaimReply = NOTHING, *, limit: int = 10, now: float = 0.0
) -> ClaimQueue:
    """Sends a claim and receives the reply."""
    queue = queues.find(name)
    assert queue is not None
    queue.next_claim(10, may_be_pushed=False, now=now)
    queues.answered(queue, reply, now)
    return queue


def planned(queues: ClaimQueues, now: float) -> list[list[str]]:
    """The claims of one exchange, by name."""
    return [[queue.name for queue in claim] for claim in queues.plan(now)]


def full(queue: str, count: int) -> ClaimReply:
    """A reply with so many jobs."""
    return ClaimReply([ClaimedJob(queue, f"r{n}", "1.a", None, b"") for n in range(count)], None)  # type: ignore[arg-type]


def test_a_later_queue_gets_nothing_while_an_earlier_one_may_have_jobs() -> None:
    queues = queues_of("urgent,bulk")
    urgent, bulk = ask(queues, "urgent", full("urgent", 10)), ask(queues, "bulk", full("bulk", 10))

    assert planned(queues, 0.0) == [["urgent"], ["bulk"]]
    assert (queues.share(urgent, 0.0, 4, 0), queues.share(bulk, 0.0, 4, 0)) == (4, 0)

    ask(queues, "urgent")
    assert queues.share(bulk, 0.0, 4, 0) == 4


def test_an_earlier_queue_that_is_due_for_a_poll_is_asked_before_a_later_one_with_jobs() -> None:
    """A scheduled job of `urgent` is due: until it has been asked, `bulk` gets nothing."""
    queues = queues_of("urgent,bulk")
    ask(queues, "urgent", ClaimReply([], wait_ms=500))
    bulk = ask(queues, "bulk", full("bulk", 10))
    assert planned(queues, 0.4) == [["bulk"]]
    assert queues.share(bulk, 0.4, 4, 0) == 4

    assert planned(queues, 0.6) == [["urgent"], ["bulk"]]
    assert queues.share(bulk, 0.6, 4, 0) == 0

    ask(queues, "urgent", now=0.6)
    assert queues.share(bulk, 0.6, 4, 0) == 4


def test_queues_in_strict_order_are_not_polled_in_one_round_trip() -> None:
    """Both would bring jobs, and those of `bulk` would take slots that jobs of `urgent` wait for."""
    queues = queues_of("urgent,bulk")
    ask(queues, "urgent")
    ask(queues, "bulk")

    assert planned(queues, POLL_MS / 1000 + 0.1) == [["urgent"], ["bulk"]]


def test_without_wake_ups_earlier_queues_are_asked_before_every_claim_of_a_later_one() -> None:
    """A worker that has not subscribed yet misses the wake-up of `urgent`, and must not drain `bulk` meanwhile."""
    queues = queues_of("urgent,bulk", is_subscribed=False)
    ask(queues, "urgent")
    ask(queues, "bulk", full("bulk", 10))

    assert planned(queues, 0.1) == [["urgent"], ["bulk"]]

    queues.is_subscribed = True
    ask(queues, "urgent")
    assert planned(queues, 0.1) == [["bulk"]]


def test_a_queue_whose_claim_had_too_much_housekeeping_to_do_still_comes_first() -> None:
    queues = queues_of("urgent,bulk")
    ask(queues, "urgent", ClaimReply([], wait_ms=0))
    bulk = ask(queues, "bulk", full("bulk", 10))

    assert queues.share(bulk, 0.0, 4, 0) == 0

    ask(queues, "urgent", ClaimReply([], wait_ms=0, has_outbox=True))
    assert queues.share(bulk, 0.0, 4, 0) == 4, "an outbox is no reason to wait: another worker may deliver it"


def test_a_queue_that_the_server_refuses_does_not_hold_up_the_later_ones() -> None:
    queues = queues_of("urgent,bulk")
    urgent, bulk = ask(queues, "urgent", full("urgent", 10)), ask(queues, "bulk", full("bulk", 10))

    urgent.blocked_until = urgent.look_at = 2.0

    assert planned(queues, 1.0) == [["bulk"]]
    assert queues.share(bulk, 1.0, 4, 0) == 4


def test_no_shard_of_a_queue_comes_before_another() -> None:
    queues = queues_of("wide~1of2,wide~2of2,bulk")
    first, second = (ask(queues, f"wide~{n}of2", full("wide", 10)) for n in (1, 2))
    bulk = ask(queues, "bulk", full("bulk", 10))

    assert [queues.share(queue, 0.0, 4, 0) for queue in (first, second, bulk)] == [4, 4, 0]
    drawn = Counter(planned(queues, 0.0)[0][0] for _ in range(200))
    assert min(drawn["wide~1of2"], drawn["wide~2of2"]) > 50

    ask(queues, "wide~1of2")
    ask(queues, "wide~2of2")
    ask(queues, "bulk")
    assert planned(queues, POLL_MS / 1000 + 0.1) == [["wide~1of2", "wide~2of2"], ["bulk"]], "they are polled together"


@pytest.mark.parametrize("ahead", [0, 16])
@pytest.mark.parametrize("weights", ["a=3,b=1", "a=1,b=1,c=1,d=7", "a=5,b=1,c=5,d=1,e=5"])
def test_by_weight_each_queue_gets_its_share_however_many_slots_become_free(weights: str, ahead: int) -> None:
    """`a=1,b=1,c=1,d=7` gave 24, 18, 11 and 46 %: the queue after the one that was drawn got the rest."""
    queues, draw, brought = queues_of(weights), random.Random(1), Counter[str]()

    for _ in range(2_000):
        room = draw.randint(1, 12)
        for (queue,) in queues.plan(0.0):
            share = queues.share(queue, 0.0, room, ahead)
            if share and not queue.is_on_demand:
                queue.next_claim(share, may_be_pushed=False, now=0.0)
                queues.answered(queue, full(queue.name, share), 0.0)
                brought[queue.name] += share
                room -= share

    total, names = sum(brought.values()), [part.split("=") for part in weights.split(",")]
    whole = sum(int(weight) for _, weight in names)
    assert {name: round(brought[name] / total, 2) for name, _ in names} == {
        name: round(int(weight) / whole, 2) for name, weight in names
    }


def test_by_weight_a_queue_that_was_empty_does_not_catch_up() -> None:
    queues = queues_of("a=1,b=1")
    ask(queues, "b")
    for _ in range(50):
        ask(queues, "a", full("a", 10))
    queues.wake("b")

    brought = Counter[str]()
    for _ in range(100):
        (queue,) = queues.plan(0.0)[0]
        ask(queues, queue.name, full(queue.name, 10))
        brought[queue.name] += 10

    assert abs(brought["a"] - brought["b"]) <= 10


@pytest.mark.parametrize("weights", ["a=3,b=1", "a=1,b=1"])
def test_by_weight_a_queue_does_not_wait_until_another_has_caught_up_with_it(weights: str) -> None:
    """A queue that keeps up is empty after each claim. What it brought while the other was empty does not count."""
    queues = queues_of(weights)
    ask(queues, "b")
    for _ in range(100):
        queues.wake("a")
        queues.plan(0.0)
        ask(queues, "a", ClaimReply(full("a", 10).jobs[:9], None))
    queues.wake("b")
    queues.plan(0.0)
    ask(queues, "b", full("b", 10))
    queues.wake("a")

    brought = Counter[str]()
    for _ in range(40):
        (queue,) = queues.plan(0.0)[0]
        ask(queues, queue.name, full(queue.name, 10))
        brought[queue.name] += 10

    assert brought["a"] >= 190


def test_by_weight_a_queue_whose_server_does_not_answer_takes_no_share() -> None:
    queues = queues_of("a=1,b=1")
    for _ in range(20):
        ask(queues, "a", full("a", 10))
    a, b = queues.find("a"), queues.find("b")
    assert a is not None
    assert b is not None
    queues.wake()
    assert queues.share(a, 0.0, 10, 0) == 0, "b is behind"

    b.is_away = True
    assert queues.share(a, 0.0, 10, 0) == 10

    b.is_away, b.is_unanswered = False, True
    assert queues.share(a, 0.0, 10, 0) == 10


def test_queues_by_weight_are_polled_in_one_round_trip() -> None:
    queues = queues_of("a=3,b=1")
    ask(queues, "a")
    ask(queues, "b")

    assert planned(queues, POLL_MS / 1000 + 0.1) == [["a", "b"]]


@pytest.mark.parametrize("wait_ms", [0, 700])
def test_a_failure_queue_is_asked_when_the_claims_of_its_queue_report_failures(wait_ms: int) -> None:
    queues = queues_of("mail")
    ask(queues, "mail", ClaimReply([], None, failures_wait_ms=wait_ms))

    assert planned(queues, 0.0) == ([["mail-fail"]] if wait_ms == 0 else [])
    assert ["mail-fail"] in planned(queues, 0.8)
