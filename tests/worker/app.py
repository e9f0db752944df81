"""The program whose jobs the tests run. Server, namespace and folder come from the environment."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import multiprocessing
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from rota import (
    Call,
    Cancel,
    Context,
    Depends,
    Fixed,
    Middleware,
    PermanentError,
    Retry,
    RetryLater,
    Rota,
    Snooze,
)

FOLDER: Final = Path(os.environ["ROTA_TEST_FOLDER"])
STEP_SECONDS: Final = 0.01


@dataclass
class Parcel:
    """Something that steps hand on."""

    name: str
    weights: list[int]


#: Set by the lifespan, once per process.
color: contextvars.ContextVar[str] = contextvars.ContextVar("color", default="none")
#: Set by the middleware, for each attempt.
trace: contextvars.ContextVar[str] = contextvars.ContextVar("trace", default="none")


def note(subject: str, text: object = "") -> None:
    """Leaves a line that the test can read, whatever happens to this process afterwards."""
    file = os.open(FOLDER / "notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{subject} {text}\n".encode())
    os.close(file)


def is_allowed(name: str) -> bool:
    """True once the test has called `harness.allow`."""
    return (FOLDER / f"allowed-{name}").exists()


async def hold(name: str) -> None:
    """Waits until the test allows it."""
    while not is_allowed(name):  # noqa: ASYNC110  # what it waits for happens in another process
        await asyncio.sleep(STEP_SECONDS)


@asynccontextmanager
async def lifespan(_: Rota) -> AsyncGenerator[dict[str, str]]:
    """What every handler of a process shares."""
    if is_allowed("broken-start"):
        raise RuntimeError("this program does not start any more")
    color.set("green")
    note("lifespan", "begin")
    yield {"color": "green"}
    note("lifespan", "end")


class Tracing(Middleware):
    """Sees every call and every attempt."""

    async def enqueue(self, call: Call[Any]) -> Call[Any]:
        """Refuses what a test wants refused."""
        if call.task.name == "forbidden":
            raise PermissionError("this task may not be enqueued")
        return call

    async def attempt(self, context: Context, run: Callable[[], Awaitable[Any]]) -> Any:
        """Sets the trace; and goes around some tasks."""
        trace.set(f"trace of {context.job.ref.id}")
        if context.job.task != "wrapped":
            return await run()
        note(context.job.ref.id, "outer begins")
        try:
            return f"<{await run()}>"
        finally:
            note(context.job.ref.id, "outer ends")


class Inner(Middleware):
    """The second one of two."""

    async def attempt(self, context: Context, run: Callable[[], Awaitable[Any]]) -> Any:
        """Goes around the handler, inside the first."""
        if context.job.task == "stuck_middleware":
            result = await run()
            await asyncio.sleep(60)
            return result
        if context.job.task != "wrapped":
            return await run()
        note(context.job.ref.id, "inner begins")
        try:
            return f"[{await run()}]"
        finally:
            note(context.job.ref.id, "inner ends")


rota = Rota(namespace=os.environ["ROTA_TEST_NAMESPACE"], lifespan=lifespan, middleware=[Tracing(), Inner()])


# --- three ways to run -------------------------------------------------------------------------------------------


@rota.task
async def add(a: int, b: int) -> int:
    return a + b


@rota.task
def add_in_thread(a: int, b: int) -> int:
    return a + b


@rota.task(run_in="process")
def add_in_process(a: int, b: int) -> int:
    return a + b


@rota.task(run_in="process")
async def add_async_in_process(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


def _whereabouts() -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "is_main_thread": threading.current_thread() is threading.main_thread(),
        "color": color.get(),
        "trace": trace.get(),
    }


@rota.task
async def where_in_loop() -> dict[str, Any]:
    return _whereabouts()


@rota.task
def where_in_thread() -> dict[str, Any]:
    return _whereabouts()


@rota.task(run_in="process")
def where_in_process() -> dict[str, Any]:
    return _whereabouts()


@rota.task
async def echo(value: Any = None) -> Any:
    return value


@rota.task
async def gather(first: int, ctx: Context, *rest: int) -> list[int]:
    """A context between positional parameters."""
    return [ctx.attempt, first, *rest]


@rota.task
async def wrapped(text: str) -> str:
    note("wrapped", text)
    return text


@rota.task
async def forbidden() -> None:
    pass


@rota.task
def stuck_middleware() -> str:
    """Ends at once; a middleware around it does not."""
    return "done"


# --- the context -------------------------------------------------------------------------------------------------


@rota.task
async def describe_context(ctx: Context) -> dict[str, Any]:
    return {
        "attempt": ctx.attempt,
        "fence": ctx.fence,
        "key": ctx.idempotency_key,
        "deadline": ctx.deadline.timestamp() if ctx.deadline else None,
        "cancelled": ctx.cancelled,
        "state": ctx.state,
        "job": ctx.job.ref.full_id,
        "enqueued_at": ctx.job.enqueued_at,
        "tags": list(ctx.job.options.tags),
    }


@rota.task
async def report_progress(ctx: Context, *steps: float, total: float = 100, hold_at: str = "") -> str:
    """Reports each step as its progress; then waits."""
    for step in steps:
        ctx.progress(step, total, f"step {step:g}")
        await asyncio.sleep(STEP_SECONDS)
    if hold_at:
        await hold(hold_at)
    return "done"


@rota.task
async def report_progress_then_fail(ctx: Context, subject: str) -> str:
    """Comes half way at its first attempt, fails, and waits at its second."""
    if ctx.attempt == 1:
        ctx.progress(50)
        await hold(f"{subject}-fail")
        raise ValueError("half way")
    note(subject, "second")
    await hold(f"{subject}-end")
    return "done"


@rota.task
async def write_log(ctx: Context, *lines: str, level: str = "info") -> int:
    """Logs lines and is done."""
    for line in lines:
        ctx.log(line, level=level)
    ctx.progress(len(lines), len(lines), "all said")
    return len(lines)


@rota.task
def write_log_in_thread(ctx: Context, count: int) -> None:
    for number in range(count):
        ctx.log(f"line {number}")


@rota.task(run_in="process")
def write_log_in_process(ctx: Context, count: int) -> None:
    for number in range(count):
        ctx.log(f"line {number}")


@rota.task
async def write_log_then_fail(ctx: Context) -> None:
    ctx.log(f"attempt {ctx.attempt}")
    if ctx.attempt == 1:
        raise ValueError("once more")


# --- dependencies ------------------------------------------------------------------------------------------------


class Connection:
    """Made once per process."""

    made = 0

    def __init__(self) -> None:
        Connection.made += 1
        self.number = Connection.made


async def connect() -> AsyncIterator[Connection]:
    await asyncio.sleep(0.05)  # long enough for others to ask meanwhile
    connection = Connection()
    note("connection", f"made {connection.number}")
    yield connection
    note("connection", f"closed {connection.number}")


def session(
    ctx: Context,
    connection: Connection = Depends(connect, scope="worker"),  # noqa: B008  # as users write it
) -> Iterator[str]:
    subject = ctx.job.ref.id
    note(subject, "session begins")
    try:
        yield f"session of attempt {ctx.attempt} on connection {connection.number}"
    finally:
        note(subject, "session ends")


async def greeting(within: str = Depends(session)) -> str:
    return f"hello from {within}"


@rota.task
async def use_session(
    ctx: Context, fail: bool = False, text: str = Depends(greeting), within: str = Depends(session)
) -> str:
    note(ctx.job.ref.id, "handler")
    if fail:
        raise PermanentError("as asked")
    assert text.endswith(within), "one attempt, one session"
    return text


@rota.task
async def use_connection(
    connection: Connection = Depends(connect, scope="worker"),  # noqa: B008  # as users write it
) -> int:
    return connection.number


def broken_provider() -> str:
    raise ConnectionError("no database")


@rota.task(retry=1)
async def use_broken(text: str = Depends(broken_provider)) -> str:
    return text


is_released = threading.Event()


def wait_for_release() -> bool:
    return is_released.wait(60)


@rota.task
async def use_what_blocks(was_released: bool = Depends(wait_for_release)) -> bool:
    return was_released


@rota.task
async def release_what_blocks() -> None:
    is_released.set()


tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="none")


def open_database(ctx: Context) -> Iterator[sqlite3.Connection]:
    """Only its own thread may use the connection, and only its own context may reset the variable."""
    before = tenant.set(f"tenant of {ctx.job.ref.id}")
    connection = sqlite3.connect(":memory:")
    connection.execute("create table threads (name)")
    try:
        yield connection
    finally:
        connection.execute("insert into threads values (?)", [threading.current_thread().name])
        names = {str(name) for (name,) in connection.execute("select name from threads")}
        note(ctx.job.ref.id, f"threads: {len(names)}")
        connection.close()
        tenant.reset(before)
        note(ctx.job.ref.id, f"closed: {tenant.get()}")


def use_database(database: sqlite3.Connection = Depends(open_database)) -> str:  # noqa: B008  # as users write it
    database.execute("insert into threads values (?)", [threading.current_thread().name])
    return tenant.get()


use_database_in_thread = rota.task(name="use_database_in_thread")(use_database)
use_database_in_process = rota.task(name="use_database_in_process", run_in="process")(use_database)


@rota.task
async def use_database_on_loop(database: sqlite3.Connection = Depends(open_database)) -> str:  # noqa: B008  # as users write it
    return tenant.get()


def count_up(ctx: Context) -> Iterator[int]:
    note(ctx.job.ref.id, "counting")
    try:
        while True:
            time.sleep(0.01)
        yield 0
    finally:
        note(ctx.job.ref.id, "interrupted")


@rota.task
async def use_what_never_ends(
    database: sqlite3.Connection = Depends(open_database),  # noqa: B008  # as users write it
    number: int = Depends(count_up),
) -> None: ...


# --- failing -----------------------------------------------------------------------------------------------------


class ApiError(Exception):
    """An error with attributes."""

    def __init__(self, message: str, **attributes: Any) -> None:
        super().__init__(message)
        for name, value in attributes.items():
            setattr(self, name, value)


class QuotaError(ApiError):
    """A kind of it."""


class UnprintableError(Exception):
    """An error whose text and attributes raise."""

    def __str__(self) -> str:
        raise RuntimeError("do not look at me")

    @property
    def retry_at(self) -> datetime:
        raise RuntimeError("nor ask me when")


def _error(kind: str, *details: Any) -> BaseException:
    number = float(details[0]) if details else 0.0
    match kind:
        case "retry_at":
            return ApiError("later", retry_at=time.time() + number)
        case "retry_at_datetime":
            return ApiError("later", retry_at=datetime.now(UTC) + timedelta(seconds=number))
        case "retry_at_value":
            return ApiError("later", retry_at=number)
        case "RetryLater":
            return RetryLater("not yet", after=number)
        case "RetryLater_at":
            return RetryLater(at=datetime.now(UTC) + timedelta(seconds=number))
        case "Snooze":
            return Snooze(number)
        case _:
            return ERRORS[kind]()


ERRORS: Final[dict[str, Callable[[], BaseException]]] = {
    "ValueError": lambda: ValueError("bad value"),
    "KeyError": lambda: KeyError("key"),
    "QuotaError": lambda: QuotaError("over quota", code=429, body={"wait": [1, 2]}, raw=object(), _private=1),
    "Permanent": lambda: PermanentError("never again"),
    "Cancel": lambda: Cancel("not needed any more"),
    "SystemExit": lambda: SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt,
    "CancelledError": asyncio.CancelledError,
    "UnprintableError": UnprintableError,
    "deep": lambda: ApiError("deep", tree=_tree(900)),
    "long": lambda: ValueError("é" * 10_000),
    "surrogate": lambda: ValueError("half a character: \ud800"),
}


def _tree(depth: int) -> list[Any]:
    tree: list[Any] = []
    for _ in range(depth):
        tree = [tree]
    return tree


@rota.task
async def fail(ctx: Context, kind: str, *details: Any, times: int = 1_000_000) -> str:
    """Raises, so many times, and then succeeds."""
    note(ctx.job.ref.id, f"{time.time():.3f} {ctx.attempt} {ctx.fence} {ctx.idempotency_key}")
    if ctx.attempt <= times:
        raise _error(kind, *details)
    return f"attempt {ctx.attempt}"


@rota.task
def fail_in_thread(kind: str, *details: Any) -> None:
    raise _error(kind, *details)


@rota.task(run_in="process")
def fail_in_process(kind: str, *details: Any) -> None:
    raise _error(kind, *details)


@rota.task
async def return_unstorable(what: str) -> Any:
    """Returns something that is hard to store."""
    recursive: list[Any] = []
    recursive.append(recursive)
    return {
        "object": object(),
        "set of objects": {object()},
        "recursive": recursive,
        "surrogate": "\ud800",
        "huge": "x" * 2**20,
        "complex": 1j,
        "lambda": lambda: None,
    }[what]


# --- steps of workflows ------------------------------------------------------------------------------------------


@rota.task
async def run_step(
    ctx: Context,
    name: str,
    given: Any = None,
    *,
    returns: Any = None,
    hold_at: str = "",
    needs: str = "",
    lingers: float = 0.0,
) -> Any:
    """Notes when it begins and ends; may wait, fail until something is allowed, and be slow to stop."""
    note("story", f"begin {name}")
    note(name, f"{ctx.attempt} {ctx.idempotency_key}")
    try:
        if hold_at:
            await hold(hold_at)
        if needs and not is_allowed(needs):
            raise ValueError(f"{name} is broken")
    except asyncio.CancelledError:
        await asyncio.sleep(lingers)
        raise
    finally:
        note("story", f"end {name}")
    return name if returns is None else returns


@rota.task
async def undo_step(ctx: Context, name: str, given: Any = None, *, needs: str = "", takes: float = 0.0) -> None:
    """A compensation."""
    note("story", f"begin undo {name}")
    note(f"undo-{name}", given)
    try:
        await asyncio.sleep(takes)
        if needs and not is_allowed(needs):
            raise ValueError(f"undoing {name} is broken")
    finally:
        note("story", f"end undo {name}")


@rota.task
async def parcel(name: str) -> Parcel:
    return Parcel(name, [len(name)])


@rota.task
async def weigh(parcel: Parcel, more: int = 0) -> int:
    return sum(parcel.weights) + more


@rota.task
async def double(number: int) -> int:
    note("double", number)
    return 2 * number


@rota.task(retry=1)
async def double_once_allowed(number: int) -> int:
    note("double", number)
    if number > 2:
        await hold("rest")
    if number == 2 and not is_allowed("two"):
        raise ValueError("two is broken")
    return 2 * number


@rota.task
async def numbers(count: int) -> list[int]:
    return list(range(count))


# --- taking long -------------------------------------------------------------------------------------------------


@rota.task
async def wait(subject: str = "wait") -> str:
    """On the loop, until allowed."""
    note(subject, "begin")
    try:
        await hold(subject)
    except asyncio.CancelledError:
        note(subject, "cancelled")
        raise
    note(subject, "end")
    return subject


@rota.task
def wait_in_thread(ctx: Context, subject: str = "wait") -> str:
    """In a thread, in Python code, until allowed."""
    note(subject, "begin")
    try:
        while not is_allowed(subject):
            time.sleep(STEP_SECONDS)
    except BaseException:
        note(subject, f"cancelled {ctx.cancelled}")
        raise
    note(subject, "end")
    return subject


@rota.task(run_in="process")
def wait_in_process(subject: str = "wait") -> str:
    """In a process of its own, until allowed."""
    note(subject, f"begin {os.getpid()}")
    while not is_allowed(subject):
        time.sleep(STEP_SECONDS)
    note(subject, "end")
    return subject


@rota.task
def watch_the_flag(ctx: Context, subject: str) -> str:
    """A thread that looks for itself whether it is still wanted, and cleans up."""
    note(subject, "begin")
    try:
        while not ctx.cancelled:
            time.sleep(STEP_SECONDS)
    finally:
        note(subject, "clean")
    return "left by itself"


@rota.task
async def ignore_cancellation(subject: str, seconds: float = 60) -> str:
    """A coroutine that ignores its cancellation."""
    note(subject, "begin")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            await asyncio.sleep(STEP_SECONDS)
        except asyncio.CancelledError:
            note(subject, "ignored")
    note(subject, "end")
    return "stubborn"


@rota.task
async def translate_cancel(subject: str) -> None:
    """Turns its cancellation into an error of its own, as some libraries do."""
    note(subject, "begin")
    try:
        await hold(subject)
    except asyncio.CancelledError:
        raise ConnectionError("cut off") from None


@rota.task
async def block_loop(subject: str, seconds: float = 60) -> str:
    """Blocks the loop of its runner, and everything else on it."""
    note(subject, "begin")
    time.sleep(seconds)  # noqa: ASYNC251
    note(subject, "end")
    return "blocked"


@rota.task
async def hold_gil(subject: str, seconds: float) -> str:
    """One call into C that never lets go of the interpreter's lock."""
    note(subject, "begin")
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
    note(subject, "end")
    return "held"


