"""Workflow records: storing, reading and listing them, and the names under which their steps are known.

All records are in the hash slot of the keys that belong to no queue.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from rota.core.dependencies import Parent
from rota.core.ids import JobRef
from rota.core.lua_constants import MAX_PAYLOAD
from rota.core.workflow_record_and_decisions import StepRecord, StepState, WorkflowInfo, WorkflowRecord
from rota.store.create_dependents_and_deliver_outcomes import WORKFLOWS, Edge
from rota.store.job_store import JobStore
from rota.store.redis.hash_and_time_replies import read_hash
from rota.store.redis.retrying_client import Argument
from rota.store.redis.script_compiler import script

#: Another driver may take a workflow after this, if the one that holds it died.
HOLD_MS: Final = 5_000
#: Workflows that one read of the list returns; and reads for one page at most.
PAGE: Final = 200
MAX_READS: Final = 25
_INFO_FIELDS: Final = ("name", "state", "done", "total", "created_at", "ended_at", "cause")
_steps: Final = msgspec.json.Decoder(list[StepRecord])


class WorkflowRecords:
    """Reads and changes the records of workflows."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._redis = store.redis
        self._key = store.keys.shared

    async def open(
        self, workflow_id: str, steps: Sequence[StepRecord], fields: Mapping[str, str], *, nonce: str
    ) -> str:
        """Stores a workflow whose steps are prepared. From then on a driver completes it, if this process dies.

        Returns its state, or "in_use" if another workflow has that id: `nonce` distinguishes them.
        """
        words: list[Argument] = [self._store.keys.inbox_prefix, workflow_id, HOLD_MS, nonce]
        for field, value in {**fields, "total": str(len(steps)), "version": "0"}.items():
            words += (field, value)
        words += ("graph", msgspec.json.encode(steps))
        return (await self._run("open_workflow", words)).decode()

    async def read(self, workflow_id: str) -> WorkflowRecord | None:
        """The record of a workflow; None if there is none."""
        answer = await self._redis.command("HGETALL", self._key("workflow", workflow_id))
        found = read_hash(answer)
        return _read_record(workflow_id, found) if found else None

    async def read_results(self, workflow_id: str, parts: Sequence[str]) -> list[bytes | None]:
        """The results of steps ("3") and items ("3.7") of a workflow; None for null, or one that is not kept."""
        found: list[bytes | None] = []
        for start in range(0, len(parts), PAGE):
            names = parts[start : start + PAGE]
            found += await self._redis.command("HMGET", self._key("workflow_results", workflow_id), *names)
        return found

    async def recent(self, limit: int, *, states: Collection[str] = ()) -> list[WorkflowInfo]:
        """The latest workflows, newest first; only those in `states`, if any are given."""
        infos: list[WorkflowInfo] = []
        after: tuple[int, str] | None = None
        while True:
            found, after = await self.page(limit - len(infos), after=after, states=states)
            infos += found
            if after is None or len(infos) >= limit:
                return infos

    async def page(
        self, limit: int, *, after: tuple[int, str] | None, states: Collection[str] = (), name: str = ""
    ) -> tuple[list[WorkflowInfo], tuple[int, str] | None]:
        """Workflows older than the one with the time and id `after`, newest first; and the last one examined, or None.

        It examines a bounded number of workflows, so a page may be short and still have a next one.
        """
        infos: list[WorkflowInfo] = []
        for _ in range(MAX_READS):
            listed, is_end = await self._older_than(after)
            keys = [self._key("workflow", workflow_id) for _, workflow_id in listed]
            found = await self._redis.commands([["HMGET", key, *_INFO_FIELDS] for key in keys]) if keys else []
            for (at, workflow_id), fields in zip(listed, found, strict=True):
                after = at, workflow_id
                if fields[0] is None:
                    continue
                info = _info(workflow_id, fields)
                if (not states or info.state in states) and (not name or info.name == name):
                    infos.append(info)
                if len(infos) == limit:
                    return infos, after
            if is_end:
                return infos, None
        return infos, after

    async def _older_than(self, after: tuple[int, str] | None) -> tuple[list[tuple[int, str]], bool]:
        """Times and ids of workflows older than one of them, newest first; and whether these are all."""
        highest = "+inf" if after is None else after[0]
        skipped = 0
        while True:
            answer = await self._redis.command(
                "ZRANGE",
                self._key("workflows"),
                highest,
                "-inf",
                "BYSCORE",
                "REV",
                "LIMIT",
                skipped,
                PAGE,
                "WITHSCORES",
            )
            found = [(int(float(answer[at + 1])), answer[at].decode()) for at in range(0, len(answer), 2)]
            left = [one for one in found if after is None or one < after]
            if left or len(found) < PAGE:
                return left, len(found) < PAGE
            skipped += PAGE  # more than a page was opened in that millisecond

    async def states(self, workflow_ids: Sequence[str]) -> dict[str, str]:
        """Id -> state; "" if the workflow is not kept."""
        answers = await self._redis.commands(
            [["HGET", self._key("workflow", workflow), "state"] for workflow in workflow_ids]
        )
        return {workflow: (answer or b"").decode() for workflow, answer in zip(workflow_ids, answers, strict=True)}

    async def stuck(self, limit: int = 1_000) -> tuple[list[str], list[str]]:
        """Workflows that need an operator, latest first: those that failed, and those that are parked."""
        ids = [
            name.decode()
            for name in await self._redis.command("ZRANGE", self._key("stuck_workflows"), 0, limit - 1, "REV")
        ]
        states = await self.states(ids) if ids else {}
        return [workflow for workflow in ids if states[workflow] == "failed"], [
            workflow for workflow in ids if states[workflow] == "parked"
        ]

    async def watch(self, workflow_id: str) -> str:
        """Subscribes this participant to the end of a workflow. Returns its state, or "missing"."""
        return (await self._run("watch_workflow_end", [workflow_id, self._store.participant])).decode()

    async def save_decision(
        self,
        workflow: WorkflowRecord,
        state: str = "",
        *,
        fields: Mapping[str, str] | None = None,
        next_ms: int | None = None,
    ) -> str:
        """Stores a decision; "stale" if the record has changed since it was read."""
        words: list[Argument] = [self._store.keys.inbox_prefix, workflow.id, workflow.version, state]
        words.append("" if next_ms is None else next_ms)
        for pair in (fields or {}).items():
            words += pair
        return (await self._run("save_workflow_decision", words)).decode()

    async def look_again(self, workflow_id: str) -> None:
        """Lets a driver decide about the workflow as soon as one is free."""
        await self._redis.command("ZADD", self._key("workflow_due"), 1, workflow_id)

    async def with_limit(self, workflow_ids: Sequence[str]) -> list[str]:
        """The workflows whose name has a concurrency limit."""
        if not workflow_ids:
            return []
        answers = await self._redis.commands(
            [["HGET", self._key("workflow", workflow), "limit"] for workflow in workflow_ids]
        )
        return [workflow for workflow, limit in zip(workflow_ids, answers, strict=True) if int(limit or 0) > 0]

    async def _run(self, name: str, words: Sequence[Argument]) -> Any:
        return await self._redis.run(name, [self._key(key) for key in script(name).keys], words)


