"""Runs `rota` as a process; and does by hand what a worker would do, for tests that need a job in a certain state."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from rota import ErrorRecord, Rota
from rota.client.session import sessions_of
from rota.core.job_options import DEFAULT_OPTIONS
from rota.core.job_record_codec import encode_error, encode_result
from rota.core.state_transitions import JobState
from rota.store.claim_replies import ClaimedJob
from rota.store.job_store import JobStore
from rota.store.report_encoding import Completed, Failed
from tests.cli.fork_server import ForkServer
from tests.eventually import eventually_sync
from tests.worker.harness import FAULT_INJECTION, ROOT

TIMEOUT_S: Final = 120
ROTA: Final = (sys.executable, "-m", "rota.cli.main")
#: The program of the tests, as a user would have written it.
TASKS: Final = """
import asyncio
import logging
import os

from rota import Context, Rota

rota = Rota(namespace=os.environ["TASKS_NAMESPACE"])


@rota.task
async def add(a: int, b: int = 1) -> int:
    return a + b


@rota.task(queue="mail", retry=1, timeout=30, tags=["letter"])
async def send(to: str) -> str:
    raise ValueError("no route to " + to)


@rota.task
async def say(text: str) -> None:
    logging.getLogger("shop").info("it is %s", text)
    logging.getLogger("shop").warning("it was %s", text)


@rota.task
async def climb(ctx: Context, steps: int) -> str:
    for step in range(steps):
        ctx.progress(step + 1, steps, "step")
        ctx.log(f"step {step + 1}")
        await asyncio.sleep(0.15)
    return "up"
