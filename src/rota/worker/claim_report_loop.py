"""The claim/report loop: sends the reports of finished attempts and the next claim in one round trip.

Only one round trip is under way at a time. Where jobs are short, a claim also asks for the slots that will be free when
its answer comes: those jobs wait here for a moment, so that no slot waits for a round trip. A report is kept until the
store has answered for it, however long that takes. A claim whose answer got lost is sent again with the same number,
and brings the same jobs.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from rota.core.claim_ahead import jobs_to_claim_ahead
from rota.errors import StoreError
from rota.store.batch_limit_constants import BATCH
from rota.store.claim_replies import ClaimedJob, read_claim_reply
from rota.store.job_store import JobStore
from rota.store.redis.error_replies import SERVER_ERRORS
from rota.store.redis.retrying_client import ScriptCall
from rota.store.report_encoding import Failed, Lost, Report, Returned, read_postponed, read_refusals
from rota.worker.claim_queues import ClaimQueue, ClaimQueues
from rota.worker.dependency_notifier import DependencyNotifier
from rota.worker.dispatcher import Dispatcher
from rota.worker.progress_and_log_sender import ProgressAndLogSender
from rota.worker.report_buffer import ENOUGH_REPORTS, ReportBuffer
from rota.worker.running_jobs import RunningJobs

if TYPE_CHECKING:
    from rota.worker.lost_attempt_middleware_notifier import LostAttemptNotifier

logger = logging.getLogger("rota.worker")

OUTAGE_PAUSE_S: Final = 0.2
#: A queue whose claim the server refused is asked again after this.
REFUSED_PAUSE_S: Final = 1.8
#: A job that was claimed ahead and has had no slot for this long is returned: another worker may have one.
WAIT_FOR_SLOT_S: Final = 0.5
#: While every slot is busy, reports of this long a time share a round trip.
GATHER_S: Final = 0.004
#: The pace is measured over at least this long: else a few jobs that happen to end together would pass for many.
PACE_S: Final = 0.05
#: A node of a cluster that takes longer to answer no longer holds up the queues of the other nodes.
NODE_ANSWERS_S: Final = 0.1
#: A claim that is not urgent waits this long for the report of a pushed job.
REJOIN_S: Final = 0.001


class _SentReports(NamedTuple):
    """The reports that one script call carries."""

    queue: str
    call: ScriptCall
    reports: Sequence[Report]


class ClaimReportLoop:
    """Claims jobs for free slots, and stores the reports of finished attempts."""

    def __init__(
        self,
        store: JobStore,
        queues: ClaimQueues,
        running: RunningJobs,
        reports: ReportBuffer,
        dispatcher: Dispatcher,
        progress: ProgressAndLogSender,
        dependencies: DependencyNotifier,
        *,
        wake_up: asyncio.Event,
        is_burst: bool = False,
        lost_attempts: LostAttemptNotifier | None = None,
    ) -> None:
        self._store = store
        self._queues = queues
        self._running = running
        self._reports = reports
        self._dispatcher = dispatcher
        self._progress = progress
        self._dependencies = dependencies
        self._lost_attempts = lost_attempts
        self._is_burst = is_burst
        #: There is something to do.
        self._wake_up = wake_up
        self._stored = asyncio.Event()
        #: Two moments, and how many jobs had finished by then: the pace is measured from the first of them.
        self._pace_marks = ((0.0, 0), (0.0, 0))
        self._round_trip_s = 0.0
        #: How many jobs may be claimed beyond the free slots.
        self._ahead = 0
        self.is_connected = True
        #: Queue -> the error with which the server refused its last claim; "" for errors that concern the whole server.
        self._errors: dict[str, str] = {}
        #: In a cluster: queues of which a round trip is under way, those of which it failed, and the round trips.
        self._away: set[str] = set()
        self._unreachable: set[str] = set()
        self._background: set[asyncio.Task[None]] = set()
        #: When the server last answered, by the loop's clock.
        self.answered_at = 0.0

    async def run(self) -> None:
        """Runs until cancelled: waits for something to do, and does it."""
        try:
            await self._run()
        finally:
            for call in list(self._background):
                call.cancel()

    async def _run(self) -> None:
        while True:
            await self._wait()
            await self._gather()
            try:
                await self._exchange()
                if not self.is_connected:
                    self.is_connected = True
                    self._errors.pop("", None)
                    logger.info("the server answers again")
            except StoreError as error:
                # Handlers go on. Their reports are kept until the server is back, or accepts this worker again.
                if self.is_connected:
                    logger.warning("%s", error)
                self.is_connected = False
                self._errors[""] = str(error)
                self._wake_up.set()
                await asyncio.sleep(OUTAGE_PAUSE_S)

    @property
    def error(self) -> str:
        """Why claims fail; empty if they do not."""
        return "; ".join(self._errors.values())

    def on_pushed_job(self, call_number: int, job: ClaimedJob) -> None:
        """Takes a job that the store pushed, with the claim that it was given.

        A push that is not expected is answered by a claim: the same claim brings the same job, and no job comes twice.
        """
        queue = self._queues.find(job.queue)
        if queue is None or queue.is_unanswered or call_number != queue.call_number + 1:
            self._queues.wake(job.queue)
            return
        queue.call_number, queue.may_be_pushed = call_number, False
        self._queues.is_idle.clear()
        if self._queues.is_claiming and self._running.busy < self._running.slots:
            self._dispatcher.dispatch(job)
            self._dispatcher.flush()
        else:
            self._return_unstarted(job)
        # The worker waits for a push again only after its next claim. That is not urgent: it can travel with the
        # report of this job.
        queue.may_have_jobs = True
        asyncio.get_running_loop().call_later(REJOIN_S, self._wake_up.set)

    def wake(self) -> None:
        """Starts a round trip now: a slot may have become free."""
        self._wake_up.set()
        self._reports.is_urgent.set()

    def stop_claiming(self) -> None:
        """Returns the jobs that wait for a slot; from now on only reports are sent."""
        self._queues.is_claiming = False
        self._dispatcher.return_waiting()
        self.wake()

    def resume_claiming(self) -> None:
        """Claims jobs again, after `stop_claiming`."""
        self._queues.is_claiming = True
        self._queues.wake()

    async def until_stored(self) -> None:
        """Waits until every report has been stored, no claim is unanswered, and the store can carry none out."""
        while self._reports or self._running.arriving or self._queues.has_open_claim:
            self._stored.clear()
            await self._stored.wait()

    async def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        waiting = self._running.waiting
        if not self._wake_up.is_set():
            until = loop.time() + self._queues.durations.poll_s
            if self._queues.is_claiming:
                until = min(until, self._queues.next_look)
            if waiting and self._queues.is_claiming:
                until = min(until, waiting[0].claimed_at + WAIT_FOR_SLOT_S)
            with suppress(TimeoutError):  # then it is time to poll
                async with asyncio.timeout_at(until):
                    await self._wake_up.wait()
        self._wake_up.clear()
        if waiting and waiting[0].claimed_at + WAIT_FOR_SLOT_S <= time.monotonic():
            self._dispatcher.return_late()

    async def _gather(self) -> None:
        """Lets reports come together, as long as every slot is busy."""
        if self._running.busy >= self._running.slots and self._reports.added < ENOUGH_REPORTS:
            self._reports.is_urgent.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(GATHER_S):
                    await self._reports.is_urgent.wait()
        self._reports.added = 0

    async def _exchange(self) -> None:
        """Sends all reports with the first claim; then further claims while slots are free and jobs are expected."""
        now = asyncio.get_running_loop().time()
        if self._running.task_slots.take_freed():
            self._queues.on_freed_task_slot(now)
        is_first = True
        for queues in self._queues.plan(now):
            is_poll = not queues[0].is_expected_to_have_jobs
            if is_first or is_poll or self._must_be_asked(queues[0], now):
                is_first = False
                await self._ask(queues, now)
        if is_first:
            await self._ask([], now)
        if any(queue.may_have_jobs and self._must_be_asked(queue, now) for queue in self._queues.all):
            # It had to wait for a queue before it, which turned out to have no more.
            self._wake_up.set()
        self._update_idle()

    def _must_be_asked(self, queue: ClaimQueue, now: float) -> bool:
        return self._queues.must_be_asked(queue, now, self._room(), self._ahead)

    async def _ask(self, queues: Sequence[ClaimQueue], now: float) -> None:
        """Makes one round trip. A refusal by the server does not end the loop."""
        try:
            await self._round_trip(queues, now)
        except StoreError as error:
            if concerns_the_server(error):
                raise
            logger.error("%s", error)
            await self._report_one_by_one()
            if len(queues) == 1:  # perhaps the queue is the reason: the others must not wait for it
                self._errors[queues[0].name] = f"queue {queues[0].name}: {error}"
                queues[0].look_at = queues[0].blocked_until = asyncio.get_running_loop().time() + REFUSED_PAUSE_S
            # Several queues are asked again one by one.
            self._wake_up.set()

    async def _round_trip(self, queues: Sequence[ClaimQueue], now: float) -> None:
        """Sends every report, and a claim for each of these queues: one round trip, in a cluster one to each node.

        A node that does not answer must not hold up the others: its round trip goes on in the background.
        """
        reports = self._reports.snapshot()
        most = self._room() // len(queues) if len(queues) > 1 else BATCH
        if not self._store.redis.is_cluster:
            await self._exchange_with_node(queues, reports, now, most)
            return
        claims_of: dict[object, list[ClaimQueue]] = {}
        reports_of: dict[object, dict[str, list[Report]]] = {}
        for queue in queues:
            if not queue.is_away:  # it may have become so since the claims were planned
                claims_of.setdefault(self._node_of(queue.name), []).append(queue)
        for name in reports.keys() - self._away:
            reports_of.setdefault(self._node_of(name), {})[name] = reports[name]
        calls = [
            asyncio.create_task(self._exchange_apart(claims_of.get(node, []), reports_of.get(node, {}), now, most))
            for node in claims_of.keys() | reports_of.keys()
        ]
        if calls:
            self._background.update(calls)
            for call in calls:
                call.add_done_callback(self._background.discard)
            await asyncio.wait(calls, timeout=NODE_ANSWERS_S)

    async def _exchange_apart(
        self, queues: Sequence[ClaimQueue], reports: dict[str, list[Report]], now: float, most: int
    ) -> None:
        """Makes a round trip to one node of a cluster. Its queues take part in no other one until it has ended."""
        names = {*reports, *(queue.name for queue in queues)}
        self._away |= names
        away = [queue for queue in self._queues.all if queue.name in names]
        for queue in away:
            queue.is_away = True
        try:
            await self._exchange_with_node(queues, reports, now, most)
            if self._unreachable & names:
                self._unreachable -= names
                logger.info("the server of queue %s answers again", ", ".join(sorted(names)))
        except StoreError as error:
            if concerns_the_server(error):
                if not names <= self._unreachable:
                    logger.warning("queue %s: %s", ", ".join(sorted(names)), error)
                self._unreachable |= names
            else:
                logger.error("%s", error)
                await self._report_one_by_one(names)
                for queue in queues:
                    self._errors[queue.name] = f"queue {queue.name}: {error}"
                    queue.look_at = queue.blocked_until = asyncio.get_running_loop().time() + REFUSED_PAUSE_S
            await asyncio.sleep(OUTAGE_PAUSE_S)
        finally:
            self._away -= names
            for queue in away:
                queue.is_away = False
            self._wake_up.set()

    def _node_of(self, queue: str) -> object:
        return self._store.redis.node_of(self._store.keys.queue(queue, "meta"))

    async def _exchange_with_node(
        self, queues: Sequence[ClaimQueue], reports: dict[str, list[Report]], now: float, most: int
    ) -> None:
        """Sends these reports, and a claim for each of these queues, for at most `most` jobs each."""
        if reports:
            # All progress and log lines of these attempts have arrived, and are refused once the report is stored.
            # What ends meanwhile waits for the next round trip.
            await self._progress.flush(reports)
        sent = [
            _SentReports(queue, call, part)
            for queue, of_queue in reports.items()
            for call, part in self._store.report_calls(queue, of_queue)
        ]
        claims = self._claim_calls(queues, now, most)
        if not sent and not claims:
            return
        sent_at = time.perf_counter()
        answers = await self._store.redis.run_many([*(one.call for one in sent), *claims])
        self.answered_at = asyncio.get_running_loop().time()
        self._round_trip_s = time.perf_counter() - sent_at
        self._reports.remove(reports)
        for one, answer in zip(sent, answers, strict=False):
            for report in read_postponed(answer, one.reports):
                self._reports.add(one.queue, report)
        jobs = [
            job
            for queue, answer in zip(queues, answers[len(sent) :], strict=True)
            for job in self._read_claim(queue, answer)
        ]
        if reports and self._is_burst:
            failed_in = {one.queue for one in sent if any(map(_may_be_final, one.reports))}
            self._queues.recheck_for_burst(queues, failed_in)
        self._running.arriving += len(jobs)
        if self._reports and not self._is_burst:
            # More attempts have ended: their reports are sent first, so that the server is busy meanwhile.
            asyncio.get_running_loop().call_soon(self._deliver, sent, answers, jobs)
        else:
            self._deliver(sent, answers, jobs)

    def _claim_calls(self, queues: Sequence[ClaimQueue], now: float, most: int) -> list[ScriptCall]:
        """The claims of a round trip. One that was not answered is sent again as it was."""
        if queues:
            self._measure_pace()
        calls: list[ScriptCall] = []
        for queue in queues:
            if not queue.is_unanswered:
                # With no free slot a claim takes nothing, but does what is due, and wakes another worker.
                share = self._queues.share(queue, now, self._room(), self._ahead) if self._queues.is_claiming else 0
                queue.next_claim(min(BATCH, most, share), may_be_pushed=self._may_be_pushed(), now=now)
            calls.append(
                self._store.claim_call(
                    queue.name,
                    queue.limit,
                    call_number=queue.call_number,
                    claim_token=queue.claim_token,
                    next_claim_token=queue.next_claim_token if queue.may_be_pushed else "",
                    lease_ms=self._queues.durations.lease_ms,
                    outage_gap_ms=self._queues.durations.outage_gap_ms,
                    task_room=self._running.task_slots.claim_words(queue.limit, queue.passed_until),
                )
            )
        return calls

    def _read_claim(self, queue: ClaimQueue, answer: list[bytes]) -> list[ClaimedJob]:
        """Passes on what a claim's answer reports; returns its jobs."""
        reply = read_claim_reply(queue.name, queue.claim_token, answer)
        if self._errors:
            self._errors.pop(queue.name, None)
        if reply.has_outbox:
            self._dependencies.wake(queue.name)
        if reply.lost_runs and self._lost_attempts is not None:
            self._lost_attempts.on_reaped(queue.name, reply.lost_runs)
        self._queues.answered(queue, reply, asyncio.get_running_loop().time())
        if queue.may_have_jobs and self._room() > len(reply.jobs):
            self._wake_up.set()
        if queue.given_up == queue.call_number:
            for job in reply.jobs:
                self._return_unstarted(job)
            return []
        return reply.jobs

    def _return_unstarted(self, job: ClaimedJob) -> None:
        self._reports.add(job.queue, Returned(job.run, job.claim, "unstarted"))
        self._wake_up.set()

    def _deliver(self, sent: list[_SentReports], answers: list[list[bytes]], jobs: list[ClaimedJob]) -> None:
        """Acknowledges what has been stored, and dispatches what has been claimed."""
        for (queue, _, reports), answer in zip(sent, answers, strict=False):
            for run, why in read_refusals(answer, reports).items():
                if why == "lease_lost":
                    logger.warning("the report of run %s in queue %s came too late: its lease was lost", run, queue)
            postponed = read_postponed(answer, reports)
            for report in reports:
                if report not in postponed:
                    self._running.acknowledge(queue, report.run, report.claim)
        self._running.arriving -= len(jobs)
        for job in jobs:
            if self._queues.is_claiming:
                self._dispatcher.dispatch(job)
            else:  # the stop was requested while the answer was on its way
                self._return_unstarted(job)
        self._dispatcher.flush()
        self._stored.set()

    async def _report_one_by_one(self, queues: Collection[str] | None = None) -> None:
        """Stores reports singly after the server refused a batch: one bad report must not hold up the others.

        A report that is refused alone is dropped. Its lease runs out then, and the job comes back.
        """
        for queue, reports in self._reports.snapshot().items():
            for report in reports if queues is None or queue in queues else ():
                try:
                    await self._store.report(queue, [report])
                except StoreError as error:
                    if concerns_the_server(error):
                        return
                    logger.error("the report of run %s in queue %s cannot be stored: %s", report.run, queue, error)
                self._reports.remove_one(queue, report)
                self._running.acknowledge(queue, report.run, report.claim)
        self._stored.set()

    def _measure_pace(self) -> None:
        """Updates how many jobs may be claimed ahead, from how many have finished lately."""
        now = (time.perf_counter(), self._running.finished)
        if not self._running.by_run:
            self._pace_marks = (now, now)  # idle time says nothing about the pace
        elif now[0] - self._pace_marks[1][0] >= PACE_S:
            self._pace_marks = (self._pace_marks[1], now)
        since, finished = self._pace_marks[0]
        cycle_s = self._round_trip_s + GATHER_S
        self._ahead = jobs_to_claim_ahead(now[1] - finished, now[0] - since, cycle_s, self._running.slots)

    def _may_be_pushed(self) -> bool:
        """True when the store may push the next job of a queue: there is a slot for each job that may come so."""
        is_allowed = self._queues.is_claiming and not self._is_burst
        jobs = self._queues.pushable
        return is_allowed and self._running.free_slots >= jobs and self._running.task_slots.has_room_for(jobs)

    def _room(self) -> int:
        """How many jobs can be claimed: those that have slots now, or will when the answer comes."""
        return max(0, self._running.free_slots + self._ahead)

    def _update_idle(self) -> None:
        is_idle = (
            not self._running.by_run
            and not self._running.busy
            and not self._running.arriving
            and not self._reports
            and not any(queue.may_have_jobs or queue.is_unanswered for queue in self._queues.all)
        )
        if is_idle:
            self._queues.is_idle.set()
        else:
            self._queues.is_idle.clear()


def _may_be_final(report: Report) -> bool:
    return isinstance(report, Lost | Returned) or (isinstance(report, Failed) and report.next_attempt == "final")


def concerns_the_server(error: StoreError) -> bool:
    """True when the server is away, full, or refuses this worker: no report is the reason, and none is dropped."""
    return isinstance(error, SERVER_ERRORS)
