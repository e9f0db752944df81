"""How new jobs enter a queue: what is asked for at the same time travels together, in the order it was asked for."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from rota.core.job import encode_runs, make_suffixes
from rota.store.bounds import BATCH, BATCH_BYTES
from rota.store.gateway import Argument, Gateway

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


class Door:
    """Through which new jobs enter one queue.

    One call is under way at a time, so that jobs are made in the order in which they were asked for; what is asked
    for meanwhile leaves together with the next. Calls are numbered: that is what lets the server recognise one that
    is sent again. Whoever finds nobody under way sends his jobs himself and at once: a task of its own would cost more
    than all the rest of it.
    """

    def __init__(self, gateway: Gateway, queue: str, inbox: str, keys: Mapping[str, Sequence[str]]) -> None:
        self._gateway = gateway
        self._queue = queue
        self._inbox = inbox
        #: Script -> its keys.
        self._keys = keys
        self._waiting: deque[_Asked] = deque()
        self._suffixes: list[str] = []
        self._number = 0
        self._is_busy = False
        self._sending: asyncio.Task[None] | None = None

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Made]:
        """Makes jobs, together with those of others who ask meanwhile."""
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
            answer = await self._gateway.run(load.script, self._keys[load.script], load.words)
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
        words: list[Argument] = [self._queue, self._inbox, self._number]
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
