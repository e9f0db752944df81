"""How durably a job is stored before `enqueue` returns: a receipt is never earlier than the truth."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rota import ConfigurationError, InvalidOption, JobState, Rota, StoreUnavailable, Task
from rota.client.durability import DurabilityChecker
from rota.client.session import sessions_of
from rota.store.redis.connection_pool import MAX_IDLE
from tests.client.manual_worker import dump
from tests.eventually import eventually
from tests.servers import Kind, OwnServers, Server
from tests.store.proxy import Proxy

each_kind = pytest.mark.parametrize("kind", ["valkey", "redis7"])


def declare(rota: Rota) -> Task[[], None, Any]:
    async def send() -> None: ...

    return rota.task(send)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"appendonly": "yes", "appendfsync": "everysec"},
        {"appendonly": "yes", "appendfsync": "no"},
        {"appendonly": "no", "appendfsync": "always"},
    ],
    ids=["no file", "every second", "whenever", "no file but always"],
)
async def test_fsynced_is_refused_where_an_answer_may_come_before_the_disk(
    own_server: OwnServers, namespace: str, config: dict[str, Any]
) -> None:
    server = own_server(**config)
    async with Rota(server.url, namespace=namespace, durability="fsynced") as rota:
        for _ in range(2):
            with pytest.raises(ConfigurationError, match="needs `appendonly yes` and `appendfsync always`"):
                await declare(rota).enqueue()

    with server.client() as raw:
        assert dump(raw, namespace) == {}


@each_kind
async def test_what_was_fsynced_survives_a_power_cut(own_server: OwnServers, namespace: str, kind: Kind) -> None:
    server = own_server(kind, appendonly="yes", appendfsync="always")
    async with Rota(server.url, namespace=namespace, durability="fsynced") as rota:
        jobs = await asyncio.gather(*(declare(rota).enqueue() for _ in range(50)))

        await asyncio.to_thread(server.restart)

        assert {await job.state() for job in jobs} == {JobState.PENDING}


async def test_no_fsynced_receipt_is_given_by_a_server_that_took_over_and_has_other_settings(
    own_server: OwnServers, namespace: str
) -> None:
    old, new = own_server(appendonly="yes", appendfsync="always"), own_server()
    async with Proxy(old) as proxy, Rota(proxy.url, namespace=namespace, durability="fsynced") as rota:
        await declare(rota).enqueue()
        proxy.move(new)

        with pytest.raises(ConfigurationError, match="needs `appendonly yes` and `appendfsync always`"):
            await declare(rota).enqueue()

        proxy.move(old)
        await eventually(lambda: declare(rota).enqueue())


async def test_no_fsynced_receipt_is_given_once_the_setting_of_a_live_server_has_changed(
    own_server: OwnServers, namespace: str
) -> None:
    server = own_server(appendonly="yes", appendfsync="always")
    async with Rota(server.url, namespace=namespace, durability="fsynced") as rota:
        await declare(rota).enqueue()
        with server.client() as raw:
            raw.config_set("appendfsync", "no")
            jobs = sessions_of(rota).keys.queue("default", "jobs")

            with pytest.raises(ConfigurationError, match="stored, but perhaps not on disk"):
                await declare(rota).enqueue()
            assert raw.hlen(jobs) == 2
            with pytest.raises(ConfigurationError, match="durability='fsynced' needs"):
                await declare(rota).enqueue()

            assert raw.hlen(jobs) == 2, "the second was refused before it was stored"
            raw.config_set("appendfsync", "always")
            await declare(rota).enqueue()


async def _pair(own_server: OwnServers, kind: Kind) -> tuple[Server, Server]:
    primary = own_server(kind, tcp=True, repl_diskless_sync_delay="0")
    replica = own_server(kind, tcp=True, replicaof=f"127.0.0.1 {primary.port}")
    with primary.client() as raw:
        await eventually(lambda: "online" in str(raw.info("replication")))
    return primary, replica


@pytest.mark.requirement("S1-15")
@each_kind
async def test_what_was_replicated_is_on_the_replica(own_server: OwnServers, namespace: str, kind: Kind) -> None:
    primary, replica = await _pair(own_server, kind)
    async with Rota(primary.url, namespace=namespace, durability="replicated") as rota:
        job = await declare(rota).using(queue="mail").enqueue()
        primary.kill()

        with replica.client() as raw:
            assert str(job.run).encode() in raw.hgetall(sessions_of(rota).keys.queue("mail", "jobs"))


@each_kind
async def test_a_replica_that_does_not_answer_is_reported(own_server: OwnServers, namespace: str, kind: Kind) -> None:
    primary, replica = await _pair(own_server, kind)
    async with Rota(primary.url, namespace=namespace, durability="replicated") as rota:
        await declare(rota).enqueue()
        replica.pause()

        with pytest.raises(StoreUnavailable, match=r"stored, but only 0 of 1 replicas of .* have it"):
            await declare(rota).enqueue()
        replica.resume()
        await eventually(lambda: declare(rota).enqueue())


async def test_no_receipt_is_given_by_a_server_that_took_over_after_the_write(
    own_server: OwnServers, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new one has a replica, which has all that it has; but not the job."""
    old, (new, _) = own_server(tcp=True), await _pair(own_server, "valkey")
    confirm = DurabilityChecker.confirm

    async def take_over(checker: DurabilityChecker, *what: Any) -> None:
        proxy.move(new)
        await confirm(checker, *what)

    async with Proxy(old) as proxy, Rota(proxy.url, namespace=namespace, durability="replicated") as rota:
        with monkeypatch.context() as patched:
            patched.setattr(DurabilityChecker, "confirm", take_over)
            with pytest.raises(StoreUnavailable, match="another server took over"):
                await declare(rota).enqueue()

        job = await declare(rota).enqueue()

        assert await job.state() == JobState.PENDING


