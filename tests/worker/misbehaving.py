"""A program whose handlers do to their process what handlers should not do."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Final

from rota import Cancel, Context, Depends, Middleware, Rota, Snooze

FOLDER: Final = Path(os.environ["ROTA_TEST_FOLDER"])
STEP_SECONDS: Final = 0.01


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


def import_badly() -> None:
    """Does at import what the test asks for."""
    if is_allowed("slow-import"):
        note("import", os.getpid())
        time.sleep(60)
    if is_allowed("exit-at-import"):
        sys.exit(7)


import_badly()


async def fail_when_allowed() -> None:
    """A background task of the program, which fails once."""
    await hold("background-fails")
    (FOLDER / "allowed-background-fails").unlink(missing_ok=True)
    raise ConnectionError("the feed is gone")


@asynccontextmanager
async def lifespan(_: Rota) -> AsyncGenerator[None]:
    """Starts a background task, and takes a moment to clean up."""
    async with asyncio.TaskGroup() as background:
        task = background.create_task(fail_when_allowed())
        try:
            yield
            if is_allowed("slow-cleanup"):
                await asyncio.sleep(3)
            note("lifespan", "cleaned up")
        finally:
            task.cancel()


class Impatient(Middleware):
    """Gives some tasks less time than they take."""

    async def attempt(self, context: Context, run: Callable[[], Awaitable[Any]]) -> Any:
        """Runs the attempt, for a moment."""
        if context.job.task != "outlast_middleware":
            return await run()
        async with asyncio.timeout(0.3):
            return await run()


rota = Rota(namespace=os.environ["ROTA_TEST_NAMESPACE"], lifespan=lifespan, middleware=[Impatient()])


@rota.task
async def wait(subject: str) -> str:
    """Waits until allowed."""
    note(subject, "begin")
    await hold(subject)
    return subject


@rota.task
def wait_in_thread(subject: str) -> str:
    """Waits until allowed, in a thread."""
    note(subject, "begin")
    while not is_allowed(subject):
        time.sleep(STEP_SECONDS)
    return subject


@rota.task(retry=1)
async def exit_in_child_task(awaits: bool) -> str:
    """Starts a task that calls `sys.exit`."""

    async def child() -> None:
        await asyncio.sleep(0)
        sys.exit(3)

    task = asyncio.create_task(child())
    if awaits:
        await task
    await asyncio.sleep(0.1)
    return "done"


@rota.task(retry=1)
async def stop_loop() -> str:
    """Stops the event loop that it runs on."""
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0.01)
    return "done"


REASONS: Final[dict[str, Any]] = {"number": 404, "none": None, "surrogate": "\ud800", "object": {"code": 1}}


@rota.task
async def cancel_with(kind: str) -> None:
    """Cancels itself for a reason that is no text."""
    raise Cancel(REASONS[kind])


@rota.task(run_in="process")
def run_a_loop() -> str:
    """Runs an event loop of its own, as many libraries do for synchronous callers."""

    async def inner() -> str:
        await asyncio.sleep(0)
        return "inner"

    return f"{asyncio.run(inner())} {threading.current_thread() is threading.main_thread()}"


@rota.task(run_in="process", retry=1)
def exit_in_process() -> None:
    """Calls `sys.exit` in a process of its own."""
    sys.exit(5)


class Careless:
    """A provider's resource."""


def swallow() -> Iterator[Careless]:
    """Suppresses whatever the handler raises."""
    try:
        yield Careless()
    except BaseException as error:
        note("swallowed", type(error).__name__)


OUTCOMES: Final[dict[str, Callable[[], BaseException]]] = {
    "ValueError": lambda: ValueError("bad value"),
    "Snooze": lambda: Snooze(3600),
    "Cancel": lambda: Cancel("not needed"),
}


@rota.task(retry=1)
async def raise_through_provider(kind: str, resource: Careless = Depends(swallow)) -> None:  # noqa: B008  # as users write it
    """Raises, and a provider suppresses it."""
    raise OUTCOMES[kind]()


class Closeable:
    """A resource that is open until it is closed."""

    is_open = True


