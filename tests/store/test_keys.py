"""Every key is in the table of keys; those of a queue share a hash slot; no two names meet."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot

from rota.core.dependencies import Parent, may_fail
from rota.core.health.acknowledgement import Acknowledgement
from rota.core.ids import JobRef, checked_queue
from rota.core.job_options import Keep
from rota.core.lease_heartbeat_poll_and_grace_durations import DurationSettings
from rota.core.same_id_policy import Update
from rota.core.schedule import Every, Schedule
from rota.core.shards import shard_names
from rota.errors import InvalidOption
from rota.store.annotations import Annotation, AnnotationStore
from rota.store.attention import AttentionStore
from rota.store.autoscaler_lease_decisions_and_demand import (
    Launch,
    PlannerInfo,
    ScalingDecision,
    ScalingSettings,
    ScalingStore,
)
from rota.store.blob_store import BlobStore
from rota.store.bulk_operation_records import BulkOperationStore, OperationInfo
from rota.store.create_dependents_and_deliver_outcomes import WORKFLOWS, JobWithParents, ParentOutcome
from rota.store.http_server_state import HttpServerStore
from rota.store.keys import GLOBAL_KEYS, QUEUE_KEYS, Keys, failures_of, is_permanent, spec_of
from rota.store.mirrored_export_lines import MirrorStore
from rota.store.namespace_settings import SettingsStore
from rota.store.progress_secret import read_secret_and_time
from rota.store.read_and_restore_exported_records import JobCopies
from rota.store.redis.hash_slots import slot_of as slot_in_store
from rota.store.schedules import ScheduleStore
from tests.leaks import delete_keys
from tests.servers import OwnServers
from tests.store.driver import QUEUE, Driver, body, new_job

SLOTS = 16_384


def crc16(data: bytes) -> int:
    """XMODEM, as the cluster specification gives it."""
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def slot_of(key: str) -> int:
    """The cluster's slot of a key: of what is between the first { and the next }, if there is anything."""
    _, brace, rest = key.partition("{")
    tag, end, _ = rest.partition("}")
    return crc16((tag if brace and end and tag else key).encode()) % SLOTS


