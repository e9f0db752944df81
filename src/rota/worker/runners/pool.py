"""The runner processes of a worker: starts them, chooses one for a job, replaces those that die or are retired.

A runner's death is noticed at once, by the end of its pipe. Which runner takes a job follows from the task's `run_in`:
`process` jobs get a runner of their own, the others share the loop runners. Jobs whose process has died get "isolated"
loop runners, so that a job that crashes its process does not take others down again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from rota.core.explain import format_count
from rota.errors import ConfigurationError
from rota.worker.runners.kill_handler_subprocesses_if_supervisor_dies import OrphanKiller
from rota.worker.runners.measure_and_kill_process_trees import kill_group, kill_tree, rss_bytes
from rota.worker.runners.protocol import (
    AppDescription,
    AttemptEnded,
    FrameReader,
    FromRunner,
    LoopLag,
    Quit,
    RunnerFailed,
    RunnerReady,
    ToRunner,
    decode_from_runner,
    frame,
)
from rota.worker.running_jobs import RunningJob

logger = logging.getLogger("rota.worker")

#: When a runner could not start, none is started for this long.
RESTART_PAUSE_S: Final = 1.0
START_TIMEOUT_S: Final = 60.0
#: After so many rounds of runners that could not start, one after the other, the worker stops. That takes ten seconds
#: or more: a deployment that replaces the files one by one is done by then.
MAX_FAILED_ROUNDS: Final = 10
#: With so many runners for jobs whose process has died, no more are started: each has the memory of a whole program.
MAX_ISOLATED: Final = 16
#: The messages that a dead runner sent before its death are read for no longer than this.
LAST_MESSAGES_S: Final = 0.2
#: A runner that has run this share of its jobs, or uses this share of its memory, gets a successor.
NEARLY: Final = 0.8
#: How long a runner that exits has to clean up what its lifespan and its providers opened.
CLEANUP_S: Final = 10.0
_PIPE_BYTES: Final = 2**20
#: Format and level.
LogSetup = tuple[str, str]


class PoolListener(Protocol):
    """Handles the events of runners: the `Dispatcher`."""

    def on_messages(self, runner: RunnerProcess, messages: list[FromRunner]) -> None:
        """A runner has sent messages."""
        ...

    def on_exit(self, runner: RunnerProcess) -> None:
        """A runner has ended, and with it every handler that it ran."""
        ...


class RunnerProcess:
    """One child process and the jobs it runs."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        #: By the attempt id in its messages.
        self.jobs: dict[int, RunningJob] = {}
        self.done = 0
        self.is_ready = False
        self.is_retired = False
        self.has_ended = False
        #: Set when it is ready, or has ended without becoming so.
        self.is_decided = asyncio.Event()
        self.is_gone = asyncio.Event()
        self.is_quitting = False
        #: Runners started between two failures belong to one round: they fail for one reason.
        self.round = 0
        self.lag_ms = 0
        #: The attempt that blocks its event loop, if that is known.
        self.blocked_by: int | None = None
        #: How often the processes of its jobs have died, if it is an isolated one.
        self.crashes = 0
        self.app = AppDescription()
        #: Why it cannot run jobs; "" if it can.
        self.failure = ""
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.ReadTransport | None = None
        self._writer: asyncio.WriteTransport | None = None
        self._write_descriptor = -1
        self.is_kill_requested = False
        #: None while the process lives, and if it never did.
        self.exit_code: int | None = None
        #: The process did not end by itself.
        self.was_killed = False
        self._outbox: list[ToRunner] = []

    @property
    def is_usable(self) -> bool:
        """It may get jobs."""
        return not (self.is_retired or self.has_ended)

    def is_less_busy_than(self, other: RunnerProcess) -> bool:
        """True when it has fewer jobs, or is ready and the other is not."""
        if self.is_ready != other.is_ready:
            return self.is_ready
        return len(self.jobs) < len(other.jobs)

    @property
    def what_happened(self) -> str:
        """How the process ended, after "the process": killed by a signal, or with an exit code."""
        code = self.exit_code or 0
        if code >= 0:
            return f"exited with code {code}"
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"

    @property
    def pid(self) -> int:
        """The process's id; 0 before it has started."""
        return self._process.pid if self._process is not None else 0

    @property
    def group(self) -> int:
        """The process group that it leads, with the processes its handlers start; 0 if there is none."""
        return self._process.pid if self._process is not None else 0

    async def start(
        self, app: str, reader: FrameReader[FromRunner], *, measures_lag: bool, log: LogSetup | None
    ) -> None:
        """Starts the process and reads its messages."""
        loop = asyncio.get_running_loop()
        to_child, from_parent = os.pipe()
        to_parent, from_child = os.pipe()
        _widen(from_parent, from_child)
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "rota.worker.runners.runner_process",
                app,
                self.kind,
                str(to_child),
                str(from_child),
                "lag" if measures_lag else "-",
                *(log or ()),
                pass_fds=(to_child, from_child),
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except BaseException:
            os.close(to_parent)
            os.close(from_parent)
            raise
        finally:
            os.close(to_child)
            os.close(from_child)
        self._reader, _ = await loop.connect_read_pipe(lambda: reader, os.fdopen(to_parent, "rb", buffering=0))
        self._writer, _ = await loop.connect_write_pipe(asyncio.Protocol, os.fdopen(from_parent, "wb", buffering=0))
        self._write_descriptor = from_parent
        if self.is_kill_requested:
            self.kill()
        else:
            self.flush()

    def send(self, message: ToRunner) -> None:
        """Sends a message soon: the messages of one turn of the loop share a frame."""
        self._outbox.append(message)
        if len(self._outbox) == 1 and self._writer is not None:
            asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        """Sends the messages now. What the pipe does not take is sent when it does."""
        writer = self._writer
        if not self._outbox or writer is None:
            return
        messages, self._outbox = self._outbox, []
        if writer.is_closing():
            return
        data, written = frame(messages), 0
        if not writer.get_write_buffer_size():
            # The transport would write at the end of the loop's turn.
            with suppress(OSError):  # full, or closed: the transport finds out
                written = os.write(self._write_descriptor, data)
        if written < len(data):
            writer.write(data[written:])

    def kill(self) -> None:
        """Ends the process and everything it started, now, or as soon as it has started."""
        self.is_kill_requested = True
        if self._process is None:
            return
        if self.is_ready and self._process.returncode is None:
            kill_tree(self._process.pid)
        else:
            # A process that is still starting has no descendants to look for. `kill_tree` would also stop it first, and
            # leave it stopped if this process died in between: it may not have set its parent-death signal yet.
            kill_group(self._process.pid)

    def quit(self) -> None:
        """Asks it to exit; it has no more jobs."""
        self.is_quitting = True
        self.send(Quit())

    async def wait(self) -> int:
        """Waits until the process has ended; returns its exit code."""
        assert self._process is not None
        return await self._process.wait()

    def close(self) -> None:
        """Closes the pipes."""
        for transport in (self._reader, self._writer):
            if transport is not None:
                transport.close()