@rota.task
def sleep_in_thread(subject: str, seconds: float) -> str:
    """In C code, where no exception reaches it."""
    note(subject, "begin")
    time.sleep(seconds)
    note(subject, "end")
    return "slept"


@rota.task(run_in="process")
def sleep_in_process(subject: str, seconds: float) -> str:
    note(subject, f"begin {os.getpid()}")
    time.sleep(seconds)
    note(subject, "end")
    return "slept"


@rota.task(run_in="process")
def hold_gil_in_process(subject: str, seconds: float) -> str:
    note(subject, f"begin {os.getpid()}")
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
    return "held"


_FAMILY: Final = """
import os, subprocess, sys, time
depth, name = int(sys.argv[1]), sys.argv[2]
if depth % 2:
    os.setsid()
if depth:
    subprocess.Popen([sys.executable, "-c", sys.argv[3], str(depth - 1), name, sys.argv[3]])
file = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(file, f"family {os.getpid()}\\n".encode())
time.sleep(300)
"""


@rota.task(run_in="process")
def start_descendants(subject: str) -> None:
    """Starts a child, a grandchild that leaves the session, and a great-grandchild of that one; then hangs."""
    note(subject, os.getpid())
    subprocess.Popen([sys.executable, "-c", _FAMILY, "2", str(FOLDER / "notes"), _FAMILY])
    time.sleep(300)


