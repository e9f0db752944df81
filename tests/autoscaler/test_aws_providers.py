"""The providers of AWS against a real HTTP server that behaves like EC2 and Auto Scaling (moto), faults injected."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Iterator
from typing import Any, Final

import botocore.session
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from moto.server import ThreadedMotoServer

from rota.autoscaler.machine_provider import ProviderError, ProviderThrottled
from rota.autoscaler.providers.auto_scaling_group import AutoScalingGroupProvider
from rota.autoscaler.providers.aws_client import AwsClient
from rota.autoscaler.providers.ec2 import Ec2Provider

REGION: Final = "eu-central-1"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """The address of the server."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    # The first request to a service imports it, which takes longer than a provider waits if the machine is busy.
    for service, operation in (("ec2", "describe_instances"), ("autoscaling", "describe_auto_scaling_groups")):
        client: Any = botocore.session.get_session().create_client(
            service,
            region_name=REGION,
            endpoint_url=url,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(read_timeout=150, retries={"total_max_attempts": 1}),
        )
        getattr(client, operation)()
    yield url
    server.stop()


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moto accepts any; botocore wants some."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


class Account:
    """An account with a launch template, and clients that look at it."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.namespace = f"t{secrets.token_hex(4)}"
        self.ec2 = AwsClient("ec2", REGION, endpoint=endpoint)
        self.groups = AwsClient("autoscaling", REGION, endpoint=endpoint)
        self.template = ""

    async def prepare(self) -> None:
        """Creates the template."""
        answer = await self.ec2.call(
            "create_launch_template",
            LaunchTemplateName=self.namespace,
            LaunchTemplateData={"ImageId": "ami-12345678", "InstanceType": "t3.small"},
        )
        self.template = answer["LaunchTemplate"]["LaunchTemplateId"]

    def provider(self, **options: Any) -> Ec2Provider:
        """A provider of EC2, as a new autoscaler would create it."""
        options = {"max_machines": 10} | options
        return Ec2Provider(
            region=REGION,
            launch_template=self.template,
            namespace=self.namespace,
            endpoint=self.endpoint,
            **options,
        )

    async def group(self, **options: Any) -> AutoScalingGroupProvider:
        """A provider of an Auto Scaling group of its own, with one instance."""
        zones = await self.ec2.call("describe_availability_zones")
        await self.groups.call(
            "create_auto_scaling_group",
            AutoScalingGroupName=self.namespace,
            LaunchTemplate={"LaunchTemplateId": self.template},
            MinSize=0,
            MaxSize=5,
            DesiredCapacity=1,
            AvailabilityZones=[zones["AvailabilityZones"][0]["ZoneName"]],
        )
        return AutoScalingGroupProvider(region=REGION, group=self.namespace, endpoint=self.endpoint, **options)

    async def desired(self) -> int:
        """The desired capacity of the group."""
        answer = await self.groups.call("describe_auto_scaling_groups", AutoScalingGroupNames=[self.namespace])
        return answer["AutoScalingGroups"][0]["DesiredCapacity"]


@pytest.fixture
async def account(endpoint: str) -> AsyncGenerator[Account]:
    """A namespace of its own in the account."""
    account = Account(endpoint)
    await account.prepare()
    yield account
    await account.ec2.close()
    await account.groups.close()


def answer_with(provider: Any, operation: str, code: str, status: int = 400) -> list[str]:
    """From now on the service answers this operation with an error. Returns the list of such calls."""
    calls: list[str] = []
    body = f"<Response><Errors><Error><Code>{code}</Code><Message>no</Message></Error></Errors></Response>"

    class Raw:
        def stream(self, **_: Any) -> Iterator[bytes]:
            yield body.encode()

    def answer(request: Any, **_: Any) -> AWSResponse:
        calls.append(operation)
        return AWSResponse(request.url, status, {}, Raw())

    client = provider._client.raw
    client.meta.events.register(f"before-send.{client.meta.service_model.service_name}.{operation}", answer)
    return calls


async def launch(provider: Ec2Provider, *tokens: str) -> list[str]:
    """Launches an instance for each token: of a range, moto launches the minimum."""
    return [each for token in tokens for each in await provider.launch(1, token)]


@pytest.mark.requirement("S2-27")
async def test_instances_are_launched_listed_and_terminated(account: Account) -> None:
    provider = account.provider()

    first, second = await launch(provider, "first", "second")
    listed = await provider.machines()
    await provider.terminate(first)

    assert {machine.id for machine in listed} == {first, second}
    assert all(machine.launched_at for machine in listed)
    assert [machine.id for machine in await provider.machines()] == [second]
    await provider.terminate(first)


async def test_fewer_instances_than_asked_for_are_a_success(account: Account) -> None:
    assert len(await account.provider().launch(3, "partial")) == 1, "of a range, moto launches the minimum"


@pytest.mark.requirement("S2-27")
async def test_a_repeated_launch_starts_nothing(account: Account) -> None:
    """By the same autoscaler, and by another one that has only the stored token."""
    ids = await account.provider().launch(1, "lost-reply")

    assert await account.provider().launch(1, "lost-reply") == ids
    assert len(await account.provider().machines()) == 1


async def test_a_launch_whose_instances_are_not_listed_yet_has_the_same_client_token(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EC2 is eventually consistent: until the tag is listed, the client token makes EC2 return the same instances."""
    provider, sent = account.provider(), list[dict[str, Any]]()

    def record(params: dict[str, Any], **_: Any) -> None:
        sent.append(dict(params))

    async def nothing() -> list[dict[str, Any]]:
        return []

    provider._client.raw.meta.events.register("provide-client-params.ec2.RunInstances", record)
    monkeypatch.setattr(provider, "_instances", nothing)
    await provider.launch(2, "not-seen-yet")
    await provider.launch(2, "not-seen-yet")

    assert sent[0] == sent[1]
    assert sent[0]["ClientToken"].startswith("not-seen-yet")


