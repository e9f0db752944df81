"""How much one call may do, so that no script keeps the server busy for long, and how long a claim lasts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: How long a claim lasts without a heartbeat. A killed worker's jobs run elsewhere after at most this, plus a moment.
LEASE_MS: Final = 4_500
#: Runs that one call may move: what keeps a script below 5 ms.
BATCH: Final = 500
#: Verb -> the same, where a run costs the server more than the 7 µs of one that is just enqueued, claimed or completed:
#: with a record, a line of history and an index written for each, 25 to 70 µs. A run that completes may free a lock or
#: have dependents. `benchmarks/scripts.py` measures it.
SLICES: Final[Mapping[str, int]] = {
    "complete": 125,
    "fail": 40,
    "snooze": 80,
    "return": 50,
    "reap": 40,
    "give_up": 40,
    "redrive": 40,
    "progress": 150,
    "sweep": 250,
}
#: Runs that a claim reaps, expires or promotes on its way (`housekeeping.lua`): then it is asked again at once.
CHORES: Final = 60
#: Waiting runs that a purge looks at in one call: the steps of workflows among them stay.
PURGE_LOOKS: Final = 2_000
#: Runs that one call deletes of a queue that is purged: each takes about 10 µs, and as much again where it is indexed.
PURGED: Final = 150
BATCH_BYTES: Final = 4 * 2**20
