"""`rota job`."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.cli.driver import Cli, Hand
from tests.eventually import eventually_sync


def test_show_tells_everything_of_a_job(cli: Cli, hand: Hand) -> None:
    job_id = hand.dead_letter("a@b.c")

    shown = cli.run("job", "show", job_id).out
    given = cli.json("job", "show", job_id)

    assert "failed: ValueError: no route to a@b.c (attempt 1); a dead letter, redrive it to try again" in shown
    for part in ('arguments  ["a@b.c"]', "attempt    1, failures 1", " ago (20", "somewhere", "verb", "claim", "fail"):
        assert part in shown
    assert (given["id"], given["state"], given["queue"], given["task"]) == (job_id, "failed", "mail", "send")
    counts = {"attempt": 1, "failures": 1, "stalls": 0, "snoozes": 0, "handbacks": 0, "crashes": 0}
    assert given["counts"] == counts
    assert (given["error"]["type"], given["error"]["message"]) == ("ValueError", "no route to a@b.c")
    assert [entry["verb"] for entry in given["history"]] == ["enqueue", "claim", "fail"]
    assert given["explanation"].startswith("failed: ValueError")
    assert given["ended_at"].endswith("Z")


def test_show_tells_progress_and_result(cli: Cli, hand: Hand) -> None:
    job_id = hand.add.enqueue_sync(1).id
    claimed = hand.claim("default")
    hand.progress(claimed, 2, 4)
    at_work = cli.json("job", "show", job_id)
    hand.complete(claimed, {"sum": 2})

    assert (at_work["state"], at_work["worker"], at_work["progress"]["percent"]) == ("processing", "hand", 50)
    assert cli.json("job", "show", job_id)["result"] == {"sum": 2}
    assert 'result     {"sum": 2}' in cli.run("job", "show", job_id).out


@pytest.mark.requirement("S0-17")
def test_show_raw_is_what_the_server_holds(cli: Cli, hand: Hand) -> None:
    """What an operator reads during an incident."""
    job_id = hand.add.enqueue_sync(1).id

    held = cli.json("job", "show", "--raw", job_id)

    key = f"{hand.rota.namespace}:{{default}}:jobs"
    assert held[key].endswith("\nadd\n[1]")
    assert key in cli.run("job", "show", "--raw", job_id).out


def test_what_a_job_says_cannot_steer_the_terminal(cli: Cli, hand: Hand) -> None:
    job_id = hand.dead_letter("\x1b[2J")

    assert "\x1b" not in cli.run("job", "show", job_id).out + cli.run("dead", "list").out


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("show", "nothing"), 3, "job default:nothing does not exist"),
        (("watch", "mail:nothing"), 3, "does not exist"),
        (("logs", "nothing"), 3, "does not exist"),
        (("cancel", "nothing", "--yes"), 3, "does not exist"),
        (("redrive", "nothing"), 3, "does not exist"),
        (("delete", "nothing", "--yes"), 3, "does not exist"),
        (("show", "a b"), 2, "'a b' is not 1 to 128"),
        (("show", "mail:x@y"), 2, "has no valid run after the @"),
        (("list", "--queue", "mali"), 3, "there is no queue 'mali'; queues: none yet"),
        (("list", "--cursor", "bad"), 2, "cursor: 'bad' is not a cursor of this listing"),
        (("list", "--cursor", "pending~bad"), 2, "was not made by"),
        (("list", "--state", "done"), 2, "'done' is not one of"),
        (("list", "--limit", "0"), 2, "0 is not in the range"),
    ],
)
def test_bad_input_is_refused_with_one_clear_line(cli: Cli, words: tuple[str, ...], code: int, says: str) -> None:
    assert says in cli.run("job", *words, code=code).err


def test_a_list_goes_through_all_states_page_by_page(cli: Cli, hand: Hand) -> None:
    dead = [hand.dead_letter(f"{number}@b.c") for number in range(2)]
    waiting = [hand.add.enqueue_sync(number).id for number in range(2)]
    later = hand.add.using(delay=60).enqueue_sync(7).id
    seen: list[str] = []
    cursor: str | None = None

    for _ in range(10):
        page = cli.json("job", "list", "--limit", "2", *(("--cursor", cursor) if cursor else ()))
        seen += [job["id"] for job in page["jobs"]]
        cursor = page["cursor"]
        if cursor is None:
            break

    assert seen == [*waiting, later, *reversed(dead)]


def test_a_list_can_be_narrowed(cli: Cli, hand: Hand) -> None:
    hand.dead_letter("a@b.c")
    tagged = hand.add.using(tags=["red"]).enqueue_sync(1).id
    hand.add.enqueue_sync(2)

    def ids(*words: str) -> list[str]:
        return [job["id"] for job in cli.json("job", "list", *words)["jobs"]]

    assert len(ids("--state", "failed")) == 1
    assert len(ids("--queue", "default", "--task", "add")) == 2
    assert ids("--tag", "red") == [tagged]
    assert ids("--text", "no route to") == ids("--state", "FAILED")
    said = cli.run("job", "list", "--limit", "1")
    assert "1 job, 1 examined; next page: --cursor " in said.err
    assert said.out.splitlines()[0].split() == ["id", "task", "state", "attempt", "when", "remark"]


def test_cancel_ends_a_waiting_job(cli: Cli, hand: Hand) -> None:
    job_id = hand.add.enqueue_sync(1).id

    refused = cli.run("job", "cancel", job_id, code=2)
    assert "This cancels 1 job" in refused.err
    assert "add --yes" in refused.err
    assert hand.state(job_id) == "pending"

    assert cli.json("job", "cancel", job_id, "--yes", "--reason", "not needed")["was"] == "pending"
    assert hand.rota.job(job_id).refresh_sync().reason == "not needed"
    assert "cannot cancel job" in cli.run("job", "cancel", job_id, "--yes", code=4).err


def test_cancel_can_leave_a_running_job_alone(cli: Cli, hand: Hand) -> None:
    job_id = hand.add.enqueue_sync(1).id
    hand.claim("default")

    assert "was not cancelled" in cli.run("job", "cancel", job_id, "--only-waiting", "--yes", code=1).out
    assert hand.state(job_id) == "processing"
    assert "its handler is being stopped" in cli.run("job", "cancel", job_id, "--yes").out
    assert hand.state(job_id) == "cancelled"


def test_redrive_gives_a_dead_letter_another_life_and_nothing_else(cli: Cli, hand: Hand) -> None:
    dead, waiting = hand.dead_letter("a@b.c"), hand.add.enqueue_sync(1).id

    cli.run("job", "redrive", dead)

    assert hand.state(dead) == "pending"
    assert "only a dead letter can be redriven" in cli.run("job", "redrive", waiting, code=4).err


def test_delete_leaves_no_trace(cli: Cli, hand: Hand) -> None:
    job_id = hand.add.enqueue_sync(1).id

    assert "This deletes 1 job" in cli.run("job", "delete", job_id, code=2).err
    assert cli.json("job", "delete", job_id, "--yes")["was"] == "pending"

    cli.run("job", "show", job_id, code=3)


def test_logs_prints_what_the_handler_logged(cli: Cli, hand: Hand) -> None:
    job_id = hand.add.enqueue_sync(1).id
    claimed = hand.claim("default")
    hand.log(claimed, "one", "two")

    assert [line.rpartition(" ")[2] for line in cli.run("job", "logs", job_id).out.splitlines()] == ["one", "two"]
    lines = [json.loads(line) for line in cli.run("job", "logs", job_id, "--json").out.splitlines()]
    assert [(line["level"], line["text"]) for line in lines] == [("info", "one"), ("info", "two")]


@pytest.mark.parametrize(("end", "code"), [("completed", 0), ("failed", 1), ("cancelled", 1)])
def test_watch_follows_a_job_to_its_end(cli: Cli, hand: Hand, end: str, code: int) -> None:
    job_id = hand.add.enqueue_sync(1).id
    watching = cli.start("--namespace", cli.namespace, "job", "watch", job_id, "--json")
    assert next_line(watching)["state"] == "pending"

    claimed = hand.claim("default")
    assert next_line(watching)["state"] == "processing"
    hand.progress(claimed, 1, 2)
    assert next_line(watching)["progress"]["percent"] == 50
    if end == "completed":
        hand.complete(claimed, 2)
    elif end == "failed":
        hand.fail(claimed)
    else:
        hand.rota.job(job_id).cancel_sync("enough")

    assert next_line(watching)["state"] == end
    assert watching.wait(10) == code


def test_followed_logs_end_with_the_job(cli: Cli, hand: Hand) -> None:
    job_id = hand.add.enqueue_sync(1).id
    claimed = hand.claim("default")
    following = cli.start("--namespace", cli.namespace, "job", "logs", "--follow", job_id, "--json")

    hand.log(claimed, "one")
    assert next_line(following)["text"] == "one"
    hand.complete(claimed)

    assert following.wait(10) == 0


def test_watching_a_job_that_is_deleted_ends(cli: Cli, hand: Hand) -> None:
    job = hand.add.enqueue_sync(1)
    watching = cli.start("--namespace", cli.namespace, "job", "watch", job.id)
    assert watching.stdout is not None
    assert watching.stdout.readline().startswith("pending")

    job.delete_sync()

    eventually_sync(lambda: watching.poll() is not None)
    assert watching.returncode == 3


def next_line(process: subprocess.Popen[str]) -> dict[str, dict[str, object]]:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def test_encrypted_arguments_are_shown_with_the_key_only(cli: Cli) -> None:
    keys = {"ROTA_ENCRYPTION_KEYS": cli.run_bare("encryption-key").out.strip()}
    job_id = cli.run("enqueue", "add", "1234567", "2", "--app", "tasks:rota", environment=keys).out.strip()

    assert "1234567" in cli.run("job", "show", job_id, environment=keys).out
    hidden = cli.run("job", "show", job_id).out
    assert "1234567" not in hidden
    assert '{"encrypted": "with key ' in hidden
    assert "not 32 bytes" in cli.run("job", "show", job_id, code=6, environment={"ROTA_ENCRYPTION_KEYS": "x"}).err