class Pool:
    """All runners of a worker."""

    def __init__(
        self,
        app: str,
        *,
        loops: int,
        measures_lag: bool,
        log: LogSetup | None = None,
        max_jobs: int | None,
        max_rss_mb: int | None,
        make_runner: Callable[[str], RunnerProcess] = RunnerProcess,
    ) -> None:
        self.app = app
        self._loops = loops
        self._measures_lag = measures_lag
        self._log = log
        self._max_jobs = max_jobs
        self._max_rss = max_rss_mb * 2**20 if max_rss_mb else None
        #: Runners are replaced when they have run enough jobs, or use too much memory.
        self.wears_out = max_jobs is not None or max_rss_mb is not None
        self._make_runner = make_runner
        #: Set once, when the supervisor is built from what `start` returned. Before, no runner has a job.
        self.listener: PoolListener | None = None
        #: Set when runners cannot be started any more; then `failure` is the reason.
        self.has_failed = asyncio.Event()
        self.failure = ""
        #: How many runners have ended, by kind and how: died, or renewed.
        self.exits: Counter[tuple[str, str]] = Counter()
        #: No more runners are started.
        self.is_closing = False
        self._has_started = False
        self._start_from = 0.0
        self._round = 0
        self._failed_rounds = 0
        self._orphan_killer = OrphanKiller()
        self._watching: set[asyncio.Task[None]] = set()
        self.runners: list[RunnerProcess] = []

    async def start(self) -> AppDescription:
        """Starts the loop runners; returns the description of the program that the first one sends.

        Raises ConfigurationError when the program cannot be loaded.
        """
        for _ in range(self._loops):
            self._spawn("loop")
        first = self.runners[0]
        with suppress(TimeoutError):
            async with asyncio.timeout(START_TIMEOUT_S):
                await first.is_decided.wait()
        if not first.is_ready:
            late = f"did not start within {START_TIMEOUT_S:.0f} s"
            what_happened = f"cannot be started: its process {first.what_happened}" if first.has_ended else late
            raise ConfigurationError(first.failure or f"{self.app} {what_happened}")
        self._has_started = True
        while self._usable_loops < self._loops:  # some died while they started
            self._spawn("loop")
        return first.app

    @property
    def _usable_loops(self) -> int:
        return sum(runner.kind == "loop" and runner.is_usable for runner in self.runners)

    @property
    def is_starting(self) -> bool:
        """True while a loop runner starts that will get jobs."""
        return any(r.kind == "loop" and r.is_usable and not r.is_ready for r in self.runners)

    def runner_for(self, kind: str) -> RunnerProcess:
        """The runner for the next job: the least busy loop runner, or an idle process runner; starts one if needed."""
        if kind == "process":
            idle = (r for r in self.runners if r.kind == "process" and r.is_usable and not r.jobs)
            return next(idle, None) or self._spawn("process")
        best: RunnerProcess | None = None
        for runner in self.runners:
            if runner.kind == "loop" and runner.is_usable and (best is None or runner.is_less_busy_than(best)):
                best = runner
        return best or self._spawn("loop")

    def isolated_runner(self, crashes: int, slots: int) -> RunnerProcess:
        """A runner for a job whose process died so many times while it also ran other jobs.

        It has only jobs with as many crashes, and after each crash a quarter as many: of 100 jobs, groups of 25, 6, and
        1. Whatever the others do, a job is alone in its runner soon; if that dies then, the job is the reason.
        """
        room = max(1, slots // 4**crashes)
        isolated = [runner for runner in self.runners if runner.kind == "isolated" and runner.is_usable]
        alike = [runner for runner in isolated if runner.crashes == crashes]
        best = min(alike, key=lambda runner: len(runner.jobs), default=None)
        if best is None or (len(best.jobs) >= room and len(isolated) < MAX_ISOLATED):
            best = self._spawn("isolated")
            best.crashes = crashes
        return best

    def flush(self) -> None:
        """Sends the messages to all runners now."""
        for runner in self.runners:
            runner.flush()

    def retire(self, runner: RunnerProcess) -> None:
        """Gives a runner no more jobs and starts another in its place. It exits when it has no jobs left."""
        if runner.is_retired or runner.has_ended:
            return
        runner.is_retired = True
        if runner.kind == "loop" and not self.is_closing and self._usable_loops < self._loops:
            self._spawn("loop")
        self.dismiss_if_done(runner)

    def dismiss_if_done(self, runner: RunnerProcess) -> None:
        """Asks a runner to exit that is retired and has no jobs; retires one that is worn out or no longer needed."""
        if runner.kind == "isolated" and not runner.jobs:
            runner.is_retired = True
        if not runner.is_retired and self._is_worn(runner):
            logger.info("recycling runner %d after %s", runner.pid, format_count(runner.done, "job"))
            self.retire(runner)
        elif runner.kind == "loop" and self._is_nearly_worn(runner) and self._usable_loops <= self._loops:
            self._spawn("loop")  # jobs must not wait until it has imported the program
        elif runner.is_retired and not runner.jobs and not runner.has_ended and not runner.is_quitting:
            runner.quit()
            asyncio.get_running_loop().call_later(CLEANUP_S, self._kill_unless_ended, runner)

    def on_failure(self, runner: RunnerProcess) -> None:
        """Replaces a runner that ends by itself after it was ready. Its program may need a moment to recover."""
        logger.error("runner %d ends: %s", runner.pid, runner.failure)
        if runner.is_quitting:
            return
        loop = asyncio.get_running_loop()
        if not runner.is_retired:
            self._start_from = loop.time() + RESTART_PAUSE_S
            self.retire(runner)
        loop.call_later(CLEANUP_S, self._kill_unless_ended, runner)

    def _is_worn(self, runner: RunnerProcess) -> bool:
        if self._max_jobs is not None and runner.done >= self._max_jobs:
            return True
        # Reading the memory costs a system call or three: every 20th job is often enough.
        return self._max_rss is not None and runner.done % 20 == 0 and rss_bytes(runner.pid) > self._max_rss

    def _is_nearly_worn(self, runner: RunnerProcess) -> bool:
        if runner.is_retired or not runner.is_ready:
            return False
        if self._max_jobs is not None and runner.done >= NEARLY * self._max_jobs:
            return True
        is_measured = self._max_rss is not None and runner.done % 20 == 0
        return is_measured and rss_bytes(runner.pid) > NEARLY * (self._max_rss or 0)

    async def close(self) -> None:
        """Ends all runners: asks them to exit, and kills those that have not after `CLEANUP_S`."""
        self.is_closing = True
        for runner in self.runners:
            if runner.is_ready:
                runner.quit()
            else:
                runner.kill()  # it has no resources to clean up, and may be importing for a long time
        waiting = [asyncio.create_task(runner.is_gone.wait()) for runner in self.runners]
        if waiting:
            _, slow = await asyncio.wait(waiting, timeout=CLEANUP_S)
            if slow:
                for runner in self.runners:
                    runner.kill()
                await asyncio.wait(slow)
        if self._watching:
            await asyncio.wait(self._watching)
        self._orphan_killer.close()

    def kill_all(self) -> None:
        """Kills all runners now."""
        self.is_closing = True
        for runner in self.runners:
            runner.kill()

    def kill_busy(self) -> None:
        """Kills the runners that have jobs; the others, and those started in place of the killed ones, go on."""
        for runner in self.runners:
            if runner.jobs:
                runner.kill()

    def _spawn(self, kind: str) -> RunnerProcess:
        runner = self._make_runner(kind)
        self.runners.append(runner)
        task = asyncio.create_task(self._watch(runner), name=f"rota-runner-{kind}")
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)
        return runner

    async def _watch(self, runner: RunnerProcess) -> None:
        """Starts a runner, reads its messages until it ends, and replaces it if it should not have died."""
        await asyncio.sleep(max(0.0, self._start_from - asyncio.get_running_loop().time()))
        runner.round = self._round
        pipe_closed = asyncio.Event()

        def on_end(reason: str) -> None:
            runner.failure = reason or runner.failure
            pipe_closed.set()

        reader = FrameReader(decode_from_runner, partial(self._on_messages, runner), on_end)
        # A process runner is blocked while it runs a job, and that is no load.
        measures_lag = self._measures_lag and runner.kind != "process"
        try:
            await runner.start(self.app, reader, measures_lag=measures_lag, log=self._log)
        except OSError as error:
            runner.failure = f"no process could be started: {error}"
        else:
            self._update_orphan_killer()
            asyncio.get_running_loop().call_later(START_TIMEOUT_S, self._kill_unless_ready, runner)
            runner.exit_code = await self._until_dead(runner, pipe_closed)
        runner.close()
        runner.has_ended = True
        self.runners.remove(runner)
        self._update_orphan_killer()
        runner.is_decided.set()
        runner.is_gone.set()
        if not (self.is_closing or runner.is_quitting or runner.is_retired):
            logger.warning(
                "runner %d died (exit code %s)%s",
                runner.pid,
                runner.exit_code,
                f": {runner.failure}" if runner.failure else "",
            )
        if not runner.is_ready:
            # Whatever the reason, a runner started at once would fail, too, however many jobs need one.
            self._start_from = asyncio.get_running_loop().time() + RESTART_PAUSE_S
            if runner.failure or not runner.was_killed:  # else it was killed to stop its job
                self._count_failure(runner)
        is_renewed = (runner.is_quitting or runner.is_retired) and not runner.failure
        self.exits[runner.kind, "renewed" if is_renewed else "died"] += 1
        if self.listener is not None:
            self.listener.on_exit(runner)
        # Before the worker has started, a runner that cannot start is an error to report, not to retry.
        if runner.kind == "loop" and self._usable_loops < self._loops and self._may_start:
            self._spawn("loop")

    @property
    def _may_start(self) -> bool:
        return self._has_started and not self.is_closing and self._failed_rounds < MAX_FAILED_ROUNDS

    def _count_failure(self, runner: RunnerProcess) -> None:
        """Counts a round of failed starts: the program may have been changed on disk so that it cannot start."""
        if runner.round != self._round or not self._may_start:
            return
        self._round += 1
        self._failed_rounds += 1
        if self._failed_rounds == MAX_FAILED_ROUNDS:
            self.failure = runner.failure or "its runners die while they start"
            self.has_failed.set()

    def _update_orphan_killer(self) -> None:
        self._orphan_killer.watch([runner.group for runner in self.runners if runner.group and not runner.has_ended])

    async def _until_dead(self, runner: RunnerProcess, pipe_closed: asyncio.Event) -> int:
        """Waits until a runner's pipe is closed or its process has ended, then kills the rest; returns the exit code.

        A process that a handler started may keep the pipe open after the runner's death, so both are watched.
        """
        process_ended = asyncio.create_task(runner.wait())
        closing = asyncio.create_task(pipe_closed.wait())
        await asyncio.wait((process_ended, closing), return_when=asyncio.FIRST_COMPLETED)
        # The messages that it sent before its death are still in the pipe.
        await asyncio.wait((closing,), timeout=LAST_MESSAGES_S)
        closing.cancel()
        runner.was_killed = runner.is_kill_requested
        # The processes that it started must not outlive it.
        runner.kill()
        return await process_ended

    def _on_messages(self, runner: RunnerProcess, messages: list[FromRunner]) -> None:
        for message in messages:
            if isinstance(message, AttemptEnded):
                continue
            if isinstance(message, RunnerReady):
                runner.app, runner.is_ready = message.app, True
                self._failed_rounds = 0
                runner.is_decided.set()
            elif isinstance(message, RunnerFailed):
                runner.failure = message.reason
            elif isinstance(message, LoopLag):
                runner.lag_ms = message.ms
        if self.listener is not None:
            self.listener.on_messages(runner, messages)

    def _kill_unless_ended(self, runner: RunnerProcess) -> None:
        if not runner.has_ended:
            logger.warning("runner %d has not exited within %g s and is killed", runner.pid, CLEANUP_S)
            runner.kill()

    def _kill_unless_ready(self, runner: RunnerProcess) -> None:
        if not runner.is_ready and not runner.has_ended:
            runner.failure = runner.failure or f"it did not start within {START_TIMEOUT_S:.0f} s"
            runner.kill()


def _widen(*descriptors: int) -> None:
    """Enlarges pipes, where the system allows: a batch of jobs fits into one write."""
    if sys.platform == "linux":
        import fcntl

        for descriptor in descriptors:
            with suppress(OSError):
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
