"""Reads and changes the settings of a namespace."""

from __future__ import annotations

from typing import Final

import msgspec

from rota.core.lease_heartbeat_poll_and_grace_durations import DurationSettings
from rota.store.keys import Keys
from rota.store.redis.hash_and_time_replies import read_text_hash
from rota.store.redis.retrying_client import RedisClient
from rota.store.redis.script_compiler import script

#: The durations that can be set, as the script and the hash name them.
FIELDS: Final = ("lease_ms", "heartbeat_ms", "poll_ms", "grace_ms")


class SettingsStore:
    """The settings of one namespace."""

    def __init__(self, redis: RedisClient, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys

    async def read(self) -> DurationSettings:
        """The settings; defaults where nothing was set."""
        found = read_text_hash(await self._redis.command("HGETALL", self._keys.shared("settings")))
        known = {name: found[name] for name in DurationSettings.__struct_fields__ if found.get(name)}
        return msgspec.convert(known, DurationSettings, strict=False)

    async def change(self, before: DurationSettings, wanted: DurationSettings) -> bool:
        """Replaces the settings. False if another caller has changed them since `before` was read."""
        values = [getattr(wanted, name) for name in FIELDS]
        answer = await self._redis.run(
            "change_worker_durations",
            self._keys.shared_of_script(script("change_worker_durations").keys),
            [before.version, before.durations.lease_ms, *("" if value is None else value for value in values)],
        )
        return answer == b"changed"
