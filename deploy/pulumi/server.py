"""The HTTP API and dashboard behind a load balancer, which has the only address that the world can reach."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws
from machines import create_machine, rota_startup
from network import Network
from permissions import create_role, reads_secrets
from settings import NETWORK, SERVER_PORT, URL_PARAMETER, Settings


def create_server(settings: Settings, network: Network, url: aws.ssm.Parameter) -> pulumi.Output[str]:
    """Creates the server and its load balancer. Returns the balancer's DNS name."""
    _, profile = create_role("server", reads_secrets(url.arn))
    # The balancer's requests come from the network; only they may name a client's address.
    script = rota_startup(settings, "server", URL_PARAMETER, FORWARDED_ALLOW_IPS=NETWORK)
    machine = create_machine("server", script, profile, network.private[0], network.groups.server)

    balancer = aws.lb.LoadBalancer(
        "rota",
        load_balancer_type="application",
        security_groups=[network.groups.balancer.id],
        subnets=[subnet.id for subnet in network.public],
        # Streams of events are silent for up to 15 s.
        idle_timeout=120,
        drop_invalid_header_fields=True,
    )
    target = aws.lb.TargetGroup(
        "rota",
        vpc_id=network.vpc.id,
        port=SERVER_PORT,
        protocol="HTTP",
        health_check={"path": "/healthz", "matcher": "200", "interval": 10},
    )
    aws.lb.TargetGroupAttachment("rota", target_group_arn=target.arn, target_id=machine.id, port=SERVER_PORT)
    aws.lb.Listener(
        "rota",
        load_balancer_arn=balancer.arn,
        port=443,
        protocol="HTTPS",
        certificate_arn=settings.certificate_arn,
        ssl_policy="ELBSecurityPolicy-TLS13-1-2-2021-06",
        default_actions=[{"type": "forward", "target_group_arn": target.arn}],
    )
    return balancer.dns_name
