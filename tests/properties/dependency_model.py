"""The same id again, locks and dependencies as dictionaries: what every call should do, written down a second time.

Who is blocked is not stepped from call to call here, as the scripts do, but derived each time from the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from rota.core.job_record import AttemptCounts

LEASE_MS: Final = 4_500
TICK_GAP_MS: Final = 2_200
UNCLAIMED: Final = "-"
FINISHED: Final = ("completed", "failed", "cancelled")
#: A run: its queue and its name.
Key = tuple[str, str]


@dataclass(kw_only=True)
class Run:
    """One life of a job id."""

    queue: str
    run: str
    id: str
    #: False: the id was generated and begins with its run.
    is_named: bool
    priority: int
    due: int
    data: int
    lock: str = ""
    after: tuple[str, ...] = ()
    #: When it expires, while it waits for its first start; and when that is, whether it waits or not.
    expires: int | None = None
    deadline: int | None = None
    max_stalls: int = 3
    keeps_nothing: bool = False
    state: str = "waiting"
    #: Its time has come, and it was noticed.
    is_due: bool = False
    #: The run of the same id that it waits for, and how it merges into that one.
    holder: Run | None = None
    follower: Run | None = None
    flags: str = ""
    #: Parents that have yet to succeed -> whether they may fail; those that cannot any more; and whether that ended it.
    needs: dict[str, bool] = field(default_factory=dict[str, bool])
    dooms: set[str] = field(default_factory=set[str])
    is_doomed: bool = False
    aliases: list[str] = field(default_factory=list[str])
    claim: str = UNCLAIMED
    lease: int = 0
    attempt: int = 0
    failures: int = 0
    stalls: int = 0
    snoozes: int = 0
    handbacks: int = 0
    is_stopping: bool = False
    has_record: bool = True

    @property
    def key(self) -> Key:
        return self.queue, self.run

    @property
    def place(self) -> int:
        return self.priority * 2**42 + self.due

    @property
    def is_busy(self) -> bool:
        return self.state == "processing" or self.is_stopping

    @property
    def is_unfinished(self) -> bool:
        return self.state in ("waiting", "processing") or self.is_stopping

    @property
    def counts(self) -> AttemptCounts:
        return AttemptCounts(self.attempt, self.failures, self.stalls, self.snoozes, self.handbacks)


@dataclass
class News:
    """What has become of a parent, and who of its dependents has heard."""

    outcome: str = ""
    number: int = 0
    #: (dependent, what it calls the parent) -> latest news it had
    heirs: dict[tuple[Key, str], int] = field(default_factory=dict[tuple[Key, str], int])
    is_unsent: bool = False
    hold_until: int = 0

    @property
    def untold(self) -> list[tuple[Key, str]]:
        return [heir for heir, heard in self.heirs.items() if heard < self.number]


@dataclass
class Asked:
    """A job to be made."""

    id: str
    priority: int
    due: int
    data: int
    lock: str = ""
    expires: int | None = None
    max_stalls: int = 3
    keeps_nothing: bool = False
    flags: str = "-"
    after: tuple[str, ...] = ()


@dataclass
class Queue:
    """What belongs to one queue alone."""

    ids: dict[str, str] = field(default_factory=dict[str, str])
    merged: dict[str, str] = field(default_factory=dict[str, str])
    last_tick: int | None = None
    grace_until: int = 0
    fence: int = 0


class Model:
    """All runs of some queues."""

    def __init__(self, now: int, queues: tuple[str, ...]) -> None:
        self.now = now
        self.queues = {name: Queue() for name in queues}
        self.runs: dict[Key, Run] = {}
        self.news: dict[Key, News] = {}

    # --- looking -----------------------------------------------------------------------------------------------

    def of(self, queue: str) -> list[Run]:
        return sorted((run for run in self.runs.values() if run.queue == queue), key=lambda run: run.run)

    def states(self, queue: str) -> dict[str, str]:
        """The state of every run that is kept."""
        free: dict[str, list[Run]] = {}
        found: dict[str, str] = {}
        occupied = {run.lock for run in self.of(queue) if run.lock and run.is_busy}
        for run in self.of(queue):
            if run.state != "waiting":
                if run.has_record:
                    found[run.run] = run.state
            elif run.needs or run.holder is not None:
                found[run.run] = "blocked"
            elif not run.is_due:
                found[run.run] = "scheduled"
            elif run.lock:
                free.setdefault(run.lock, []).append(run)
            else:
                found[run.run] = "pending"
        for lock, lane in free.items():
            first, *others = sorted(lane, key=lambda run: (run.place, run.run))
            found[first.run] = "blocked" if lock in occupied else "pending"
            found |= {run.run: "blocked" for run in others}
        return found

    def in_state(self, queue: str, state: str) -> list[Run]:
        """In the order of that index."""
        states = self.states(queue)
        found = [run for run in self.of(queue) if states.get(run.run) == state]
        if state == "scheduled":
            return sorted(found, key=lambda run: (run.due, run.priority, run.run))
        return sorted(found, key=lambda run: (run.place, run.run))

    def occupants(self, queue: str) -> dict[str, str]:
        """lock -> who has it."""
        states = self.states(queue)
        return {
            run.lock: run.run
            for run in self.of(queue)
            if run.lock and (run.is_busy or (run.state == "waiting" and states[run.run] == "pending"))
        }

    def kept(self, queue: str, name: str) -> Run | None:
        """The run that a handle means: also one that a follow-up became a part of."""
        found = self.runs.get((queue, name))
        if found is None or not found.has_record:
            found = self.runs.get((queue, self.queues[queue].merged.get(name, "")))
        return found if found is not None and found.has_record else None

    def unfinished(self, queue: str, id: str) -> Run | None:
        name = self.queues[queue].ids.get(id)
        if name is not None:
            found = self.runs.get((queue, name))
        else:
            found = self.kept(queue, id[:9])
            found = found if found is not None and found.id == id and not found.is_named else None
        return found if found is not None and found.is_unfinished else None

    # --- producers ---------------------------------------------------------------------------------------------

    def enqueue(self, queue: str, asked: Asked) -> tuple[str, Run | None]:
        """What becomes of a job: "made", with the run it waits for; or what is done to the unfinished run of its id."""
        holder = self.unfinished(queue, asked.id) if asked.id else None
        if holder is None:
            return ("untied" if asked.after else "made"), None
        if asked.flags == "-":
            return "in_use", holder
        if asked.after != (holder.after if holder.has_record else ()):
            return "after", holder
        if holder.is_busy:
            return "made", holder
        self._update(holder, asked)
        if holder.holder is not None:
            holder.flags += asked.flags
        return "updated", holder

    def make(self, queue: str, run: str, id: str, asked: Asked, holder: Run | None) -> Run:
        """The run that the store says it has made."""
        made = Run(
            queue=queue,
            run=run,
            id=id,
            is_named=bool(asked.id),
            priority=asked.priority,
            due=asked.due,
            data=asked.data,
            lock=asked.lock,
            after=asked.after,
            expires=asked.expires,
            deadline=asked.expires,
            max_stalls=asked.max_stalls,
            keeps_nothing=asked.keeps_nothing,
            is_due=asked.due <= self.now,
        )
        if holder is not None:
            made.holder, made.flags, holder.follower = holder, asked.flags, made
        if asked.id:
            self.queues[queue].ids[id] = run
        self.runs[made.key] = made
        return made

    def stands(self, queue: str, run: str, id: str) -> Run | None:
        """The parent that a name means."""
        found = self.kept(queue, run)
        return found if found is not None and found.id == id else None

    def tie(self, child: Run, parents: Mapping[str, tuple[Run, bool]]) -> None:
        """Ties a new run to those it comes after: name -> parent, and whether it may fail."""
        child.needs = {name: may_fail for name, (_, may_fail) in parents.items()}
        # It is visible only when it has heard how all of them stand.
        child.state = "unborn"
        for name, (parent, _) in parents.items():
            self.register(parent, child.key, name)
            if not parent.is_unfinished:
                self._deliver(child.key, name, parent.state)
        child.state = "waiting"
        if child.dooms:
            self._doom(child)

    def register(self, parent: Run, child: Key, name: str) -> None:
        """A completed run has delivered its outcome and nothing follows."""
        if parent.is_unfinished or parent.state != "completed":
            news = self.news.setdefault(parent.key, News())
            news.heirs.setdefault((child, name), 0 if parent.is_unfinished else news.number)

    def cancel(self, queue: str, name: str, reach: str) -> str:
        run = self.kept(queue, name)
        if run is None:
            return "missing"
        if run.state in FINISHED or (run.state == "processing" and reach == "waiting"):
            return run.state
        if run.state == "processing":
            run.is_stopping = True
            self._end(run, "cancelled")
            return "stopping"
        self._unfollow(run)
        self._end(run, "cancelled")
        return "cancelled"

    def delete(self, queue: str, name: str) -> str:
        run = self.kept(queue, name)
        if run is None:
            return "missing"
        if run.state == "processing":
            run.is_stopping, run.state = True, "cancelled"
            self._forget(run)
            return "stopping"
        if run.state == "waiting":
            self._unfollow(run)
            self._depart(run, "deleted")
        self._forget(run)
        return "deleted"

    def redrive(self, queue: str, name: str) -> str:
        run, ids = self.kept(queue, name), self.queues[queue].ids
        if run is None:
            return "missing"
        if run.state != "failed":
            return run.state
        newest = ids.get(run.id)
        other = self.runs.get((queue, newest or ""))
        if other is not None and other is not run and other.is_unfinished:
            return "in_use"
        if run.is_named:
            ids[run.id] = run.run
        else:
            ids.pop(run.id, None)
        run.state, run.due, run.is_due, run.claim = "waiting", self.now, True, UNCLAIMED
        run.failures = run.stalls = run.snoozes = run.handbacks = 0
        self._tell(run, "waiting")
        return "redriven"

    def purge_one(self, queue: str) -> int:
        for state in ("scheduled", "blocked", "pending"):
            for run in self.in_state(queue, state):
                return int(self.delete(queue, run.run) == "deleted")
        return 0

    # --- workers -----------------------------------------------------------------------------------------------

    def claim(self, queue: str, token: str, limit: int) -> list[Run]:
        self._keep_house(queue)
        taken = self.in_state(queue, "pending")[:limit]
        if taken:
            self.queues[queue].fence += 1
        for run in taken:
            run.state, run.claim = "processing", f"{self.queues[queue].fence}.{token}"
            run.lease, run.expires = self.now + LEASE_MS, None
            run.attempt += 1
        return taken

    def tick(self, queue: str) -> bool:
        state = self.queues[queue]
        last, state.last_tick = state.last_tick, self.now
        if last is not None and self.now - last > TICK_GAP_MS:
            state.grace_until = self.now + LEASE_MS
            return False
        return self.now >= state.grace_until

    def refusal(self, queue: str, name: str, claim: str) -> str | None:
        run = self.runs.get((queue, name))
        if run is None:
            return "missing"
        if run.claim != claim:
            return "lease_lost"
        if run.state == "processing":
            return None
        if run.state != "cancelled":
            return "already"
        if run.is_stopping:
            self._release(run)
        return "cancelled"

    def end(self, run: Run, verb: str, delay: int | None) -> None:
        """What a report of the run's owner does."""
        match verb:
            case "complete":
                self._end(run, "completed")
            case "give up":
                self._end(run, "cancelled")
            case "fail":
                run.failures += 1
                if delay is None:
                    self._end(run, "failed")
                else:
                    self._wait_again(run, self.now + delay)
            case "snooze":
                run.snoozes += 1
                self._wait_again(run, self.now + (delay or 0))
            case "return":
                run.handbacks += 1
                is_started = delay is None
                run.attempt -= 0 if is_started else 1
                self._wait_again(run, run.due)
                run.expires = None if is_started or run.attempt > 0 else run.deadline
            case _:
                self._stall(run)

    # --- couriers ----------------------------------------------------------------------------------------------

    def post(self, queue: str) -> None:
        while taken := [*self._takeable(queue)]:
            for key in taken:
                news = self.news[key]
                for child, name in news.untold:
                    self._deliver(child, name, news.outcome)
                    if news.outcome == "completed":
                        del news.heirs[child, name]
                    else:
                        news.heirs[child, name] = news.number
                self._settled(key)

    def take_and_die(self, queue: str) -> None:
        for key in [*self._takeable(queue)]:
            news = self.news[key]
            if news.untold:
                news.hold_until = self.now + 2_000
            else:
                self._settled(key)

    def _takeable(self, queue: str) -> Iterator[Key]:
        for key, news in self.news.items():
            if key[0] == queue and news.is_unsent and news.hold_until <= self.now:
                yield key

    def _settled(self, key: Key) -> None:
        news = self.news[key]
        news.is_unsent = False
        owner = self.runs.get(key)
        is_kept = (owner is not None and owner.has_record) or key[1] in self.queues[key[0]].merged
        if news.outcome == "completed" or not is_kept:
            del self.news[key]

    def _deliver(self, child: Key, name: str, outcome: str) -> None:
        run = self.runs.get(child)
        if run is None or not run.has_record or name not in run.needs:
            return
        if outcome == "completed" or (run.needs[name] and outcome != "waiting"):
            del run.needs[name]
            if name in run.dooms:
                run.dooms.remove(name)
                self._revive(run)
            if run.state == "waiting" and not run.needs:
                run.is_due = run.due <= self.now
        elif outcome == "waiting":
            run.dooms.discard(name)
            self._revive(run)
        else:
            run.dooms.add(name)
            if run.state == "waiting":
                self._doom(run)

    def _doom(self, run: Run) -> None:
        run.is_doomed = True
        self._end(run, "cancelled")

    def _revive(self, run: Run) -> None:
        newest = self.queues[run.queue].ids.get(run.id)
        if not run.is_doomed or run.dooms or newest != (run.run if run.is_named else None):
            return
        run.state, run.is_doomed, run.expires = "waiting", False, run.deadline
        run.is_due = run.due <= self.now
        self._tell(run, "waiting")

    def _tell(self, run: Run, outcome: str) -> None:
        for name in (run.run, *run.aliases):
            news = self.news.get((run.queue, name))
            if news is not None:
                news.outcome, news.is_unsent, news.hold_until = outcome, True, 0
                news.number += 1

    # --- within ------------------------------------------------------------------------------------------------

    def _keep_house(self, queue: str) -> None:
        may_reap = self.tick(queue)
        for run in self.in_state(queue, "scheduled"):
            run.is_due = run.is_due or run.due <= self.now
        for run in self.of(queue):
            if run.state == "waiting" and run.expires is not None and run.expires <= self.now:
                self._unfollow(run)
                self._end(run, "cancelled")
        if not may_reap:
            return
        for run in self.of(queue):
            if run.state == "processing" and run.lease <= self.now:
                run.claim = UNCLAIMED
                self._stall(run)
        for run in self.of(queue):
            if run.is_stopping and run.lease <= self.now:
                self._release(run)

    def _update(self, run: Run, asked: Asked) -> None:
        before = run.place, run.lock
        run.lock = asked.lock or run.lock
        if "c" in asked.flags or "k" in asked.flags:
            run.failures = run.stalls = 0
        if (
            "t" in asked.flags
            or ("l" in asked.flags and asked.due > run.due)
            or ("e" in asked.flags and asked.due < run.due)
        ):
            run.due = asked.due
        if "d" in asked.flags:
            run.data = asked.data
        if "s" in asked.flags:
            run.max_stalls = asked.max_stalls
        if "o" in asked.flags:
            run.priority, run.keeps_nothing = asked.priority, asked.keeps_nothing
            run.deadline = asked.expires
            run.expires = run.deadline if run.attempt == 0 else None
        if (run.place, run.lock) != before:
            run.is_due = run.due <= self.now

    def _wait_again(self, run: Run, due: int) -> None:
        run.state, run.due = "waiting", due
        follower = run.follower
        if follower is not None:
            flags = follower.flags
            run.lock = follower.lock or run.lock
            run.data = follower.data if "d" in flags else run.data
            run.max_stalls = follower.max_stalls if "s" in flags else run.max_stalls
            if "o" in flags:
                run.priority, run.keeps_nothing = follower.priority, follower.keeps_nothing
                run.deadline = follower.deadline
            if "t" in flags or "l" in flags:
                run.due = max(run.due, follower.due)
            if "c" in flags:
                run.failures = run.stalls = 0
            self._give_id(run, follower)
            run.follower = None
            run.aliases.append(follower.run)
            self.queues[run.queue].merged[follower.run] = run.run
            del self.runs[follower.key]
        run.is_due = run.due <= self.now

    def _give_id(self, holder: Run, follower: Run) -> None:
        """The id means the run before its follow-up again."""
        ids = self.queues[holder.queue].ids
        if ids.get(follower.id) == follower.run:
            del ids[follower.id]
            if holder.is_named:
                ids[follower.id] = holder.run

    def _unfollow(self, run: Run) -> None:
        if run.holder is not None:
            self._give_id(run.holder, run)
            run.holder.follower = run.holder = None

    def _stall(self, run: Run) -> None:
        run.stalls += 1
        if run.stalls > run.max_stalls:
            self._end(run, "failed")
        else:
            self._wait_again(run, run.due)

    def _end(self, run: Run, state: str) -> None:
        run.state, run.expires = state, None
        if not run.is_stopping:
            self._depart(run, state)
        if run.keeps_nothing:
            self._forget(run)

    def _depart(self, run: Run, outcome: str) -> None:
        self._tell(run, outcome)
        follower = run.follower
        if follower is not None:
            run.follower = follower.holder = None
            follower.is_due = follower.due <= self.now

    def _forget(self, run: Run) -> None:
        run.has_record = False
        if run.is_stopping:
            if not run.is_named:
                run.is_named = True
                self.queues[run.queue].ids.setdefault(run.id, run.run)
        else:
            self._erase(run)

    def _erase(self, run: Run) -> None:
        queue = self.queues[run.queue]
        del self.runs[run.key]
        if queue.ids.get(run.id) == run.run:
            del queue.ids[run.id]
        for name in (run.run, *run.aliases):
            queue.merged.pop(name, None)
            news = self.news.get((run.queue, name))
            if news is not None and not news.is_unsent:
                del self.news[run.queue, name]

    def _release(self, run: Run) -> None:
        run.is_stopping = False
        self._depart(run, "cancelled")
        if not run.has_record:
            self._erase(run)
