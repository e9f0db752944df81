"""What a receipt says in a cluster, where each queue has replicas of its own or none."""

from __future__ import annotations

import pytest
import redis
from redis.crc import key_slot

from rota import Rota
from rota.errors import ConfigurationError, StoreUnavailable
from tests.cluster.conftest import QUEUES
from tests.cluster.nodes import Cluster
from tests.eventually import eventually
from tests.servers import new_server

MAIL, PRINT, _ = QUEUES


async def test_replicated_speaks_of_the_node_of_the_queue(own_cluster: Cluster, namespace: str) -> None:
    """One node of three has a replica: what is stored there is replicated, what is stored elsewhere is not."""
    primary = own_cluster.node_of(key_slot(MAIL.encode()))
    with new_server("valkey", tcp=True, cluster_enabled="yes", cluster_node_timeout="1000") as replica:
        with replica.client() as client, primary.client() as its_primary:
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", primary.port)
            name = own_cluster.name_of(primary)
            await eventually(lambda: name.encode() in (client.execute_command("CLUSTER", "NODES") or b""))
            await eventually(lambda: _replicate(client, name))
            await eventually(lambda: its_primary.info("replication")["connected_slaves"] == 1)
            await eventually(lambda: client.info("replication")["master_link_status"] == "up")
        rota = Rota(own_cluster.url, namespace=namespace, durability="replicated")

        @rota.task
        async def noop() -> None: ...

        assert (await noop.using(queue=MAIL).enqueue()).is_new
        with pytest.raises(StoreUnavailable, match="only 0 of 1 replicas"):
            await noop.using(queue=PRINT).enqueue()
        with pytest.raises(StoreUnavailable, match="only 0 of 1 replicas"):
            await rota.enqueue_many([noop.using(queue=MAIL).call(), noop.using(queue=PRINT).call()])

        # The registration of a dependent is with its parent, and the record of a workflow on a third node.
        parent = await noop.using(queue=PRINT, durability="memory").enqueue()
        with pytest.raises(StoreUnavailable, match="only 0 of 1 replicas"):
            await noop.using(queue=MAIL, after=[parent]).enqueue()
        workflow = rota.workflow("order")
        workflow.step(noop.using(queue=MAIL).call())
        with pytest.raises(StoreUnavailable, match="only 0 of 1 replicas"):
            await workflow.commit()
        await rota.close()


async def test_fsynced_speaks_of_the_node_of_the_queue(cluster: Cluster, namespace: str) -> None:
    rota = Rota(cluster.url, namespace=namespace, durability="fsynced")

    @rota.task
    async def noop() -> None: ...

    assert (await noop.using(queue=MAIL).enqueue()).is_new
    await rota.close()
    with cluster.node_of(key_slot(MAIL.encode())).client() as client:
        client.config_set("appendfsync", "everysec")
        try:
            with pytest.raises(ConfigurationError, match="everysec"):
                await noop.using(queue=MAIL).enqueue()
            assert (await noop.using(queue=PRINT).enqueue()).is_new
        finally:
            client.config_set("appendfsync", "always")
    await rota.close()


def _replicate(client: redis.Redis, name: str) -> bool:
    try:
        return bool(client.execute_command("CLUSTER", "REPLICATE", name))
    except redis.ResponseError:  # it has yet to learn who that is
        return False
