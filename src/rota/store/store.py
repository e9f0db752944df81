"""The write side: one method per transition, each of them one script call.

Every call may be sent again: an enqueue or a claim by the number it carries, a report by its claim, a rare call by
its token. The gateway relies on that.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections import deque
from collections.abc import Coroutine, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple, cast

from rota.core.codec import FIRST_ATTEMPT, decode_counts
from rota.core.job import Counts, JobRef, encode_runs, make_suffixes
from rota.store.gateway import Argument, Call, Gateway
from rota.store.keys import Keys
from rota.store.scripts import script

#: How long a claim lasts without a heartbeat. A killed worker's jobs run elsewhere after at most this, plus a moment.
LEASE_MS: Final = 4_500
#: Runs that one call may move: what keeps a script below 5 ms.
BATCH: Final = 500
#: Verb -> the same, where a run costs the server more than the 7 µs of one that is just enqueued, claimed or completed:
#: with a record, a line of history and an index written for each, 25 to 70 µs. A run that completes may free a lock or
#: have dependents. `benchmarks/scripts.py` measures it.
SLICES: Final[Mapping[str, int]] = {
    "complete": 125,
    "fail": 40,
    "snooze": 80,
    "return": 50,
    "reap": 40,
    "give_up": 40,
    "redrive": 40,
    "progress": 150,
    "sweep": 250,
}
#: Runs that a claim reaps, expires or promotes on its way (`housekeeping.lua`): then it is asked again at once.
CHORES: Final = 60
#: Waiting runs that a purge looks at in one call: the steps of workflows among them stay.
PURGE_LOOKS: Final = 2_000
#: Runs that one call deletes of a queue that is purged: each takes about 10 µs, and as much again where it is indexed.
PURGED: Final = 150
BATCH_BYTES: Final = 4 * 2**20
#: Id, priority, due and expiry of a new job of which there is nothing to say besides its record.
BARE: Final = ("", 0, "", "")
#: Tabs in the options of a job that names a lock, others that it comes after, or terms: those are the last parts.
TABS_OF_BONDS: Final = 5
#: Random parts of ids that are made at a time.
SUFFIXES: Final = 128


class NewJob(NamedTuple):
    """A job to be made. Moments: "" is now, "+250" is in 250 ms by the server's clock, else ms since 1970."""

    id: str
    priority: int
    due: str
    expiry: str
    body: bytes
    #: What to do where the id has an unfinished run: nothing, or letters of `core.same_id.Update`; behind a ! a token
    #: by which it is made once.
    flags: str = "-"

    @property
    def how(self) -> str:
        """What a call says of it besides its record, behind the random part of its id: nothing, for most."""
        if self[:4] == BARE:
            return ""
        name = f"{self.flags}={self.id}" if self.id else ""
        return f"\t{self.priority}\t{self.due}\t{self.expiry}\t{name}"


class Made(NamedTuple):
    """What became of a new job: its run ("made"), or the unfinished run of its id and what happened to that one.

    "updated", "in_use" (left alone), "again" (its token made that one before), or why it cannot be changed into the job
    asked for: "task", "after"; "untied": there is no such run any more, and the job comes after others.
    """

    id: str
    run: str
    outcome: str = "made"
    #: When it was made, ms; 0 where that is not known.
    at: int = 0

    @property
    def is_new(self) -> bool:
        """True when this call made the run."""
        return self.outcome == "made"


class Claimed(NamedTuple):
    """One run that a claim leased."""

    queue: str
    run: str
    claim: str
    counts: Counts
    record: bytes


class Claims(NamedTuple):
    """What a claim brought. `wait_ms` says when something falls due there; None when nothing will."""

    jobs: list[Claimed]
    wait_ms: int | None
    #: There is news for dependents that nobody is delivering.
    has_news: bool = False
    #: When the failures of the queue want to be looked at; None when there are none at all.
    failures_ms: int | None = None
    #: Runs that were taken from workers that vanished.
    vanished: tuple[str, ...] = ()


class Announced(NamedTuple):
    """What a worker hears that says it lives."""

    #: The server's time, ms.
    now: int
    #: What waits for somebody: "flows", "operations".
    due: Set[str]


