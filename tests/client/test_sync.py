"""The `_sync` twins: from scripts, threads, notebooks and forked children; and an end without noise."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis

import rota
from rota import (
    Call,
    CancelOutcome,
    ConfigurationError,
    Job,
    JobState,
    Middleware,
    ResultTimeout,
    Rota,
    StoreUnavailable,
    Task,
)
from rota.client.session import session_of, sessions_of
from rota.client.tasks import TaskWithOptions
from tests.client.manual_worker import Hand, run_python
from tests.eventually import eventually, eventually_sync
from tests.servers import OwnServers, Server


@pytest.fixture
def sync_rota(valkey: Server, namespace: str) -> Iterator[Rota]:
    rota = Rota(valkey.url, namespace=namespace)
    rota.task(name="send")(_number)
    yield rota
    rota.close_sync()


async def _number(number: int) -> int:
    return number


def send_of(rota: Rota) -> Task[[int], int, Any]:
    return rota.tasks.get("send")


PUBLIC = [value for name in rota.__all__ if inspect.isclass(value := getattr(rota, name)) and value is not Middleware]


@pytest.mark.parametrize("cls", [*PUBLIC, TaskWithOptions], ids=lambda cls: cls.__name__)
def test_every_coroutine_has_a_twin_with_the_same_parameters(cls: type) -> None:
    """Middleware is left out: its methods are overridden by users and called by Rota."""
    for name, method in vars(cls).items():
        if name.startswith("_") or not inspect.iscoroutinefunction(method):
            continue
        twin = getattr(cls, f"{name}_sync", None)
        assert twin is not None, f"{cls.__name__}.{name} has no twin"
        assert not inspect.iscoroutinefunction(twin)
        assert twin.__doc__
        if name != "close":
            assert inspect.signature(twin).parameters == inspect.signature(method).parameters, name
            assert inspect.signature(twin).return_annotation == inspect.signature(method).return_annotation, name


EVERY_TWIN = """
import sys
from rota import CancelOutcome, IdInUse, JobFailed, JobState, ResultTimeout, Rota, WrongState
rota = Rota(namespace=sys.argv[1])

@rota.task
async def send(to: str) -> str: return to

job = send.enqueue_sync("a")
many = rota.enqueue_many_sync(send.call(str(n)) for n in range(3))
one = rota.enqueue_sync(send.using(id="x").call("x"))
later = send.using(delay=60).enqueue_sync("later")
assert job.state_sync() == JobState.PENDING and job.refresh_sync().task == "send"
assert "no worker serves" in job.explain_sync()
assert [entry.verb for entry in job.history_sync()] == ["enqueue"] and job.logs_sync() == []
try: job.result_sync(timeout=0.05)
except ResultTimeout: pass
else: raise AssertionError
assert job.cancel_sync("no") is CancelOutcome.CANCELLED
many[0].delete_sync()
try: one.redrive_sync()
except WrongState: pass
assert len(rota.jobs_sync("pending", limit=10).jobs) == 3
assert [queue.name for queue in rota.queues_sync()] == ["default"] and rota.workers_sync() == []
queue = rota.queue()
queue.pause_sync(); assert queue.info_sync().is_paused; queue.resume_sync()
assert queue.counts_sync()["scheduled"] == 1
assert rota.dead.list_sync().jobs == [] and rota.dead.redrive_sync() == rota.dead.delete_sync() == 0
assert queue.purge_sync() == 4
rota.check_sync()
print("done")
"""


@pytest.mark.parametrize("end", ["", "rota.close_sync()", "rota.close_sync(); rota.close_sync()"])
def test_a_script_uses_every_sync_method_and_prints_nothing_at_its_end(
    valkey: Server, namespace: str, tmp_path: Path, end: str
) -> None:
    ended = run_python(EVERY_TWIN + end, namespace, cwd=tmp_path, url=valkey.url)

    assert (ended.stdout, ended.stderr, ended.returncode) == ("done\n", "", 0)


def test_a_script_that_fails_says_only_that(valkey: Server, namespace: str, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom rota import Rota\nrota = Rota(namespace=sys.argv[1])\nrota.queues_sync()\nraise SystemExit(7)"
    )

    ended = run_python(code, namespace, cwd=tmp_path, url=valkey.url)

    assert (ended.stdout, ended.stderr, ended.returncode) == ("", "", 7)


def test_a_script_with_its_own_loop_prints_nothing_at_its_end(valkey: Server, namespace: str, tmp_path: Path) -> None:
    code = """
