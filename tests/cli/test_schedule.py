"""`rota schedule`."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

from rota import Cron, Every
from tests.cli.driver import Cli, Hand, Terminal


@pytest.fixture
def nightly(hand: Hand) -> str:
    """A schedule."""
    rule = Cron("0 3 * * *", "Europe/Oslo")
    return hand.rota.schedules.put_sync("nightly", rule, hand.send.call("a@b.c"), misfire="all").id


def test_a_list_shows_rules_in_words_and_what_comes_next(cli: Cli, hand: Hand) -> None:
    assert "there are no schedules" in cli.run("schedule", "list").err
    hand.rota.schedules.put_sync("nightly", Cron("0 3 * * *", "Europe/Oslo"), hand.send.call("a@b.c"))
    hand.rota.schedules.put_sync("often", Every(90), hand.add.call(1, 2))
    hand.rota.schedules.pause_sync("often")

    found = {one["schedule"]: one for one in cli.json("schedule", "list")["schedules"]}

    assert found["mail:nightly"]["rule"] == {"type": "cron", "expression": "0 3 * * *", "tz": "Europe/Oslo"}
    assert found["mail:nightly"]["words"] == "at 03:00 every day, Europe/Oslo"
    assert [datetime.fromisoformat(run).hour for run in found["mail:nightly"]["next_runs"]] == [3] * 5
    assert (found["default:often"]["is_paused"], found["default:often"]["next_runs"]) == (True, [])
    lines = cli.run("schedule", "list").out.splitlines()
    assert lines[0].split() == ["schedule", "task", "rule", "state", "next", "last", "fired", "dropped", "skipped"]
    assert "every 1 min 30 s" in lines[1]
    assert "paused" in lines[1]
    assert "at 03:00 every day, Europe/Oslo  open    in " in lines[2]
    only = cli.json("schedule", "list", "--queue", "mail")["schedules"]
    assert [one["name"] for one in only] == ["nightly"]


def test_show_tells_all_of_one_with_its_zone(cli: Cli, nightly: str) -> None:
    shown = cli.run("schedule", "show", "nightly").out

    assert f"schedule   {nightly}\n" in shown
    assert "rule       at 03:00 every day, Europe/Oslo\n           0 3 * * * Europe/Oslo\n" in shown
    assert 'task       send("a@b.c")\n' in shown
    assert "misfire    all\n" in shown
    assert "version    1, put at run time\n" in shown
    assert shown.count(" 03:00:00 +0") == 5
    assert " Europe/Oslo (in " in shown
    assert cli.json("schedule", "show", nightly)["args"] == ["a@b.c"]


def test_a_schedule_is_paused_and_resumed(cli: Cli, hand: Hand, nightly: str) -> None:
    assert cli.json("schedule", "pause", "nightly") == {"schedule": nightly, "is_paused": True}
    assert hand.rota.schedules.get_sync(nightly).is_paused
    assert cli.run("schedule", "pause", "nightly").out == f"schedule {nightly} is paused\n"

    said = cli.run("schedule", "resume", nightly).out

    assert f"schedule {nightly} is open; its next run is 20" in said
    assert not hand.rota.schedules.get_sync(nightly).is_paused


def test_run_makes_a_job_now(cli: Cli, hand: Hand, nightly: str) -> None:
    job_id = cli.run("schedule", "run", "nightly").out.strip()
    other = cli.json("schedule", "run", nightly)

    assert hand.state(job_id) == hand.state(other["id"]) == "pending"
    assert job_id.startswith("mail:nightly.20")
    assert hand.claim("mail").run < other["run"]


def test_remove_asks_first(cli: Cli, hand: Hand, nightly: str) -> None:
    refused = cli.run("schedule", "remove", "nightly", code=2)
    assert "This removes schedule mail:nightly (at 03:00 every day, Europe/Oslo)." in refused.err
    assert hand.rota.schedules.get_sync("nightly")
    terminal = Terminal(cli, "--namespace", cli.namespace, "schedule", "remove", "nightly")
    terminal.wait_for("Continue?")
    terminal.type("n\n")
    assert terminal.end() == 2

    assert cli.run("schedule", "remove", "nightly", "--yes").out == "removed schedule mail:nightly\n"

    assert hand.rota.schedules.list_sync() == []


def test_a_schedule_that_stands_in_code_is_said_to_come_back_and_an_orphan_to_be_one(cli: Cli, hand: Hand) -> None:
    cli.write(
        """
import os
from rota import Rota
rota = Rota(namespace=os.environ["TASKS_NAMESPACE"])
@rota.cron("0 3 * * *", tz="Europe/Oslo")
def nightly() -> None: ...
""",
        "clock.py",
    )
    cli.run_bare("worker", "clock:rota", "--burst")

    refused = cli.run("schedule", "remove", "nightly", code=2)
    assert "declared in code and will be created again by the next worker" in refused.err
    hand.announce_worker({"state": "active", "queues": ["default"], "schedules": []})

    assert cli.json("schedule", "show", "nightly")["is_orphaned"]
    assert "No live worker declares this schedule" in cli.run("schedule", "show", "nightly").err
    assert "orphaned" in cli.run("schedule", "list").out
    assert json.loads(cli.run("--json", "schedule", "remove", "nightly", "--yes").out)["removed"]


@pytest.mark.parametrize("words", [["show"], ["pause"], ["resume"], ["run"], ["remove", "--yes"]])
def test_an_unknown_schedule_is_not_found(cli: Cli, words: list[str]) -> None:
    assert "there is no schedule nightyl" in cli.run("schedule", *words, "nightyl", code=3).err


def test_a_name_that_can_be_none_and_an_unknown_queue_are_refused(cli: Cli, nightly: str) -> None:
    assert "is not a schedule name" in cli.run("schedule", "show", "a b", code=2).err
    assert "there is no queue 'mial'" in cli.run("schedule", "list", "--queue", "mial", code=3).err


def test_a_wrong_expression_or_zone_in_a_program_is_reported(cli: Cli) -> None:
    for wrong, why in (
        ('"0 25 * * *"', "cron: '0 25 * * *': bad hour"),
        ('"0 3 * * *", tz="Europe/Osla"', "tz: there is no time zone 'Europe/Osla'"),
    ):
        cli.write(f"from rota import Rota\nrota = Rota()\n@rota.cron({wrong})\ndef f() -> None: ...\n", "wrong.py")
        assert why in cli.run_bare("worker", "wrong:rota", code=6).err
