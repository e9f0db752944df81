"""The shared connection: after cancelled callers and lost connections, each caller gets the reply to its own call."""

from __future__ import annotations

import asyncio
import logging
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from rota.core.job_record_codec import decode_body
from rota.errors import ConfigurationError, StoreUnavailable
from rota.store.enqueue_batcher import EnqueueResult
from rota.store.job_store import JobStore
from rota.store.redis import connection_opener
from rota.store.redis.address import parse_address
from rota.store.redis.connection import Connection, Disconnected, ServerError, pack, pack_all
from rota.store.redis.connection_opener import endpoint_of, open_connection
from rota.store.redis.retrying_client import RedisClient
from tests.eventually import eventually
from tests.servers import OwnServers, Server, new_server
from tests.store.driver import QUEUE, Driver, completed, new_job
from tests.store.proxy import Proxy


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[Proxy]:
    async with Proxy(server) as proxy:
        yield proxy


@pytest.fixture
async def redis_client(proxy: Proxy) -> AsyncIterator[RedisClient]:
    """Through the proxy."""
    redis_client = RedisClient(parse_address(proxy.url))
    yield redis_client
    await redis_client.close()


def text_of(number: int) -> str:
    """Texts of very different lengths."""
    return f"{number}:" + "x" * (number * 37 % 5_000)


async def echo(redis_client: RedisClient, number: int) -> bool:
    return await redis_client.command("ECHO", text_of(number)) == text_of(number).encode()


# --- one connection for all --------------------------------------------------------------------------------------


async def test_calls_of_a_thousand_callers_share_a_connection_and_few_writes(
    redis_client: RedisClient, proxy: Proxy
) -> None:
    await redis_client.command("PING")
    before = proxy.requests

    assert all(await asyncio.gather(*(redis_client.command("ECHO", n) for n in range(1_000))))

    assert proxy.connections == 1
    assert proxy.requests - before <= 10


async def test_replies_that_come_byte_by_byte_are_put_together(redis_client: RedisClient, proxy: Proxy) -> None:
    proxy.dribble(7)

    assert all(await asyncio.gather(*(echo(redis_client, number) for number in range(20))))


async def test_callers_that_leave_in_flight_leave_the_replies_of_the_others_alone(
    redis_client: RedisClient, proxy: Proxy
) -> None:
    await redis_client.command("PING")
    asked = [asyncio.create_task(echo(redis_client, number)) for number in range(300)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for task in asked[::3]:
        task.cancel()

    answers = await asyncio.gather(*asked, return_exceptions=True)

    assert all(isinstance(answer, asyncio.CancelledError) for answer in answers[::3])
    assert [answer for place, answer in enumerate(answers) if place % 3] == [True] * 200
    assert proxy.connections == 1


async def test_a_thousand_callers_whose_connection_dies_each_get_their_own_reply(
    redis_client: RedisClient, proxy: Proxy
) -> None:
    for size in (0, 1, 20_000, 200_000, 1_000_000):
        proxy.cut_after(size)
        assert all(await asyncio.gather(*(echo(redis_client, number) for number in range(1_000))))

    assert proxy.connections >= 5


async def test_a_thousand_producers_whose_connection_dies_each_make_one_job(
    driver: Driver, redis_client: RedisClient, proxy: Proxy
) -> None:
    """Replies are lost before, within and behind the answer to a call; calls that reached the server are recognised."""
    store = JobStore(redis_client, driver.keys, "far")
    acknowledged: dict[int, EnqueueResult] = {}

    async def produce(number: int) -> None:
        (acknowledged[number],) = await store.enqueue(QUEUE, [new_job("", [number])])

    for number, size in enumerate((0, 2, 9)):
        proxy.cut_after(size)
        await asyncio.gather(*(produce(number * 1_000 + each) for each in range(1_000)))

    records = driver.hash("jobs")
    assert len(records) == 3_000
    for number, made in acknowledged.items():
        body = decode_body(made.run, records[made.run].encode())
        assert (body.arguments, body.id) == (b"[%d]" % number, made.id)


async def test_calls_that_travel_together_and_are_half_answered_are_stored_once(
    driver: Driver, redis_client: RedisClient, proxy: Proxy
) -> None:
    store = JobStore(redis_client, driver.keys, "far")
    await driver.enqueue(*[new_job()] * 400)
    jobs = (await store.claim(QUEUE, 400, call_number=16, claim_token="a")).jobs
    calls = [call for call, _ in store.report_calls(QUEUE, [completed(job) for job in jobs])]
    assert len(calls) > 2
    proxy.cut_after(60)  # behind the replies that tell of loaded scripts

    answers = await redis_client.run_many(calls)

    assert len(answers) == len(calls)
    assert driver.counts() == {"completed": 400}


async def test_a_server_that_is_killed_under_a_thousand_callers_answers_them_when_it_is_back(
    own_server: OwnServers,
) -> None:
    server = own_server()
    redis_client = RedisClient(parse_address(server.url), patience=30)
    await redis_client.command("PING")
    asked = [asyncio.create_task(echo(redis_client, number)) for number in range(1_000)]
    await asyncio.sleep(0)
    await asyncio.to_thread(server.restart)

    assert all(await asyncio.gather(*asked))
    await redis_client.close()


async def test_a_blocking_call_does_not_delay_other_calls(driver: Driver) -> None:
    reading = asyncio.create_task(driver.redis_client.read_streams({driver.key("events"): "$"}, 30_000))
    await eventually(lambda: any(client["cmd"] == "xread" for client in driver.redis.client_list()))

    assert await driver.redis_client.command("ECHO", "x") == b"x"
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)


