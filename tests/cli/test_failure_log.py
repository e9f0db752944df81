"""The worker's log says why a job failed, and which job a line of a handler belongs to."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rota import Rota
from tests.cli.driver import Cli
from tests.eventually import eventually_sync

TASKS = """
import asyncio
import logging
import os
import signal
from pathlib import Path

from rota import Fixed, Retry, Rota

rota = Rota(namespace=os.environ["TASKS_NAMESPACE"])


@rota.task(retry=Retry(attempts=2, backoff=Fixed(0.25)))
async def resize(path: str) -> None:
    raise OSError(f"no space for {path}\\nand none for others")


@rota.task(timeout=0.1, retry=1)
async def hang() -> None:
    await asyncio.sleep(3600)


@rota.task(run_in="process")
def crash() -> str:
    if not Path("crashed").exists():
        Path("crashed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


@rota.task
def greet(name: str) -> str:
    logging.getLogger("shop").warning("hello %s", name)
    return name
"""
OWN_LOGGING = """
logging.basicConfig(force=True, filename="own.log", format="%(job_id)s %(task)s %(message)s")
"""


@pytest.fixture
def rota(cli: Cli, hand: Any) -> Rota:
    cli.write(TASKS)
    return hand.rota


def run(cli: Cli, rota: Rota, task: str, *arguments: str, options: tuple[str, ...] = ()) -> tuple[str, str]:
    """Enqueues a job and runs a worker until the job has ended. Returns the job's id and the worker's log."""
    job_id = cli.json("enqueue", task, *arguments, "--app", "tasks:rota")["id"]
    worker = cli.start("worker", "tasks:rota", *options)
    eventually_sync(lambda: rota.job(job_id).state_sync().is_finished, timeout=60)
    worker.terminate()
    return job_id, worker.communicate(timeout=60)[1]


def test_every_failure_says_task_id_attempt_error_and_the_time_of_the_next_attempt(cli: Cli, rota: Rota) -> None:
    job_id, log = run(cli, rota, "resize", '"a.png"')

    first = f"resize {job_id} failed (attempt 1 of 2): OSError: no space for a.png; next attempt in 250 ms"
    last = f"resize {job_id} failed for good (attempt 2 of 2): OSError: no space for a.png"
    lines = log.splitlines()
    (failed,) = [number for number, line in enumerate(lines) if line.endswith(f"WARNING rota.worker: {first}")]
    (ended,) = [number for number, line in enumerate(lines) if line.endswith(f"ERROR   rota.worker: {last}")]
    assert failed < ended
    assert log.count("Traceback") == 1
    assert lines[ended + 1].startswith("Traceback")
    assert 'in resize\n    raise OSError(f"no space for' in log


def test_tracebacks_of_all_failures_are_logged_on_request(cli: Cli, rota: Rota) -> None:
    _, log = run(cli, rota, "resize", '"a.png"', options=("--log-tracebacks", "all"))

    assert log.count("Traceback") == 2


def test_json_lines_have_the_same_as_fields(cli: Cli, rota: Rota) -> None:
    job_id, log = run(cli, rota, "resize", '"a.png"', options=("--log-format", "json"))

    lines = [json.loads(line) for line in log.splitlines()]
    first, last = (line for line in lines if "error_type" in line)
    common = {"job_id": job_id, "queue": "default", "task": "resize", "attempts": 2, "error_type": "OSError"}
    common["error_message"] = "no space for a.png\nand none for others"
    assert first.items() >= {**common, "level": "warning", "attempt": 1, "retry_in_ms": 250}.items()
    assert last.items() >= {**common, "level": "error", "attempt": 2}.items()
    assert "traceback" not in first
    assert "retry_in_ms" not in last
    assert last["traceback"].startswith("Traceback")


def test_a_timeout_and_a_killed_process_are_explained(cli: Cli, rota: Rota) -> None:
    hanging, log = run(cli, rota, "hang")
    assert f"hang {hanging} failed for good (attempt 1 of 1): Timeout: ran for more than 0.1 s" in log

    crashing, log = run(cli, rota, "crash")
    assert f"crash {crashing} stalled (attempt 1 of 3): the process running this job was killed by" in log


def test_lines_of_a_handler_carry_the_id_of_its_job(cli: Cli, rota: Rota) -> None:
    job_id, log = run(cli, rota, "greet", '"Ann"')

    assert re.search(rf"WARNING shop: \[{job_id}\] hello Ann$", log, re.MULTILINE)


def test_handlers_that_the_program_configured_get_the_fields_as_well(cli: Cli, rota: Rota) -> None:
    cli.write(TASKS + OWN_LOGGING)

    job_id, _ = run(cli, rota, "greet", '"Ann"')

    assert f"{job_id} greet hello Ann" in Path(cli.folder, "own.log").read_text().splitlines()
