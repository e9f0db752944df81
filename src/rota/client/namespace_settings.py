"""The settings of a namespace, which all of its workers follow: `rota.settings`."""

from __future__ import annotations

from typing import Final

import msgspec

from rota.client.session import Sessions
from rota.client.sync_methods import sync_method
from rota.core.lease_heartbeat_poll_and_grace_durations import NAMES, DurationSettings
from rota.core.retry import Seconds, to_ms
from rota.errors import InvalidOption, WrongState

#: How often a change is tried again that meets another one.
ATTEMPTS: Final = 10


class NamespaceSettings:
    """Durations of leases, heartbeats, fallback polls and grace periods. They are stored, so that workers agree."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def get(self) -> DurationSettings:
        """Returns what is set; `.durations` has the durations in force."""
        return await (await self._sessions.checked()).settings.read()

    async def change(self, /, **changes: Seconds | None) -> DurationSettings:
        """Changes durations, in seconds: `change(lease=30, poll=10)`. None: the default again.

        `lease` is how long a worker keeps a job without a heartbeat, `heartbeat` how often it renews its leases, `poll`
        how often an idle worker claims without a wake-up, `grace` how long handlers may run on after a worker was asked
        to stop. Running workers follow within 5 s. Raises InvalidOption for durations that do not fit each other.
        """
        unknown = sorted(changes.keys() - set(NAMES))
        if unknown:
            raise InvalidOption(unknown[0], f"is no setting; settings are {', '.join(NAMES)}")
        store = (await self._sessions.checked()).settings
        values = {f"{name}_ms": None if value is None else to_ms(value, name) for name, value in changes.items()}
        for _ in range(ATTEMPTS):
            before = await store.read()
            wanted = msgspec.structs.replace(before, **values)
            _ = wanted.durations  # raises InvalidOption
            if await store.change(before, wanted):
                return await store.read()
        raise WrongState("the settings of the namespace", "being changed by others", "change")

    get_sync = sync_method(get)
    change_sync = sync_method(change)