class Completed(NamedTuple):
    """Report: the attempt succeeded. `rule` is how long it is kept, and behind a space its task."""

    run: str
    claim: str
    rule: str
    result: bytes


class Failed(NamedTuple):
    """Report: the attempt failed; `next_attempt` is a moment, or "final"."""

    run: str
    claim: str
    next_attempt: str
    rule: str
    error: bytes


class Snoozed(NamedTuple):
    """Report: the handler asked to be run at that moment."""

    run: str
    claim: str
    next_attempt: str


class Returned(NamedTuple):
    """Report: given back unfinished; `started` is "started" or "unstarted"."""

    run: str
    claim: str
    started: str


class Cancelled(NamedTuple):
    """Report: the handler itself asked to end as cancelled."""

    run: str
    claim: str
    reason: str


class Lost(NamedTuple):
    """Report: the process that ran it is dead."""

    run: str
    claim: str


Report = Completed | Failed | Snoozed | Returned | Cancelled | Lost
_VERBS: Final[dict[type, str]] = {
    Completed: "complete",
    Failed: "fail",
    Snoozed: "snooze",
    Returned: "return",
    Cancelled: "give_up",
    Lost: "reap",
}


class Store:
    """What can be done to jobs. `participant` names this client or worker in the server."""

    def __init__(self, gateway: Gateway, keys: Keys, participant: str) -> None:
        self.gateway = gateway
        self.keys = keys
        self.participant = participant
        self._doors: dict[str, _Door] = {}
        self._script_keys: dict[tuple[str, str], Sequence[str]] = {}

    # --- producers ---------------------------------------------------------------------------------------------

    def enqueue(self, queue: str, jobs: Sequence[NewJob]) -> Coroutine[Any, Any, list[Made]]:
        """Makes jobs. Calls made together travel together; each batch is stored as a whole or not at all."""
        door = self._doors.get(queue)
        if door is None:
            door = self._doors[queue] = _Door(self, queue)
        return door.enqueue(jobs)

    async def commit(self, queue: str, runs: Sequence[str]) -> list[str]:
        """Makes runs visible that were prepared (see `Ties`): "visible", "missing" or "in_use" for each."""
        answer: bytes = await self._rare("commit", queue, runs)
        return answer.decode().split(" ")

    async def cancel(self, ref: JobRef, *, reach: str = "any", reason: str = "") -> str:
        """Ends a run: "cancelled", "stopping" (its handler has been told), or why not.

        "missing", "processing" where that is out of reach, "ended" and how.
        """
        answer = await self._rare("cancel", ref.queue, [ref.id, ref.run or "", reach, reason])
        return answer.decode()

    async def update(
        self, ref: JobRef, *, seen: str, flags: str, priority: int, due: str, expiry: str, body: bytes
    ) -> str:
        """Changes a run that waits, or the arguments of a dead letter: "updated", or why not.

        "missing", "changed" since it was read (`seen` is its digest then), "processing", "ended" and how.
        """
        words: list[Argument] = [ref.id, ref.run or "", seen, flags, priority, due, expiry, body]
        answer = await self._rare("update", ref.queue, words)
        return answer.decode()

    async def delete(self, ref: JobRef) -> str:
        """Removes a run: "deleted", "stopping" (its handler has been told) or "missing"."""
        answer = await self._rare("delete", ref.queue, [ref.id, ref.run or ""])
        return answer.decode()

    async def redrive(self, queue: str, refs: Sequence[JobRef]) -> list[str]:
        """Gives dead letters another life; an outcome for each: "redriven", or why not."""
        outcomes: list[str] = []
        size = SLICES["redrive"]
        for start in range(0, len(refs), size):
            pairs = [word for ref in refs[start : start + size] for word in (ref.id, ref.run or "")]
            outcomes += (await self._rare("redrive", queue, pairs)).decode().split(" ")
        return outcomes

    async def purge(self, queue: str, limit: int = PURGED, *, newest: str = "") -> int:
        """Deletes up to `limit` waiting runs of the queue, none of them later than `newest`; says how many.

        Fewer at a time where they are tied to others; 0 when there are none left.
        """
        skip = "0"
        while True:
            answer = (await self._rare("purge", queue, [min(limit, PURGED), newest, PURGE_LOOKS, skip])).decode()
            if not answer.startswith("skip"):
                return int(answer)
            skip = answer.removeprefix("skip ")

    async def pause(self, queue: str, *, wanted: str) -> None:
        """Stops claims of the queue ("paused"), or lets them go on ("open")."""
        await self._run("pause", queue, [wanted])

    async def watch(self, ref: JobRef) -> tuple[str, bool] | None:
        """Asks to be told of a run's end: the run, and whether it has ended already. None if there is no such job."""
        keys = self.script_keys("watch", ref.queue)
        answer = await self.gateway.run("watch", keys, [ref.id, ref.run or "", self.participant])
        return (answer[0].decode(), answer[1] == b"ended") if len(answer) == 2 else None

    # --- workers -----------------------------------------------------------------------------------------------

    async def claim(self, queue: str, limit: int, *, call: int, token: str, lease_ms: int = LEASE_MS) -> Claims:
        """Leases up to `limit` runs to this participant. `call` must grow from one claim of the queue to the next."""
        request = self.claim_call(queue, limit, call=call, token=token, lease_ms=lease_ms)
        return read_claims(queue, token, await self.gateway.run(*request))

    def claim_call(
        self, queue: str, limit: int, *, call: int, token: str, next_token: str = "", lease_ms: int = LEASE_MS
    ) -> Call:
        """The same, to be sent along with reports; `read_claims` reads the answer.

        With `next_token` it leaves the claim after this one, for the case that it finds less than it asks for: then a
        job may come with a push, which `read_push` reads.
        """
        arguments: list[Argument] = [
            queue,
            self.keys.inbox_prefix,
            call,
            self.participant,
            token,
            min(limit, BATCH),
            lease_ms,
            CHORES,
            next_token,
        ]
        return Call("claim", self.script_keys("claim", queue), arguments)

    def report_calls(self, queue: str, reports: Sequence[Report]) -> list[tuple[Call, Sequence[Report]]]:
        """Calls that store these reports, each with the reports it carries, for `read_refusals`."""
        by_verb: dict[str, list[Report]] = {}
        for report in reports:
            by_verb.setdefault(_VERBS[type(report)], []).append(report)
        calls: list[tuple[Call, Sequence[Report]]] = []
        for verb, of_verb in by_verb.items():
            size = SLICES.get(verb, BATCH)
            for start in range(0, len(of_verb), size):
                part = of_verb[start : start + size]
                words: list[Argument] = [queue, self.keys.inbox_prefix]
                if verb == "complete":
                    part = _grouped(part, words)
                else:
                    for report in part:
                        words += report
                calls.append((Call(verb, self.script_keys(verb, queue), words), part))
        return calls

    async def report(self, queue: str, reports: Sequence[Report]) -> dict[str, str]:
        """Stores reports; run -> why, for each that was refused."""
        refused: dict[str, str] = {}
        calls = self.report_calls(queue, reports)
        for answer, (_, part) in zip(await self.gateway.run_many([call for call, _ in calls]), calls, strict=True):
            refused |= read_refusals(answer, part)
        return refused

    async def heartbeat(
        self, queue: str, held: Sequence[tuple[str, str]], *, lease_ms: int = LEASE_MS, is_aside: bool = False
    ) -> dict[str, str]:
        """Extends the leases of (run, claim) pairs; run -> "cancelled" | "lost" for handlers that must stop."""
        told: dict[str, str] = {}
        for start in range(0, max(1, len(held)), BATCH):
            part = held[start : start + BATCH]
            words: list[Argument] = [self.participant, lease_ms, *(word for pair in part for word in pair)]
            run = self.gateway.run_aside if is_aside else self.gateway.run
            answer = await run("heartbeat", self.script_keys("heartbeat", queue), words)
            told |= {part[int(answer[at])][0]: answer[at + 1].decode() for at in range(0, len(answer), 2)}
        return told

    async def progress(self, queue: str, items: Sequence[tuple[str, str, str, str, str]]) -> None:
        """Keeps progress: run, claim, done, total and note for each. What no longer owns its run is ignored."""
        await self.gateway.run(*self.progress_call(queue, items))

    def progress_call(self, queue: str, items: Sequence[tuple[str, str, str, str, str]]) -> Call:
        """The same, to be sent along with other calls."""
        return Call("progress", self.script_keys("progress", queue), [word for item in items for word in item])

    async def log(self, queue: str, run: str, claim: str, first: int, lines: Sequence[str]) -> bool:
        """Adds lines to a run's log, numbered from `first` within the claim; False if the claim is lost."""
        return await self.gateway.run(*self.log_call(queue, run, claim, first, lines)) == b"ok"

    def log_call(self, queue: str, run: str, claim: str, first: int, lines: Sequence[str]) -> Call:
        """The same, to be sent along with other calls."""
        return Call("log", self.script_keys("log", queue), [run, claim, first, *lines])

    async def leave(self, queue: str) -> None:
        """This worker leaves the queue for good: it is woken no more, and another one is if there is work."""
        await self._run("leave", queue, [self.participant])

    async def sweep(self, queue: str) -> bool:
        """Forgets finished runs whose time is over; True when there is more to do."""
        return await self.gateway.run("sweep", self.script_keys("sweep", queue), [SLICES["sweep"]]) == b"more"

    async def announce(self, info: str) -> Announced:
        """Says that this worker lives, and hears what nobody sees to, and whether it is to leave."""
        keys = [self.keys.shared(name) for name in script("announce").keys]
        now, *due = (await self.gateway.run("announce", keys, [self.participant, info])).decode().split()
        return Announced(int(now), frozenset(due))

    async def drain(self, worker: str) -> str:
        """Asks a worker to finish what it runs, and leave: "draining", "stopped" or "missing"."""
        keys = [self.keys.shared(name) for name in script("drain").keys]
        return (await self.gateway.run("drain", keys, [self.keys.inbox_prefix, worker])).decode()

    async def announce_tasks(self, tasks: dict[str, str]) -> None:
        """Publishes tasks' schemas and defaults, for producers that do not have the code."""
        words = [word for pair in tasks.items() for word in pair]
        if words:
            await self.gateway.command("HSET", self.keys.shared("tasks"), *words)

    async def announce_handlers(self, queue: str, handlers: dict[str, str], *, without: Sequence[str] = ()) -> None:
        """Says which tasks have a failure handler, with the options of its jobs, and which have none any more.

        From now on a run of theirs that fails for good makes such a job. It is kept until a worker says otherwise.
        """
        key = self.keys.queue(queue, "handlers")
        words = [word for pair in handlers.items() for word in pair]
        if words:
            await self.gateway.command("HSET", key, *words)
        if without:
            await self.gateway.command("HDEL", key, *without)

    async def enlist(self, wanted: Mapping[str, int]) -> dict[str, int]:
        """Lists queues, each with the number of shards asked for; and how many each has: 0 for none."""
        words: list[Argument] = [word for pair in wanted.items() for word in pair]
        keys = [self.keys.shared(key) for key in script("enlist").keys]
        answer = await self.gateway.run("enlist", keys, words)
        return dict(zip(wanted, map(int, answer), strict=True))

    async def register_queues(self, queues: Sequence[str]) -> None:
        """Adds to the names that `queue list` shows."""
        await self.gateway.command("SADD", self.keys.shared("queues"), *queues)

    def script_keys(self, name: str, queue: str, **parts: str) -> Sequence[str]:
        """The keys of a script in a queue's slot; `parts` fill the patterns of those there are many of."""
        if not parts and (known := self._script_keys.get((name, queue))):
            return known
        filled = {"calls": self.participant, **parts}
        keys = [self.keys.queue(queue, key, filled.get(key, "")) for key in script(name).keys]
        if not parts:
            self._script_keys[name, queue] = keys
        return keys

    # --- within ------------------------------------------------------------------------------------------------

    async def _run(self, name: str, queue: str, arguments: Sequence[Argument]) -> Any:
        return await self.gateway.run(name, self.script_keys(name, queue), [queue, self.keys.inbox_prefix, *arguments])

    async def _rare(self, name: str, queue: str, arguments: Sequence[Argument]) -> Any:
        keys = self.script_keys(name, queue, call=secrets.token_hex(8))
        return await self.gateway.run(name, keys, [queue, self.keys.inbox_prefix, *arguments])


