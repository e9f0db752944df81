"""A server that cannot be used: one clear error, which says what to do, and nothing half written."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis

from rota import (
    ConfigurationError,
    JobState,
    Rota,
    StoreDenied,
    StoreError,
    StoreFull,
    StoreUnavailable,
    StoreUnsupported,
    Task,
)
from tests.client.manual_worker import Hand, dump
from tests.client.old_server import OldServer
from tests.eventually import eventually
from tests.servers import OwnServers, Server

Operation = Callable[[Rota], Awaitable[Any]]


def declare(rota: Rota) -> Task[[], None, Any]:
    async def send() -> None: ...

    return rota.task(send)


async def first_event(rota: Rota) -> Any:
    return await anext(aiter(rota.events()))


#: Everything that a client may ask for.
OPERATIONS: dict[str, Operation] = {
    "enqueue": lambda rota: declare(rota).enqueue(),
    "enqueue_many": lambda rota: rota.enqueue_many([declare(rota).call()] * 3),
    "state": lambda rota: rota.job("a").state(),
    "refresh": lambda rota: rota.job("a").refresh(),
    "explain": lambda rota: rota.job("a").explain(),
    "history": lambda rota: rota.job("a").history(),
    "logs": lambda rota: rota.job("a").logs(),
    "result": lambda rota: rota.job("a").result(),
    "cancel": lambda rota: rota.job("a").cancel(),
    "delete": lambda rota: rota.job("a").delete(),
    "redrive": lambda rota: rota.job("a").redrive(),
    "jobs": lambda rota: rota.jobs("pending"),
    "queues": lambda rota: rota.queues(),
    "workers": lambda rota: rota.workers(),
    "pause": lambda rota: rota.queue().pause(),
    "resume": lambda rota: rota.queue().resume(),
    "counts": lambda rota: rota.queue().counts(),
    "purge": lambda rota: rota.queue().purge(),
    "dead.list": lambda rota: rota.dead.list(),
    "dead.redrive": lambda rota: rota.dead.redrive(),
    "dead.delete": lambda rota: rota.dead.delete(),
    "events": first_event,
    "check": lambda rota: rota.check(),
}
each_operation = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)


@pytest.fixture
def unreachable() -> str:
    """An address at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"redis://:hunter2@127.0.0.1:{probe.getsockname()[1]}"


@each_operation
async def test_a_server_that_is_down_is_reported_after_some_patience(unreachable: str, operation: Operation) -> None:
    async with Rota(unreachable, patience=0.1) as rota:
        started = time.monotonic()

        with pytest.raises(StoreUnavailable, match=r"does not answer.*is it running, and can it be reached") as raised:
            await operation(rota)

        assert time.monotonic() - started < 10
        assert "hunter2" not in str(raised.value)
        assert unreachable.rpartition("@")[2] in str(raised.value)


async def test_a_server_that_comes_up_in_time_is_enough(
    own_server: OwnServers, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "rota.store")
    server = own_server(tcp=True)
    server.stop()
    async with Rota(server.url, namespace=namespace) as rota:
        asked = asyncio.create_task(declare(rota).enqueue())
        await eventually(lambda: "retrying" in caplog.text)

        await asyncio.to_thread(server.start)

        assert await (await asked).state() == JobState.PENDING


async def test_a_client_recovers_by_itself(own_server: OwnServers, namespace: str) -> None:
    server = own_server(tcp=True, appendonly="yes", appendfsync="always")
    async with Rota(server.url, namespace=namespace, patience=0.2) as rota:
        send = declare(rota)
        before = await send.enqueue()
        server.kill()
        with pytest.raises(StoreUnavailable):
            await send.enqueue()
        with pytest.raises(StoreUnavailable):
            await before.result(timeout=5)

        await asyncio.to_thread(server.start)

        assert await before.state() == JobState.PENDING
        assert await (await send.enqueue()).state() == JobState.PENDING


@pytest.mark.parametrize("login", ["", ":wrong@", "user:hunter2@"])
async def test_a_password_that_is_missing_or_wrong_is_reported_at_once(
    own_server: OwnServers, namespace: str, login: str
) -> None:
    server = own_server(tcp=True, requirepass="hunter2")
    async with Rota(f"redis://{login}127.0.0.1:{server.port}", namespace=namespace, patience=30) as rota:
        for operation in (OPERATIONS["enqueue"], OPERATIONS["result"], OPERATIONS["events"]):
            with pytest.raises(StoreDenied, match="check the URL, REDIS_PASSWORD") as raised:
                await operation(rota)
            assert "hunter2" not in str(raised.value)
            assert "wrong" not in str(raised.value).replace("WRONGPASS", "")
    with server.client() as raw:
        assert dump(raw, namespace) == {}


async def test_a_full_server_is_reported_and_drains(own_server: OwnServers, namespace: str) -> None:
    server = own_server(maxmemory_policy="noeviction")
    async with Rota(server.url, namespace=namespace) as rota:
        send, hand = declare(rota), Hand(rota)
        waiting, running, dead = [await send.enqueue() for _ in range(3)]
        await hand.kill_off(waiting)
        claimed = await hand.take(running)
        with server.client() as raw:
            raw.config_set("maxmemory", "1")
            before = dump(raw, namespace)
            for refused in (send.enqueue(), rota.enqueue_many([send.call()] * 700), send.using(queue="new").enqueue()):
                with pytest.raises(StoreFull, match="maxmemory, nothing was stored: let workers drain it"):
                    await refused
            assert dump(raw, namespace) == before

            assert await hand.complete(claimed) == "ok"
            assert await running.result(timeout=5) is None
            await dead.cancel()
            await waiting.delete()
            assert await rota.queue().purge() == 0

            raw.config_set("maxmemory", "0")
        assert (await send.enqueue()).is_new
        await hand.close()


