"""A job's handle: where it is, why, what came of it, and what can be done to it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
import redis

from rota import (
    CancelOutcome,
    IdInUse,
    InvalidOption,
    Job,
    JobCancelled,
    JobFailed,
    JobNotFound,
    JobRef,
    JobState,
    Keep,
    ResultTimeout,
    Rota,
    Task,
    WrongState,
)
from rota.client.session import session_of, sessions_of
from rota.core.job_record import ErrorRecord
from rota.core.job_record_codec import encode_error, encode_result
from rota.store.report_encoding import Failed
from tests.client.manual_worker import Hand, job_keys, move_to, without_replies
from tests.eventually import eventually
from tests.servers import OwnServers


@pytest.fixture
def pushes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the fallback poll: an end that is not pushed is not noticed."""
    monkeypatch.setattr("rota.client.completion_waiter.POLL_S", 3_600)


@pytest.fixture
def send(rota: Rota) -> Task[[], Any, Any]:
    @rota.task
    async def send() -> Any: ...

    return send


async def awaited_by_store(rota: Rota, *jobs: Job[Any]) -> None:
    """Waits until the store has a waiting client for each of them."""
    runs = {str(job.run).encode() for job in jobs}

    async def all_are() -> bool:
        return runs <= set(
            await session_of(rota).store.redis.command("HKEYS", sessions_of(rota).keys.queue("default", "waiters"))
        )

    await eventually(all_are)


# --- results ---------------------------------------------------------------------------------------------------------


@dataclass
class Receipt:
    id: UUID
    at: datetime


@pytest.mark.usefixtures("on_each")
async def test_a_result_has_the_type_that_the_task_declares(rota: Rota, hand: Hand) -> None:
    @rota.task
    async def buy() -> list[Receipt]: ...

    receipts = [Receipt(UUID(int=1), datetime(2024, 1, 1, tzinfo=UTC))]
    job = await buy.enqueue()
    await hand.finish(job, receipts)

    assert await job.result() == receipts
    assert await rota.job(job.id).result() == [{"id": str(UUID(int=1)), "at": "2024-01-01T00:00:00Z"}]
    assert await rota.job(job.id, returns=list[Receipt]).result() == receipts


@pytest.mark.parametrize("value", [None, 0, "", [], {}, False, "x", 1.5, {"a": [None]}])
async def test_a_result_comes_back(send: Task[[], Any, Any], hand: Hand, value: Any) -> None:
    job = await send.enqueue()
    await hand.finish(job, value)

    assert await job.result(timeout=5) == value
    assert await job.result() == value, "it can be asked for again"


async def test_a_failed_job_raises_with_the_record_of_its_error(send: Task[[], Any, Any], hand: Hand) -> None:
    job = await send.enqueue()
    claimed = await hand.take(job)
    error = ErrorRecord("timeout", "Slow", "too\nslow", "Traceback …", {"code": 7})
    await hand.report(
        Failed(claimed.run, claimed.claim, "final", Keep().retention(JobState.FAILED), encode_error(error)),
        queue="default",
    )

    with pytest.raises(JobFailed, match=f"{job.id} failed for good: Slow: too") as raised:
        await job.result(timeout=5)

    assert raised.value.error == error
    assert (await job.refresh()).error == error


async def test_a_cancelled_job_raises_with_its_reason(send: Task[[], Any, Any], hand: Hand) -> None:
    asked, gave_up = await send.enqueue(), await send.enqueue()
    await asked.cancel("not needed: 50 % off\nand gone")
    await hand.abandon(gave_up, "nothing to do")

    with pytest.raises(JobCancelled, match="not needed: 50 % off and gone") as raised:
        await asked.result(timeout=5)
    assert raised.value.reason == "not needed: 50 % off and gone"
    with pytest.raises(JobCancelled, match="nothing to do"):
        await gave_up.result(timeout=5)


async def test_waiting_ends_when_its_time_is_over(send: Task[[], Any, Any], hand: Hand) -> None:
    job = await send.enqueue()

    with pytest.raises(ResultTimeout, match=r"has not ended within 0.05 s, it is pending; it continues") as raised:
        await job.result(timeout=0.05)

    assert isinstance(raised.value, TimeoutError)
    assert (raised.value.job_id, raised.value.state) == (job.id, "pending")
    await hand.finish(job, 5)
    assert await job.result(timeout=5) == 5


