"""Jobs that are claimed before there is a slot for them, where jobs are short: decision 15."""

from __future__ import annotations

import asyncio
import time
from typing import cast

import pytest

from rota.core.claim_ahead import MIN_AHEAD, jobs_to_claim_ahead
from rota.core.job_record_codec import FIRST_ATTEMPT
from rota.store.claim_replies import ClaimedJob
from rota.store.job_store import JobStore
from rota.store.report_encoding import CancelConfirmed, Completed, Report, Returned
from rota.worker.dispatcher import BURST, Dispatcher
from rota.worker.progress_and_log_sender import ProgressAndLogSender
from rota.worker.report_buffer import ReportBuffer
from rota.worker.runners.pool import Pool, RunnerProcess
from rota.worker.runners.protocol import AppDescription, AttemptEnded, LoopBlocked, StartAttempt
from rota.worker.running_jobs import RunningJobs
from tests.eventually import eventually
from tests.worker.harness import WorkerHarness


class DispatcherDriver:
    """A dispatcher with a few slots and one runner that is no process."""

    def __init__(self, slots: int = 2) -> None:
        self.running = RunningJobs(slots)
        self.pool = Pool("app", loops=1, measures_lag=False, max_jobs=None, max_rss_mb=None)
        self.runner = RunnerProcess("loop")
        self.runner.is_ready = True
        self.pool.runners.append(self.runner)
        self.buffer = ReportBuffer(self.running, asyncio.Event())
        app = AppDescription(tasks={"add": {"run_in": "thread"}})
        progress = ProgressAndLogSender(cast("JobStore", None))  # not used: no handler reports progress
        self.dispatcher = Dispatcher(app, self.running, self.pool, self.buffer, progress)

    def dispatch(self, *runs: str) -> None:
        """Dispatches these runs, as after a claim."""
        for run in runs:
            self.dispatcher.dispatch(ClaimedJob("q", run, "1.a", FIRST_ATTEMPT, b"=x 1\n\nadd\n[1,2]"))

    @property
    def started(self) -> list[str]:
        """The runs that were sent to the runner, in order."""
        return [message.run for message in self.runner._outbox if isinstance(message, StartAttempt)]

    @property
    def reports(self) -> list[Report]:
        """The reports so far."""
        return self.buffer.snapshot().get("q", [])

    def complete(self, *runs: str) -> None:
        """Completes these runs, as a message of the runner does."""
        jobs = [self.running.by_run["q", run] for run in runs]
        self.dispatcher.on_messages(
            self.runner, [AttemptEnded(job.attempt_id, Completed(job.job.run, "1.a", "1:1", b"")) for job in jobs]
        )


async def test_a_job_that_was_claimed_ahead_starts_when_a_slot_is_free_and_in_its_turn() -> None:
    driver = DispatcherDriver()

    driver.dispatch("r1", "r2", "r3", "r4")
    assert (driver.started, driver.running.busy) == (["r1", "r2"], 2)

    driver.complete("r2")
    assert (driver.started, driver.running.busy) == (["r1", "r2", "r3"], 2)
    assert driver.running.leases() == {"q": [(run, "1.a") for run in ("r1", "r2", "r3", "r4")]}, "all have leases"


@pytest.mark.parametrize(("runs_again", "reason"), [(False, "retired"), (True, "timeout")])
async def test_a_job_is_charged_a_timeout_unless_its_loop_is_blocked(runs_again: bool, reason: str) -> None:
    driver = DispatcherDriver()
    driver.dispatch("r1", "r2")
    culprit, neighbour = (driver.running.by_run["q", run] for run in ("r1", "r2"))
    driver.dispatcher.on_messages(driver.runner, [LoopBlocked(culprit.attempt_id)])
    if runs_again:
        driver.dispatcher.on_messages(driver.runner, [LoopBlocked(None)])

    driver.dispatcher._on_deadline(neighbour, "timeout")

    assert neighbour.stop_reason == reason