async def test_the_cap_counts_what_others_launched(account: Account) -> None:
    await launch(account.provider(), "one", "two")
    provider = account.provider(max_machines=3)

    assert len(await provider.launch(5, "three")) == 1
    with pytest.raises(ProviderError, match="3 instances have the tags of this pool, the maximum is 3"):
        await provider.launch(1, "four")


async def test_instances_of_another_namespace_are_left_alone(account: Account, endpoint: str) -> None:
    other = Account(endpoint)
    await other.prepare()
    await other.provider().launch(1, "theirs")

    assert await account.provider().machines() == []


async def test_another_subnet_is_tried_where_a_zone_has_no_room(account: Account) -> None:
    subnets = await account.ec2.call("describe_subnets")
    first, second = (subnet["SubnetId"] for subnet in subnets["Subnets"][:2])
    provider = account.provider(subnets=[first, second])
    refused: list[str] = []

    def refuse_first(request: Any, **_: Any) -> AWSResponse | None:
        if first not in str(request.body):
            return None
        refused.append(first)

        class Raw:
            def stream(self, **_: Any) -> Iterator[bytes]:
                yield b"<Response><Errors><Error><Code>InsufficientInstanceCapacity</Code></Error></Errors></Response>"

        return AWSResponse(request.url, 400, {}, Raw())

    provider._client.raw.meta.events.register("before-send.ec2.RunInstances", refuse_first)

    assert len(await provider.launch(1, "zones")) == 1
    assert refused == [first]


async def test_throttling_tells_the_planner_to_wait(account: Account) -> None:
    provider = account.provider()
    calls = answer_with(provider, "DescribeInstances", "RequestLimitExceeded", 503)

    with pytest.raises(ProviderThrottled, match="limits the rate of describe_instances"):
        await provider.machines()
    assert len(calls) <= 2, "it does not repeat for long"


async def test_a_service_that_does_not_answer_is_an_error_of_the_provider() -> None:
    provider = Ec2Provider(
        region=REGION, launch_template="lt-1", namespace="x", max_machines=1, endpoint="http://127.0.0.1:1"
    )

    with pytest.raises(ProviderError, match="did not answer describe_instances"):
        await provider.machines()


