"""`rota doctor`: what facts mean, and what it finds on real servers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rota import Rota
from rota.client.session import session_of
from rota.core.job_options import DEFAULT_OPTIONS
from rota.core.job_record_codec import encode_body
from rota.core.lease_heartbeat_poll_and_grace_durations import DurationSettings
from rota.monitoring.doctor import QUEUE_CHECKS, Facts, Finding, diagnose, examine
from rota.monitoring.index_findings import examine_indexes
from rota.monitoring.keys_of_wrong_type import WrongKey
from rota.store.enqueue_batcher import NewJob
from rota.store.job_store import JobStore
from rota.store.keys import Keys
from rota.store.reads import QueueInfo, WorkerInfo
from tests.cli.driver import Cli, Hand
from tests.eventually import eventually_sync
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
        ({"connection_error": "connection refused"}, "fail", "server", "connection refused"),
        ({"server": "redis", "version": (6, 2, 14)}, "fail", "version", "Redis 6.2.14 is too old"),
        ({"server": "valkey", "version": (7, 2, 5)}, "fail", "version", "upgrade to Valkey 8 or Redis 7"),
        (
            {"settings": DurationSettings(version=2, poll_ms=1_000, changed_at=1), "now": 60_000},
            "warn",
            "settings",
            "w did not follow the change of the settings",
        ),
        (
            {"settings": DurationSettings(version=2, poll_ms=99_000)},
            "fail",
            "settings",
            "workers do not use them: poll",
        ),
        ({"version": ()}, "warn", "version", "does not report its version"),
        ({"role": "replica"}, "fail", "role", "accepts no writes: use the address of its primary"),
        (
            {"replicas": 2, "min_replicas_to_write": 0},
            "warn",
            "replication",
            "jobs that are lost when another server is promoted; set it to 1",
        ),
        (
            {"is_aof_on": False},
            "warn",
            "append-only file",
            "lost when the server crashes or restarts; set `appendonly yes`",
        ),
        ({"repairs": ["mail: meta fence"]}, "warn", "repairs", "replaced in the last 7 days: mail: meta fence; check"),
        ({"is_aof_on": None}, "warn", "append-only file", "does not report whether it is on"),
        ({"appendfsync": "no"}, "warn", "append-only file", "a power cut loses up to about 30 s"),
        ({"failed_writes": ("snapshot",)}, "fail", "disk", "the last snapshot failed: check the disk space"),
        ({"policy": "allkeys-lru"}, "fail", "memory", "silently evicts jobs; set it to noeviction"),
        ({"policy": "volatile-lru", "maxmemory": 0}, "warn", "memory", "maxmemory is not set"),
        ({"policy": "", "maxmemory": None}, "warn", "memory", "does not report its maxmemory-policy"),
        ({"used_memory": 2**30 - 2**20}, "warn", "memory", "new jobs will soon be refused"),
        ({"is_full": True}, "fail", "memory", "maxmemory is reached: new jobs are refused"),
        ({"denied": "no permission for EVALSHA"}, "fail", "permissions", "no permission for EVALSHA"),
        ({"denied": "no UNLINK", "is_read_only": True}, "warn", "permissions", "may only list and show"),
        ({"skew_ms": -3_600_000}, "warn", "clock", "the server is 1 h 0 min behind this machine"),
        ({"latency_ms": 80.0}, "warn", "latency", "80 ms per round trip"),
        ({"format": 99}, "fail", "format", "the data has format 99"),
        ({"workers": ()}, "warn", "workers", "none is running"),
        (
            {"queues": [a_queue("slow", scheduled=2)]},
            "warn",
            "unserved queues",
            "no worker serves slow (2 jobs waiting)",
        ),
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


def test_findings_about_jobs_and_workers_can_be_distinguished() -> None:
    queues = [a_queue("mail", is_paused=True, failed=1, pending=1)]
    stale = DurationSettings(version=1, poll_ms=99_000)
    found = troubles(replace(GOOD, queues=queues, workers=[], settings=stale))

    assert {finding.check for finding in found} == QUEUE_CHECKS


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
    assert (levels["version"], levels["permissions"], levels["append-only file"]) == ("ok", "ok", "warn")


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


def test_a_primary_that_accepts_writes_without_its_replicas_is_found_out(cli: Cli, own_server: OwnServers) -> None:
    primary = own_server(tcp=True, appendonly="yes", repl_diskless_sync_delay="0")
    own_server(replicaof=f"127.0.0.1 {primary.port}")
    with primary.client() as client:
        eventually_sync(lambda: client.info("replication")["connected_slaves"] == 1)

        assert "WARN   replication       `min-replicas-to-write 0`" in cli.run("doctor", "--url", primary.url).out
        client.config_set("min-replicas-to-write", "1")
        eventually_sync(lambda: "online" in str(client.info("replication")))

        assert "OK     replication       min-replicas-to-write 1" in cli.run("doctor", "--url", primary.url).out


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

    assert "FAIL   permissions" in findings("tight", 1)
    assert "FAIL   permissions" in findings("deaf", 1)
    assert "WARN   version" in findings("blind", 0)


def _doctors_keys(server: Server) -> dict[str, int]:
    """Keys of the trial job -> their TTL, ms; negative for none."""
    with server.client() as client:
        return {key.decode(): client.pttl(key) for key in client.scan_iter("*{~doctor}*")}


@pytest.mark.parametrize("denied", ["-zcard", "-setrange", "-bitfield", "-publish", "-rpush"])
def test_a_trial_that_was_cut_short_leaves_nothing_behind(cli: Cli, own_server: OwnServers, denied: str) -> None:
    server = own_server()
    with server.client() as client:
        client.acl_setuser(
            "tight", enabled=True, passwords=["+pw"], keys=["*"], commands=["+@all", denied], channels=["*"]
        )

    out = cli.run("doctor", "--url", server.url.replace("unix://", "unix://tight:pw@"), code=1).out

    assert "FAIL   permissions" in out
    assert {key for key, ttl in _doctors_keys(server).items() if ttl < 0} == set()


async def test_a_doctor_that_is_killed_leaves_keys_that_expire(own_server: OwnServers) -> None:
    server = own_server()
    rota = Rota(server.url)
    frozen: dict[str, int] = {}
    store = session_of(rota).store

    async def look(*_: object) -> dict[str, str]:
        frozen.update(_doctors_keys(server))
        raise KeyboardInterrupt  # nothing of what follows is done, as after a kill

    async def nothing(*_: object) -> None: ...

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JobStore, "report", look)
        patch.setattr("rota.monitoring.doctor._clean_up", nothing)
        with pytest.raises(KeyboardInterrupt):
            await examine(rota)
    assert frozen
    assert {key for key, ttl in frozen.items() if ttl < 0} == set()
    await store.enqueue("~doctor", [NewJob("", 0, "", "", encode_body(DEFAULT_OPTIONS, "doctor", b"[]"))])

    await examine(rota)

    assert {key for key, ttl in _doctors_keys(server).items() if ttl < 0} == set()
    await rota.close()


def test_a_server_that_is_not_there_is_found_out(cli: Cli, own_server: OwnServers) -> None:
    server = own_server(tcp=True)
    server.kill()

    given = json.loads(cli.run("doctor", "--json", "--url", server.url, code=1).out)

    assert [finding["check"] for finding in given["findings"]] == ["server"]
    assert "does not answer" in given["findings"][0]["message"]


def test_waiting_jobs_are_reported(cli: Cli, hand: Hand) -> None:
    hand.dead_letter("a@b.c")
    hand.add.enqueue_sync(1)
    hand.rota.queue("mail").pause_sync()

    shown = cli.run("doctor").out

    assert "no worker serves default (1 job waiting)" in shown
    assert "mail (0 pending): no job starts" in shown
    assert "jobs failed for good in mail (1)" in shown


async def test_values_that_were_repaired_are_reported(own_server: OwnServers) -> None:
    rota = Rota(own_server().url)

    @rota.task
    async def send() -> None: ...

    await send.enqueue()
    store = session_of(rota).store
    await store.redis.command("HSET", store.keys.queue("default", "meta"), "run", "junk")
    await send.enqueue()

    found = [finding.message for finding in await examine(rota) if finding.check == "repairs"]

    assert len(found) == 1
    assert "default: meta run" in found[0]
    await rota.close()


async def test_keys_of_a_wrong_type_are_named_with_what_to_do(own_server: OwnServers) -> None:
    """Somebody ran SET. The findings about the other queues stay."""
    rota = Rota(own_server().url)

    @rota.task
    async def send() -> None: ...

    for queue in ("mail", "fine"):
        await send.using(queue=queue).enqueue()
    store = session_of(rota).store
    pending, failures = store.keys.queue("mail", "pending"), store.keys.queue("mail-fail", "meta")
    for key in (pending, failures, store.keys.shared("workers"), store.keys.shared("format")):
        await store.redis.commands([["UNLINK", key], ["LPUSH" if key == failures else "SADD", key, "theirs"]])
    await store.redis.command("SET", pending, "theirs")

    findings = await examine(rota)

    found = {finding.message for finding in findings if finding.check == "keys"}
    assert {message.partition(":")[0] for message in found} == {"rota"}
    assert {message.partition(" ")[0] for message in found} == {
        pending,
        failures,
        store.keys.shared("workers"),
        store.keys.shared("format"),
    }
    assert (
        f"{pending} is a string and should be a sorted set: queue mail stands still; find the program that writes to "
        f"this namespace, then restore the key from a backup, or delete it with `UNLINK {pending}` and run "
        "`rota doctor --repair`, which rebuilds indexes from the jobs; then restart the workers"
    ) in found
    assert all(finding.level == "fail" for finding in findings if finding.check == "keys")
    (unserved,) = [finding.message for finding in findings if finding.check == "unserved queues"]
    assert "fine (1 job waiting)" in unserved
    await rota.close()


@pytest.mark.parametrize("key", ["pending", "scheduled", "runs", "ids"])
async def test_an_overwritten_index_is_rebuilt_once_its_key_was_deleted(own_server: OwnServers, key: str) -> None:
    """As the doctor says."""
    rota = Rota(own_server().url)

    @rota.task
    async def send() -> None: ...

    for delay in (0, 0, 60):
        await send.using(queue="mail", delay=delay).enqueue()
    named = await send.using(queue="mail", id="named").enqueue()
    store = session_of(rota).store
    overwritten = store.keys.queue("mail", key)
    await store.redis.command("SET", overwritten, "theirs")
    assert [one.level for one in await examine(rota) if one.check == "keys"] == ["fail"]

    await store.redis.command("UNLINK", overwritten)
    await examine_indexes(rota, is_repairing=True)

    counts = await rota.queue("mail").counts()
    # The time of a job that was never claimed is in its index alone: now it is due.
    assert (counts["pending"], counts["scheduled"]) == ((4, 0) if key == "scheduled" else (3, 1))
    assert (await send.using(queue="mail", id="named").enqueue()).run == named.run
    assert not [one for one in await examine_indexes(rota) if one.level == "fail"]
    await rota.close()


def test_many_keys_of_a_wrong_type_are_counted() -> None:
    wrong = [WrongKey(f"rota:{{q}}:{number}", "q", "string", "zset") for number in range(7)]

    found = troubles(replace(GOOD, wrong_keys=wrong))

    assert len(found) == 6
    assert "another 2 keys of a wrong type" in found[-1].message


def test_strict_fails_on_warnings(cli: Cli, hand: Hand) -> None:
    hand.dead_letter("a@b.c")

    assert "WARN   dead letters" in cli.run("doctor").out
    assert "WARN   dead letters" in cli.run("doctor", "--strict", code=1).out


def test_a_job_that_the_pending_index_lost_is_found_and_repaired(cli: Cli, hand: Hand, valkey: Server) -> None:
    """The doctor called it blocked, and exited with 0."""
    job = hand.add.enqueue_sync(1)
    pending = Keys(cli.namespace).queue("default", "pending")
    with valkey.client() as client:
        client.delete(pending)

        shown = cli.run("doctor", code=1).out
        assert "FAIL   indexes" in shown
        assert f"{job.run} (pending: it is waiting, and in no index): run `rota doctor --repair`" in shown

        assert "repaired 1 problem" in cli.run("doctor", "--repair").out
        assert client.zrange(pending, 0, -1) == [str(job.run).encode()]
    assert "the indexes of 1 job agree" in cli.run("doctor").out