"""


class Answer(NamedTuple):
    """What a process said, and how it ended."""

    out: str
    err: str
    code: int


class Cli:
    """`rota` in a folder of its own, with an environment that names the server."""

    def __init__(self, fork_server: ForkServer, folder: Path, namespace: str, url: str | None) -> None:
        self._fork_server = fork_server
        self.folder = folder
        self.namespace = namespace
        self.environment = {**os.environ, "TASKS_NAMESPACE": namespace, "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}
        if url is not None:
            self.environment["ROTA_URL"] = url
        self._processes: list[subprocess.Popen[str]] = []

    def write(self, text: str, name: str = "tasks.py") -> None:
        """A module of the user's."""
        (self.folder / name).write_text(text)

    def run(self, *words: str, code: int = 0, environment: Mapping[str, str] | None = None) -> Answer:
        """Runs a command on the test's namespace to its end, and checks how it ended."""
        return self.run_bare("--namespace", self.namespace, *words, code=code, environment=environment)

    def run_bare(self, *words: str, code: int = 0, environment: Mapping[str, str] | None = None) -> Answer:
        """The same without the namespace."""
        answer = Answer(
            *self._fork_server.run(words, folder=self.folder, environment={**self.environment, **(environment or {})})
        )
        assert answer.code == code, f"rota {' '.join(words)}: code {answer.code}\n{answer.out}\n{answer.err}"
        if "worker" not in words:  # its log has the tracebacks of jobs that fail for good
            assert "Traceback (most" not in answer.err, answer.err
        return answer

    def json(self, *words: str, code: int = 0) -> Any:
        """What a command answers a program."""
        return json.loads(self.run("--json", *words, code=code).out)

    def start(self, *words: str, hook: str = "") -> subprocess.Popen[str]:
        """A command that goes on by itself. Ended with the test. `hook` is one of `tests/worker/fault_injection.py`."""
        search = os.pathsep.join(map(str, (self.folder, ROOT)))
        process = subprocess.Popen(
            [sys.executable, "-m", FAULT_INJECTION, hook, *words] if hook else [*ROTA, *words],
            cwd=self.folder,
            env={**self.environment, "PYTHONPATH": search} if hook else self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._processes.append(process)
        return process

    def close(self) -> None:
        """Ends what is still running."""
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                process.communicate(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


class Terminal:
    """A command whose stdin, stdout and stderr are a terminal."""

    def __init__(self, cli: Cli, *words: str, program: tuple[str, ...] = ROTA) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [*program, *words],
            cwd=cli.folder,
            env={**cli.environment, "TERM": "xterm", "COLUMNS": "200"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        os.set_blocking(self._ours, False)
        self.seen = ""

    def wait_for(self, text: str) -> None:
        """Until that has been shown."""
        eventually_sync(lambda: text in self._read(), timeout=TIMEOUT_S)

    def type(self, text: str) -> None:
        """As a person does."""
        os.write(self._ours, text.encode())

    def end(self) -> int:
        """Waits for the end; what was shown is in `seen`."""
        code: list[int | None] = []

        def ended() -> bool:
            self._read()
            code.append(self.process.poll())
            return code[-1] is not None

        eventually_sync(ended, timeout=TIMEOUT_S)
        self._read()
        os.close(self._ours)
        assert code[-1] is not None
        return code[-1]

    def _read(self) -> str:
        try:
            while part := os.read(self._ours, 65536):
                self.seen += part.decode(errors="replace")
        except (BlockingIOError, OSError):  # nothing yet; or, once the process has closed its side, never again
            pass
        return self.seen


class Hand:
    """A client of the test's own that enqueues jobs, and moves them as a worker would."""

    def __init__(self, url: str, namespace: str) -> None:
        self.rota = Rota(url, namespace=namespace)
        self._store: JobStore | None = None
        self._calls = 0

        @self.rota.task(name="add")
        def add(a: int, b: int = 1) -> int:
            return a + b

        @self.rota.task(name="send", queue="mail", retry=1)
        def send(to: str) -> str:
            return to

        self.add = add
        self.send = send

    def claim(self, queue: str) -> ClaimedJob:
        """Leases the first job of a queue."""
        self._calls += 16
        claims = sessions_of(self.rota).run_sync(
            self._open().claim(queue, 1, call_number=self._calls, claim_token="hand")
        )
        assert claims.jobs, f"nothing is pending in {queue}"
        return claims.jobs[0]

    def complete(self, job: ClaimedJob, result: Any = None) -> None:
        """Ends a claimed job well."""
        rule = DEFAULT_OPTIONS.keep.retention(JobState.COMPLETED)
        self._report(job, Completed(job.run, job.claim, rule, encode_result(result)))

    def fail(self, job: ClaimedJob, error: str = "ValueError", message: str = "no") -> None:
        """Ends a claimed job as a dead letter."""
        record = ErrorRecord(type=error, message=message, traceback=f"Traceback\n  somewhere\n{error}: {message}\n")
        rule = DEFAULT_OPTIONS.keep.retention(JobState.FAILED)
        self._report(job, Failed(job.run, job.claim, "final", rule, encode_error(record)))

    def dead_letter(self, to: str, error: str = "ValueError") -> str:
        """The id of a `send` that failed for good."""
        job_id = self.send.enqueue_sync(to).id
        self.fail(self.claim("mail"), error, f"no route to {to}")
        return job_id

    def progress(self, job: ClaimedJob, done: int, total: int) -> None:
        """Says how far a claimed job has come."""
        item = (job.run, job.claim, str(done), str(total), "half way")
        sessions_of(self.rota).run_sync(self._open().save_progress(job.queue, [item]))

    def announce(self, task: str, queue: str = "default", options: dict[str, Any] | None = None) -> None:
        """Says of a task what its workers would say."""
        said = json.dumps({"queue": queue, "options": options or {}})
        sessions_of(self.rota).run_sync(self._open().publish_tasks({task: said}))

    def announce_worker(self, info: dict[str, Any]) -> None:
        """Says that a worker called “hand” lives."""
        sessions_of(self.rota).run_sync(self._open().renew_registration(json.dumps(info)))

    def log(self, job: ClaimedJob, *lines: str) -> None:
        """Logs lines of a claimed job."""
        sessions_of(self.rota).run_sync(
            self._open().append_log(job.queue, job.run, job.claim, 1, [f"info {line}" for line in lines])
        )

    def state(self, job_id: str) -> str:
        """Where a job is."""
        return self.rota.job(job_id).state_sync().value

    def close(self) -> None:
        """Closes the connections."""
        if self._store is not None:
            sessions_of(self.rota).run_sync(self._store.redis.close())
        self.rota.close_sync()

    def _open(self) -> JobStore:
        """Made on the loop that its calls run on."""

        async def connect() -> JobStore:
            return sessions_of(self.rota).connect("hand")

        if self._store is None:
            self._store = sessions_of(self.rota).run_sync(connect())
        return self._store

    def _report(self, job: ClaimedJob, report: Completed | Failed) -> None:
        refused = sessions_of(self.rota).run_sync(self._open().report(job.queue, [report]))
        assert not refused, refused
