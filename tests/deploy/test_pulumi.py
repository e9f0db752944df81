"""The AWS stack, built with Pulumi's mocks: no account, no network, every resource recorded.

Pulumi and its AWS package have 270 MB: they are installed by `make test-infra`, not for every contributor.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

pulumi = pytest.importorskip("pulumi", reason="Pulumi is not installed: `make test-infra` installs it")

STACK: Final = Path(__file__).parents[2] / "deploy" / "pulumi"
CONFIG: Final = {
    "aws:region": "eu-central-1",
    "rota:package": "shop==1.0",
    "rota:app": "shop.tasks:rota",
    "rota:certificateArn": "arn:aws:acm:eu-central-1:1:certificate/x",
    "rota:valkeyPassword": "secret",
}
EVERYWHERE: Final = {"0.0.0.0/0", "::/0"}


class Stack:
    """What the program created: type, name and inputs of each resource, and the stack's outputs."""

    def __init__(self, resources: list[dict[str, Any]], outputs: dict[str, Any]) -> None:
        self.resources = resources
        self.outputs = outputs

    def all(self, kind: str) -> dict[str, dict[str, Any]]:
        """The inputs of all resources of a type, by name."""
        return {each["name"]: each["inputs"] for each in self.resources if each["type"] == kind}

    def secret(self, parameter: str) -> str:
        """The value of a parameter, which Pulumi keeps encrypted in its state."""
        inputs = self.all("aws:ssm/parameter:Parameter")[parameter]
        assert inputs["type"] == "SecureString"
        return inputs["value"]["value"]

    def policy(self, role: str) -> list[dict[str, Any]]:
        """The statements of a role's policy."""
        return json.loads(self.all("aws:iam/rolePolicy:RolePolicy")[role]["policy"])["Statement"]


