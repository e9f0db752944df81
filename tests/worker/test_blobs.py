"""Blobs with real workers: read in handlers, kept out of the arguments, encrypted, and gone with their job."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import redis

from rota import (
    Blob,
    BlobNotFound,
    ConfigurationError,
    Every,
    InvalidArguments,
    InvalidJob,
    InvalidOption,
    Job,
    JobFailed,
    PayloadTooLarge,
    Reject,
    Rota,
)
from rota.client.blob_transfer import MAX_STORED_BYTES
from rota.client.encryption import VARIABLE, new_key
from rota.client.session import session_of, sessions_of
from rota.core.job_options import DEFAULT_OPTIONS
from rota.core.job_record_codec import encode_body
from rota.core.lua_constants import BLOB_CHUNK_BYTES, BLOB_UNTAKEN_MS
from rota.errors import IdInUse
from rota.store.enqueue_batcher import NewJob
from rota.testing import isolated, run_jobs
from rota.worker.retention_janitor import RetentionJanitor
from tests.eventually import eventually
from tests.servers import Server
from tests.worker.harness import ROOT, WorkerHarness

DATA = os.urandom(2 * BLOB_CHUNK_BYTES + 7)


@pytest.fixture(params=["server", "folder", "encrypted server", "encrypted folder"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where the blobs are."""
    place: str = request.param
    if place.startswith("encrypted"):
        monkeypatch.setenv(VARIABLE, new_key())
    if place.endswith("folder"):
        monkeypatch.setenv("ROTA_TEST_BLOBS", f"file://{tmp_path}/blobs")
    return place


@pytest.fixture
async def harness(
    request: pytest.FixtureRequest, valkey: Server, namespace: str, tmp_path: Path
) -> AsyncIterator[WorkerHarness]:
    if "place" in request.fixturenames:  # it sets the environment of the program
        request.getfixturevalue("place")
    with WorkerHarness(valkey, namespace, tmp_path, module="tests.worker.blobs") as harness:
        yield harness
        await harness.rota.close()


@pytest.fixture
def raw(valkey: Server) -> Iterator[redis.Redis]:
    with valkey.client() as client:
        yield client


def leftovers(raw: redis.Redis, namespace: str, folder: Path) -> list[str]:
    """The blobs in the server and in the folder."""
    files = [path.name for path in folder.glob("blobs/**/*") if path.is_file()]
    return [key.decode() for key in raw.scan_iter(f"*{namespace}*blob*")] + files


def files_below(folder: Path) -> list[bytes]:
    """The content of the blobs in the folder."""
    return [path.read_bytes() for path in folder.glob("blobs/**/*") if path.is_file()]