@pytest.mark.parametrize(("took_s", "sent"), [(0.01, [BURST, 2 * BURST]), (0.0, [2 * BURST])])
async def test_handlers_that_took_a_while_and_ended_in_one_burst_are_followed_by_smaller_ones(
    took_s: float, sent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that took no time are followed by as many at once: that costs least."""
    driver = DispatcherDriver(2 * BURST)
    driver.dispatch(*(f"r{number}" for number in range(4 * BURST)))
    ended = list(driver.runner.jobs.values())
    for job in ended:
        job.started_at = time.monotonic() - took_s
    followers: list[int] = []
    monkeypatch.setattr(driver.pool, "flush", lambda: followers.append(len(driver.started) - 2 * BURST))

    driver.complete(*(job.job.run for job in ended))

    assert followers[: len(sent)] == sent
    assert driver.running.busy == 2 * BURST, "no more than there are slots"


async def test_what_waits_for_a_slot_is_given_back_unstarted_and_the_rest_goes_on() -> None:
    driver = DispatcherDriver()
    driver.dispatch("r1", "r2", "r3", "r4")

    driver.dispatcher.return_waiting()
    driver.complete("r1")

    assert driver.reports == [
        Returned("r3", "1.a", "unstarted"),
        Returned("r4", "1.a", "unstarted"),
        Completed("r1", "1.a", "1:1", b""),
    ]
    assert (driver.started, driver.running.busy) == (["r1", "r2"], 1)


async def test_what_waits_because_a_runner_is_renewed_is_not_given_back() -> None:
    driver = DispatcherDriver()
    driver.dispatch("r1", "r2", "r3")
    driver.pool.runners.append(RunnerProcess("loop"))
    claimed_at = driver.running.waiting[0].claimed_at

    driver.dispatcher.return_late()

    assert driver.reports == []
    assert driver.running.waiting[0].claimed_at > claimed_at, "its time begins anew"


@pytest.mark.parametrize(("reason", "reports"), [("cancelled", [CancelConfirmed("r3", "1.a")]), ("lost", [])])
async def test_a_job_that_is_to_stop_while_it_waits_for_a_slot_never_starts(reason: str, reports: list[Report]) -> None:
    driver = DispatcherDriver()
    driver.dispatch("r1", "r2", "r3")

    driver.dispatcher.stop_claim("q", "r3", "1.a", reason)
    driver.complete("r1")

    assert driver.reports[: len(reports)] == reports
    assert driver.started == ["r1", "r2"]
    assert not driver.running.waiting


async def test_a_run_that_comes_back_while_it_waits_for_a_slot_waits_once() -> None:
    driver = DispatcherDriver()
    driver.dispatch("r1", "r2", "r3")

    driver.dispatcher.dispatch(ClaimedJob("q", "r3", "2.b", FIRST_ATTEMPT, b"=x 1\n\nadd\n[1,2]"))

    assert [job.job.claim for job in driver.running.waiting] == ["2.b"]
    assert driver.reports == []


@pytest.mark.parametrize(
    ("finished", "elapsed_s", "cycle_s", "slots", "wanted"),
    [
        (0, 10.0, 0.002, 100, 0),
        (100, 10.0, 0.002, 100, 0),  # handlers of ten seconds
        (10, 0.001, 0.0015, 100, 60),  # of ten milliseconds
        (200, 0.005, 0.004, 1_000, 640),  # of none at all
        (200, 0.005, 0.004, 200, 200),
        (20, 0.001, 0.010, 1, MIN_AHEAD),
    ],
)
def test_as_many_are_claimed_ahead_as_will_land_meanwhile(
    finished: int, elapsed_s: float, cycle_s: float, slots: int, wanted: int
) -> None:
    assert jobs_to_claim_ahead(finished, elapsed_s, cycle_s, slots) == wanted


async def test_jobs_claimed_ahead_of_long_ones_are_soon_anybodys_again(harness: WorkerHarness) -> None:
    """The worker goes by the short jobs that it has seen, and is wrong: nothing is stuck with it."""
    await harness.rota.queue().pause()
    await harness.start(concurrency=2)
    await harness.enqueue_many(harness.program.record_run.call("ran", str(number)) for number in range(200))
    long = await harness.enqueue_many(harness.program.wait.call(f"job-{number}") for number in range(30))

    await harness.rota.queue().resume()

    async def has_let_go() -> bool:
        counts = await harness.rota.queue().counts()
        return (counts["processing"], counts["pending"]) == (2, 28)

    await eventually(has_let_go, 15)
    for number in range(30):
        harness.allow(f"job-{number}")
    for job in long:
        await job.result(20)
    records = [await job.refresh() for job in long]
    assert {record.counts.failures + record.counts.stalls for record in records} == {0}
