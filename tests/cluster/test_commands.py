"""`rota` at a cluster: the doctor looks at every node, and commands find each queue where it lives."""

from __future__ import annotations

from rota import Rota
from rota.monitoring.doctor import examine
from tests.cli.driver import Cli
from tests.cluster.conftest import QUEUES
from tests.cluster.nodes import Cluster
from tests.worker.harness import WorkerHarness


def test_the_doctor_finds_a_cluster_fit(cli: Cli, cluster: Cluster) -> None:
    findings = {finding["check"]: finding for finding in cli.json("doctor")["findings"]}

    assert findings["server"]["level"] == "ok"
    assert findings["permissions"]["level"] == "ok"
    assert "always" in findings["append-only file"]["message"]
    assert findings["version"]["message"].startswith("Valkey")


async def test_the_doctor_sees_what_is_wrong_with_any_node(cluster: Cluster, namespace: str) -> None:
    rota = Rota(cluster.url, namespace=namespace)
    for node in cluster.nodes:
        with node.client() as client:
            client.config_set("appendfsync", "no")
            client.config_set("maxmemory-policy", "allkeys-lru")
            try:
                findings = {finding.check: finding for finding in await examine(rota)}
            finally:
                client.config_set("appendfsync", "always")
                client.config_set("maxmemory-policy", "noeviction")

        assert "appendfsync no" in findings["append-only file"].message
        assert "allkeys-lru" in findings["memory"].message
    assert not [finding for finding in await examine(rota) if finding.level == "fail"]
    await rota.close()


def test_jobs_are_enqueued_shown_run_and_listed(cli: Cli) -> None:
    for queue in QUEUES:
        job = cli.json("enqueue", "add", "1", "2", "--app", "tasks:rota", "--queue", queue)["id"]
        assert cli.json("job", "show", job)["state"] == "pending"
    assert {entry["name"] for entry in cli.json("queue", "list")["queues"]} >= set(QUEUES)
    cli.run("worker", "tasks:rota", "--queues", ",".join(QUEUES), "--burst")

    listed = cli.json("job", "list", "--state", "completed")["jobs"]
    assert sorted(job["id"].partition(":")[0] for job in listed) == sorted(QUEUES)


async def test_a_worker_warns_of_nothing_on_a_cluster_that_is_well(harness: WorkerHarness) -> None:
    worker = await harness.start(queues=",".join(QUEUES))

    assert "server check" not in worker.log
    worker.terminate()
    assert await worker.ended() == 0
    assert "Unclosed" not in worker.log
    assert "Traceback" not in worker.log