async def test_bursts_of_replicated_enqueues_share_a_few_connections(own_server: OwnServers, namespace: str) -> None:
    """Sixty bursts of two to six; each call waits for the replica on a connection of its own."""
    primary, _ = await _pair(own_server, "valkey")
    async with Rota(primary.url, namespace=namespace, durability="replicated") as rota:
        for burst in range(60):
            await asyncio.gather(*(declare(rota).enqueue() for _ in range(2 + burst % 5)))

        with primary.client() as raw:
            names = [client["name"] for client in raw.client_list() if client["name"].startswith("rota-")]
        assert len(names) <= 7, "the shared one, and one for each call of the largest burst"


async def test_a_burst_leaves_few_connections_behind(own_server: OwnServers, namespace: str) -> None:
    primary, _ = await _pair(own_server, "valkey")
    async with Rota(primary.url, namespace=namespace, durability="replicated") as rota:
        await asyncio.gather(*(declare(rota).enqueue() for _ in range(40)))

        with primary.client() as raw:
            await eventually(lambda: len(raw.client_list()) <= MAX_IDLE + 3)


async def test_a_server_without_replicas_is_reported(own_server: OwnServers, namespace: str) -> None:
    server = own_server()
    async with Rota(server.url, namespace=namespace, durability="replicated", replicas=2) as rota:
        calls = [declare(rota).using(queue=queue).call() for queue in ("a", "b", "c")]

        with pytest.raises(StoreUnavailable, match="only 0 of 2 replicas"):
            await rota.enqueue_many(calls)


async def test_memory_asks_nothing_of_the_server(rota: Rota) -> None:
    assert await (await declare(rota).enqueue()).state() == JobState.PENDING


async def test_one_enqueue_can_ask_for_more_than_its_client(own_server: OwnServers, namespace: str) -> None:
    primary, replica = await _pair(own_server, "valkey")
    async with Rota(primary.url, namespace=namespace) as rota:
        job = await declare(rota).using(queue="mail", durability="replicated").enqueue()
        primary.kill()

        with replica.client() as raw:
            assert str(job.run).encode() in raw.hgetall(sessions_of(rota).keys.queue("mail", "jobs"))


async def test_one_enqueue_can_ask_for_less_than_its_client(own_server: OwnServers, namespace: str) -> None:
    async with Rota(own_server().url, namespace=namespace, durability="replicated") as rota:
        job = await declare(rota).using(durability="memory").enqueue()

        assert await job.state() == JobState.PENDING


async def test_one_enqueue_that_cannot_be_fsynced_is_refused_and_leaves_nothing(
    own_server: OwnServers, namespace: str
) -> None:
    server = own_server(appendonly="yes", appendfsync="everysec")
    async with Rota(server.url, namespace=namespace) as rota:
        plain, strict = declare(rota).call(), declare(rota).using(durability="fsynced").call()
        for _ in range(2):
            with pytest.raises(ConfigurationError, match="needs `appendonly yes` and `appendfsync always`"):
                await rota.enqueue_many([plain, strict])

        with server.client() as raw:
            assert dump(raw, namespace) == {}
        await rota.enqueue(plain)


async def test_the_strictest_call_of_many_decides(own_server: OwnServers, namespace: str) -> None:
    async with Rota(own_server().url, namespace=namespace) as rota:
        calls = [declare(rota).call(), declare(rota).using(durability="replicated").call()]

        with pytest.raises(StoreUnavailable, match="stored, but only 0 of 1 replicas"):
            await rota.enqueue_many(calls)


async def test_it_can_be_a_default_of_a_task_or_a_queue_and_the_nearest_wins(rota: Rota) -> None:
    rota.queue("safe", defaults={"durability": "fsynced"})

    @rota.task(queue="safe")
    async def by_queue() -> None: ...

    @rota.task(queue="safe", durability="replicated")
    async def by_task() -> None: ...

    assert by_queue.call().durability == "fsynced"
    assert by_task.call().durability == "replicated"
    assert by_task.using(durability="memory").call().durability == "memory"


def test_a_durability_that_does_not_exist_is_refused_wherever_it_is_given(rota: Rota) -> None:
    unknown: Any = "eternal"

    for give in (
        lambda: Rota(durability=unknown),
        lambda: rota.task(durability=unknown),
        lambda: rota.queue("q", defaults={"durability": unknown}),
        lambda: declare(rota).using(durability=unknown),
    ):
        with pytest.raises(InvalidOption, match="'eternal' is none of memory, fsynced, replicated"):
            give()


async def test_it_is_no_part_of_the_job(rota: Rota) -> None:
    plain = declare(rota).call()

    asked = declare(rota).using(durability="memory").call()

    assert asked.job == plain.job
