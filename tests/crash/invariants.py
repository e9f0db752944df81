"""Proves from the journals what Rota guarantees. Pure: entries in, violations out.

Each invariant is a generator of sentences about what violates it; `INVARIANTS` lists them by name. What a fault excuses
is said where it is excused, and nowhere else.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.crash.journal import Entry

FINISHED: Final = ("completed", "failed", "cancelled")
#: expected by the producer -> states in which the run may end
ALLOWED: Final[Mapping[str, Sequence[str]]] = {
    "completed": ("completed",),
    "failed": ("failed",),
    "once": ("completed", "failed"),
    "cancelled": ("completed", "cancelled"),
}
#: Server time is in whole ms, and journals are written a moment before or after.
ROUNDING_NS: Final = 2_000_000
#: The backoff of the suite's tasks.
BACKOFF_NS: Final = 200_000_000
#: A handler of a worker that is cut off or frozen may run on after its lease of 4.5 s has run out; so long after the
#: fault its worker has stopped it.
AFTER_FAULT_NS: Final = 8_000_000_000
#: Faults after which a handler may run beside its successor, see "What is not guaranteed" in guarantees.md.
CUTS_OFF: Final = frozenset(
    {"freeze_supervisor", "freeze_host", "freeze_runner", "black_hole", "half_open_connections", "delay_replies"}
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One start of a handler."""

    begin: Entry
    end: Entry | None

    @property
    def key(self) -> tuple[str, str]:
        """Job and run."""
        return (self.begin["job"], self.begin["run"])

    @property
    def fence(self) -> int:
        """The fence of its claim."""
        fence: int = self.begin["fence"]
        return fence

    @property
    def is_ok(self) -> bool:
        """True when its handler returned."""
        return self.end is not None and self.end["outcome"] == "ok"


@dataclass(slots=True)
class Facts:
    """The entries of one run of the suite, by what they are about."""

    entries: Sequence[Entry]
    #: The server may have lost acknowledged enqueues.
    may_lose: bool = False
    #: The server may have lost other writes, such as claims and reports: then what they had done is done again.
    may_roll_back: bool = False
    attempts: dict[tuple[str, str], list[Attempt]] = field(default_factory=dict[tuple[str, str], list[Attempt]])
    acknowledged: list[Entry] = field(default_factory=list[Entry])
    finals: dict[tuple[str, str], Entry] = field(default_factory=dict[tuple[str, str], Entry])

    def __post_init__(self) -> None:
        ends = {
            (entry.pid, entry["job"], entry["run"], entry["fence"]): entry
            for entry in self.entries
            if entry.kind == "end"
        }
        attempts: dict[tuple[str, str], list[Attempt]] = defaultdict(list)
        for entry in self.entries:
            if entry.kind == "begin":
                end = ends.get((entry.pid, entry["job"], entry["run"], entry["fence"]))
                attempt = Attempt(entry, end)
                attempts[attempt.key].append(attempt)
            elif entry.kind == "acknowledged":
                self.acknowledged.append(entry)
            elif entry.kind == "final":
                self.finals[entry["job"], entry["run"]] = entry
        self.attempts = dict(attempts)

    def of_kind(self, kind: str) -> list[Entry]:
        """The entries of one kind."""
        return [entry for entry in self.entries if entry.kind == kind]


def acknowledged_jobs_end_once(facts: Facts) -> Iterator[str]:
    """Every acknowledged enqueue reaches exactly one terminal state, the one that follows from what it does."""
    for entry in facts.acknowledged:
        if entry["expected"] == "shared":
            continue  # runs of one id merge into each other: see `no_update_is_lost`
        key = (entry["job"], entry["run"])
        final = facts.finals.get(key)
        if final is None or final["state"] == "missing":
            if not facts.may_lose:
                yield f"lost: {key} was acknowledged, and is gone"
        elif final["state"] not in FINISHED:
            yield f"stuck: {key} is {final['state']}"
        elif final["state"] not in ALLOWED[entry["expected"]] and not (entry.get("parents") and facts.may_lose):
            yield f"wrong end: {key} is {final['state']}, expected {entry['expected']}"
        else:
            ends = [verb for verb, state in final["verbs"] if state in FINISHED]
            if len(ends) != 1:
                yield f"decided twice: {key} ended by {ends}"


def accepted_effects_have_the_newest_fence(facts: Facts) -> Iterator[str]:
    """No outcome is accepted after its fence was passed."""
    for key, final in facts.finals.items():
        result = final.get("result")
        if final["state"] != "completed" or not isinstance(result, dict) or facts.may_roll_back:
            continue
        fences = [attempt.fence for attempt in facts.attempts.get(key, [])]
        if not fences:
            yield f"completed without a start: {key}"
        elif result["fence"] != max(fences):
            yield f"passed fence accepted: {key} completed with fence {result['fence']}, started with {fences}"


