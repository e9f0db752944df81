"""The process that runs handlers. It has no lease to lose and no connection to keep: its supervisor has.

Started as `python -m rota.worker.runner <app> <kind> <in> <out> <measure> [<log format> <log level>]`. A "loop" runner
runs many handlers, on its event loop and in threads. A "process" runner runs one at a time, in its main thread, and is
killed to stop it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec

from rota.client import Rota
from rota.errors import RotaError
from rota.loading import equip, load_app
from rota.middleware import is_heedful
from rota.worker.executor import Attempt, Executor
from rota.worker.logs import configure
from rota.worker.wire import (
    Broken,
    Ears,
    Ended,
    Hello,
    Lag,
    Log,
    Mouth,
    Progress,
    Run,
    Speaks,
    Stop,
    Stopped,
    Told,
    ToRunner,
    Vanished,
    decode_to_runner,
)

#: What is said in quick succession is sent once in this time.
PROGRESS_EVERY_S: Final = 0.1
LAG_EVERY_S: Final = 0.5
_PR_SET_PDEATHSIG: Final = 1


class Runner:
    """Takes orders from the supervisor, and says how each attempt ended."""

    def __init__(self, rota: Rota, kind: str, mouth: Speaks) -> None:
        self._rota = rota
        self._kind = kind
        self._mouth = mouth
        self._progress = ProgressSender(mouth)
        self._attempts: dict[int, Attempt] = {}
        self._outbox: list[Ended] = []
        self._telling: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._is_over = asyncio.Event()
        self._executor: Executor

    async def run(self, listen: Callable[[Ears[ToRunner]], Awaitable[None]], *, measures_lag: bool) -> None:
        """Until the supervisor says quit, or is gone."""
        async with contextlib.AsyncExitStack() as stack:
            state = None
            if self._rota.lifespan is not None:
                state = await stack.enter_async_context(self._rota.lifespan(self._rota))
            inline = self._kind == "process"
            self._executor = Executor(self._rota, inline=inline, reporter_for=self._reporter, state=state)
            stack.push_async_callback(self._rota.close)
            stack.push_async_callback(self._executor.close)
            measuring = self._loop.create_task(self._measure_lag()) if measures_lag else None
            self._mouth.say(Hello(_facts(self._rota)))
            await listen(Ears(decode_to_runner, self._hear, self._is_over.set))
            await self._is_over.wait()
            if measuring is not None:
                measuring.cancel()

    def _hear(self, messages: list[ToRunner]) -> None:
        for message in messages:
            if isinstance(message, Run):
                attempt = self._attempts[message.flight] = Attempt(message)
                attempt.task = self._loop.create_task(self._attempt(attempt))
            elif isinstance(message, Stop):
                stopped = self._attempts.get(message.flight)
                if stopped is not None:
                    stopped.stop()
            elif isinstance(message, Vanished):
                telling = self._loop.create_task(self._tell(message))
                self._telling.add(telling)
                telling.add_done_callback(self._telling.discard)
            else:
                self._is_over.set()

    async def _attempt(self, attempt: Attempt) -> None:
        flight = attempt.order.flight
        try:
            outcome = await self._executor.attempt(attempt)
        except asyncio.CancelledError:
            # It was stopped at the very end, when its handler had returned.
            outcome = Stopped(flight)
        del self._attempts[flight]
        self._progress.finish(flight)
        # What ends in the same turn of the loop travels together.
        if not self._outbox:
            self._loop.call_soon(self._flush)
        self._outbox.append(outcome)

    async def _tell(self, vanished: Vanished) -> None:
        await self._executor.tell(vanished.attempt)
        self._mouth.say(Told(vanished.number))

    def _flush(self) -> None:
        outcomes, self._outbox = self._outbox, []
        self._mouth.say(*outcomes)

    def _reporter(self, order: Run) -> PipeReporter:
        return PipeReporter(self._mouth, self._progress, order.flight)

    async def _measure_lag(self) -> None:
        """How late the loop is: what tells `auto` that there is too much on it."""
        while True:
            before = time.monotonic()
            await asyncio.sleep(LAG_EVERY_S)
            self._mouth.say(Lag(max(0, round((time.monotonic() - before - LAG_EVERY_S) * 1000))))


class ProgressSender:
    """Sends the latest progress of each attempt: the first at once, then no more often than every tenth of a second.

    A thread of its own does that, because a handler that is busy with other things would leave its last word unsaid.
    """

    def __init__(self, mouth: Speaks) -> None:
        self._mouth = mouth
        self._latest: dict[int, Progress] = {}
        self._lock = threading.Lock()
        self._something = threading.Event()
        self._thread: threading.Thread | None = None

    def say(self, message: Progress) -> None:
        """Takes the place of what the attempt said before and has not been sent."""
        with self._lock:
            self._latest[message.flight] = message
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rota-progress", daemon=True)
                self._thread.start()
        self._something.set()

    def finish(self, flight: int) -> None:
        """The attempt has ended: its last word goes now, before its end is told."""
        if self._thread is None:  # nobody has ever said anything
            return
        with self._lock:
            message = self._latest.pop(flight, None)
            if message is not None:
                self._mouth.say(message)

    def _run(self) -> None:
        while True:
            self._something.wait()
            self._something.clear()
            with self._lock:
                messages, self._latest = list(self._latest.values()), {}
                if messages:
                    self._mouth.say(*messages)
            time.sleep(PROGRESS_EVERY_S)


class PipeReporter:
    """Sends a handler's progress and log to the supervisor, which owns the lease. Usable from any thread."""

    def __init__(self, mouth: Speaks, progress: ProgressSender, flight: int) -> None:
        self._mouth = mouth
        self._progress = progress
        self._flight = flight
        self._lines = 0

    def progress(self, done: float, total: float, note: str) -> None:
        """Keeps how far the attempt has come."""
        text = note.replace("\n", " ").encode(errors="replace").decode()[:500]
        self._progress.say(Progress(self._flight, repr(done), repr(total), text))

    def log(self, level: str, text: str) -> None:
        """Adds a line to the job's log."""
        self._lines += 1
        word = level.split()[0] if level.split() else "info"
        clean = text.encode(errors="replace").decode()[:16_384]
        self._mouth.say(Log(self._flight, self._lines, f"{word} {clean}"))


