"""What handlers depend on: providers, the lifespan, and middleware around enqueue and attempt."""

from __future__ import annotations

import asyncio

import pytest

from rota import InvalidArguments, JobFailed
from tests.worker.harness import WorkerHarness


async def test_providers_are_nested_and_cleaned_up_after_the_handler(shared: WorkerHarness) -> None:
    job = await shared.program.use_session.enqueue()

    text = await job.result(10)

    assert text.startswith("hello from session of attempt 1 on connection 1")
    assert shared.notes(job.ref.id) == ["session begins", "handler", "session ends"]


async def test_providers_are_cleaned_up_after_a_failure_too(shared: WorkerHarness) -> None:
    job = await shared.program.use_session.enqueue(fail=True)

    with pytest.raises(JobFailed):
        await job.result(10)

    assert shared.notes(job.ref.id) == ["session begins", "handler", "session ends"]


async def test_a_provider_of_the_worker_is_made_once_however_many_ask_at_the_same_moment(
    harness: WorkerHarness,
) -> None:
    await harness.start(concurrency=20)

    jobs = await harness.enqueue_many(harness.program.use_connection.call() for _ in range(20))
    numbers = await asyncio.gather(*(job.result(10) for job in jobs))

    assert set(numbers) == {1}
    assert harness.notes("connection") == ["made 1"]


@pytest.mark.requirement("S3-15")
async def test_lifespan_and_providers_of_the_worker_end_when_it_stops(harness: WorkerHarness) -> None:
    """Start and stop are seen by the program."""
    worker = await harness.start()
    await (await harness.program.use_connection.enqueue()).result(10)

    worker.terminate()
    assert await worker.ended() == 0

    assert harness.notes("lifespan") == ["begin", "end"]
    assert harness.notes("connection") == ["made 1", "closed 1"]


async def test_a_provider_that_blocks_does_not_keep_others_from_running(shared: WorkerHarness) -> None:
    """A plain function waits for what another job does on the same event loop."""
    blocking = await shared.program.use_what_blocks.enqueue()
    await shared.program.release_what_blocks.enqueue()

    assert await blocking.result(30) is True


@pytest.mark.parametrize("where", ["in_thread", "in_process", "on_loop"])
async def test_the_plain_functions_of_an_attempt_share_a_thread_and_its_context_variables(
    shared: WorkerHarness, where: str
) -> None:
    job = await getattr(shared.program, f"use_database_{where}").enqueue()

    assert await job.result(30) == f"tenant of {job.ref.id}"
    assert shared.notes(job.ref.id) == ["threads: 1", "closed: none"]


async def test_an_attempt_is_stopped_while_a_provider_runs(shared: WorkerHarness) -> None:
    """The provider is interrupted, and the values made before are closed."""
    job = await shared.program.use_what_never_ends.enqueue()
    await shared.noted(job.ref.id, 1, timeout=30)

    await job.cancel()

    await shared.noted(job.ref.id, 4, timeout=30)
    await shared.until(job, "cancelled")
    assert shared.notes(job.ref.id) == ["counting", "interrupted", "threads: 1", "closed: none"]


async def test_a_provider_that_raises_fails_the_attempt(shared: WorkerHarness) -> None:
    job = await shared.program.use_broken.enqueue()

    with pytest.raises(JobFailed, match="no database"):
        await job.result(10)


async def test_a_parameter_that_the_worker_fills_in_cannot_be_passed(shared: WorkerHarness) -> None:
    with pytest.raises(InvalidArguments, match="filled in by the worker"):
        await shared.program.use_connection.enqueue(connection=1)


async def test_middleware_goes_around_attempts_outermost_first(shared: WorkerHarness) -> None:
    job = await shared.program.wrapped.enqueue("x")

    assert await job.result(10) == "<[x]>"
    assert shared.notes(job.ref.id) == ["outer begins", "inner begins", "inner ends", "outer ends"]


async def test_middleware_may_refuse_an_enqueue_and_nothing_is_stored(shared: WorkerHarness) -> None:
    before = (await shared.rota.queue().info()).totals["run"]

    with pytest.raises(PermissionError):
        await shared.program.forbidden.enqueue()

    assert (await shared.rota.queue().info()).totals["run"] == before