def read_claims(queue: str, token: str, answer: list[bytes]) -> Claims:
    """What a claim's answer says."""
    fence, wait, said, runs, counts = (text.decode() for text in answer[:5])
    claim = f"{fence}.{token}"
    each_counts = map(decode_counts, counts.split(",")) if counts else itertools.repeat(FIRST_ATTEMPT)
    jobs = [
        Claimed(queue, run, claim, of_run, record)
        for run, of_run, record in zip(runs.split(), each_counts, answer[5:], strict=False)
    ]
    words = said.split()
    failures = next((int(word.removeprefix("fail:")) for word in words if word.startswith("fail:")), None)
    vanished = next((word.removeprefix("vanished:").split(",") for word in words if word.startswith("vanished:")), ())
    return Claims(jobs, int(wait) if wait else None, "outbox" in words, failures, tuple(vanished))


def read_push(message: bytes) -> tuple[int, Claimed]:
    """What a push says that brings a job: the number of the claim that was carried out, and the job."""
    head, _, record = message.partition(b"\n")
    _, queue, call, claim, run, counts = head.decode().split(" ", 5)
    return int(call), Claimed(queue, run, claim, decode_counts(counts), record)


def _grouped(reports: Sequence[Report], words: list[Argument]) -> list[Report]:
    """Puts completed runs into words, those of one claim and rule together; the reports in the order of the words."""
    groups: dict[tuple[str, str], list[Completed]] = {}
    for report in cast("Sequence[Completed]", reports):
        groups.setdefault((report.claim, report.rule), []).append(report)
    for (claim, rule), group in groups.items():
        results = [report.result for report in group]
        has_results = any(results)
        words += (claim, rule, len(group), "results" if has_results else "", *(report.run for report in group))
        if has_results:
            words += results
    return [report for group in groups.values() for report in group]


