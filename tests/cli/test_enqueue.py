"""`rota enqueue`."""

from __future__ import annotations

import getpass

import msgspec
import pytest

from rota.core.job_options import Options
from tests.cli.driver import Cli, Hand

APP = ("--app", "tasks:rota")


def test_a_job_is_enqueued_and_its_id_printed(cli: Cli, hand: Hand) -> None:
    job_id = cli.run("enqueue", "add", "1", "2", *APP).out.strip()

    record = hand.rota.job(job_id).refresh_sync()
    assert (record.task, record.state.value, record.arguments) == ("add", "pending", b"[1,2]")


def test_arguments_are_json_where_they_parse_as_json_and_text_elsewhere(cli: Cli, hand: Hand) -> None:
    hand.announce("any")

    made = cli.json("enqueue", "any", "--", "-1", "true", '"7"', '{"a": [1]}', "NaN", "plain text")

    record = hand.rota.job(made["id"]).refresh_sync()
    assert msgspec.json.decode(record.arguments) == [-1, True, "7", {"a": [1]}, "NaN", "plain text"]
    assert made == {"id": record.ref.full_id, "queue": "default", "run": record.ref.run, "task": "any", "is_new": True}


def test_every_option_reaches_the_job(cli: Cli, hand: Hand) -> None:
    placed = ("--queue", "other", "--id", "mine", "--delay", "5m", "--priority", "-5", "--expires", "2h")
    limits = ("--timeout", "90s", "--attempts", "7", "--tag", "a", "--tag", "b", "--meta", '{"k": 1}')

    cli.run("enqueue", "add", "--kwargs", '{"a": 1}', *placed, *limits, *APP)

    record = hand.rota.job("other:mine").refresh_sync()
    chosen = record.options
    assert record.state.value == "scheduled"
    assert record.due_at is not None
    assert 299_000 <= record.due_at - record.enqueued_at <= 300_000
    assert (chosen.priority, chosen.timeout_ms, chosen.retry.attempts, chosen.expires_ms) == (-5, 90_000, 7, 7_200_000)
    assert (chosen.tags, chosen.meta, record.arguments) == (("a", "b"), {"k": 1}, b'{"a":1}')


def test_a_time_without_a_zone_is_local(cli: Cli, hand: Hand) -> None:
    cli.environment["TZ"] = "Asia/Tokyo"

    cli.run("enqueue", "add", "1", "--id", "local", "--at", "2090-01-01T09:00", *APP)
    cli.run("enqueue", "add", "1", "--id", "zulu", "--at", "2090-01-01T00:00Z", *APP)

    local, zulu = (hand.rota.job(name).refresh_sync().due_at for name in ("local", "zulu"))
    assert local == zulu


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add", "one"), "Expected `int`, got `str`"),
        (("add", "1", "--kwargs", "{"), "not a JSON object"),
        (("add", "1", "--kwargs", "[1]"), "not a JSON object"),
        (("add", "1", "--delay", "soon"), "not a duration"),
        (("add", "1", "--at", "teatime"), "not a time"),
        (("add", "1", "--priority", "urgent"), "priority: 'urgent' is none of critical"),
        (("add", "1", "--id", "a b"), "id: 'a b' is not 1 to 128"),
        (("add", "1", "--queue", "mail-fail"), "reserved for failure handlers"),
        (("add", "1", "--delay", "1", "--at", "2090-01-01"), "give delay or run_at, not both"),
    ],
)
def test_what_cannot_be_a_job_is_refused_and_nothing_is_stored(
    cli: Cli, hand: Hand, words: tuple[str, ...], says: str
) -> None:
    assert says in cli.run("enqueue", *words, *APP, code=2).err

    assert hand.rota.queues_sync() == []


def test_an_unknown_task_is_not_found_and_the_known_ones_are_named(cli: Cli, hand: Hand) -> None:
    hand.announce("send", "mail")

    assert "this program declares: add, climb, say, send" in cli.run("enqueue", "sned", *APP, code=3).err
    refused = cli.run("enqueue", "sned", code=3).err
    assert "no worker has announced the task 'sned' (did you mean 'send'?); announced tasks: send." in refused


def test_without_the_program_the_announced_queue_and_defaults_count(cli: Cli, hand: Hand) -> None:
    options = {
        "timeout_ms": 30_000,
        "retry": {"attempts": 9, "backoff": {"type": "fixed", "delay": 5}},
        "tags": ["letter"],
    }
    hand.announce("send", "mail", options)

    plain = cli.json("enqueue", "send", "--kwargs", '{"to": "a@b.c"}')
    fewer = cli.json("enqueue", "send", "a@b.c", "--attempts", "2")

    record = hand.rota.job(plain["id"]).refresh_sync()
    assert (record.ref.queue, record.arguments) == ("mail", b'{"to":"a@b.c"}')
    stored = {**options, "terms": ["tag=letter"], "enqueued_by": f"{getpass.getuser()} (command line)"}
    assert record.options == msgspec.convert(stored, Options)
    retry = hand.rota.job(fewer["id"]).refresh_sync().options.retry
    assert msgspec.to_builtins(retry) == {"attempts": 2, "backoff": {"type": "fixed", "delay": 5}}
    assert "give either ARGS or --kwargs" in cli.run("enqueue", "send", "a", "--kwargs", '{"b": 1}', code=2).err


def test_an_id_in_use_is_refused_or_returned(cli: Cli) -> None:
    first = cli.json("enqueue", "add", "1", "--id", "mine", *APP)

    refused = cli.run("enqueue", "add", "1", "--id", "mine", "--on-same-id", "reject", *APP, code=4)
    assert "already has an unfinished run" in refused.err
    again = cli.json("enqueue", "add", "1", "--id", "mine", "--on-same-id", "ignore", *APP)

    assert again == {**first, "is_new": False}


@pytest.mark.parametrize(
    ("app", "says"),
    [
        ("nowhere:rota", "there is no module 'nowhere'"),
        ("tasks.py", "write it as tasks:rota"),
        ("tasks:nothing", "the module has tasks:rota"),
        ("empty", "the module has no Rota at all"),
        ("broken", "broken cannot be imported: ZeroDivisionError"),
    ],
)
def test_a_program_that_cannot_be_used_is_a_configuration_error(cli: Cli, app: str, says: str) -> None:
    cli.write("", "empty.py")
    cli.write("1 / 0", "broken.py")

    assert says in cli.run("enqueue", "add", "1", "--app", app, code=6).err


def test_an_address_that_the_program_overrules_is_refused(cli: Cli) -> None:
    cli.write('from rota import Rota\nrota = Rota("redis://elsewhere:1", namespace="mine")', "own.py")

    given = cli.run_bare("enqueue", "add", "--app", "own:rota", "--url", "redis://here:1", code=6)
    assert "--url has no effect: own:rota sets its server to redis://elsewhere:1" in given.err
    assert "--namespace has no effect" in cli.run("enqueue", "add", "--app", "own:rota", code=6).err
