"""The process that runs handlers. Leases and the connection to the store belong to its supervisor.

Started as `python -m rota.worker.runners.runner_process <app> <kind> <in> <out> <measure> [<log format> <log level>]`.
A "loop" runner runs many handlers, on its event loop and in threads. A "process" runner runs one at a time, in its main
thread, and is killed to stop it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import ctypes
import logging
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, cast

import msgspec

from rota.client.context import current
from rota.client.middleware import wants_lost_attempts
from rota.client.rota import Rota
from rota.client.session import sessions_of
from rota.core.lua_constants import MAX_LOG_BYTES, MAX_LOG_LINES
from rota.errors import RotaError
from rota.worker.app_loader import instrument, load_app
from rota.worker.monitoring.logging_setup import add_job_fields, configure
from rota.worker.runners.executor import Attempt, Executor, unrecordable
from rota.worker.runners.main_thread_loop import MainLoop
from rota.worker.runners.protocol import (
    AppDescription,
    AttemptEnded,
    AttemptStopped,
    FrameReader,
    FrameWriter,
    Log,
    LoopBlocked,
    LoopLag,
    LostAttemptNotified,
    MessageWriter,
    NotifyLostAttempt,
    Progress,
    RunnerFailed,
    RunnerReady,
    StartAttempt,
    StopAttempt,
    ToRunner,
    decode_to_runner,
)

logger = logging.getLogger("rota.worker")

#: The progress of an attempt is sent at most this often.
PROGRESS_EVERY_S: Final = 0.1
LAG_EVERY_S: Final = 0.5
#: A message that has not been read for this long means that the event loop is blocked.
BLOCKED_S: Final = 0.2
#: How long attempts have to stop when the runner ends by itself.
STOP_S: Final = 2.0
#: A runner that has nothing more to do exits within this time, whatever threads its handlers have left behind. Exit
#: handlers of the program, such as one that exports spans, run within it.
EXIT_S: Final = 5.0
#: How long code in a runner waits for its log line to be written, so that a crash does not lose it.
LOG_PATIENCE_S: Final = 0.1
_PR_SET_PDEATHSIG: Final = 1


class Runner:
    """Runs the attempts that the supervisor starts, and reports how each ended."""

    def __init__(self, rota: Rota, writer: MessageWriter, main_loop: MainLoop | None = None) -> None:
        self._rota = rota
        #: Where functions run; None for threads.
        self._main_loop = main_loop
        self._writer = writer
        self._progress = ProgressThrottle(writer)
        self._attempts: dict[int, Attempt] = {}
        self._reporters: dict[int, PipeReporter] = {}
        self._outbox: list[AttemptEnded | AttemptStopped] = []
        self._notifying: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._is_over = asyncio.Event()
        self._is_failing = False
        #: Held while a blocked loop is reported, so that its end is reported after it.
        self._blocked_lock = threading.Lock()
        self._is_blocked = False
        self._reader: FrameReader[ToRunner] | None = None
        self._executor: Executor

    async def run(self, listen: Callable[[FrameReader[ToRunner]], Awaitable[None]], *, measures_lag: bool) -> None:
        """Runs until the supervisor sends `Quit`, or is gone."""
        async with contextlib.AsyncExitStack() as stack:
            state = None
            if self._rota.lifespan is not None:
                state = await stack.enter_async_context(self._rota.lifespan(self._rota))
            self._executor = Executor(self._rota, main_loop=self._main_loop, reporter_for=self._reporter, state=state)
            stack.push_async_callback(self._rota.close)
            stack.push_async_callback(self._executor.close)
            measuring = self._loop.create_task(self._measure_lag()) if measures_lag else None
            self._writer.send(RunnerReady(_describe(self._rota)))
            self._reader = FrameReader(decode_to_runner, self._on_messages, lambda _: self._is_over.set())
            await listen(self._reader)
            try:
                await self._is_over.wait()
            except BaseException:
                # A task group that the lifespan opened has failed, and cancels this task. What the attempts depend on
                # is closed next: their errors must not pass for failures of the jobs.
                self._is_failing = True
                self._writer.send(RunnerFailed("the lifespan of the program ended by itself"))
                await self._stop_attempts()
                raise
            finally:
                if measuring is not None:
                    measuring.cancel()

    @property
    def reads(self) -> int:
        """How often messages have been read; -1 before it begins to read them."""
        return self._reader.reads if self._reader is not None else -1

    def report_blocked_loop(self, reads: int) -> None:
        """Sends which attempt blocks the event loop, if one does. Called from another thread.

        `reads` is how often messages had been read when it was found to be blocked.
        """
        task = asyncio.current_task(self._loop)
        with self._blocked_lock:
            if reads != self.reads:
                return
            for attempt_id, attempt in list(self._attempts.items()):
                if task is not None and (attempt.task is task or _attempt_of(task) == attempt_id):
                    self._is_blocked = True
                    self._writer.send(LoopBlocked(attempt_id))

    def _on_messages(self, messages: list[ToRunner]) -> None:
        with self._blocked_lock:
            if self._is_blocked:
                self._is_blocked = False
                self._writer.send(LoopBlocked(None))
        for message in messages:
            if isinstance(message, StartAttempt):
                if self._is_failing:
                    continue  # the supervisor returns it
                attempt = self._attempts[message.attempt_id] = Attempt(message)
                attempt.task = self._loop.create_task(self._run_attempt(attempt))
            elif isinstance(message, StopAttempt):
                stopped = self._attempts.get(message.attempt_id)
                if stopped is not None:
                    stopped.stop(message.reason, message.note)
            elif isinstance(message, NotifyLostAttempt):
                notifying = self._loop.create_task(self._notify_lost(message))
                self._notifying.add(notifying)
                notifying.add_done_callback(self._notifying.discard)
            else:
                self._is_over.set()

    async def _run_attempt(self, attempt: Attempt) -> None:
        attempt_id = attempt.start.attempt_id
        try:
            report = await self._executor.attempt(attempt)
        except asyncio.CancelledError:
            report = None  # it was stopped at the very end, when its handler had returned
        del self._attempts[attempt_id]
        self._progress.finish(attempt_id)
        reporter = self._reporters.pop(attempt_id, None)
        if reporter is not None:
            reporter.finish()
        # The attempts that end in one turn of the loop share a frame.
        if not self._outbox:
            self._loop.call_soon(self._flush)
        self._outbox.append(AttemptStopped(attempt_id) if report is None else AttemptEnded(attempt_id, report))

    async def _stop_attempts(self) -> None:
        """Stops all attempts, and waits a moment for them. The others end with the process."""
        tasks = [attempt.task for attempt in self._attempts.values() if attempt.task is not None]
        for attempt in self._attempts.values():
            attempt.stop("retired")
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_S)
        self._flush()

    async def _notify_lost(self, message: NotifyLostAttempt) -> None:
        await self._executor.notify_lost(message.attempt)
        self._writer.send(LostAttemptNotified(message.number))

    def _flush(self) -> None:
        messages, self._outbox = self._outbox, []
        try:
            self._writer.send(*messages)
        except (TypeError, ValueError, OverflowError):  # one of them cannot be encoded, and nothing has been sent
            for message in messages:
                self._send_encodable(message)

    def _send_encodable(self, message: AttemptEnded | AttemptStopped) -> None:
        try:
            self._writer.send(message)
        except (TypeError, ValueError, OverflowError) as error:
            assert isinstance(message, AttemptEnded)
            logger.exception("the report of run %s cannot be encoded", message.report.run)
            self._writer.send(AttemptEnded(message.attempt_id, unrecordable(message.report, error)))

    def _reporter(self, start: StartAttempt) -> PipeReporter:
        """The reporter of an attempt: one for all its contexts, because it numbers the log lines."""
        reporter = self._reporters.get(start.attempt_id)
        if reporter is None:
            reporter = self._reporters[start.attempt_id] = PipeReporter(self._writer, self._progress, start.attempt_id)
        return reporter

    async def _measure_lag(self) -> None:
        """Sends the lag of the loop, which `--concurrency auto` and /metrics use."""
        while True:
            before = time.monotonic()
            await asyncio.sleep(LAG_EVERY_S)
            self._writer.send(LoopLag(max(0, round((time.monotonic() - before - LAG_EVERY_S) * 1000))))


def _attempt_of(task: asyncio.Task[Any]) -> int | None:
    """The attempt whose handler started this task. Python 3.11 does not say."""
    get_context: Callable[[], contextvars.Context] | None = getattr(task, "get_context", None)
    context_of = get_context().get(current) if get_context is not None else None
    return context_of.args[0].attempt_id if isinstance(context_of, partial) else None


class ProgressThrottle:
    """Sends the latest progress of each attempt: the first at once, then at most every tenth of a second.

    It has a thread of its own, because a handler that blocks the loop would keep its last progress from being sent.
    """

    def __init__(self, writer: MessageWriter) -> None:
        self._writer = writer
        self._latest: dict[int, Progress] = {}
        self._lock = threading.Lock()
        self._something = threading.Event()
        self._thread: threading.Thread | None = None

    def send(self, message: Progress) -> None:
        """Sends progress soon, in place of earlier progress of the attempt that has not been sent."""
        with self._lock:
            self._latest[message.attempt_id] = message
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rota-progress", daemon=True)
                self._thread.start()
        self._something.set()

    def finish(self, attempt_id: int) -> None:
        """Sends the last progress of an attempt that has ended, before its outcome."""
        if self._thread is None:  # no attempt has reported progress yet
            return
        with self._lock:
            message = self._latest.pop(attempt_id, None)
            if message is not None:
                self._writer.send(message)

    def _run(self) -> None:
        while True:
            self._something.wait()
            self._something.clear()
            with self._lock:
                messages, self._latest = list(self._latest.values()), {}
                if messages:
                    self._writer.send(*messages)
            time.sleep(PROGRESS_EVERY_S)


class PipeReporter:
    """Sends a handler's progress and log lines to the supervisor, which owns the lease. Usable from any thread."""

    def __init__(self, writer: MessageWriter, progress: ProgressThrottle, attempt_id: int) -> None:
        self._writer = writer
        self._progress = progress
        self._attempt_id = attempt_id
        #: Held from numbering a line to sending it: the store takes a line with a lower number for one sent again.
        self._lock = threading.Lock()
        self._lines = 0
        self._bytes = 0
        #: The latest line that was not sent, because the store keeps no more lines.
        self._left_out: Log | None = None

    def progress(self, done: float, total: float, note: str) -> None:
        """Sends the progress of the attempt."""
        text = note.replace("\n", " ").encode(errors="replace").decode()[:500]
        self._progress.send(Progress(self._attempt_id, repr(done), repr(total), text))

    def log(self, level: str, text: str) -> None:
        """Adds a line to the job's log, up to what the store keeps of one."""
        word = level.split()[0] if level.split() else "info"
        clean = text.encode(errors="replace").decode()[:16_384]
        with self._lock:
            self._lines += 1
            line = Log(self._attempt_id, self._lines, f"{word} {clean}")
            self._bytes += len(line.text)
            if self._lines > MAX_LOG_LINES or self._bytes > MAX_LOG_BYTES:
                self._left_out = line
            else:
                self._writer.send(line)

    def finish(self) -> None:
        """Sends the last line that was left out: its number tells the store how many there were."""
        with self._lock:
            if self._left_out is not None:
                self._writer.send(self._left_out)


