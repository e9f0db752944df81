"""A cloud in memory, with the faults of real ones: limits, lost answers, lists that lag behind."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence

from rota.autoscaler.machine_provider import Machine, ProviderError, ProviderThrottled


class Killed(BaseException):
    """Stands for the death of the autoscaler's process at this point."""


class Cloud:
    """A provider whose machines are entries of a dictionary."""

    name = "cloud"

    def __init__(self) -> None:
        self.existing: dict[str, Machine] = {}
        self.by_token: dict[str, list[str]] = {}
        self.calls: list[tuple[str, object]] = []
        self.protected: set[str] = set()
        #: Verb -> what its next call raises; with `after` it has been carried out before.
        self.fails: dict[str, BaseException] = {}
        self.fails_after: dict[str, BaseException] = {}
        #: Machines that the platform can still launch.
        self.capacity = 1_000
        #: How many lists lack a machine after its launch.
        self.lag = 0
        self._hidden: dict[str, int] = {}
        self._numbers = itertools.count(1)

    async def machines(self) -> Sequence[Machine]:
        self._call("machines")
        listed = [one for one in self.existing.values() if not self._hidden.get(one.id)]
        self._hidden = {one: left - 1 for one, left in self._hidden.items() if left > 1}
        return listed

    async def launch(self, count: int, token: str) -> Sequence[str]:
        self._call("launch", count)
        if token not in self.by_token:
            ids = [f"i-{next(self._numbers)}" for _ in range(min(count, self.capacity))]
            self.capacity -= len(ids)
            self.by_token[token] = ids
            for machine_id in ids:
                self.existing[machine_id] = Machine(id=machine_id, state="pending")
                self._hidden[machine_id] = self.lag
        self._after("launch")
        return self.by_token[token]

    async def terminate(self, machine_id: str) -> None:
        self._call("terminate", machine_id)
        self.existing.pop(machine_id, None)
        self._after("terminate")

    async def protect(self, machine_ids: Collection[str]) -> None:
        self.protected = set(machine_ids)

    async def close(self) -> None:
        pass

    def made(self, verb: str) -> list[object]:
        """The arguments of the calls of one verb."""
        return [argument for called, argument in self.calls if called == verb]

    def _call(self, verb: str, argument: object = None) -> None:
        if verb in self.fails:
            raise self.fails.pop(verb)
        self.calls.append((verb, argument))

    def _after(self, verb: str) -> None:
        if verb in self.fails_after:
            raise self.fails_after.pop(verb)


def throttled() -> ProviderError:
    """The platform refuses calls for a while."""
    return ProviderThrottled("rate exceeded", retry_after=1_000)