def a_claim_starts_its_handler_once(facts: Facts) -> Iterator[str]:
    """One claim is one start, and a start has a greater fence than those before; but for a worker that was cut off."""
    for key, attempts in () if facts.may_roll_back else facts.attempts.items():
        fences = [attempt.fence for attempt in attempts]
        if len(set(fences)) != len(fences):
            yield f"started twice under one fence: {key} with {fences}"
        for before, after in itertools.pairwise(attempts):
            if after.fence < before.fence and not _was_cut_off(facts, after, after.begin.at_ns):
                yield f"fences went back: {key} with {fences}"


def nothing_starts_early(facts: Facts) -> Iterator[str]:
    """Not before the delay that its producer asked for, nor before the backoff of a failure."""
    jumps = [entry for entry in facts.of_kind("fault") if "jump_ms" in entry.data]
    sent = {entry["id"]: entry for entry in facts.of_kind("sent") if isinstance(entry["id"], str)}
    for (job, run), attempts in facts.attempts.items():
        call = sent.get(job.partition(":")[2])
        first = attempts[0].begin
        if call is not None and call["delay_s"]:
            earliest = call.at_ns + int(call["delay_s"] * 1e9)
            if first.at_ns + _jumped(jumps, call, first) < earliest - ROUNDING_NS:
                yield f"early: {job}@{run} started {(earliest - first.at_ns) / 1e6:.1f} ms before its time"
        for before, after in itertools.pairwise(attempts):
            has_failed = before.end is not None and before.end["outcome"] == "error"
            if has_failed and before.end and after.begin["failures"] > before.begin["failures"]:
                waited = after.begin.at_ns - before.end.at_ns + _jumped(jumps, before.end, after.begin)
                if waited < BACKOFF_NS - ROUNDING_NS:
                    yield f"early: {job}@{run} was tried again after {waited / 1e6:.1f} ms"


def _jumped(jumps: Sequence[Entry], since: Entry, until: Entry) -> int:
    """By how many ns the server's clock was moved ahead in a time; a moment more, as the fault is journalled before."""
    ahead = [jump["jump_ms"] for jump in jumps if since.at_ns - 10**9 <= jump.at_ns <= until.at_ns]
    return sum(max(0, jump) for jump in ahead) * 1_000_000


def nothing_starts_before_its_dependencies(facts: Facts) -> Iterator[str]:
    """All parents of a job have succeeded before it starts."""
    for entry in facts.acknowledged:
        for parent in entry.get("parents") or ():
            job, _, run = parent.partition("@")
            done = [
                attempt.end.at_ns for attempt in facts.attempts.get((job, run), []) if attempt.is_ok and attempt.end
            ]
            for attempt in facts.attempts.get((entry["job"], entry["run"]), []):
                if not done or attempt.begin.at_ns < min(done):
                    yield f"before its dependency: {attempt.key} started before {parent} had succeeded"


def no_lock_has_two_holders(facts: Facts) -> Iterator[str]:
    """Two handlers with one lock of one queue never run at the same time."""
    by_lock: dict[str, list[Attempt]] = defaultdict(list)
    for attempts in facts.attempts.values():
        for attempt in attempts:
            if attempt.begin["lock"]:
                by_lock[f"{attempt.begin['queue']} {attempt.begin['lock']}"].append(attempt)
    for lock, attempts in by_lock.items():
        yield from (f"lock {lock}: {sentence}" for sentence in _overlaps(facts, attempts))


def no_id_has_two_holders(facts: Facts) -> Iterator[str]:
    """Two runs of one id, or two attempts of one run, never run at the same time."""
    by_id: dict[str, list[Attempt]] = defaultdict(list)
    for (job, _), attempts in facts.attempts.items():
        by_id[job] += attempts
    for job, attempts in by_id.items():
        yield from (f"id {job}: {sentence}" for sentence in _overlaps(facts, attempts))


def _overlaps(facts: Facts, attempts: Sequence[Attempt]) -> Iterator[str]:
    """Yields the attempts that overlap, and are not excused by a fault that cut the one with the older fence off."""
    ordered = sorted(attempts, key=lambda attempt: attempt.begin.at_ns)
    for first, second in itertools.pairwise(ordered):
        if first.end is None or first.end.at_ns <= second.begin.at_ns:
            continue  # without an end it was killed, as far as the journals tell
        older, newer = sorted((first, second), key=lambda attempt: attempt.fence)
        if facts.may_roll_back:
            continue  # the claim of one of them may be among what was lost
        if _is_accepted(facts, older):
            yield f"{newer.key} ran beside {older.key}, whose older fence was accepted"
        elif not _was_cut_off(facts, older, second.begin.at_ns):
            yield f"{newer.key} ran beside {older.key}, and no fault had cut that one off"


def _is_accepted(facts: Facts, attempt: Attempt) -> bool:
    final = facts.finals.get(attempt.key)
    result = final.get("result") if final else None
    return attempt.is_ok and isinstance(result, dict) and result["fence"] == attempt.fence