def kill_producer(valkey: Server, namespace: str) -> None:
    """Runs a program that enqueues a job with a blob, and is killed when the blob has been stored."""
    environment = {**os.environ, "ROTA_URL": valkey.url, "ROTA_TEST_NAMESPACE": namespace}
    ended = subprocess.run([sys.executable, "-c", KILLED], cwd=ROOT, env=environment, timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL


async def sweep(rota: Rota) -> None:
    """Does what the janitor of a worker does now and then."""
    external = sessions_of(rota).blobs
    store = session_of(rota).store
    await RetentionJanitor(store, ["default"], blobs=external.url if external else "").sweep("default")


@pytest.mark.usefixtures("place")
async def test_handlers_read_blobs_and_nothing_is_left_of_a_deleted_job(
    harness: WorkerHarness, raw: redis.Redis, namespace: str, tmp_path: Path
) -> None:
    await harness.start()
    file = tmp_path / "talk.bin"
    file.write_bytes(DATA)
    tasks = harness.program

    jobs: list[Job[object]] = [
        await tasks.digest.enqueue(Blob.from_file(file), note="x"),
        await tasks.digest.enqueue(Blob(b"")),
        await tasks.save.enqueue(Blob(DATA), str(tmp_path)),
        await tasks.length.enqueue([Blob(DATA), Blob(b"abc")]),
    ]

    assert [await job.result(30) for job in jobs] == [
        [hashlib.sha256(DATA).hexdigest(), len(DATA), "talk.bin", "x"],
        [hashlib.sha256(b"").hexdigest(), 0, "", ""],
        len(DATA),
        len(DATA) + 3,
    ]
    assert (tmp_path / "saved").read_bytes() == DATA
    stored = leftovers(raw, namespace, tmp_path)
    assert stored
    assert len((await jobs[0].refresh()).arguments) < 500
    for job in jobs:
        await job.delete()
    await sweep(harness.rota)
    assert leftovers(raw, namespace, tmp_path) == []


async def test_an_encrypted_blob_is_not_stored_as_it_is(
    valkey: Server, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raw: redis.Redis
) -> None:
    monkeypatch.setenv(VARIABLE, new_key())
    async with Rota(valkey.url, namespace=namespace, blobs=f"file://{tmp_path}/blobs") as rota:

        @rota.task
        async def read(blob: Blob) -> None: ...

        await read.enqueue(Blob(b"secret of the house"))

    assert [b"secret" in content for content in files_below(tmp_path)] == [False]


async def test_a_failure_handler_reads_the_blob_of_the_job_that_failed(harness: WorkerHarness) -> None:
    await harness.start()

    job = await harness.program.refuse.enqueue(Blob(b"content"))

    with pytest.raises(JobFailed, match="refused"):
        await job.result(30)
    (failure,) = (await harness.rota.jobs(queue="default-fail")).jobs
    assert await harness.rota.job(str(failure.ref)).result(30) == "refused: content"


KILLED = """
import asyncio, os, signal
from rota import Blob
from rota.store.blob_store import BlobStore
from tests.worker import blobs

class Killed(Exception): ...

append, reserve = BlobStore.append, BlobStore.reserve

async def append_then_die(self, *args):
    await append(self, *args)
    os.kill(os.getpid(), signal.SIGKILL)

async def reserve_then_die(self, *args, calls=[]):
    await reserve(self, *args)
    calls.append(1)
    if len(calls) == 2:
        os.kill(os.getpid(), signal.SIGKILL)

BlobStore.append, BlobStore.reserve = append_then_die, reserve_then_die
asyncio.run(blobs.digest.enqueue(Blob(b"x" * 1_000_000)))
"""


@pytest.mark.parametrize("place", ["server", "folder"], indirect=True)
async def test_a_producer_that_is_killed_after_the_upload_leaves_no_blobs(
    harness: WorkerHarness, raw: redis.Redis, valkey: Server, namespace: str, tmp_path: Path, place: str
) -> None:
    kill_producer(valkey, namespace)

    (stored, *rest) = leftovers(raw, namespace, tmp_path)
    if place == "server":
        assert rest == []
        assert 0 < int(raw.pttl(stored)) <= BLOB_UNTAKEN_MS
        raw.pexpire(stored, 1)
        await eventually(lambda: leftovers(raw, namespace, tmp_path) == [])
    else:
        keys = session_of(harness.rota).keys
        key = keys.queue("default", "external_blobs")
        for member, _ in raw.zscan_iter(key):
            raw.zadd(key, {member: 0})
        await sweep(harness.rota)
        assert leftovers(raw, namespace, tmp_path) == []
    assert (await harness.rota.jobs()).jobs == []


async def test_refused_enqueues_leave_no_blobs(
    harness: WorkerHarness, raw: redis.Redis, namespace: str, tmp_path: Path
) -> None:
    digest = harness.program.digest.using(id="a", on_same_id=Reject())
    first = await digest.enqueue(Blob(b"first"))
    before = leftovers(raw, namespace, tmp_path)

    with pytest.raises(IdInUse):
        await digest.enqueue(Blob(b"second"))
    call = harness.program.digest.call(Blob(b"third"))
    await harness.rota.enqueue(call)
    with pytest.raises(InvalidArguments, match=r"create the call again with task\.call"):
        await harness.rota.enqueue(call)

    assert len(leftovers(raw, namespace, tmp_path)) == len(before) + 1
    await first.delete()
    assert await harness.rota.queue("default").purge() == 1
    assert leftovers(raw, namespace, tmp_path) == []


async def test_misuse_of_blobs_is_refused_before_anything_is_stored(harness: WorkerHarness, tmp_path: Path) -> None:
    tasks = harness.program
    changing = tmp_path / "changing"
    changing.write_bytes(b"1234")
    blob = Blob.from_file(changing)
    changing.write_bytes(b"12")

    with pytest.raises(InvalidArguments, match="the file was changed"):
        await tasks.digest.enqueue(blob)
    with pytest.raises(InvalidArguments, match=r"takes a Blob: pass Blob\(data\)"):
        await tasks.digest.enqueue("not a blob")
    with pytest.raises(InvalidArguments, match=r"Expected `str`.*note"):
        await tasks.digest.enqueue(Blob(b""), note=Blob(b""))
    with pytest.raises(PayloadTooLarge, match="the limit is 67,108,864"):
        await tasks.digest.enqueue(Blob(bytes(MAX_STORED_BYTES + 1)))
    with pytest.raises(InvalidArguments, match="at most 16 blobs"):
        await tasks.length.enqueue([Blob(b"")] * 17)
    with pytest.raises(InvalidJob, match="a step of a workflow cannot have a Blob"):
        harness.rota.workflow("w").step(tasks.digest.call(Blob(b"")))
    with pytest.raises(InvalidJob, match="a schedule cannot have a Blob"):
        await harness.rota.schedules.put("s", Every(60), tasks.digest.call(Blob(b"")))
    with pytest.raises(InvalidArguments, match="only be given to a parameter of type Blob"):
        await (await tasks.count.enqueue(1)).update(args=[Blob(b"")])
    with pytest.raises(InvalidOption, match="blobs"):
        Rota(blobs=5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigurationError, match="nonsense"):
        Rota(blobs="nonsense://x/y")
    with pytest.raises(TypeError, match=r"Blob\.from_file\(path\)"):
        Blob("talk.mp4")  # pyright: ignore[reportArgumentType]

    assert [job.task for job in (await harness.rota.jobs()).jobs] == ["count"]


async def test_a_copy_of_the_arguments_does_not_give_access_to_the_blob_of_another_job(harness: WorkerHarness) -> None:
    await harness.start()
    job = await harness.program.digest.enqueue(Blob(b"private"))
    await job.result(30)
    copied = NewJob("", 0, "", "", encode_body(DEFAULT_OPTIONS, "digest", (await job.refresh()).arguments))

    (forged,) = await session_of(harness.rota).store.enqueue("default", [copied])

    with pytest.raises(JobFailed, match="copied from another job"):
        await harness.rota.job(f"default:{forged.id}").result(30)


def test_a_task_that_is_called_directly_reads_the_blob_that_it_is_given(tmp_path: Path) -> None:
    blob = Blob(b"abc", name="a.txt")

    assert (blob.read_sync(), blob.size, blob.name) == (b"abc", 3, "a.txt")
    blob.save_sync(tmp_path / "copy")
    assert Blob.from_file(tmp_path / "copy").read_sync() == b"abc"
    assert issubclass(BlobNotFound, LookupError)


async def test_an_isolated_test_leaves_no_blobs_in_the_store_of_the_user(
    valkey: Server, tmp_path: Path, namespace: str
) -> None:
    rota = Rota(valkey.url, namespace=namespace, blobs=f"file://{tmp_path}/blobs")

    @rota.task
    async def read(blob: Blob) -> int:
        return len(await blob.read())

    async with isolated(rota, valkey.url):
        job = await read.enqueue(Blob(DATA))
        await run_jobs(rota)
        assert await job.result(30) == len(DATA)
        assert files_below(tmp_path) == [DATA]

    assert files_below(tmp_path) == []