import asyncio, sys
from rota import Rota
rota = Rota(namespace=sys.argv[1])

@rota.task
def send(to: str) -> str: return to

async def main():
    async with rota:
        job = await send.enqueue("a")
        waiter = asyncio.create_task(job.result())
        await asyncio.sleep(0.05)
        await job.cancel()
        await asyncio.wait([waiter])
        assert type(waiter.exception()).__name__ == "JobCancelled"

for _ in range(3):
    asyncio.run(main())
print("done")
"""
    ended = run_python(code, namespace, cwd=tmp_path, url=valkey.url)

    assert (ended.stdout, ended.stderr, ended.returncode) == ("done\n", "", 0)


FORGETFUL = """
import asyncio, gc, sys
import redis
from rota import Rota
rota = Rota(namespace=sys.argv[1])

@rota.task
def send(number: int) -> int: return number

async def main(): await send.enqueue(1)

with redis.Redis.from_url(sys.argv[2]) as raw:
    before = len(raw.client_list())
    for number in range(20):
        asyncio.run(main())
    gc.collect()
    print(len(raw.client_list()) - before)
"""


def test_loops_that_ended_without_a_close_keep_no_connections(
    own_server: OwnServers, namespace: str, tmp_path: Path
) -> None:
    url = own_server().url

    ended = subprocess.run(
        [sys.executable, "-c", FORGETFUL, namespace, url],
        cwd=tmp_path,
        env={**os.environ, "ROTA_URL": url},
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )

    assert int(ended.stdout) <= 2
    assert ended.stderr == ""


def test_many_threads_share_one_client(sync_rota: Rota) -> None:
    send = send_of(sync_rota)

    def enqueue(start: int) -> list[str]:
        return [send.enqueue_sync(start + n).id for n in range(25)]

    with ThreadPoolExecutor(16) as threads:
        ids = [id for part in threads.map(enqueue, range(0, 400, 25)) for id in part]

    assert len(set(ids)) == 400
    assert sync_rota.queue().counts_sync()["pending"] == 400
    assert sum(thread.name == "rota-sync" for thread in threading.enumerate()) <= 2


def test_a_thread_that_waits_does_not_hold_up_the_others(sync_rota: Rota) -> None:
    job = send_of(sync_rota).enqueue_sync(1)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(job.result_sync, 20)
        assert sync_rota.queue().counts_sync()["pending"] == 1

        asyncio.run(_finish(sync_rota, job))

        assert waiting.result(timeout=10) == 5


async def _finish(rota: Rota, job: Job[Any]) -> None:
    hand = Hand(rota, "w9")
    await hand.finish(job, 5)
    await hand.close()
    await rota.close()


async def test_a_notebook_whose_loop_is_running_may_use_both(rota: Rota, hand: Hand) -> None:
    send = rota.task(name="send")(_number)

    blocking = send.enqueue_sync(1)
    awaited = await send.enqueue(2)

    assert blocking.state_sync() == await blocking.state() == JobState.PENDING
    await hand.finish(blocking, 1)
    assert blocking.result_sync(timeout=5) == 1
    assert awaited.cancel_sync() is CancelOutcome.CANCELLED
    rota.close_sync()
    assert await awaited.state() == JobState.CANCELLED, "the connections of this loop are its own"


class Impatient(Middleware):
    def __init__(self) -> None:
        self.ask: Callable[[], object] = lambda: None

    async def enqueue(self, call: Call[Any]) -> Call[Any]:
        self.ask()
        return call


@pytest.mark.parametrize("ask", [Rota.queues_sync, Rota.close_sync])
def test_a_twin_that_would_wait_for_itself_says_so(
    valkey: Server, namespace: str, ask: Callable[[Rota], object]
) -> None:
    middleware = Impatient()
    rota = Rota(valkey.url, namespace=namespace, middleware=[middleware])
    middleware.ask = lambda: ask(rota)
    send = rota.task(name="send")(_number)

    with pytest.raises(ConfigurationError, match=r"cannot be called from the loop .* await the async method instead"):
        send.enqueue_sync(1)
    assert rota.queues_sync() == [], "and goes on working"
    rota.close_sync()


def test_a_closed_client_opens_again(sync_rota: Rota) -> None:
    for number in range(3):
        send_of(sync_rota).enqueue_sync(number)
        sync_rota.close_sync()

    assert sync_rota.queue().counts_sync()["pending"] == 3


def test_closing_during_other_calls_leaves_no_caller_waiting(sync_rota: Rota) -> None:
    send = send_of(sync_rota)
    send.enqueue_sync(0)
    stop = threading.Event()
    outcomes: list[str] = []

    def enqueue() -> None:
        while not stop.is_set():
            try:
                send.enqueue_sync(1)
                outcomes.append("stored")
            except BaseException as error:  # CancelledError is not an Exception
                outcomes.append(type(error).__name__)

    threads = [threading.Thread(target=enqueue, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    eventually_sync(lambda: "stored" in outcomes, 30)
    for _ in range(20):
        sync_rota.close_sync()
    stop.set()
    for thread in threads:
        thread.join(30)

    assert not any(thread.is_alive() for thread in threads), "a thread never returned"
    assert set(outcomes) <= {"stored", "CancelledError", "StoreUnavailable"}
    assert "stored" in outcomes


FORK = """
import os, sys
from rota import Rota
rota = Rota(namespace=sys.argv[1])