async def _exercise(driver: Driver, queue: str) -> None:
    """Uses every verb, and leaves something of everything behind."""
    worker = driver.worker()
    await worker.store.publish_failure_handlers(queue, {"noop": ""})
    refs = await driver.enqueue(
        *[new_job() for _ in range(6)],
        new_job("chosen", terms=("tag=red",)),
        new_job("late", due="+60000", expiry="+90000"),
        new_job(keep=Keep(finished=5)),
        queue=queue,
    )
    await driver.client.watch(refs[5])
    blobs = BlobStore(driver.client)
    await blobs.append(queue, "c1", 0, b"chunk")
    await driver.enqueue(new_job("big", blobs=("c1",), due="+60000"), queue=queue)
    await blobs.reserve(queue, "x1")
    await read_secret_and_time(driver.redis_client, driver.keys)
    jobs = await worker.claim(6, queue=queue)
    await worker.store.save_progress(queue, [(jobs[5].run, jobs[5].claim, "1", "2", "")])
    await worker.store.append_log(queue, jobs[5].run, jobs[5].claim, 1, ["info x"])
    await worker.complete(jobs[0], b"1")
    await worker.fail(jobs[1])
    await worker.fail(jobs[2], "+1000")
    await driver.client.cancel(refs[3])
    await worker.store.heartbeat(queue, [(jobs[5].run, jobs[5].claim)])
    driver.redis.hset(driver.key("meta", queue=queue), "deleted", "damaged")
    await driver.client.delete(refs[4])
    for lock in ("a", "b"):
        await driver.enqueue(*[new_job(lock=lock, priority=-1)] * 2, queue=queue)
    again = Update()
    await worker.claim(2, queue=queue)
    await driver.enqueue(new_job("again", priority=-2), queue=queue)
    (merging,) = await worker.claim(queue=queue)
    await driver.enqueue(new_job("again", again=again), queue=queue)
    await worker.fail(merging, "+60000")
    await driver.enqueue(new_job("followed", priority=-2), queue=queue)
    await worker.claim(queue=queue)
    await driver.enqueue(new_job("followed", again=again), queue=queue)
    parent = await driver.one("parent", queue=queue, due="+50000")
    child = await driver.after(parent, queue=queue)
    await driver.after(may_fail(child), child, queue=queue)
    await driver.client.cancel(parent)
    await driver.post(queue)
    await driver.client.cancel(await driver.one("other", queue=queue, due="+50000"))
    other = await driver.one("another", queue=queue, due="+50000")
    await driver.after(other, queue=queue)
    await driver.client.cancel(other)
    tied = JobWithParents(new_job(after=("x:y",)), [Parent(JobRef("x", "y"), placeholder="rota.result.0.0")])
    await driver.ties.prepare_dependents(queue, {0: tied})
    for number in range(3):
        await driver.workflow(f"flow-{number}", queue=queue, limit=1 if number != 1 else 9)
    await driver.flows.save_decision(await driver.flow("flow-1"), "failed", next_ms=60_000)
    await driver.ties.deliver_outcomes(WORKFLOWS, [ParentOutcome("flow-0", "m0.0", "1", "completed", "", b"1", "1")])
    await driver.client.enqueue(queue, [new_job("keyed")._replace(idempotency_token="token")])
    told = await driver.one("told", queue=queue, priority=-9)
    await driver.after(told, queue=queue)
    (job,) = await worker.claim(queue=queue)
    await worker.complete(job, b"1")
    await driver.client.pause_task(queue, "noop")
    await driver.worker("w2").claim(queue=queue)
    await driver.client.pause_queue(queue, wanted="paused")
    await driver.one(queue=queue, task="other")
    await driver.worker("w2").claim(queue=queue)
    schedule = Schedule(name="s", queue=queue, rule=Every(60), body=body())
    await ScheduleStore(driver.redis_client, driver.keys).put(schedule)
    await worker.store.renew_registration("{}")
    await worker.store.drain_worker(worker.store.participant)
    planner = ScalingStore(driver.redis_client, driver.keys)
    fence = (await planner.take_lease("planner", PlannerInfo())).fence
    await planner.take_lease("planner that stands by", PlannerInfo())
    await planner.save_launch(fence, "token", Launch(count=1, at=1))
    await planner.bar_machine(fence, "machine")
    await planner.record(fence, 1, ScalingDecision(at=1, wanted=1), is_kept=True)
    await planner.change_settings(ScalingSettings(), ScalingSettings(max_workers=3))
    await SettingsStore(driver.redis_client, driver.keys).change(DurationSettings(), DurationSettings(lease_ms=9_000))
    await worker.store.publish_tasks({"noop": "{}"})
    await worker.store.register_queues({queue: 0, "wide": 3})
    access = HttpServerStore(driver.redis_client, driver.keys)
    await access.put_token("id", b"{}")
    await access.record_token_use("id")
    await access.open_session("name", b"{}")
    await access.count_failed_login("127.0.0.1")
    await access.store_response("name", b"{}")
    await access.append_audit("ada", b"{}")
    await access.save_view("name", b"{}")
    await AnnotationStore(driver.redis_client, driver.keys).add(Annotation(id="a"), announced_version="v1")
    attention = AttentionStore(driver.redis_client, driver.keys)
    await attention.record(["slow_queue:mail"])
    await attention.acknowledge("slow_queue:mail", Acknowledgement(by="ada", at=1))
    operation = OperationInfo(id="o", verb="cancel", where={"state": "pending"}, created_at=driver.now())
    await BulkOperationStore(driver.redis_client, driver.keys).open(operation)
    copies = JobCopies(driver.client)
    await copies.restore_runs("export", {"queue": queue}, await copies.read_runs(queue, ["late"]))
    workflow = await copies.read_workflow("flow-1")
    assert workflow is not None
    await copies.restore_workflow("export", workflow)
    mirror = MirrorStore(driver.client)
    await mirror.open("mirror")
    await mirror.add_queue(queue)
    await mirror.write(queue, {"1": "{}"}, position="1-0")
    driver.advance(3_600_000)
    await driver.one(queue=queue, due="+99999999")


@pytest.mark.parametrize("queue", [QUEUE, "q-fail", "A.b_c-D"])
async def test_every_key_of_a_busy_server_is_in_the_table_with_its_type(driver: Driver, queue: str) -> None:
    await _exercise(driver, queue)

    keys = driver.all_keys()
    unknown = [key for key in keys if spec_of(key, driver.keys.namespace) is None]
    assert not unknown
    for key in keys:
        spec = spec_of(key, driver.keys.namespace)
        assert spec is not None
        assert cast(bytes, driver.redis.type(key)).decode() == spec.type, key
        has_expiry = driver.redis.pttl(key) > 0
        assert has_expiry == spec.has_ttl, key
        assert is_permanent(key, driver.keys.namespace) != has_expiry

    seen = {spec.pattern for key in keys if (spec := spec_of(key, driver.keys.namespace))}
    not_yet = {"format"}  # written by the client above the store
    assert seen == {spec.pattern for spec in (*QUEUE_KEYS.values(), *GLOBAL_KEYS.values())} - not_yet


@pytest.mark.requirement("S4-3")
@pytest.mark.parametrize("queue", ["q", "q-fail", "A.b_c-D", "0", "-", "x" * 64])
async def test_all_keys_of_a_queue_and_of_its_failures_share_one_slot(driver: Driver, queue: str) -> None:
    await _exercise(driver, queue)

    of_queue = [key for key in driver.all_keys() if not key.startswith(driver.keys.shared("format")[:-6])]
    base = driver.keys.queue(queue.removesuffix("-fail"), "meta")
    assert {slot_of(key) for key in of_queue} == {slot_of(base)}
    assert len({slot_of(driver.keys.shared(name)) for name in GLOBAL_KEYS}) == 1


