"""claim: pending -> processing."""

from __future__ import annotations

import asyncio

import pytest

from rota.core.ids import JobRef
from rota.core.job_record import AttemptCounts
from rota.core.job_record_codec import UndecodableRecord, decode_body
from rota.core.state_transitions import JobState
from rota.store.claim_replies import ClaimReply
from rota.store.enqueue_batcher import NewJob
from rota.store.job_store import LEASE_MS
from tests.store.driver import QUEUE, Driver, new_job, refs_of

HOUR = 3_600_000


@pytest.mark.requirement("S0-5", "S4-25", "S4-32")
async def test_a_claim_writes_owner_fence_lease_and_attempt_in_one_step(driver: Driver) -> None:
    """The server stamps claimed_at and attempt; the first attempt is 1."""
    ref = await driver.one()
    before = driver.now()

    (job,) = await driver.worker("w1").claim()

    record = (await driver.read(ref)).record
    assert (record.state, record.worker, record.claim) == (JobState.PROCESSING, "w1", job.claim)
    assert record.claimed_at is not None
    assert before <= record.claimed_at <= driver.now()
    assert record.lease_until == record.claimed_at + LEASE_MS
    assert job.counts == record.counts == AttemptCounts(attempt=1)


@pytest.mark.requirement("S0-6", "S1-6")
async def test_a_claim_takes_no_more_than_it_has_slots_for(driver: Driver) -> None:
    refs = await driver.enqueue(*[new_job()] * 5)

    assert refs_of(await driver.worker().claim(2)) == [ref.run for ref in refs[:2]]
    assert await driver.worker().claim(0) == []
    assert refs_of(await driver.worker().claim(10)) == [ref.run for ref in refs[2:]]
    assert await driver.worker().claim(10) == []


async def test_fences_only_grow_and_claims_carry_their_token(driver: Driver) -> None:
    await driver.enqueue(*[new_job()] * 3)

    claims = [(await driver.worker(name).claim())[0].claim for name in ("w1", "w2", "w1")]

    fences = [int(claim.partition(".")[0]) for claim in claims]
    assert fences == sorted(set(fences))
    assert [claim.partition(".")[2] for claim in claims] == ["w1-16", "w2-16", "w1-32"]


@pytest.mark.requirement("S0-15", "S3-7", "S3-17")
async def test_many_workers_at_once_never_claim_the_same_job(driver: Driver) -> None:
    refs = await driver.enqueue(*[new_job()] * 200)

    claimed = await asyncio.gather(*(driver.worker(f"w{n % 10}-{n}").claim(7) for n in range(40)))

    runs = [run for jobs in claimed for run in refs_of(jobs)]
    assert sorted(runs) == [ref.run for ref in refs]


async def test_a_claim_sent_again_brings_the_same_jobs(driver: Driver) -> None:
    """A claim whose reply was lost is asked again."""
    await driver.enqueue(*[new_job("", [n]) for n in range(5)])
    first = await driver.worker().claims(3)
    before = driver.dump()

    again = await driver.worker().claims_again(3)

    assert again.jobs == first.jobs
    assert driver.dump() == before


async def test_a_claim_sent_again_brings_only_what_it_still_owns(driver: Driver) -> None:
    await driver.enqueue(*[new_job()] * 3)
    done, returned, held = (await driver.worker().claims(3)).jobs
    await driver.worker().complete(done)
    await driver.worker().hand_back(returned)
    (elsewhere,) = await driver.worker("w2").claim()
    assert elsewhere.run == returned.run

    assert (await driver.worker().claims_again(3)).jobs == [held]


async def test_a_copy_of_an_older_claim_that_was_long_on_its_way_takes_nothing(driver: Driver) -> None:
    await driver.enqueue(*[new_job()] * 4)
    worker = driver.worker()
    await worker.claim()
    await worker.claim()
    before = driver.dump()

    late = await worker.store.claim(QUEUE, 1, call_number=16, claim_token="w1-16")

    assert late.jobs == []
    assert driver.dump() == before


async def test_an_empty_queue_brings_nothing_and_nothing_to_wait_for(driver: Driver) -> None:
    claims = await driver.worker().claims(5)

    assert claims == ClaimReply([], None)
    assert driver.all_keys() == sorted([driver.key("idle"), driver.key("meta")])


@pytest.mark.parametrize("what", ["scheduled", "expiring", "lease"])
async def test_a_claim_says_how_long_there_is_nothing_to_do(driver: Driver, what: str) -> None:
    """Without polling: a worker sleeps until the next due time, or until it is woken."""
    if what == "scheduled":
        await driver.enqueue(new_job(due="+90000"), new_job(due="+60000"))
        expected = 60_000
    elif what == "expiring":
        await driver.enqueue(new_job(due="+90000", expiry="+30000"))
        expected = 30_000
    else:
        await driver.enqueue()
        await driver.worker("w2").claim()
        expected = LEASE_MS

    wait_ms = (await driver.worker().claims()).wait_ms

    assert wait_ms is not None
    assert expected - 2_000 < wait_ms <= expected


