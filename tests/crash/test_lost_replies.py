"""Replies that get lost on their way to a worker: the call is sent again, and is the same call."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.eventually import eventually
from tests.servers import OwnServers
from tests.store.proxy import Proxy
from tests.worker.harness import WorkerHarness

#: More than a worker's client sends again by itself: after that the claim/report loop does.
LOST: Final = 12


async def test_a_claim_whose_replies_were_lost_is_sent_again_and_brings_the_same_jobs(
    own_server: OwnServers, namespace: str, tmp_path: Path
) -> None:
    """Under a new number it would bring other jobs, and these would wait for their lease and be charged a stall."""
    server = own_server()
    with WorkerHarness(server, namespace, tmp_path) as harness:
        async with Proxy(server) as proxy:
            worker = await harness.start(environment={"ROTA_URL": proxy.url})
            await harness.rota.queue().pause()
            jobs = await harness.enqueue_many(harness.program.count_run.call(f"job-{number}") for number in range(3))
            await harness.until_waiting(worker, "default")
            proxy.lose_replies(LOST)
            await harness.rota.queue().resume()
            await eventually(lambda: proxy.lost == LOST, 20)

            for number, job in enumerate(jobs):
                assert await job.result(20) == f"job-{number}"
                counts = (await job.refresh()).counts
                assert (counts.attempt, counts.stalls, counts.handbacks) == (1, 0, 0)
        await harness.rota.close()
