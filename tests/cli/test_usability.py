"""Mistakes are answered with suggestions, programs get errors in JSON, and shells complete names."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from rota.cli.autoreload import is_application_file
from tests.cli.driver import ROTA, TASKS, Cli, Hand
from tests.eventually import eventually_sync


def test_a_similar_name_is_suggested(cli: Cli, hand: Hand) -> None:
    hand.add.enqueue_sync(1)
    hand.announce("resize")

    assert "there is no command 'quue' (did you mean 'queue'?)" in cli.run("quue", "list", code=2).err
    assert "there is no queue 'defalt' (did you mean 'default'?)" in cli.run("queue", "pause", "defalt", code=3).err
    assert "the task 'resiez' (did you mean 'resize'?)" in cli.run("enqueue", "resiez", code=3).err
    assert "did you mean" not in cli.run("zzz", code=2).err


@pytest.mark.parametrize(
    ("words", "kind", "code"),
    [
        (("job", "show", "default:nope", "--json"), "JobNotFound", 3),
        (("--json", "queue", "pause", "nope"), "QueueNotFound", 3),
        (("job", "show", "--json", "--nope"), "NoSuchOption", 2),
        (("--json", "nope"), "UsageError", 2),
    ],
)
def test_with_json_an_error_is_one_line_of_json(cli: Cli, words: tuple[str, ...], kind: str, code: int) -> None:
    answer = cli.run(*words, code=code)

    error = json.loads(answer.err)["error"]
    assert answer.out == ""
    assert (error["type"], error["exit_code"]) == (kind, code)
    assert error["message"]


@pytest.mark.parametrize("words", [("--help",), ("job", "--help")])
def test_help_for_a_reader_that_has_gone_is_no_traceback(cli: Cli, words: tuple[str, ...]) -> None:
    source, sink = os.pipe()
    os.close(source)
    try:
        done = subprocess.run([*ROTA, *words], stdout=sink, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(sink)

    assert done.stderr == ""


def test_numbers_and_nouns_agree(cli: Cli, hand: Hand) -> None:
    hand.add.enqueue_sync(1)
    assert "1 job, 1 examined" in cli.run("job", "list").err
    assert cli.run("queue", "purge", "default", "--yes").out == "deleted 1 waiting job of queue default\n"


def test_watching_a_job_prints_its_result(cli: Cli, hand: Hand) -> None:
    job = hand.add.enqueue_sync(1)
    hand.complete(hand.claim("default"), {"sum": 2})

    assert cli.run("job", "watch", job.id).out.splitlines()[-1] == '{"sum":2}'


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rota queue pause de", ["default"]),
        ("rota enqueue re", ["resize"]),
        ("rota job list --task re", ["resize"]),
        ("rota job show or", ["order-7"]),
        ("rota job show mail:", ["mail:letter-1"]),
    ],
)
def test_a_shell_completes_queues_tasks_and_job_ids(cli: Cli, hand: Hand, line: str, expected: list[str]) -> None:
    hand.add.using(id="order-7").enqueue_sync(1)
    hand.send.using(id="letter-1").enqueue_sync("a")
    hand.announce("resize")
    words = line.replace("rota", f"rota --namespace {cli.namespace}", 1)
    environment = {
        **cli.environment,
        "_ROTA_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }

    done = subprocess.run(ROTA, env=environment, cwd=cli.folder, capture_output=True, text=True, check=False)

    assert [found.partition(",")[2] for found in done.stdout.splitlines()] == expected, done.stderr


def test_a_worker_that_crashed_is_restarted(cli: Cli, hand: Hand) -> None:
    command = cli.start("worker", "tasks:rota", "--reload")

    def live() -> list[str]:
        return [worker.id for worker in hand.rota.workers_sync() if worker.status == "ALIVE"]

    eventually_sync(live, timeout=60)
    (first,) = live()
    crashed = next(child for child in psutil.Process(command.pid).children() if "worker" in child.cmdline())
    crashed.send_signal(signal.SIGKILL)

    eventually_sync(lambda: [worker for worker in live() if worker != first], timeout=60)
    command.terminate()
    assert "the worker was killed by signal 9; it restarts in 1 s" in command.communicate(timeout=60)[1]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tasks.py", True),
        ("shop/mail.py", True),
        ("shop/notes.txt", False),
        ("tests/test_mail.py", False),
        ("conftest.py", False),
        ("myenv/lib/python3/abc.py", False),
        (".cache/tool.py", False),
        ("vendor/site-packages/x.py", False),
    ],
)
def test_only_files_of_the_application_restart_it(
    path: str, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "myenv").mkdir()
    (tmp_path / "myenv" / "pyvenv.cfg").touch()
    monkeypatch.chdir(tmp_path)

    assert is_application_file(None, str(tmp_path / path)) is expected


def test_a_sync_method_in_a_running_loop_warns_once_and_names_the_other(cli: Cli) -> None:
    cli.write(
        TASKS
        + """
async def main() -> None:
    add.enqueue_sync(1)
    add.enqueue_sync(2)
    await add.enqueue(3)


if __name__ == "__main__":
    add.enqueue_sync(0)
    asyncio.run(main())
"""
    )

    done = subprocess.run(
        [ROTA[0], "tasks.py"], cwd=cli.folder, env=cli.environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert done.stderr.count("was called in a running event loop") == 1
    assert "enqueue_sync()" in done.stderr
    assert "await ….enqueue(…)" in done.stderr
