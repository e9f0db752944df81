"""The runner processes of a worker: starts them, hands them jobs, replaces those that die or are retired.

A runner's death is noticed at once, by the end of its pipe. Which runner takes a job follows from the task's `run_in`:
`process` jobs get a runner of their own, the others share the loop runners.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from rota.errors import ConfigurationError
from rota.worker.flights import Flight
from rota.worker.guardian import Guardian
from rota.worker.processes import kill_group, kill_tree, rss_bytes
from rota.worker.wire import Broken, Ears, FromRunner, Hello, Lag, Outcome, Quit, ToRunner, decode_from_runner, frame

logger = logging.getLogger("rota.worker")

#: When a runner could not start, none is started for this long.
RESTART_PAUSE_S: Final = 1.0
START_TIMEOUT_S: Final = 60.0
#: So many rounds of runners that could not start, one after the other, and the worker gives up. That is ten seconds and
#: more: a deployment that replaces the files one by one is done by then.
MAX_FAILED_ROUNDS: Final = 10
#: What a dead runner said before its death is read for no longer than this.
LAST_WORDS_S: Final = 0.2
_PIPE_BYTES: Final = 2**20
#: Format and level.
LogSetup = tuple[str, str]


class RunnerProcess:
    """One child process and the jobs it has."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        #: What it runs, by the numbers under which it knows them.
        self.flights: dict[int, Flight] = {}
        self.done = 0
        self.is_ready = False
        self.is_retired = False
        self.has_ended = False
        #: Set when it is ready, or has ended without getting there.
        self.is_decided = asyncio.Event()
        self.is_gone = asyncio.Event()
        self.is_quitting = False
        #: Those started between two failures belong to one round, and fail for one reason.
        self.round = 0
        self.lag_ms = 0
        self.facts: dict[str, Any] = {}
        self.broken = ""
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.ReadTransport | None = None
        self._writer: asyncio.WriteTransport | None = None
        self._sink = -1
        self.is_doomed = False
        #: What the process ended with; None while it lives, and where it never did.
        self.exit_code: int | None = None
        #: It did not die by itself.
        self.was_killed = False
        self._outbox: list[ToRunner] = []

    @property
    def is_usable(self) -> bool:
        """It may be given jobs."""
        return not (self.is_retired or self.has_ended)

    def is_less_busy_than(self, other: RunnerProcess) -> bool:
        """It has fewer jobs, or is there already to take one."""
        if self.is_ready != other.is_ready:
            return self.is_ready
        return len(self.flights) < len(other.flights)

    @property
    def pid(self) -> int:
        """The process's id; 0 before it has started."""
        return self._process.pid if self._process is not None else 0

    @property
    def group(self) -> int:
        """The process group that it leads, with what its handlers start; 0 where there is none."""
        return self._process.pid if self._process is not None else 0

    async def start(self, app: str, ears: Ears[FromRunner], *, measures_lag: bool, log: LogSetup | None) -> None:
        """Starts the process; the ears hear what it says."""
        loop = asyncio.get_running_loop()
        to_child, from_parent = os.pipe()
        to_parent, from_child = os.pipe()
        _widen(from_parent, from_child)
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "rota.worker.runner", app, self.kind, str(to_child), str(from_child),
                "lag" if measures_lag else "-", *(log or ()),
                pass_fds=(to_child, from_child), stdin=asyncio.subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(to_child)
            os.close(from_child)
        self._reader, _ = await loop.connect_read_pipe(lambda: ears, os.fdopen(to_parent, "rb", buffering=0))
        self._writer, _ = await loop.connect_write_pipe(asyncio.Protocol, os.fdopen(from_parent, "wb", buffering=0))
        self._sink = from_parent
        if self.is_doomed:
            self.kill()
        else:
            self.flush()

    def say(self, message: ToRunner) -> None:
        """Sends soon: what is said in one turn of the loop travels together."""
        self._outbox.append(message)
        if len(self._outbox) == 1 and self._writer is not None:
            asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        """Sends what was said, now. What the pipe does not take is sent when it does."""
        writer = self._writer
        if not self._outbox or writer is None:
            return
        messages, self._outbox = self._outbox, []
        if writer.is_closing():
            return
        data, written = frame(messages), 0
        if not writer.get_write_buffer_size():
            # The loop would get to it at the end of its turn.
            with suppress(OSError):  # full, or closed: the transport finds out
                written = os.write(self._sink, data)
        if written < len(data):
            writer.write(data[written:])

    def kill(self) -> None:
        """Ends the process and everything it started, now, or as soon as it has started."""
        self.is_doomed = True
        if self._process is None:
            return
        if self.is_ready and self._process.returncode is None:
            kill_tree(self._process.pid)
        else:
            # One that is still starting has no descendants to be looked for; and stopping it first, as that takes,
            # would leave it so for ever if this process died in between: it may not have asked yet to die with us.
            kill_group(self._process.pid)

    def quit(self) -> None:
        """Asks it to leave; it has nothing to do any more."""
        self.is_quitting = True
        self.say(Quit())

    async def wait(self) -> int:
        """Until it has ended; its exit code."""
        assert self._process is not None
        return await self._process.wait()

    def close(self) -> None:
        """Closes the pipes."""
        for transport in (self._reader, self._writer):
            if transport is not None:
                transport.close()


