"""Machines as instances of an EC2 Auto Scaling group: the group launches, the planner chooses which one leaves."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from rota.autoscaler.machine_provider import EXPECTED, Machine, ProviderError
from rota.autoscaler.providers.aws_client import AwsCallFailed, AwsClient

#: Tag of the group with the last launch: its token and the capacity that it asked for.
LAUNCH_TAG: Final = "rota:launch"

#: The group waits for us before it terminates an instance that has a lifecycle hook.
_WAITS: Final = "Terminating:Wait"


class AutoScalingGroupProvider:
    """Raises the desired capacity, and terminates exactly the instances that have drained.

    Busy instances are protected from scale-in. With a lifecycle hook for terminating instances (`hook`), an instance
    that the group wants to remove, for example after a spot notice, is drained first.
    """

    name = "asg"

    def __init__(self, *, region: str, group: str, hook: str | None = None, endpoint: str | None = None) -> None:
        self._client = AwsClient("autoscaling", region, endpoint=endpoint)
        self._group = group
        self._hook = hook

    async def machines(self) -> Sequence[Machine]:
        """Lists the group's instances; also those that wait in the lifecycle hook and those it has yet to launch."""
        group = await self._describe()
        listed = [
            Machine(
                id=each["InstanceId"],
                state="pending" if each["LifecycleState"].startswith("Pending") else "running",
                is_interrupted=each["LifecycleState"] == _WAITS,
            )
            for each in group["Instances"]
            if not each["LifecycleState"].startswith(("Terminat", "Detach")) or each["LifecycleState"] == _WAITS
        ]
        missing = group["DesiredCapacity"] - sum(not machine.is_interrupted for machine in listed)
        return listed + [Machine(id=f"{EXPECTED}{number}", state="pending") for number in range(missing)]

    async def launch(self, count: int, token: str) -> Sequence[str]:
        """Raises the desired capacity by `count`, once for each token. The instances appear in `machines` later.

        The group has no client tokens: the token and the capacity to reach are written to a tag first, so that a
        repeated call asks for the same capacity.
        """
        group = await self._describe()
        tags = {tag["Key"]: tag["Value"] for tag in group.get("Tags", ())}
        before, _, target = tags.get(LAUNCH_TAG, "").partition(" ")
        if before != token or not target.isdecimal():
            target = str(min(group["DesiredCapacity"] + count, group["MaxSize"]))
            if int(target) <= group["DesiredCapacity"]:
                raise ProviderError(f"the group {self._group} is at its maximum of {group['MaxSize']} instances")
            await self._client.call("create_or_update_tags", Tags=[self._tag(f"{token} {target}")])
        if int(target) > group["DesiredCapacity"]:
            await self._set_capacity(int(target))
        return []

    async def terminate(self, machine_id: str) -> None:
        """Terminates the instance and lowers the desired capacity with it."""
        group = await self._describe()
        if machine_id.startswith(EXPECTED):  # it has not been launched in time: it is no longer asked for
            if group["DesiredCapacity"] > max(group["MinSize"], len(group["Instances"])):
                await self._set_capacity(group["DesiredCapacity"] - 1)
            return
        instance = {each["InstanceId"]: each for each in group["Instances"]}.get(machine_id)
        if instance is None:
            return
        if instance["LifecycleState"] == _WAITS and self._hook is not None:
            await self._lifecycle("complete_lifecycle_action", machine_id, LifecycleActionResult="CONTINUE")
            return
        try:
            await self._client.call(
                "terminate_instance_in_auto_scaling_group",
                InstanceId=machine_id,
                ShouldDecrementDesiredCapacity=True,
            )
        except AwsCallFailed as error:
            if error.code != "ValidationError" or "not found" not in str(error).lower():
                raise

    async def protect(self, machine_ids: Collection[str]) -> None:
        """Protects busy instances from scale-in, and keeps those that wait in the hook from being terminated."""
        instances = (await self._describe())["Instances"]
        busy = set(machine_ids)
        for is_protected in (True, False):
            changed = [
                each["InstanceId"]
                for each in instances
                if each["LifecycleState"] == "InService"
                and each.get("ProtectedFromScaleIn", False) is not is_protected
                and (each["InstanceId"] in busy) is is_protected
            ]
            for start in range(0, len(changed), 50):
                await self._client.call(
                    "set_instance_protection",
                    AutoScalingGroupName=self._group,
                    InstanceIds=changed[start : start + 50],
                    ProtectedFromScaleIn=is_protected,
                )
        if self._hook is not None:
            for each in instances:
                if each["LifecycleState"] == _WAITS and each["InstanceId"] in busy:
                    await self._lifecycle("record_lifecycle_action_heartbeat", each["InstanceId"])

    async def close(self) -> None:
        """Closes the connections; instances keep running."""
        await self._client.close()

    async def _set_capacity(self, capacity: int) -> None:
        await self._client.call(
            "set_desired_capacity", AutoScalingGroupName=self._group, DesiredCapacity=capacity, HonorCooldown=False
        )

    async def _describe(self) -> dict[str, Any]:
        answer = await self._client.call("describe_auto_scaling_groups", AutoScalingGroupNames=[self._group])
        if not answer["AutoScalingGroups"]:
            raise ProviderError(f"there is no Auto Scaling group {self._group!r} in this region")
        return answer["AutoScalingGroups"][0]

    async def _lifecycle(self, operation: str, machine_id: str, **parameters: str) -> None:
        await self._client.call(
            operation,
            AutoScalingGroupName=self._group,
            LifecycleHookName=self._hook,
            InstanceId=machine_id,
            **parameters,
        )

    def _tag(self, value: str) -> dict[str, Any]:
        return {
            "ResourceId": self._group,
            "ResourceType": "auto-scaling-group",
            "Key": LAUNCH_TAG,
            "Value": value,
            "PropagateAtLaunch": False,
        }
