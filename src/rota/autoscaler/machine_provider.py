"""The interface between the planner and a platform: list, launch, terminate and protect machines.

A machine is whatever runs one worker: a local process, an EC2 instance, a pod. Its worker registers with the machine's
id, which it reads from the environment variable `ROTA_MACHINE`, else from the host name. The planner drains the
workers of a machine before it calls `terminate`; a provider never has to ask what a machine is doing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from rota.errors import RotaError

#: Environment variable with the id of the machine that a worker runs on.
MACHINE_VARIABLE = "ROTA_MACHINE"
#: Start of the ids of machines that were requested and that the platform does not list yet.
EXPECTED = "expected-"


class ProviderError(RotaError):
    """The platform refused a call or did not answer. The planner holds, and tries again in its next round."""


class ProviderThrottled(ProviderError):
    """The platform limits the rate of calls. The planner makes no call for `retry_after` seconds."""

    def __init__(self, message: str, *, retry_after: float = 10.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine of the pool, as the platform lists it. One that is terminated or terminating is left out."""

    id: str
    #: "pending" until the platform has started it; "failed" if it cannot be started or was stopped from outside.
    state: Literal["pending", "running", "failed"] = "running"
    #: When it was launched, ms since 1970; None if the platform does not say.
    launched_at: int | None = None
    #: The platform will take it back soon (a spot notice, a node that is drained): its workers are drained now.
    is_interrupted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """What a provider is made from: see `providers.create_provider`."""

    #: The namespace of the jobs: machines of different namespaces are different pools.
    namespace: str
    #: The server's address, without secrets.
    address: str
    #: The command that starts a worker; empty without an application.
    worker_command: Sequence[str] = ()
    #: The table `[autoscale.<provider>]` of the configuration file, and the options of the command line.
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    #: The environment of the autoscaler: AWS_REGION, LAUNCH_TEMPLATE_ID, …
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    #: Machines that the provider never exceeds, whatever it is asked for.
    max_machines: int = 100
    #: One round is planned, and the autoscaler exits.
    is_once: bool = False


class Provider(Protocol):
    """One platform. Every method may be called again after an error, a lost reply or a restart of the autoscaler.

    Methods raise ProviderError, or ProviderThrottled, for everything the platform refuses. They do not retry for
    longer than a few seconds: the planner does.
    """

    #: The name given to `--provider`.
    name: str

    async def machines(self) -> Sequence[Machine]:
        """Lists the machines of the pool, also those that an earlier autoscaler launched. May lag behind `launch`."""
        ...

    async def launch(self, count: int, token: str) -> Sequence[str]:
        """Launches machines and returns their ids; fewer than `count` if the platform has no more.

        Returns no ids if the platform chooses them later: then `machines` lists a pending machine for each that is
        still expected, with an id that starts with EXPECTED.

        A call with a token that was used before launches nothing and returns the same ids, as far as the platform
        allows. The planner stores the token before the call.
        """
        ...

    async def terminate(self, machine_id: str) -> None:
        """Removes exactly this machine, without a replacement. Succeeds if it is gone already."""
        ...

    async def protect(self, machine_ids: Collection[str]) -> None:
        """Protects these machines from being removed by the platform itself, and no others of the pool.

        Called in each round with the machines whose workers are busy. Does nothing where there is no such protection.
        """
        ...

    async def close(self) -> None:
        """Releases connections. Machines keep running, except local processes, which are stopped gracefully."""
        ...