async def test_a_group_grows_once_for_each_token(account: Account) -> None:
    provider = await account.group()

    await provider.launch(2, "first")
    await provider.launch(2, "first")
    assert await account.desired() == 3
    assert len(await provider.machines()) == 3

    await provider.launch(9, "second")
    assert await account.desired() == 5, "the group's maximum"
    with pytest.raises(ProviderError, match="is at its maximum of 5"):
        await provider.launch(1, "third")


async def test_a_reply_that_is_lost_before_the_capacity_was_raised_is_made_up(account: Account) -> None:
    """The autoscaler dies between writing the token and raising the capacity."""
    provider = await account.group()
    answer_with(provider, "SetDesiredCapacity", "InternalFailure", 500)
    with pytest.raises(ProviderError):
        await provider.launch(2, "died")
    assert await account.desired() == 1

    again = AutoScalingGroupProvider(region=REGION, group=account.namespace, endpoint=account.endpoint)
    await again.launch(2, "died")

    assert await account.desired() == 3


async def test_instances_that_a_group_has_yet_to_launch_are_pending(account: Account) -> None:
    """Otherwise each round would ask for more of them. One that never comes can be given up."""
    provider = await account.group()
    described = await provider._describe()
    described |= {"DesiredCapacity": 3, "MinSize": 0}
    calls: list[int] = []

    async def record(operation: str, **parameters: Any) -> dict[str, Any]:
        if operation == "set_desired_capacity":
            calls.append(parameters["DesiredCapacity"])
        return {"AutoScalingGroups": [described]}

    provider._client.call = record
    listed = await provider.machines()
    await provider.terminate("expected-1")

    assert [machine.id for machine in listed[1:]] == ["expected-0", "expected-1"]
    assert {machine.state for machine in listed[1:]} == {"pending"}
    assert calls == [2]


async def test_a_group_loses_exactly_the_drained_instance(account: Account) -> None:
    provider = await account.group()
    await provider.launch(2, "grow")
    drained, *others = [machine.id for machine in await provider.machines()]

    await provider.terminate(drained)
    await provider.terminate(drained)

    assert {machine.id for machine in await provider.machines()} == set(others)
    assert await account.desired() == 2


async def test_busy_instances_of_a_group_are_protected_and_no_others(account: Account) -> None:
    provider = await account.group()
    await provider.launch(1, "grow")
    first, second = [machine.id for machine in await provider.machines()]

    async def protected() -> set[str]:
        answer = await account.groups.call("describe_auto_scaling_instances", InstanceIds=[first, second])
        return {each["InstanceId"] for each in answer["AutoScalingInstances"] if each["ProtectedFromScaleIn"]}

    await provider.protect([first])
    assert await protected() == {first}
    await provider.protect([second])
    assert await protected() == {second}


async def test_an_instance_in_the_lifecycle_hook_is_drained_before_it_goes(account: Account) -> None:
    """Moto has no lifecycle actions: the two calls are recorded instead."""
    provider = await account.group(hook="drain")
    (machine,) = await provider.machines()
    described, calls = await provider._describe(), list[tuple[str, dict[str, Any]]]()
    described["Instances"][0]["LifecycleState"] = "Terminating:Wait"
    described["DesiredCapacity"] = 0

    async def record(operation: str, **parameters: Any) -> dict[str, Any]:
        if operation == "describe_auto_scaling_groups":
            return {"AutoScalingGroups": [described]}
        calls.append((operation, parameters))
        return {}

    provider._client.call = record
    (waiting,) = await provider.machines()
    await provider.protect([machine.id])
    await provider.terminate(machine.id)

    assert waiting.is_interrupted
    assert [name for name, _ in calls] == ["record_lifecycle_action_heartbeat", "complete_lifecycle_action"]
    assert all(each["InstanceId"] == machine.id and each["LifecycleHookName"] == "drain" for _, each in calls)


async def test_a_group_that_does_not_exist_is_an_error(account: Account) -> None:
    provider = AutoScalingGroupProvider(region=REGION, group="missing", endpoint=account.endpoint)

    with pytest.raises(ProviderError, match="there is no Auto Scaling group 'missing'"):
        await provider.machines()
