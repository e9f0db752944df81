"""What handlers depend on: providers, the lifespan, and middleware around enqueue and attempt."""

from __future__ import annotations

import asyncio

import pytest

from rota import InvalidArguments, JobFailed
from tests.worker.crew import Crew


async def test_providers_are_nested_and_cleaned_up_after_the_handler(shared: Crew) -> None:
    job = await shared.program.use_session.enqueue()

    text = await job.result(10)

    assert text.startswith("hello from session of attempt 1 on connection 1")
    assert shared.notes(job.ref.id) == ["session begins", "handler", "session ends"]


async def test_providers_are_cleaned_up_after_a_failure_too(shared: Crew) -> None:
    job = await shared.program.use_session.enqueue(fail=True)

    with pytest.raises(JobFailed):
        await job.result(10)

    assert shared.notes(job.ref.id) == ["session begins", "handler", "session ends"]


async def test_a_provider_of_the_worker_is_made_once_however_many_ask_at_the_same_moment(crew: Crew) -> None:
    await crew.start(concurrency=20)

    jobs = await crew.enqueue_many(crew.program.use_connection.call() for _ in range(20))
    numbers = await asyncio.gather(*(job.result(10) for job in jobs))

    assert set(numbers) == {1}
    assert crew.notes("connection") == ["made 1"]


async def test_lifespan_and_providers_of_the_worker_end_when_it_stops(crew: Crew) -> None:
    """S3-15: start and stop are seen by the program."""
    worker = await crew.start()
    await (await crew.program.use_connection.enqueue()).result(10)

    worker.terminate()
    assert await worker.ended() == 0

    assert crew.notes("lifespan") == ["begin", "end"]
    assert crew.notes("connection") == ["made 1", "closed 1"]


async def test_a_provider_that_raises_fails_the_attempt(shared: Crew) -> None:
    job = await shared.program.use_broken.enqueue()

    with pytest.raises(JobFailed, match="no database"):
        await job.result(10)


async def test_a_parameter_that_the_worker_fills_in_cannot_be_passed(shared: Crew) -> None:
    with pytest.raises(InvalidArguments, match="filled in by the worker"):
        await shared.program.use_connection.enqueue(connection=1)


async def test_middleware_goes_around_attempts_outermost_first(shared: Crew) -> None:
    job = await shared.program.wrapped.enqueue("x")

    assert await job.result(10) == "<[x]>"
    assert shared.notes(job.ref.id) == ["outer begins", "inner begins", "inner ends", "outer ends"]


async def test_middleware_may_refuse_an_enqueue_and_nothing_is_stored(shared: Crew) -> None:
    before = (await shared.rota.queue().info()).totals["run"]

    with pytest.raises(PermissionError):
        await shared.program.forbidden.enqueue()

    assert (await shared.rota.queue().info()).totals["run"] == before