def test_what_a_script_calls_fail_is_a_key_of_the_failures_of_its_queue() -> None:
    keys = Keys("rota")

    assert keys.queue("mail", "fail_pending") == keys.queue("mail-fail", "pending") == "rota:{mail}:fail:pending"
    assert keys.queue("mail-fail", "fail_pending") == keys.queue("mail-fail", "pending")
    assert not [name for name in QUEUE_KEYS if name.startswith("fail_")]


def test_slots_are_computed_as_a_cluster_does(own_server: OwnServers) -> None:
    server = own_server(cluster_enabled="yes")
    keys = Keys("rota")
    with server.client() as client:
        for key in (keys.queue("mail", "pending"), keys.queue("mail-fail", "log", "x"), keys.shared("queues"), "{}x"):
            assert client.execute_command("CLUSTER", "KEYSLOT", key) == slot_of(key)


queue_names = st.from_regex(r"[A-Za-z0-9._-]{1,12}", fullmatch=True)


@given(st.lists(queue_names, min_size=2, max_size=6, unique=True))
def test_no_two_keys_have_the_same_name(queues: list[str]) -> None:
    keys = Keys("rota")
    failures = [f"{queue}-fail" for queue in queues if not queue.endswith("-fail")]
    names = [*itertools.product({*queues, *failures}, QUEUE_KEYS)]
    built = {keys.queue(queue, name, "part" if "{name}" in QUEUE_KEYS[name].pattern else "") for queue, name in names}
    built |= {keys.shared(name) for name in GLOBAL_KEYS}

    assert len(built) == len(names) + len(GLOBAL_KEYS)


@given(queue_names.filter(lambda queue: queue != "-fail"), st.sampled_from(sorted(QUEUE_KEYS)))
def test_a_key_finds_its_spec_again(queue: str, name: str) -> None:
    spec = QUEUE_KEYS[name]
    key = Keys("ns").queue(queue, name, "a:b}:c" if "{name}" in spec.pattern else "")

    assert spec_of(key, "ns") is spec
    assert spec_of(key, "n") is None
    assert spec_of(key + "x", "ns") is None or "{name}" in spec.pattern


@pytest.mark.parametrize(
    "key",
    ["ns:{q}:nothing", "ns:{q}:pending:x", "ns:{q}:log", "ns:{~}:pending", "ns:{q}pending", "other", "ns:inbox:w"],
)
def test_a_key_that_rota_does_not_know_has_no_spec(key: str) -> None:
    assert spec_of(key, "ns") is None
    assert not is_permanent(key, "ns")


@pytest.mark.parametrize(
    "queue",
    [
        "",
        "~",
        "a b",
        "a:b",
        "a}b",
        "{a}",
        "a\n",
        "\na",
        "ä",
        "a" * 65,
        "a/b",
        "*",
        "a\x00",
        "-fail",
        None,
        5,
        b"q",
    ],
)
def test_hostile_queue_names_are_refused(queue: object) -> None:
    """A name that could leave its slot, or meet another's keys."""
    with pytest.raises(InvalidOption) as refused:
        checked_queue(queue)
    assert refused.value.option == "queue"


@given(st.text(max_size=70))
def test_a_name_that_is_accepted_stays_in_its_slot(queue: str) -> None:
    try:
        checked_queue(queue)
    except InvalidOption:
        return
    keys = Keys("rota")
    tag = queue.removesuffix("-fail")
    assert {slot_of(keys.queue(queue, name)) for name in QUEUE_KEYS} == {crc16(tag.encode()) % SLOTS}


@pytest.mark.requirement("K-15")
async def test_namespaces_do_not_see_each_other(driver: Driver) -> None:
    """Several applications on one server."""
    await driver.one("x")
    other = Driver(driver.server, driver.keys.namespace + "-other")

    assert not await other.exists(JobRef(QUEUE, "x"))
    assert await other.worker().claim() == []
    delete_keys(other.redis, other.keys.namespace)
    await other.redis_client.close()
    other.redis.close()


@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("name", ["mail", "a", "a-much.longer_name"])
def test_nodes_get_equal_shares_of_a_queues_shards(name: str, nodes: int) -> None:
    keys = Keys("any")
    for count in (nodes, 2 * nodes, 4 * nodes):
        slots = [slot_of(keys.queue(shard, "pending")) for shard in shard_names(name, count)]
        shares = Counter(slot * nodes // SLOTS for slot in slots)

        assert set(shares.values()) == {count // nodes}
        assert slots == [slot_of(keys.queue(failures_of(shard), "jobs")) for shard in shard_names(name, count)]


def test_the_slot_of_a_key_is_the_one_that_servers_compute() -> None:
    for key in ("foo", "{user}:a", "a{b}c{d}", "{}x", "rota:{mail~3of8.21}:jobs", "ä{ö}"):
        assert slot_in_store(key) == key_slot(key.encode())
