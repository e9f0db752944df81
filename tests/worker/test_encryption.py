"""Arguments and results encrypted at rest, with real workers: what the store holds, rotation, missing keys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rota import Cron, Encrypted, InvalidJob, InvalidOption, JobFailed, Rota, Undecryptable, WorkflowFailed
from rota.client.encryption import VARIABLE, new_key
from tests.servers import Server
from tests.stored import read_keys
from tests.worker.harness import WorkerHarness

SECRET = "4111-1111"


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """The key of the program, in the environment."""
    key = new_key()
    monkeypatch.setenv(VARIABLE, key)
    return key


@pytest.fixture
async def harness(key: str, valkey: Server, namespace: str, tmp_path: Path) -> AsyncIterator[WorkerHarness]:
    """Starts workers for the program."""
    assert key
    with WorkerHarness(valkey, namespace, tmp_path, module="tests.worker.encrypted") as harness:
        yield harness
        await harness.rota.close()


def stored(harness: WorkerHarness) -> str:
    """All that the store holds, as text."""
    with harness.redis() as client:
        keys = [key.decode() for key in client.scan_iter(match=f"{harness.namespace}:*", count=1_000)]
        return repr(read_keys(client, keys))


async def test_nothing_of_arguments_and_results_is_readable_in_the_store(harness: WorkerHarness) -> None:
    program = harness.program
    waiting = await program.greet.using(delay=3600).enqueue(f"{SECRET}-waiting")
    await program.rota.schedules.put("nightly", Cron("0 3 * * *"), program.greet.call(f"{SECRET}-nightly"))
    await harness.start(queues="default,default-fail")
    greeted = await program.greet.enqueue(f"{SECRET}-greeted")
    async with program.rota.workflow("greetings") as flow:
        first = flow.step(program.greet.call(f"{SECRET}-first"))
        second = flow.step(program.greet.call(f"{SECRET}-second"))
        flow.step(program.join.call(first.result, second.result, note=f" {SECRET}-note"))
    failed = await program.refuse.enqueue(f"{SECRET}-card")

    assert await greeted.result(timeout=30) == f"hello {SECRET}-greeted"
    assert await flow.result(timeout=30) == f"hello {SECRET}-first and hello {SECRET}-second {SECRET}-note"
    with pytest.raises(JobFailed):
        await failed.result(timeout=30)
    handler = program.rota.job((await failed.history())[-1].note)
    assert await handler.result(timeout=30) == f'refused: {SECRET}-card ["{SECRET}-card"]'
    assert (await waiting.refresh()).arguments == f'["{SECRET}-waiting"]'.encode()
    assert (await program.rota.schedules.get("nightly")).args == (f"{SECRET}-nightly",)
    assert SECRET not in stored(harness)
    assert stored(harness).count("rota:encrypted:1:") > 8


async def test_a_compensation_gets_the_result_of_its_step(harness: WorkerHarness) -> None:
    program = harness.program
    await harness.start()
    async with program.rota.workflow("undone") as flow:
        greeted = flow.step(program.greet.call(SECRET))
        greeted.undo(program.join.call(greeted.result, "goodbye"))
        flow.step(program.refuse.call("card"), after=[greeted])

    with pytest.raises(WorkflowFailed):
        await flow.result(timeout=30)

    undo = program.rota.job(f"default:{flow.id}.undo.0")
    assert await undo.result(timeout=30) == f"hello {SECRET} and goodbye"
    assert SECRET not in stored(harness)


async def test_keys_are_rotated_while_jobs_wait(harness: WorkerHarness, key: str) -> None:
    program, newer = harness.program, new_key()
    old = await program.greet.enqueue("old")
    both = {VARIABLE: f"{newer},{key}"}
    producer = Rota(harness.server.url, namespace=harness.namespace, codec=Encrypted([newer, key]))
    sent = await producer.enqueue(producer.task(program.greet.function).call("new"))

    await harness.start(environment=both)

    assert await producer.job(old.id).result(timeout=30) == "hello old"
    assert await sent.result(timeout=30) == "hello new"
    # The old key can be removed once no value needs it: this result was encrypted with the new one.
    only = Rota(harness.server.url, namespace=harness.namespace, codec=Encrypted([newer]))
    assert await only.job(old.id).result(timeout=30) == "hello old"
    await producer.close()
    await only.close()


async def test_a_worker_without_the_key_fails_the_job_and_keeps_it(harness: WorkerHarness, key: str) -> None:
    job = await harness.program.greet.using(retry=1).enqueue(SECRET)
    worker = await harness.start(environment={VARIABLE: new_key()})

    with pytest.raises(JobFailed, match="which this program does not have"):
        await job.result(timeout=30)

    worker.close()
    await harness.start(environment={VARIABLE: key})
    await job.redrive()
    assert await job.result(timeout=30) == f"hello {SECRET}"


async def test_a_program_without_keys_keeps_what_is_encrypted(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = harness.program
    job = await program.greet.using(delay=3600).enqueue(SECRET)
    await program.rota.schedules.put("nightly", Cron("0 3 * * *"), program.greet.call(SECRET))
    monkeypatch.delenv(VARIABLE)
    other = Rota(harness.server.url, namespace=harness.namespace)
    handle = other.job(job.id)
    before = (await handle.refresh()).arguments
    shown = (await other.schedules.get("nightly")).kwargs

    await handle.update(priority="high")
    await handle.update(kwargs=shown)  # a form that sends back what it shows
    with pytest.raises(InvalidOption, match="set ROTA_ENCRYPTION_KEYS"):
        await handle.update(args=["x"])
    await other.schedules.change("nightly", kwargs=shown, misfire="skip")
    with pytest.raises(InvalidOption, match="set ROTA_ENCRYPTION_KEYS"):
        await other.schedules.change("nightly", args=["x"])

    assert b"rota:encrypted:1:" in before
    assert list(shown) == ["encrypted"]
    assert (await handle.refresh()).arguments == before
    record = await job.refresh()
    assert record.arguments == f'["{SECRET}"]'.encode()
    assert record.options.priority != 0
    assert (await program.rota.schedules.get("nightly")).args == (SECRET,)
    await other.close()


async def test_a_program_with_the_key_changes_arguments(harness: WorkerHarness) -> None:
    job = await harness.program.greet.using(delay=3600).enqueue("first")

    await job.update(args=[SECRET], priority="high")
    await job.update(priority="low")

    assert (await job.refresh()).arguments == f'["{SECRET}"]'.encode()
    assert SECRET not in stored(harness)


async def test_values_that_were_copied_between_jobs_are_refused(harness: WorkerHarness) -> None:
    program = harness.program
    await harness.start()
    jobs = [await program.greet.enqueue(name) for name in ("ada", "bob")]
    for job in jobs:
        await job.result(timeout=30)
    with harness.redis() as client:
        key = harness.key("results")
        first, second = (job.ref.run for job in jobs)
        client.hset(key, first, client.hget(key, second) or b"")

    with pytest.raises(Undecryptable, match="it was copied"):
        await jobs[0].result(timeout=30)


async def test_a_map_over_a_list_is_refused(harness: WorkerHarness) -> None:
    program = harness.program
    with pytest.raises(InvalidJob, match="cannot be used with encryption"):
        async with program.rota.workflow("map") as flow:
            flow.map(program.greet, flow.step(program.greet.call("x")).result)


async def test_plain_values_of_before_are_still_read(
    harness: WorkerHarness, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE)
    plain = Rota(harness.server.url, namespace=harness.namespace)
    job = await plain.enqueue(plain.task(harness.program.greet.function).call("plain"))
    await harness.start(environment={VARIABLE: key})

    assert await harness.rota.job(job.id).result(timeout=30) == "hello plain"
    await plain.close()


async def test_a_result_that_looks_encrypted_is_read_as_it_was_returned(harness: WorkerHarness) -> None:
    await check_marked_results(harness)


async def test_without_keys_a_result_that_looks_encrypted_is_read_as_it_was_returned(
    valkey: Server, namespace: str, tmp_path: Path
) -> None:
    with WorkerHarness(valkey, namespace, tmp_path, module="tests.worker.encrypted") as harness:
        texts = await check_marked_results(harness)
        program = harness.program
        async with program.rota.workflow("each") as flow:
            flow.map(program.marked, flow.step(program.marked.call()).result)

        assert await flow.result(timeout=30) == [[*texts[:2], text] for text in texts]
        await harness.rota.close()


async def check_marked_results(harness: WorkerHarness) -> list[str]:
    """Starts a worker and reads results that begin as encrypted values do, also as arguments of another step."""
    program = harness.program
    await harness.start()
    texts = ["rota:encrypted:first", "rota:encrypted:1:2:3:4", ""]
    job = await program.marked.enqueue()
    async with program.rota.workflow("marks") as flow:
        marks = flow.step(program.marked.call())
        flow.step(program.first_of.call(marks.result))

    assert await job.result(timeout=30) == texts
    assert await flow.result(timeout=30) == texts[0]
    return texts
