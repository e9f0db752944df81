"""`rota settings`."""

from __future__ import annotations

import pytest

from tests.cli.driver import Cli, Hand


@pytest.mark.requirement("S0-7", "S0-13")
def test_durations_are_shown_set_and_restored(cli: Cli, hand: Hand) -> None:
    assert cli.json("settings", "show") == {
        "version": 0,
        "lease_ms": 4_500,
        "heartbeat_ms": 1_500,
        "poll_ms": 1_800,
        "grace_ms": 25_000,
        "set": [],
    }

    changed = cli.json("settings", "set", "lease=30", "poll=10s", "grace=2m")

    assert (changed["version"], changed["set"]) == (1, ["lease", "poll", "grace"])
    assert (changed["lease_ms"], changed["poll_ms"], changed["grace_ms"]) == (30_000, 10_000, 120_000)
    assert hand.rota.settings.get_sync().durations.lease_ms == 30_000
    lines = [line.split()[:4] for line in cli.run("settings", "show").out.splitlines()]
    assert ["lease", "30", "s", "set"] in lines
    assert ["heartbeat", "1.5", "s", "default"] in lines
    assert cli.json("settings", "set", "poll=default")["poll_ms"] == 1_800


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lease"], "write NAME=TIME, where NAME is one of lease, heartbeat, poll, grace"),
        (["lese=3"], "write NAME=TIME"),
        (["lease=soon"], "'soon' is not a duration"),
        (["heartbeat=5"], "heartbeat: 5 s is not 0.2 to 1.5 s (a third of the lease)"),
    ],
)
def test_what_cannot_be_set_is_refused_with_what_can(cli: Cli, words: list[str], message: str) -> None:
    refused = cli.run("settings", "set", *words, code=2)

    assert message in " ".join(refused.err.split())
    assert cli.json("settings", "show")["version"] == 0
