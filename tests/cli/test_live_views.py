"""`rota workers`, `rota top`, `rota events`: looking at what goes on."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
from typing import Any

from tests.cli.driver import Cli, Hand, Terminal

INFO = {
    "state": "active",
    "queues": ["default", "mail"],
    "slots": 10,
    "busy": 1,
    "finished": 41,
    "started_at": 1_700_000_000_000,
    "running": [{"job": "mail:x", "task": "send", "attempt": 1}],
}


def test_workers_are_listed_with_what_they_run(cli: Cli, hand: Hand) -> None:
    assert "no worker was seen" in cli.run("workers").err
    hand.announce_worker(INFO)
    alive = cli.run("workers").out
    given = cli.json("workers", "--alive")["workers"]

    assert alive.splitlines()[1].split()[:6] == ["hand", "ALIVE", "active", "default,mail", "1/10", "41"]
    assert "mail:x (send)" in alive
    assert (given[0]["id"], given[0]["status"], given[0]["started_at"]) == ("hand", "ALIVE", "2023-11-14T22:13:20.000Z")

    hand.announce_worker({**INFO, "state": "stopped"})
    assert cli.json("workers", "--alive") == {"workers": []}
    assert cli.json("workers")["workers"][0]["status"] == "DEAD"
    assert cli.run("workers").out.splitlines()[1].split()[:3] == ["hand", "STOPPED", "stopped"]


def test_top_shows_queues_and_workers_once(cli: Cli, hand: Hand) -> None:
    hand.add.enqueue_sync(1)
    hand.announce_worker(INFO)

    shown = cli.run("top", "--once").out
    given = cli.json("top", "--once")

    assert shown.splitlines()[0].endswith("1 of 10 slots busy")
    assert shown.splitlines()[1].split()[:7] == [
        "queue",
        "claims",
        "pending",
        "scheduled",
        "blocked",
        "processing",
        "failed",
    ]
    assert "hand" in shown
    assert (given["queues"][0]["counts"]["pending"], given["queues"][0]["in_per_second"]) == (1, None)


def test_top_goes_on_and_tells_rates(cli: Cli, hand: Hand) -> None:
    hand.add.enqueue_sync(1)
    watching = cli.start("--namespace", cli.namespace, "top", "--json", "--interval", "0.1")
    next_line(watching)

    hand.complete(hand.claim("default"))
    rates = [next_line(watching)["queues"][0]["out_per_second"]]
    while not rates[-1]:
        rates.append(next_line(watching)["queues"][0]["out_per_second"])
    watching.send_signal(signal.SIGINT)

    assert rates[-1] > 0
    assert watching.wait(10) == 130


def test_a_finished_job_that_is_deleted_leaves_only_once(cli: Cli, hand: Hand) -> None:
    job = hand.add.enqueue_sync(1)
    hand.complete(hand.claim("default"))
    watching = cli.start("--namespace", cli.namespace, "top", "--json", "--interval", "0.1")
    next_line(watching)

    job.delete_sync()
    samples = [next_line(watching)["queues"][0]]
    while samples[-1]["counts"]["completed"]:
        samples.append(next_line(watching)["queues"][0])
    watching.send_signal(signal.SIGINT)

    assert [sample["out_per_second"] for sample in samples] == [0] * len(samples)


def test_top_sorts_by_a_column_and_ends_with_a_key(cli: Cli, hand: Hand) -> None:
    hand.add.enqueue_sync(1)
    for to in ("a", "b"):
        hand.send.enqueue_sync(to)

    names = [line.split()[0] for line in cli.run("top", "--once", "--sort", "pending").out.splitlines()[2:4]]
    assert names == ["mail", "default"]

    terminal = Terminal(cli, "--namespace", cli.namespace, "top", "--interval", "60")
    terminal.wait_for("[q] quit  [s] sort: queue")
    terminal.type("s")
    terminal.wait_for("[s] sort: pending")
    terminal.type("q")
    assert terminal.end() == 0


def test_events_are_printed_as_they_happen(cli: Cli, hand: Hand) -> None:
    hand.add.enqueue_sync(1)
    following = cli.start("--namespace", cli.namespace, "events", "--json", "--after", position({"default": "0-0"}))
    before = next_line(following)
    hand.claim("default")
    event = next_line(following)
    following.send_signal(signal.SIGINT)

    assert (before["queue"], before["verb"]) == ("default", "enqueue")
    assert (event["queue"], event["verb"], event["runs"]) == ("default", "claim", before["runs"])
    _, err = following.communicate(timeout=10)
    assert following.returncode == 130
    assert err.strip() == ""


def test_a_worker_is_asked_to_drain(cli: Cli, hand: Hand) -> None:
    hand.announce_worker({"state": "active", "queues": ["mail"]})
    (worker,) = cli.json("workers")["workers"]

    said = cli.json("workers", "drain", worker["id"])

    assert said == {"worker": worker["id"], "state": "draining"}
    assert cli.json("workers", "--alive")["workers"][0]["state"] == "draining"
    assert "there is no worker nobody" in cli.run("workers", "drain", "nobody", code=3).err


def test_events_can_be_resumed(cli: Cli, hand: Hand) -> None:
    hand.add.enqueue_sync(1)
    first = cli.start("--namespace", cli.namespace, "events", "--json", "--after", position({"default": "0-0"}))
    seen = next_line(first)
    hand.claim("default")

    resumed = cli.start("--namespace", cli.namespace, "events", "--queue", "default", "--after", seen["id"])

    assert resumed.stdout is not None
    assert resumed.stdout.readline().split()[1:] == ["default", "claim", *seen["runs"]]


def test_events_of_nothing_are_refused(cli: Cli, hand: Hand) -> None:
    assert "no queue has been used yet" in cli.run("events", code=3).err
    hand.add.enqueue_sync(1)
    assert "'nonsense' is not the id of an event" in cli.run("events", "--after", "nonsense", code=2).err


def position(seen: dict[str, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(seen).encode()).decode().rstrip("=")


def next_line(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())
