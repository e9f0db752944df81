"""The kinds of jobs: how each is enqueued, what the demo does to it, and how it is expected to end."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from examples.demo.pool import pid_of
from examples.demo.stage import Stage
from examples.demo.tasks import (
    booking,
    broken,
    chore,
    crasher,
    download,
    endless,
    flaky,
    greet,
    needless,
    patient,
    poison,
    reminder,
    render,
    repaired,
    rota,
    stuck,
    survivor,
    thumbnail,
)
from rota import Job, JobRecord, JobState, WorkflowRecord

#: Time limit of one kind; none takes half as long.
PATIENCE_S: Final = 30.0
LOOK_EVERY_S: Final = 0.05
#: In one batch: 15 seconds of work for one slot.
CHORES: Final = 60


class Show:
    """What a kind uses: the server and workers, names for its jobs, and messages for the screen."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        #: (queue, run) -> the job, and its name on the screen.
        self.jobs: dict[tuple[str, str], tuple[Job[Any], str]] = {}
        #: Time and text of messages not shown yet.
        self.messages: list[tuple[float, str]] = []

    def name(self, job: Job[Any], name: str) -> None:
        """Sets the name of a job on the screen."""
        assert job.run is not None
        self.jobs[job.queue, job.run] = (job, name)

    def name_of(self, queue: str, run: str | None) -> str | None:
        """Returns the name of a run on the screen; None if it has none."""
        known = self.jobs.get((queue, run or ""))
        return known[1] if known else None

    def say(self, text: str) -> None:
        """Adds a message about what the demo itself does."""
        self.messages.append((time.monotonic(), text))


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of job, or of workflow."""

    name: str
    expected: str
    play: Callable[[Show], Awaitable[JobRecord | WorkflowRecord]]
    #: Checks the record beyond its state.
    fits: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one job of a kind ended."""

    kind: Kind
    actual: str
    is_ok: bool


async def play(kind: Kind, show: Show) -> Outcome:
    """Runs one job of the kind to its end."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            record = await kind.play(show)
    except TimeoutError:
        return Outcome(kind, f"has not ended within {PATIENCE_S:g} s", is_ok=False)
    if isinstance(record, WorkflowRecord):
        state, described = record.state, _describe_workflow(record)
    else:
        state, described = record.state.value, _describe(record)
    return Outcome(kind, described, state == kind.expected.partition(",")[0] and kind.fits(record))


def _describe_workflow(workflow: WorkflowRecord) -> str:
    """`undone, 2 of 3 steps, 2 undone`."""
    undone = sum(state.outcome == "completed" for state in workflow.undo_states.values())
    parts = [workflow.state, f"{workflow.done} of {len(workflow.steps)} steps"]
    return ", ".join([*parts, f"{undone} undone"] if undone else parts)


def _describe(record: JobRecord) -> str:
    """`completed, attempt 3, 2 failures`."""
    counts = record.counts
    parts = [record.state.value]
    if counts.attempt > 1:
        parts.append(f"attempt {counts.attempt}")
    for name, count in (("failure", counts.failures), ("stall", counts.stalls), ("snooze", counts.snoozes)):
        if count:
            parts.append(f"{count} {name}{'s' if count > 1 else ''}")
    if record.state is JobState.FAILED and record.error is not None:
        parts.append(record.error.type)
    elif record.reason:
        parts.append(record.reason)
    return ", ".join(parts)


async def _ended(job: Job[Any]) -> JobRecord:
    """Waits until a job has ended. Returns its record."""
    return await job.wait()


async def _begun(job: Job[Any]) -> JobRecord:
    """Waits until a job's handler has reported progress. Returns its record."""
    return await _until(job, lambda record: record.progress is not None)


async def _until(job: Job[Any], is_so: Callable[[JobRecord], bool]) -> JobRecord:
    while True:
        record = await job.refresh()
        if is_so(record):
            return record
        await asyncio.sleep(LOOK_EVERY_S)


# --- jobs that end without intervention --------------------------------------------------------------------------


def _plain(name: str, enqueue: Callable[[], Awaitable[Job[Any]]]) -> Callable[[Show], Awaitable[JobRecord]]:
    async def played(show: Show) -> JobRecord:
        job = await enqueue()
        show.name(job, name)
        return await _ended(job)

    return played


def _always(record: JobRecord) -> bool:
    return True


def _is_error(error: str) -> Callable[[JobRecord], bool]:
    return lambda record: record.error is not None and record.error.type == error


async def _play_priority(show: Show) -> JobRecord:
    """The critical one is enqueued last, in one batch with the others, and starts first.

    So many at once are more than one worker does in time: the autoscaler starts others.
    """
    calls = [chore.using(priority="low").call(number) for number in range(CHORES)]
    made = await rota.enqueue_many([*calls, chore.using(priority="critical").call(99)])
    for job in made[:-1]:
        show.name(job, "chore")
    show.name(made[-1], "critical chore")
    records = [await _ended(job) for job in made]
    critical = records[-1]
    starts = [record.claimed_at or 0 for record in records]
    if critical.claimed_at != min(starts):
        show.say("a job of low priority started before the critical one")
        raise TimeoutError
    return critical


# --- jobs that the demo cancels, redrives or kills ---------------------------------------------------------------


async def _play_cancelled(show: Show) -> JobRecord:
    job = await endless.enqueue()
    show.name(job, "endless")
    await _begun(job)
    await asyncio.sleep(1)
    show.say("the demo cancels “endless” while it is running")
    await job.cancel("no longer needed")
    return await _ended(job)