def _was_cut_off(facts: Facts, attempt: Attempt, at_ns: int) -> bool:
    """True when a fault, or a machine without a free core, had kept the attempt's worker from renewing its lease."""
    pids = {attempt.begin.pid, attempt.begin["supervisor"]}
    ends = [entry for entry in facts.entries if entry.kind == "fault_over" and entry["name"] in CUTS_OFF]
    for over in ends:
        if pids & set(over["pids"]) and over["since"] <= at_ns <= over.at_ns + AFTER_FAULT_NS:
            return True
    return any(abs(entry.at_ns - at_ns) < AFTER_FAULT_NS for entry in facts.of_kind("starved"))


def no_worker_exceeds_its_limit(facts: Facts) -> Iterator[str]:
    """Of a task with `per_worker=1`, a worker runs one job at a time."""
    by_worker: dict[int, list[Attempt]] = defaultdict(list)
    for attempts in facts.attempts.values():
        for attempt in attempts:
            if attempt.begin["task"] == "work_alone":
                by_worker[attempt.begin["supervisor"]].append(attempt)
    for attempts in by_worker.values():
        ordered = sorted(attempts, key=lambda attempt: attempt.begin.at_ns)
        for first, second in itertools.pairwise(ordered):
            if first.end is not None and first.end.at_ns > second.begin.at_ns:
                yield f"limit: {second.key} ran beside {first.key} in one worker"


def at_most_once_starts_at_most_once(facts: Facts) -> Iterator[str]:
    """A job that may run only once is started once at most."""
    for entry in facts.acknowledged:
        key = (entry["job"], entry["run"])
        starts = len(facts.attempts.get(key, []))
        if entry["expected"] == "once" and starts > 1 and not facts.may_roll_back:
            yield f"at most once: {key} was started {starts} times"


def no_update_is_lost(facts: Facts) -> Iterator[str]:
    """Each acknowledged call for an id that waits or runs is followed by a start with its arguments, or newer ones."""
    latest: dict[str, int] = defaultdict(int)
    for attempts in facts.attempts.values():
        for attempt in attempts:
            job = attempt.begin["job"]
            latest[job] = max(latest[job], attempt.begin["version"])
    for entry in facts.acknowledged:
        if entry["expected"] == "shared" and latest[entry["job"]] < entry["version"] and not facts.may_lose:
            yield f"update lost: version {entry['version']} of {entry['job']} never started"


def a_call_makes_one_job(facts: Facts) -> Iterator[str]:
    """One enqueue makes one job, however often it was sent; also over HTTP with an Idempotency-Key."""
    jobs: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for key, attempts in facts.attempts.items():
        if attempts[0].begin["key"]:
            jobs[attempts[0].begin["key"]].add(key)
    for call, of_call in jobs.items():
        if len(of_call) > 1 and not facts.may_roll_back:
            yield f"doubled call: {call} made {sorted(of_call)}"


def a_tick_makes_one_run(facts: Facts) -> Iterator[str]:
    """Each tick of a schedule is one job, with one run."""
    runs: dict[str, set[str]] = defaultdict(set)
    for job, run in facts.attempts:
        if facts.attempts[job, run][0].begin["task"] == "tick":
            runs[job].add(run)
    for job, of_job in runs.items():
        if len(of_job) > 1 and not facts.may_roll_back:
            yield f"doubled tick: {job} has the runs {sorted(of_job)}"


def a_dead_letter_is_handled(facts: Facts) -> Iterator[str]:
    """The failure handler of each job that failed for good has run."""
    handled = {(entry["job"], entry["run"]) for entry in facts.of_kind("failure_handled")}
    for entry in facts.acknowledged:
        key = (entry["job"], entry["run"])
        final = facts.finals.get(key)
        if entry["expected"] == "failed" and final and final["state"] == "failed" and key not in handled:
            yield f"not handled: {key} failed for good, and its failure handler has not run"


def counters_agree(facts: Facts) -> Iterator[str]:
    """The queue's totals are the sum of what happened."""
    for entry in facts.of_kind("totals"):
        for state in ("completed", "failed", "cancelled"):
            if entry["totals"].get(state, entry["counts"][state]) != entry["counts"][state]:
                yield f"counters of {entry['queue']}: {entry['totals']} and {entry['counts']}"


def indexes_and_records_agree(facts: Facts) -> Iterator[str]:
    """The indexes, counters and records of the store agree, and no key is left over."""
    for entry in facts.of_kind("problem"):
        yield entry["message"]


INVARIANTS: Final[Mapping[str, Callable[[Facts], Iterator[str]]]] = {
    invariant.__name__: invariant
    for invariant in (
        acknowledged_jobs_end_once,
        accepted_effects_have_the_newest_fence,
        a_claim_starts_its_handler_once,
        nothing_starts_early,
        nothing_starts_before_its_dependencies,
        no_lock_has_two_holders,
        no_id_has_two_holders,
        no_worker_exceeds_its_limit,
        at_most_once_starts_at_most_once,
        no_update_is_lost,
        a_call_makes_one_job,
        a_tick_makes_one_run,
        a_dead_letter_is_handled,
        counters_agree,
        indexes_and_records_agree,
    )
}


def violations(facts: Facts) -> list[str]:
    """Returns every violation, with the name of its invariant."""
    return [f"{name}: {sentence}" for name, invariant in INVARIANTS.items() for sentence in invariant(facts)]
