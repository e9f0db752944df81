"""`rota keda-scaler` as a process, called over gRPC, on a real store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from rota import Rota
from rota.autoscaler.keda import activity_stream
from rota.autoscaler.keda.activity_stream import ActivityStream
from rota.autoscaler.keda.trigger_metadata import Trigger, read_metadata
from rota.autoscaler.keda.workers_needed import Need, workers_needed
from rota.client.session import Session, checked_session
from rota.store.acl_rules import AclRole, acl_rule
from tests.autoscaler.conftest import Pool
from tests.autoscaler.keda_client import KedaClient, ScalerProcess
from tests.eventually import eventually
from tests.server.certificates import make_certificate
from tests.servers import OwnServers, Server

pytestmark = [pytest.mark.requirement("S2-24"), pytest.mark.timeout(120)]
READ_S = 30.0
Start = Callable[..., ScalerProcess]
_aio: Any = grpc.aio
#: What a stream returns after its last message.
EOF: Any = _aio.EOF


@pytest.fixture
def start(tmp_path: Path, valkey: Server, namespace: str) -> Any:
    """Starts scalers, which end with the test."""
    started: list[ScalerProcess] = []

    def start(*options: str, url: str = valkey.url) -> ScalerProcess:
        started.append(ScalerProcess(url, namespace, tmp_path / f"scaler-{len(started)}.log", *options))
        return started[-1]

    yield start
    for scaler in started:
        scaler.kill()


@pytest.fixture
async def keda(start: Start) -> AsyncIterator[KedaClient]:
    """KEDA, connected to a scaler."""
    client = KedaClient(await start().address())
    yield client
    await client.channel.close()


async def next_answer(stream: Any) -> bool:
    """The next message of a stream."""
    async with asyncio.timeout(READ_S):
        message = await stream.read()
    assert message is not EOF
    return bool(message.result)


async def test_messages_are_those_of_the_protocol(keda: KedaClient, pool: Pool) -> None:
    # ScaledObjectRef{name: "w", namespace: "n", scalerMetadata: {"queues": "default"}}, encoded by hand.
    entry = b"\x0a\x06queues\x12\x07default"
    ref = b"\x0a\x01w\x12\x01n\x1a" + bytes([len(entry)]) + entry
    request = b"\x0a" + bytes([len(ref)]) + ref + b"\x12\x13rota-workers-needed"

    assert await keda.raw("IsActive")(ref, timeout=READ_S) == b""
    await pool.enqueue(1)

    assert await keda.raw("IsActive")(ref, timeout=READ_S) == b"\x08\x01"
    one = b"\x0a\x13rota-workers-needed\x10\x01\x19\x00\x00\x00\x00\x00\x00\xf0\x3f"
    assert await keda.raw("GetMetrics")(request, timeout=READ_S) == b"\x0a" + bytes([len(one)]) + one
    assert await keda.raw("GetMetricSpec")(ref, timeout=READ_S) == b"\x0a" + bytes([len(one)]) + one


async def test_the_metric_is_the_number_of_workers_with_a_target_of_one_each(keda: KedaClient, pool: Pool) -> None:
    queues = {"queues": "default, mail", "targetWait": "60", "slots": "2"}
    assert await keda.needed(**queues) == 0
    assert not await keda.is_active(**queues)

    await pool.enqueue(60)  # a job is taken to run for 5 s

    few = await keda.needed(**queues)
    assert few > 1
    assert await keda.needed(**{**queues, "targetWait": "20"}) > few
    assert await keda.needed(queues="mail") == 0
    assert await keda.is_active(**queues)
    assert await keda.metric_spec(**queues) == [("rota-workers-needed", 1, 1.0)]


async def test_present_workers_count_unless_they_leave(keda: KedaClient, pool: Pool) -> None:
    await pool.enqueue(1)
    for machine in ("a", "b"):
        await pool.register(machine)
    assert await keda.needed(queues="default", slots="1") == 1
    assert not await keda.is_active(queues="mail"), "workers of other queues do not count"


async def test_a_job_that_runs_keeps_its_queue_active(keda: KedaClient, pool: Pool) -> None:
    await pool.enqueue(1)
    session = await checked_session(pool.rota)
    await pool.register("a", busy=1)
    key = session.keys.queue("default", "pending")
    (run,) = await session.redis.command("ZRANGE", key, 0, -1)
    await session.redis.command("ZREM", key, run)
    await session.redis.command("ZADD", session.keys.queue("default", "processing"), 2**52, run)

    assert await keda.is_active(queues="default")


async def test_the_first_job_of_a_new_queue_is_pushed(keda: KedaClient, pool: Pool) -> None:
    # Without jobs, the stream's own timer is an hour: only an event of the store can be the reason for the answer.
    stream = keda.stream(queues="default")
    assert not await next_answer(stream)

    await pool.enqueue(1)

    assert await next_answer(stream)
    assert await next_answer(stream), "it is repeated while no worker serves the queue"
    await pool.purge()
    while await next_answer(stream):
        pass
    stream.cancel()


async def test_a_job_that_comes_while_the_store_is_read_is_pushed(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = ActivityStream(await checked_session(pool.rota), read_metadata({"queues": "default"}))
    looks = 0

    async def look(session: Session, trigger: Trigger) -> Need:
        nonlocal looks
        found = await workers_needed(session, trigger)
        looks += 1
        if looks == 2:
            await pool.enqueue(1)
            await stream._wake_up.wait()  # its event is there before the answer is
        return found

    monkeypatch.setattr(activity_stream, "workers_needed", look)
    async with asyncio.timeout(READ_S), aclosing(stream.answers()) as answers:
        assert not await anext(answers)
        assert await anext(answers)


async def test_a_scheduled_job_is_pushed_a_boot_time_before_it_is_due(keda: KedaClient, pool: Pool) -> None:
    stream = keda.stream(queues="default", bootTime="3600")
    assert not await next_answer(stream)
    await pool.rota.enqueue(pool.task.using(delay=3602).call())

    assert await next_answer(stream)
    assert not await keda.is_active(queues="default", bootTime="1")
    stream.cancel()


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({}, "queues: name the queues that the workers serve"),
        ({"queues": "a b"}, "queues: 'a b' is not 1 to 64 of"),
        ({"queues": "a", "targetWait": "soon"}, "targetWait: 'soon' is not a number of seconds"),
        ({"queues": "a", "bootTime": "nan"}, "bootTime: 'nan' is not a number of seconds"),
        ({"queues": "a", "slots": "0"}, "slots: '0' is not a whole number from 1"),
        ({"queues": "a", "targetwait": "60"}, "targetwait: there is no such metadata; there are bootTime, queues"),
    ],
)
async def test_wrong_metadata_are_refused(keda: KedaClient, metadata: dict[str, str], message: str) -> None:
    calls = (keda.is_active, keda.needed, keda.metric_spec, keda.first_answer)
    for call in calls:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(**metadata)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert (refused.value.details() or "").startswith(f"metadata of ScaledObject worker: {message}")


def test_metadata_may_come_from_the_environment_of_the_workers() -> None:
    trigger = read_metadata({"queuesFromEnv": "mail,default", "enableTLS": "true", "targetWait": "30"})

    assert trigger.queues == ("mail", "default")
    assert trigger.policy.target_wait_ms == 30_000


async def test_an_unreachable_store_is_an_error_and_never_zero(
    start: Start, own_server: OwnServers, namespace: str
) -> None:
    server = own_server(tcp=True)
    client = KedaClient(await start(url=server.url).address())
    stream = client.stream(queues="default")
    assert not await next_answer(stream)
    server.kill()

    for call in (client.is_active, client.needed, client.first_answer):
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call(queues="default")
        assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
    assert await client.metric_spec(queues="default"), "that needs no store"

    server.start()
    rota = Rota(server.url, namespace=namespace)
    await rota.enqueue(rota.task(name="noop")(_noop).call())
    assert await next_answer(stream), "a stream that was open goes on"
    stream.cancel()
    await rota.close()
    await client.channel.close()


async def _noop() -> None:
    pass


async def test_it_needs_no_more_than_to_read(start: Start, own_server: OwnServers, tmp_path: Path) -> None:
    users = tmp_path / "users.acl"
    rule = acl_rule(AclRole.READ_ONLY, "rota")
    users.write_text(f"user default on nopass ~* &* +@all\n{rule} >secret\n")
    server = own_server(aclfile=str(users))
    rota = Rota(server.url)
    await rota.enqueue(rota.task(name="noop")(_noop).call())
    url = server.url.replace("unix://", "unix://rota-read-only:secret@")

    client = KedaClient(await start("--namespace", "rota", url=url).address())
    stream = client.stream(queues="default")

    assert await next_answer(stream)
    assert await client.needed(queues="default") == 1
    stream.cancel()
    await client.channel.close()
    await rota.close()


async def test_a_signal_ends_streams_without_an_error(start: Start) -> None:
    scaler = start()
    client = KedaClient(await scaler.address())
    stream = client.stream(queues="default")
    assert not await next_answer(stream)

    scaler.process.terminate()

    async with asyncio.timeout(READ_S):
        assert await stream.read() is EOF
    await eventually(lambda: scaler.process.poll() == 0)
    await client.channel.close()


async def test_tls_with_certificates_of_clients(start: Start, tmp_path: Path) -> None:
    server = make_certificate(tmp_path)
    other = make_certificate(tmp_path, name="keda")
    files = ("--tls-cert", str(server.certificate), "--tls-key", str(server.key))
    address = await start(*files, "--tls-client-ca", str(other.certificate)).address()
    root, chain, key = server.certificate.read_bytes(), other.certificate.read_bytes(), other.key.read_bytes()

    client = KedaClient(address, grpc.ssl_channel_credentials(root, key, chain))
    assert not await client.is_active(queues="default")
    stranger = KedaClient(address, grpc.ssl_channel_credentials(root))
    with pytest.raises(grpc.aio.AioRpcError):
        await stranger.is_active(queues="default")

    # A renewed certificate is used by the next connection.
    renewed = make_certificate(tmp_path)
    again = KedaClient(address, grpc.ssl_channel_credentials(renewed.certificate.read_bytes(), key, chain))
    assert not await again.is_active(queues="default")
    for one in (client, stranger, again):
        await one.channel.close()


async def test_options_that_do_not_fit_are_refused(start: Start, tmp_path: Path) -> None:
    pair = make_certificate(tmp_path)
    taken = await start().address()
    for options, message in (
        (("--listen", "6000"), "is not HOST:PORT"),
        (("--listen", taken), f"cannot listen on {taken}"),
        (("--tls-cert", str(pair.certificate)), "--tls-cert and --tls-key belong together"),
        (("--tls-client-ca", str(pair.certificate)), "--tls-client-ca needs TLS"),
        (("--tls-cert", str(pair.certificate), "--tls-key", str(pair.certificate)), "cannot be used"),
    ):
        scaler = start(*options)
        await eventually(lambda scaler=scaler: scaler.process.poll() is not None, 60)
        assert message in scaler.log.read_text()
