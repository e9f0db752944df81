"""`rota queue`."""

from __future__ import annotations

from tests.cli.driver import Cli, Hand


def test_a_list_shows_how_queues_stand(cli: Cli, hand: Hand) -> None:
    assert "no queue has been used yet" in cli.run("queue", "list").err
    hand.dead_letter("a@b.c")
    hand.add.enqueue_sync(1)

    queues = {queue["name"]: queue for queue in cli.json("queue", "list")["queues"]}

    assert queues["mail"]["counts"]["failed"] == queues["default"]["counts"]["pending"] == 1
    assert queues["default"]["oldest_pending_ms"] >= 0
    assert not queues["mail"]["is_paused"]
    lines = cli.run("queue", "list").out.splitlines()
    assert lines[0].split()[:2] == ["queue", "claims"]
    assert [line.split()[0] for line in lines[1:]] == ["default", "mail"]


def test_a_queue_is_paused_and_resumed(cli: Cli, hand: Hand) -> None:
    hand.add.enqueue_sync(1)

    assert cli.json("queue", "pause", "default") == {"queue": "default", "is_paused": True}
    assert hand.rota.queue().info_sync().is_paused
    cli.run("queue", "resume", "default")
    assert not hand.rota.queue().info_sync().is_paused


def test_purge_deletes_waiting_jobs_after_a_confirmation(cli: Cli, hand: Hand) -> None:
    hand.dead_letter("a@b.c")
    for number in range(3):
        hand.send.enqueue_sync(f"{number}@b.c")

    would = cli.json("queue", "purge", "mail", "--dry-run")
    refused = cli.run("queue", "purge", "mail", code=2)

    assert would == {"queue": "mail", "waiting": 3, "purged": 0, "is_dry_run": True}
    assert "This deletes 3 waiting jobs of queue mail (3 pending, 0 scheduled, 0 blocked)." in refused.err
    assert hand.rota.queue("mail").counts_sync()["pending"] == 3
    assert cli.run("queue", "purge", "mail", "--yes").out == "deleted 3 waiting jobs of queue mail\n"
    counts = hand.rota.queue("mail").counts_sync()
    assert (counts["pending"], counts["failed"]) == (0, 1)


def test_an_unknown_queue_is_not_found(cli: Cli, hand: Hand) -> None:
    hand.add.enqueue_sync(1)

    assert (
        "there is no queue 'defualt' (did you mean 'default'?); queues: default"
        in cli.run("queue", "pause", "defualt", code=3).err
    )
    assert "is not 1 to 64" in cli.run("queue", "purge", "a b", code=2).err
