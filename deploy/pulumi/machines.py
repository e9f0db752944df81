"""Machines and the scripts that run at their first boot."""

from __future__ import annotations

import base64
import shlex
from pathlib import Path
from typing import Final

import pulumi
import pulumi_aws as aws
from settings import MONITORING_ADDRESS, TRACES_PORT, Settings

HERE: Final = Path(__file__).parent
#: Debian publishes the ids of its images under this name.
IMAGE_PARAMETER: Final = "/aws/service/debian/release/trixie/latest/amd64"


def image() -> str:
    """The id of the newest Debian image of the region."""
    return aws.ssm.get_parameter(name=IMAGE_PARAMETER).value


def startup(script: str, **variables: str) -> str:
    """A script of the folder startup/, preceded by the variables that it uses."""
    values = "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items())
    return f"#!/usr/bin/env bash\n{values}{(HERE / 'startup' / f'{script}.sh').read_text(encoding='utf-8')}"


def rota_startup(settings: Settings, unit: str, url_parameter: str, **environment: str) -> str:
    """The script that starts one program of Rota: `server`, `worker` or `autoscale`."""
    traces = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{MONITORING_ADDRESS}:{TRACES_PORT}"}
    return startup(
        "rota",
        UNIT=unit,
        PACKAGE=settings.package,
        APP=settings.app,
        REGION=settings.region,
        URL_PARAMETER=url_parameter,
        EXTRA_ENVIRONMENT="\n".join(f"{name}={value}" for name, value in (traces | environment).items()),
        SERVICE=(HERE.parent / "systemd" / f"rota-{unit}.service").read_text(encoding="utf-8"),
    )


def create_machine(
    name: str,
    script: pulumi.Input[str],
    profile: aws.iam.InstanceProfile,
    subnet: aws.ec2.Subnet,
    group: aws.ec2.SecurityGroup,
    *,
    instance_type: str = "t3.small",
    address: str | None = None,
    disk_gb: int = 20,
) -> aws.ec2.Instance:
    """Creates a machine in a private subnet. It is replaced when its script changes."""
    return aws.ec2.Instance(
        name,
        ami=image(),
        instance_type=instance_type,
        subnet_id=subnet.id,
        private_ip=address,
        vpc_security_group_ids=[group.id],
        iam_instance_profile=profile.name,
        user_data=script,
        user_data_replace_on_change=True,
        metadata_options={"http_tokens": "required"},
        root_block_device={"volume_size": disk_gb, "volume_type": "gp3", "encrypted": True},
        tags={"Name": f"rota-{name}", "Role": name},
        # The newest image is for new machines: it must not replace those that hold data.
        opts=pulumi.ResourceOptions(ignore_changes=["ami"]),
    )


def create_worker_template(
    settings: Settings,
    script: str,
    profile: aws.iam.InstanceProfile,
    group: aws.ec2.SecurityGroup,
    tags: dict[str, str],
) -> aws.ec2.LaunchTemplate:
    """Creates the template from which the autoscaler launches workers."""
    return aws.ec2.LaunchTemplate(
        "worker",
        image_id=image(),
        instance_type=settings.worker_type,
        iam_instance_profile={"arn": profile.arn},
        vpc_security_group_ids=[group.id],
        instance_initiated_shutdown_behavior="terminate",
        metadata_options={"http_tokens": "required"},
        tag_specifications=[{"resource_type": "instance", "tags": {"Name": "rota-worker", **tags}}],
        user_data=base64.b64encode(script.encode()).decode(),
        update_default_version=True,
    )
