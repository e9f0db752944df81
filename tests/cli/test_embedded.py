"""With nothing configured: `rota store-url` and `rota dev` on the embedded server."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from rota.cli.commands.dev import find_app
from rota.errors import ConfigurationError
from tests.cli.driver import TASKS, Cli
from tests.cli.fork_server import ForkServer
from tests.embedded.home import Home
from tests.eventually import eventually_sync


@pytest.fixture
def home() -> Iterator[Home]:
    """A folder in which nothing runs yet; whatever runs there at the end is killed."""
    home = Home()
    yield home
    home.close()


@pytest.fixture
def here(fork_server: ForkServer, home: Home) -> Iterator[Cli]:
    """`rota` in that folder, with no server configured."""
    cli = Cli(fork_server, home.folder, "rota", None)
    cli.write(TASKS)
    yield cli
    cli.close()


def test_store_url_says_where_the_embedded_server_is(here: Cli, home: Home) -> None:
    absent = here.run("store-url", code=1)
    assert "no embedded server is running" in absent.err
    assert absent.out == ""

    home.client().do("ensure")

    assert here.run("store-url").out == f"unix://{home.directory}/valkey.sock\n"
    given = here.json("store-url")
    assert given == {
        "url": f"unix://{home.directory}/valkey.sock",
        "kind": "embedded",
        "directory": str(home.directory),
    }


def test_store_url_shows_a_configured_server_without_its_password(here: Cli) -> None:
    assert here.run("store-url", "--url", "redis://me:secret@there:6379/1").out == "redis://there:6379/1\n"
    assert here.run("store-url", environment={"REDIS_HOST": "there"}).out == "redis://there:6379\n"


def test_commands_share_the_embedded_server_of_their_folder(here: Cli) -> None:
    job_id = here.run("enqueue", "add", "1", "--app", "tasks:rota").out.strip()

    assert here.json("job", "show", job_id)["state"] == "pending"


def test_dev_runs_everything_and_follows_the_code(here: Cli) -> None:
    dev = here.start("dev", "--log-level", "warning")
    wait_for(dev, "server  unix://")
    wait_for(dev, "worker  tasks:rota, queues default, mail")
    wait_for(dev, "reload  when a .py file")
    wait_for(dev, "pages   http://127.0.0.1:")
    assert here.run("enqueue", "add", "1", "2", "--app", "tasks:rota", "--wait").out == "3\n"

    here.write("def broken(")
    wait_for(dev, "the worker exited with code 6")
    here.write(TASKS.replace("a + b", "a * b * 100"))
    wait_for(dev, "tasks.py changed: restarting the worker")

    assert here.run("enqueue", "add", "1", "2", "--app", "tasks:rota", "--wait").out == "200\n"
    dev.send_signal(signal.SIGINT)
    assert dev.wait(15) == 0


@pytest.mark.parametrize("words", [("dev",), ("worker", "tasks:rota", "--reload", "--grace", "1")])
def test_a_worker_does_not_outlive_the_command_that_restarts_it(here: Cli, words: tuple[str, ...]) -> None:
    command = here.start(*words)
    assert here.run("enqueue", "add", "1", "2", "--app", "tasks:rota", "--wait").out == "3\n"
    family = [
        child
        for child in psutil.Process(command.pid).children(recursive=True)
        if {"worker", "rota.worker.runners.runner_process"} & set(child.cmdline())
    ]
    assert len(family) >= 2

    command.kill()

    eventually_sync(lambda: not [child for child in family if child.is_running()], 10)


def test_dev_finds_the_one_rota_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("import rota\n\nqueue: rota.Rota = rota.Rota()\n")
    (tmp_path / "other.py").write_text("def make():\n    inner = Rota()\n")
    assert find_app(tmp_path) == "shop:queue"

    (tmp_path / "more.py").write_text("jobs = Rota('redis://there')\n")
    with pytest.raises(ConfigurationError, match="found several: more:jobs, shop:queue"):
        find_app(tmp_path)


def test_dev_without_a_program_says_what_to_give(here: Cli) -> None:
    (here.folder / "tasks.py").unlink()

    assert "no .py file in" in here.run_bare("dev", code=6).err


def wait_for(process: subprocess.Popen[str], text: str) -> None:
    """Until the process says that on stderr. pytest's own timeout ends a wait that is in vain."""
    assert process.stderr is not None
    said: list[str] = []
    while line := process.stderr.readline():
        said.append(line)
        if text in line:
            return
    raise AssertionError(f"ended without {text!r}:\n{''.join(said)}")
