"""With no server anywhere: a client that starts one, shares it, and finds its jobs again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.manual_worker import clean_environment, run_python
from tests.embedded.home import Home

FIVE_LINES = """
from rota import Rota
rota = Rota()
@rota.task
def add(a: int, b: int) -> int: return a + b
print(add.enqueue_sync(1, 2).state_sync(), rota.queue().counts_sync()["pending"], rota.address)
"""


@pytest.fixture
def home() -> Iterator[Home]:
    """A folder in which nothing runs yet; whatever runs at the end is killed."""
    home = Home()
    yield home
    home.close()


def test_five_lines_are_enough_and_the_jobs_are_there_the_next_time(home: Home) -> None:
    first = run_python(FIVE_LINES, cwd=home.folder)
    home.wait_until_stopped()
    second = run_python(FIVE_LINES, cwd=home.folder)

    assert (first.stdout, first.returncode) == ("pending 1 the embedded server\n", 0)
    assert (second.stdout, second.returncode) == ("pending 2 the embedded server\n", 0)
    assert is_only_warning(first.stderr, home)
    assert is_only_warning(second.stderr, home)
    assert [path.name for path in home.folder.iterdir()] == [".rota"]


def test_an_empty_variable_is_as_good_as_none(home: Home) -> None:
    ended = run_python(FIVE_LINES, cwd=home.folder, env={"ROTA_URL": "", "REDIS_URL": "", "REDIS_HOST": ""})

    assert ended.stdout == "pending 1 the embedded server\n"
    assert is_only_warning(ended.stderr, home)


def test_a_producer_without_a_server_is_warned_once_that_its_jobs_do_not_run(home: Home) -> None:
    """Jobs of a producer that was not told where the server is would wait in a file that no worker reads."""
    code = FIVE_LINES + "add.using(queue='other').enqueue_sync(1, 2)\nprint(add.enqueue_sync(1, 2).explain_sync())"

    ended = run_python(code, cwd=home.folder)

    assert is_only_warning(ended.stderr, home)
    explained = ended.stdout.splitlines()[1]
    assert "no worker serves queue default" in explained
    assert f"the embedded server in {home.folder / '.rota'}: set ROTA_URL" in explained


def test_a_producer_beside_a_worker_is_not_warned(home: Home) -> None:
    beside = """
import asyncio
from rota.client.session import sessions_of
async def register():
    store = sessions_of(rota).connect("w1")
    await store.renew_registration('{"state":"active","queues":["default"]}', "m1")
    await store.redis.close()
asyncio.run(register())
"""
    code = FIVE_LINES.replace("print(", f"{beside}\nprint(")

    ended = run_python(code, cwd=home.folder)

    assert (ended.stdout, ended.stderr) == ("pending 1 the embedded server\n", "")


def is_only_warning(stderr: str, home: Home) -> bool:
    """Whether one line was printed, which names the folder and how to choose a server."""
    (line,) = stderr.splitlines()
    return str(home.folder / ".rota") in line and "set ROTA_URL" in line and "no worker runs yet" in line


def test_processes_that_start_together_share_one_server(home: Home) -> None:
    code = FIVE_LINES.replace("print(", "(").replace("import Rota", "import Rota; import sys") + "sys.stdin.read()"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code + "\nprint(rota.queue().counts_sync()['pending'])"],
            cwd=home.folder,
            env=clean_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    try:
        # All have enqueued before the first of them counts and leaves.
        subfolder = home.folder / "deep" / "below"
        subfolder.mkdir(parents=True)
        while "pending 4" not in (counted := _count(subfolder)):
            assert "pending" in counted
        outcomes = [process.communicate("", timeout=30) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()

    assert all(is_only_warning(error, home) for _, error in outcomes)
    assert len({count for count, _ in outcomes}) == 1


def _count(folder: Path) -> str:
    code = """
from rota import Rota
pending = Rota().queue().counts_sync()["pending"]
print("pending", pending + 1)
"""
    ended = run_python(code, cwd=folder)
    assert ended.stderr == ""
    return ended.stdout


def test_a_server_that_was_killed_is_started_again_under_a_running_client(home: Home) -> None:
    code = """
import os, signal, sys
from pathlib import Path
from rota import Rota
rota = Rota()
@rota.task
def add(a: int) -> int: return a
before = add.enqueue_sync(1)
os.kill(int(Path(".rota/server.lock").read_text()), signal.SIGKILL)
after = add.enqueue_sync(2)
print(before.state_sync(), after.state_sync())
"""
    ended = run_python(code, cwd=home.folder)

    assert ended.stdout == "pending pending\n"
    assert is_only_warning(ended.stderr, home)


def test_durability_that_reaches_the_disk_is_granted(home: Home) -> None:
    ended = run_python(FIVE_LINES.replace("Rota()", "Rota(durability='fsynced')"), cwd=home.folder)

    assert ended.stdout == "pending 1 the embedded server\n"
    assert is_only_warning(ended.stderr, home)
