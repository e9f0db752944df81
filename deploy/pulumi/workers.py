"""Workers, and the autoscaler that launches and ends them."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws
from machines import create_machine, create_worker_template, rota_startup
from network import Network
from permissions import WORKER_TAG, create_role, reads_secrets, scales_workers
from settings import URL_PARAMETER, Settings


def create_workers(settings: Settings, network: Network, url: aws.ssm.Parameter) -> aws.ec2.LaunchTemplate:
    """Creates the template of workers and the autoscaler. The autoscaler launches the first worker."""
    worker_role, worker_profile = create_role("worker", reads_secrets(url.arn))
    template = create_worker_template(
        settings, rota_startup(settings, "worker", URL_PARAMETER), worker_profile, network.groups.worker, WORKER_TAG
    )

    _, profile = create_role("autoscaler", scales_workers(template, network.private, worker_role, url.arn))
    script = pulumi.Output.all(template.id, *[subnet.id for subnet in network.private]).apply(
        lambda values: rota_startup(
            settings,
            "autoscale",
            URL_PARAMETER,
            AWS_REGION=settings.region,
            LAUNCH_TEMPLATE_ID=values[0],
            SUBNET_IDS=",".join(values[1:]),
            ROTA_AUTOSCALE_PROVIDER="ec2",
            ROTA_AUTOSCALE_MIN=str(settings.min_workers),
            ROTA_AUTOSCALE_MAX=str(settings.max_workers),
        )
    )
    create_machine(
        "autoscaler", script, profile, network.private[0], network.groups.autoscaler, instance_type="t3.micro"
    )
    return template
