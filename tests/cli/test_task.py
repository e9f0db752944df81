"""`rota task`: pausing a runaway task."""

from __future__ import annotations

from tests.cli.driver import Cli, Hand


def test_a_task_is_paused_listed_and_resumed(cli: Cli, hand: Hand) -> None:
    hand.add.enqueue_sync(1)

    paused = cli.run("task", "pause", "add", "--note", "partner down").out
    listed = cli.run("task", "list").out
    given = cli.json("task", "list")
    resumed = cli.run("task", "resume", "add").out

    assert paused == "task add is paused in default\n"
    assert listed.splitlines()[1].split()[:3] == ["add", "default", "paused"]
    assert "partner down" in listed
    assert (given["tasks"][0]["is_paused"], given["paused"][0]["note"]) == (True, "partner down")
    assert resumed == "task add is open in default\n"
    assert cli.run("task", "resume", "add").out == "task add was not paused\n"


def test_a_task_that_never_ran_is_refused(cli: Cli) -> None:
    refused = cli.run("task", "pause", "nothing", code=2)

    assert "no queue has had a job of task 'nothing': check the name, or give the queue" in refused.err


def test_a_deploy_is_marked(cli: Cli, hand: Hand) -> None:
    made = cli.json("annotate", "release 42", "--code-version", "v42")
    said = cli.run("annotate", "partner is down", "--queue", "mail").out

    deploy, note = hand.rota.annotations.list_sync()
    assert (made["text"], deploy.kind, deploy.version, deploy.queue) == ("release 42", "deploy", "v42", "")
    assert (note.kind, note.queue) == ("note", "mail")
    assert said.endswith(": partner is down\n")


def test_the_note_of_a_paused_queue_is_kept(cli: Cli, hand: Hand) -> None:
    hand.add.enqueue_sync(1)
    cli.run("queue", "pause", "default", "--note", "release")

    assert cli.json("queue", "list")["queues"][0]["pause"]["note"] == "release"
