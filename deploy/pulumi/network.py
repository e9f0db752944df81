"""The network: two availability zones, each with a public and a private subnet, and the security groups."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi_aws as aws
import settings as fixed
from pulumi import Input

EVERYWHERE = "0.0.0.0/0"


@dataclass(frozen=True)
class Network:
    """Only the load balancer is in the public subnets. Machines reach the internet through a NAT gateway."""

    vpc: aws.ec2.Vpc
    public: list[aws.ec2.Subnet]
    private: list[aws.ec2.Subnet]
    groups: SecurityGroups


@dataclass(frozen=True)
class SecurityGroups:
    """One group for each role."""

    balancer: aws.ec2.SecurityGroup
    server: aws.ec2.SecurityGroup
    worker: aws.ec2.SecurityGroup
    autoscaler: aws.ec2.SecurityGroup
    monitoring: aws.ec2.SecurityGroup
    store: aws.ec2.SecurityGroup


def create_network() -> Network:
    """Creates network, subnets, routes and security groups."""
    zones = aws.get_availability_zones(state="available").names
    vpc = aws.ec2.Vpc("rota", cidr_block=fixed.NETWORK, enable_dns_hostnames=True, tags={"Name": "rota"})
    public = [_subnet(vpc, "public", n, zones[n], fixed.PUBLIC_RANGES[n]) for n in range(2)]
    private = [_subnet(vpc, "private", n, zones[n], fixed.PRIVATE_RANGES[n]) for n in range(2)]

    gateway = aws.ec2.InternetGateway("rota", vpc_id=vpc.id)
    address = aws.ec2.Eip("nat", domain="vpc")
    nat = aws.ec2.NatGateway("rota", subnet_id=public[0].id, allocation_id=address.id)
    _route("public", vpc, public, gateway_id=gateway.id)
    _route("private", vpc, private, nat_gateway_id=nat.id)
    return Network(vpc, public, private, _security_groups(vpc))


def _subnet(vpc: aws.ec2.Vpc, kind: str, number: int, zone: str, addresses: str) -> aws.ec2.Subnet:
    name = f"{kind}-{number}"
    return aws.ec2.Subnet(
        name, vpc_id=vpc.id, availability_zone=zone, cidr_block=addresses, tags={"Name": f"rota-{name}"}
    )


def _route(name: str, vpc: aws.ec2.Vpc, subnets: list[aws.ec2.Subnet], **target: Input[str]) -> None:
    table = aws.ec2.RouteTable(name, vpc_id=vpc.id, routes=[{"cidr_block": EVERYWHERE, **target}])
    for number, subnet in enumerate(subnets):
        aws.ec2.RouteTableAssociation(f"{name}-{number}", subnet_id=subnet.id, route_table_id=table.id)


def _security_groups(vpc: aws.ec2.Vpc) -> SecurityGroups:
    groups = SecurityGroups(
        *(
            aws.ec2.SecurityGroup(role, vpc_id=vpc.id, description=f"Rota: {role}", tags={"Name": f"rota-{role}"})
            for role in SecurityGroups.__annotations__
        )
    )
    for role in SecurityGroups.__annotations__:
        group = getattr(groups, role)
        aws.vpc.SecurityGroupEgressRule(
            f"{role}-out", security_group_id=group.id, ip_protocol="-1", cidr_ipv4=EVERYWHERE
        )

    # The only port that is open to the world.
    aws.vpc.SecurityGroupIngressRule(
        "balancer-https",
        security_group_id=groups.balancer.id,
        ip_protocol="tcp",
        from_port=443,
        to_port=443,
        cidr_ipv4=EVERYWHERE,
    )
    _allow(groups.balancer, groups.server, fixed.SERVER_PORT, "balancer-server")
    _allow(groups.monitoring, groups.server, fixed.SERVER_PORT, "monitoring-server")
    _allow(groups.monitoring, groups.worker, fixed.METRICS_PORT, "monitoring-worker")
    for role in ("server", "worker", "autoscaler"):
        _allow(getattr(groups, role), groups.monitoring, fixed.TRACES_PORT, f"{role}-traces")
    for role in ("server", "worker", "autoscaler", "monitoring", "store"):
        _allow(getattr(groups, role), groups.store, fixed.VALKEY_PORT, f"{role}-valkey")
        _allow(getattr(groups, role), groups.store, fixed.SENTINEL_PORT, f"{role}-sentinel")
        # The third sentinel is on the monitoring host.
        _allow(getattr(groups, role), groups.monitoring, fixed.SENTINEL_PORT, f"{role}-third-sentinel")
    return groups


def _allow(source: aws.ec2.SecurityGroup, target: aws.ec2.SecurityGroup, port: int, name: str) -> None:
    aws.vpc.SecurityGroupIngressRule(
        name,
        security_group_id=target.id,
        referenced_security_group_id=source.id,
        ip_protocol="tcp",
        from_port=port,
        to_port=port,
    )