async def test_a_result_that_is_there_needs_no_time(send: Task[[], Any, Any], hand: Hand) -> None:
    done, waiting = await send.enqueue(), await send.enqueue()
    await hand.finish(done, 5)

    assert await done.result(timeout=0) == 5
    with pytest.raises(ResultTimeout):
        await waiting.result(timeout=0)


async def test_waiting_goes_on_when_a_dead_letter_is_redriven_before_its_end_was_read(
    send: Task[[], Any, Any], rota: Rota, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await send.enqueue()
    waiter_of_session, told = session_of(rota).waiter, asyncio.Event()
    wait_job = waiter_of_session.wait_job

    async def told_early(ref: JobRef) -> JobRef:
        if told.is_set():
            return await wait_job(ref)
        told.set()
        return ref  # it had ended, and has not any more

    monkeypatch.setattr(waiter_of_session, "wait_job", told_early)
    waiter = asyncio.create_task(job.result(timeout=20))
    await told.wait()

    await hand.finish(job, "after all")

    assert await waiter == "after all"


async def test_a_job_that_does_not_exist_is_not_found(rota: Rota, send: Task[[], Any, Any], hand: Hand) -> None:
    job = await send.enqueue()
    gone = [
        rota.job("nobody"),
        rota.job("other:nobody"),
        rota.job(f"{job.id}@000000zzz"),
        rota.job("default:000000001"),
    ]
    gone.append(rota.job(f"{job.id[:-1]}{'0' if job.id[-1] != '0' else '1'}"))

    for handle in gone:
        questions = [
            handle.state(),
            handle.refresh(),
            handle.explain(),
            handle.history(),
            handle.logs(),
            handle.result(),
            handle.result(timeout=1),
            handle.cancel(),
            handle.delete(),
            handle.redrive(),
        ]
        for question in questions:
            with pytest.raises(JobNotFound, match="does not exist, or ended and is no longer kept") as raised:
                await question
            assert isinstance(raised.value, LookupError)
    assert await job.state() == JobState.PENDING


async def test_a_result_that_is_not_kept_is_still_given_to_who_waits_for_it(
    send: Task[[], Any, Any], rota: Rota, hand: Hand
) -> None:
    awaited, nobodys = await send.enqueue(), await send.enqueue()
    waiter = asyncio.create_task(awaited.result(timeout=20))
    await awaited_by_store(rota, awaited)

    await hand.finish(awaited, 5, keep=Keep(finished=0))
    await hand.finish(nobodys, 5, keep=Keep(finished=0))

    assert await waiter == 5
    with pytest.raises(JobNotFound):
        await nobodys.result()


@pytest.mark.usefixtures("pushes_alone")
async def test_a_waiting_client_is_notified_that_the_job_is_gone(send: Task[[], Any, Any], rota: Rota) -> None:
    deleted, purged = [await send.enqueue() for _ in range(2)]
    waiting = [asyncio.create_task(job.result(timeout=20)) for job in (deleted, purged)]
    await awaited_by_store(rota, deleted, purged)

    await deleted.delete()
    await rota.queue().purge()

    for waiter in waiting:
        with pytest.raises(JobNotFound):
            await waiter


@pytest.mark.usefixtures("on_each", "pushes_alone")
@pytest.mark.parametrize("end", ["complete", "fail", "cancel", "give up"])
async def test_a_waiting_client_is_notified_of_the_end(
    send: Task[[], Any, Any], rota: Rota, hand: Hand, end: str
) -> None:
    job = await send.enqueue()
    waiters = [asyncio.create_task(job.result(timeout=20)) for _ in range(3)]
    await awaited_by_store(rota, job)

    if end == "complete":
        await hand.finish(job, 5)
        assert await asyncio.gather(*waiters) == [5] * 3
    else:
        await (hand.kill_off(job) if end == "fail" else job.cancel() if end == "cancel" else hand.abandon(job, "no"))
        for waiter in waiters:
            with pytest.raises((JobFailed, JobCancelled)):
                await waiter


@pytest.mark.usefixtures("pushes_alone")
async def test_many_waiting_clients_are_notified_of_their_own_job_only(
    send: Task[[], Any, Any], rota: Rota, hand: Hand
) -> None:
    jobs = [await send.enqueue() for _ in range(100)]
    waiters = [asyncio.create_task(job.result(timeout=20)) for job in jobs]
    await awaited_by_store(rota, *jobs)

    for place, claimed in enumerate(await hand.claim(100, queue="default")):
        assert await hand.complete(claimed, encode_result(place)) == "ok"

    assert await asyncio.gather(*waiters) == list(range(100))


async def test_a_waiter_that_leaves_does_not_disturb_the_others(
    send: Task[[], Any, Any], rota: Rota, hand: Hand
) -> None:
    job = await send.enqueue()
    stays, leaves = (asyncio.create_task(job.result(timeout=20)) for _ in range(2))
    await awaited_by_store(rota, job)
    leaves.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaves

    await hand.finish(job, 5)

    assert await stays == 5


@pytest.mark.usefixtures("pushes_alone")
async def test_a_push_survives_the_death_of_its_connection(own_server: OwnServers, namespace: str) -> None:
    server = own_server()
    async with Rota(server.url, namespace=namespace) as rota:
        hand = Hand(rota)
        job = await rota.task(name="send")(_nothing).enqueue()
        waiter = asyncio.create_task(job.result(timeout=20))
        with server.client() as raw:
            await eventually(lambda: _subscribers(raw) == 1)
            raw.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
            await eventually(lambda: _subscribers(raw) == 1)

            await hand.finish(job, "told")

            assert await waiter == "told"
        await hand.close()


@pytest.mark.usefixtures("pushes_alone")
async def test_a_push_survives_a_restart_of_the_server(own_server: OwnServers, namespace: str) -> None:
    server = own_server(appendonly="yes", appendfsync="always")
    async with Rota(server.url, namespace=namespace) as rota:
        hand = Hand(rota)
        job = await rota.task(name="send")(_nothing).enqueue()
        waiter = asyncio.create_task(job.result(timeout=20))
        with server.client() as raw:
            await eventually(lambda: _subscribers(raw) == 1)

        await asyncio.to_thread(server.restart)

        with server.client() as raw:
            await eventually(lambda: _subscribers(raw) == 1)
        await hand.finish(job, "told")
        assert await waiter == "told"
        await hand.close()


async def test_an_end_that_falls_into_a_gap_is_found_by_looking_again(own_server: OwnServers, namespace: str) -> None:
    server = own_server()
    async with Rota(server.url, namespace=namespace) as rota:
        hand = Hand(rota)
        job = await rota.task(name="send")(_nothing).enqueue()
        waiter = asyncio.create_task(job.result(timeout=20))
        with server.client() as raw:
            await eventually(lambda: _subscribers(raw) == 1)
            # All its waiting is in vain: what the server remembers of it is lost.
            raw.delete(sessions_of(rota).keys.queue("default", "waiters"))

            await hand.finish(job, "found")

            assert await waiter == "found"
        await hand.close()


# --- explaining ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("on_each")
async def test_each_state_is_explained(send: Task[[], Any, Any], rota: Rota, hand: Hand) -> None:
    later = await send.using(delay=90).enqueue()
    assert (await later.explain()).startswith("scheduled: starts in 1 min ")

    job = await send.enqueue()
    assert "no worker serves queue default; start one" in await job.explain()
    await hand.store.renew_registration('{"queues": ["default"], "state": "active"}')
    assert "may start as soon as a worker has a free slot" in await job.explain()
    await rota.queue().pause()
    assert "queue default is paused; resume it" in await job.explain()
    await rota.queue().resume()

    claimed = await hand.take(job)
    assert (await job.explain()).startswith("processing: attempt 1 on worker w1 for ")
    await hand.store.save_progress("default", [(claimed.run, claimed.claim, "30", "60", "half")])
    assert "50 % done" in await job.explain()
    await hand.fail(claimed, "+90000", message="the disk is full\nand more")
    assert (await job.explain()).startswith(
        "scheduled: attempt 1 failed (ValueError: the disk is full); failure 1 of 3, next attempt in 1 min "
    )

    dead, done, off, plainly_off = [await send.enqueue() for _ in range(4)]
    await hand.kill_off(dead, "no such file")
    assert await dead.explain() == (
        "failed: ValueError: no such file (attempt 1); a dead letter, redrive it to try again"
    )
    await hand.finish(done)
    assert (await done.explain()).startswith("completed: attempt 1 succeeded after ")
    await off.cancel("too late")
    assert (await off.explain()).endswith(" ago: too late")
    await plainly_off.cancel()
    assert (await plainly_off.explain()).endswith(" ago: by request")


@pytest.mark.usefixtures("on_each")
async def test_whatever_blocks_a_job_is_explained(send: Task[[], Any, Any], rota: Rota, hand: Hand) -> None:
    holder = await send.using(lock="seat", id="x").enqueue()
    second = await send.using(lock="seat").enqueue()
    assert await second.explain() == f"blocked: lock seat goes to {holder.ref} first, which is about to start"
    await hand.take(holder)
    assert (await second.explain()).startswith(f"blocked: lock seat is held by {holder.ref} for ")
    again = await send.using(id="x").enqueue()
    assert await again.explain() == f"blocked: waits for {holder.ref}, the run of its id that is still processing"

    await holder.cancel()
    assert (await second.explain()).startswith(f"blocked: lock seat is held by {holder.ref} for "), "it has to stop"

    dependent = await send.using(after=[second]).enqueue()
    assert await dependent.explain() == f"blocked: waits for {second.ref}"


async def test_a_step_says_what_it_waits_for(rota: Rota) -> None:
    @rota.task
    async def names() -> list[str]:
        return []

    @rota.task
    async def greet(name: str) -> str:
        return name

    @rota.task
    async def join(names: list[str]) -> None: ...

    for name in ("first", "second"):
        async with rota.workflow("limited", id=name, limit=1) as flow:
            joined = flow.step(join.call(flow.map(greet, flow.step(names.call()).result).result))

    assert await rota.job("default:second.0").explain() == (
        "blocked: waits for its workflow to start: as many as are allowed are running already (part of workflow second)"
    )
    assert await rota.job(f"default:first.{joined.number}").explain() == (
        "blocked: waits for all items of step 1 (part of workflow first)"
    )


async def test_a_job_that_is_overdue_says_what_holds_it_up(
    send: Task[[], Any, Any], rota: Rota, hand: Hand, raw: redis.Redis
) -> None:
    job = await send.using(delay=0.01).enqueue()
    due_at = (await job.refresh()).due_at or 0
    await eventually(lambda: raw.time() > (due_at // 1000, due_at % 1000 * 1000 + 1000))
    assert await job.state() == JobState.SCHEDULED, "no worker has promoted it"

    assert "no worker serves queue default" in await job.explain()
    await rota.queue().pause()
    assert "queue default is paused" in await job.explain()
    await rota.queue().resume()
    await hand.store.renew_registration('{"queues": ["default"], "state": "active"}')
    assert (await job.explain()).startswith("scheduled: starts in 0 ms")


# --- history and logs ------------------------------------------------------------------------------------------------


async def test_the_history_tells_every_change(send: Task[[], Any, Any], hand: Hand) -> None:
    job = await send.using(retry=5).enqueue()
    await hand.fail(await hand.take(job), "+0")
    await hand.snooze(await hand.take(job), "+0")
    await hand.hand_back(await hand.take(job))
    await hand.kill_off(job)
    await job.redrive()
    await hand.finish(job)

    history = await job.history()

    told = [(entry.verb, entry.state, entry.attempt) for entry in history]
    assert told == [
        ("enqueue", "pending", 0),
        ("claim", "processing", 1),
        ("fail", "pending", 1),
        ("claim", "processing", 2),
        ("snooze", "pending", 2),
        ("claim", "processing", 3),
        ("return", "pending", 3),
        ("claim", "processing", 4),
        ("fail", "failed", 4),
        ("redrive", "pending", 0),
        ("claim", "processing", 5),
        ("complete", "completed", 5),
    ]
    assert [entry.at for entry in history] == sorted(entry.at for entry in history)
    assert {entry.worker for entry in history if entry.verb == "claim"} == {"w1"}


async def test_the_history_of_a_cancelled_job_ends_with_the_reason(send: Task[[], Any, Any], hand: Hand) -> None:
    job = await send.enqueue()
    await hand.take(job)
    await job.cancel("enough")

    last = (await job.history())[-1]

    assert (last.verb, last.state, last.note) == ("cancel", "cancelled", "enough")


async def test_logs_come_line_by_line(send: Task[[], Any, Any], hand: Hand) -> None:
    job = await send.enqueue()
    assert await job.logs() == []
    claimed = await hand.take(job)
    await hand.store.append_log("default", claimed.run, claimed.claim, 1, ["info one", "warning two words ü"])

    lines = await job.logs()

    assert [(line.level, line.text) for line in lines] == [("info", "one"), ("warning", "two words ü")]
    assert [line.text for line in await job.logs(start=1)] == ["two words ü"]
    assert await job.logs(start=2) == []


# --- orders ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("on_each")
@pytest.mark.parametrize("state", [JobState.PENDING, JobState.SCHEDULED, JobState.PROCESSING])
async def test_what_has_not_ended_can_be_cancelled(send: Task[[], Any, Any], hand: Hand, state: JobState) -> None:
    job = await send.enqueue()
    if state is not JobState.PENDING:
        await move_to(job, state, hand)

    stopping = state is JobState.PROCESSING
    assert await job.cancel("enough") is (CancelOutcome.STOPPING if stopping else CancelOutcome.CANCELLED)

    record = await job.refresh()
    assert (record.state, record.reason) == (JobState.CANCELLED, "enough")
    assert await hand.claim(queue="default") == []


@pytest.mark.parametrize("state", [JobState.COMPLETED, JobState.FAILED])
async def test_what_has_ended_cannot_be_cancelled(
    send: Task[[], Any, Any], hand: Hand, raw: redis.Redis, namespace: str, state: JobState
) -> None:
    job = await send.enqueue()
    await move_to(job, state, hand)
    before = without_replies(raw, namespace)

    with pytest.raises(WrongState, match=f"cannot cancel job {job.id}: it is {state}") as raised:
        await job.cancel("too late")
    with pytest.raises(WrongState):
        await job.cancel(only_waiting=True)

    assert (raised.value.state, raised.value.verb) == (state, "cancel")
    assert without_replies(raw, namespace) == before


async def test_a_second_cancel_is_refused_and_changes_nothing(
    send: Task[[], Any, Any], raw: redis.Redis, namespace: str
) -> None:
    job = await send.enqueue()
    await job.cancel("first")
    before = without_replies(raw, namespace)

    with pytest.raises(WrongState, match="cancelled"):
        await job.cancel("second")

    assert without_replies(raw, namespace) == before


async def test_only_what_waits_can_be_asked_to_be_cancelled(send: Task[[], Any, Any], hand: Hand) -> None:
    running = await send.enqueue()
    claimed = await hand.take(running)
    waiting = await send.enqueue()

    assert await running.cancel(only_waiting=True) is CancelOutcome.LEFT_RUNNING
    assert await waiting.cancel(only_waiting=True) is CancelOutcome.CANCELLED

    assert await running.state() == JobState.PROCESSING
    assert await hand.complete(claimed) == "ok"


async def test_a_cancelled_run_takes_no_report(send: Task[[], Any, Any], hand: Hand) -> None:
    job = await send.enqueue()
    claimed = await hand.take(job)
    await job.cancel()

    assert await hand.complete(claimed, b"5") != "ok"
    assert await job.state() == JobState.CANCELLED


@pytest.mark.parametrize("reason", ["", "x" * 10_000, "a b  c ", "ü\t😀", "5 - -"])
async def test_any_reason_is_kept(send: Task[[], Any, Any], reason: str) -> None:
    job = await send.enqueue()

    await job.cancel(reason)

    assert (await job.refresh()).reason == reason


async def test_a_reason_that_is_no_text_is_refused(send: Task[[], Any, Any]) -> None:
    job = await send.enqueue()

    reasons: list[Any] = ["\ud800", None, 5]
    for reason in reasons:
        with pytest.raises(InvalidOption, match="reason"):
            await job.cancel(reason)
    assert await job.state() == JobState.PENDING


@pytest.mark.usefixtures("on_each")
@pytest.mark.parametrize("state", [state for state in JobState if state is not JobState.BLOCKED])
async def test_any_job_can_be_deleted(
    send: Task[[], Any, Any], rota: Rota, hand: Hand, raw: redis.Redis, namespace: str, state: JobState
) -> None:
    job = await send.using(id="x", tags=["t"], expires=100).enqueue()
    if state is not JobState.PENDING:
        await move_to(job, state, hand)

    await job.delete()

    for handle in (job, rota.job("x")):
        with pytest.raises(JobNotFound):
            await handle.state()
    with pytest.raises(JobNotFound):
        await job.delete()
    assert set((await rota.queue().counts()).values()) == {0}
    left = {
        key
        for key, value in job_keys(raw, namespace).items()
        if str(job.run) in str(value) and not any(name in key for name in (":last_reply:", ":reply:", ":stopping"))
    }
    if state is JobState.PROCESSING:
        left -= {key for key in left if key.endswith((":runs", ":named", ":ids"))}  # until its handler has stopped
    assert {key for key in left if ":kept:" not in key} == set(), "kept lists are swept by time"


async def test_a_dead_letter_can_be_redriven(send: Task[[], Any, Any], hand: Hand) -> None:
    job = await send.using(retry=2).enqueue()
    await hand.fail(await hand.take(job), "+0")
    await hand.kill_off(job)

    await job.redrive()

    record = await job.refresh()
    assert (record.state, record.counts.failures, record.counts.attempt) == (JobState.PENDING, 0, 2)
    await hand.finish(job, 5)
    assert await job.result(timeout=5) == 5


@pytest.mark.parametrize("state", [s for s in JobState if s not in (JobState.BLOCKED, JobState.FAILED)])
async def test_only_a_dead_letter_can_be_redriven(
    send: Task[[], Any, Any], hand: Hand, raw: redis.Redis, namespace: str, state: JobState
) -> None:
    job = await send.enqueue()
    if state is not JobState.PENDING:
        await move_to(job, state, hand)
    before = without_replies(raw, namespace)

    with pytest.raises(WrongState, match=f"cannot redrive job {job.id}: it is {state}; only a dead letter"):
        await job.redrive()

    assert without_replies(raw, namespace) == before


# --- runs ------------------------------------------------------------------------------------------------------------


async def test_a_handle_stays_with_its_run(send: Task[[], Any, Any], rota: Rota, hand: Hand) -> None:
    first = await send.using(id="x").enqueue()
    bare, pinned = rota.job("x"), rota.job(f"default:x@{first.run}")
    assert await bare.state() == JobState.PENDING
    await hand.finish(first, "first")
    second = await send.using(id="x").enqueue()

    assert [await job.result(timeout=5) for job in (first, bare, pinned)] == ["first"] * 3
    assert (await rota.job("x").refresh()).ref.run == second.run
    with pytest.raises(WrongState):
        await first.cancel()
    assert await second.state() == JobState.PENDING
    await first.delete()
    assert await second.state() == JobState.PENDING
    with pytest.raises(JobNotFound):
        await first.state()


async def test_a_dead_letter_stays_beside_a_newer_run_of_its_id(
    send: Task[[], Any, Any], rota: Rota, hand: Hand
) -> None:
    dead = await send.using(id="x").enqueue()
    await hand.kill_off(dead)
    newer = await send.using(id="x").enqueue()

    assert await rota.job(f"default:x@{dead.run}").state() == JobState.FAILED
    with pytest.raises(IdInUse) as raised:
        await dead.redrive()
    assert raised.value.run == newer.run
    await hand.finish(newer)
    await dead.redrive()
    assert (await rota.job("x").refresh()).ref.run == dead.run


async def test_a_run_is_found_only_under_its_own_id(send: Task[[], Any, Any], rota: Rota) -> None:
    x = await send.using(id="x").enqueue()
    y = await send.using(id="y").enqueue()

    for wrong in (f"default:x@{y.run}", f"default:y@{x.run}", f"other:x@{x.run}"):
        handle = rota.job(wrong)
        with pytest.raises(JobNotFound):
            await handle.state()
        with pytest.raises(JobNotFound):
            await handle.cancel()
    assert [await job.state() for job in (x, y)] == [JobState.PENDING] * 2


def test_names_of_jobs(rota: Rota) -> None:
    bare, full, run = rota.job("a"), rota.job("mail:a"), rota.job("mail:a@000000012")

    assert [(job.queue, job.id, job.run) for job in (bare, full, run)] == [
        ("default", "default:a", None),
        ("mail", "mail:a", None),
        ("mail", "mail:a", "000000012"),
    ]
    assert (str(run.ref), repr(run)) == ("mail:a@000000012", "<Job mail:a@000000012>")
    assert rota.job("default:a") == bare
    assert len({bare, rota.job("a"), full}) == 2


@pytest.mark.parametrize(
    "name", ["", ":", "a:", ":a", "a:b:c", "a@", "a@1", "a@00000000l", "a b", "mail:a@b@c", 5, None]
)
def test_what_is_no_name_of_a_job_is_refused(rota: Rota, name: Any) -> None:
    with pytest.raises(InvalidOption):
        rota.job(name)


async def _nothing() -> Any: ...


def _subscribers(raw: redis.Redis) -> int:
    clients = raw.client_list(_type="pubsub")
    return len(clients)


def test_two_handles_of_one_run_are_equal(rota: Rota) -> None:
    assert rota.job("a@000000001") == rota.job("a@000000001") != rota.job("a")
    assert rota.job("a") != "a"
    assert isinstance(rota.job("a"), Job)
