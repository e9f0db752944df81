"""Parts of the worker that can be looked at alone."""

from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import msgspec
import pytest

from rota import Rota
from rota.core.job_record import AttemptCounts
from rota.errors import InvalidOption
from rota.store.claim_replies import ClaimedJob
from rota.store.report_encoding import Report
from rota.worker.config import WorkerConfig, parse_queues
from rota.worker.monitoring.prometheus_metrics import WorkerMetrics
from rota.worker.runners import pool as pool_module
from rota.worker.runners.executor import Attempt
from rota.worker.runners.interruptible_threads import HandlerStopped, StoppableCall, Threads
from rota.worker.runners.measure_and_kill_process_trees import cpu_seconds, descendants, kill_tree, rss_bytes
from rota.worker.runners.pool import Pool, RunnerProcess
from rota.worker.runners.protocol import (
    FrameReader,
    FrameWriter,
    FromRunner,
    Log,
    LoopBlocked,
    LoopLag,
    StartAttempt,
    decode_from_runner,
    frame,
)
from rota.worker.runners.runner_process import Runner
from rota.worker.running_jobs import RunningJob, RunningJobs
from tests.eventually import eventually, eventually_sync

if TYPE_CHECKING:
    from rota.worker.run_loops_and_drain import Supervisor


class Exits:
    """Records the runners that have ended."""

    def __init__(self) -> None:
        self.runners: list[RunnerProcess] = []

    def on_messages(self, runner: RunnerProcess, messages: list[FromRunner]) -> None:
        """Ignores messages."""

    def on_exit(self, runner: RunnerProcess) -> None:
        """Records a runner that has ended."""
        self.runners.append(runner)


def make_pool(app: str) -> tuple[Pool, Exits]:
    """A pool of one loop runner, and the record of its ends."""
    pool, exits = Pool(app, loops=1, measures_lag=False, max_jobs=None, max_rss_mb=None), Exits()
    pool.listener = exits
    return pool, exits


def running_job(run: str = "r1", claim: str = "1.a", queue: str = "q") -> RunningJob:
    """A job that this worker has claimed."""
    return RunningJob(ClaimedJob(queue, run, claim, AttemptCounts(attempt=1), b""))


# --- running jobs ------------------------------------------------------------------------------------------------


def acknowledge(running: RunningJobs, one: RunningJob) -> None:
    """The store has stored its report."""
    running.acknowledge(*one.job[:3])


def test_a_job_has_a_slot_until_it_finishes_and_a_lease_until_it_is_acknowledged() -> None:
    running, one = RunningJobs(), running_job()
    running.add(one)
    assert (running.busy, running.leases()) == (0, {"q": [("r1", "1.a")]}), "it waits for a slot"

    running.start(one)
    assert (running.busy, running.leases()) == (1, {"q": [("r1", "1.a")]})

    running.finish(one)
    running.finish(one)
    assert (running.busy, running.leases()) == (0, {"q": [("r1", "1.a")]})

    acknowledge(running, one)
    assert (running.busy, running.leases()) == (0, {})


@pytest.mark.requirement("S4-36")
def test_two_claims_of_one_run_are_two_running_jobs() -> None:
    """The older one is known, is not beaten for, and takes nothing with it when it goes."""
    running, older, newer = RunningJobs(), running_job(claim="1.a"), running_job(claim="2.b")
    assert running.add(older) is None
    running.start(older)
    assert running.add(newer) is older
    running.start(newer)
    assert (running.busy, running.leases()) == (2, {"q": [("r1", "2.b")]})

    running.finish(older)
    acknowledge(running, older)
    assert (running.busy, running.leases()) == (1, {"q": [("r1", "2.b")]})

    running.finish(newer)
    acknowledge(running, newer)
    assert (running.busy, running.leases()) == (0, {})


def test_the_deadlines_of_finished_jobs_are_dropped() -> None:
    """One long job first, and a million short ones behind it, must not fill the memory."""
    running, long = RunningJobs(), running_job("long")
    running.deadlines.put(("timeout", 300.0), long, 0.0)
    for number in range(1_000):
        short = running_job(f"run{number}")
        running.deadlines.put(("timeout", 300.0 + number % 7), short, 0.0)
        running.finish(short)

    assert len(running.deadlines) == 1
    assert running.deadlines.next() == 300.0
    assert running.deadlines.due(300.0) == [(long, "timeout")]
    assert (len(running.deadlines), running.deadlines.next()) == (0, None)