def main(app: str, kind: str, source: int, sink: int, measures_lag: bool, log: Sequence[str] = ()) -> int:
    """Runs until told to quit. What goes wrong before the first assignment is told to the supervisor."""
    _die_with_supervisor(source)
    _leave_signals_to_supervisor()
    mouth = Mouth(sink)
    if log:  # before the program is imported: what it decides on logging itself is the last word
        configure(*log)
    try:
        rota = load_app(app)
        equip(rota)
        for task in rota.tasks:
            # An annotation that cannot be resolved is found now, not with the first job.
            _ = task.signature, task.failure_handler and task.failure_handler.signature
        for declared in rota.schedules.declared:
            declared.schedule()  # and so are arguments that its task does not take
    except RotaError as error:
        mouth.say(Broken(str(error)))
        return 1
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(rota, kind, source, mouth, measures_lag))
    return 0


async def _serve(rota: Rota, kind: str, source: int, mouth: Mouth, measures_lag: bool) -> None:
    async def listen(ears: Ears[ToRunner]) -> None:
        pipe = os.fdopen(source, "rb", buffering=0)
        await asyncio.get_running_loop().connect_read_pipe(lambda: ears, pipe)

    try:
        await Runner(rota, kind, mouth).run(listen, measures_lag=measures_lag)
    except Exception as error:
        mouth.say(Broken(f"{type(error).__name__}: {error}"))
        raise


def _leave_signals_to_supervisor() -> None:
    """Ctrl-C, and what a service manager sends to every process, are for the supervisor, which decides what follows.

    A function that does nothing, and not SIG_IGN, because what handlers start would inherit that. What they fork gets
    back what it expects, and a signal that comes in between waits until it has.
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


def _die_with_supervisor(source: int) -> None:
    """Nobody is left to take the outcome: leave at once, whatever a handler is doing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    def watch() -> None:
        poll = select.poll()
        poll.register(source, 0)  # only the end of the pipe is of interest, and is always told
        poll.poll()
        os._exit(1)

    threading.Thread(target=watch, name="rota-watch", daemon=True).start()


def _loop_factory() -> Any:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _facts(rota: Rota) -> dict[str, Any]:
    """What the supervisor must know of the user's program, which it never imports itself."""
    tasks = {
        task.name: {
            "queue": task.queue,
            "run_in": task.run_in,
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
            # "" stands for every queue that has no defaults of its own for its failures.
            "options": {queue: handler.announcement(queue) for queue in ("", *rota.failure_queues)},
        }
        for task in rota.tasks
        if (handler := task.failure_handler) is not None
    }
    schedules = [declared.schedule() for declared in rota.schedules.declared]
    return {
        "tasks": tasks, "handlers": handlers, "schedules": schedules, "shards": rota.shards,
        "connection": rota.connection(), "is_heedful": is_heedful(rota.middleware),
    }  # fmt: skip


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(main(words[0], words[1], int(words[2]), int(words[3]), words[4] == "lag", words[5:]))
