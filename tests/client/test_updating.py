"""`job.update` and `rota.locks`, as a program uses them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from rota import InvalidArguments, InvalidOption, JobNotFound, PayloadTooLarge, Rota, WrongState
from tests.client.manual_worker import Hand


async def test_a_waiting_job_is_changed_and_the_new_record_returned(rota: Rota) -> None:
    @rota.task
    def send(to: str, copies: int = 1) -> None: ...

    job = await send.enqueue("ada")

    record = await job.update(kwargs={"to": "bob", "copies": 2}, priority="low", delay=60)

    assert (record.state, record.arguments, record.options.priority) == ("scheduled", b'{"to":"bob","copies":2}', 10)
    later = datetime.now(UTC) + timedelta(hours=1)
    assert (await job.update(run_at=later)).due_at == round(later.timestamp() * 1000)
    assert (await job.update(args=["eve"], delay=0)).arguments == b'["eve"]'
    assert await job.state() == "pending"


async def test_a_change_that_makes_no_sense_changes_nothing(rota: Rota, hand: Hand) -> None:
    @rota.task
    def send(to: str) -> None: ...

    job = await send.enqueue("ada")
    before = await job.refresh()
    with pytest.raises(InvalidArguments):
        await job.update(kwargs={"to": 7})
    with pytest.raises(InvalidOption):
        await job.update(priority=1000)
    with pytest.raises(InvalidOption):
        await job.update(delay=1, run_at=datetime.now(UTC))
    with pytest.raises(PayloadTooLarge):
        await job.update(args=["x" * rota.tasks.max_payload])
    assert await job.refresh() == before
    await hand.take(job)
    with pytest.raises(WrongState, match="processing"):
        await job.update(priority=1)
    with pytest.raises(JobNotFound):
        await rota.job("nobody").update(priority=1)


async def test_two_who_change_different_things_at_once_both_have_their_way(rota: Rota) -> None:
    @rota.task
    def send(to: str) -> None: ...

    job = await send.using(priority=1).enqueue("ada")

    await asyncio.gather(job.update(priority=5), job.update(args=["bob"]), job.update(delay=60))

    record = await job.refresh()
    assert (record.options.priority, record.arguments, record.state) == (5, b'["bob"]', "scheduled")


async def test_locks_say_who_holds_and_who_waits(rota: Rota, hand: Hand) -> None:
    @rota.task(lock="ledger")
    def book() -> None: ...

    first, second = await book.enqueue(), await book.enqueue()
    await hand.take(first)

    (lock,) = (await rota.locks()).locks

    assert (lock.name, lock.holder, lock.waiters) == ("ledger", str(first.ref), (str(second.ref),))
    assert lock.since is not None
    assert (await rota.locks(queue="default", lock="other")).locks == []
    with pytest.raises(InvalidOption):
        await rota.locks(cursor="x")
