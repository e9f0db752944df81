"""Nothing reads the worker's stderr: a full pipe stops neither heartbeats nor the end of the worker."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import cast

import pytest

from tests.eventually import eventually
from tests.worker.harness import WorkerHarness


@pytest.fixture
def full_pipe() -> Iterator[tuple[int, int]]:
    """A pipe that takes not one byte more: its read and its write end."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    with suppress(BlockingIOError):
        while True:
            os.write(write_end, b"x" * 4096)
    with suppress(BlockingIOError):
        while True:
            os.write(write_end, b"x")
    os.set_blocking(write_end, True)  # as the worker's own stderr is
    yield read_end, write_end
    os.close(read_end)
    os.close(write_end)


async def test_a_worker_whose_stderr_is_not_read_runs_jobs_renews_leases_and_stops(
    harness: WorkerHarness, full_pipe: tuple[int, int]
) -> None:
    """It blocked in write(2): its leases ran out, its jobs ran elsewhere too, and SIGTERM had no effect."""
    _, write_end = full_pipe
    worker = harness.launch(output=write_end)
    await harness.registered(worker)
    job = await harness.program.wait.enqueue("held")
    await harness.noted("held")

    assert await (await harness.program.add_in_process.enqueue(1, 2)).result(20) == 3
    other = await harness.start()
    deadline_key = harness.key("processing")
    with harness.redis() as client:
        (run,) = cast("list[bytes]", client.zrange(deadline_key, 0, -1))
        first = client.zscore(deadline_key, run)
        await eventually(lambda: (client.zscore(deadline_key, run) or 0) > (first or 0) + 4_500, 20)
    worker.terminate()
    harness.allow("held")

    assert await job.result(20) == "held"
    assert await worker.ended(20) == 0
    assert harness.notes("held") == ["begin", "end"]
    assert other.is_alive


async def test_lines_that_do_not_fit_are_counted_and_written_once_stderr_is_read(
    harness: WorkerHarness, full_pipe: tuple[int, int]
) -> None:
    """The bound is 4 MiB; here it is 2 kB."""
    read_end, write_end = full_pipe
    worker = harness.launch(output=write_end, hook="small_log_buffer")
    await harness.registered(worker)
    for number in range(50):
        assert await (await harness.program.add.enqueue(number, 1)).result(20) == number + 1

    written = b""
    os.set_blocking(read_end, False)

    def read_on() -> bool:
        nonlocal written
        with suppress(BlockingIOError):
            written += os.read(read_end, 2**20)
        return b"log lines were dropped: stderr was not read" in written

    await eventually(read_on, 20)
    worker.terminate()
    assert await worker.ended(20) == 0
