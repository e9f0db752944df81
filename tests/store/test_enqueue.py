"""enqueue: (none) -> scheduled | pending."""

from __future__ import annotations

import asyncio
import gc
import logging
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from rota.core.ids import JobRef, decode_run, encode_run
from rota.core.job_record_codec import decode_body
from rota.core.state_transitions import JobState
from rota.errors import StoreUnavailable
from rota.store.batch_limit_constants import BATCH, BATCH_BYTES
from rota.store.enqueue_batcher import NewJob
from rota.store.job_store import JobStore
from rota.store.keys import Keys
from rota.store.redis.address import parse_address
from rota.store.redis.retrying_client import Argument, RedisClient
from tests.store.driver import QUEUE, Driver, new_job, parts, ref_of, refs_of

MINUTE = 60_000


@pytest.mark.requirement("S0-1", "S1-1", "S2-17", "S4-4")
async def test_a_job_gets_its_record_and_its_place_in_one_step(driver: Driver) -> None:
    """Record and queue entry appear together, and the answer says that they did."""
    before = driver.now()
    (ref,) = await driver.enqueue(new_job("welcome-7", {"to": "a@b.c", "n": None}, tags=("x",)))
    after = driver.now()

    record = (await driver.read(ref)).record
    assert (record.state, record.ref, record.task) == (JobState.PENDING, ref, "noop")
    assert record.arguments == b'{"to": "a@b.c", "n": null}'
    assert record.options.tags == ("x",)
    assert before <= record.enqueued_at <= after
    assert record.due_at == record.enqueued_at
    assert record.counts.attempt == 0


@pytest.mark.parametrize("count", [1, 40])
async def test_plain_jobs_leave_the_same_through_either_script(driver: Driver, count: int) -> None:
    """The fast script repeats what others include: both must write the same data."""
    left: list[str] = []
    for script, lines in (("enqueue", ""), ("enqueue_fast", "{}\nnoop\n")):
        driver.redis.hset(driver.keys.queue(script, "meta"), "run", 1_020)  # some are in the next chunk
        words: list[str | int] = ["q", driver.keys.inbox_prefix, 1, *([lines] if lines else [])]
        for number in range(count):
            words += (encode_run(number)[1:], f"[{number}]" if lines else f"{{}}\nnoop\n[{number}]")
        keys = driver.client.script_keys(script, script)

        answer = await driver.redis_client.run(script, keys, words)

        assert answer.startswith(b"1020 ")
        assert await driver.redis_client.run(script, keys, words) == answer
        kept = {key: value for key, value in driver.dump().items() if f"{{{script}}}" in key}
        left.append(re.sub(r"\d{13}(-\d+|\.0)?|29\d{6}", "now", repr(kept).replace(f"{{{script}}}", "{q}")))
    assert left[0] == left[1]


@pytest.mark.requirement("S4-5")
async def test_a_generated_id_sorts_by_age_and_finds_its_job(driver: Driver) -> None:
    """An id is made up where none is given."""
    refs = await driver.enqueue(*[new_job()] * 50)

    ids = [ref.id for ref in refs]
    assert ids == sorted(set(ids))
    assert (await driver.read(JobRef(QUEUE, ids[7]))).record.ref == refs[7]


async def test_an_id_with_another_random_part_finds_nothing(driver: Driver) -> None:
    ref = await driver.one()
    guessed = ref.id[:-1] + ("0" if ref.id[-1] != "0" else "1")

    assert not await driver.exists(JobRef(QUEUE, guessed))
    assert not await driver.exists(JobRef(QUEUE, "other", ref.run))


@pytest.mark.requirement("S0-4", "S2-12", "S4-24", "K-1")
async def test_two_thousand_jobs_of_one_call_are_claimed_in_their_order(driver: Driver) -> None:
    """FIFO, also for jobs that share a millisecond."""
    refs = await driver.enqueue(*(new_job("", [number]) for number in range(2_000)))

    claimed: list[bytes] = []
    while jobs := await driver.worker().claim(300):
        claimed += [decode_body(job.run, job.record).arguments for job in jobs]

    assert claimed == [b"[%d]" % number for number in range(2_000)]
    assert len({ref.run for ref in refs}) == 2_000


@pytest.mark.requirement("S0-4")
@pytest.mark.parametrize("boundary", [32**2, 32**3, 32**5, 32**8])
async def test_order_holds_where_run_numbers_get_another_digit(driver: Driver, boundary: int) -> None:
    """kue's ids were sorted as text, and 10 came before 9."""
    driver.redis.hset(driver.key("meta"), "run", boundary - 5)

    refs = await driver.enqueue(*[new_job()] * 10)

    assert [ref.run for ref in refs] == [encode_run(boundary - 4 + place) for place in range(10)]
    assert refs_of(await driver.worker().claim(10)) == [ref.run for ref in refs]