def read_refusals(answer: list[bytes], reports: Sequence[Report]) -> dict[str, str]:
    """run -> why, for each report that was refused."""
    return {reports[int(answer[at])].run: answer[at + 1].decode() for at in range(0, len(answer), 2)}


class _Asked:
    """One caller's jobs on their way through a door: how many have left, and what became of each so far."""

    __slots__ = ("error", "future", "jobs", "left", "made")

    def __init__(self, jobs: Sequence[NewJob]) -> None:
        self.jobs = jobs
        self.left = 0
        self.made: list[Made] = []
        self.error: Exception | None = None
        #: For a caller who waits while another one's jobs are under way.
        self.future: asyncio.Future[None] | None = None

    @property
    def is_answered(self) -> bool:
        return self.error is not None or len(self.made) == len(self.jobs)

    def tell(self) -> None:
        if self.future is not None and not self.future.done() and self.is_answered:
            self.future.set_result(None)


class _Load(NamedTuple):
    """What one call carries: parts of what callers asked for, and the script and the words that say it."""

    parts: list[tuple[_Asked, Sequence[NewJob]]]
    suffixes: list[str]
    script: str
    words: list[Argument]


class _Door:
    """Through which new jobs enter one queue.

    One call is under way at a time, so that jobs are made in the order in which they were asked for; what is asked
    for meanwhile leaves together with the next. Calls are numbered: that is what lets the server recognise one that
    is sent again. Whoever finds nobody under way sends his jobs himself and at once: a task of its own would cost more
    than all the rest of it.
    """

    def __init__(self, store: Store, queue: str) -> None:
        self._store = store
        self._queue = queue
        self._keys = {name: store.script_keys(name, queue) for name in ("enqueue", "enqueue_plain")}
        self._waiting: deque[_Asked] = deque()
        self._suffixes: list[str] = []
        self._number = 0
        self._is_busy = False
        self._sending: asyncio.Task[None] | None = None

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Made]:
        if not jobs:
            return []
        asked = _Asked(jobs)
        self._waiting.append(asked)
        if not self._is_busy:
            self._is_busy = True
            load = self._next_load()
            try:
                await self._send(load)
            except asyncio.CancelledError:
                # The call may have reached the server, and it may carry the jobs of others: it is sent again.
                self._sending = asyncio.create_task(self._send_all(load))
                raise
            self._go_on()
        if not asked.is_answered:
            asked.future = asyncio.get_running_loop().create_future()
            await asked.future
        if asked.error is not None:
            raise asked.error
        return asked.made

    def _go_on(self) -> None:
        if self._waiting:
            self._sending = asyncio.create_task(self._send_all(self._next_load()))
        else:
            self._is_busy = False

    async def _send_all(self, load: _Load) -> None:
        await self._send(load)
        while self._waiting:
            await self._send(self._next_load())
        self._is_busy = False

    async def _send(self, load: _Load) -> None:
        try:
            answer = await self._store.gateway.run(load.script, self._keys[load.script], load.words)
            _answer(load, answer)
        except Exception as error:
            # Whatever it is, it is the callers' to hear; those who come after them get their own try.
            for asked, _ in load.parts:
                asked.error = error
                asked.left = len(asked.jobs)
            if self._waiting and self._waiting[0].error is not None:
                self._waiting.popleft()
        for asked, _ in load.parts:
            asked.tell()

    def _next_load(self) -> _Load:
        parts = self._take_parts()
        jobs = parts[0][1] if len(parts) == 1 else [job for _, of_asked in parts for job in of_asked]
        suffixes = self._take_suffixes(len(jobs))
        self._number += 1
        words: list[Argument] = [self._queue, self._store.keys.inbox_prefix, self._number]
        lines = _lines_in_common(jobs)
        if lines is None:
            for suffix, job in zip(suffixes, jobs, strict=True):
                words += (suffix + job.how, job.body)
            return _Load(parts, suffixes, "enqueue", words)
        words.append(lines)
        start = len(lines)
        for suffix, job in zip(suffixes, jobs, strict=True):
            words += (suffix, job.body[start:])
        return _Load(parts, suffixes, "enqueue_plain", words)

    def _take_parts(self) -> list[tuple[_Asked, Sequence[NewJob]]]:
        """What is asked for, in turn, as far as one call can carry it."""
        parts: list[tuple[_Asked, Sequence[NewJob]]] = []
        count = size = 0
        while self._waiting and count < BATCH and size < BATCH_BYTES:
            asked = self._waiting[0]
            start = asked.left
            for job in asked.jobs[start : start + BATCH - count]:
                size += len(job.body)
                if count and size > BATCH_BYTES:
                    break
                count += 1
                asked.left += 1
            is_whole = asked.left == len(asked.jobs)
            if is_whole:
                self._waiting.popleft()
            parts.append((asked, asked.jobs if is_whole and not start else asked.jobs[start : asked.left]))
        return parts

    def _take_suffixes(self, count: int) -> list[str]:
        """Made in stock: asking the system for random bytes costs as much for many as for one."""
        if len(self._suffixes) < count:
            self._suffixes = make_suffixes(secrets.token_bytes(8 * max(SUFFIXES, count)))
        taken = self._suffixes[-count:]
        del self._suffixes[-count:]
        return taken


