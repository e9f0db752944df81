"""The redis_client: calls that are cut off are sent again, and refusals become Rota's own errors."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from rota.core.job_record_codec import decode_body
from rota.errors import StoreDenied, StoreError, StoreUnavailable
from rota.store.claim_replies import read_claim_reply
from rota.store.enqueue_batcher import EnqueueResult
from rota.store.job_store import JobStore
from rota.store.keys import Keys
from rota.store.redis import connection_opener
from rota.store.redis.address import parse_address
from rota.store.redis.retrying_client import RedisClient, ScriptCall
from tests.eventually import eventually
from tests.servers import Kind, OwnServers, Server
from tests.store.driver import CLOCK, QUEUE, Driver, completed, failed, new_job
from tests.store.proxy import Proxy

each_kind = pytest.mark.parametrize("kind", ["valkey", "redis7"])


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[Proxy]:
    async with Proxy(server) as proxy:
        yield proxy


@pytest.fixture
def impatient_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that stands still is noticed in a tenth of a second."""
    monkeypatch.setattr(connection_opener, "SOCKET_TIMEOUT_S", 0.1)


def _numbers(driver: Driver) -> list[int]:
    """What the jobs of the queue were numbered with, in the order they were made."""
    records = sorted(driver.hash("jobs").items())
    return [int(decode_body(run, record.encode()).arguments.strip(b"[]")) for run, record in records]


# --- calls that are cut off --------------------------------------------------------------------------------------


async def test_scripts_that_the_server_forgot_are_sent_again(driver: Driver) -> None:
    """A flush, a restart or a failover empties the script cache."""
    await driver.one()
    driver.redis.script_flush()
    (job,) = await driver.worker().claim()
    driver.redis.script_flush()

    claim = driver.worker().store.claim_call(QUEUE, 1, call_number=100, claim_token="t")
    calls = [call for call, _ in driver.worker().store.report_calls(QUEUE, [completed(job)])]
    answers = await driver.redis_client.run_many([*calls, claim])

    assert answers[0] == []
    assert read_claim_reply(QUEUE, "t", answers[1]).jobs == []
    assert driver.counts() == {"completed": 1}


@pytest.mark.requirement("S0-1")
@pytest.mark.parametrize("losses", [1, 3])
async def test_an_enqueue_whose_reply_is_cut_off_is_sent_again_and_enqueues_once(
    driver: Driver, proxy: Proxy, losses: int
) -> None:
    """Success means stored, and stored once."""
    redis_client = RedisClient(parse_address(proxy.url))
    store = JobStore(redis_client, driver.keys, "far")
    (warm,) = await store.enqueue(QUEUE, [new_job("", [0])])
    proxy.lose_replies(losses)

    made = await store.enqueue(QUEUE, [new_job("", [number]) for number in range(1, 1_001)])

    assert proxy.lost == losses
    assert _numbers(driver) == list(range(1_001))
    assert [one.run for one in (warm, *made)] == sorted(driver.hash("jobs"))
    await redis_client.close()


async def test_a_claim_whose_reply_is_cut_off_brings_the_jobs_all_the_same(driver: Driver, proxy: Proxy) -> None:
    redis_client = RedisClient(parse_address(proxy.url))
    store = JobStore(redis_client, driver.keys, "far")
    await driver.enqueue(*[new_job()] * 5)
    await store.claim(QUEUE, 1, call_number=16, claim_token="a")
    proxy.lose_replies(2)

    claims = await store.claim(QUEUE, 3, call_number=32, claim_token="b")

    assert proxy.lost == 2
    assert [job.counts.attempt for job in claims.jobs] == [1, 1, 1]
    assert driver.counts() == {"processing": 4, "pending": 1}
    await redis_client.close()


async def test_reports_and_a_claim_whose_replies_are_cut_off_are_stored_once(driver: Driver, proxy: Proxy) -> None:
    redis_client = RedisClient(parse_address(proxy.url))
    store = JobStore(redis_client, driver.keys, "far")
    await driver.enqueue(*[new_job()] * 4)
    jobs = (await store.claim(QUEUE, 2, call_number=16, claim_token="a")).jobs
    await store.report(QUEUE, [completed(jobs[0])])
    proxy.lose_replies(2)

    calls = [call for call, _ in store.report_calls(QUEUE, [completed(jobs[1], b"1")])]
    answers = await redis_client.run_many([*calls, store.claim_call(QUEUE, 1, call_number=32, claim_token="b")])

    assert proxy.lost == 2
    assert answers[0] == [b"0", b"already"]
    assert len(read_claim_reply(QUEUE, "b", answers[1]).jobs) == 1
    assert driver.counts() == {"completed": 2, "processing": 1, "pending": 1}
    await redis_client.close()