def test_a_deadline_is_due_once() -> None:
    deadlines, one, two = RunningJobs().deadlines, running_job("one"), running_job("two")
    deadlines.put(("timeout", 5.0), one, 0.0)
    deadlines.put(("progress", 2.0), one, 0.0)
    deadlines.put(("timeout", 5.0), two, 1.0)
    assert deadlines.next() == 2.0

    deadlines.put(("progress", 2.0), one, 1.5)  # it has come further: later, then

    assert deadlines.due(3.0) == []
    assert deadlines.due(5.0) == [(one, "timeout"), (one, "progress")]
    assert deadlines.due(5.0) == []
    assert deadlines.next() == 6.0


# --- a call in a thread ------------------------------------------------------------------------------------------


def _call(function: Any) -> StoppableCall:
    return StoppableCall(contextvars.copy_context(), function)


def test_a_call_that_is_stopped_before_it_has_begun_never_begins() -> None:
    begun: list[int] = []
    call = _call(lambda: begun.append(1))
    call.interrupt()

    with pytest.raises(HandlerStopped):
        call()

    assert begun == []


def test_a_stop_hits_the_call_and_never_what_its_thread_does_next() -> None:
    """Whatever the instant: the thread belongs to a pool, and the next call in it belongs to another job."""
    with ThreadPoolExecutor(1) as threads:
        for _ in range(300):
            begun = threading.Event()

            def work(begun: threading.Event = begun) -> int:
                begun.set()
                return sum(range(2_000))

            call = _call(work)
            future = threads.submit(call)
            begun.wait(5)
            call.interrupt()
            assert isinstance(future.exception(5), HandlerStopped | None)
            assert threads.submit(sum, range(100)).result(5) == 4950


async def test_calls_in_threads_run_at_once_and_bring_what_they_return_or_raise() -> None:
    threads, gate = Threads(), threading.Barrier(20)

    def meet(number: int) -> int:
        gate.wait(10)  # goes on when all of them are here
        if number % 2:
            raise StopIteration(number)
        return number

    calls = (threads.run(_call(partial(meet, number))) for number in range(20))
    ended = await asyncio.gather(*calls, return_exceptions=True)

    assert [value for value in ended if isinstance(value, int)] == list(range(0, 20, 2))
    assert all(isinstance(error, RuntimeError | StopIteration) for error in ended[1::2])
    names = [thread for thread in threading.enumerate() if thread.name.startswith("rota-handler-")]
    assert len(names) >= 20
    await threads.run(_call(lambda: None))
    assert threads._count == 20, "there are enough for one more"


async def test_a_call_in_a_thread_whose_caller_is_cancelled_is_interrupted_and_awaited() -> None:
    """Also if the caller is cancelled again meanwhile."""
    threads, has_begun, goes_on, is_over = Threads(), threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        has_begun.set()
        try:
            while True:
                time.sleep(0.01)
        finally:
            goes_on.wait(10)
            is_over.set()

    waiting = asyncio.create_task(threads.run(_call(work)))
    await eventually(has_begun.is_set)
    waiting.cancel()
    await asyncio.sleep(0)
    waiting.cancel()
    done, _ = await asyncio.wait((waiting,), timeout=0.1)
    assert not done
    goes_on.set()

    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert is_over.is_set()
    assert threads._under_way == 0


async def test_a_reserved_thread_makes_only_its_own_calls_until_it_is_given_back() -> None:
    threads = Threads()
    reserved = threads.reserve()

    others = {await threads.run(_call(threading.get_ident)) for _ in range(3)}
    own = {await threads.run(_call(threading.get_ident), reserved) for _ in range(3)}
    threads.give_back(reserved)

    assert len(own) == 1
    assert not own & others
    await eventually(lambda: threads._under_way == 0)
    assert threads._count == 2


