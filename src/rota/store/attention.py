"""Findings that exist and their acknowledgements, as servers recorded them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from rota.core.health.acknowledgement import Acknowledgement, FindingState
from rota.store.keys import Keys
from rota.store.redis.retrying_client import Argument, RedisClient
from rota.store.redis.script_compiler import script

#: How long a finding that is not found any more is remembered: it may come back.
FINDING_KEPT_MS: Final = 15 * 60_000


class AttentionStore:
    """The attention list of one namespace."""

    def __init__(self, redis: RedisClient, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys

    async def record(self, findings: Sequence[str]) -> tuple[int, Mapping[str, FindingState]]:
        """Records that these findings exist. Returns the time, and the state of all that are remembered."""
        answer = await self._run("record_findings", [FINDING_KEPT_MS, *findings])
        now, rest = int(answer[0]), answer[1:]
        found: dict[str, FindingState] = {}
        for key, times, stored in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
            acknowledged = msgspec.json.decode(stored, type=Acknowledgement) if stored else None
            found[key.decode()] = FindingState(int(times.split(b" ")[0]), acknowledged)
        return now, found

    async def acknowledge(self, finding: str, acknowledgement: Acknowledgement | None) -> bool:
        """Acknowledges a finding, or takes that back. False if it does not exist."""
        record = b"" if acknowledgement is None else msgspec.json.encode(acknowledgement)
        return await self._run("acknowledge_finding", [finding, record]) == b"stored"

    async def _run(self, name: str, arguments: Sequence[Argument]) -> Any:
        return await self._redis.run(name, self._keys.shared_of_script(script(name).keys), arguments)
