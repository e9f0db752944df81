"""The Valkey server: a replicated pair with Sentinel on EC2, or a managed service."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws
from machines import create_machine, startup
from network import Network
from permissions import create_role, reads_secrets
from settings import (
    MONITORING_ADDRESS,
    PASSWORD_PARAMETER,
    SENTINEL_PORT,
    VALKEY_ADDRESSES,
    VALKEY_PORT,
    Settings,
)


def create_store(settings: Settings, network: Network, password: aws.ssm.Parameter) -> pulumi.Output[str]:
    """Creates the server that holds all jobs. Returns its URL, password included."""
    if settings.store == "elasticache":
        return _create_elasticache(settings, network)
    if settings.store == "memorydb":
        return _create_memorydb(settings, network)
    return _create_pair(settings, network, password)


def sentinel_startup(settings: Settings, address: str, *units: str) -> str:
    """The script of a host with a sentinel, and perhaps with a Valkey server."""
    return startup(
        "valkey",
        PRIMARY=VALKEY_ADDRESSES[0],
        ADDRESS=address,
        REGION=settings.region,
        PASSWORD_PARAMETER=PASSWORD_PARAMETER,
        UNITS=" ".join([*units, "valkey-sentinel"]),
    )


def _create_pair(settings: Settings, network: Network, password: aws.ssm.Parameter) -> pulumi.Output[str]:
    """A primary and a replica in two availability zones; their sentinels and that of the monitoring host elect."""
    _, profile = create_role("store", reads_secrets(password.arn))
    for number, address in enumerate(VALKEY_ADDRESSES):
        create_machine(
            f"valkey-{number}",
            sentinel_startup(settings, address, "valkey-server"),
            profile,
            network.private[number],
            network.groups.store,
            instance_type="t3.medium",
            address=address,
            disk_gb=50,
        )
    sentinels = ",".join(f"{address}:{SENTINEL_PORT}" for address in (*VALKEY_ADDRESSES, MONITORING_ADDRESS))
    return settings.valkey_password.apply(lambda password: f"redis+sentinel://:{password}@{sentinels}/rota/0")


def _create_elasticache(settings: Settings, network: Network) -> pulumi.Output[str]:
    subnets = aws.elasticache.SubnetGroup("rota", subnet_ids=[subnet.id for subnet in network.private])
    parameters = aws.elasticache.ParameterGroup(
        "rota", family="valkey8", parameters=[{"name": "maxmemory-policy", "value": "noeviction"}]
    )
    group = aws.elasticache.ReplicationGroup(
        "rota",
        description="Jobs of Rota",
        engine="valkey",
        node_type="cache.t4g.small",
        num_cache_clusters=2,
        automatic_failover_enabled=True,
        multi_az_enabled=True,
        parameter_group_name=parameters.name,
        subnet_group_name=subnets.name,
        security_group_ids=[network.groups.store.id],
        transit_encryption_enabled=True,
        at_rest_encryption_enabled=True,
        auth_token=settings.valkey_password,
        port=VALKEY_PORT,
        snapshot_retention_limit=7,
    )
    return _tls_url("", settings, group.primary_endpoint_address)


def _create_memorydb(settings: Settings, network: Network) -> pulumi.Output[str]:
    subnets = aws.memorydb.SubnetGroup("rota", subnet_ids=[subnet.id for subnet in network.private])
    user = aws.memorydb.User(
        "rota",
        user_name="rota",
        access_string="on ~* &* +@all -@dangerous +info +client|setname",
        authentication_mode={"type": "password", "passwords": [settings.valkey_password]},
    )
    acl = aws.memorydb.Acl("rota", user_names=[user.user_name])
    cluster = aws.memorydb.Cluster(
        "rota",
        engine="valkey",
        node_type="db.t4g.small",
        num_shards=1,
        num_replicas_per_shard=1,
        acl_name=acl.name,
        subnet_group_name=subnets.name,
        security_group_ids=[network.groups.store.id],
        tls_enabled=True,
        port=VALKEY_PORT,
        snapshot_retention_limit=7,
    )
    address = cluster.cluster_endpoints.apply(lambda endpoints: endpoints[0].address)
    return pulumi.Output.all(settings.valkey_password, address).apply(
        lambda values: f"rediss+cluster://rota:{values[0]}@{values[1]}:{VALKEY_PORT}"
    )


def _tls_url(user: str, settings: Settings, address: pulumi.Output[str]) -> pulumi.Output[str]:
    return pulumi.Output.all(settings.valkey_password, address).apply(
        lambda values: f"rediss://{user}:{values[0]}@{values[1]}:{VALKEY_PORT}/0"
    )