class Pool:
    """All runners of a worker. `on_messages` and `on_death` are told what they say, and when one is gone."""

    def __init__(
        self,
        app: str,
        *,
        loops: int,
        measures_lag: bool,
        log: LogSetup | None = None,
        max_jobs: int | None,
        max_rss_mb: int | None,
        on_messages: Callable[[RunnerProcess, list[FromRunner]], None],
        on_death: Callable[[RunnerProcess], None],
        on_broken: Callable[[str], None],
        make_runner: Callable[[str], RunnerProcess] = RunnerProcess,
    ) -> None:
        self._app = app
        self._loops = loops
        self._measures_lag = measures_lag
        self._log = log
        self._max_jobs = max_jobs
        self._max_rss = max_rss_mb * 2**20 if max_rss_mb else None
        #: Runners are renewed when they have served long enough.
        self.wears_out = max_jobs is not None or max_rss_mb is not None
        self._on_messages = on_messages
        self._on_death = on_death
        self._on_broken = on_broken
        self._make_runner = make_runner
        #: No runner is to be started any more.
        self.is_closing = False
        self._has_started = False
        self._start_from = 0.0
        self._round = 0
        self._failed_rounds = 0
        self._guardian = Guardian()
        self._tending: set[asyncio.Task[None]] = set()
        self.runners: list[RunnerProcess] = []

    async def start(self) -> dict[str, Any]:
        """Starts the loop runners, and returns what the first says of the program. Raises ConfigurationError."""
        for _ in range(self._loops):
            self._spawn("loop")
        first = self.runners[0]
        with suppress(TimeoutError):
            async with asyncio.timeout(START_TIMEOUT_S):
                await first.is_decided.wait()
        if not first.is_ready:
            raise ConfigurationError(first.broken or f"{self._app} did not start within {START_TIMEOUT_S:.0f} s")
        self._has_started = True
        return first.facts

    @property
    def is_starting(self) -> bool:
        """A loop runner is on its way that jobs will be given to."""
        return any(r.kind == "loop" and r.is_usable and not r.is_ready for r in self.runners)

    def runner_for(self, kind: str) -> RunnerProcess:
        """Who takes the next job: the least busy loop runner, or an idle process runner, started if need be."""
        if kind == "process":
            idle = (r for r in self.runners if r.kind == "process" and r.is_usable and not r.flights)
            return next(idle, None) or self._spawn("process")
        best: RunnerProcess | None = None
        for runner in self.runners:
            if runner.kind == "loop" and runner.is_usable and (best is None or runner.is_less_busy_than(best)):
                best = runner
        return best or self._spawn("loop")

    def flush(self) -> None:
        """Sends what runners were told in this turn of the loop, now."""
        for runner in self.runners:
            runner.flush()

    def retire(self, runner: RunnerProcess) -> None:
        """Gives it no more jobs, and puts another in its place. It leaves when it has none left."""
        if runner.is_retired or runner.has_ended:
            return
        runner.is_retired = True
        if runner.kind == "loop" and not self.is_closing:
            self._spawn("loop")
        self.dismiss_if_done(runner)

    def dismiss_if_done(self, runner: RunnerProcess) -> None:
        """A runner that is retired, or has served long enough, leaves when it has no jobs."""
        if not runner.is_retired and self._is_worn(runner):
            logger.info("recycling runner %d after %d jobs", runner.pid, runner.done)
            self.retire(runner)
        elif runner.is_retired and not runner.flights and not runner.has_ended and not runner.is_quitting:
            runner.quit()

    def _is_worn(self, runner: RunnerProcess) -> bool:
        if self._max_jobs is not None and runner.done >= self._max_jobs:
            return True
        # Reading the memory costs a system call or three: every 20th job is often enough.
        return self._max_rss is not None and runner.done % 20 == 0 and rss_bytes(runner.pid) > self._max_rss

    async def close(self) -> None:
        """Ends all of them: asks first, and kills what has not gone a moment later."""
        self.is_closing = True
        for runner in self.runners:
            runner.quit()
        waiting = [asyncio.create_task(runner.is_gone.wait()) for runner in self.runners]
        if waiting:
            _, slow = await asyncio.wait(waiting, timeout=2.0)
            if slow:
                for runner in self.runners:
                    runner.kill()
                await asyncio.wait(slow)
        if self._tending:
            await asyncio.wait(self._tending)
        self._guardian.close()

    def kill_all(self) -> None:
        """Ends all of them now, whatever they are doing."""
        self.is_closing = True
        for runner in self.runners:
            runner.kill()

    def kill_busy(self) -> None:
        """Ends those that have jobs, now; the others, and whoever takes the place of the dead, go on."""
        for runner in self.runners:
            if runner.flights:
                runner.kill()

    def _spawn(self, kind: str) -> RunnerProcess:
        runner = self._make_runner(kind)
        self.runners.append(runner)
        task = asyncio.create_task(self._tend(runner), name=f"rota-runner-{kind}")
        self._tending.add(task)
        task.add_done_callback(self._tending.discard)
        return runner

    async def _tend(self, runner: RunnerProcess) -> None:
        """Listens to a runner for as long as it lives, and replaces it if it should not have died."""
        await asyncio.sleep(max(0.0, self._start_from - asyncio.get_running_loop().time()))
        runner.round = self._round
        hung_up = asyncio.Event()
        ears = Ears(decode_from_runner, partial(self._hear, runner), hung_up.set)
        try:
            await runner.start(self._app, ears, measures_lag=self._measures_lag, log=self._log)
        except OSError as error:
            runner.broken = f"no process could be started: {error}"
        else:
            self._tell_guardian()
            asyncio.get_running_loop().call_later(START_TIMEOUT_S, self._kill_unless_ready, runner)
            runner.exit_code = await self._until_dead(runner, hung_up)
        runner.close()
        runner.has_ended = True
        self.runners.remove(runner)
        self._tell_guardian()
        runner.is_decided.set()
        runner.is_gone.set()
        if not (self.is_closing or runner.is_quitting or runner.is_retired):
            logger.warning(
                "runner %d died (exit code %s)%s",
                runner.pid, runner.exit_code, f": {runner.broken}" if runner.broken else "",
            )  # fmt: skip
        if not runner.is_ready:
            # Whatever the reason, the next one would fare no better at once, however many jobs ask for it.
            self._start_from = asyncio.get_running_loop().time() + RESTART_PAUSE_S
            if runner.broken or not runner.was_killed:  # else it was for a job that is to be stopped
                self._count_failure(runner)
        self._on_death(runner)
        # Before the worker has started, one that cannot start is a mistake to be told, not to be tried again.
        loops = [r for r in self.runners if r.kind == "loop" and not r.is_retired]
        if runner.kind == "loop" and len(loops) < self._loops and self._may_start:
            self._spawn("loop")

    @property
    def _may_start(self) -> bool:
        return self._has_started and not self.is_closing and self._failed_rounds < MAX_FAILED_ROUNDS

    def _count_failure(self, runner: RunnerProcess) -> None:
        """The program may have been changed under the worker, and not start any more: that shall not go on for ever."""
        if runner.round != self._round or not self._may_start:
            return
        self._round += 1
        self._failed_rounds += 1
        if self._failed_rounds == MAX_FAILED_ROUNDS:
            self._on_broken(runner.broken or "its runners die while they start")

    def _tell_guardian(self) -> None:
        self._guardian.watch([runner.group for runner in self.runners if runner.group and not runner.has_ended])

    async def _until_dead(self, runner: RunnerProcess, hung_up: asyncio.Event) -> int:
        """Until its pipe is closed, and sees to it that it is dead then; its exit code.

        Something that a handler started may keep the pipe open after the runner's death, so that is watched as well.
        """
        dying = asyncio.create_task(runner.wait())
        listening = asyncio.create_task(hung_up.wait())
        await asyncio.wait((dying, listening), return_when=asyncio.FIRST_COMPLETED)
        # What it said before it died is in the pipe, and is heard.
        await asyncio.wait((listening,), timeout=LAST_WORDS_S)
        listening.cancel()
        runner.was_killed = runner.is_doomed
        # What it started must not outlive it.
        runner.kill()
        return await dying

    def _hear(self, runner: RunnerProcess, messages: list[FromRunner]) -> None:
        for message in messages:
            if isinstance(message, Outcome):
                continue
            if isinstance(message, Hello):
                runner.facts, runner.is_ready = message.facts, True
                self._failed_rounds = 0
                runner.is_decided.set()
            elif isinstance(message, Broken):
                runner.broken = message.reason
            elif isinstance(message, Lag):
                runner.lag_ms = message.ms
        self._on_messages(runner, messages)

    def _kill_unless_ready(self, runner: RunnerProcess) -> None:
        if not runner.is_ready and not runner.has_ended:
            runner.broken = runner.broken or f"it did not start within {START_TIMEOUT_S:.0f} s"
            runner.kill()


def _widen(*descriptors: int) -> None:
    """Larger pipes, where the system allows: a batch of jobs passes in one go."""
    if sys.platform == "linux":
        import fcntl

        for descriptor in descriptors:
            with suppress(OSError):
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
