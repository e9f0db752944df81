"""Constants that the Lua scripts and the Python code share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

#: Parts of the options in a job record, in order; `core/job_record_codec.py` writes them.
OPTION_PARTS: Final[Sequence[str]] = (
    "general",
    "attempts",
    "backoff",
    "max_stalls",
    "metadata",
    "lock",
    "parents",
    "terms",
    "blobs",
)

#: Events kept per stream, about: older ones are trimmed.
EVENTS_KEPT: Final = 10_000
#: How long an idempotency token refers to the run that it made.
ONCE_KEPT_MS: Final = 86_400_000
#: How long the reply to a call is kept, so that the same call sent again gets it and is not carried out twice.
REPLY_KEPT_MS: Final = 600_000
#: Bytes that the arguments or the result of a job may have, unless the program says otherwise.
MAX_PAYLOAD: Final = 2**20
#: Follow-ups merged into one run that can still be looked up, besides those that other jobs depend on.
MERGED_KEPT: Final = 100
#: Bytes of records and results that one call may handle: about 3 ms of the server's time.
CALL_BYTES: Final = 2**20
#: As many jobs as a claim may ask for, each with a record of this length, have no more than `CALL_BYTES` together.
SHORT_RECORD: Final = CALL_BYTES // 500
#: Tasks of a queue that have counters of their own have the numbers from 2 to this one; all others share 1.
TASK_NUMBERS: Final = 101
#: How long the repair of a damaged value is reported.
REPAIRS_KEPT_MS: Final = 604_800_000
#: How long a workflow that has ended is kept.
WORKFLOW_KEPT_MS: Final = 86_400_000
#: How long a worker that has been silent stays in the registry.
WORKER_KEPT_MS: Final = 86_400_000
#: How long a decision of the autoscaler is kept, and how many are kept, about.
DECISIONS_KEPT_MS: Final = 30 * 86_400_000
DECISIONS_KEPT: Final = 50_000
#: How long a blob is kept before a job takes it: a producer that is killed in between leaves it behind for so long.
BLOB_UNTAKEN_MS: Final = 3_600_000
#: Bytes of one chunk of a blob: a call that carries it takes the server less than a millisecond.
BLOB_CHUNK_BYTES: Final = 256 * 2**10
#: What the store keeps of the log of a run; runners send no more.
MAX_LOG_LINES: Final = 1_000
MAX_LOG_BYTES: Final = 256 * 2**10
