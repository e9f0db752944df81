"""`rota.testing` on a cluster: a namespace of its own, of which nothing is left, and a worker inside the process."""

from __future__ import annotations

from rota import Rota
from rota.testing import isolated, run_jobs
from tests.cluster.conftest import QUEUES
from tests.cluster.nodes import Cluster


async def test_jobs_run_within_the_test_and_leave_nothing(cluster: Cluster) -> None:
    rota = Rota()

    @rota.task
    async def double(number: int) -> int:
        return 2 * number

    async with isolated(rota, cluster.url):
        jobs = [await double.using(queue=queue).enqueue(place) for place, queue in enumerate(QUEUES)]
        assert await run_jobs(rota) == 3
        assert [await job.result(5) for job in jobs] == [0, 2, 4]
        namespace = rota.namespace

    for node in cluster.nodes:
        with node.client() as client:
            assert not list(client.scan_iter(match=f"{namespace}:*"))