@pytest.mark.requirement("S0-5", "S4-15")
async def test_attempts_only_grow_whatever_ends_them(driver: Driver) -> None:
    """Each execution has its number, and the counters are kept apart."""
    await driver.enqueue()
    worker = driver.worker()
    seen: list[AttemptCounts] = []
    for verb in ("hand back", "lose", "fail", "snooze"):
        (job,) = await worker.claim()
        seen.append(job.counts)
        assert await worker.end(job, verb) == "ok"
    (job,) = await worker.claim()
    seen.append(job.counts)

    assert seen == [
        AttemptCounts(attempt=1),
        AttemptCounts(attempt=2, handbacks=1),
        AttemptCounts(attempt=3, handbacks=1, stalls=1),
        AttemptCounts(attempt=4, handbacks=1, stalls=1, failures=1),
        AttemptCounts(attempt=5, handbacks=1, stalls=1, failures=1, snoozes=1),
    ]


async def test_what_is_handed_back_keeps_its_place(driver: Driver) -> None:
    first, *_ = await driver.enqueue(*[new_job()] * 3)
    (job,) = await driver.worker("w1").claim()
    driver.advance(1000)

    await driver.worker("w1").hand_back(job)

    assert refs_of(await driver.worker("w2").claim()) == [first.run]


@pytest.mark.requirement("S0-4", "S0-9", "S2-20")
@pytest.mark.parametrize("verb", ["fail", "snooze"])
async def test_what_is_tried_again_takes_a_new_place_in_its_priority(driver: Driver, verb: str) -> None:
    """A requeued job goes to the back of its own priority."""
    first, second, low = await driver.enqueue(new_job(), new_job(), new_job(priority=10))
    worker = driver.worker()
    (job,) = await worker.claim()
    driver.advance(1000)

    await (worker.fail(job, "") if verb == "fail" else worker.snooze(job, ""))

    assert refs_of(await worker.claim(5)) == [second.run, first.run, low.run]


@pytest.mark.requirement("S3-16")
async def test_a_record_that_cannot_be_read_is_claimed_and_shown_all_the_same(driver: Driver) -> None:
    """It can be failed with a clear error; it neither vanishes nor stops the queue."""
    made = await driver.client.enqueue(QUEUE, [NewJob("junk", 0, "", "", b"{not json\nnoop\n[]"), new_job("fine")])

    junk, fine = await driver.worker().claim(5)

    assert (junk.run, fine.run) == tuple(one.run for one in made)
    with pytest.raises(UndecodableRecord):
        decode_body(junk.run, junk.record)
    shown = (await driver.read(JobRef(QUEUE, "junk"))).record
    assert shown.state is JobState.PROCESSING
    assert shown.error is not None
    assert shown.error.type == "UndecodableRecord"
    assert await driver.worker().fail(junk) == "ok"


@pytest.mark.parametrize(
    "options",
    [
        b'{"max_stalls":"many","keep":{"finished":"nan","failed":-1,"failed_count":[]}}',
        b'{"max_stalls":null,"at_most_once":null,"keep":{"finished":null,"finished_count":null}}',
        b'{"max_stalls":{},"keep":[]}',
        b'{"keep":{"failed":1e300,"failed_count":-7,"finished":0.4}}',
        b"[" * 4000,
        b"null",
        b"\xff\xfe",
    ],
)
async def test_no_record_can_stop_a_queue_from_being_served(driver: Driver, options: bytes) -> None:
    """One record that makes a script fail would make every later claim of the queue fail."""
    bad = NewJob("", 0, "", "", options + b"\nnoop\n[]")
    await driver.client.enqueue(QUEUE, [bad, bad._replace(expiry="+60000", due="+100"), bad])
    stalled, cancelled = await driver.worker("w1").claim(2)
    await driver.advance_with_ticks(LEASE_MS + 1000)

    for _ in range(5):
        for job in await driver.worker("w2").claim(5):
            assert await driver.worker("w2").lose(job) == "ok"
    driver.advance(HOUR)
    await driver.worker("w2").claim(0)
    await driver.client.apply_retention(QUEUE)

    assert await driver.worker("w1").complete(stalled) == "lease_lost"
    assert await driver.worker("w1").hand_back(cancelled) == "lease_lost"
    ref = await driver.one()
    assert refs_of(await driver.worker("w2").claim(5)) == [ref.run]
