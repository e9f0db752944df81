"""`rota bulk`."""

from __future__ import annotations

from tests.cli.driver import Cli, Hand


def test_jobs_are_counted_then_cancelled(cli: Cli, hand: Hand) -> None:
    waiting = [hand.add.enqueue_sync(number) for number in range(3)]

    would = cli.json("bulk", "cancel", "--task", "add", "--dry-run")
    assert (would["matched"], would["done"], would["state"]) == (3, 0, "completed")
    assert "queue=" in cli.run("bulk", "cancel", "--queue", waiting[0].queue, code=2).err
    done = cli.json("bulk", "cancel", "--task", "add", "--state", "pending", "--yes", "--reason", "no")

    assert (done["done"], done["failed"]) == (3, 0)
    assert [hand.state(job.id) for job in waiting] == ["cancelled"] * 3
    assert [one["id"] for one in cli.json("bulk", "list")] == [done["id"], would["id"]]
    assert "3 matched, 3 done, 0 failed" in cli.run("bulk", "show", done["id"]).out


def test_one_that_is_left_to_workers_can_be_stopped(cli: Cli, hand: Hand) -> None:
    job = hand.add.enqueue_sync(1)

    left = cli.json("bulk", "update", "--task", "add", "--priority", "-5", "--yes", "--background")
    assert left["state"] == "running"
    assert cli.json("bulk", "stop", left["id"])["state"] == "stopping"

    assert hand.state(job.id) == "pending"
    assert "there is no operation nowhere" in cli.run("bulk", "show", "nowhere", code=3).err
    assert "has no filter" in cli.run("bulk", "delete", "--yes", code=2).err
