"""Parts of the worker that can be looked at alone."""

from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rota.core.job import Counts
from rota.errors import InvalidOption
from rota.store.reports import Claimed
from rota.worker import pool as pool_module
from rota.worker.config import WorkerConfig, parse_queues
from rota.worker.flights import Flight, Flights
from rota.worker.pool import Pool, RunnerProcess
from rota.worker.processes import cpu_seconds, descendants, kill_tree, rss_bytes
from rota.worker.threads import HandlerStopped, StoppableCall, Threads
from rota.worker.wire import Ears, FromRunner, Lag, Log, Mouth, decode_from_runner, frame
from tests.eventually import eventually, eventually_sync


def ignore(_runner: RunnerProcess, _messages: list[FromRunner]) -> None:
    """What a runner says is of no interest."""


def unheard(_reason: str) -> None:
    """Nor is why none can start."""


def flight(run: str = "r1", claim: str = "1.a", queue: str = "q") -> Flight:
    """A job that this worker has claimed."""
    return Flight(Claimed(queue, run, claim, Counts(attempt=1), b""))


# --- flights -----------------------------------------------------------------------------------------------------


def settle(flights: Flights, one: Flight) -> None:
    """The store has taken its report."""
    flights.settle(*one.job[:3])


def test_a_flight_has_a_slot_until_it_lands_and_a_lease_until_the_store_knows() -> None:
    flights, one = Flights(), flight()
    flights.add(one)
    assert (flights.busy, flights.held()) == (0, {"q": [("r1", "1.a")]}), "it waits for a slot"

    flights.start(one)
    assert (flights.busy, flights.held()) == (1, {"q": [("r1", "1.a")]})

    flights.land(one)
    flights.land(one)
    assert (flights.busy, flights.held()) == (0, {"q": [("r1", "1.a")]})

    settle(flights, one)
    assert (flights.busy, flights.held()) == (0, {})


def test_two_claims_of_one_run_are_two_flights() -> None:
    """S4-36: the older one is known, is not beaten for, and takes nothing with it when it goes."""
    flights, older, newer = Flights(), flight(claim="1.a"), flight(claim="2.b")
    assert flights.add(older) is None
    flights.start(older)
    assert flights.add(newer) is older
    flights.start(newer)
    assert (flights.busy, flights.held()) == (2, {"q": [("r1", "2.b")]})

    flights.land(older)
    settle(flights, older)
    assert (flights.busy, flights.held()) == (1, {"q": [("r1", "2.b")]})

    flights.land(newer)
    settle(flights, newer)
    assert (flights.busy, flights.held()) == (0, {})


def test_the_calendar_forgets_flights_that_have_ended() -> None:
    """One long job first, and a million short ones behind it, must not fill the memory."""
    flights, long = Flights(), flight("long")
    flights.calendar.put(("timeout", 300.0), long, 0.0)
    for number in range(1_000):
        short = flight(f"run{number}")
        flights.calendar.put(("timeout", 300.0 + number % 7), short, 0.0)
        flights.land(short)

    assert len(flights.calendar) == 1
    assert flights.calendar.next() == 300.0
    assert flights.calendar.due(300.0) == [(long, "timeout")]
    assert (len(flights.calendar), flights.calendar.next()) == (0, None)


def test_the_calendar_tells_what_is_due_and_nothing_twice() -> None:
    calendar, one, two = Flights().calendar, flight("one"), flight("two")
    calendar.put(("timeout", 5.0), one, 0.0)
    calendar.put(("progress", 2.0), one, 0.0)
    calendar.put(("timeout", 5.0), two, 1.0)
    assert calendar.next() == 2.0

    calendar.put(("progress", 2.0), one, 1.5)  # it has come further: later, then

    assert calendar.due(3.0) == []
    assert calendar.due(5.0) == [(one, "timeout"), (one, "progress")]
    assert calendar.due(5.0) == []
    assert calendar.next() == 6.0


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
    """Whatever the instant: the thread belongs to a pool, and the next call in it is somebody else's."""
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

    ended = await asyncio.gather(*(threads.run(partial(meet, number)) for number in range(20)), return_exceptions=True)

    assert [value for value in ended if isinstance(value, int)] == list(range(0, 20, 2))
    assert all(isinstance(error, RuntimeError | StopIteration) for error in ended[1::2])
    names = [thread for thread in threading.enumerate() if thread.name.startswith("rota-handler-")]
    assert len(names) >= 20
    await threads.run(lambda: None)
    assert threads._count == 20, "there are enough for one more"