@rota.task
def send(number: int) -> int: return number

send.enqueue_sync(1)
children = []
for number in (2, 3):
    child = os.fork()
    if not child:
        try:
            job = send.enqueue_sync(number)
            assert job.state_sync() == "pending"
            if number == 3:
                rota.close_sync()
        except BaseException as error:
            print("child:", repr(error), file=sys.stderr)
            os._exit(1)
        sys.stdout.flush()
        os._exit(0) if number == 2 else sys.exit(0)
    children.append(child)
    send.enqueue_sync(10 + number)
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
assert len(rota.jobs_sync("pending").jobs) == 5
print("done")
"""


def test_a_forked_child_has_connections_of_its_own(valkey: Server, namespace: str, tmp_path: Path) -> None:
    ended = run_python(FORK, namespace, cwd=tmp_path, url=valkey.url)

    assert (ended.stdout, ended.stderr, ended.returncode) == ("done\n", "", 0)


def test_a_child_forked_at_the_worst_moment_does_not_hang(valkey: Server, namespace: str, tmp_path: Path) -> None:
    code = """
import os, sys
from rota import Rota
rota = Rota(namespace=sys.argv[1])
rota.queues_sync()
with rota._sessions._background._lock:  # as if another thread were just about to hand something over
    child = os.fork()
    if not child:
        rota.queues_sync()
        os._exit(0)
assert os.waitpid(child, 0)[1] == 0
rota.queues_sync()
print("done")
"""
    ended = run_python(code, namespace, cwd=tmp_path, url=valkey.url)

    assert (ended.stdout, ended.stderr, ended.returncode) == ("done\n", "", 0)


def test_ctrl_c_ends_the_wait_and_the_script(valkey: Server, namespace: str, tmp_path: Path) -> None:
    code = """
import signal, sys, threading, os
from rota import Rota
rota = Rota(namespace=sys.argv[1])

@rota.task
def send() -> None: ...

job = send.enqueue_sync()
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    job.result_sync()
except KeyboardInterrupt:
    print("interrupted", job.state_sync())
"""
    ended = run_python(code, namespace, cwd=tmp_path, url=valkey.url)

    assert (ended.stdout, ended.stderr, ended.returncode) == ("interrupted pending\n", "", 0)


def test_errors_come_through(sync_rota: Rota, valkey: Server, namespace: str) -> None:
    send = send_of(sync_rota)
    job = send.enqueue_sync(1)

    with pytest.raises(ResultTimeout):
        job.result_sync(timeout=0.01)
    with pytest.raises(ValueError, match="Expected `int`"):
        send.enqueue_sync("x")  # pyright: ignore[reportArgumentType]
    unreachable = Rota("redis://127.0.0.1:1", patience=0)
    with pytest.raises(StoreUnavailable):
        unreachable.queues_sync()
    unreachable.close_sync()


async def test_closing_ends_what_listens(rota: Rota, raw: redis.Redis) -> None:
    job = await rota.task(name="send")(_number).enqueue(1)
    waiter = asyncio.create_task(job.result(timeout=1))
    inbox = sessions_of(rota).keys.inbox(session_of(rota).store.participant)
    await eventually(lambda: raw.pubsub_channels(inbox))

    await rota.close()

    await eventually(lambda: not raw.pubsub_channels(inbox))
    with pytest.raises((ResultTimeout, asyncio.CancelledError)):
        await waiter


def test_closing_what_was_never_used_is_harmless() -> None:
    before = set(threading.enumerate())

    Rota("redis://127.0.0.1:1").close_sync()

    eventually_sync(lambda: not any(thread.name == "rota-sync" for thread in {*threading.enumerate()} - before))
