"""What each machine may do in AWS: a role with the least permissions that its program needs."""

from __future__ import annotations

import json
from typing import Any, Final

import pulumi
import pulumi_aws as aws

#: The tag by which the autoscaler finds its workers, and without which it may end no machine.
WORKER_TAG: Final = {"Role": "worker"}


def create_role(name: str, policy: pulumi.Output[str]) -> tuple[aws.iam.Role, aws.iam.InstanceProfile]:
    """Creates a role for machines, with this policy and with Session Manager instead of an open SSH port."""
    role = aws.iam.Role(
        name,
        assume_role_policy=json.dumps(
            _document(_allow(["sts:AssumeRole"], None, Principal={"Service": "ec2.amazonaws.com"}))
        ),
        managed_policy_arns=["arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"],
    )
    aws.iam.RolePolicy(name, role=role.id, policy=policy)
    return role, aws.iam.InstanceProfile(name, role=role.name)


def reads_secrets(*arns: pulumi.Input[str]) -> pulumi.Output[str]:
    """A policy for machines that only read secrets: servers, workers and the store."""
    return pulumi.Output.all(*arns).apply(lambda arns: json.dumps(_document(*_reads_secrets(arns))))


def scales_workers(
    template: aws.ec2.LaunchTemplate,
    subnets: list[aws.ec2.Subnet],
    worker_role: aws.iam.Role,
    *secrets: pulumi.Input[str],
) -> pulumi.Output[str]:
    """The policy of the autoscaler: it launches workers from one template, and ends only machines tagged as workers."""

    def document(values: list[Any]) -> str:
        template_arn, role_arn, subnet_arns, secret_arns = values
        from_template = {"ArnEquals": {"ec2:LaunchTemplate": template_arn}}
        is_worker = {"StringEquals": {f"ec2:ResourceTag/{key}": value for key, value in WORKER_TAG.items()}}
        tagged = {"StringEquals": {f"aws:RequestTag/{key}": value for key, value in WORKER_TAG.items()}}
        return json.dumps(
            _document(
                *_reads_secrets(secret_arns),
                # These list machines; AWS allows no narrower resource.
                _allow(["ec2:DescribeInstances", "ec2:DescribeSpotInstanceRequests"], "*"),
                _allow(["ec2:RunInstances"], "arn:aws:ec2:*:*:instance/*", Condition=from_template | tagged),
                _allow(
                    ["ec2:RunInstances"],
                    [
                        template_arn,
                        *subnet_arns,
                        "arn:aws:ec2:*::image/*",
                        "arn:aws:ec2:*:*:network-interface/*",
                        "arn:aws:ec2:*:*:security-group/*",
                        "arn:aws:ec2:*:*:volume/*",
                    ],
                    Condition=from_template,
                ),
                _allow(
                    ["ec2:CreateTags"],
                    ["arn:aws:ec2:*:*:instance/*", "arn:aws:ec2:*:*:volume/*"],
                    Condition={"StringEquals": {"ec2:CreateAction": "RunInstances"}},
                ),
                _allow(["ec2:TerminateInstances"], "arn:aws:ec2:*:*:instance/*", Condition=is_worker),
                _allow(
                    ["iam:PassRole"], role_arn, Condition={"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}
                ),
            )
        )

    return pulumi.Output.all(
        template.arn,
        worker_role.arn,
        pulumi.Output.all(*[subnet.arn for subnet in subnets]),
        pulumi.Output.all(*secrets),
    ).apply(document)


def _reads_secrets(arns: list[str]) -> list[dict[str, Any]]:
    return [_allow(["ssm:GetParameter"], list(arns))]


def _allow(actions: list[str], resource: str | list[str] | None, **more: Any) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": actions, **more}
    return statement if resource is None else {**statement, "Resource": resource}


def _document(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}