def _lines_in_common(jobs: Sequence[NewJob]) -> bytes | None:
    """Options and task of jobs that share them, and have nothing else to say but arguments; None if that is not so."""
    body = jobs[0].body
    lines = body[: body.index(b"\n", body.index(b"\n") + 1) + 1]
    if lines.count(b"\t") >= TABS_OF_BONDS:
        return None
    for job in jobs:
        if job[:4] != BARE or not job.body.startswith(lines):
            return None
    return lines


def _answer(load: _Load, answer: bytes) -> None:
    made, _, changed = answer.partition(b"\n")
    before, _, now = made.partition(b" ")
    number, at = int(before or 0), int(now or 0)
    others = _others(changed.decode()) if changed else {}
    runs = iter(encode_runs(number + 1, len(load.suffixes)))
    place = 0
    for asked, jobs in load.parts:
        for job in jobs:
            if place in others:
                outcome, holder = others[place]
                asked.made.append(Made(job.id, holder, outcome))
            else:
                run = next(runs)
                asked.made.append(Made(job.id or f"{run}-{load.suffixes[place]}", run, "made", at))
            place += 1


def _others(lines: str) -> dict[int, list[str]]:
    """Places of jobs that made no run, with the outcome of each and the run that it is about."""
    words = lines.split("\n")
    return {int(words[at]): words[at + 1].split(" ") for at in range(0, len(words), 2)}
