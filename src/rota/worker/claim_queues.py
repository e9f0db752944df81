"""The queues that a worker serves: which one is claimed from next, when, and for how many jobs.

`--queues a,b` is strict order: a claim for `b` asks for no jobs while `a` may have some, that is, while the last claim
for `a` was answered in full, a wake-up for it has come, or it is time to look there. Only a claim that is in flight
when a job reaches `a` can still bring jobs of `b`. `--queues a=3,b=1` is by weight: stride
scheduling. A queue's *pass* is the number of jobs that it brought divided by its weight. The queue with the lowest pass
is asked first, for as many jobs as bring all passes to one level.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rota.core.shards import base_of
from rota.store.claim_replies import ClaimReply
from rota.store.keys import failures_of
from rota.worker.config import WorkerConfig
from rota.worker.follow_lease_and_heartbeat_settings import CurrentDurations

#: A claim without a reply for this long is given up, if heartbeats are answered. Longer than a round trip over which a
#: worker can work at all (`SOCKET_TIMEOUT_S`), and well before the lease ends, at which the store must know it.
OVERDUE_S: Final = 2.0
#: Runs of full tasks are examined again from the first one no more often than this.
EXAMINE_AGAIN_S: Final = 0.1
#: By weight, a claim asks for at least so many jobs, where they are short.
MIN_WEIGHTED_CLAIM: Final = 30


def new_claim_token() -> str:
    """A random claim token."""
    return secrets.token_hex(5)


@dataclass(slots=True, eq=False)
class ClaimQueue:
    """One queue that this worker serves."""

    name: str
    weight: int
    #: Position in strict order. The shards of one queue have the same rank, and so have those of its failure queue.
    rank: int = 0
    #: Not asked yet, or the last claim was answered in full.
    may_have_jobs: bool = True
    #: A wake-up came and no claim has followed it: with no free slot it must be passed on to another worker.
    is_woken: bool = False
    look_at: float = 0.0
    #: The server could not carry out a claim: the queue is not asked before this time.
    blocked_until: float = 0.0
    call_number: int = 0
    claim_token: str = field(default_factory=new_claim_token)
    #: The token of the claim after this one.
    next_claim_token: str = field(default_factory=new_claim_token)
    #: The store may have been given that claim, to push the next job with. Then it must be sent, or its push received.
    may_be_pushed: bool = False
    #: A claim was sent and not answered: the same claim is sent again.
    is_unanswered: bool = False
    #: The node of the queue is slow to answer or unreachable. The call goes on in the background; no other is sent.
    is_away: bool = False
    #: The number of a claim that was given up: the store was notified that no job of it will be started.
    given_up: int = 0
    limit: int = 0
    #: By weight: how many jobs it has brought, divided by its weight.
    jobs_per_weight: float = 0.0
    #: It had no more jobs. When it has some again, it gets no more than its share for the time since then.
    is_drained: bool = True
    #: The last claim passed over runs of full tasks (`TaskSlots`).
    has_passed_over: bool = False
    #: The rank at which that claim ended: the next one goes on there.
    passed_until: int = 0
    #: When these runs may be examined again from the first one.
    examine_again_at: float = 0.0
    #: When the claim was first sent.
    asked_at: float = -math.inf
    #: The queue of its failure handlers, if that is polled on demand.
    failure_queue: ClaimQueue | None = None
    #: Polled only when the claims of its queue report that something is due.
    is_on_demand: bool = False

    @property
    def is_expected_to_have_jobs(self) -> bool:
        """There is more reason to ask than that it is time to poll."""
        return self.may_have_jobs or self.is_woken or self.is_unanswered

    def next_claim(self, limit: int, *, may_be_pushed: bool, now: float) -> None:
        """Prepares the next claim."""
        if not self.is_expected_to_have_jobs:
            self.passed_until = 0  # a poll examines all runs
        self.limit = limit
        self.call_number += 1
        self.claim_token, self.next_claim_token = self.next_claim_token, new_claim_token()
        self.may_be_pushed = may_be_pushed
        self.is_unanswered = True
        self.may_have_jobs = self.is_woken = False
        self.asked_at = now


class ClaimQueues:
    """All queues of a worker, in the order given."""

    def __init__(self, config: WorkerConfig, wake_up: asyncio.Event, durations: CurrentDurations | None = None) -> None:
        self.durations = CurrentDurations() if durations is None else durations
        self.all = _claim_queues(config)
        self._by_name = {queue.name: queue for queue in self.all}
        self._is_weighted = bool(config.weights)
        self._wake_up = wake_up
        #: Jobs are claimed. False when the worker stops: then only claims that the store was given are sent.
        self.is_claiming = True
        #: Wake-ups arrive. While they do not, that a queue was empty a moment ago means nothing.
        self.is_subscribed = False
        #: Set while there is nothing to claim, run or report.
        self.is_idle = asyncio.Event()
        #: As many jobs may be pushed at once.
        self.pushable = sum(not queue.is_on_demand for queue in self.all)

    def find(self, name: str) -> ClaimQueue | None:
        """The queue of that name."""
        return self._by_name.get(name)

    def wake(self, name: str | None = None) -> None:
        """Requests a claim from a queue now; without a name, from all, because wake-ups may have been missed."""
        for queue in self.all:
            if queue.name == name or (name is None and not queue.is_on_demand):
                queue.may_have_jobs = queue.is_woken = True
                self.is_idle.clear()
        self._wake_up.set()

    @property
    def has_backlog(self) -> bool:
        """True when the last claims left jobs behind."""
        return any(queue.may_have_jobs for queue in self.all)

    @property
    def has_open_claim(self) -> bool:
        """True while a claim is unanswered, or the store may carry one out."""
        return any(queue.is_unanswered or queue.may_be_pushed for queue in self.all)

    @property
    def next_look(self) -> float:
        """When the next queue is polled, if nothing happens before."""
        return min((queue.look_at for queue in self.all if not queue.is_away), default=math.inf)

    def plan(self, now: float) -> list[list[ClaimQueue]]:
        """The claims to send now, in order. Those in one list share a round trip.

        In strict order a queue that it is time to poll is asked before the later ones, and never in one round trip with
        them: both would bring jobs.
        """
        if not self._is_weighted and not self.is_subscribed:
            self._poll_before_later_queues(now)
        due = [queue for queue in self.all if self.is_due(queue, now)]
        if self._is_weighted:
            return _plan(self._by_pass([queue for queue in due if queue.is_expected_to_have_jobs]), due)
        by_rank = itertools.groupby(sorted(due, key=lambda queue: queue.rank), key=lambda queue: queue.rank)
        ranks = [list(queues) for _, queues in by_rank]
        return [claim for queues in ranks for claim in _plan(_shuffled(queues), queues)]

    def is_due(self, queue: ClaimQueue, now: float) -> bool:
        """True when there is a reason to ask this queue."""
        if queue.is_away or queue.blocked_until > now:
            return False
        if not self.is_claiming:
            return queue.is_unanswered or queue.may_be_pushed
        return queue.is_expected_to_have_jobs or queue.look_at <= now

    def must_be_asked(self, queue: ClaimQueue, now: float, room: int, ahead: int) -> bool:
        """True when a claim for this queue is worth a round trip. One for no jobs passes on wake-ups and does what is
        due.
        """
        if not self.is_due(queue, now):
            return False
        is_urgent = queue.is_unanswered or queue.is_woken or queue.look_at <= now or not self.is_claiming
        return is_urgent or self.share(queue, now, room, ahead) > 0

    def share(self, queue: ClaimQueue, now: float, room: int, ahead: int) -> int:
        """How many of `room` jobs a claim for this queue may ask for."""
        if room <= 0:
            return 0
        if not self._is_weighted:
            return 0 if any(self._comes_before(other, queue, now) for other in self.all) else room
        # Where jobs are short, a claim asks for enough to pay: the other queues are first next time.
        least = min(MIN_WEIGHTED_CLAIM, room // 3) if ahead else 0
        rivals = [other for other in self.all if other is queue or self._competes(other, now)]
        fair = math.ceil(queue.weight * (_level(rivals, room) - queue.jobs_per_weight) - 1e-9)
        return min(room, max(fair, least)) if fair > 0 else 0

    def give_up_overdue(self, name: str, answered_at: float, now: float) -> int | None:
        """Gives up the claim of a queue if its reply is overdue although a heartbeat was answered after it was sent.

        Returns the number of the claim that is given up; None if there is none.
        """
        queue = self._by_name.get(name)
        if queue is None or not queue.is_unanswered:
            return None
        if answered_at > queue.asked_at and now - queue.asked_at >= OVERDUE_S:
            queue.given_up = queue.call_number
        return queue.given_up if queue.given_up == queue.call_number else None

    def answered(self, queue: ClaimQueue, reply: ClaimReply, now: float) -> None:
        """Records the answer to a claim: whether there may be more jobs, and when to ask again."""
        queue.is_unanswered = False
        queue.jobs_per_weight += len(reply.jobs) / queue.weight
        has_room = len(reply.jobs) < queue.limit
        queue.is_drained = has_room
        queue.has_passed_over, queue.passed_until = reply.passed_until is not None, reply.passed_until or 0
        if not has_room:
            queue.may_have_jobs, queue.may_be_pushed = True, False
        elif reply.wait_ms == 0 and not reply.has_outbox:
            queue.may_have_jobs = True  # the claim had too much housekeeping to do, and is to be sent again at once
        if queue.failure_queue is not None and reply.failures_wait_ms is not None:
            self._expect_failures(queue.failure_queue, reply.failures_wait_ms, now)
        is_near = reply.wait_ms is not None and reply.wait_ms <= self.durations.lease_ms
        longest = self.durations.poll_s if has_room and not is_near else self.durations.busy_poll_s
        if queue.is_on_demand and not is_near:
            longest = math.inf  # the claims of its queue will report what comes
        wait = longest if reply.wait_ms is None else min(longest, reply.wait_ms / 1000)
        # It must not be asked before something is due by the server's clock: 1 ms is added.
        queue.look_at = now + wait + (0.001 if reply.wait_ms is not None else 0)

    def on_freed_task_slot(self, now: float) -> None:
        """A task is no longer full: its runs that were passed over are claimed, wherever they are."""
        for queue in self.all:
            if not queue.has_passed_over:
                continue
            queue.may_have_jobs = True
            if now >= queue.examine_again_at:
                queue.passed_until, queue.examine_again_at = 0, now + EXAMINE_AGAIN_S
            else:
                queue.look_at = min(queue.look_at, queue.examine_again_at)

    def recheck_for_burst(self, asked: Sequence[ClaimQueue], failed_in: set[str]) -> None:
        """Marks the queues that attempts which have just been reported may have added jobs to.

        The wake-up for those may still be on its way: a burst is over only when a claim that was sent after the report
        has brought nothing. Other workers are woken for failure jobs; a worker that ends when nothing is left must not
        rely on that, nor on a claim that the server may have carried out before.
        """
        for queue in self.all:
            if queue not in asked or (queue.name in failed_in and queue.failure_queue is not None):
                queue.may_have_jobs = True
        self._wake_up.set()

    def _by_pass(self, queues: list[ClaimQueue]) -> list[ClaimQueue]:
        """The queue that is most behind first. One that had no jobs for a while starts among the others.

        What it brought before does not count: it neither catches up on that nor waits until the others have.
        """
        passes = [queue.jobs_per_weight for queue in self.all]
        busy = [queue.jobs_per_weight for queue in self.all if not queue.is_drained] or [max(passes)]
        for queue in queues:
            if queue.is_drained:
                queue.jobs_per_weight = min(max(queue.jobs_per_weight, min(busy)), max(busy))
                queue.is_drained = False
        return sorted(queues, key=lambda queue: (queue.jobs_per_weight, random.random()))

    @staticmethod
    def _competes(other: ClaimQueue, now: float) -> bool:
        """True when a queue may have jobs and its server answers: others leave its share of the room to it."""
        return other.may_have_jobs and not other.is_away and not other.is_unanswered and other.blocked_until <= now

    def _poll_before_later_queues(self, now: float) -> None:
        last = max((queue.rank for queue in self.all if queue.may_have_jobs), default=0)
        for queue in self.all:
            if queue.rank < last and not queue.is_on_demand:
                queue.look_at = min(queue.look_at, now)

    @staticmethod
    def _comes_before(other: ClaimQueue, queue: ClaimQueue, now: float) -> bool:
        """True when strict order gives `queue` nothing, because of another queue that may have jobs."""
        if other.rank >= queue.rank or other.is_away or other.blocked_until > now:
            return False
        return other.may_have_jobs or other.look_at <= now

    def _expect_failures(self, failure_queue: ClaimQueue, wait_ms: int, now: float) -> None:
        """Failure jobs are due, or will be. Those that another worker may be running are not asked for all the time."""
        at = max(now + wait_ms / 1000, failure_queue.asked_at + self.durations.busy_poll_s)
        failure_queue.look_at = min(failure_queue.look_at, at)
        if at <= now:
            failure_queue.may_have_jobs = True
            self._wake_up.set()


def _plan(expected: list[ClaimQueue], due: list[ClaimQueue]) -> list[list[ClaimQueue]]:
    """One claim at a time where jobs are expected; one round trip for all queues that are only polled."""
    polled = [queue for queue in due if not queue.is_expected_to_have_jobs]
    return [[queue] for queue in expected] + ([polled] if polled else [])


def _shuffled(shards: list[ClaimQueue]) -> list[ClaimQueue]:
    """The shards of one queue that are expected to have jobs; none of them always comes first."""
    expected = [queue for queue in shards if queue.is_expected_to_have_jobs]
    random.shuffle(expected)
    return expected


def _level(queues: list[ClaimQueue], room: int) -> float:
    """The level to which `room` jobs raise the jobs per weight of these queues, if the lowest are raised first."""
    weights, filled, level = 0, 0.0, 0.0
    for queue in sorted(queues, key=lambda queue: queue.jobs_per_weight):
        if weights and level <= queue.jobs_per_weight:
            break
        weights += queue.weight
        filled += queue.weight * queue.jobs_per_weight
        level = (room + filled) / weights
    return level


def _claim_queues(config: WorkerConfig) -> list[ClaimQueue]:
    """The queues asked for, each followed by its failure queue, unless that one was asked for, too."""
    queues: list[ClaimQueue] = []
    for index, name in enumerate(config.queues):
        queue = ClaimQueue(name, config.weights[index] if config.weights else 1)
        queues.append(queue)
        if failures_of(name) not in config.queues:
            queue.failure_queue = ClaimQueue(
                failures_of(name), queue.weight, may_have_jobs=False, look_at=math.inf, is_on_demand=True
            )
            queues.append(queue.failure_queue)
    ranks: dict[str, int] = {}
    for queue in queues:
        queue.rank = ranks.setdefault(base_of(queue.name), len(ranks))
    return queues
