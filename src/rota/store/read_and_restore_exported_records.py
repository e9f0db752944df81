"""Reads and restores what an export has: jobs with all that is stored of them, schedules and workflows."""

from __future__ import annotations

import base64
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from rota.core.export_line_codec import bytes_of, in_batches, run_of_reply, text_of, words_of_run
from rota.core.lua_constants import CALL_BYTES, WORKFLOW_KEPT_MS
from rota.core.workflow_record_and_decisions import ENDED, STUCK
from rota.store.blob_store import BlobStore
from rota.store.job_store import JobStore
from rota.store.namespace_settings import SettingsStore
from rota.store.redis.hash_and_time_replies import read_hash
from rota.store.redis.retrying_client import Argument
from rota.store.redis.script_compiler import script

#: Runs that one call reads, about, and restores.
READ_BATCH: Final = 50
IMPORT_BATCH: Final = 20
#: Counters of a queue that must not fall behind those of the export.
COUNTERS: Final = ("run", "fence", "outcome_number")


class JobCopies:
    """Reads jobs as they are stored, one script call per slice, and restores them."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._redis = store.redis
        self._keys = store.keys

    # --- reading -----------------------------------------------------------------------------------------------

    async def read_queue(self, queue: str) -> dict[str, Any]:
        """The counters of a queue, and whether it is paused."""
        found = await self._redis.command("HMGET", self._keys.queue(queue, "meta"), *COUNTERS, "is_paused")
        counts = {name: text_of(value or b"0") for name, value in zip(COUNTERS, found[:3], strict=True)}
        return {"queue": queue, **counts, "is_paused": found[3] == b"1"}

    async def walk_runs(self, queue: str) -> AsyncIterator[list[dict[str, Any]]]:
        """Yields all runs of a queue, slice by slice. Those that exist throughout come at least once."""
        keys, cursor = self._store.script_keys("read_runs_to_copy", queue), "0"
        while True:
            found, *runs = await self._redis.run("read_runs_to_copy", keys, [cursor, READ_BATCH])
            yield [run_of_reply(queue, run) for run in runs]
            cursor = found.decode()
            if cursor == "0":
                return

    async def read_runs(self, queue: str, names: Sequence[str]) -> list[dict[str, Any]]:
        """The runs of these numbers or ids that exist, each follow-up with the run before it."""
        keys, read = self._store.script_keys("read_runs_to_copy", queue), list[dict[str, Any]]()
        at = 0
        while at < len(names):
            words: list[Argument] = ["", READ_BATCH, *names[at : at + READ_BATCH]]
            done, *runs = await self._redis.run("read_runs_to_copy", keys, words)
            read += (run_of_reply(queue, run) for run in runs)
            at += max(1, int(done))
        return read

    async def read_blobs(self, fields: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Yields the chunks of a job's blobs. Those in the user's own store have none here."""
        blobs = BlobStore(self._store)
        for blob in fields.get("blobs", "").split():
            for index in itertools.count():
                chunk = await blobs.read(fields["queue"], fields["run"], blob, index)
                if chunk is None:
                    break
                text = base64.b64encode(chunk).decode()
                yield {"queue": fields["queue"], "run": fields["run"], "blob": blob, "index": index, "chunk": text}

    async def read_schedules(self, queue: str) -> list[dict[str, Any]]:
        """The schedules of a queue: record and next tick."""
        records = read_hash(await self._redis.command("HGETALL", self._keys.queue(queue, "schedules")))
        ticks = await self._redis.command("ZRANGE", self._keys.queue(queue, "schedule_due"), 0, -1, "WITHSCORES")
        tick_of = dict(zip(map(text_of, ticks[::2]), map(text_of, ticks[1::2]), strict=True))
        return [
            {"queue": queue, "name": name, "tick": tick_of.get(name, ""), "record": text_of(record)}
            for name, record in records.items()
        ]

    async def workflow_ids(self) -> list[str]:
        """The ids of all workflows that are kept."""
        return [text_of(name) for name in await self._redis.command("ZRANGE", self._keys.shared("workflows"), 0, -1)]

    async def read_workflow(self, workflow_id: str) -> dict[str, Any] | None:
        """The record of a workflow and the results of its steps; None if it is no longer kept."""
        found, results = await self._redis.commands(
            [["HGETALL", self._keys.shared(name, workflow_id)] for name in ("workflow", "workflow_results")]
        )
        fields = {name: text_of(value) for name, value in read_hash(found).items() if name != "waiters"}
        if not fields:
            return None
        return {"id": workflow_id, "fields": fields, "results": {k: text_of(v) for k, v in read_hash(results).items()}}

    # --- restoring ---------------------------------------------------------------------------------------------

    async def restore_runs(
        self, export: str, header: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]
    ) -> list[tuple[str, str]]:
        """Restores runs of one queue. Returns for each its outcome, see `import_runs.lua`, and its run here."""
        queue = str(header["queue"])
        keys, outcomes = self._store.script_keys("import_runs", queue), list[tuple[str, str]]()
        lease_ms = (await SettingsStore(self._redis, self._keys).read()).durations.lease_ms
        for batch in in_batches(runs, IMPORT_BATCH, CALL_BYTES):
            counts = [str(header.get(name, "0")) for name in COUNTERS]
            words: list[Argument] = [queue, self._keys.inbox_prefix, "repair", lease_ms, export, *counts]
            for run in batch:
                words += words_of_run(run)
            for answer in await self._redis.run("import_runs", keys, words):
                outcome, _, place = answer.decode().partition(" ")
                outcomes.append((outcome, place))
        return outcomes

    async def restore_blob(self, fields: Mapping[str, Any]) -> bool:
        """Restores a chunk of a blob, before its job: it expires after an hour unless the job is restored.

        False if an earlier chunk is not there.
        """
        chunk = base64.b64decode(fields["chunk"])
        index = int(fields["index"])
        return await BlobStore(self._store).append(fields["queue"], fields["blob"], index, chunk) != "missing"

    async def restore_schedule(self, fields: Mapping[str, Any]) -> bool:
        """Restores a schedule with its next tick. False if there is one of that name."""
        queue, name, tick = str(fields["queue"]), str(fields["name"]), str(fields.get("tick", ""))
        await self._redis.command("SADD", self._keys.shared("schedule_queues"), queue)
        words: list[Argument] = [queue, self._keys.inbox_prefix, name, tick, bytes_of(str(fields["record"]))]
        answer = await self._redis.run("import_schedule", self._store.script_keys("import_schedule", queue), words)
        return bool(answer == b"imported")

    async def restore_workflow(self, export: str, fields: Mapping[str, Any]) -> bool:
        """Restores a workflow; its jobs follow. False if it is there, or was restored before."""
        stored: Mapping[str, str] = fields["fields"]
        results: Mapping[str, str] = fields.get("results", {})
        state = stored.get("state", "")
        keys = [self._keys.shared(name) for name in script("import_workflow").keys]
        kind = "ended" if state in ENDED else "stuck" if state in STUCK else "open"
        words: list[Argument] = [export, str(fields["id"]), kind, WORKFLOW_KEPT_MS, len(stored)]
        for name, value in [*stored.items(), *results.items()]:
            words += (name, bytes_of(value))
        return bool(await self._redis.run("import_workflow", keys, words) == b"imported")
