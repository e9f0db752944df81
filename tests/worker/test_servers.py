"""The same worker on Valkey and on Redis."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from rota import Retry
from tests.eventually import eventually
from tests.servers import Server
from tests.worker.harness import WorkerHarness, failure


@pytest.mark.requirement("S2-9")
async def test_jobs_live_the_same_life_on_every_server(server: Server, namespace: str, tmp_path: Path) -> None:
    """Run, retried, scheduled, cancelled, failed, taken from a dead process, and handed back."""
    with WorkerHarness(server, namespace, tmp_path) as harness:
        worker = await harness.start("--grace", "0.2")
        program = harness.program

        sums = [await task.enqueue(1, 2) for task in (program.add, program.add_in_thread, program.add_in_process)]
        again = await program.fail.using(retry=Retry(attempts=2, backoff=[0.05])).enqueue("ValueError", times=1)
        later = await program.record_run.using(delay=0.3).enqueue("ran", "later")
        expiring = await program.record_run.using(delay=60, expires=0.3).enqueue("ran", "never")
        broken = await program.fail.using(retry=1).enqueue("QuotaError")
        assert [await job.result(10) for job in sums] == [3, 3, 3]
        assert await again.result(10) == "attempt 2"
        await later.result(10)
        assert (await failure(broken)).attributes["code"] == 429
        await harness.until(expiring, "cancelled")

        cancelled = await program.wait.enqueue("cancelled")
        await harness.noted("cancelled")
        await cancelled.cancel("enough")
        await harness.noted("cancelled", 2)

        (runner,) = worker.runners("loop")
        kept = await program.wait.enqueue("kept")
        await harness.noted("kept")
        os.kill(runner, signal.SIGKILL)
        await harness.noted("kept", 2)
        worker.terminate()
        assert await worker.ended() == 0

        await eventually(lambda: harness.notes("kept").count("begin") == 2)
        record = await kept.refresh()
        assert (record.state, record.counts.stalls, record.counts.handbacks) == ("pending", 1, 1)
        counts = await harness.rota.queue().counts()
        expected = {"completed": 5, "failed": 1, "cancelled": 2, "pending": 1}
        assert {state: count for state, count in counts.items() if count} == expected
        await harness.rota.close()
