"""A worker that waits leaves its next claim, and a job that comes is handed over with the wake-up."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

import pytest

from rota.store.claim_replies import ClaimedJob, ClaimReply, read_claim_reply, read_push
from rota.store.job_store import LEASE_MS
from tests.store.driver import QUEUE, Driver, Inbox, new_job

WAKE = f"wake {QUEUE}"


class Waiting:
    """A worker that leaves its next claim, as the desk does."""

    def __init__(self, driver: Driver, name: str, inbox: Inbox) -> None:
        self.store = driver.worker(name).store
        self.inbox = inbox
        self.call = 0

    async def claim(self, limit: int = 1) -> ClaimReply:
        """The claim after the last one."""
        self.call += 1
        return await self.claim_again(limit)

    async def claim_again(self, limit: int = 1) -> ClaimReply:
        """The last one, sent again."""
        token, next_token = f"t{self.call}", f"t{self.call + 1}"
        call = self.store.claim_call(
            QUEUE, limit, call_number=self.call, claim_token=token, next_claim_token=next_token
        )
        return read_claim_reply(QUEUE, token, await self.store.redis.run(*call))

    def pushed(self) -> tuple[int, ClaimedJob]:
        """The number of the claim that was carried out, and the job that it brought."""
        (message,) = self.inbox.told()
        return read_push(message.encode())


@contextlib.contextmanager
def _waiting(driver: Driver, name: str = "w1") -> Generator[Waiting]:
    with driver.inbox(name) as inbox:
        yield Waiting(driver, name, inbox)


async def test_a_job_is_handed_to_a_worker_that_waits_along_with_its_wake_up(driver: Driver) -> None:
    with _waiting(driver) as waiting:
        await waiting.claim()

        ref = await driver.one()

        call, job = waiting.pushed()
        assert (call, job.queue, job.run) == (2, QUEUE, ref.run)
        assert job.record == driver.redis.hget(driver.key("jobs"), job.run)
        assert job.claim.endswith(".t2")
    record = (await driver.read(ref)).record
    assert (record.state, record.worker, record.claim, record.counts.attempt) == ("processing", "w1", job.claim, 1)
    assert driver.index("processing") == {ref.run: (record.claimed_at or 0) + LEASE_MS}
    assert driver.index("idle") == driver.index("pending") == {}
    assert await driver.worker("w1").complete(job) == "ok"


async def test_a_worker_that_lost_the_reply_asks_again_and_gets_the_same(driver: Driver) -> None:
    """A push is a hint: this one got lost. And an answer may get lost as well."""
    with _waiting(driver) as waiting:
        await waiting.claim()
        await driver.one()
        _, job = waiting.pushed()

        assert (await waiting.claim()).jobs == [job]
        assert (await waiting.claim_again()).jobs == [job]
        assert (await waiting.claim()).jobs == []


async def test_a_late_copy_of_the_claim_before_takes_and_leaves_nothing(driver: Driver) -> None:
    with _waiting(driver) as waiting:
        await waiting.claim()
        await driver.one()
        await driver.enqueue()

        assert (await waiting.claim_again()).jobs == []

        assert len(driver.index("pending")) == len(driver.index("processing")) == 1
        assert driver.index("idle") == {}


async def test_the_next_claim_takes_the_place_of_what_was_left(driver: Driver) -> None:
    with _waiting(driver) as waiting:
        await waiting.claim()
        await waiting.claim()
        assert len(driver.index("idle")) == 1

        await waiting.claim(0)  # no slot is free

        assert driver.index("idle") == {}


async def test_what_is_long_is_asked_for(driver: Driver) -> None:
    with _waiting(driver) as waiting:
        await waiting.claim()

        await driver.enqueue(new_job(arguments=["x" * 70_000]))

        assert waiting.inbox.told() == [WAKE]
        (job,) = (await waiting.claim()).jobs
        assert len(job.record) > 70_000


@pytest.mark.parametrize("case", ["paused", "others", "expiring", "many"])
async def test_what_is_no_simple_case_is_left_to_a_claim(driver: Driver, case: str) -> None:
    with _waiting(driver) as waiting:
        if case == "others":
            await driver.enqueue()
        if case == "paused":
            await driver.client.pause_queue(QUEUE, wanted="paused")
        driver.redis.zadd(driver.key("idle"), {f"w1 7 t7 {LEASE_MS}": driver.now()})

        await driver.enqueue(*[new_job(expiry="+1000" if case == "expiring" else "")] * (2 if case == "many" else 1))

        assert waiting.inbox.told() == [WAKE]
        assert driver.index("processing") == {}


async def test_a_worker_that_has_not_looked_for_long_gets_no_job_but_is_woken(driver: Driver) -> None:
    """It may be frozen, and would keep the job from others for a whole lease."""
    with _waiting(driver) as waiting:
        await waiting.claim()
        driver.advance(3_000)

        await driver.enqueue()

        assert waiting.inbox.told() == [WAKE]
        assert driver.index("processing") == {}


async def test_a_worker_that_no_longer_listens_is_passed_over(driver: Driver) -> None:
    with _waiting(driver, "dead") as dead:
        await dead.claim()
        driver.advance(10)
    with _waiting(driver, "alive") as alive:
        await alive.claim()

        await driver.enqueue()

        assert alive.inbox.told() == [WAKE]
        assert driver.index("processing") == {}
