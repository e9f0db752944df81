"""Carries out traces of `claim_model` on the real scripts, and compares what each step does."""

from __future__ import annotations

import random
import secrets
from collections.abc import Coroutine, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from rota.core.job_options import Keep
from rota.core.state_transitions import JobState
from rota.store.job_store import LEASE_MS, JobStore
from rota.store.keys import Keys
from rota.store.report_encoding import Completed, Report, Returned
from tests.leaks import delete_keys
from tests.properties.claim_model import CLAIM_LIMIT, Action, Step, StoredJob
from tests.properties.state_machine import EPOCH_MS, FROZEN, Bench
from tests.store.driver import QUEUE, new_job

T = TypeVar("T")
TICK_MS: Final = 1_500
#: Share of the steps after which a late copy of an earlier call arrives.
LATE_SHARE: Final = 0.3
RULE: Final = Keep().retention(JobState.COMPLETED)


class RealClaim(NamedTuple):
    """A job that a worker believes to own, with the claim that brought it."""

    job: int
    fence: int
    claim: str


class ClaimReplay:
    """A queue on a real server, and the workers of the model."""

    def __init__(self, bench: Bench, workers: int, chance: random.Random) -> None:
        self._bench = bench
        self._chance = chance
        self._driver = bench.driver
        self._driver.keys = Keys(f"p{secrets.token_hex(5)}")
        self._stores = [self._store(f"w{number}") for number in range(workers)]
        self._client, self._sweeper = self._store("client"), self._store("sweeper")
        self._calls = [0] * workers
        self._sweeps = 0
        self._held: list[list[RealClaim]] = [[] for _ in range(workers)]
        self._runs: list[str] = []
        #: Job -> the claim that last leased it; [attempts, stalls, handbacks] so far; reports that were answered.
        self._claims: dict[int, tuple[int, str]] = {}
        self._counts: list[list[int]] = []
        self._answered: list[tuple[int, Report]] = []
        self._now = EPOCH_MS
        self._pass_time(0)

    def run(self, trace: Sequence[Step]) -> None:
        """Carries out a trace. Raises AssertionError with what was done so far."""
        done: list[Action] = []
        before: tuple[StoredJob, ...] = ()
        try:
            for step in trace:
                done.append(step.action)
                self._take(step, before)
                self._compare(step)
                if self._chance.random() < LATE_SHARE:
                    self._send_late_copy()
                    self._compare(step)
                before = step.state.jobs
            self._driver.check()
        except AssertionError as error:
            error.add_note("after\n  " + "\n  ".join(map(str, done)))
            raise
        finally:
            delete_keys(self._driver.redis, self._driver.keys.namespace)

    def _take(self, step: Step, before: Sequence[StoredJob]) -> None:
        action, worker = step.action, step.action.worker
        match action.name:
            case "enqueue":
                (made,) = self._do(self._client.enqueue(QUEUE, [new_job()]), is_repeated=True)
                self._runs.append(made.run)
                self._counts.append([0, 0, 0])
            case "sweep":
                self._sweeps += 1
                self._do(self._sweeper.claim(QUEUE, 0, call_number=self._sweeps, claim_token="sweep"))
            case "lose claim":
                self._calls[worker] += 1
            case "claim" | "claim again":
                self._claim(step)
            case "report":
                self._report(step)
            case "heartbeat" | "give up":
                self._beat(step)
            case _:
                assert action.name == "expire"
                self._expire(worker, before)
        for charge in step.charges:
            counts = self._counts[charge.job]
            self._counts[charge.job] = [a + b for a, b in zip(counts, charge[1:], strict=True)]

    def _claim(self, step: Step) -> None:
        action, worker = step.action, step.action.worker
        if action.name == "claim":
            self._calls[worker] += 1
        number = self._calls[worker]
        reply = self._do(
            self._stores[worker].claim(QUEUE, CLAIM_LIMIT, call_number=number, claim_token=f"{worker}-{number}")
        )
        brought = [RealClaim(self._runs.index(job.run), int(job.claim.split(".")[0]), job.claim) for job in reply.jobs]
        assert tuple(sorted(one.job for one in brought)) == step.reply, f"{action}: {brought}, not {step.reply}"
        for one in brought:
            self._claims[one.job] = (worker, one.claim)
        if not action.is_lost:
            self._held[worker] = sorted({*self._held[worker], *brought})

    def _report(self, step: Step) -> None:
        action, worker = step.action, step.action.worker
        held = self._held[worker][action.place]
        assert held.job == action.job
        run = self._runs[held.job]
        report: Report
        if action.verb == "complete":
            report = Completed(run, held.claim, RULE, b"")
        else:
            report = Returned(run, held.claim, "unstarted" if action.verb == "unstarted" else "started")
        answer = self._do(self._stores[worker].report(QUEUE, [report])).get(run, "ok")
        assert answer == step.reply, f"{action}: {answer}, not {step.reply}"
        if not action.is_lost:
            self._held[worker].remove(held)
            self._answered.append((worker, report))

    def _beat(self, step: Step) -> None:
        worker = step.action.worker
        held = self._held[worker]
        given_up = self._calls[worker] if step.action.name == "give up" else None
        told = self._do(
            self._stores[worker].heartbeat(QUEUE, [(self._runs[one.job], one.claim) for one in held], given_up=given_up)
        )
        assert {self._runs.index(run) for run in told} == step.reply, f"{step.action}: {told}, not {step.reply}"
        # Of two claims of one job the earlier one is lost.
        kept = [
            len([one for one in step.state.workers[worker].held if one.job == job]) for job in range(len(self._runs))
        ]
        left: list[RealClaim] = []
        for job, count in enumerate(kept):
            of_job = [one for one in held if one.job == job]
            left += of_job[len(of_job) - count :] if count else []
        self._held[worker] = sorted(left)

    def _expire(self, worker: int, before: Sequence[StoredJob]) -> None:
        """A whole lease passes, in which the other owners renew theirs."""
        others = [
            (job.owner, self._runs[number], self._claims[number][1])
            for number, job in enumerate(before)
            if job.state == "processing" and job.owner != worker and not job.is_expired
        ]
        for _ in range(LEASE_MS // TICK_MS):
            self._pass_time(TICK_MS)
            self._do(self._sweeper.heartbeat(QUEUE, []))
            for owner, run, claim in others:
                self._do(self._stores[owner].heartbeat(QUEUE, [(run, claim)]))

    def _send_late_copy(self) -> None:
        """A copy of a call that was answered long ago arrives, and changes nothing."""
        worker = self._chance.randrange(len(self._stores))
        if self._calls[worker] > 1:
            number = self._calls[worker] - 1
            late = self._stores[worker].claim(QUEUE, CLAIM_LIMIT, call_number=number, claim_token=f"{worker}-{number}")
            if self._has_claimed_since(worker):
                assert self._do(late).jobs == [], "a late copy of a claim brought jobs"
            else:
                late.close()
        if self._answered:
            worker, report = self._chance.choice(self._answered)
            told = self._do(self._stores[worker].report(QUEUE, [report]))
            assert told.get(report.run) in ("already", "lease_lost"), told

    def _has_claimed_since(self, worker: int) -> bool:
        """True when the store remembers the worker's latest claim: then it knows earlier ones for late."""
        key = self._driver.keys.queue(QUEUE, "last_reply", f"w{worker}:claim")
        known = self._driver.redis.get(key)
        return isinstance(known, bytes) and int(known.split(b":")[0]) == self._calls[worker]

    def _compare(self, step: Step) -> None:
        """The store is in the state that the model says."""
        key = self._driver.key
        with self._driver.redis.pipeline(transaction=False) as pipe:
            pipe.zrange(key("pending"), 0, -1)
            pipe.zrange(key("processing"), 0, -1, withscores=True)
            pipe.zrange(key("completed"), 0, -1)
            pipe.hgetall(key("runs"))
            pending, processing, completed, records = pipe.execute()
        leases = {run.decode(): deadline for run, deadline in processing}
        for number, job in enumerate(step.state.jobs[: len(self._runs)]):
            run = self._runs[number]
            where = {
                "pending": run.encode() in pending,
                "processing": run in leases,
                "completed": run.encode() in completed,
            }
            assert [state for state, is_there in where.items() if is_there] == [job.state], f"job {number}: {where}"
            if job.state == "processing":
                assert (leases[run] <= self._now) == job.is_expired, f"job {number}: lease"
            record = records.get(run.encode())
            words = record.decode().split(" ") if record else ["waiting", "-", "-", "-", "-", *"00000"]
            counts = [int(words[5]), int(words[7]), int(words[9])]
            assert counts == self._counts[number], f"job {number}: {counts}, not {self._counts[number]}"
            if job.state == "processing":
                assert words[1] == self._claims[number][1], f"job {number}: {words[1]}"

    def _store(self, participant: str) -> JobStore:
        return JobStore(self._bench.redis_client, self._driver.keys, participant)

    def _pass_time(self, ms: int) -> None:
        self._now += ms
        self._driver.redis.set(FROZEN, self._now, px=600_000)

    def _do(self, call: Coroutine[Any, Any, T], *, is_repeated: bool = False) -> T:
        self._bench.redis_client.repeats = is_repeated
        return self._bench.loop.run_until_complete(call)
