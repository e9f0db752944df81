"""Where jobs come in and reports go out: one loop, one round trip at a time.

What has ended since the last round trip is reported together, and the claim for the slots that became free travels
with it. Where jobs are short, it is also for the slots that will be free when its answer comes: those jobs wait here
for a moment, so that no slot waits for a round trip. A report is kept until the store has answered for it, however
long that takes; a claim whose answer got lost is asked again with the same number, and brings the same jobs.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from rota.core.concurrency import ahead
from rota.core.job import base_of
from rota.errors import StoreDenied, StoreError, StoreFull, StoreUnavailable, StoreUnsupported
from rota.store.bounds import BATCH, LEASE_MS
from rota.store.keys import failures_of
from rota.store.reports import Claimed, Failed, Lost, Report, Returned, read_claims, read_refusals
from rota.store.store import Store
from rota.worker.config import WorkerConfig
from rota.worker.flights import Flights

logger = logging.getLogger("rota.worker")

#: Wake-ups are hints: an idle worker looks for itself this often. Each look is a tick, and 2.2 s without one would
#: count as an outage (`tick.lua`).
LOOK_AGAIN_S: Final = 1.8
#: A full one is not on the list of those to be woken when something will fall due, so it looks twice as often; so does
#: one that may have to take over a lease, as then a tick that comes late would put that off by a whole lease.
LOOK_AGAIN_BUSY_S: Final = 0.9
OUTAGE_PAUSE_S: Final = 0.2
#: A job that was claimed ahead and has had no slot for this long is given back: another worker may have one.
WAIT_FOR_SLOT_S: Final = 0.5
#: While every slot is busy nothing is urgent: what ends within this time is reported together, up to so many.
GATHER_S: Final = 0.004
GATHER_MOST: Final = 60
#: Of many queues by weight, a claim of one is for at least so many jobs, where they are short.
WORTHWHILE: Final = 30
#: The pace is taken over this long at least, or a few that happen to end together would pass for many.
PACE_S: Final = 0.05
#: A claim that is not urgent waits this long for the report of the job that came with a push.
REJOIN_S: Final = 0.001


@dataclass(slots=True, eq=False)
class Line:
    """One queue that this worker serves."""

    queue: str
    weight: int
    #: The shards of one queue are of one rank, and so are those of its failures.
    rank: int = 0
    #: There may be work: unknown, or known from the last look.
    is_hopeful: bool = True
    #: A wake-up came and has not been used: with no slot free it must be passed on.
    is_woken: bool = False
    look_at: float = 0.0
    #: The server could not carry a claim out: it is not asked before.
    shunned_until: float = 0.0
    call: int = 0
    token: str = field(default_factory=lambda: _token())
    #: The token of the claim after this one.
    next_token: str = field(default_factory=lambda: _token())
    #: That claim may have been left with the store, for the next job that comes: it must be asked for, or heard of.
    has_left: bool = False
    #: Took part in a claim whose answer has not come: ask the same again.
    is_unanswered: bool = False
    asked: int = 0
    asked_at: float = -math.inf
    #: The line of its failure handlers, if that is a quiet one.
    failures: Line | None = None
    #: It is only looked at when something is due there, as the claims of its queue say.
    is_quiet: bool = False


class Desk:
    """Claims for free slots, and reports what has ended."""

    def __init__(
        self,
        store: Store,
        config: WorkerConfig,
        flights: Flights,
        *,
        slots: Callable[[], int],
        take: Callable[[Claimed], None],
        send_off: Callable[[], None],
        give_back: Callable[[], None],
        give_back_late: Callable[[], None],
        hear_news: Callable[[str], None],
        hear_vanished: Callable[[str, Sequence[str]], None],
        say_first: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self._flights = flights
        self._slots = slots
        self._take = take
        self._send_off = send_off
        self._give_back = give_back
        self._give_back_late = give_back_late
        self._hear_news = hear_news
        self._hear_vanished = hear_vanished
        self._say_first = say_first
        self._is_burst = config.burst
        self._weighted = bool(config.weights)
        self.lines = _lines(config)
        self._line_of = {line.queue: line for line in self.lines}
        self._place_of = {line.queue: place for place, line in enumerate(self.lines)}
        #: As many jobs may come at once with pushes.
        self._callers = sum(not line.is_quiet for line in self.lines)
        self._has_shards = any("~" in line.queue for line in self.lines)
        self._reports: dict[str, list[Report]] = {}
        self._something = asyncio.Event()
        #: How many were reported since the last round trip began; and that these are enough for one, or it is urgent.
        self._gathered = 0
        self._enough = asyncio.Event()
        self._is_claiming = True
        self._stored = asyncio.Event()
        #: Two moments, and what had landed by then: the pace is that since the first of them.
        self._marks = ((0.0, 0), (0.0, 0))
        #: How long the last round trip took.
        self._trip_s = 0.0
        #: Claimed beyond the free slots, at most.
        self._ahead = 0
        #: Claimed, and not yet handed out.
        self._arriving = 0
        self.is_idle = asyncio.Event()
        self.is_connected = True
        #: When the server last answered; by the loop's clock.
        self.answered_at = 0.0

    def report(self, queue: str, report: Report) -> None:
        """Something has ended: it is told to the store with the next round trip."""
        self._reports.setdefault(queue, []).append(report)
        self._gathered += 1
        self._something.set()
        if self._gathered >= GATHER_MOST or not self._flights.waiting:  # then a slot stands empty
            self._enough.set()

    def wake(self, queue: str | None = None) -> None:
        """There may be work: in one queue, or, when anything may have been missed, in all."""
        for line in self.lines:
            if line.queue == queue or (queue is None and not line.is_quiet):
                line.is_hopeful = line.is_woken = True
                self.is_idle.clear()
        self._something.set()

    def receive(self, call: int, job: Claimed) -> None:
        """The claim that was left with the store has been carried out, and the job came with the push.

        One that is not expected is asked for: the same claim, sent by us, brings the same job, and no job comes twice.
        """
        line = self._line_of.get(job.queue)
        if line is None or line.is_unanswered or call != line.call + 1:
            self.wake(job.queue)
            return
        line.call, line.has_left = call, False
        self.is_idle.clear()
        if self._is_claiming and self._flights.busy < self._slots():
            self._take(job)
            self._send_off()
        else:
            self.report(job.queue, Returned(job.run, job.claim, "unstarted"))
        # It no longer waits there until it asks again. That is not urgent, and may go along with the job's report.
        line.is_hopeful = True
        asyncio.get_running_loop().call_later(REJOIN_S, self._something.set)

    def nudge(self) -> None:
        """A slot may have become free."""
        self._something.set()
        self._enough.set()

    def stop_claiming(self) -> None:
        """From now on it only reports. What has no slot yet is given back."""
        self._is_claiming = False
        self._give_back()
        self._something.set()
        self._enough.set()

    @property
    def has_backlog(self) -> bool:
        """True when the last look left work behind."""
        return any(line.is_hopeful for line in self.lines)

    async def until_settled(self) -> None:
        """Until every report has been stored, no claim is unanswered, and none is left with the store."""
        while self._reports or self._arriving or any(line.is_unanswered or line.has_left for line in self.lines):
            self._stored.clear()
            await self._stored.wait()

    async def run(self) -> None:
        """For ever: waits for something to do, and does it."""
        while True:
            await self._wait()
            await self._gather()
            try:
                await self._exchange()
                if not self.is_connected:
                    self.is_connected = True
                    logger.info("the server answers again")
            except StoreError as error:
                # Handlers go on; what they bring is kept and reported when the server is back, or lets us in again.
                if self.is_connected:
                    logger.warning("%s", error)
                self.is_connected = False
                self._something.set()
                await asyncio.sleep(OUTAGE_PAUSE_S)

    async def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._something.is_set():
            until = self._look_at(loop.time())
            try:
                async with asyncio.timeout_at(until):
                    await self._something.wait()
            except TimeoutError:
                pass  # time to look
        self._something.clear()
        waiting = self._flights.waiting
        if waiting and waiting[0].claimed_at + WAIT_FOR_SLOT_S <= time.monotonic():
            self._give_back_late()

    async def _gather(self) -> None:
        """Lets reports come together, as long as no slot waits for a job."""
        if self._flights.busy >= self._slots() and self._gathered < GATHER_MOST:
            self._enough.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(GATHER_S):
                    await self._enough.wait()
        self._gathered = 0

    def _look_at(self, now: float) -> float:
        """When to look, if nothing happens before."""
        if not self._is_claiming:
            return now + LOOK_AGAIN_S
        moments = [line.look_at for line in self.lines]
        if self._flights.waiting:
            moments.append(self._flights.waiting[0].claimed_at + WAIT_FOR_SLOT_S)
        return min(moments)

    async def _exchange(self) -> None:
        """One round trip for all reports and the first claim; more while slots are free and queues hopeful."""
        now = asyncio.get_running_loop().time()
        asking: list[Line] = []
        looking: list[Line] = []
        for line in self.lines:
            if self._may_want(line, now):
                (asking if line.is_hopeful or line.is_woken or line.is_unanswered else looking).append(line)
        is_first = True
        for line in self._ordered(asking):
            if is_first or self._wants(line, now):
                is_first = False
                await self._ask([line])
        # Where nothing is expected it is looked all the same: in many queues together.
        if looking or is_first:
            await self._ask(looking)
        if any(line.is_hopeful and self._wants(line, now) for line in self.lines):
            # It had to wait for a queue before it, which turned out to have no more.
            self._something.set()
        self._tell_idle()

    async def _ask(self, lines: Sequence[Line]) -> None:
        """One round trip. What the server refuses is no reason to stop."""
        try:
            await self._round_trip(lines)
        except StoreError as error:
            if _is_about_the_server(error):
                raise
            logger.error("%s", error)
            await self._report_one_by_one()
            if len(lines) == 1:  # perhaps it is the queue: then the others must not wait for it
                lines[0].look_at = lines[0].shunned_until = asyncio.get_running_loop().time() + LOOK_AGAIN_S
            # Of several each is asked again, alone.
            self._something.set()

    def _may_want(self, line: Line, now: float) -> bool:
        """True when there is a reason to ask this line."""
        if line.shunned_until > now:
            return False
        if not self._is_claiming:
            return line.is_unanswered or line.has_left  # takes back what it left
        return line.is_hopeful or line.is_woken or line.look_at <= now or line.is_unanswered

    def _wants(self, line: Line, now: float) -> bool:
        """True when this line is to be asked now. Full slots only pass wake-ups on and see to what is due."""
        if not self._may_want(line, now):
            return False
        is_urgent = line.is_unanswered or line.is_woken or line.look_at <= now or not self._is_claiming
        return is_urgent or self._share(line) > 0

    async def _round_trip(self, lines: Sequence[Line]) -> None:
        reports = {queue: list(of_queue) for queue, of_queue in self._reports.items()}
        if reports:
            # Of these attempts everything has been heard; what ends meanwhile has to wait for the next round trip.
            await self._say_first()
        calls = [
            (queue, call, part) for queue, of in reports.items() for call, part in self._store.report_calls(queue, of)
        ]
        requests = [call for _, call, _ in calls]
        if lines:
            self._reckon()
        for line in lines:
            self._prepare(line, most=self._room() // len(lines) if len(lines) > 1 else BATCH)
            next_token = line.next_token if line.has_left else ""
            requests.append(
                self._store.claim_call(line.queue, line.asked, call=line.call, token=line.token, next_token=next_token)
            )
        if not requests:
            return
        sent_at = time.perf_counter()
        answers = await self._store.gateway.run_many(requests)
        self.answered_at = asyncio.get_running_loop().time()
        self._trip_s = time.perf_counter() - sent_at
        for queue, of_queue in reports.items():
            kept = self._reports[queue][len(of_queue) :]
            if kept:
                self._reports[queue] = kept
            else:
                del self._reports[queue]
        if reports and self._is_burst:
            # What has ended may have enqueued more, and the wake-up for it may still be on its way: nothing is left to
            # do only when a claim that was sent after the report has brought nothing.
            for other in self.lines:
                other.is_hopeful = other.is_hopeful or other not in lines
            self._something.set()
        jobs = [
            job
            for line, answer in zip(lines, answers[len(calls) :], strict=True)
            for job in self._receive(line, answer)
        ]
        if self._is_burst:
            self._look_for_failures({queue for queue, _, part in calls if any(map(_may_be_final, part))})
        parts = [(queue, part, answer) for (queue, _, part), answer in zip(calls, answers, strict=False)]
        self._arriving += len(jobs)
        if self._reports and not self._is_burst:
            # More has ended: that leaves first, so that the server has something to do meanwhile.
            asyncio.get_running_loop().call_soon(self._hand_out, parts, jobs)
        else:
            self._hand_out(parts, jobs)

    def _prepare(self, line: Line, most: int) -> None:
        """The next claim of a line; one that was not answered is asked again as it was."""
        if line.is_unanswered:
            return
        # With no slot free it takes nothing, but what is due is done, and another worker is woken.
        line.asked = min(BATCH, most, self._share(line)) if self._is_claiming else 0
        line.call += 1
        line.token, line.next_token = line.next_token, _token()
        line.has_left = self._may_leave()
        line.is_unanswered = True
        line.is_hopeful = line.is_woken = False
        line.asked_at = asyncio.get_running_loop().time()

    def _hand_out(self, parts: list[tuple[str, Sequence[Report], list[bytes]]], jobs: list[Claimed]) -> None:
        """Settles what has been stored, and takes what has been claimed."""
        for queue, part, answer in parts:
            for run, why in read_refusals(answer, part).items():
                if why == "lease_lost":
                    logger.warning("the report of run %s in queue %s came too late: its lease was lost", run, queue)
            for report in part:
                self._flights.settle(queue, report.run, report.claim)
        self._arriving -= len(jobs)
        for job in jobs:
            if self._is_claiming:
                self._take(job)
            else:  # the worker was told to stop while the answer was on its way
                self.report(job.queue, Returned(job.run, job.claim, "unstarted"))
        self._send_off()
        self._stored.set()

    async def _report_one_by_one(self) -> None:
        """The server refused a batch: one bad report must not hold up the others. What it refuses alone is given up.

        Its lease runs out then, and the job comes back.
        """
        for queue, of_queue in list(self._reports.items()):
            for report in list(of_queue):
                try:
                    await self._store.report(queue, [report])
                except StoreError as error:
                    if _is_about_the_server(error):
                        return
                    logger.error("the report of run %s in queue %s cannot be stored: %s", report.run, queue, error)
                of_queue.remove(report)
                self._flights.settle(queue, report.run, report.claim)
            if not of_queue:
                del self._reports[queue]
        self._stored.set()

    def _receive(self, line: Line, answer: list[bytes]) -> list[Claimed]:
        """Learns from the answer when to ask that line again; the jobs that it brought."""
        line.is_unanswered = False
        claims = read_claims(line.queue, line.token, answer)
        if claims.has_news:
            self._hear_news(line.queue)
        if claims.vanished:
            self._hear_vanished(line.queue, claims.vanished)
        if len(claims.jobs) >= line.asked:  # as many as asked for: there may be more
            line.is_hopeful, line.has_left = True, False
            if self._room() > len(claims.jobs):
                self._something.set()
        if line.failures is not None and claims.failures_ms is not None:
            self._expect(line.failures, claims.failures_ms)
        is_near = claims.wait_ms is not None and claims.wait_ms <= LEASE_MS
        is_waiting = len(claims.jobs) < line.asked
        longest = LOOK_AGAIN_S if is_waiting and not is_near else LOOK_AGAIN_BUSY_S
        if line.is_quiet and not is_near:
            # Whatever comes meanwhile, the claims of its queue will tell.
            longest = math.inf
        wait = longest if claims.wait_ms is None else min(longest, claims.wait_ms / 1000)
        # What falls due must not be asked for before it is due by the server's clock: a moment is added.
        line.look_at = asyncio.get_running_loop().time() + wait + (0.001 if claims.wait_ms is not None else 0)
        return claims.jobs

    def _look_for_failures(self, queues: set[str]) -> None:
        """What has just been reported there may have made failure jobs. Others are woken for them; this worker, which
        ends when nothing is left, must not rely on that, nor on a claim that the server may have carried out before.
        """
        for line in self.lines:
            if line.queue in queues and line.failures is not None:
                line.is_hopeful = True
                self._something.set()

    def _expect(self, failures: Line, wait_ms: int) -> None:
        """Failures are due, or will be. What another worker may have in hand is not asked for all the time."""
        now = asyncio.get_running_loop().time()
        at = max(now + wait_ms / 1000, failures.asked_at + LOOK_AGAIN_BUSY_S)
        failures.look_at = min(failures.look_at, at)
        if at <= now:
            failures.is_hopeful = True
            self._something.set()

    def _reckon(self) -> None:
        """How many may be claimed ahead, going by what has landed lately."""
        now = (time.perf_counter(), self._flights.landed)
        if not self._flights.by_run:
            self._marks = (now, now)  # a time in which there was nothing to do says nothing of the pace
        elif now[0] - self._marks[1][0] >= PACE_S:
            self._marks = (self._marks[1], now)
        since, landed = self._marks[0]
        self._ahead = ahead(now[1] - landed, now[0] - since, self._trip_s + GATHER_S, self._slots())

    def _may_leave(self) -> bool:
        """True when a claim may leave the next one: there is a slot for each job that may come so."""
        flights = self._flights
        free = self._slots() - flights.busy - len(flights.waiting) - self._arriving
        return self._is_claiming and not self._is_burst and free >= self._callers

    def _room(self) -> int:
        """How many jobs can be taken: there are slots for them, or will be when the answer comes."""
        flights = self._flights
        return max(0, self._slots() + self._ahead - flights.busy - len(flights.waiting) - self._arriving)

    def _share(self, line: Line) -> int:
        """How many jobs a line may be asked for."""
        room = self._room()
        if room <= 0:
            return 0
        if not self._weighted:
            now = asyncio.get_running_loop().time()
            before = itertools.islice(self.lines, self._place_of[line.queue])
            # Strictly in order: none, while a queue before it may have more, and can be asked.
            return 0 if any(other.is_hopeful and other.shunned_until <= now for other in before) else room
        hopeful = sum(other.weight for other in self.lines if other.is_hopeful or other is line)
        # Where jobs are short, whoever is drawn gets enough for a claim to pay: in a moment others are, in proportion.
        least = min(WORTHWHILE, room // 3) if self._ahead else 0
        return max(1, room * line.weight // hopeful, least)

    def _ordered(self, lines: list[Line]) -> list[Line]:
        """Strictly as given, but for the shards of one queue, of which none comes first; or, by weight, in an order
        drawn so that each comes first in proportion.
        """
        if not self._weighted:
            return sorted(lines, key=lambda line: (line.rank, random.random())) if self._has_shards else lines
        if not lines:
            return lines
        (first,) = random.choices(range(len(lines)), [line.weight for line in lines])
        return lines[first:] + lines[:first]

    def _tell_idle(self) -> None:
        is_idle = (
            not self._flights.by_run
            and not self._flights.busy
            and not self._arriving
            and not self._reports
            and not any(line.is_hopeful or line.is_unanswered for line in self.lines)
        )
        if is_idle:
            self.is_idle.set()
        else:
            self.is_idle.clear()


def _lines(config: WorkerConfig) -> list[Line]:
    """The queues asked for, each with that of its failures behind it, unless that one was asked for, too."""
    lines: list[Line] = []
    for place, queue in enumerate(config.queues):
        line = Line(queue, config.weights[place] if config.weights else 1)
        lines.append(line)
        if failures_of(queue) not in config.queues:
            line.failures = Line(failures_of(queue), line.weight, is_hopeful=False, look_at=math.inf, is_quiet=True)
            lines.append(line.failures)
    ranks: dict[str, int] = {}
    for line in lines:
        line.rank = ranks.setdefault(base_of(line.queue), len(ranks))
    return lines


def _may_be_final(report: Report) -> bool:
    return isinstance(report, Lost | Returned) or (isinstance(report, Failed) and report.next_attempt == "final")


def _is_about_the_server(error: StoreError) -> bool:
    """True when it is away, full, or refuses us: no report is to blame, and none is given up."""
    return isinstance(error, StoreUnavailable | StoreDenied | StoreFull | StoreUnsupported)


def _token() -> str:
    return secrets.token_hex(5)