@rota.task
async def keep_pipe_open(subject: str) -> None:
    """Forks a child that inherits everything, and hangs."""
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(300,))
    child.start()
    note("family", child.pid)
    note(subject, os.getpid())
    await hold(subject)


@rota.task
async def terminate_children() -> list[int | None]:
    """A handler that ends processes of its own in the usual way."""
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(30,))
    child.start()
    child.terminate()
    await asyncio.to_thread(child.join, 5)
    program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"])  # noqa: ASYNC220  # it starts at once
    program.terminate()
    return [child.exitcode, await asyncio.to_thread(program.wait, 5)]


@rota.task
async def work_with_progress(ctx: Context, subject: str, steps: int, pause: float) -> str:
    """Reports progress now and then; then none until allowed."""
    note(subject, "begin")
    for step in range(steps):
        ctx.progress(step, steps + 1)
        await asyncio.sleep(pause)
    if steps == 0:
        await hold(subject)
    return "done"


# --- being counted -----------------------------------------------------------------------------------------------


_at_once = 0


@rota.task
async def count_concurrent(subject: str, seconds: float = 0.02) -> int:
    """Notes how many attempts of it run in this process at the same time."""
    global _at_once
    _at_once += 1
    note(subject, _at_once)
    await asyncio.sleep(seconds)
    _at_once -= 1
    return os.getpid()