@pytest.mark.requirement("S3-13")
async def test_every_kind_of_call_survives_connections_that_are_cut(driver: Driver, proxy: Proxy) -> None:
    """Nothing has to be restarted."""
    redis_client = RedisClient(parse_address(proxy.url))
    for _ in range(3):
        assert await redis_client.command("ECHO", "x") == b"x"
        assert await redis_client.commands([["ECHO", "a"], ["ECHO", "b"]]) == [b"a", b"b"]
        proxy.cut()
    await redis_client.close()


@each_kind
@pytest.mark.usefixtures("impatient_sockets")
async def test_a_server_that_stands_still_and_goes_on_has_each_job_once(
    kind: Kind, own_server: OwnServers, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What was sent before the client lost patience is carried out as well when the server goes on."""
    server = own_server(kind)
    driver = Driver(server, namespace, patience=30)
    await driver.enqueue(new_job("", [0]))
    caplog.set_level(logging.DEBUG, "rota.store")
    server.pause()

    asked = asyncio.create_task(driver.client.enqueue(QUEUE, [new_job("", [number]) for number in range(1, 601)]))
    await eventually(lambda: caplog.text.count("retrying") >= 2)
    server.resume()

    assert len(await asked) == 600
    assert _numbers(driver) == list(range(601))
    await driver.close()


@pytest.mark.requirement("S0-2", "S1-13", "S2-34")
@each_kind
async def test_a_server_that_is_killed_in_a_stream_of_enqueues_has_each_acknowledged_job_once(
    kind: Kind, own_server: OwnServers, namespace: str
) -> None:
    """With the file synced at every write, an answer means that the job is there."""
    server = own_server(kind, appendonly="yes", appendfsync="always")
    driver = Driver(server, namespace, patience=30)
    acknowledged: dict[int, EnqueueResult] = {}
    stop = asyncio.Event()

    async def produce(first: int) -> None:
        number = first
        while not stop.is_set():
            (made,) = await driver.client.enqueue(QUEUE, [new_job("", [number])])
            acknowledged[number] = made
            number += 10

    producers = [asyncio.create_task(produce(first)) for first in range(10)]
    for _ in range(3):
        count = len(acknowledged)
        await eventually(lambda count=count: len(acknowledged) > count + 100)
        await asyncio.to_thread(server.restart)
    count = len(acknowledged)
    await eventually(lambda: len(acknowledged) > count + 100)
    stop.set()
    await asyncio.gather(*producers)

    driver.redis.close()
    stored = _numbers(driver)
    assert len(stored) == len(set(stored))
    assert sorted(stored) == sorted(acknowledged)
    assert {one.run for one in acknowledged.values()} == set(driver.hash("jobs"))
    await driver.close()


@pytest.mark.usefixtures("impatient_sockets")
async def test_a_call_that_was_given_up_does_not_leave_its_answer_to_the_next(
    own_server: OwnServers, namespace: str
) -> None:
    """A cancelled caller's connection is not used again with an answer on its way."""
    server = own_server()
    redis_client = RedisClient(parse_address(server.url), patience=30)
    await redis_client.command("PING")
    server.pause()
    given_up = [asyncio.create_task(redis_client.command("ECHO", f"old{number}")) for number in range(5)]
    await asyncio.sleep(0)
    for task in given_up:
        task.cancel()
    await asyncio.gather(*given_up, return_exceptions=True)
    server.resume()

    answers = await asyncio.gather(*(redis_client.command("ECHO", f"new{number}") for number in range(10)))

    assert answers == [f"new{number}".encode() for number in range(10)]
    await redis_client.close()


async def test_a_cancel_that_came_just_before_a_call_is_not_swallowed_by_it(driver: Driver) -> None:
    """Before Python 3.12 `asyncio.wait_for`, in which redis-py writes, could lose it: Ctrl-C would go unheard."""

    async def cancelled_while_busy() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()  # as the handler of Ctrl-C does while the task computes
        await driver.redis_client.command("PING")

    await driver.redis_client.command("PING")  # the connection is open, so that writing is the first thing to wait for
    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(cancelled_while_busy())


async def test_a_call_made_while_leaving_after_a_cancel_still_goes_through(driver: Driver) -> None:
    answers: list[bytes | bool] = []

    async def leaves() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            answers.append(await driver.redis_client.command("ECHO", "bye"))

    task = asyncio.create_task(leaves())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert answers == [b"bye"]


async def test_a_caller_that_gives_up_does_not_take_the_jobs_of_others_with_it(driver: Driver) -> None:
    first = asyncio.create_task(driver.client.enqueue(QUEUE, [new_job("", [1])]))
    second = asyncio.create_task(driver.client.enqueue(QUEUE, [new_job("", [2])]))
    await asyncio.sleep(0)
    first.cancel()

    (made,) = await second

    assert made.is_new
    assert 2 in _numbers(driver)
    assert (await driver.client.enqueue(QUEUE, [new_job("", [3])]))[0].is_new


# --- refusals ----------------------------------------------------------------------------------------------------


@pytest.fixture
def patience() -> float:
    return 0.3


async def test_a_closed_port_is_reported_when_patience_is_over(
    unused_address: Callable[[], str], patience: float
) -> None:
    """kue #875: no error, silently dead until restart."""
    redis_client = RedisClient(parse_address(unused_address()), patience=patience)
    store = JobStore(redis_client, Keys("t"), "client")
    started = time.monotonic()

    with pytest.raises(StoreUnavailable, match="does not answer"):
        await store.enqueue(QUEUE, [new_job()])

    assert time.monotonic() - started < patience + 0.5
    await redis_client.close()


@pytest.mark.usefixtures("impatient_sockets")
async def test_a_stalled_server_is_reported_when_patience_is_over(
    own_server: OwnServers, namespace: str, patience: float
) -> None:
    server = own_server()
    redis_client = RedisClient(parse_address(server.url), patience=patience)
    await redis_client.command("PING")
    server.pause()
    started = time.monotonic()

    with pytest.raises(StoreUnavailable):
        await redis_client.command("PING")

    assert time.monotonic() - started < patience + 1
    server.resume()
    assert await eventually(lambda: redis_client.command("PING"))
    await redis_client.close()


@pytest.mark.requirement("S2-34")
@each_kind
async def test_a_replica_takes_no_jobs_and_is_worth_trying_again(
    kind: Kind, own_server: OwnServers, namespace: str, patience: float
) -> None:
    """During a failover one may find the old master as a replica."""
    driver = Driver(own_server(kind), namespace, patience=patience)
    await driver.one()
    driver.redis.execute_command("REPLICAOF", "127.0.0.1", "1")

    with pytest.raises(StoreUnavailable, match="READONLY"):
        await driver.client.enqueue(QUEUE, [new_job()])
    with pytest.raises(StoreUnavailable, match="READONLY"):
        await driver.worker().claim()
    with pytest.raises(StoreUnavailable, match="READONLY"):
        await driver.redis_client.commands([["GET", "x"], ["SET", "x", "1"]])
    with pytest.raises(StoreUnavailable, match="READONLY"):
        await driver.redis_client.run_many([driver.worker().store.claim_call(QUEUE, 1, call_number=1, claim_token="t")])

    driver.redis_client.patience = 10
    asked = asyncio.create_task(driver.client.enqueue(QUEUE, [new_job()]))
    driver.redis.execute_command("REPLICAOF", "NO", "ONE")
    assert (await asked)[0].is_new
    await driver.close()


@each_kind
async def test_a_server_that_may_not_write_now_is_worth_trying_again(
    kind: Kind, own_server: OwnServers, namespace: str, patience: float
) -> None:
    """NOREPLICAS, as MISCONF for a full disk: also where redis-py would put words before the code."""
    driver = Driver(own_server(kind), namespace, patience=patience)
    driver.redis.config_set("min-replicas-to-write", 1)

    with pytest.raises(StoreUnavailable, match="NOREPLICAS"):
        await driver.client.enqueue(QUEUE, [new_job()])
    with pytest.raises(StoreUnavailable, match="NOREPLICAS"):
        await driver.redis_client.commands([["GET", "x"], ["SADD", "x", "1"]])
    driver.redis.config_set("min-replicas-to-write", 0)
    await driver.close()


@each_kind
@pytest.mark.parametrize("login", ["", ":wrong@", "nobody:secret@"], ids=["none", "wrong", "unknown user"])
async def test_a_wrong_or_missing_password_is_reported_at_once(
    kind: Kind, login: str, own_server: OwnServers, namespace: str
) -> None:
    server = own_server(kind, tcp=True, requirepass="secret")
    redis_client = RedisClient(parse_address(f"redis://{login}127.0.0.1:{server.port}"), patience=30)
    store = JobStore(redis_client, Keys(namespace), "client")

    with pytest.raises(StoreDenied) as denied:
        await store.enqueue(QUEUE, [new_job()])
    with pytest.raises(StoreDenied):
        await anext(redis_client.listen("x"))

    assert "secret" not in str(denied.value)
    assert "wrong@" not in str(denied.value)
    await redis_client.close()


@each_kind
@pytest.mark.parametrize(
    "rights",
    ["+@all -evalsha -eval ~*", "+@all ~other:*", "+@connection ~*", "+@all -hset -zadd ~*"],
    ids=["no scripts", "other keys", "connection only", "no writes inside"],
)
async def test_missing_permissions_of_a_user_are_reported_at_once(
    kind: Kind, rights: str, own_server: OwnServers, namespace: str
) -> None:
    server = own_server(kind, tcp=True)
    with server.client() as admin:
        admin.execute_command("ACL", "SETUSER", "limited", "on", ">pw", "resetchannels", *rights.split(" "))
    redis_client = RedisClient(parse_address(f"redis://limited:pw@127.0.0.1:{server.port}"), patience=30)
    store = JobStore(redis_client, Keys(namespace), "client")

    with pytest.raises(StoreDenied):
        await store.enqueue(QUEUE, [new_job()])

    with server.client() as admin:
        assert admin.dbsize() == 0
    await redis_client.close()


async def test_an_error_inside_a_script_is_an_error_of_the_store(driver: Driver) -> None:
    with pytest.raises(StoreError):
        await driver.redis_client.run_many([ScriptCall("claim", ["a"], ["b"])])
    with pytest.raises(StoreError):
        await driver.redis_client.command("NOSUCHCOMMAND")


# --- pushes ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S3-13")
@each_kind
async def test_a_listener_resubscribes_after_a_restart_and_is_notified_of_the_gap(
    kind: Kind, own_server: OwnServers, namespace: str
) -> None:
    """Re-subscribed by itself, and told to look for itself."""
    server = own_server(kind)
    redis_client = RedisClient(parse_address(server.url), patience=10)
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def listen() -> None:
        async for text in redis_client.listen(f"{namespace}:inbox:w1"):
            heard.put_nowait(text)

    listener = asyncio.create_task(listen())
    assert await asyncio.wait_for(heard.get(), 5) == ""
    await redis_client.command("PUBLISH", f"{namespace}:inbox:w1", "one")
    assert await asyncio.wait_for(heard.get(), 5) == "one"

    await asyncio.to_thread(server.restart)

    assert await asyncio.wait_for(heard.get(), 5) == ""
    await redis_client.command("PUBLISH", f"{namespace}:inbox:w1", "two")
    assert await asyncio.wait_for(heard.get(), 5) == "two"
    listener.cancel()
    await asyncio.gather(listener, return_exceptions=True)
    await redis_client.close()


async def test_streams_are_read_from_a_position_and_waited_for(driver: Driver) -> None:
    key = driver.key("events")
    await driver.one()
    first = await driver.redis_client.read_streams({key: "0"}, 10)
    (position, entry) = first[key][0]
    assert list(entry) == ["enqueue"]

    waiting = asyncio.create_task(driver.redis_client.read_streams({key: position}, 5_000))
    await asyncio.sleep(0)
    await driver.worker().claim()

    assert list((await waiting)[key][0][1]) == ["claim"]
    assert await driver.redis_client.read_streams({driver.key("events", queue="none"): "0"}, 1) == {}


@pytest.fixture(autouse=True)
def no_errors_are_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing is left to the event loop's last resort."""
    yield
    assert not [record for record in caplog.get_records("call") if record.name == "asyncio" and record.levelno >= 40]


async def test_scripts_that_travel_together_run_in_order_also_the_first_time(driver: Driver) -> None:
    """A claim that is sent along with reports sees what they changed, though the server has yet to load them."""
    await driver.one("first")
    (job,) = await driver.worker().claim()
    driver.redis.script_flush()
    redis_client = RedisClient(driver.redis_client.address, clock=CLOCK)
    store = JobStore(redis_client, driver.keys, "w1")
    calls = [call for call, _ in store.report_calls(QUEUE, [failed(job, "")])]

    answers = await redis_client.run_many([*calls, store.claim_call(QUEUE, 1, call_number=100, claim_token="t")])

    assert [claimed.run for claimed in read_claim_reply(QUEUE, "t", answers[-1]).jobs] == [job.run]
    await redis_client.close()