# --- how it ends -------------------------------------------------------------------------------------------------


async def opened(server: Server) -> Connection:
    return await open_connection(endpoint_of(parse_address(server.url)), Connection)


async def test_an_error_is_a_reply_among_others(server: Server) -> None:
    connection = await opened(server)

    first, refusal, last = await connection.request(pack_all([("ECHO", "a"), ("NOSUCH", "x"), ("ECHO", "b")]), 3)

    assert (first, last) == (b"a", b"b")
    assert isinstance(refusal, ServerError)
    assert refusal.code == "ERR"
    connection.abort("done")
    await connection.closed


async def test_an_unexpected_reply_ends_the_connection(server: Server) -> None:
    """Else every later reply would be taken for the answer to another question."""
    connection = await opened(server)

    assert await connection.request(pack_all([("ECHO", "a"), ("ECHO", "b")]), 1) == [b"a"]

    await asyncio.wait_for(connection.closed, 5)
    with pytest.raises(Disconnected):
        connection.request(pack(("PING",)))


async def test_silence_ends_the_connection_and_waiting_callers_get_an_error(own_server: OwnServers) -> None:
    server = own_server()
    connection = await opened(server)
    connection.timeout = 0.05
    server.pause()
    asked = [connection.request(pack(("PING",))) for _ in range(3)]

    for question in asked:
        with pytest.raises(Disconnected, match=r"no answer within 0\.05 s"):
            await question
    server.resume()
    await connection.closed


async def test_a_loop_that_was_held_up_does_not_take_that_for_silence(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection_opener, "SOCKET_TIMEOUT_S", 0.1)
    caplog.set_level(logging.DEBUG, "rota.store")
    redis_client = RedisClient(parse_address(server.url))
    await redis_client.command("PING")
    asked = asyncio.create_task(redis_client.command("ECHO", "x"))
    await asyncio.sleep(0)
    time.sleep(0.3)  # noqa: ASYNC251  # as a handler does that computes on the loop

    assert await asked == b"x"
    assert not caplog.text
    await redis_client.close()


async def test_closing_notifies_waiting_callers_and_leaves_nothing_open(own_server: OwnServers) -> None:
    server = own_server()
    redis_client = RedisClient(parse_address(server.url), patience=0)
    await redis_client.command("PING")
    server.pause()
    asked = [asyncio.create_task(redis_client.command("PING")) for _ in range(3)]
    await asyncio.sleep(0)

    await redis_client.close()

    for outcome in await asyncio.gather(*asked, return_exceptions=True):
        assert isinstance(outcome, StoreUnavailable)
    server.resume()
    with server.client() as client:
        await eventually(lambda: len(client.client_list()) == 1)


# --- where it goes -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Signed by itself, for the loopback; the key is in the same file."""
    folder = tmp_path_factory.mktemp("tls")
    made = subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=rota"),
            *("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(folder / "key"), "-out", str(folder / "cert")),
        ],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"openssl made no certificate: {made.stderr.decode()[-200:]}")
    both = folder / "both.pem"
    both.write_text((folder / "cert").read_text() + (folder / "key").read_text())
    return both


