"""`rota.mirror(to=…)`: keeps a copy of every job, schedule and workflow on a second server current.

The mirror follows the events of the source and reads what they name. Events are hints, so from time to time it compares
everything. It writes lines of an export, which no worker of the second server runs before they are restored.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rota.client.events import EventBatch, follow_batches
from rota.core.export_line_codec import VERSION, encode_line
from rota.core.ids import is_run
from rota.core.lua_constants import CALL_BYTES
from rota.errors import ConfigurationError, InvalidOption
from rota.store.keys import failures_of
from rota.store.mirrored_export_lines import BATCH, BLOB, WORKFLOW_LINES, MirrorStore, chunk_field
from rota.store.read_and_restore_exported_records import JobCopies

if TYPE_CHECKING:
    from rota.client.session import Session

#: Seconds from one comparison of everything to the next.
RECONCILE_S: Final = 300.0
#: The field of a queue's header among its lines. Those of jobs are their runs.
HEADER: Final = "queue"
SHARDS: Final = "shards"


class Mirror:
    """Copies from one server to another, until it is cancelled."""

    def __init__(self, source: Session, target: Session, *, reconcile_s: float = RECONCILE_S) -> None:
        self._source = source
        self._copies = JobCopies(source.store)
        self._target = MirrorStore(target.store)
        self._target_session = target
        self._reconcile_s = reconcile_s
        #: One reader at a time: what it has read is written before another one reads the same job.
        self._reading = asyncio.Lock()
        #: Set when everything has been compared once.
        self.is_current = asyncio.Event()

    async def run(self) -> None:
        """Runs until it is cancelled. Raises ConfigurationError if the source has lost data, or it was replaced."""
        await self._refuse_itself()
        await self._target.open(secrets.token_hex(8))
        positions = {queue: found for queue in await self._names() if (found := await self._target.position(queue))}
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow(positions))
            tasks.create_task(self._reconcile_again_and_again())

    async def run_alone(self) -> None:
        """Runs, and raises the first error by itself instead of in a group."""
        try:
            await self.run()
        except ExceptionGroup as group:
            raise group.exceptions[0] from group

    async def reconcile(self) -> None:
        """Compares everything with the source once."""
        for queue in await self._names():
            await self._reconcile_queue(queue)
        self.is_current.set()

    async def _refuse_itself(self) -> None:
        if self._source.keys.namespace != self._target_session.keys.namespace:
            return
        infos = [await session.redis.command("INFO", "server") for session in (self._source, self._target_session)]
        ids = [[line for line in info.splitlines() if line.startswith(b"run_id:")] for info in infos]
        if ids[0] == ids[1]:
            raise InvalidOption("to", "this is the server that is mirrored: name a second one")

    async def _names(self) -> list[str]:
        bases = await self._source.views.queues()
        names = [name for base in bases for name in (base, failures_of(base))]
        # The copy may know queues that the source has lost.
        return list(dict.fromkeys([WORKFLOW_LINES, *names, *await self._target.queues()]))

    async def _follow(self, positions: Mapping[str, str]) -> None:
        async for batch in follow_batches(self._source.redis, self._source.keys, self._names, positions):
            for queue in batch.resets:
                await self._reconcile_queue(queue, position=batch.after[queue])
            await self._copy_events(batch)

    async def _copy_events(self, batch: EventBatch) -> None:
        named: dict[str, dict[str, None]] = {}
        for event in batch.events:
            named.setdefault(event.queue, {}).update(dict.fromkeys(event.runs))
        for queue, names in named.items():
            async with self._reading:
                await self._copy(queue, list(names), position=batch.after[queue])

    async def _copy(self, queue: str, names: list[str], *, position: str = "") -> None:
        """Copies jobs, schedules or workflows by their names, and removes those that are gone."""
        lines, gone = dict[str, str](), list[str]()
        if queue == WORKFLOW_LINES:
            lines = {name: line for name in names if (line := await self._workflow_line(name))}
            expected = set(await self._known(queue, names))
            if expected - lines.keys():
                await self._refuse_loss()
        else:
            runs = [name for name in names if is_run(name)]
            for start in range(0, len(runs), BATCH):
                read = await self._copies.read_runs(queue, runs[start : start + BATCH])
                jobs, left = await self._job_lines(queue, read)
                lines |= jobs
                gone += left
            if len(runs) < len(names):  # an event of a schedule
                lines |= await self._schedule_lines(queue)
            expected = set(runs) | {name for name in names if name not in runs}
        await self._target.add_queue(queue)
        await self._write(queue, lines, [*sorted(expected - lines.keys()), *gone], position=position)

    async def _job_lines(self, queue: str, runs: Sequence[Mapping[str, Any]]) -> tuple[dict[str, str], list[str]]:
        """The lines of jobs by their fields, and chunks to be removed with them. Writes the chunks of new blobs."""
        lines, gone = dict[str, str](), list[str]()
        stored = await self._target.read(queue, [fields["run"] for fields in runs])
        for fields, old in zip(runs, stored, strict=True):
            if fields.get("index") == "prepared":
                continue  # its producer is about to publish or to discard it
            named, copied = fields.get("blobs", "").split(), _blobs_of(old)
            # A blob never changes, but a job may get others.
            await self._copy_blobs(queue, {**fields, "blobs": " ".join(b for b in named if b not in copied)})
            replaced = [blob for blob in copied if blob not in named]
            gone += [name async for name, _ in self._target.chunks(queue, fields["run"], replaced)]
            lines[fields["run"]] = encode_line("job", fields)
        return lines, gone

    async def _copy_blobs(self, queue: str, fields: Mapping[str, Any]) -> None:
        """Writes the blobs of a job before its line, a few chunks at a time."""
        chunks, size = dict[str, str](), 0
        async for chunk in self._copies.read_blobs(fields):
            line = encode_line("blob", chunk)
            chunks[chunk_field(fields["run"], chunk["blob"], chunk["index"])] = line
            size += len(line)
            if size > CALL_BYTES:
                await self._write(queue, chunks)
                chunks, size = {}, 0
        if chunks:
            await self._write(queue, chunks)

    async def _known(self, queue: str, names: list[str]) -> list[str]:
        found = await self._target.read(queue, names)
        return [name for name, line in zip(names, found, strict=True) if line is not None]

    async def _workflow_line(self, workflow_id: str) -> str:
        fields = await self._copies.read_workflow(workflow_id)
        return encode_line("workflow", fields) if fields else ""

    async def _schedule_lines(self, queue: str) -> dict[str, str]:
        schedules = await self._copies.read_schedules(queue)
        return {f"schedule {fields['name']}": encode_line("schedule", fields) for fields in schedules}

    async def _reconcile_again_and_again(self) -> None:
        while True:
            await self.reconcile()
            await asyncio.sleep(self._reconcile_s)

    async def _reconcile_queue(self, queue: str, *, position: str = "") -> None:
        if queue == WORKFLOW_LINES:
            await self._reconcile_workflows(position)
            return
        async with self._reading:
            seen = {HEADER: encode_line("queue", await self._copies.read_queue(queue))}
            seen |= await self._schedule_lines(queue)
            await self._target.add_queue(queue)
            await self._write_changed(queue, seen)
        found = set(seen)
        walk = self._copies.walk_runs(queue)
        while True:
            async with self._reading:
                runs = await anext(walk, None)
                if runs is None:
                    break
                lines, gone = await self._job_lines(queue, runs)
                await self._write_changed(queue, lines, gone)
                found |= lines.keys()
        async for kept in self._target.walk(queue):
            unseen = [name for name in kept if name not in found]
            await self._remove_gone(queue, [name for name in unseen if not _is_blob_of(name, found)])
        if position:
            async with self._reading:
                await self._write(queue, {}, position=position)

    async def _remove_gone(self, queue: str, names: list[str]) -> None:
        """Removes those of the names that are gone: a job may have been enqueued since the walk passed it."""
        if not names:
            return
        async with self._reading:
            await self._copy(queue, [name for name in names if is_run(name)])
            await self._write(queue, {}, [name for name in names if not is_run(name)])

    async def _reconcile_workflows(self, position: str) -> None:
        async with self._reading:
            shards = await self._source.redis.command("HGETALL", self._source.keys.shared("shards"))
            counts = {queue.decode(): int(count) for queue, count in zip(shards[::2], shards[1::2], strict=True)}
            lines = {
                f"{SHARDS} {queue}": encode_line("shards", {"queue": queue, "shards": n}) for queue, n in counts.items()
            }
            await self._write_changed(WORKFLOW_LINES, lines)
        stored = await self._copies.workflow_ids()
        for workflow_id in stored:
            async with self._reading:
                if line := await self._workflow_line(workflow_id):
                    await self._write_changed(WORKFLOW_LINES, {workflow_id: line})
        known = {*stored, *lines}
        async with self._reading:
            await self._refuse_loss()  # before anything is removed
        async for kept in self._target.walk(WORKFLOW_LINES):
            gone = [name for name in kept if name not in known]
            async with self._reading:
                await self._target.write(WORKFLOW_LINES, {}, gone, position=position)

    async def _write_changed(self, queue: str, lines: Mapping[str, str], removed: Sequence[str] = ()) -> None:
        stored = await self._target.read(queue, list(lines))
        changed = {name: line for (name, line), old in zip(lines.items(), stored, strict=True) if line != old}
        if changed or removed:
            await self._write(queue, changed, removed)

    async def _write(
        self, queue: str, lines: Mapping[str, str], removed: Sequence[str] = (), *, position: str = ""
    ) -> None:
        """Writes what was read, unless the source has lost data: its counter of runs is read after everything else."""
        if queue == WORKFLOW_LINES:
            await self._target.write(queue, lines, removed, position=position)
            return
        header = await self._copies.read_queue(queue)
        written = {**lines, HEADER: encode_line("queue", header)}
        await self._target.write(queue, written, removed, newest=header["run"], position=position)

    async def _refuse_loss(self) -> None:
        """Raises ConfigurationError if a queue of the source has lost data: workflows have no counter of their own."""
        for queue in await self._names():
            if queue != WORKFLOW_LINES and await self._target.newest(queue):
                await self._write(queue, {})


async def mirrored_lines(target: Session) -> AsyncGenerator[str]:
    """Yields the lines of an export from the copy of a mirror. Raises ConfigurationError if there is none."""
    store = MirrorStore(target.store)
    mirror_id = await store.id()
    if not mirror_id:
        raise ConfigurationError("there is no copy on this server: `rota mirror run` makes one")
    yield encode_line("export", {"version": VERSION, "id": mirror_id, "namespace": target.keys.namespace})
    count = 0
    async for lines in store.walk(WORKFLOW_LINES):
        for name, line in lines.items():
            if name.startswith(f"{SHARDS} "):
                yield line
    async for lines in store.walk(WORKFLOW_LINES):
        for name, line in lines.items():
            if not name.startswith(f"{SHARDS} "):
                yield line
    for queue in [name for name in await store.queues() if name != WORKFLOW_LINES]:
        async for line in _queue_lines(store, queue):
            count += line.startswith('{"kind":"job"')
            yield line
    yield encode_line("end", {"jobs": count})


async def _queue_lines(store: MirrorStore, queue: str) -> AsyncGenerator[str]:
    """The lines of a queue: its header, each follow-up right after its run, then all others."""
    for line in await store.read(queue, [HEADER]):
        if line is not None:
            yield line
    async for lines in store.walk(queue):
        for line in lines.values():
            if '"follows"' in line and (follows := json.loads(line).get("follows")):
                holders = [holder for holder in await store.read(queue, [follows]) if holder is not None]
                async for part in _after_their_blobs(store, queue, [*holders, line]):
                    yield part
    async for lines in store.walk(queue):
        for name, line in lines.items():
            if name != HEADER and not name.startswith(f"{BLOB} "):
                async for part in _after_their_blobs(store, queue, [line]):
                    yield part


async def _after_their_blobs(store: MirrorStore, queue: str, lines: Sequence[str]) -> AsyncGenerator[str]:
    """The chunks of the blobs of jobs, just before these: a blob expires unless its job is restored soon."""
    for line in lines:
        if blobs := _blobs_of(line):
            async for _, chunk in store.chunks(queue, json.loads(line)["run"], blobs):
                yield chunk
    for line in lines:
        yield line


def _blobs_of(line: str | None) -> list[str]:
    """The blobs that the line of a job names."""
    return json.loads(line).get("blobs", "").split() if line and '"blobs":' in line else []


def _is_blob_of(name: str, runs: Collection[str]) -> bool:
    """True for a chunk of a blob whose job is still there."""
    return name.startswith(f"{BLOB} ") and name.split(" ")[1] in runs