async def test_a_call_in_a_thread_that_nobody_waits_for_any_more_runs_on() -> None:
    threads, goes_on, is_over = Threads(), threading.Event(), threading.Event()

    def work() -> None:
        goes_on.wait(10)
        is_over.set()

    waiting = asyncio.create_task(threads.run(work))
    await eventually(lambda: threads._under_way == 1)
    waiting.cancel()
    goes_on.set()

    with pytest.raises(asyncio.CancelledError):
        await waiting
    await eventually(is_over.is_set)
    await eventually(lambda: threads._under_way == 0)


# --- the wire ----------------------------------------------------------------------------------------------------


class Heard:
    """What came through a pair of ears, frame by frame."""

    def __init__(self) -> None:
        self.frames: list[list[FromRunner]] = []
        self.ends = 0
        self.ears = Ears(decode_from_runner, self.frames.append, self.end)

    def end(self) -> None:
        """Nothing more will come."""
        self.ends += 1


def test_frames_come_through_whole_and_nonsense_is_the_end() -> None:
    heard, said = Heard(), [Log(1, 1, "x" * 100_000), Lag(5)]
    data = frame(said) + frame([Lag(6)]) + b"\x00\x00\x00\x04nope" + frame([Lag(7)])

    for begin in range(0, len(data), 997):
        heard.ears.data_received(data[begin : begin + 997])
    heard.ears.connection_lost(None)

    assert heard.frames == [said, [Lag(6)]]
    assert heard.ends == 1, "and it is told once"


def test_threads_that_speak_at_once_do_not_mix_their_words(tmp_path: Path) -> None:
    file = os.open(tmp_path / "pipe", os.O_RDWR | os.O_CREAT)
    mouth = Mouth(file)
    with ThreadPoolExecutor(8) as threads:
        for number in range(200):
            threads.submit(mouth.say, Log(1, number, "x" * 5_000))
    data = (tmp_path / "pipe").read_bytes()
    os.close(file)
    heard = Heard()

    heard.ears.data_received(data)

    lines = [message for messages in heard.frames for message in messages if isinstance(message, Log)]
    assert sorted(line.number for line in lines) == list(range(200))
    assert heard.ends == 0


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
    """False once the last process of it is dead and buried."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_process_that_is_still_starting_is_never_left_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the supervisor killed in between, nobody would ever let it go on, or end it."""
    stopped: list[int] = []
    monkeypatch.setattr(pool_module, "kill_tree", stopped.append)
    dead: list[RunnerProcess] = []
    pool = Pool(
        "no.such.app", loops=1, measures_lag=False, max_jobs=None, max_rss_mb=None, on_messages=ignore,
        on_death=dead.append, on_broken=unheard,
    )  # fmt: skip

    runner = pool.runner_for("process")
    await eventually(lambda: runner.pid > 0)
    runner.kill()

    await eventually(lambda: dead == [runner])
    assert stopped == []
    await pool.close()


async def test_a_process_that_cannot_be_started_is_told_and_its_jobs_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """No memory, no more processes: what was to run there must not wait for ever."""
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    monkeypatch.setattr(pool_module, "RESTART_PAUSE_S", 0.01)
    dead: list[RunnerProcess] = []
    pool = Pool(
        "app", loops=1, measures_lag=False, max_jobs=None, max_rss_mb=None, on_messages=ignore,
        on_death=dead.append, on_broken=unheard,
    )  # fmt: skip

    runner = pool.runner_for("process")
    runner.flights[1] = flight()

    await eventually(lambda: dead == [runner])
    assert "no process could be started" in runner.broken
    assert pool.runners == []
    await pool.close()


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
