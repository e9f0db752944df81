"""Workers as users run them, each a process of its own, and the programs they run jobs of.

A `Crew` belongs to one server and namespace: it starts workers there, gives the test the same program to enqueue with,
and ends every process that it started.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Self, cast

import psutil
import pytest
import redis

from rota import Call, ErrorRecord, Job, JobFailed, JobState, Rota, WorkerInfo
from tests.cluster.nodes import Cluster
from tests.eventually import eventually, eventually_sync
from tests.servers import Server

ROOT: Final = Path(__file__).parents[2]
HOOKED: Final = "tests.worker.hooked"
STOP_SECONDS: Final = 5.0
#: Nobody holds anything for longer without saying so again.
HELD_MS: Final = 10_000
#: Waits for the end of a pipe that only the test process holds open.
_GUARD: Final = 'read -r _; kill -9 "$0" 2>/dev/null'


class WorkerProcess:
    """One `rota worker`."""

    def __init__(self, command: list[str], environment: Mapping[str, str], log: Path) -> None:
        self.log_file = log
        with log.open("wb") as output:
            # A session of its own, so that Ctrl-C in the terminal reaches pytest alone.
            self._process = subprocess.Popen(
                command, env=dict(environment), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        # Dies with the test process, however that ends.
        self._guard = subprocess.Popen(
            ["sh", "-c", _GUARD, str(self.pid)], stdin=subprocess.PIPE, start_new_session=True
        )
        #: As the registry knows it, once it is announced.
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

    async def ended(self, timeout: float = 10) -> int:
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


class Crew:
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
        """What tells a process of the crew which server, namespace and folder are its own."""
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
        """Starts a worker and waits until it is announced. `hook` names a function of `hooked.py` to run first."""
        worker = self.launch(*options, queues=queues, concurrency=concurrency, hook=hook, environment=environment)
        await self.announced(worker)
        return worker

    async def start_together(self, count: int, *options: str, concurrency: int | str = 10) -> list[WorkerProcess]:
        """Starts several at the same moment."""
        workers = [self.launch(*options, concurrency=concurrency) for _ in range(count)]
        for worker in workers:
            await self.announced(worker)
        return workers

    def launch(
        self,
        *options: str,
        queues: str = "default",
        concurrency: int | str = 10,
        hook: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> WorkerProcess:
        """The same without waiting."""
        words = [
            *([HOOKED, hook] if hook else ["rota.cli.main"]), "worker", f"{self.module}:rota", "--queues", queues,
            "--concurrency", str(concurrency), "--log-level", "debug", *options,
        ]  # fmt: skip
        log = self.folder / f"worker-{len(self.workers)}.log"
        worker = WorkerProcess([sys.executable, "-m", *words], {**self.environment, **(environment or {})}, log)
        self.workers.append(worker)
        return worker

    async def enqueue_many(self, calls: Iterable[Call[Any]]) -> list[Job[Any]]:
        """`rota.enqueue_many`, where no id is in use."""
        jobs = await self.rota.enqueue_many(calls)
        return [job for job in jobs if isinstance(job, Job)]

    async def announced(self, worker: WorkerProcess) -> WorkerInfo:
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

    # --- what handlers leave behind ----------------------------------------------------------------------------

    def notes(self, subject: str = "") -> list[str]:
        """What handlers noted, oldest first, about one subject."""
        file = self.folder / "notes"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line.partition(" ")[2] for line in lines if not subject or line.partition(" ")[0] == subject]

    async def noted(self, subject: str, count: int = 1, timeout: float = 10) -> list[str]:
        """Waits for so many notes about a subject."""
        await eventually(lambda: len(self.notes(subject)) >= count, timeout)
        return self.notes(subject)

    def allow(self, name: str) -> None:
        """Lets handlers go on that wait for this (`app.hold`)."""
        (self.folder / f"allowed-{name}").touch()

    # --- waiting -----------------------------------------------------------------------------------------------

    async def until(self, job: Job[Any], state: JobState | str, timeout: float = 10) -> None:
        """Waits for a job's state."""

        async def is_there() -> bool:
            found = await job.state()
            assert found == state, f"{job} is {found}"
            return True

        await eventually(is_there, timeout)

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
        return self.rota.keys.queue(queue, name)

    def outlive(self) -> None:
        """Time passes for what dead workers have left: leases, news and workflows that they had taken.

        To be called while nobody lives. That it passes by itself, too, is for tests that say so to find out.
        """
        assert not any(worker.is_alive for worker in self.workers)
        with self.redis() as client:
            for key in [key.decode() for key in client.scan_iter(match=f"{self.namespace}:*", count=1_000)]:
                kind = key.rpartition(":")[2]
                if kind in ("processing", "stopping", "outbox", "flow_due"):
                    held = cast("list[tuple[bytes, float]]", client.zrange(key, 0, -1, withscores=True))
                    client.zadd(key, {member: score - HELD_MS for member, score in held}, xx=True)
                elif kind == "meta":
                    # Else the time that the next worker takes to start may look like an outage: a lease more for all.
                    client.hdel(key, "tick", "grace_until")

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
            # The server is looked for when a connection is opened, which is later: so it is told now.
            program.rota._url = self.server.url
        return program


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        """So far."""
        return time.monotonic() - self._start


async def failure(job: Job[Any], timeout: float = 10) -> ErrorRecord:
    """Waits for a job that must fail for good; why it did."""
    with pytest.raises(JobFailed) as failed:
        await job.result(timeout)
    assert failed.value.error is not None
    return failed.value.error


def is_running(pid: int) -> bool:
    """False for a process that is gone, or dead and not yet buried."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


async def all_gone(pids: list[int], timeout: float = 5) -> None:
    """Waits until none of the processes lives."""
    await eventually(lambda: not [pid for pid in pids if is_running(pid)], timeout)


def _is_runner(process: psutil.Process, kind: str) -> bool:
    with suppress(psutil.Error):
        words = process.cmdline()
        return "rota.worker.runner" in words and (not kind or kind in words)
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