async def test_a_replica_is_reported_with_what_to_do(own_server: OwnServers, namespace: str) -> None:
    primary = own_server(tcp=True, repl_diskless_sync_delay="0")
    replica = own_server(tcp=True, replicaof=f"127.0.0.1 {primary.port}")
    async with Rota(primary.url, namespace=namespace) as rota:
        job = await declare(rota).enqueue()
    with replica.client() as raw:
        await eventually(lambda: f"{namespace}:{{default}}:jobs" in dump(raw, namespace))
    async with Rota(replica.url, namespace=namespace, patience=0.1) as rota:
        with pytest.raises(StoreUnavailable, match=r"is a replica.*READONLY.*give the URL of its primary"):
            await declare(rota).enqueue()
        assert await rota.job(job.id).state() == JobState.PENDING, "looking is allowed"


async def test_an_old_server_is_reported_before_anything_is_written() -> None:
    async with OldServer() as server:
        for operation in ("enqueue", "enqueue_many", "state", "cancel", "jobs", "pause", "check"):
            async with Rota(server.url) as rota:
                with pytest.raises(StoreUnsupported, match="too old for Rota, which needs Valkey 8 or Redis 7"):
                    await OPERATIONS[operation](rota)
        assert server.writes == []
        assert "EVALSHA_RO" in server.heard


@each_operation
async def test_a_format_of_the_future_is_refused_by_every_call(
    valkey: Server, raw: redis.Redis, namespace: str, operation: Operation
) -> None:
    async with Rota(valkey.url, namespace=namespace) as now:
        await declare(now).using(id="a").enqueue()
    raw.set(f"{namespace}:{{~}}:format", "2")
    before = dump(raw, namespace)

    async with Rota(valkey.url, namespace=namespace) as rota:
        with pytest.raises(StoreUnsupported, match="holds format 2, this version of Rota knows 1: upgrade"):
            await operation(rota)

    assert dump(raw, namespace) == before


async def test_a_format_that_is_no_number_is_refused(valkey: Server, raw: redis.Redis, namespace: str) -> None:
    raw.set(f"{namespace}:{{~}}:format", "theirs", ex=60)

    async with Rota(valkey.url, namespace=namespace) as rota:
        with pytest.raises(StoreUnsupported, match="theirs"):
            await declare(rota).enqueue()
    raw.delete(f"{namespace}:{{~}}:format")


async def test_a_foreign_key_is_an_error_and_nothing_is_written(rota: Rota, raw: redis.Redis, namespace: str) -> None:
    await declare(rota).using(queue="other").enqueue()
    raw.set(f"{namespace}:{{default}}:pending", "theirs")

    with pytest.raises(StoreError, match=r"has another type .*WRONGTYPE.*: another program .*`rota doctor`") as refused:
        await declare(rota).enqueue()
    assert f"{namespace}:{{default}}:*" in str(refused.value)
    raw.delete(f"{namespace}:{{default}}:pending")


async def test_the_error_of_a_lost_waiter_does_not_come_up_again_at_the_end(
    own_server: OwnServers, namespace: str
) -> None:
    server = own_server(tcp=True)
    rota = Rota(server.url, namespace=namespace, patience=0.2)
    job = await declare(rota).enqueue()
    waiter = asyncio.create_task(job.result(timeout=30))
    with server.client() as raw:
        await eventually(lambda: len(raw.client_list(_type="pubsub")) == 1)
        # From now on every connection is refused.
        raw.config_set("requirepass", "new")
        raw.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
        raw.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        with pytest.raises(StoreDenied):
            await waiter

    await rota.close()


async def test_closing_is_harmless_and_the_next_call_opens_again(rota: Rota) -> None:
    await rota.close()
    job = await declare(rota).enqueue()
    await rota.close()
    await rota.close()

    assert await job.state() == JobState.PENDING


def test_a_missing_server_is_reported_to_code_that_is_not_async(unreachable: str) -> None:
    rota = Rota(unreachable, patience=0)

    with pytest.raises(StoreUnavailable):
        declare(rota).enqueue_sync()
    rota.close_sync()


async def test_a_url_with_settings_that_rota_cannot_work_with_is_refused() -> None:
    for query in ("decode_responses=true", "protocol=3", "socket_timeout=x", "nonsense=1", "encoding=latin-1"):
        with pytest.raises(ConfigurationError, match=query.partition("=")[0]):
            await declare(Rota(f"redis://127.0.0.1:1?{query}", patience=0)).enqueue()


@pytest.mark.parametrize("url", ["unix://", "unix://relative/path", "redis://h/x", "redis://h/1/2", "redis://h?db=x"])
def test_a_url_that_points_nowhere_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError):
        _ = Rota(url).address


@pytest.mark.parametrize("url", ["redis://u:x@y/hunter2@h:1", "redis://u:hunter2@h:1", "redis://u:a?hunter2@h"])
def test_a_password_is_never_shown(url: str) -> None:
    rota = Rota(url, patience=0)
    try:
        shown = rota.address
    except ConfigurationError as error:
        shown = str(error)

    assert "hunter2" not in shown + repr(rota)


def test_the_url_given_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"REDIS_HOST": "::1", "REDIS_URL": "redis://second", "ROTA_URL": "redis://first"}.items():
        monkeypatch.setenv(name, value)

    assert (Rota("redis://given").address, Rota().address) == ("redis://given", "redis://first")
    monkeypatch.delenv("ROTA_URL")
    assert Rota().address == "redis://second"
    monkeypatch.delenv("REDIS_URL")
    assert Rota().address == "redis://[::1]:6379"
    monkeypatch.delenv("REDIS_HOST")
    assert Rota().address == "the embedded server"