def build(**config: str) -> Stack:
    """Runs the program in a process of its own: Pulumi keeps its state in globals."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.deploy.pulumi_program", str(STACK), json.dumps(CONFIG | config)],
        cwd=STACK.parents[1],
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return Stack(**json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def stack() -> Stack:
    """With a replicated pair on EC2, as by default."""
    return build()


@pytest.mark.requirement("S2-28", "S2-32")
def test_outputs_are_the_variables_of_the_autoscaler(stack: Stack) -> None:
    template = "worker-id"

    assert stack.outputs["AWS_REGION"] == "eu-central-1"
    assert stack.outputs["LAUNCH_TEMPLATE_ID"] == template
    script = stack.all("aws:ec2/instance:Instance")["autoscaler"]["userData"]
    assert f"LAUNCH_TEMPLATE_ID={template}" in script
    assert "AWS_REGION=eu-central-1" in script
    assert "ROTA_AUTOSCALE_PROVIDER=ec2" in script


def test_only_the_balancer_is_open_to_the_world(stack: Stack) -> None:
    rules = stack.all("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule")
    world = {name: rule for name, rule in rules.items() if {rule.get("cidrIpv4"), rule.get("cidrIpv6")} & EVERYWHERE}

    assert list(world) == ["balancer-https"]
    assert (world["balancer-https"]["fromPort"], world["balancer-https"]["toPort"]) == (443, 443)
    assert all("referencedSecurityGroupId" in rule for name, rule in rules.items() if name not in world)
    assert not any("ingress" in group for group in stack.all("aws:ec2/securityGroup:SecurityGroup").values())


def test_machines_are_in_private_subnets_with_encrypted_disks(stack: Stack) -> None:
    machines = stack.all("aws:ec2/instance:Instance")

    assert set(machines) == {"valkey-0", "valkey-1", "server", "autoscaler", "monitoring"}
    for machine in machines.values():
        assert machine["subnetId"].startswith("private-")
        assert machine["rootBlockDevice"]["encrypted"] is True
        assert machine["metadataOptions"] == {"httpTokens": "required"}
        assert len(machine["userData"]) < 16_384, "the limit of EC2"


@pytest.mark.requirement("S2-32")
def test_the_pair_is_in_two_zones_and_has_three_sentinels(stack: Stack) -> None:
    machines = stack.all("aws:ec2/instance:Instance")

    assert {machines[name]["subnetId"] for name in ("valkey-0", "valkey-1")} == {"private-0-id", "private-1-id"}
    assert (
        stack.secret("url") == "redis+sentinel://:secret@10.20.10.10:26379,10.20.11.10:26379,10.20.10.20:26379/rota/0"
    )
    assert "UNITS=valkey-sentinel" in machines["monitoring"]["userData"]


@pytest.mark.parametrize(
    ("store", "kind", "url"),
    [
        ("elasticache", "aws:elasticache/replicationGroup:ReplicationGroup", "rediss://:secret@cache.example:6379/0"),
        ("memorydb", "aws:memorydb/cluster:Cluster", "rediss+cluster://rota:secret@memorydb.example:6379"),
    ],
)
def test_a_managed_store_replaces_the_pair(store: str, kind: str, url: str) -> None:
    stack = build(**{"rota:store": store})

    assert len(stack.all(kind)) == 1
    assert stack.secret("url") == url
    assert set(stack.all("aws:ec2/instance:Instance")) == {"server", "autoscaler", "monitoring"}


def test_passwords_are_in_no_script(stack: Stack) -> None:
    assert not any("secret" in machine["userData"] for machine in stack.all("aws:ec2/instance:Instance").values())


@pytest.mark.parametrize("role", ["server", "worker", "store"])
def test_a_machine_may_only_read_its_secret(stack: Stack, role: str) -> None:
    (statement,) = stack.policy(role)

    assert statement["Action"] == ["ssm:GetParameter"]
    assert statement["Resource"] == [f"arn:aws:mock:::{'valkey-password' if role == 'store' else 'url'}"]


def test_the_autoscaler_launches_only_workers_and_ends_only_workers(stack: Stack) -> None:
    statements = stack.policy("autoscaler")
    by_action: dict[str, list[dict[str, Any]]] = {}
    for statement in statements:
        for action in statement["Action"]:
            by_action.setdefault(action, []).append(statement)

    (ends,) = by_action["ec2:TerminateInstances"]
    assert ends["Condition"] == {"StringEquals": {"ec2:ResourceTag/Role": "worker"}}
    template = {"ec2:LaunchTemplate": "arn:aws:mock:::worker"}
    assert all(statement["Condition"]["ArnEquals"] == template for statement in by_action["ec2:RunInstances"])
    assert by_action["ec2:RunInstances"][0]["Condition"]["StringEquals"] == {"aws:RequestTag/Role": "worker"}
    (passes,) = by_action["iam:PassRole"]
    assert passes["Resource"] == "arn:aws:mock:::worker"
    (tags,) = by_action["ec2:CreateTags"]
    assert tags["Condition"] == {"StringEquals": {"ec2:CreateAction": "RunInstances"}}


def test_no_policy_allows_everything(stack: Stack) -> None:
    for role in stack.all("aws:iam/rolePolicy:RolePolicy"):
        for statement in stack.policy(role):
            assert not any("*" in action for action in statement["Action"])
            if statement["Resource"] == "*":
                assert all(action.startswith("ec2:Describe") for action in statement["Action"])


@pytest.mark.requirement("S2-32")
def test_workers_are_launched_from_a_template_that_starts_one(stack: Stack) -> None:
    template = stack.all("aws:ec2/launchTemplate:LaunchTemplate")["worker"]
    script = base64.b64decode(template["userData"]).decode()

    assert template["tagSpecifications"] == [
        {"resourceType": "instance", "tags": {"Name": "rota-worker", "Role": "worker"}}
    ]
    assert "rota worker ${ROTA_APP}" in script
    assert subprocess.run(["bash", "-n"], input=script, text=True).returncode == 0


@pytest.mark.parametrize("config", [{"rota:store": "mysql"}, {"rota:minWorkers": "5", "rota:maxWorkers": "2"}])
def test_settings_that_cannot_work_are_refused(config: dict[str, str]) -> None:
    with pytest.raises(AssertionError, match=f"{next(iter(config))} is"):
        build(**config)