async def test_tls_is_spoken_and_certificates_are_checked(valkey: Server, certificate: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    async with Proxy(valkey, tls=context) as proxy:
        for settings in (f"ssl_ca_certs={certificate}", "ssl_cert_reqs=none"):
            trusting = RedisClient(parse_address(f"{proxy.url}?{settings}"))
            assert all(await asyncio.gather(*(echo(trusting, number) for number in range(100))))
            await trusting.close()
        doubting = RedisClient(parse_address(proxy.url), patience=0.1)
        with pytest.raises(StoreUnavailable, match="certificate"):
            await doubting.command("PING")
        await doubting.close()
    with pytest.raises(ConfigurationError, match="TLS"):
        RedisClient(parse_address("rediss://127.0.0.1?ssl_ca_certs=/nowhere"))


@contextmanager
def sentinel(primary: Server, folder: Path) -> Generator[int]:
    """A sentinel that watches the primary, and decides alone; its port."""
    with new_server("valkey", tcp=True) as placeholder:
        port = placeholder.port
    config = folder / "sentinel.conf"
    config.write_text(
        f"port {port}\nbind 127.0.0.1\ndir {folder}\nsentinel monitor shop 127.0.0.1 {primary.port} 1\n"
        "sentinel down-after-milliseconds shop 300\nsentinel failover-timeout shop 2000\n"
    )
    process = subprocess.Popen([primary.binary, str(config), "--sentinel"], stdout=subprocess.DEVNULL)
    try:
        yield port or 0
    finally:
        process.kill()
        process.wait()


async def test_after_a_failover_the_primary_is_found_that_the_sentinels_name(
    own_server: OwnServers, tmp_path: Path, unused_address: Callable[[], str]
) -> None:
    primary, replica = own_server(tcp=True), own_server(tcp=True)
    with replica.client() as client, primary.client() as its_primary:
        client.execute_command("REPLICAOF", "127.0.0.1", primary.port)
        await eventually(lambda: client.info("replication")["master_link_status"] == "up")
        its_primary.set("kept", "yes")
        its_primary.execute_command("WAIT", 1, 5_000)
        with sentinel(primary, tmp_path) as port:
            with redis.Redis(port=port) as watcher:
                await eventually(lambda: knows_replica(watcher))
            nowhere = unused_address().removeprefix("redis://")
            redis_client = RedisClient(parse_address(f"redis+sentinel://{nowhere},127.0.0.1:{port}/shop"), patience=30)
            assert await redis_client.command("SET", "before", 1) == b"OK"
            heard = redis_client.listen("channel")
            assert await anext(heard) == ""

            primary.kill()

            assert await redis_client.command("SET", "after", 1) == b"OK"
            assert await redis_client.command("GET", "kept") == b"yes"
            assert client.get("after") == b"1"
            assert await anext(heard) == "", "it listens at the new primary"
            await redis_client.command("PUBLISH", "channel", "hello")
            assert await anext(heard) == "hello"
            await heard.aclose()
            await redis_client.close()


def knows_replica(watcher: redis.Redis) -> bool:
    try:
        return bool(watcher.execute_command("SENTINEL", "REPLICAS", "shop"))
    except redis.ConnectionError:
        return False


async def test_a_service_that_no_sentinel_knows_is_reported(own_server: OwnServers, tmp_path: Path) -> None:
    with sentinel(own_server(tcp=True), tmp_path) as port, redis.Redis(port=port) as watcher:
        await eventually(lambda: knows_replica(watcher) or _answers(watcher))
        redis_client = RedisClient(parse_address(f"redis+sentinel://127.0.0.1:{port}/other"), patience=0.1)
        with pytest.raises(StoreUnavailable, match="does not know the service other"):
            await redis_client.command("PING")
        await redis_client.close()


async def test_after_the_error_reply_of_one_sentinel_the_others_are_asked(
    own_server: OwnServers, tmp_path: Path
) -> None:
    primary, no_sentinel = own_server(tcp=True), own_server(tcp=True)
    with sentinel(primary, tmp_path) as port, redis.Redis(port=port) as watcher:
        await eventually(lambda: _answers(watcher))
        hosts = f"127.0.0.1:{no_sentinel.port},127.0.0.1:{port}"
        redis_client = RedisClient(parse_address(f"redis+sentinel://{hosts}/shop"), patience=30)

        assert await redis_client.command("SET", "found", 1) == b"OK"

        with primary.client() as client:
            assert client.get("found") == b"1"
        await redis_client.close()


def _answers(watcher: redis.Redis) -> bool:
    try:
        return bool(watcher.ping())
    except redis.ConnectionError:
        return False