def main(app: str, kind: str, source: int, sink: int, measures_lag: bool, log: Sequence[str] = ()) -> int:
    """Runs until the supervisor sends `Quit`; returns the exit code. Errors at the start are sent to the supervisor."""
    watch = PipeWatch(source)
    watch.start()
    _leave_signals_to_supervisor()
    writer = FrameWriter(sink)
    if log:  # before the program is imported, which may configure logging differently
        configure(*log, patience_s=LOG_PATIENCE_S)
    try:
        rota = load_app(app)
        for handler in logging.getLogger().handlers:  # the program may have set up its own
            handler.addFilter(add_job_fields)
        instrument(rota)
        for task in rota.tasks:
            # Annotations that cannot be resolved are reported now, not with the first job.
            _ = task.signature, task.failure_handler and task.failure_handler.signature
        for declared in rota.schedules.declared:
            declared.schedule()  # and so are arguments that its task does not accept
    except RotaError as error:
        writer.send(RunnerFailed(str(error)))
        return 1
    main_loop = MainLoop()
    runner_loop = main_loop if kind == "process" else None
    main_loop.run(_serve(rota, source, writer, runner_loop, watch, measures_lag))
    _exit_soon()
    return 0


async def _serve(
    rota: Rota, source: int, writer: FrameWriter, main_loop: MainLoop | None, watch: PipeWatch, measures_lag: bool
) -> None:
    async def listen(reader: FrameReader[ToRunner]) -> None:
        pipe = os.fdopen(source, "rb", buffering=0)
        await asyncio.get_running_loop().connect_read_pipe(lambda: reader, pipe)

    runner = Runner(rota, writer, main_loop)
    if main_loop is None:  # else its loop is blocked by design
        watch.runner = runner
    try:
        await runner.run(listen, measures_lag=measures_lag)
    except Exception as error:
        writer.send(RunnerFailed("; ".join(f"{type(cause).__name__}: {cause}" for cause in _causes(error))))
        raise


