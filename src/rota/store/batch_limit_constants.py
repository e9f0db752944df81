"""Batch limits: how many runs and bytes one script call may handle, which keeps every script below 5 ms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rota.core.lua_constants import CALL_BYTES

#: Runs that one call may move.
BATCH: Final = 500
#: Verb -> runs that one call of it may move, where a run costs more than the 7 µs of a plain enqueue, claim or
#: completion: writing a record, a history entry and an index takes 25 to 70 µs. A completed run may release a lock or
#: have dependents. Measured by `benchmarks/scripts.py`.
BATCH_BY_VERB: Final[Mapping[str, int]] = {
    "complete": 125,
    "fail": 40,
    "snooze": 80,
    "return": 50,
    "report_dead_process": 40,
    "cancel_self": 40,
    "confirm_cancelled_run_stopped": 40,
    "redrive": 40,
    "save_progress": 150,
    "apply_retention": 250,
}
#: Runs that one claim promotes, expires or reaps (`promote_expire_and_reap_due_runs.lua`). If more are due, it claims
#: again.
HOUSEKEEPING_BATCH: Final = 60
#: Tasks of a queue that may be paused at a time: a claim reads all of them.
MAX_PAUSED_TASKS: Final = 100
#: Waiting runs that one purge call examines; it skips the steps of workflows among them.
PURGE_SCANNED: Final = 2_000
#: Runs that one purge call deletes: about 10 µs each, and twice that where the run is indexed.
PURGE_BATCH: Final = 150
#: Bytes of records, results or errors that one call carries; a longer one travels alone.
BATCH_BYTES: Final = CALL_BYTES
