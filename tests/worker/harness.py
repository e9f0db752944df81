"""Runs `rota worker` processes for tests.

A `WorkerHarness` belongs to one server and namespace: it starts workers there, loads the same program into the test for
enqueueing, and ends every process that it started.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Self, cast

import psutil
import pytest
import redis

from rota import Call, ErrorRecord, Job, JobFailed, JobState, Rota, WorkerInfo
from rota.client.session import sessions_of
from tests.cluster.nodes import Cluster
from tests.eventually import eventually, eventually_sync
from tests.servers import Server

ROOT: Final = Path(__file__).parents[2]
FAULT_INJECTION: Final = "tests.worker.fault_injection"
STOP_SECONDS: Final = 5.0
#: Leases and the like last no longer without being renewed.
HELD_MS: Final = 10_000
#: Waits for the end of a pipe that only the test process holds open.
_GUARD: Final = 'read -r _; kill -9 "$0" 2>/dev/null'


class WorkerProcess:
    """One `rota worker`."""

    def __init__(
        self, command: list[str], environment: Mapping[str, str], log: Path, output: int | None = None
    ) -> None:
        self.log_file = log
        with log.open("wb") as file:
            # A session of its own, so that Ctrl-C in the terminal reaches pytest alone.
            self._process = subprocess.Popen(
                command,
                env=dict(environment),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=file if output is None else output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        # Dies with the test process, however that ends.
        self._guard = subprocess.Popen(
            ["sh", "-c", _GUARD, str(self.pid)], stdin=subprocess.PIPE, start_new_session=True
        )
        #: Its id in the registry, once it is registered.
        self.id = ""

    @property
    def pid(self) -> int:
        """Of the supervisor."""
        return self._process.pid

    @property
    def log(self) -> str:
        """What it has logged so far."""
        return self.log_file.read_text(errors="replace")

    @property
    def is_alive(self) -> bool:
        """False once it has ended."""
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """None while it lives."""
        return self._process.poll()

    def runners(self, kind: str = "") -> list[int]:
        """Pids of its runner processes, of one kind or of both."""
        with suppress(psutil.NoSuchProcess):
            return [child.pid for child in psutil.Process(self.pid).children() if _is_runner(child, kind)]
        return []

    def signal(self, number: signal.Signals) -> None:
        """To the supervisor alone."""
        self._process.send_signal(number)

    def terminate(self) -> None:
        """SIGTERM: asks for a graceful stop."""
        self.signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        """SIGSTOP to the supervisor: the runners go on."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self.signal(signal.SIGCONT)

    async def ended(self, timeout: float = 30) -> int:
        """Waits for its end; the exit code."""
        await eventually(lambda: not self.is_alive, timeout)
        assert self.exit_code is not None
        return self.exit_code

    def close(self) -> None:
        """Ends it and all that it started, whatever state it is in."""
        family = _family(self.pid) if self.is_alive else []
        if self.is_alive:
            self._process.kill()
        self._process.wait(STOP_SECONDS)
        self._guard.kill()
        self._guard.communicate()
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        eventually_sync(lambda: not [process for process in family if is_running(process.pid)], STOP_SECONDS)


