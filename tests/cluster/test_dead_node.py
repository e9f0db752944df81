"""One node of a cluster is gone: the queues of the other nodes go on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis.crc import key_slot

from tests.cluster.conftest import APP, QUEUES
from tests.cluster.nodes import Cluster
from tests.eventually import eventually
from tests.worker.harness import Stopwatch, WorkerHarness


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    """One whose nodes serve their slots although those of another node are not served."""
    with Cluster(cluster_require_full_coverage="no") as cluster:
        yield cluster


@pytest.mark.parametrize("how", ["pause", "kill"])
async def test_the_queues_of_healthy_nodes_go_on_when_a_node_is_gone(
    own_cluster: Cluster, namespace: str, tmp_path: Path, how: str
) -> None:
    home = own_cluster.node_of(key_slot(b"~"))
    lost = next(queue for queue in QUEUES if own_cluster.node_of(key_slot(queue.encode())) is not home)
    node = own_cluster.node_of(key_slot(lost.encode()))
    well = [queue for queue in QUEUES if queue != lost]
    with WorkerHarness(own_cluster, namespace, tmp_path, APP) as harness:
        worker = await harness.start(queues=",".join([lost, *well]))
        for queue in QUEUES:
            assert await (await harness.program.add.using(queue=queue).enqueue(1, 2)).result(20) == 3

        node.pause() if how == "pause" else node.kill()
        await eventually(lambda: "does not answer" in worker.log, 20)
        worst = 0.0
        for number in range(10):
            for queue in well:
                watch = Stopwatch()
                job = await harness.program.add.using(queue=queue).enqueue(number, 1)
                assert await job.result(20) == number + 1
                worst = max(worst, watch.seconds)
        print(f"the slowest of 20 jobs took {worst:.2f} s")

        node.resume() if how == "pause" else node.start()
        own_cluster.until_well()

        async def runs_again() -> bool:
            return await (await harness.program.add.using(queue=lost).enqueue(2, 2)).result(20) == 4

        await eventually(runs_again, 30)
        await harness.rota.close()