@rota.task(per_worker=2)
async def wait_limited(subject: str) -> None:
    """On the loop, until allowed; two at once in one worker."""
    await _wait_counted(subject)


@rota.task(per_worker=1, run_in="thread")
def rest_alone(subject: str, seconds: float = 0.01) -> None:
    """In a thread, one at once in one worker."""
    note(subject, "begin")
    time.sleep(seconds)
    note(subject, "end")


async def _wait_counted(subject: str) -> None:
    note(subject, "begin")
    await hold("limited")
    note(subject, "end")


@rota.task
async def sleep(seconds: float = 0.1) -> int:
    await asyncio.sleep(seconds)
    return os.getpid()


@rota.task
def burn_cpu(seconds: float) -> int:
    """Uses the CPU."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))
    return os.getpid()


@rota.task
async def record_run(subject: str, name: str, server_ms: int = 0) -> None:
    """Notes that it ran."""
    note(subject, name)


_hoard: list[bytes] = []


@rota.task
async def leak_memory(megabytes: int) -> int:
    """Leaks memory."""
    _hoard.append(b"x" * (megabytes * 2**20))
    return os.getpid()


@rota.task
async def exit_process(subject: str = "die") -> None:
    """Takes its process down."""
    note(subject, os.getpid())
    os._exit(3)


@rota.task
async def count_run(subject: str, seconds: float = 0.0) -> str:
    """An effect that can be counted."""
    note(subject, "effect")
    await asyncio.sleep(seconds)
    return subject


@rota.task
async def record_pid(subject: str) -> str:
    """Notes its process id, and waits to be allowed by that name."""
    me = f"{os.getpid()}"
    note(subject, me)
    while not is_allowed(me):
        try:
            await asyncio.sleep(STEP_SECONDS)
        except asyncio.CancelledError:
            note(subject, "cancelled")
            raise
    note(f"{me}-end")
    return me


@rota.task
async def exit_or_fail(ctx: Context, subject: str, story: str) -> str:
    """Does at each attempt what the word of that number in `story` names."""
    what = story.split()[ctx.attempt - 1]
    note(subject, what)
    if what == "die":
        os._exit(3)
    if what == "fail":
        raise RetryLater("as asked", after=0.01)
    return what


@rota.task
async def match_slowly(subject: str, seconds: float) -> str:
    """A regular expression that takes ages: one call that holds the GIL, of the kind people write by accident."""
    note(subject, "begin")
    end = time.monotonic() + seconds
    length = 18
    while time.monotonic() < end:
        length += 1
        re.match(r"(a+)+$", "a" * length + "b")
    note(subject, "end")
    return "matched"


@rota.task
def count_run_in_thread(subject: str, seconds: float = 0.0) -> str:
    note(subject, "effect")
    time.sleep(seconds)
    return subject


@rota.task(run_in="process")
def count_run_in_process(subject: str, seconds: float = 0.0) -> str:
    note(subject, "effect")
    time.sleep(seconds)
    return subject


@rota.task
async def hold_lock(name: str, subject: str, seconds: float = 0.02) -> None:
    """Notes when it begins and ends: no other job of its lock may run between."""
    note(subject, f"{name} in")
    await asyncio.sleep(seconds)
    note(subject, f"{name} out")


@rota.task
async def hold_lock_until(name: str, subject: str) -> None:
    """The same, until the test allows it to leave."""
    note(subject, f"{name} in")
    await hold(name)
    note(subject, f"{name} out")


@rota.task(retry=Retry(attempts=4, backoff=Fixed(0.05)))
async def enqueue_self_and_fail(ctx: Context, number: int) -> None:
    """A job that enqueues itself and keeps failing must still reach its limit."""
    note("self", f"{number} {ctx.job.counts.failures}")
    await enqueue_self_and_fail.using(id=ctx.job.ref.id).enqueue(number + 1)
    raise ValueError(number)


@rota.task
async def slow_to_stop(subject: str) -> None:
    """Takes its time to stop when it is cancelled."""
    note(subject, "in")
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.3)
        note(subject, "stopped")


@rota.task
async def fail_until(name: str) -> str:
    """Fails until the test allows it to succeed."""
    if not is_allowed(name):
        raise ValueError(name)
    return name
