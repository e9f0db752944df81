"""The durations that this worker uses now: the settings of its namespace, as it last read them."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from rota.core.lease_heartbeat_poll_and_grace_durations import (
    POLL_MARGIN_MS,
    DurationSettings,
    WorkerDurations,
    outage_gap_ms,
)
from rota.errors import InvalidOption

logger = logging.getLogger("rota.worker")

#: A longer lease lets longer outages go unnoticed, and leases of the old length would not survive them. So the gap and
#: the heartbeat grow only when the new settings have been read so often, 5 s apart, while the server answered: by then
#: every worker that reaches the server has read them, and no lease of the old length is left.
SETTLED_READS: Final = 4


class CurrentDurations:
    """Follows the settings of the namespace. Other loops read its attributes at each use."""

    def __init__(self) -> None:
        #: Set when new settings were read; the heartbeat clears it.
        self.changed = asyncio.Event()
        self._settings = DurationSettings()
        self._reads = 0
        #: Lease and heartbeat before the latest change.
        self._before = (0, 0)
        durations = WorkerDurations()
        self._use(durations, heartbeat_ms=durations.heartbeat_ms, gap_ms=outage_gap_ms(durations.lease_ms))

    @property
    def version(self) -> int:
        """Of the settings that this worker follows."""
        return self._settings.version

    def follow(self, settings: DurationSettings) -> bool:
        """Uses settings that were just read; True if they are new. Values that do not fit each other change nothing."""
        is_new = settings.version != self._settings.version
        if not is_new and self._reads >= SETTLED_READS:
            return False
        try:
            durations = settings.durations
        except InvalidOption as error:
            self._settings, self._reads = settings, SETTLED_READS
            logger.error("settings %d of the namespace are not used: %s", settings.version, error)
            return False
        if is_new:
            self._before = (self.lease_ms, self.heartbeat_ms)
            self._settings, self._reads = settings, 0
        self._reads += 1
        lease_ms, heartbeat_ms = durations.lease_ms, durations.heartbeat_ms
        if self._reads < SETTLED_READS and settings.version:
            lease_ms = min(lease_ms, settings.previous_lease_ms, self._before[0])
            heartbeat_ms = min(heartbeat_ms, self._before[1])
        self._use(durations, heartbeat_ms=heartbeat_ms, gap_ms=outage_gap_ms(lease_ms))
        if is_new:
            self.changed.set()
            logger.info(
                "settings %d of the namespace: lease %g s, heartbeat %g s, poll %g s, grace %g s",
                settings.version,
                *(ms / 1000 for ms in (durations.lease_ms, durations.heartbeat_ms, durations.poll_ms)),
                durations.grace_ms / 1000,
            )
        return is_new

    def _use(self, durations: WorkerDurations, *, heartbeat_ms: int, gap_ms: int) -> None:
        self.lease_ms = durations.lease_ms
        self.heartbeat_ms = heartbeat_ms
        self.outage_gap_ms = gap_ms
        self.grace_s = durations.grace_ms / 1000
        #: Wake-ups are hints: an idle worker polls this often. Each poll shows that the server is alive.
        self.poll_s = min(durations.poll_ms, gap_ms - POLL_MARGIN_MS) / 1000
        #: A full worker is not woken when something becomes due, so it polls twice as often. So does one that may have
        #: to take over a lease: a late poll would postpone that by a whole lease.
        self.busy_poll_s = self.poll_s / 2