async def test_a_call_that_waits_for_a_reserved_thread_is_given_up_at_once() -> None:
    """It must not wait for the end of the call before it, which may never come."""
    threads, goes_on = Threads(), threading.Event()
    reserved, calls = threads.reserve(), list[str]()
    first = asyncio.create_task(threads.run(_call(partial(goes_on.wait, 60)), reserved))
    second = asyncio.create_task(threads.run(_call(partial(calls.append, "second")), reserved))
    await asyncio.sleep(0)

    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    assert not first.done()
    goes_on.set()
    await first
    await threads.run(_call(partial(calls.append, "third")), reserved)

    assert calls == ["third"]


# --- blocked loops -----------------------------------------------------------------------------------------------


class Sent:
    """Records the messages of a runner."""

    def __init__(self) -> None:
        self.messages: list[FromRunner] = []

    def send(self, *messages: FromRunner) -> None:
        """Records messages."""
        self.messages += messages


async def test_a_runner_reports_that_its_loop_is_blocked_and_that_it_runs_again() -> None:
    """Otherwise a later timeout of a neighbour would pass for a consequence of the block."""
    sent = Sent()
    runner = Runner(Rota(), sent)
    attempt = runner._attempts[7] = Attempt(StartAttempt(7, "q", "r1", "1.a", (), b""))
    attempt.task = asyncio.current_task()

    def report(reads: int) -> None:
        thread = threading.Thread(target=runner.report_blocked_loop, args=(reads,))
        thread.start()
        thread.join()  # the loop is blocked meanwhile

    report(runner.reads + 1)
    assert sent.messages == [], "messages have been read since it was found to be blocked"
    report(runner.reads)
    runner._on_messages([])
    runner._on_messages([])

    assert sent.messages == [LoopBlocked(7), LoopBlocked(None)]


# --- frames ------------------------------------------------------------------------------------------------------


class Received:
    """Records what a frame reader passes on, frame by frame."""

    def __init__(self) -> None:
        self.frames: list[list[FromRunner]] = []
        self.ends = 0
        self.reader = FrameReader(decode_from_runner, self.frames.append, self.end)

    def end(self, _reason: str) -> None:
        """Counts the calls of `on_end`."""
        self.ends += 1


def test_frames_are_read_whole_and_an_undecodable_one_is_the_end() -> None:
    received, sent = Received(), [Log(1, 1, "x" * 100_000), LoopLag(5)]
    data = frame(sent) + frame([LoopLag(6)]) + b"\x00\x00\x00\x04nope" + frame([LoopLag(7)])

    for begin in range(0, len(data), 997):
        received.reader.data_received(data[begin : begin + 997])
    received.reader.connection_lost(None)

    assert received.frames == [sent, [LoopLag(6)]]
    assert received.ends == 1, "on_end is called once"


def test_frames_of_several_threads_are_not_mixed(tmp_path: Path) -> None:
    file = os.open(tmp_path / "pipe", os.O_RDWR | os.O_CREAT)
    writer = FrameWriter(file)
    with ThreadPoolExecutor(8) as threads:
        for number in range(200):
            threads.submit(writer.send, Log(1, number, "x" * 5_000))
    data = (tmp_path / "pipe").read_bytes()
    os.close(file)
    received = Received()

    received.reader.data_received(data)

    lines = [message for messages in received.frames for message in messages if isinstance(message, Log)]
    assert sorted(line.number for line in lines) == list(range(200))
    assert received.ends == 0


# --- processes ---------------------------------------------------------------------------------------------------


def test_a_tree_of_processes_is_killed_while_it_grows() -> None:
    """A shell that starts one child after another: none escapes because it was born at the wrong moment."""
    script = "while :; do sleep 300 & sleep 0.001; done"
    shell = subprocess.Popen(["sh", "-c", script], start_new_session=True)
    try:
        eventually_sync(lambda: len(descendants(shell.pid)) >= 20)
        before = descendants(shell.pid)
        assert cpu_seconds(os.getpid()) > 0
        assert rss_bytes(shell.pid) > 0
    finally:
        kill_tree(shell.pid)
        shell.wait(5)

    assert len(before) >= 20
    eventually_sync(lambda: not _group_exists(shell.pid))


