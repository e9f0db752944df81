"""The faults of the fault-injection suite, by name. Each is journalled with the processes that it hits and its end."""

from __future__ import annotations

import asyncio
import resource
import signal
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, cast

import psutil
import redis

from tests.cluster.nodes import Cluster
from tests.crash.chaos_arena import Arena, family, server_of
from tests.crash.journal import now_ns
from tests.eventually import eventually, eventually_sync
from tests.sentinel import FailoverGroup
from tests.servers import Server
from tests.worker.harness import WorkerProcess

Fault = Callable[[Arena], Awaitable[None]]
#: Longer than a lease, so that others run the jobs meanwhile; and shorter.
FREEZES_S: Final = (0.3, 6.0)
#: How long a process may take to come to its crash point.
REACHED_S: Final = 12.0
#: About how long a loading server takes, and how many bytes of its log a command takes.
LOADING_US: Final = 2_000_000
COMMAND_BYTES: Final = 150
CLOCK_KEY: Final = "tests:chaos-clock"
CLOCK_JUMPS_MS: Final = (20_000, -10_000)
FAULTS: Final[dict[str, Fault]] = {}


def _fault(function: Fault) -> Fault:
    FAULTS[function.__name__] = function
    return function


@asynccontextmanager
async def _journalled(arena: Arena, name: str, pids: Sequence[int] = (), **data: Any) -> AsyncGenerator[None]:
    """Journals a fault that lasts. Without `pids` it hits all processes."""
    start = now_ns()
    arena.journal.write("fault", name=name, pids=list(pids), **data)
    try:
        yield
    finally:
        arena.journal.write("fault_over", name=name, pids=list(pids), since=start)


# --- processes ---------------------------------------------------------------------------------------------------