def open_for_attempt() -> Iterator[Closeable]:
    """Open for one attempt."""
    resource = Closeable()
    yield resource
    resource.is_open = False


def keep_for_worker(resource: Closeable = Depends(open_for_attempt)) -> Closeable:  # noqa: B008  # as users write it
    """Lives as long as the process, and so must what it holds."""
    return resource


@rota.task
async def use_kept(resource: Closeable = Depends(keep_for_worker, scope="worker")) -> bool:  # noqa: B008  # as users write it
    """Whether the resource is still open."""
    return resource.is_open


class BrokenZone(tzinfo):
    """A time zone that cannot be used."""

    def utcoffset(self, dt: datetime | None) -> timedelta:
        raise LookupError("no such zone")


class BrokenFields(Exception):
    """An error with an attribute that cannot be encoded."""

    def __init__(self) -> None:
        super().__init__("broken fields")
        self.when = datetime(2026, 1, 1, tzinfo=BrokenZone())


def _odd_syntax_error() -> SyntaxError:
    error = SyntaxError("odd")
    error.lineno = "one"  # type: ignore[assignment]
    error.text = 5  # type: ignore[assignment]
    error.offset = object()  # type: ignore[assignment]
    error.filename = "x.py"
    return error


class _Nameless(type):
    """The class of a class whose name cannot be encoded."""

    @property
    def __name__(cls) -> str:  # type: ignore[override]
        return "\ud800"


class NamelessError(Exception, metaclass=_Nameless):
    """An error whose class has such a name."""


ODD: Final[dict[str, Callable[[], BaseException]]] = {
    "SyntaxError": _odd_syntax_error,
    "BrokenFields": BrokenFields,
    "NamelessError": NamelessError,
    "StopIteration": lambda: StopIteration("no more"),
}


@rota.task(retry=1)
async def raise_odd(kind: str) -> None:
    """Raises an error that is hard to record."""
    raise ODD[kind]()


@rota.task(retry=1)
def raise_odd_in_thread(kind: str) -> None:
    """The same in a thread."""
    raise ODD[kind]()


@rota.task
def leave_thread_behind() -> int:
    """Starts a thread that Python waits for at exit."""
    threading.Thread(target=time.sleep, args=(3600,), daemon=False).start()
    return os.getpid()


@rota.task
async def pid() -> int:
    """The process that runs it."""
    return os.getpid()


@rota.task(retry=2)
def outlast_middleware(subject: str) -> None:
    """Runs longer than its middleware allows."""
    note(subject, "in")
    try:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            time.sleep(STEP_SECONDS)
    finally:
        time.sleep(0.3)
        note(subject, "out")


@rota.task
def log_from_threads(ctx: Context, threads: int, lines: int) -> None:
    """Logs from several threads at once."""
    sys.setswitchinterval(1e-6)
    started = threading.Barrier(threads)

    def write(thread: int) -> None:
        started.wait()
        for line in range(lines):
            ctx.log(f"{thread} {line}")

    writers = [threading.Thread(target=write, args=(number,)) for number in range(threads)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()


@rota.task
def flood_log(ctx: Context, subject: str, lines: int, size: int) -> None:
    """Logs far more than is kept, once it is allowed."""
    note(subject, "begin")
    while not is_allowed(subject):
        time.sleep(STEP_SECONDS)
    text = "x" * size
    for _ in range(lines):
        ctx.log(text)
    note(subject, "end")


@rota.task(run_in="process")
def sleep_in_process(seconds: float) -> None:
    """Blocks its process, as it may."""
    time.sleep(seconds)


@rota.task
async def exit_process(subject: str) -> None:
    """Ends its process."""
    note(subject, os.getpid())
    os._exit(3)


@rota.task
async def log_and_exit() -> None:
    """Logs, and ends its process at once."""
    import logging

    logging.getLogger("shop").error("famous last words")
    os._exit(3)


@rota.task
async def block_loop(seconds: float) -> None:
    """Blocks the event loop."""
    note("block", "begin")
    time.sleep(seconds)  # noqa: ASYNC251


@rota.task
async def sleep(seconds: float) -> str:
    """Sleeps on the event loop."""
    note("sleep", "begin")
    await asyncio.sleep(seconds)
    return "slept"