def gate_parent_name(workflow_id: str) -> str:
    """The name of the parent that the first steps wait for: the concurrency limit of the workflow."""
    return f"{WORKFLOWS}:{workflow_id}"


def list_parent_name(workflow_id: str, step: int) -> str:
    """The parent name of a list step, within its dependents."""
    return f"{WORKFLOWS}:{workflow_id}.{step}"


def compensation_id(workflow_id: str, step: int) -> str:
    """The id of the job that compensates a step."""
    return f"{workflow_id}.undo.{step}"


def find_part(workflow: WorkflowRecord, job_id: str) -> tuple[int, int | None, bool] | None:
    """The part of a workflow that a job is: its step, the item of a list step, whether it is the compensation."""
    for index, step in enumerate(workflow.steps):
        if job_id == step.id and step.items is None:
            return index, None, False
        if job_id == compensation_id(workflow.id, index):
            return index, None, True
        item = job_id.removeprefix(f"{step.id}.")
        if step.items is not None and item != job_id and item.isdecimal():
            return index, int(item), False
    return None


def workflow_edge(workflow_id: str, part: str, queue: str, job_id: str, run: str, *, wants_result: bool = True) -> Edge:
    """The edge from a workflow to one of its jobs: a workflow is a dependent of each, and so receives its outcome."""
    return Edge(
        WORKFLOWS,
        workflow_id,
        Parent(JobRef(queue, job_id, run or None), placeholder="r" if wants_result else ""),
        part,
    )


def _info(workflow_id: str, fields: Sequence[bytes | None]) -> WorkflowInfo:
    name, state, done, total, created_at, ended_at, cause = (
        (field or b"").decode(errors="replace") for field in fields
    )
    return WorkflowInfo(
        id=workflow_id,
        name=name,
        state=state,
        done=int(done or 0),
        total=int(total or 0),
        created_at=int(created_at or 0),
        ended_at=int(ended_at) if ended_at else None,
        cause=cause,
    )


def _read_record(workflow_id: str, found: Mapping[str, bytes]) -> WorkflowRecord:
    step_states: dict[int, StepState] = {}
    undo_states: dict[int, StepState] = {}
    items: dict[int, dict[int, StepState]] = defaultdict(dict)
    lengths: dict[int, int] = {}
    for field, value in found.items():
        kind, rest = field[0], field[1:]
        if not rest[:1].isdigit():
            continue
        match kind:
            case "s":
                step_states[int(rest)] = _read_step_state(value)
            case "u":
                undo_states[int(rest)] = _read_step_state(value)
            case "m":
                index, _, item = rest.partition(".")
                items[int(index)][int(item)] = _read_step_state(value)
            case "n":
                lengths[int(rest)] = int(value)
            case _:
                pass
    text = {key: value.decode(errors="replace") for key, value in found.items() if key != "graph"}
    return WorkflowRecord(
        id=workflow_id,
        name=text["name"],
        state=text["state"],
        version=text.get("version", "0"),
        on_failure=text.get("on_failure", "hold"),
        resume=text.get("resume", ""),
        limit=int(text.get("limit", 0)),
        created_at=int(text.get("created_at", 0)),
        ended_at=int(text["ended_at"]) if "ended_at" in text else None,
        cause=text.get("cause", ""),
        steps=_steps.decode(found.get("graph", b"[]")),
        step_states=step_states,
        undo_states=undo_states,
        item_states=items,
        lengths=lengths,
        max_payload=int(text.get("max_payload", MAX_PAYLOAD)),
        is_committed=text.get("committed") == "1",
        is_open=text.get("gate", "open") == "open",
        cancel=text.get("cancel", ""),
        resuming=_numbers(text.get("resuming", "")),
        is_compensating=text.get("compensating") == "1",
        is_busy=text.get("busy") == "1",
    )


def _numbers(text: str) -> dict[str, int]:
    pairs = (word.split(":") for word in text.split())
    return {part: int(number) for part, number in pairs}


def _read_step_state(value: bytes) -> StepState:
    number, outcome, attempts = value.decode().split(" ")
    return StepState(int(number), outcome, int(attempts))