class WorkerHarness:
    """Starts workers on one server, in one namespace, for one program."""

    def __init__(
        self, server: Server | Cluster, namespace: str, folder: Path, module: str = "tests.worker.app"
    ) -> None:
        self.server = server
        self.namespace = namespace
        self.folder = folder
        self.module = module
        self.workers: list[WorkerProcess] = []
        self.program = self._load()
        self.rota: Rota = self.program.rota

    @property
    def environment(self) -> dict[str, str]:
        """The environment of its processes: server, namespace and folder."""
        return {
            **os.environ,
            "ROTA_URL": self.server.url,
            "ROTA_TEST_NAMESPACE": self.namespace,
            "ROTA_TEST_FOLDER": str(self.folder),
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        }

    async def start(
        self,
        *options: str,
        queues: str = "default",
        concurrency: int | str = 10,
        hook: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> WorkerProcess:
        """Starts a worker and waits until it is registered. `hook`: a function of `fault_injection.py` to run first."""
        worker = self.launch(*options, queues=queues, concurrency=concurrency, hook=hook, environment=environment)
        await self.registered(worker)
        return worker

    async def start_together(self, count: int, *options: str, concurrency: int | str = 10) -> list[WorkerProcess]:
        """Starts several at the same moment."""
        workers = [self.launch(*options, concurrency=concurrency) for _ in range(count)]
        for worker in workers:
            await self.registered(worker)
        return workers

    def launch(
        self,
        *options: str,
        queues: str = "default",
        concurrency: int | str = 10,
        hook: str = "",
        environment: Mapping[str, str] | None = None,
        output: int | None = None,
    ) -> WorkerProcess:
        """The same without waiting. `output`: where its stdout and stderr go, if not to its log file."""
        words = [
            *([FAULT_INJECTION, hook] if hook else ["rota.cli.main"]),
            "worker",
            f"{self.module}:rota",
            "--queues",
            queues,
            "--concurrency",
            str(concurrency),
            "--log-level",
            "debug",
            *options,
        ]
        log = self.folder / f"worker-{len(self.workers)}.log"
        command = [sys.executable, "-m", *words]
        worker = WorkerProcess(command, {**self.environment, **(environment or {})}, log, output)
        self.workers.append(worker)
        return worker

    async def enqueue_many(self, calls: Iterable[Call[Any]]) -> list[Job[Any]]:
        """`rota.enqueue_many`, where no id is in use."""
        return await self.rota.enqueue_many(calls)

    async def registered(self, worker: WorkerProcess) -> WorkerInfo:
        """Waits until the registry knows the worker."""

        async def find() -> WorkerInfo | None:
            assert worker.is_alive, f"the worker ended with code {worker.exit_code}:\n{worker.log}"
            return next((info for info in await self.rota.workers() if info.info.get("pid") == worker.pid), None)

        info = await eventually(find, 30)
        assert info is not None
        worker.id = info.id
        return info

    async def info(self, worker: WorkerProcess) -> WorkerInfo:
        """The worker's entry in the registry."""
        return next(info for info in await self.rota.workers() if info.id == worker.id)

    def states(self, worker: WorkerProcess) -> list[str]:
        """The states that the worker has entered, as its events say."""
        with self.redis() as client:
            entries = cast(list[Any], client.xrange(self.key("events", "~")))
        verbs = [verb.decode() for _, fields in entries for verb, ids in fields.items() if ids.decode() == worker.id]
        return [verb.removeprefix("worker_") for verb in verbs if verb.startswith("worker_")]

    def inbox(self, worker: WorkerProcess) -> str:
        """The channel to which the worker's notifications are sent."""
        return sessions_of(self.rota).keys.inbox(worker.id)

    # --- what handlers leave behind ----------------------------------------------------------------------------

    def notes(self, subject: str = "") -> list[str]:
        """What handlers noted, oldest first, about one subject."""
        file = self.folder / "notes"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line.partition(" ")[2] for line in lines if not subject or line.partition(" ")[0] == subject]

    async def noted(self, subject: str, count: int = 1, timeout: float = 30) -> list[str]:
        """Waits for so many notes about a subject."""
        await eventually(lambda: len(self.notes(subject)) >= count, timeout)
        return self.notes(subject)

    def allow(self, name: str) -> None:
        """Lets handlers go on that wait for this (`app.hold`)."""
        (self.folder / f"allowed-{name}").touch()

    # --- waiting -----------------------------------------------------------------------------------------------

    async def until(self, job: Job[Any], state: JobState | str, timeout: float = 30) -> None:
        """Waits for a job's state."""

        async def is_there() -> bool:
            found = await job.state()
            assert found == state, f"{job} is {found}"
            return True

        await eventually(is_there, timeout)

    async def until_waiting(self, worker: WorkerProcess, *queues: str) -> None:
        """Waits until a worker is subscribed to wake-ups, and has found these queues empty since."""
        with self.redis() as client:
            channel = sessions_of(self.rota).keys.inbox(worker.id)
            await eventually(lambda: cast("list[tuple[bytes, int]]", client.pubsub_numsub(channel))[0][1] == 1)
            # The first claims after the subscription follow at once. A later one means that they have been answered.
            since = self.now_ms() + 500
            for queue in queues:
                key = self.key("idle", queue)
                await eventually(lambda key=key: client.zcount(key, since, "+inf") == 1)

    def now_ms(self) -> int:
        """The server's time."""
        with self.server.client() as client:
            seconds, micros = client.time()
            return int(seconds) * 1000 + int(micros) // 1000

    def redis(self) -> redis.Redis:
        """A plain client on its server."""
        return self.server.client()

    def key(self, name: str, queue: str = "default") -> str:
        """A key of the store."""
        return sessions_of(self.rota).keys.queue(queue, name)

    def outlive(self) -> None:
        """Lets time pass for what dead workers have left: leases, outcomes and workflows that they had taken.

        Only while no worker is running. That leases expire by themselves, too, is tested elsewhere.
        """
        assert not any(worker.is_alive for worker in self.workers)
        for key in self._keys("processing", "stopping", "outbox", "workflow_due"):
            self._let_pass(key, lambda _: True)
        with self.redis() as client:
            for key in self._keys("meta"):
                # Else the time that the next worker takes to start may look like an outage: a lease more for all.
                client.hdel(key, "server_seen", "grace_until")

    def expire_leases(self, worker: WorkerProcess) -> None:
        """Time passes for the leases of one worker, which does not renew them any more."""
        for key in self._keys("processing"):
            with self.redis() as client:
                records = cast("dict[bytes, bytes]", client.hgetall(f"{key.rpartition(':')[0]}:runs"))
            self._let_pass(key, lambda run, records=records: worker.id.encode() in records[run].split())

    def _keys(self, *kinds: str) -> list[str]:
        with self.redis() as client:
            keys = [key.decode() for key in client.scan_iter(match=f"{self.namespace}:*", count=1_000)]
        return [key for key in keys if key.rpartition(":")[2] in kinds]

    def _let_pass(self, key: str, is_meant: Callable[[bytes], bool]) -> None:
        with self.redis() as client:
            held = cast("list[tuple[bytes, float]]", client.zrange(key, 0, -1, withscores=True))
            earlier = {member: score - HELD_MS for member, score in held if is_meant(member)}
            if earlier:
                client.zadd(key, earlier, xx=True)

    # --- life --------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.close()

    def _load(self) -> ModuleType:
        """The program, imported anew: a test's namespace is not the one of the test before."""
        spec = importlib.util.find_spec(self.module)
        assert spec is not None
        assert spec.loader is not None
        with _environment(self.environment):
            program = importlib.util.module_from_spec(spec)
            # Annotations are looked up in the module of that name.
            sys.modules[self.module] = program
            spec.loader.exec_module(program)
            # The address is resolved when a connection is opened, which is later: so it is set now.
            sessions_of(program.rota).move(url=self.server.url, namespace=program.rota.namespace)
        return program


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        """So far."""
        return time.monotonic() - self._start


async def failure(job: Job[Any], timeout: float = 30) -> ErrorRecord:
    """Waits for a job that must fail for good; why it did."""
    with pytest.raises(JobFailed) as failed:
        await job.result(timeout)
    assert failed.value.error is not None
    return failed.value.error


def is_running(pid: int) -> bool:
    """False for a process that is gone, or a zombie."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


async def all_gone(pids: list[int], timeout: float = 30) -> None:
    """Waits until none of the processes lives."""
    await eventually(lambda: not [pid for pid in pids if is_running(pid)], timeout)


def _is_runner(process: psutil.Process, kind: str) -> bool:
    with suppress(psutil.Error):
        words = process.cmdline()
        return "rota.worker.runners.runner_process" in words and (not kind or kind in words)
    return False


def _family(pid: int) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).children(recursive=True)
    return []


@contextmanager
def _environment(values: Mapping[str, str]) -> Generator[None]:
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
