"""The monitoring host: collector, Tempo, Prometheus and Grafana, and the third sentinel."""

from __future__ import annotations

import json

import pulumi
import pulumi_aws as aws
from machines import HERE, create_machine, startup
from network import Network
from permissions import create_role
from settings import MONITORING_ADDRESS, TOKEN_PARAMETER, Settings
from store import sentinel_startup


def create_monitoring(
    settings: Settings, network: Network, password: aws.ssm.Parameter, token: aws.ssm.Parameter
) -> aws.ec2.Instance:
    """Creates the host. No port of it is open to the world: reach Grafana with Session Manager's port forwarding."""
    bucket = aws.s3.Bucket("configuration")
    aws.s3.BucketPublicAccessBlock(
        "configuration",
        bucket=bucket.id,
        block_public_acls=True,
        block_public_policy=True,
        ignore_public_acls=True,
        restrict_public_buckets=True,
    )
    archive = aws.s3.BucketObject(
        "configuration",
        bucket=bucket.id,
        key="deploy.zip",
        source=pulumi.AssetArchive(
            {
                name: (pulumi.FileArchive if (HERE.parent / name).is_dir() else pulumi.FileAsset)(
                    str(HERE.parent / name)
                )
                for name in ("compose.yaml", "otel", "prometheus", "grafana")
            }
        ),
    )
    policy = pulumi.Output.all(bucket.arn, archive.key, password.arn, token.arn).apply(_policy)
    _, profile = create_role("monitoring", policy)
    script = pulumi.Output.all(bucket.bucket, archive.key).apply(lambda values: _script(settings, *values))
    return create_machine(
        "monitoring",
        script,
        profile,
        network.private[0],
        network.groups.monitoring,
        address=MONITORING_ADDRESS,
        disk_gb=50,
    )


def _script(settings: Settings, bucket: str, key: str) -> str:
    parts = [
        startup(
            "monitoring",
            REGION=settings.region,
            ARCHIVE=f"s3://{bucket}/{key}",
            ADDRESS=MONITORING_ADDRESS,
            TOKEN_PARAMETER=TOKEN_PARAMETER,
        )
    ]
    if settings.store == "ec2":
        parts.insert(0, sentinel_startup(settings, MONITORING_ADDRESS))
    return "\n".join(parts)


def _policy(values: list[str]) -> str:
    bucket, key, *secrets = values
    statements = [
        {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": f"{bucket}/{key}"},
        {"Effect": "Allow", "Action": ["ssm:GetParameter"], "Resource": secrets},
        # Prometheus finds workers by their tag; AWS allows no narrower resource.
        {"Effect": "Allow", "Action": ["ec2:DescribeInstances", "ec2:DescribeAvailabilityZones"], "Resource": "*"},
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements})
