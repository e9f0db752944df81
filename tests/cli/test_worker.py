"""`rota worker`: from the command line to jobs that have run. What a worker does is tested in `tests/worker`."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest

from rota.cli import autoreload
from rota.worker import dispatcher, run_loops_and_drain
from rota.worker.runners import pool
from tests.cli.driver import Cli, Hand, Terminal
from tests.eventually import eventually_sync
from tests.servers import OwnServers


@pytest.fixture
def worker(cli: Cli, hand: Hand) -> subprocess.Popen[str]:
    """A worker that serves every queue of the program."""
    process = cli.start("worker", "tasks:rota", "--log-level", "warning")
    eventually_sync(lambda: any(w.status == "ALIVE" for w in hand.rota.workers_sync()), timeout=20)
    return process


def test_a_burst_runs_what_waits_in_every_queue_of_the_program_and_ends(cli: Cli, hand: Hand) -> None:
    sum_id, mail_id = hand.add.enqueue_sync(1, 2).id, hand.send.enqueue_sync("a@b.c").id

    done = cli.start("worker", "tasks:rota", "--burst", "--log-format", "json", "--log-level", "debug")
    _, err = done.communicate(timeout=30)

    assert done.returncode == 0
    assert hand.rota.job(sum_id).result_sync(1) == 3
    assert hand.state(mail_id) == "failed"
    lines = [json.loads(line) for line in err.splitlines()]
    failed = next(line for line in lines if "failed for good" in line["message"])
    assert (failed["level"], failed["job_id"], failed["queue"], failed["task"], failed["attempt"]) == (
        "error",
        mail_id,
        "mail",
        "send",
        1,
    )


@pytest.mark.parametrize(("level", "messages"), [("info", ["it is late", "it was late"]), ("warning", ["it was late"])])
def test_handlers_log_as_their_worker_does(cli: Cli, level: str, messages: list[str]) -> None:
    cli.run("enqueue", "say", "late", "--app", "tasks:rota")

    done = cli.start("worker", "tasks:rota", "--burst", "--log-format", "json", "--log-level", level)
    _, err = done.communicate(timeout=30)

    said = [json.loads(line) for line in err.splitlines()]
    assert [line["message"] for line in said if line["logger"] == "shop"] == messages


def test_a_worker_whose_program_does_not_start_any_more_leaves_its_jobs_to_others(cli: Cli, hand: Hand) -> None:
    """A deployment that replaced the code under it, and a mistake in the new code."""
    worker = cli.start("worker", "tasks:rota", "--queues", "default", "--processes", "2", hook="fast_runner_restart")
    eventually_sync(lambda: any(w.info.get("runners") for w in hand.rota.workers_sync()), timeout=20)
    (seen,) = hand.rota.workers_sync()
    program = (cli.folder / "tasks.py").read_text()
    cli.write("import nothing_of_that_name\n")

    for runner in seen.info["runners"]:
        os.kill(runner["pid"], signal.SIGKILL)
    job = hand.add.enqueue_sync(1, 2)
    _, err = worker.communicate(timeout=60)

    assert worker.returncode == 6
    assert "CRITICAL" in err
    assert "tasks:rota cannot be started any more: " in err
    assert "nothing_of_that_name" in err
    (ended,) = hand.rota.workers_sync()
    assert (ended.status, ended.info["state"]) == ("DEAD", "stopped")
    assert "nothing_of_that_name" in ended.info["error"]
    assert hand.state(job.id) == "pending"
    assert job.refresh_sync().counts.failures == 0
    cli.write(program)
    assert cli.start("worker", "tasks:rota", "--burst").wait(30) == 0
    assert job.result_sync(1) == 3


def test_a_worker_serves_only_the_given_queues_and_stops_on_request(cli: Cli, hand: Hand) -> None:
    sum_id, mail_id = hand.add.enqueue_sync(1, 2).id, hand.send.enqueue_sync("a@b.c").id

    serving = cli.start("worker", "tasks:rota", "--queues", "mail=2,other=1", "--name", "postman", "--concurrency", "3")
    eventually_sync(lambda: hand.state(mail_id) == "failed", timeout=20)
    (seen,) = hand.rota.workers_sync()
    serving.send_signal(signal.SIGTERM)

    assert serving.wait(15) == 0
    assert hand.state(sum_id) == "pending"
    assert (seen.info["queues"], seen.info["slots"]) == (["mail", "other"], 3)
    assert seen.id.startswith("postman-")


@pytest.mark.usefixtures("worker")
def test_enqueue_can_wait_for_the_result(cli: Cli) -> None:
    assert cli.run("enqueue", "add", "1", "2", "--wait").out == "3\n"
    failed = cli.run("enqueue", "send", "a@b.c", "--wait", "--app", "tasks:rota", code=1)
    given = cli.json("enqueue", "send", "a@b.c", "--wait", code=1)
    late = cli.run("enqueue", "climb", "20", "--wait-timeout", "200ms", code=1)

    assert failed.out == ""
    assert "failed for good: ValueError: no route to a@b.c" in failed.err
    assert (given["state"], given["error"]["type"], given["options"]["tags"]) == ("failed", "ValueError", ["letter"])
    assert "has not ended within 0.2 s" in late.err


@pytest.mark.usefixtures("worker")
def test_watch_shows_progress_at_a_terminal_and_in_a_pipe(cli: Cli) -> None:
    job_id = cli.run("enqueue", "climb", "8").out.strip()
    terminal = Terminal(cli, "--namespace", cli.namespace, "job", "watch", job_id)
    lines = cli.run("job", "watch", job_id).out.splitlines()

    assert terminal.end() == 0
    assert "climb completed" in terminal.seen
    assert "━" in terminal.seen
    assert (lines[-2].split()[0], lines[-1]) == ("completed", '"up"')
    assert any("% (" in line and "left" in line for line in lines[:-2])
    assert cli.run("job", "logs", job_id).out.count("step ") == 8


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--concurrency", "many"), 2, "'many' is neither a number nor auto"),
        (("--concurrency", "0"), 2, "concurrency: 0 is not 1 to 10,000"),
        (("--queues", "a,,b"), 2, "queue: '' is not 1 to 64"),
        (("--queues", "a=0"), 2, "a weight is a whole number of at least 1"),
        (("--queues", "a=1,b"), 2, "every queue needs a weight, or none has one"),
        (("--processes", "0"), 2, "processes: 0 is not 1 to 1,024"),
        (("--log-level", "loud"), 2, "'loud' is not one of"),
        (("--url", "nonsense"), 6, "not a server URL"),
    ],
)
def test_a_worker_that_cannot_be_meant_is_refused(cli: Cli, words: tuple[str, ...], code: int, says: str) -> None:
    assert says in cli.run_bare("worker", "tasks:rota", *words, code=code).err


@pytest.mark.parametrize("queues", [(), ("--queues", "a")])
def test_a_program_that_does_not_import_is_a_configuration_error(cli: Cli, queues: tuple[str, ...]) -> None:
    cli.write("import nothing_of_that_name", "broken.py")

    assert (
        "it needs nothing_of_that_name, which is not installed"
        in cli.run_bare("worker", "broken:rota", *queues, code=6).err
    )


def test_a_burst_without_a_server_says_so(cli: Cli, own_server: OwnServers) -> None:
    server = own_server(tcp=True)
    server.kill()

    said = cli.run_bare(
        "worker", "tasks:rota", "--queues", "a", "--burst", environment={"ROTA_URL": server.url}, code=5
    )

    assert "does not answer" in said.err


def test_a_worker_that_is_restarted_is_not_killed_while_its_stop_may_still_go_on() -> None:
    """The steps of a stop after the grace period: stopping handlers, notifying middleware, last reports, cleanup."""
    steps = (
        dispatcher.STOP_PATIENCE_S
        + run_loops_and_drain.HURRY_S
        + run_loops_and_drain.NOTIFY_S
        + dispatcher.STOP_PATIENCE_S
    )

    assert steps + pool.CLEANUP_S < autoreload.KILL_AFTER_S