def _group_exists(group: int) -> bool:
    """False once its last process is dead and reaped."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_process_that_is_still_starting_is_never_left_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the supervisor were killed in between, it would stay stopped."""
    stopped: list[int] = []
    monkeypatch.setattr(pool_module, "kill_tree", stopped.append)
    pool, exits = make_pool("no.such.app")

    runner = pool.runner_for("process")
    await eventually(lambda: runner.pid > 0)
    runner.kill()

    await eventually(lambda: exits.runners == [runner])
    assert stopped == []
    await pool.close()


async def test_a_runner_that_dies_while_the_others_start_is_replaced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`--processes 3` stayed at two."""
    monkeypatch.setenv("ROTA_TEST_FOLDER", str(tmp_path))
    monkeypatch.setenv("ROTA_TEST_NAMESPACE", "unused")
    monkeypatch.setattr(pool_module, "RESTART_PAUSE_S", 0.01)
    pool = Pool("tests.worker.app:rota", loops=3, measures_lag=False, max_jobs=None, max_rss_mb=None)

    starting = asyncio.create_task(pool.start())
    await eventually(lambda: len(pool.runners) == 3)
    pool.runners[2].kill()
    await starting

    await eventually(lambda: sum(runner.is_ready for runner in pool.runners) == 3, 30)
    await pool.close()


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_a_process_that_cannot_be_started_is_reported_and_its_jobs_are_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No memory, no more processes: the jobs that were to run there must not wait forever."""
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    monkeypatch.setattr(pool_module, "RESTART_PAUSE_S", 0.01)
    pool, exits = make_pool("app")

    before = _open_files()
    runner = pool.runner_for("process")
    runner.jobs[1] = running_job()

    await eventually(lambda: exits.runners == [runner])
    assert "no process could be started" in runner.failure
    assert _open_files() <= before, "its pipes are closed"
    assert pool.runners == []
    await pool.close()


# --- metrics -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", get_args(Report))
def test_every_report_is_counted_with_an_outcome(kind: Any) -> None:
    """A report without one would end the dispatcher of every worker that has a metrics port."""
    values: dict[Any, bytes | str] = {bytes: b"", str: ""}
    report: Report = kind(*(values[field.type] for field in msgspec.structs.fields(kind)))
    metrics = WorkerMetrics(cast("Supervisor", None))

    metrics.attempt_ended(running_job(), report)

    assert metrics._attempts.family().samples


# --- configuration -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "queues", "weights"),
    [("a", ("a",), ()), ("a,b", ("a", "b"), ()), ("a=3, b=1", ("a", "b"), (3, 1))],
)
def test_queues_are_given_in_order_or_by_weight(text: str, queues: tuple[str, ...], weights: tuple[int, ...]) -> None:
    assert parse_queues(text) == (queues, weights)


@pytest.mark.parametrize("text", ["", "a,,b", "a=0", "a=x", "a=3,b", "a b"])
def test_queues_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(InvalidOption):
        parse_queues(text)


@pytest.mark.parametrize(
    "wrong",
    [
        {"queues": ()},
        {"queues": ("a", "a")},
        {"weights": (1, 2)},
        {"concurrency": 0},
        {"concurrency": 10_001},
        {"processes": 0},
        {"grace": -1},
        {"max_jobs": 0},
        {"max_rss_mb": 0},
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        WorkerConfig(app="a:b", **wrong)


def test_shards_take_the_place_of_their_queue_and_share_its_weight() -> None:
    config = WorkerConfig(app="a:b", queues=("a", "wide", "z"))
    shards = {"a": ["a"], "wide": ["wide~1of2", "wide~2of2"], "z": ["z"]}

    assert config.spread({queue: [queue] for queue in config.queues}) is config
    strict = config.spread(shards)
    assert (strict.queues, strict.weights) == (("a", "wide~1of2", "wide~2of2", "z"), ())
    weighted = replace(config, weights=(3, 4, 1)).spread(shards)
    assert dict(zip(weighted.queues, weighted.weights, strict=True)) == {"a": 6, "wide~1of2": 4, "wide~2of2": 4, "z": 2}
    named_twice = WorkerConfig(app="a:b", queues=("wide", "wide~2of2"))
    found = named_twice.spread({"wide": shards["wide"], "wide~2of2": ["wide~2of2"]})
    assert found.queues == ("wide~1of2", "wide~2of2")