def _signal(processes: Collection[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


@_fault
async def kill_supervisor(arena: Arena) -> None:
    """SIGKILL to a supervisor: its runners have to exit by themselves."""
    if found := arena.any_worker():
        worker = found[1]
        arena.journal.write("fault", name="kill_supervisor", pids=[worker.pid], is_kill=True)
        worker.kill()


@_fault
async def kill_host(arena: Arena) -> None:
    """SIGKILL to a worker with all its processes."""
    if found := arena.any_worker():
        processes = family(found[1].pid)
        pids = [process.pid for process in processes]
        arena.journal.write("fault", name="kill_host", pids=pids, is_kill=True)
        _signal(processes, signal.SIGKILL)


@_fault
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


@_fault
async def kill_producer(arena: Arena) -> None:
    """SIGKILL to a producer, at any point of a call."""
    if producer := arena.any_producer():
        arena.journal.write("fault", name="kill_producer", pids=[producer.pid], is_kill=True)
        producer.kill()


@_fault
async def stop_worker(arena: Arena) -> None:
    """SIGTERM: a rolling restart."""
    if found := arena.any_worker():
        arena.journal.write("fault", name="stop_worker", pids=[found[1].pid])
        found[1].terminate()


@_fault
async def freeze_supervisor(arena: Arena) -> None:
    """SIGSTOP to a supervisor, whose runners go on: a zombie once its leases have run out."""
    if found := arena.any_worker():
        await _freeze(arena, "freeze_supervisor", family(found[1].pid)[:1])


@_fault
async def freeze_host(arena: Arena) -> None:
    """SIGSTOP to a worker with all its processes."""
    if found := arena.any_worker():
        await _freeze(arena, "freeze_host", family(found[1].pid))


@_fault
async def freeze_runner(arena: Arena) -> None:
    """SIGSTOP to one of the processes that run handlers."""
    found = arena.any_worker()
    if found and (runners := found[1].runners()):
        with suppress(psutil.NoSuchProcess):
            await _freeze(arena, "freeze_runner", [psutil.Process(arena.chance.choice(runners))])


@_fault
async def freeze_producer(arena: Arena) -> None:
    """SIGSTOP to a producer in the middle of its calls."""
    if producer := arena.any_producer():
        await _freeze(arena, "freeze_producer", family(producer.pid))


@_fault
async def crash_worker_at_point(arena: Arena) -> None:
    """A worker dies right before or after the next script of the list, at its first call of it."""
    point = next(arena.crash_points)
    place = arena.chance.randrange(len(arena.workers))
    if (worker := arena.workers[place]) is not None and worker.is_alive:
        arena.journal.write("fault", name="kill_supervisor", pids=[worker.pid], is_kill=True)
        worker.kill()
    crashing = arena.workers[place] = arena.launch_worker(place, point)
    await _crash(arena, crashing, point)


@_fault
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


@_fault
async def kill_autoscaler(arena: Arena) -> None:
    """SIGKILL to the autoscaler, whose workers are processes of its own."""
    if arena.autoscaler is not None and arena.autoscaler.is_alive:
        pids = [process.pid for process in family(arena.autoscaler.pid)]
        arena.journal.write("fault", name="kill_autoscaler", pids=pids, is_kill=True)
        arena.autoscaler.kill()


@_fault
async def freeze_autoscaler(arena: Arena) -> None:
    """SIGSTOP to the autoscaler."""
    if arena.autoscaler is not None and arena.autoscaler.is_alive:
        await _freeze(arena, "freeze_autoscaler", family(arena.autoscaler.pid)[:1])


@_fault
async def kill_api(arena: Arena) -> None:
    """SIGKILL to the HTTP API while it answers."""
    if arena.api is not None and arena.api.is_alive:
        arena.journal.write("fault", name="kill_api", pids=[arena.api.pid], is_kill=True)
        arena.api.kill()


@_fault
async def freeze_api(arena: Arena) -> None:
    """SIGSTOP to the HTTP API while it answers."""
    if arena.api is not None and arena.api.is_alive:
        await _freeze(arena, "freeze_api", family(arena.api.pid))


async def _freeze(arena: Arena, name: str, processes: Sequence[psutil.Process]) -> None:
    seconds = arena.chance.choice(FREEZES_S)
    async with _journalled(arena, name, [process.pid for process in processes], seconds=seconds):
        _signal(processes, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            _signal(processes, signal.SIGCONT)


# --- the server --------------------------------------------------------------------------------------------------


@_fault
async def kill_server(arena: Arena) -> None:
    """SIGKILL, and a restart on the same data."""
    async with _journalled(arena, "kill_server"):
        await asyncio.to_thread(server_of(arena).restart)


@_fault
async def freeze_server(arena: Arena) -> None:
    """SIGSTOP: connections stay open, and nothing answers."""
    server = server_of(arena)
    async with _journalled(arena, "freeze_server"):
        server.pause()
        try:
            await asyncio.sleep(arena.chance.choice(FREEZES_S))
        finally:
            server.resume()


@_fault
async def flush_scripts(arena: Arena) -> None:
    """SCRIPT FLUSH: NOSCRIPT for the next call of each script."""
    arena.journal.write("fault", name="flush_scripts", pids=[])
    await _tell(server_of(arena), "SCRIPT", "FLUSH")


@_fault
async def kill_clients(arena: Arena) -> None:
    """CLIENT KILL for all connections, those of subscriptions too."""
    arena.journal.write("fault", name="kill_clients", pids=[])
    await _tell(server_of(arena), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    await _tell(server_of(arena), "CLIENT", "KILL", "TYPE", "pubsub")


@_fault
async def busy_server(arena: Arena) -> None:
    """BUSY: somebody's script does not end, until it is killed."""
    server = server_of(arena)
    await _tell(server, "CONFIG", "SET", "busy-reply-threshold", "50")
    async with _journalled(arena, "busy_server"):
        endless = threading.Thread(target=_run_endless_script, args=(server,))
        endless.start()
        await asyncio.sleep(arena.chance.choice((0.5, 3.0)))
        while endless.is_alive():
            with suppress(redis.RedisError):
                await _tell(server, "SCRIPT", "KILL")
            await asyncio.sleep(0.02)


def _run_endless_script(server: Server) -> None:
    with server.client() as client, suppress(redis.RedisError):
        client.connection_pool.connection_kwargs["socket_timeout"] = 30
        client.eval("while true do end", 0)


@_fault
async def read_only_server(arena: Arena) -> None:
    """READONLY: the server is demoted to a replica, and promoted again."""
    server = server_of(arena)
    async with _journalled(arena, "read_only_server"):
        await _tell(server, "REPLICAOF", "127.0.0.1", "1")
        try:
            await asyncio.sleep(arena.chance.choice((0.5, 3.0)))
        finally:
            await _tell(server, "REPLICAOF", "NO", "ONE")


@_fault
async def loading_server(arena: Arena) -> None:
    """LOADING: after a restart the server answers before it has read its data."""
    server = server_of(arena)
    log_bytes = sum(file.stat().st_size for file in server.dir.rglob("*.aof"))
    server.config["key-load-delay"] = str(max(1, min(200, LOADING_US * COMMAND_BYTES // (log_bytes + 1))))
    async with _journalled(arena, "loading_server"):
        try:
            await asyncio.to_thread(server.restart)
        finally:
            del server.config["key-load-delay"]
            await _tell(server, "CONFIG", "SET", "key-load-delay", "0")


@_fault
async def fill_memory(arena: Arena) -> None:
    """OOM: `maxmemory` is reached, so no enqueue is accepted, and what ends jobs is."""
    server = server_of(arena)
    async with _journalled(arena, "fill_memory"):
        await _tell(server, "CONFIG", "SET", "maxmemory", "1mb")
        try:
            await asyncio.sleep(arena.chance.choice((0.5, 2.0)))
        finally:
            await _tell(server, "CONFIG", "SET", "maxmemory", "0")


@_fault
async def fill_disk(arena: Arena) -> None:
    """No byte more fits on the disk: the server refuses writes (MISCONF) until there is room again."""
    server = server_of(arena)
    size = max(file.stat().st_size for file in server.dir.rglob("*.aof"))
    _, most = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    async with _journalled(arena, "fill_disk"):
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, most))
        try:
            await asyncio.sleep(arena.chance.choice((1.0, 3.0)))
        finally:
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (most, most))


@_fault
async def move_server_clock(arena: Arena) -> None:
    """The server's clock jumps: ahead by more than any lease, or back."""
    jump = arena.chance.choice(CLOCK_JUMPS_MS)
    arena.journal.write("fault", name="move_server_clock", pids=[], jump_ms=jump)
    await _tell(server_of(arena), "INCRBY", CLOCK_KEY, str(jump))


async def _tell(server: Server, *words: str) -> None:
    """Sends one command to the server, from a thread: the proxies live on this loop."""

    def tell() -> None:
        with server.client(retries=100) as client, suppress(redis.ResponseError):
            client.execute_command(*words)

    await asyncio.to_thread(tell)


# --- the network -------------------------------------------------------------------------------------------------


@_fault
async def cut_connections(arena: Arena) -> None:
    """The connections of one worker are closed."""
    _on_link(arena, "cut_connections", "cut")


@_fault
async def reset_connections(arena: Arena) -> None:
    """The connections of one worker are reset, with what was on its way."""
    _on_link(arena, "reset_connections", "reset")


@_fault
async def lose_replies(arena: Arena) -> None:
    """The server carries out the next calls of one worker, and no reply arrives."""
    if found := arena.any_worker():
        arena.journal.write("fault", name="lose_replies", pids=[found[1].pid])
        arena.proxies[found[0]].lose_replies(arena.chance.choice((1, 3)))


def _on_link(arena: Arena, name: str, method: str) -> None:
    if found := arena.any_worker():
        arena.journal.write("fault", name=name, pids=[found[1].pid])
        getattr(arena.proxies[found[0]], method)()


@_fault
async def half_open_connections(arena: Arena) -> None:
    """One worker's connections are gone for the server; the worker notices nothing and gets no reply."""
    if found := arena.any_worker():
        async with _journalled(arena, "half_open_connections", [found[1].pid]):
            arena.proxies[found[0]].half_open()
            await asyncio.sleep(1)


@_fault
async def black_hole(arena: Arena) -> None:
    """What one worker sends disappears, on old and new connections."""
    if found := arena.any_worker():
        proxy = arena.proxies[found[0]]
        async with _journalled(arena, "black_hole", [found[1].pid]):
            proxy.swallow()
            await asyncio.sleep(arena.chance.choice(FREEZES_S))
            proxy.serve()


@_fault
async def delay_replies(arena: Arena) -> None:
    """What the server sends to one worker arrives late."""
    if found := arena.any_worker():
        proxy = arena.proxies[found[0]]
        async with _journalled(arena, "delay_replies", [found[1].pid]):
            proxy.delay = arena.chance.choice((0.2, 1.7))
            await asyncio.sleep(3)
            proxy.delay = 0.0


# --- several servers ---------------------------------------------------------------------------------------------


@_fault
async def fail_over(arena: Arena) -> None:
    """SIGKILL to the primary of a Sentinel group; it comes back as a replica of its successor."""
    group = cast(FailoverGroup, arena.server)
    async with _journalled(arena, "fail_over"):
        primary = await asyncio.to_thread(lambda: group.primary)
        await asyncio.to_thread(primary.kill)
        await eventually(lambda: group.primary is not primary, timeout=60)
        await asyncio.sleep(arena.chance.uniform(0.5, 2.0))
        await asyncio.to_thread(primary.start)
        await group.until_whole()


@_fault
async def kill_node(arena: Arena) -> None:
    """SIGKILL to a node of a cluster, and a restart on the same data."""
    cluster = cast(Cluster, arena.server)
    node = arena.chance.choice(cluster.nodes)
    async with _journalled(arena, "kill_node"):
        await asyncio.to_thread(node.kill)
        await asyncio.sleep(arena.chance.choice((0.0, 2.0)))
        await asyncio.to_thread(node.start)
        await asyncio.to_thread(cluster.until_well)


@_fault
async def move_slot(arena: Arena) -> None:
    """The hash slot of one of the queues moves to another node, at once or key by key."""
    cluster = cast(Cluster, arena.server)
    async with _journalled(arena, "move_slot"):
        await asyncio.to_thread(_move_slot, arena, cluster)


def _move_slot(arena: Arena, cluster: Cluster) -> None:
    slot = arena.chance.choice(arena.slots)
    source = cluster.node_of(slot)
    target = arena.chance.choice([node for node in cluster.nodes if node is not source])
    move = arena.chance.choice((cluster.move_slot_at_once, cluster.move_slot_key_by_key))
    move(slot, target)
    eventually_sync(lambda: cluster.node_of(slot) is target, 30)
