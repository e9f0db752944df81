"""What the fault-injection suite attacks: a server, workers behind proxies of their own, and producers.

The arena starts processes and replaces those that died. It knows no faults, and its journal is the driver's.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import ssl
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, Self, cast

import psutil

from tests.cluster.nodes import Cluster
from tests.crash.journal import Journal, now_ns
from tests.eventually import eventually
from tests.sentinel import FailoverGroup
from tests.servers import Server, free_port
from tests.store.proxy import Proxy
from tests.worker.harness import ROOT, WorkerHarness, WorkerProcess

TASKS: Final = "tests.crash.chaos_tasks"
#: A turn of the driver's loop that takes longer means that the machine gave it no time: others had none either.
STARVED_S: Final = 1.5
WATCH_S: Final = 0.1


def _points(*scripts: str) -> list[str]:
    return [f"at:{when}:{script}" for script in scripts for when in ("before", "after")]


#: Every script that a worker calls in this suite, and every one that a producer calls.
WORKER_POINTS: Final = _points(
    *("claim", "complete", "fail", "heartbeat", "return", "confirm_cancelled_run_stopped", "report_dead_process"),
    *("take_outbox", "apply_parent_outcomes", "ack_outbox", "fire_schedule", "put_schedule", "apply_retention"),
    *("renew_registration", "register_queues", "publish_tasks", "publish_failure_handlers"),
    "remove_worker_from_queue",
)
PRODUCER_POINTS: Final = _points(
    *("enqueue", "enqueue_fast", "prepare_dependents", "register_dependents", "publish_prepared_runs", "cancel"),
    "register_queues",
)


class ChaosHarness(WorkerHarness):
    """Runs the program of the suite, with more settings in its environment."""

    def __init__(self, server: Any, namespace: str, folder: Path, settings: Mapping[str, str]) -> None:
        self.settings = settings
        super().__init__(server, namespace, folder, TASKS)

    @property
    def environment(self) -> dict[str, str]:
        """That of its processes."""
        return {**super().environment, **self.settings}


class Arena:
    """The processes under test."""

    def __init__(
        self,
        server: Server | Cluster | FailoverGroup,
        folder: Path,
        namespace: str,
        seed: str,
        *,
        workers: int = 3,
        producers: int = 2,
        jobs: int = 100,
        settings: Mapping[str, str] | None = None,
        has_api: bool = False,
        has_autoscaler: bool = False,
        queues: str = "default",
        tls: ssl.SSLContext | None = None,
        login: str = "",
        query: str = "",
        slots: Sequence[int] = (),
        old_source: Path | None = None,
    ) -> None:
        self.server = server
        self.folder = folder
        self.chance = random.Random(f"{seed} faults")
        self.journal = Journal(folder, "driver")
        self._api_port = free_port()
        api = {"ROTA_TEST_API": f"http://127.0.0.1:{self._api_port}"}
        self.harness = ChaosHarness(server, namespace, folder, {**api, **(settings or {})})
        self._has_api = has_api
        self._has_autoscaler = has_autoscaler
        self.autoscaler: WorkerProcess | None = None
        #: One after another, again and again, in an order that follows from the seed.
        self.crash_points = itertools.cycle(self.chance.sample(WORKER_POINTS, len(WORKER_POINTS)))
        self.crash_points_of_producers = itertools.cycle(PRODUCER_POINTS)
        self._queues = queues
        #: Workers connect over TLS, with this login ("user:password@") and these parameters of the URL.
        self._tls = tls
        self._login = login
        self._query = query
        #: The hash slots of the queue's shards.
        self.slots = list(slots)
        #: The sources of an older version, which the first worker runs.
        self._old_source = old_source
        self.api: WorkerProcess | None = None
        self.workers: list[WorkerProcess | None] = [None] * workers
        self.producers: list[WorkerProcess | None] = [None] * producers
        #: One for each worker, where the server listens on a unix socket.
        self.proxies: list[Proxy] = []
        self._seed = seed
        self._jobs = jobs
        self._started = 0
        self._stack = AsyncExitStack()
        self._watching: asyncio.Task[None] | None = None

    # --- processes ---------------------------------------------------------------------------------------------

    def replace_missing(self) -> None:
        """Starts the workers and producers that are not running; a producer that made all its jobs is not replaced."""
        for place, worker in enumerate(self.workers):
            if worker is None or not worker.is_alive:
                self.workers[place] = self.launch_worker(place)
        if self._has_autoscaler and (self.autoscaler is None or not self.autoscaler.is_alive):
            words = ["rota.cli.main", "autoscale", f"{TASKS}:rota", "--min", "1", "--max", "2", "--interval", "0.5"]
            self.autoscaler = self._launch([*words, "--", "--grace", "0.5", "--concurrency", "4"], "autoscaler")
        if self._has_api and (self.api is None or not self.api.is_alive):
            words = ["rota.cli.main", "server", f"{TASKS}:rota", "--port", str(self._api_port)]
            self.api = self._launch(words, "api")
        for place, producer in enumerate(self.producers):
            if producer is None or (not producer.is_alive and producer.exit_code != 0):
                is_http = self._has_api and place == 0
                self.producers[place] = self.launch_producer("http_producer" if is_http else "producer")

    async def until_workers_run(self) -> None:
        """Waits until each worker is registered."""
        for worker in self.workers:
            if worker is not None:
                await self.harness.registered(worker)

    def any_worker(self) -> tuple[int, WorkerProcess] | None:
        """A place and the worker that runs there."""
        alive = [(place, worker) for place, worker in enumerate(self.workers) if worker and worker.is_alive]
        return self.chance.choice(alive) if alive else None

    def any_producer(self) -> WorkerProcess | None:
        """A producer that runs."""
        alive = [producer for producer in self.producers if producer and producer.is_alive]
        return self.chance.choice(alive) if alive else None

    def launch_worker(self, place: int, crash_point: str = "") -> WorkerProcess:
        """Starts the worker of a place. It dies at the crash point, if one is given."""
        environment: dict[str, str] = {}
        if self.proxies:
            url = self.proxies[place].url.replace("://", f"://{self._login}")
            environment["ROTA_URL"] = url + self._query
        # One worker of three is hours ahead, one is hours late.
        wrong_by = (0, 3 * 3600, -3 * 3600)[place % 3]
        if wrong_by:
            environment["ROTA_TEST_WRONG_CLOCK_S"] = str(wrong_by)
        if self._old_source is not None and place == 0:
            environment["PYTHONPATH"] = os.pathsep.join([str(self._old_source), str(ROOT)])
        hook = ",".join(filter(None, ["wrong_clock" if wrong_by else "", crash_point]))
        return self.harness.launch(
            "--grace", "0.5", queues=self._queues, concurrency=4, environment=environment, hook=hook
        )

    def launch_producer(self, kind: str, environment: Mapping[str, str] | None = None) -> WorkerProcess:
        """Starts a producer of a kind: "producer" or "http_producer"."""
        self._started += 1
        words = [f"tests.crash.chaos_{kind}", f"p{self._started}", self._seed, str(self._jobs)]
        return self._launch(words, f"{kind}-{self._started}", environment)

    def _launch(self, words: Sequence[str], name: str, environment: Mapping[str, str] | None = None) -> WorkerProcess:
        log = self.folder / f"{name}.log"
        command = [sys.executable, "-m", *words]
        process = WorkerProcess(command, {**self.harness.environment, **(environment or {})}, log)
        self.harness.workers.append(process)  # which ends it
        return process

    # --- life --------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self._stack.enter_context(self.harness)
        if isinstance(self.server, Server):
            proxies = [Proxy(self.server, tls=self._tls) for _ in self.workers]
            self.proxies = [await self._stack.enter_async_context(proxy) for proxy in proxies]
        self.harness.allow("death")
        self.replace_missing()
        await self.until_workers_run()
        self._watching = asyncio.create_task(self._watch_for_starvation())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._watching is not None:
            self._watching.cancel()
        await self.harness.rota.close()
        await self._stack.aclose()

    async def settle(self, timeout: float = 120) -> None:
        """No more faults: lets the producers end and the workers finish every job."""
        (self.folder / "stop").touch()
        for process in self.harness.workers:
            if process.is_alive:
                for member in family(process.pid):
                    member.send_signal(signal.SIGCONT)
        for producer in self.producers:
            if producer is not None:
                await producer.ended(60)
                assert producer.exit_code in (0, -signal.SIGKILL), producer.log[-3000:]
        for place, worker in enumerate(self.workers):
            if worker is None or not worker.is_alive:
                self.workers[place] = self.launch_worker(place)
        await eventually(self._pause_schedule, 60)
        await eventually(self._is_quiet, timeout)

    async def _pause_schedule(self) -> bool:
        await self.harness.rota.schedules.pause("tick")
        return True

    async def _is_quiet(self) -> bool:
        counts = {info.name: info.counts for info in await self.harness.rota.queues()}
        open_ = {
            f"{queue} {state}": of_queue[state]
            for queue, of_queue in counts.items()
            for state in ("scheduled", "blocked", "pending", "processing")
            if of_queue[state]
        }
        assert not open_, open_
        operations = await self.harness.rota.operations.list()
        assert all(operation.has_ended for operation in operations), operations
        return True

    async def _watch_for_starvation(self) -> None:
        """Journals when this process was not scheduled for long: then a lease may have run out for the same reason."""
        last = now_ns()
        while True:
            await asyncio.sleep(WATCH_S)
            late = (now_ns() - last) / 1e9 - WATCH_S
            if late > STARVED_S:
                self.journal.write("starved", seconds=late)
            last = now_ns()


def family(pid: int) -> Sequence[psutil.Process]:
    """A process and all that it has started; empty when it is gone."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def server_of(arena: Arena) -> Server:
    """The only server of an arena that has one."""
    return cast(Server, arena.server)