def _causes(error: BaseException) -> list[BaseException]:
    """The exceptions in a group; any other exception is its own cause."""
    if isinstance(error, BaseExceptionGroup):
        members = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return [cause for member in members for cause in _causes(member)]
    return [error]


def _exit_soon() -> None:
    """Ends this process if Python does not: at exit it waits for every thread that is not a daemon."""

    def exit_at_last() -> None:
        time.sleep(EXIT_S)
        os._exit(0)

    threading.Thread(target=exit_at_last, name="rota-exit", daemon=True).start()


def _leave_signals_to_supervisor() -> None:
    """Ignores SIGINT and SIGTERM: Ctrl-C and service managers send them to every process, and the supervisor decides.

    It installs a function that does nothing, not SIG_IGN, because processes that handlers start would inherit SIG_IGN.
    A process that a handler forks gets the default handlers back; a signal that comes in between is blocked until then.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    kept = threading.local()
    for number in before:
        signal.signal(number, _do_nothing)

    def hold_back() -> None:
        kept.mask = signal.pthread_sigmask(signal.SIG_BLOCK, before)

    def let_through() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, kept.mask)

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)
        let_through()

    os.register_at_fork(before=hold_back, after_in_parent=let_through, after_in_child=restore)


def _do_nothing(_number: int, _frame: object) -> None:
    pass


class PipeWatch:
    """Watches the pipe from the supervisor in a thread.

    When the supervisor is gone, this process ends at once: its reports could not be stored. When messages are not read,
    a handler blocks the event loop, and the supervisor must know which: the others cannot be blamed for a timeout.
    """

    def __init__(self, source: int) -> None:
        self._source = os.dup(source)  # stays open when the event loop closes its own
        #: The runner whose loop reads the pipe, once it can.
        self.runner: Runner | None = None

    def start(self) -> None:
        """Starts the thread."""
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        threading.Thread(target=self._run, name="rota-watch", daemon=True).start()

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._source, select.POLLIN)
        reported = -1
        while True:
            if any(event & ~select.POLLIN for _, event in poll.poll()):
                os._exit(1)  # POLLHUP: the end of the pipe
            runner = self.runner
            reads = runner.reads if runner is not None else -1
            time.sleep(BLOCKED_S)
            if runner is not None and reads not in (-1, reported) and reads == runner.reads and poll.poll(0):
                reported = reads
                runner.report_blocked_loop(reads)


def _describe(rota: Rota) -> AppDescription:
    tasks = {
        task.name: {
            "queue": task.queue,
            "run_in": task.run_in,
            "per_worker": task.per_worker,
            "schema": msgspec.to_builtins(task.signature.schema()),
            "positional": task.signature.positional,
            "index": list(task.index),
            "options": msgspec.to_builtins(task.options),
            "doc": (task.function.__doc__ or "").strip().partition("\n")[0],
        }
        for task in rota.tasks
    }
    handlers = {
        handler.name: {
            "task": handler.task.name,
            "run_in": handler.run_in,
            "options": handler.options_by_queue(),
        }
        for task in rota.tasks
        if (handler := task.failure_handler) is not None
    }
    return AppDescription(
        tasks=tasks,
        failure_handlers=handlers,
        schedules=[declared.schedule() for declared in rota.schedules.declared],
        shards=dict(sessions_of(rota).declared_shards),
        connection=sessions_of(rota).connection(),
        blobs=external.url if (external := sessions_of(rota).blobs) is not None else "",
        wants_lost_attempts=bool(rota.error_hooks) or wants_lost_attempts(rota.middleware),
    )


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(main(words[0], words[1], int(words[2]), int(words[3]), words[4] == "lag", words[5:]))
