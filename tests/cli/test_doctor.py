"""`rota doctor`: what facts mean, and what it finds on real servers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rota.doctor import STANDING, Facts, Finding, diagnose
from rota.store.views import QueueInfo, WorkerInfo
from tests.cli.driver import Cli, Hand
from tests.servers import OwnServers, Server

GOOD = Facts(
    address="redis://here",
    server="valkey",
    version=(9, 1, 2),
    role="primary",
    is_aof_on=True,
    appendfsync="everysec",
    maxmemory=2**30,
    used_memory=2**20,
    policy="noeviction",
    latency_ms=0.2,
    format=1,
    workers=[WorkerInfo("w", "ALIVE", 0, 0, {"queues": ["mail"]})],
)


def a_queue(name: str, *, is_paused: bool = False, **counts: int) -> QueueInfo:
    states = ("scheduled", "blocked", "pending", "processing", "completed", "failed", "cancelled")
    return QueueInfo(name, is_paused, {state: counts.get(state, 0) for state in states}, {}, None)


def troubles(facts: Facts) -> list[Finding]:
    return [finding for finding in diagnose(facts) if finding.level != "ok"]


def test_a_good_server_is_all_ok() -> None:
    assert troubles(GOOD) == []
    assert troubles(replace(GOOD, server="redis", version=(7, 0, 15), appendfsync="always", format=None)) == []


@pytest.mark.parametrize(
    ("change", "level", "check", "says"),
    [
        ({"trouble": "nobody answers"}, "fail", "server", "nobody answers"),
        ({"server": "redis", "version": (6, 2, 14)}, "fail", "version", "Redis 6.2.14 is too old"),
        ({"server": "valkey", "version": (7, 2, 5)}, "fail", "version", "upgrade to Valkey 8 or Redis 7"),
        ({"version": ()}, "warn", "version", "does not say which it is"),
        ({"role": "replica"}, "fail", "role", "takes no writes: give the address of its primary"),
        (
            {"is_aof_on": False},
            "warn",
            "append-only file",
            "lost when the server crashes or restarts; set `appendonly yes`",
        ),
        ({"is_aof_on": None}, "warn", "append-only file", "does not say whether it is on"),
        ({"appendfsync": "no"}, "warn", "append-only file", "a power cut loses up to about 30 s"),
        ({"failed_writes": ("snapshot",)}, "fail", "disk", "the last snapshot failed: is the disk full?"),
        ({"policy": "allkeys-lru"}, "fail", "memory", "jobs vanish without a word; set it to noeviction"),
        ({"policy": "volatile-lru", "maxmemory": 0}, "warn", "memory", "there is no maxmemory yet"),
        ({"policy": "", "maxmemory": None}, "warn", "memory", "does not say its maxmemory-policy"),
        ({"used_memory": 2**30 - 2**20}, "warn", "memory", "soon new jobs are refused"),
        ({"is_full": True}, "fail", "memory", "maxmemory is reached: new jobs are refused"),
        ({"denied": "no right to EVALSHA"}, "fail", "rights", "no right to EVALSHA. Grant it"),
        ({"skew_ms": -3_600_000}, "warn", "clock", "the server is 1 h 0 min behind this machine"),
        ({"latency_ms": 80.0}, "warn", "latency", "80 ms per round trip"),
        ({"format": 99}, "fail", "format", "the server holds format 99"),
        ({"workers": ()}, "warn", "workers", "none is alive"),
        ({"queues": [a_queue("slow", scheduled=2)]}, "warn", "unserved queues", "no worker serves slow (2 jobs wait)"),
        ({"queues": [a_queue("mail", is_paused=True, pending=3)]}, "warn", "paused queues", "mail (3 pending)"),
        ({"queues": [a_queue("mail", failed=1200)]}, "warn", "dead letters", "mail (1,200): see `rota dead list`"),
    ],
)
def test_what_is_wrong_is_found_with_what_to_do(change: dict[str, Any], level: str, check: str, says: str) -> None:
    found = troubles(replace(GOOD, **change))

    assert [(finding.level, finding.check) for finding in found] == [(level, check)]
    assert says in found[0].message


def test_a_long_list_is_cut() -> None:
    queues = [a_queue(f"q{number}", failed=1) for number in range(9)]

    assert "q4 (1) and 4 more" in troubles(replace(GOOD, queues=queues))[0].message


def test_what_speaks_of_jobs_and_workers_can_be_told_apart() -> None:
    queues = [a_queue("mail", is_paused=True, failed=1, pending=1)]
    found = troubles(replace(GOOD, queues=queues, workers=[]))

    assert {finding.check for finding in found} == STANDING


def test_a_good_server_has_exit_code_0_and_is_left_as_it_was(cli: Cli, own_server: OwnServers) -> None:
    server = own_server(appendonly="yes", appendfsync="everysec")

    given = json.loads(cli.run("doctor", "--json", "--url", server.url).out)
    shown = cli.run("doctor", "--url", server.url).out

    assert given["is_healthy"]
    assert {finding["check"] for finding in given["findings"] if finding["level"] != "ok"} == {"workers"}
    assert shown.splitlines()[1].split()[:2] == ["OK", "server"]
    with server.client() as client:
        assert client.dbsize() == 0


def test_a_redis_is_as_good(cli: Cli, redis7: Server) -> None:
    given = json.loads(cli.run("doctor", "--json", "--url", redis7.url).out)

    levels = {finding["check"]: finding["level"] for finding in given["findings"]}
    assert (levels["version"], levels["rights"], levels["append-only file"]) == ("ok", "ok", "warn")


def test_a_server_that_forgets_or_evicts_is_found_out(cli: Cli, own_server: OwnServers) -> None:
    server = own_server(maxmemory="64mb", maxmemory_policy="allkeys-lru")

    shown = cli.run("doctor", "--url", server.url, code=1).out

    assert "WARN   append-only file  off: " in shown
    assert "FAIL   memory            maxmemory-policy allkeys-lru" in shown


def test_a_full_server_is_found_out(cli: Cli, own_server: OwnServers) -> None:
    server = own_server(maxmemory="1", maxmemory_policy="noeviction")

    assert "FAIL   memory            maxmemory is reached" in cli.run("doctor", "--url", server.url, code=1).out


def test_a_replica_is_found_out(cli: Cli, own_server: OwnServers) -> None:
    primary = own_server(tcp=True)
    replica = own_server(replicaof=f"127.0.0.1 {primary.port}")

    assert "FAIL   role              this is a replica" in cli.run("doctor", "--url", replica.url, code=1).out


def test_a_user_without_rights_is_found_out(cli: Cli, own_server: OwnServers) -> None:
    server = own_server()
    with server.client() as client:
        client.acl_setuser(
            "tight", enabled=True, passwords=["+pw"], keys=["*"], commands=["+@all", "-zadd"], channels=["*"]
        )
        client.acl_setuser("deaf", enabled=True, passwords=["+pw"], keys=["*"], commands=["+@all"], reset_channels=True)
        client.acl_setuser(
            "blind", enabled=True, passwords=["+pw"], keys=["*"], commands=["+@all", "-info", "-config"], channels=["*"]
        )

    def findings(user: str, code: int) -> str:
        return cli.run("doctor", "--url", server.url.replace("unix://", f"unix://{user}:pw@"), code=code).out

    assert "FAIL   rights" in findings("tight", 1)
    assert "FAIL   rights" in findings("deaf", 1)
    assert "WARN   version" in findings("blind", 0)


def test_a_server_that_is_not_there_is_found_out(cli: Cli, own_server: OwnServers) -> None:
    server = own_server(tcp=True)
    server.kill()

    given = json.loads(cli.run("doctor", "--json", "--url", server.url, code=1).out)

    assert [finding["check"] for finding in given["findings"]] == ["server"]
    assert "does not answer" in given["findings"][0]["message"]


def test_what_waits_is_told(cli: Cli, hand: Hand) -> None:
    hand.dead_letter("a@b.c")
    hand.add.enqueue_sync(1)
    hand.rota.queue("mail").pause_sync()

    shown = cli.run("doctor").out

    assert "no worker serves default (1 jobs wait)" in shown
    assert "mail (0 pending): nothing of them starts" in shown
    assert "jobs failed for good in mail (1)" in shown
