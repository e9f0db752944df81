"""Servers that are down, closed, too new; terminals, pipes, and libraries that are not there."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rota.client.session import session_of, sessions_of
from rota.install_command import install_command
from tests.cli.driver import ROTA, Cli, Hand, Terminal
from tests.servers import OwnServers

#: Runs several commands, apart by commas, where rich cannot be imported.
WITHOUT_RICH = """
import sys
sys.modules["rich"] = None
from rota.cli.main import run
commands = " ".join(sys.argv[1:]).split(" , ")
sys.exit(max(run(command.split(" ")) for command in commands))
"""
WITHOUT_WATCHFILES = (
    sys.executable,
    "-c",
    "import sys; sys.modules['watchfiles'] = None; from rota.cli.main import main; main()",
)


def test_a_server_that_is_down_is_one_line_and_code_5(cli: Cli, own_server: OwnServers) -> None:
    server = own_server(tcp=True)
    server.kill()

    said = cli.run("queue", "list", "--url", server.url, code=5)

    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith("Error: redis://127.0.0.1:")
    assert "is it running" in said.err


def test_a_wrong_password_is_code_5_and_is_not_repeated(cli: Cli, own_server: OwnServers) -> None:
    server = own_server(tcp=True, requirepass="right")

    missing = cli.run("queue", "list", "--url", f"redis://127.0.0.1:{server.port}", code=5)
    wrong = cli.run("queue", "list", "--url", f"redis://:wr0ng@127.0.0.1:{server.port}", code=5)

    assert "check the URL, REDIS_PASSWORD" in missing.err
    assert "check the URL, REDIS_PASSWORD" in wrong.err
    assert "wr0ng" not in wrong.err


def test_a_full_server_refuses_an_enqueue_with_code_5(cli: Cli, own_server: OwnServers) -> None:
    server = own_server(maxmemory="1", maxmemory_policy="noeviction")

    said = cli.run("enqueue", "add", "1", "--app", "tasks:rota", "--url", server.url, code=5)

    assert "maxmemory" in said.err


def test_a_format_that_is_too_new_is_refused(cli: Cli, hand: Hand) -> None:
    hand.add.enqueue_sync(1)
    sessions_of(hand.rota).run_sync(set_format(hand))

    for words in (("queue", "list"), ("job", "show", "x"), ("enqueue", "add", "1", "--app", "tasks:rota")):
        assert "the server holds format 99" in cli.run(*words, code=5).err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--url", "http://here", "queue", "list"), 6, "not a server URL"),
        (("--url", "redis://here:port", "queue", "list"), 6, "no valid port"),
        (("--namespace", "a b", "queue", "list"), 2, "namespace: 'a b' is not"),
    ],
)
def test_a_server_that_cannot_be_meant_is_refused(cli: Cli, words: tuple[str, ...], code: int, says: str) -> None:
    assert says in cli.run_bare(*words, code=code).err


def test_debug_shows_the_traceback(cli: Cli) -> None:
    done = subprocess.run(
        [*ROTA, "job", "show", "a b", "--debug"],
        cwd=cli.folder,
        env=cli.environment,
        capture_output=True,
        text=True,
        timeout=30,
    )

    assert done.returncode == 2
    assert "Traceback" in done.stderr


def test_a_question_is_asked_at_a_terminal(cli: Cli, hand: Hand) -> None:
    job_id = hand.add.enqueue_sync(1).id
    words = ("--namespace", cli.namespace, "job", "delete", job_id)

    for answer, code in (("n\n", 2), ("y\n", 0)):
        terminal = Terminal(cli, *words)
        terminal.wait_for("Continue? [y/N]")
        assert hand.state(job_id) == "pending"
        terminal.type(answer)
        assert terminal.end() == code

    with pytest.raises(LookupError):
        hand.state(job_id)


def test_ctrl_c_at_a_question_changes_nothing(cli: Cli, hand: Hand) -> None:
    job_id = hand.add.enqueue_sync(1).id
    terminal = Terminal(cli, "--namespace", cli.namespace, "job", "delete", job_id)
    terminal.wait_for("Continue? [y/N]")

    terminal.process.send_signal(2)

    assert terminal.end() == 130
    assert "Traceback" not in terminal.seen
    assert hand.state(job_id) == "pending"


def test_a_terminal_gets_tables_and_colours_unless_disabled(cli: Cli, hand: Hand) -> None:
    hand.dead_letter("a@b.c")
    words = ("--namespace", cli.namespace, "job", "list")

    plain = Terminal(cli, *words)
    plain.end()
    del cli.environment["NO_COLOR"]
    coloured = Terminal(cli, *words)
    coloured.end()

    assert "\x1b[31mfailed" in coloured.seen
    assert "\x1b[31m" not in plain.seen
    assert "───" in plain.seen


def test_nothing_needs_rich(cli: Cli, hand: Hand) -> None:
    job = hand.add.enqueue_sync(1)
    hand.complete(hand.claim("default"), 2)

    words = f"--namespace {cli.namespace} job list , --namespace {cli.namespace} top --once".split(" ")
    terminal = Terminal(
        cli,
        *words,
        *f", --namespace {cli.namespace} job watch {job.id}".split(" "),
        program=(sys.executable, "-c", WITHOUT_RICH),
    )

    assert terminal.end() == 0
    assert "\r\ncompleted  attempt 1" in terminal.seen
    assert "oldest wait\r\ndefault" in terminal.seen
    assert "1 job, 1 examined" in terminal.seen


def test_reloading_without_watchfiles_says_what_to_install(cli: Cli) -> None:
    done = subprocess.run(
        [*WITHOUT_WATCHFILES, "worker", "tasks:rota", "--reload"],
        cwd=cli.folder,
        env=cli.environment,
        capture_output=True,
        text=True,
        timeout=30,
    )

    assert done.returncode == 6
    assert done.stderr == f"Error: --reload requires the package watchfiles: {install_command('cli')}\n"


def test_a_reader_that_has_had_enough_is_no_error(cli: Cli, hand: Hand) -> None:
    for number in range(100):
        hand.add.using(meta={"padding": "x" * 2000}).enqueue_sync(number)
    listing = cli.start("--namespace", cli.namespace, "job", "list", "--json", "--limit", "100")
    assert listing.stdout is not None
    listing.stdout.readline()
    listing.stdout.close()

    assert listing.stderr is not None
    assert "Traceback" not in listing.stderr.read()


async def set_format(hand: Hand) -> None:
    await session_of(hand.rota).store.redis.command("SET", sessions_of(hand.rota).keys.shared("format"), 99)