@pytest.mark.requirement("S0-15")
async def test_jobs_of_concurrent_callers_are_all_made_and_each_caller_gets_its_own(driver: Driver) -> None:
    made = await asyncio.gather(
        *(driver.client.enqueue(QUEUE, [new_job("", [caller, place]) for place in range(30)]) for caller in range(40))
    )

    for caller, of_caller in enumerate(made):
        for place, one in enumerate(of_caller):
            record = (await driver.read(ref_of(one))).record if place == 0 else None
            assert record is None or record.arguments == b"[%d, %d]" % (caller, place)
        runs = [decode_run(one.run) for one in of_caller]
        assert runs == sorted(runs)
    assert driver.counts() == {"pending": 1_200}


@pytest.mark.requirement("S2-2", "S2-10", "S2-12", "K-1")
async def test_the_more_urgent_comes_first_then_the_earlier_due_then_the_older(driver: Driver) -> None:
    """Order is (priority, time it became due, sequence)."""
    first, urgent, late, second, low, most_urgent = await driver.enqueue(
        new_job(),
        new_job(priority=-10),
        new_job(due="+60000"),
        new_job(),
        new_job(priority=10),
        new_job(priority=-100),
    )
    driver.advance(2 * MINUTE)
    latest = await driver.one()

    claimed = refs_of(await driver.worker().claim(10))

    assert claimed == [ref.run for ref in (most_urgent, urgent, first, second, late, latest, low)]


@pytest.mark.requirement("S4-6", "K-3")
async def test_a_delayed_job_does_not_start_before_its_time(driver: Driver) -> None:
    """Scheduled, then pending when it is due."""
    (ref,) = await driver.enqueue(new_job(due="+600000"))
    due_at = (await driver.read(ref)).record.due_at
    assert due_at is not None
    assert await driver.state(ref) is JobState.SCHEDULED

    driver.advance(9 * MINUTE)
    claims = await driver.worker().claims()
    assert claims.jobs == []
    assert claims.wait_ms is not None
    assert 0 < claims.wait_ms <= MINUTE

    driver.advance(MINUTE)
    assert refs_of(await driver.worker().claim()) == [ref.run]
    assert driver.now() >= due_at


@pytest.mark.requirement("S4-6")
async def test_a_time_of_day_is_a_time_of_the_servers_clock(driver: Driver) -> None:
    when = driver.now() + 5 * MINUTE
    (ref,) = await driver.enqueue(new_job(due=str(when)))
    assert (await driver.read(ref)).record.due_at == when

    driver.advance(4 * MINUTE)
    assert await driver.worker().claim() == []
    driver.advance(MINUTE)
    assert refs_of(await driver.worker().claim()) == [ref.run]


@pytest.mark.requirement("S4-6")
async def test_a_time_that_has_passed_means_now(driver: Driver) -> None:
    """RunAt 0 is now."""
    (ref,) = await driver.enqueue(new_job(due="0"))

    assert await driver.state(ref) is JobState.PENDING


@pytest.mark.requirement("S4-8", "S4-27")
@pytest.mark.parametrize("progress", ["waiting", "scheduled", "processing", "retrying"])
async def test_an_id_with_an_unfinished_run_is_refused_and_changes_nothing(driver: Driver, progress: str) -> None:
    """Never doubled, and the holder is named."""
    ref = await driver.one("once", due="+60000" if progress == "scheduled" else "")
    if progress in ("processing", "retrying"):
        (job,) = await driver.worker().claim()
        if progress == "retrying":
            await driver.worker().fail(job, "+60000")
    before = driver.dump("last_reply")

    (made,) = await driver.client.enqueue(QUEUE, [new_job("once", [2])])

    assert (made.is_new, made.run) == (False, ref.run)
    assert driver.dump("last_reply") == before


async def test_the_same_id_twice_in_a_batch_makes_one_job_and_leaves_the_others_alone(driver: Driver) -> None:
    made = await driver.client.enqueue(QUEUE, [new_job("a"), new_job("b"), new_job("a"), new_job("c"), new_job("a")])

    assert [(one.id, one.is_new) for one in made] == [("a", True), ("b", True), ("a", False), ("c", True), ("a", False)]
    assert made[0].run == made[2].run == made[4].run
    assert driver.counts() == {"pending": 3}