async def _play_redriven(show: Show) -> JobRecord:
    job = await repaired.enqueue()
    show.name(job, "repaired")
    await _ended(job)
    await asyncio.sleep(1)
    show.say("the demo redrives the dead letter “repaired”")
    await job.redrive()
    return await _ended(job)


async def _play_survivor(show: Show) -> JobRecord:
    job = await survivor.enqueue()
    show.name(job, "survivor")
    record = await _begun(job)
    pid = pid_of(record.worker)
    show.say(f"the demo kills worker {pid} with SIGKILL")
    loop = asyncio.get_running_loop()
    killed_at = loop.time()
    os.kill(pid, signal.SIGKILL)
    await _until(job, lambda record: record.counts.attempt == 2)
    show.say(f"“survivor” runs on another worker, {loop.time() - killed_at:.1f} s after the kill")
    return await _ended(job)


# --- jobs that wait for another job ------------------------------------------------------------------------------


async def _play_locked(show: Show) -> JobRecord:
    """Three bookings of one account at once: each starts when the previous one has ended."""
    jobs = [await booking.using(lock="account:7").enqueue(f"booking {number}") for number in (1, 2, 3)]
    for job in jobs:
        show.name(job, "locked booking")
    return await _one_by_one(show, jobs)


async def _play_again(show: Show) -> JobRecord:
    """Enqueued again three times while it runs: one follow-up, which starts when it has ended."""
    first = await booking.using(id="once").enqueue("first")
    show.name(first, "booking")
    await _begun(first)
    follow_ups = [await booking.using(id="once").enqueue(f"change {number}") for number in (1, 2, 3)]
    show.name(follow_ups[0], "follow-up")
    show.say("the demo enqueues “booking” again three times while it is running")
    return await _one_by_one(show, [first, *{job.run: job for job in follow_ups}.values()])


async def _play_after(show: Show) -> JobRecord:
    """Depends on two jobs; one is in another queue and needs three attempts."""
    flaky_one = await flaky.enqueue()
    show.name(flaky_one, "flaky")
    other = await booking.enqueue("before the dependent")
    show.name(other, "booking")
    parents: list[Job[Any]] = [flaky_one, other]
    dependent = await booking.using(after=parents).enqueue("dependent")
    show.name(dependent, "dependent")
    before = [await _ended(job) for job in parents]
    record = await _ended(dependent)
    _check(show, (record.claimed_at or 0) >= max(one.ended_at or 0 for one in before), "a dependent started too early")
    return record


async def _one_by_one(show: Show, jobs: list[Job[Any]]) -> JobRecord:
    """Waits until all have ended and checks that none overlapped. Returns the record of the last."""
    records = [await _ended(job) for job in jobs]
    for before, after in itertools.pairwise(records):
        _check(show, (after.claimed_at or 0) >= (before.ended_at or 0), "two ran at the same time")
    return records[-1]


def _check(show: Show, is_so: bool, otherwise: str) -> None:
    if not is_so:
        show.say(otherwise)
        raise TimeoutError


KINDS: Final = (
    Kind("fast", "completed", _plain("greet", lambda: greet.enqueue("Ann")), _always),
    Kind("in a thread", "completed", _plain("thumbnail", lambda: thumbnail.enqueue("lake.png")), _always),
    Kind("in a process", "completed", _plain("render", lambda: render.enqueue("hill.png")), _always),
    Kind("slow, with progress", "completed", _plain("download", download.enqueue), _always),
    Kind(
        "failing, then fine",
        "completed, 2 failures",
        _plain("flaky", flaky.enqueue),
        lambda r: r.counts.failures == 2,
    ),
    Kind("failing for good", "failed, PermanentError", _plain("broken", broken.enqueue), _is_error("PermanentError")),
    Kind("dead letter, redriven", "completed, attempt 2", _play_redriven, lambda r: r.counts.attempt == 2),
    Kind(
        "scheduled",
        "completed, not too early",
        _plain("reminder", lambda: reminder.using(delay=2).enqueue("tea")),
        lambda r: (r.claimed_at or 0) >= r.enqueued_at + 2000,
    ),
    Kind("of high priority", "completed, before the low ones", _play_priority, _always),
    Kind("cancelled while running", "cancelled", _play_cancelled, _always),
    Kind("timed out", "failed, Timeout", _plain("stuck", stuck.enqueue), _is_error("Timeout")),
    Kind(
        "snoozing",
        "completed, 2 snoozes",
        _plain("patient", patient.enqueue),
        lambda r: (r.counts.snoozes, r.counts.failures) == (2, 0),
    ),
    Kind(
        "not started in time",
        "cancelled, expired",
        _plain("reminder", lambda: reminder.using(delay=60, expires=1.5).enqueue("late")),
        lambda r: r.reason.startswith("expired"),
    ),
    Kind("ending itself", "cancelled", _plain("needless", needless.enqueue), lambda r: "withdrawn" in r.reason),
    Kind(
        "crashing once",
        "completed, 1 stall",
        _plain("crasher", crasher.enqueue),
        lambda r: (r.counts.stalls, r.counts.failures) == (1, 0),
    ),
    Kind("with a lock", "completed, one at a time", _play_locked, _always),
    Kind("the same id again", "completed, one follow-up", _play_again, lambda r: b"change 3" in r.arguments),
    Kind("after others", "completed, when they had", _play_after, _always),
    Kind("crashing always", "failed, StallError", _plain("poison", poison.enqueue), _is_error("StallError")),
)
#: Runs when the others have ended: it kills a whole worker.
LAST: Final = Kind("its worker killed", "completed, 1 stall", _play_survivor, lambda r: r.counts.stalls == 1)
