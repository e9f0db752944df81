"""Results that cannot be stored."""

from __future__ import annotations

import pytest

from rota import JobFailed
from tests.worker.harness import WorkerHarness


@pytest.mark.parametrize("what", ["object", "set of objects", "recursive", "surrogate", "complex", "lambda"])
async def test_a_result_that_is_not_json_fails_the_job_for_good_and_says_so(shared: WorkerHarness, what: str) -> None:
    job = await shared.program.return_unstorable.enqueue(what)

    with pytest.raises(JobFailed, match="result cannot be stored"):
        await job.result(10)

    record = await job.refresh()
    assert record.error is not None
    assert (record.counts.attempt, record.error.kind) == (1, "permanent")


async def test_a_result_beyond_the_limit_fails_the_job_for_good_and_says_so(shared: WorkerHarness) -> None:
    job = await shared.program.return_unstorable.enqueue("huge")

    with pytest.raises(JobFailed, match="limit is 1,048,576"):
        await job.result(10)

    assert (await job.refresh()).counts.attempt == 1