async def test_the_same_id_twice_in_a_batch_is_found_by_the_terms_of_the_second(driver: Driver) -> None:
    """The update of a run that the same call has just made finds the terms that it replaces."""
    first = new_job("a", terms=("tag=one", "tag=both"))
    second = new_job("a", again=parts(data=True), terms=("tag=two", "tag=both"))

    made = await driver.client.enqueue(QUEUE, [new_job("b", terms=("tag=one",)), first, second])

    assert [one.outcome for one in made] == ["made", "made", "updated"]
    assert driver.hash("terms") == {made[0].run: "tag=one", made[1].run: "tag=two tag=both"}
    driver.check()


@pytest.mark.requirement("S4-26")
async def test_an_id_is_free_again_once_its_run_has_ended_and_the_old_run_stays(driver: Driver) -> None:
    """The old dead letter is still there, as `id@run`."""
    old = await driver.dead_letter("nightly")

    new = await driver.one("nightly")

    assert new.run != old.run
    assert await driver.state(JobRef(QUEUE, "nightly")) is JobState.PENDING
    assert await driver.state(old) is JobState.FAILED


@pytest.mark.requirement("S4-27")
async def test_a_generated_id_cannot_be_taken_while_its_job_is_unfinished(driver: Driver) -> None:
    """Two unfinished runs never share an id, generated or chosen."""
    ref = await driver.one()

    (made,) = await driver.client.enqueue(QUEUE, [new_job(ref.id)])

    assert (made.is_new, made.run) == (False, ref.run)
    assert driver.counts() == {"pending": 1}


@pytest.mark.requirement("S2-2")
async def test_queues_do_not_share_ids_jobs_or_counters(driver: Driver) -> None:
    a = await driver.one("x", queue="q")
    b = await driver.one("x", queue="q-fail")
    c = await driver.one("x", queue="other")

    assert a.run == b.run == c.run
    assert refs_of(await driver.worker().claim(5, queue="q")) == [a.run]
    assert refs_of(await driver.worker().claim(5, queue="q-fail")) == [b.run]
    assert driver.counts(queue="other") == {"pending": 1}


async def test_a_participant_that_both_enqueues_and_claims_confuses_neither(driver: Driver) -> None:
    """The answers that are remembered for a call sent again are kept apart by kind of call."""
    worker = driver.worker()
    await driver.enqueue(*[new_job()] * 3)
    claimed = [await worker.claim() for _ in range(3)]

    made = [one for _ in range(50) for one in await worker.store.enqueue(QUEUE, [new_job()])]
    claimed += [await worker.claim() for _ in range(3)]

    assert len({one.run for one in made}) == 50
    assert len({job.run for jobs in claimed for job in jobs}) == 6


async def test_large_jobs_are_spread_over_several_calls(driver: Driver) -> None:
    large = NewJob("", 0, "", "", new_job("", "x" * (BATCH_BYTES // 3)).body)

    made = await driver.client.enqueue(QUEUE, [large] * 7)

    assert driver.counts() == {"pending": 7}
    assert [one.run for one in made] == sorted(one.run for one in made)


async def test_all_callers_of_an_unreachable_server_get_the_error(
    namespace: str, caplog: pytest.LogCaptureFixture, unused_address: Callable[[], str]
) -> None:
    redis_client = RedisClient(parse_address(unused_address()), patience=0.1)
    store = JobStore(redis_client, Keys(namespace), "client")
    with caplog.at_level(logging.ERROR):
        outcomes = await asyncio.gather(
            *(store.enqueue(QUEUE, [new_job()] * 3 * BATCH) for _ in range(3)), return_exceptions=True
        )
        gc.collect()
        await asyncio.sleep(0)

    assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 3
    assert "never retrieved" not in caplog.text
    await redis_client.close()


async def test_a_caller_does_not_get_the_error_of_a_call_that_carries_none_of_its_jobs(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, full = driver.redis_client.run, new_job("full", "x" * (BATCH_BYTES - 1_000))

    async def refuse_full_call(name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        if full.body in arguments:
            raise StoreUnavailable("refused")
        return await run(name, keys, arguments)

    monkeypatch.setattr(driver.redis_client, "run", refuse_full_call)
    first, refused, other = await asyncio.gather(
        driver.client.enqueue(QUEUE, [new_job("first")]),
        driver.client.enqueue(QUEUE, [full]),
        driver.client.enqueue(QUEUE, [new_job("other", "x" * 2_000)]),
        return_exceptions=True,
    )

    assert isinstance(refused, StoreUnavailable)
    assert not isinstance(first, BaseException)
    assert not isinstance(other, BaseException), "the full call had no room for its job"
    assert sorted(one.id for one in (*first, *other)) == ["first", "other"]
    assert driver.counts() == {"pending": 2}
