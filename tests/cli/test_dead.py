"""`rota dead`."""

from __future__ import annotations

from tests.cli.driver import Cli, Hand


def test_a_list_shows_the_latest_first_and_can_be_narrowed(cli: Cli, hand: Hand) -> None:
    first, second = hand.dead_letter("a@b.c"), hand.dead_letter("b@b.c", error="KeyError")
    hand.add.enqueue_sync(1)

    page = cli.json("dead", "list")
    narrowed = cli.json("dead", "list", "--error", "KeyError")

    assert [job["id"] for job in page["jobs"]] == [second, first]
    assert [job["id"] for job in narrowed["jobs"]] == [second]
    assert narrowed["examined"] == 1
    assert "KeyError: no route to b@b.c" in cli.run("dead", "list", "--text", "b@b.c").out
    assert "cursor: 'bad'" in cli.run("dead", "list", "--cursor", "bad", code=2).err


def test_show_is_for_dead_letters(cli: Cli, hand: Hand) -> None:
    dead, waiting = hand.dead_letter("a@b.c"), hand.add.enqueue_sync(1).id

    assert cli.json("dead", "show", dead)["error"]["traceback"].startswith("Traceback")
    assert "it is not a dead letter" in cli.run("dead", "show", waiting, code=4).err


def test_one_is_redriven_by_its_id(cli: Cli, hand: Hand) -> None:
    dead = hand.dead_letter("a@b.c")

    cli.run("dead", "redrive", dead)

    assert hand.state(dead) == "pending"


def test_many_are_redriven_by_a_filter(cli: Cli, hand: Hand) -> None:
    first, second = hand.dead_letter("a@b.c"), hand.dead_letter("b@b.c", error="KeyError")

    would = cli.json("dead", "redrive", "--error", "KeyError", "--dry-run")
    refused = cli.run("dead", "redrive", "--error", "KeyError", code=2)
    assert would == {"found": 1, "redriven": 0, "is_dry_run": True}
    assert "This redrives 1 dead letters with error 'KeyError'." in refused.err
    assert hand.state(second) == "failed"

    assert cli.json("dead", "redrive", "--error", "KeyError", "--yes")["redriven"] == 1
    assert (hand.state(first), hand.state(second)) == ("failed", "pending")
    assert cli.run("dead", "redrive", "--all", "--yes").out == "redriven 1 dead letters\n"


def test_many_are_deleted_no_more_than_the_limit(cli: Cli, hand: Hand) -> None:
    for number in range(3):
        hand.dead_letter(f"{number}@b.c")

    assert (
        "This deletes 2 dead letters with queue 'mail'."
        in cli.run("dead", "delete", "--queue", "mail", "--limit", "2", code=2).err
    )
    assert cli.json("dead", "delete", "--queue", "mail", "--limit", "2", "--yes") == {
        "found": 2,
        "deleted": 2,
        "is_dry_run": False,
    }

    assert hand.rota.queue("mail").counts_sync()["failed"] == 1


def test_one_is_deleted_by_its_id_unless_it_is_alive(cli: Cli, hand: Hand) -> None:
    dead, waiting = hand.dead_letter("a@b.c"), hand.add.enqueue_sync(1).id

    cli.run("dead", "delete", dead, code=2)
    cli.run("dead", "delete", dead, "--yes")

    cli.run("job", "show", dead, code=3)
    assert "it is not a dead letter: use rota job delete" in cli.run("dead", "delete", waiting, "--yes", code=4).err


def test_all_of_them_are_only_meant_when_it_is_said(cli: Cli, hand: Hand) -> None:
    dead = hand.dead_letter("a@b.c")

    assert "or --all" in cli.run("dead", "delete", "--yes", code=2).err
    assert "an ID or a filter, not both" in cli.run("dead", "redrive", dead, "--queue", "mail", code=2).err
    assert hand.state(dead) == "failed"
