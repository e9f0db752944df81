"""`rota export` and `rota import`."""

from __future__ import annotations

import json

from tests.cli.driver import Cli, Hand
from tests.servers import Server


def test_an_export_is_restored_on_another_server(cli: Cli, hand: Hand, redis7: Server) -> None:
    hand.dead_letter("a@b.c")
    hand.add.enqueue_sync(1)
    other = ("--url", redis7.url)

    assert "lines written to backup.jsonl" in cli.run("export", "backup.jsonl").err
    assert (
        "restored 2 jobs, 0 schedules, 0 workflows; 0 were there already"
        in cli.run("import", "backup.jsonl", *other).out
    )
    assert cli.json("import", "backup.jsonl", *other)["present"] == 2
    assert len(cli.json("job", "list", *other)["jobs"]) == 2
    assert (cli.folder / "backup.jsonl").stat().st_mode & 0o777 == 0o600


def test_the_lines_of_stdout_are_those_of_the_file(cli: Cli, hand: Hand) -> None:
    hand.add.enqueue_sync(1)

    lines = [json.loads(line) for line in cli.run("export").out.splitlines()]

    assert lines[0]["kind"] == "export"
    assert [line["task"] for line in lines if line["kind"] == "job"] == ["add"]
    assert lines[-1] == {"kind": "end", "jobs": 1}


def test_a_file_that_ends_early_is_reported(cli: Cli, hand: Hand) -> None:
    hand.add.enqueue_sync(1)
    cli.run("export", "backup.jsonl")
    path = cli.folder / "backup.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))

    assert "the file ends early" in cli.run("import", "backup.jsonl", code=1).out


def test_a_file_that_is_no_export_is_refused(cli: Cli) -> None:
    cli.write("hello", "notes.txt")

    assert "line 1 is not a line of `rota export`" in cli.run("import", "notes.txt", code=2).err


def test_a_folder_that_does_not_exist_is_named(cli: Cli) -> None:
    assert "cannot be written: No such file or directory" in cli.run("export", "missing/backup.jsonl", code=1).err
