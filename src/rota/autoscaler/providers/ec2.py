"""Machines as EC2 instances that are launched from a template and found by their tag."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from rota.autoscaler.machine_provider import Machine, ProviderError
from rota.autoscaler.providers.aws_client import AwsCallFailed, AwsClient

#: Every worker has this tag: the pool is the instances that have it.
ROLE_TAG: Final = {"Key": "Role", "Value": "worker"}
#: Tag with the namespace, so that several deployments can share an account.
NAMESPACE_TAG: Final = "rota:namespace"
#: Tag with the token of the call that launched the instance.
LAUNCH_TAG: Final = "rota:launch"

_STATES: Final = {"pending": "pending", "running": "running", "stopping": "failed", "stopped": "failed"}
#: Answers after which another subnet, which is another availability zone, may have room.
_NO_ROOM: Final = frozenset({"InsufficientInstanceCapacity", "InsufficientFreeAddressesInSubnet", "Unsupported"})
_GONE: Final = frozenset({"InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed"})
_INTERRUPTED: Final = ("marked-for-termination", "marked-for-stop", "instance-terminated-by-price")


class Ec2Provider:
    """Launches instances from a launch template. Several subnets are tried in turn."""

    name = "ec2"

    def __init__(
        self,
        *,
        region: str,
        launch_template: str,
        namespace: str,
        max_machines: int,
        subnets: Sequence[str] = (),
        endpoint: str | None = None,
    ) -> None:
        self._client = AwsClient("ec2", region, endpoint=endpoint)
        self._launch_template = launch_template
        self._namespace = namespace
        self._max_machines = max_machines
        self._subnets = tuple(subnets) or (None,)

    async def machines(self) -> Sequence[Machine]:
        """Lists the instances with the tags of this pool, whichever autoscaler launched them."""
        instances = await self._instances()
        interrupted = await self._interrupted(
            [each["InstanceId"] for each in instances if each.get("InstanceLifecycle") == "spot"]
        )
        return [
            Machine(
                id=each["InstanceId"],
                state=_STATES[each["State"]["Name"]],  # type: ignore[arg-type]
                launched_at=int(each["LaunchTime"].timestamp() * 1000),
                is_interrupted=each["InstanceId"] in interrupted,
            )
            for each in instances
        ]

    async def launch(self, count: int, token: str) -> Sequence[str]:
        """Launches instances, never above the cap, counted by tag immediately before.

        Instances that have this token as a tag are the result of an earlier call. Where they are not listed yet, the
        client token makes EC2 return them again instead of launching others.
        """
        instances = await self._instances()
        if earlier := [each["InstanceId"] for each in instances if _tags(each).get(LAUNCH_TAG) == token]:
            return earlier
        count = min(count, self._max_machines - len(instances))
        if count <= 0:
            raise ProviderError(
                f"{len(instances)} instances have the tags of this pool, the maximum is {self._max_machines}:"
                " no more are launched"
            )
        refused: AwsCallFailed | None = None
        for number, subnet in enumerate(self._subnets):
            try:
                return await self._run_instances(count, f"{token}-{number}", token, subnet)
            except AwsCallFailed as error:
                if error.code not in _NO_ROOM:
                    raise
                refused = error
        assert refused is not None
        raise refused

    async def terminate(self, machine_id: str) -> None:
        """Terminates the instance."""
        try:
            await self._client.call("terminate_instances", InstanceIds=[machine_id])
        except AwsCallFailed as error:
            if error.code not in _GONE:
                raise

    async def protect(self, machine_ids: Collection[str]) -> None:
        """Does nothing: EC2 itself removes only spot instances, and those with a notice that nothing can stop."""

    async def close(self) -> None:
        """Closes the connections; instances keep running."""
        await self._client.close()

    async def _run_instances(self, count: int, client_token: str, token: str, subnet: str | None) -> Sequence[str]:
        tags = [ROLE_TAG, {"Key": NAMESPACE_TAG, "Value": self._namespace}, {"Key": LAUNCH_TAG, "Value": token}]
        answer = await self._client.call(
            "run_instances",
            LaunchTemplate={"LaunchTemplateId": self._launch_template},
            MinCount=1,
            MaxCount=count,
            ClientToken=client_token,
            TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
            **({"SubnetId": subnet} if subnet else {}),
        )
        return [each["InstanceId"] for each in answer["Instances"]]

    async def _instances(self) -> list[dict[str, Any]]:
        reservations = await self._client.pages(
            "describe_instances",
            "Reservations",
            Filters=[
                {"Name": f"tag:{ROLE_TAG['Key']}", "Values": [ROLE_TAG["Value"]]},
                {"Name": f"tag:{NAMESPACE_TAG}", "Values": [self._namespace]},
                {"Name": "instance-state-name", "Values": list(_STATES)},
            ],
        )
        return [instance for reservation in reservations for instance in reservation["Instances"]]

    async def _interrupted(self, spot: list[str]) -> set[str]:
        """Those spot instances that EC2 will take back within two minutes."""
        if not spot:
            return set()
        requests = await self._client.pages(
            "describe_spot_instance_requests",
            "SpotInstanceRequests",
            Filters=[{"Name": "status-code", "Values": list(_INTERRUPTED)}],
        )
        return {instance for instance in spot if any(each.get("InstanceId") == instance for each in requests)}


def _tags(instance: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in instance.get("Tags", ())}
