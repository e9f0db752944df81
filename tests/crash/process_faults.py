"""Faults of processes: workers, runners, producers, the HTTP API and the autoscaler."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Final

import psutil

from tests.crash.chaos_arena import Arena, family
from tests.crash.fault_registry import FREEZES_S, fault, journalled
from tests.eventually import eventually
from tests.worker.harness import WorkerProcess

#: How long a process may take to come to its crash point.
REACHED_S: Final = 12.0


def _signal(processes: Collection[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


@fault
async def kill_supervisor(arena: Arena) -> None:
    """SIGKILL to a supervisor: its runners have to exit by themselves."""
    if found := arena.any_worker():
        worker = found[1]
        arena.journal.write("fault", name="kill_supervisor", pids=[worker.pid], is_kill=True)
        worker.kill()


@fault
async def kill_host(arena: Arena) -> None:
    """SIGKILL to a worker with all its processes."""
    if found := arena.any_worker():
        processes = family(found[1].pid)
        pids = [process.pid for process in processes]
        arena.journal.write("fault", name="kill_host", pids=pids, is_kill=True)
        _signal(processes, signal.SIGKILL)


@fault
async def kill_runner(arena: Arena) -> None:
    """SIGKILL to one of the processes that run handlers."""
    found = arena.any_worker()
    runners = found[1].runners() if found else []
    if runners:
        pid = arena.chance.choice(runners)
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            arena.journal.write("fault", name="kill_runner", pids=[pid], is_kill=True)
            process.kill()


@fault
async def kill_producer(arena: Arena) -> None:
    """SIGKILL to a producer, at any point of a call."""
    if producer := arena.any_producer():
        arena.journal.write("fault", name="kill_producer", pids=[producer.pid], is_kill=True)
        producer.kill()


@fault
async def stop_worker(arena: Arena) -> None:
    """SIGTERM: a rolling restart."""
    if found := arena.any_worker():
        arena.journal.write("fault", name="stop_worker", pids=[found[1].pid])
        found[1].terminate()


@fault
async def freeze_supervisor(arena: Arena) -> None:
    """SIGSTOP to a supervisor, whose runners go on: a zombie once its leases have run out."""
    if found := arena.any_worker():
        await _freeze(arena, "freeze_supervisor", family(found[1].pid)[:1])


@fault
async def freeze_host(arena: Arena) -> None:
    """SIGSTOP to a worker with all its processes."""
    if found := arena.any_worker():
        await _freeze(arena, "freeze_host", family(found[1].pid))


@fault
async def freeze_runner(arena: Arena) -> None:
    """SIGSTOP to one of the processes that run handlers."""
    found = arena.any_worker()
    if found and (runners := found[1].runners()):
        with suppress(psutil.NoSuchProcess):
            await _freeze(arena, "freeze_runner", [psutil.Process(arena.chance.choice(runners))])


@fault
async def freeze_producer(arena: Arena) -> None:
    """SIGSTOP to a producer in the middle of its calls."""
    if producer := arena.any_producer():
        await _freeze(arena, "freeze_producer", family(producer.pid))


@fault
async def crash_worker_at_point(arena: Arena) -> None:
    """A worker dies right before or after the next script of the list, at its first call of it."""
    point = next(arena.crash_points)
    place = arena.chance.randrange(len(arena.workers))
    if (worker := arena.workers[place]) is not None and worker.is_alive:
        arena.journal.write("fault", name="kill_supervisor", pids=[worker.pid], is_kill=True)
        worker.kill()
    crashing = arena.workers[place] = arena.launch_worker(place, point)
    await _crash(arena, crashing, point)


@fault
async def crash_producer_at_point(arena: Arena) -> None:
    """The same with a producer."""
    point = next(arena.crash_points_of_producers)
    await _crash(arena, arena.launch_producer("producer", {"ROTA_TEST_CRASH_POINT": point}), point)


async def _crash(arena: Arena, process: WorkerProcess, point: str) -> None:
    with suppress(AssertionError):  # it may never come to this point
        await eventually(lambda: not process.is_alive, REACHED_S)
    if process.is_alive:
        process.kill()
        arena.journal.write("point", name=point, is_reached=False)
        return
    arena.journal.write("fault", name=f"crash {point.removeprefix('at:')}", pids=[process.pid], is_kill=True)
    arena.journal.write("point", name=point, is_reached=process.exit_code == -signal.SIGKILL)


@fault
async def kill_autoscaler(arena: Arena) -> None:
    """SIGKILL to the autoscaler, whose workers are processes of its own."""
    if arena.autoscaler is not None and arena.autoscaler.is_alive:
        pids = [process.pid for process in family(arena.autoscaler.pid)]
        arena.journal.write("fault", name="kill_autoscaler", pids=pids, is_kill=True)
        arena.autoscaler.kill()


@fault
async def freeze_autoscaler(arena: Arena) -> None:
    """SIGSTOP to the autoscaler."""
    if arena.autoscaler is not None and arena.autoscaler.is_alive:
        await _freeze(arena, "freeze_autoscaler", family(arena.autoscaler.pid)[:1])


@fault
async def kill_api(arena: Arena) -> None:
    """SIGKILL to the HTTP API while it answers."""
    if arena.api is not None and arena.api.is_alive:
        arena.journal.write("fault", name="kill_api", pids=[arena.api.pid], is_kill=True)
        arena.api.kill()


@fault
async def freeze_api(arena: Arena) -> None:
    """SIGSTOP to the HTTP API while it answers."""
    if arena.api is not None and arena.api.is_alive:
        await _freeze(arena, "freeze_api", family(arena.api.pid))


async def _freeze(arena: Arena, name: str, processes: Sequence[psutil.Process]) -> None:
    seconds = arena.chance.choice(FREEZES_S)
    async with journalled(arena, name, [process.pid for process in processes], seconds=seconds):
        _signal(processes, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            _signal(processes, signal.SIGCONT)
