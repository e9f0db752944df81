"""Workflows in the store: their records, and the decisions about them carried out.

All records share the slot of keys that belong to no queue. Whoever hears that a workflow waits for a decision may
carry it out: it is taken for a while, every act may be repeated, and a record that has changed meanwhile is decided on
anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from rota.core.after import Parent
from rota.core.job import JobRef
from rota.core.workflow import (
    MAX_ITEMS,
    OPEN,
    Decision,
    Flow,
    Stand,
    Step,
    WorkflowInfo,
    beyond_repair,
    decide,
    undo_order,
)
from rota.errors import StoreError
from rota.store.door import NewJob
from rota.store.gateway import Argument
from rota.store.replies import read_hash
from rota.store.scripts import script
from rota.store.store import Store
from rota.store.ties import FLOWS, SLICE, Edge, Message, Prepared, Tied, Ties

logger = logging.getLogger("rota.workflows")

#: Whoever takes a workflow and dies is not waited for longer.
HOLD_MS: Final = 5_000
#: A decision leads to another a few times at most; beyond this somebody else goes on.
TURNS: Final = 100
#: What is prepared for a workflow and never committed is swept after this, and a minute.
PATIENCE_MS: Final = 3_600_000
_steps: Final = msgspec.json.Decoder(list[Step])


class Flows:
    """What can be done about workflows."""

    def __init__(self, store: Store, ties: Ties) -> None:
        self._store = store
        self._gateway = store.gateway
        self._ties = ties
        self._key = store.keys.shared

    # --- records -----------------------------------------------------------------------------------------------

    async def open(self, flow_id: str, steps: Sequence[Step], fields: Mapping[str, str], *, nonce: str) -> str:
        """Commits a workflow whose steps are prepared: from now on it cannot stay half made.

        Its state; or "in_use", where another one has that id: `nonce` tells them apart.
        """
        words: list[Argument] = [self._store.keys.inbox_prefix, flow_id, HOLD_MS, nonce]
        for field, value in {**fields, "total": str(len(steps)), "version": "0"}.items():
            words += (field, value)
        words += ("graph", msgspec.json.encode(steps))
        return (await self._run("open_flow", words)).decode()

    async def read(self, flow_id: str) -> Flow | None:
        """A workflow as it stands."""
        answer = await self._gateway.command("HGETALL", self._key("flow", flow_id))
        found = read_hash(answer)
        return _flow(flow_id, found) if found else None

    async def recent(self, limit: int, *, states: Collection[str] = ()) -> list[WorkflowInfo]:
        """The latest workflows, the newest first; of those in some states, where any are named."""
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
        """Some workflows, the newest first, behind the one with that time and id; and the last looked at, or None.

        It looks at a bounded number of them, so that a page may be short and still have a next one.
        """
        infos: list[WorkflowInfo] = []
        for _ in range(LOOKS):
            listed, is_end = await self._behind(after)
            keys = [self._key("flow", flow_id) for _, flow_id in listed]
            found = await self._gateway.commands([["HMGET", key, *_SUMMARY] for key in keys]) if keys else []
            for (at, flow_id), fields in zip(listed, found, strict=True):
                after = at, flow_id
                if fields[0] is None:
                    continue
                info = _info(flow_id, fields)
                if (not states or info.state in states) and (not name or info.name == name):
                    infos.append(info)
                if len(infos) == limit:
                    return infos, after
            if is_end:
                return infos, None
        return infos, after

    async def _behind(self, after: tuple[int, str] | None) -> tuple[list[tuple[int, str]], bool]:
        """Times and ids of workflows, the newest first, behind one of them; and whether those are all."""
        highest = "+inf" if after is None else after[0]
        skipped = 0
        while True:
            answer = await self._gateway.command(
                "ZRANGE", self._key("flows"), highest, "-inf", "BYSCORE", "REV", "LIMIT", skipped, PAGE, "WITHSCORES"
            )
            found = [(int(float(answer[at + 1])), answer[at].decode()) for at in range(0, len(answer), 2)]
            left = [one for one in found if after is None or one < after]
            if left or len(found) < PAGE:
                return left, len(found) < PAGE
            skipped += PAGE  # many were committed in that millisecond

    async def states(self, flow_ids: Sequence[str]) -> dict[str, str]:
        """The state of each; "" of one that is not kept."""
        answers = await self._gateway.commands([["HGET", self._key("flow", flow), "state"] for flow in flow_ids])
        return {flow: (answer or b"").decode() for flow, answer in zip(flow_ids, answers, strict=True)}

    async def stuck(self, limit: int = 1_000) -> tuple[list[str], list[str]]:
        """Workflows that wait for a human, the latest first: those that are held, and those that are parked."""
        ids = [name.decode() for name in await self._gateway.command("ZRANGE", self._key("held"), 0, limit - 1, "REV")]
        states = await self.states(ids) if ids else {}
        return [flow for flow in ids if states[flow] == "failed"], [flow for flow in ids if states[flow] == "parked"]

    async def watch(self, flow_id: str) -> str:
        """Asks to be told of its end; its state, or "missing"."""
        return (await self._run("watch_flow", [flow_id, self._store.participant])).decode()

    async def turn(
        self, flow: Flow, state: str = "", *, fields: Mapping[str, str] | None = None, next_ms: int | None = None
    ) -> str:
        """Writes a decision down; "stale" if there has been news since the record was read."""
        words: list[Argument] = [self._store.keys.inbox_prefix, flow.id, flow.version, state]
        words.append("" if next_ms is None else next_ms)
        for pair in (fields or {}).items():
            words += pair
        return (await self._run("turn", words)).decode()

    # --- driving -----------------------------------------------------------------------------------------------

    async def drive_due(self) -> int:
        """Sees to every workflow that waits for a decision and that nobody else is seeing to; says how many."""
        driven = 0
        while taken := await self._run("take_flows", [16, HOLD_MS]):
            for flow_id in taken:
                await self._see_to(flow_id.decode(), self.drive)
                driven += 1
        return driven

    async def _see_to(self, flow_id: str, act: Callable[[str], Awaitable[None]]) -> None:
        try:
            await act(flow_id)
        except StoreError:
            raise
        except Exception:
            # One that cannot be seen to must not keep the others waiting: somebody looks at it again later.
            logger.exception("workflow %s cannot be seen to", flow_id)

    async def drive(self, flow_id: str) -> None:
        """Decides and acts until only news can change anything."""
        for _ in range(TURNS):
            flow = await self.read(flow_id)
            if flow is None:
                return
            decision = decide(flow)
            if decision is None:
                if await self.turn(flow) != "stale":
                    return
                continue
            more = await self._carry_out(flow, decision)
            look_again = None if decision.look_again is None else round(decision.look_again * 1000)
            answer = await self.turn(
                flow,
                decision.state,
                fields={**decision.fields, **more},
                next_ms=HOLD_MS if look_again is None else look_again,
            )
            if look_again is not None and answer != "stale":
                return  # the news of what was done now will come by itself

    async def resume_held(self) -> None:
        """Goes on with workflows that failed and were to be resumed whenever a worker starts."""
        # One that fails again is on the list again, and not looked at twice.
        held = [name.decode() for name in await self._gateway.command("ZRANGE", self._key("held"), 0, -1)]
        for start in range(0, len(held), PAGE):
            ids = held[start : start + PAGE]
            modes = await self._gateway.commands([["HGET", self._key("flow", flow_id), "resume"] for flow_id in ids])
            for flow_id, mode in zip(ids, modes, strict=True):
                if mode == b"on_start":
                    await self._see_to(flow_id, self._resume_if_held)

    async def _resume_if_held(self, flow_id: str) -> None:
        flow = await self.read(flow_id)
        if flow is not None and flow.state == "failed" and not beyond_repair(flow):
            await self.resume(flow)

    async def resume(self, flow: Flow) -> bool:
        """Goes on at the steps that failed; False if there has been news of it since it was read."""
        if not await self._turn_to(flow, flow.failed):
            return False
        await self.drive(flow.id)
        return True

    async def limited(self, flow_ids: Sequence[str]) -> list[str]:
        """Those whose name has a limit."""
        if not flow_ids:
            return []
        answers = await self._gateway.commands([["HGET", self._key("flow", flow), "limit"] for flow in flow_ids])
        return [flow for flow, limit in zip(flow_ids, answers, strict=True) if int(limit or 0) > 0]

    async def go_on_at(self, flow_id: str, refs: Sequence[JobRef]) -> list[JobRef]:
        """Goes on at some of the steps that failed, as soon as there is a place for the workflow; says which they are.

        To be made pending is not theirs to ask for: they would run without a place.
        """
        for queue in {ref.queue for ref in refs}:
            await self._ties.post_all(queue, whose="all")  # it must have heard of what failed
        while True:
            flow = await self.read(flow_id)
            if flow is None or flow.state not in ("waiting", "running", "failed"):
                return []
            numbers = flow.failed
            parts = {ref: part for ref in refs if (part := _part_of(flow, ref)) in numbers}
            wanted = flow.resuming | {part: numbers[part] for part in parts.values()}
            if not parts or await self._turn_to(flow, wanted):
                break
        await self.drive(flow_id)
        return list(parts)

    async def _turn_to(self, flow: Flow, parts: Mapping[str, int]) -> bool:
        """Has it run, or wait for a place, and try these parts again then; False if there has been news meanwhile."""
        words = " ".join(f"{part}:{number}" for part, number in parts.items())
        fields = {"resuming": words, "cause": "", "busy": ""}
        return await self.turn(flow, "running", fields=fields, next_ms=HOLD_MS) != "stale"

    async def _carry_out(self, flow: Flow, decision: Decision) -> dict[str, str]:
        fields: dict[str, str] = {}
        if decision.commit:
            await self._commit(flow)
        if decision.open_gate:
            await self._open_gate(flow)
        if decision.redrive:
            await self._redrive(flow, decision.redrive)
        for place in decision.expand:
            fields[f"n{place}"] = str(await self._expand(flow, place))
        for place, outcome in decision.announce:
            await self._announce(flow, place, outcome)
        if decision.cancel:
            await self._cancel(flow, decision.cancel)
        if decision.compensate:
            await self._compensate(flow, decision.compensate)
        if decision.let_go:
            await self._let_go(flow)
        return fields

    async def _commit(self, flow: Flow) -> None:
        by_queue: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for place, step in enumerate(flow.steps):
            if step.items is None:
                by_queue[step.queue].append((place, step.run))
        for queue, of_queue in by_queue.items():
            outcomes = await self._ties.commit(queue, [run for _, run in of_queue])
            lost = [place for (place, _), outcome in zip(of_queue, outcomes, strict=True) if outcome != "visible"]
            if lost:
                # One may have ended already, and not be kept: then its news comes first.
                await self._ties.post_all(queue, whose="all")
            await self._tell([Message(flow.id, f"s{place}", "0", "deleted", "", b"", "0") for place in lost])

    async def _open_gate(self, flow: Flow) -> None:
        by_queue: dict[str, list[Message]] = defaultdict(list)
        for step in flow.steps:
            if step.items is None:
                by_queue[step.queue].append(Message(step.run, gate_name(flow.id), "1", "completed", "", b"", "1"))
        for queue, messages in by_queue.items():
            await self._ties.deliver(queue, messages)

    async def _redrive(self, flow: Flow, parts: Iterable[str]) -> None:
        by_queue: dict[str, list[tuple[JobRef, str, Stand]]] = defaultdict(list)
        for part in parts:
            place, _, item = part[1:].partition(".")
            step = flow.steps[int(place)]
            if item:
                ref, stand = JobRef(step.queue, f"{step.id}.{item}"), flow.items[int(place)][int(item)]
            else:
                ref, stand = JobRef(step.queue, step.id, step.run), flow.stand(int(place))
            by_queue[step.queue].append((ref, part, stand))
        for queue, of_queue in by_queue.items():
            outcomes = await self._store.redrive(queue, [ref for ref, _, _ in of_queue])
            # A dead letter that somebody deleted brings no news of that.
            await self._tell(
                [
                    Message(flow.id, part, str(stand.number + 1), "deleted", "", b"", str(stand.attempts))
                    for (_, part, stand), outcome in zip(of_queue, outcomes, strict=True)
                    if outcome == "missing"
                ]
            )
            await self._ties.post_all(queue, whose="all")

    async def _expand(self, flow: Flow, place: int) -> int:
        """One job for each item of a list that has become known; says how many, or -1 if it is no list."""
        step = flow.steps[place]
        assert step.items is not None
        try:
            items = msgspec.json.decode(flow.results.get(str(step.items), b"null"), type=list[msgspec.Raw])
        except msgspec.DecodeError:
            return -1
        if len(items) > MAX_ITEMS:
            return -1
        await self._store.register_queues([step.queue])
        known_ends = flow.items.get(place, {})
        for start in range(0, len(items), SLICE):
            wanted = {
                item: Tied(
                    NewJob(
                        f"{step.id}.{item}", step.priority, step.due, step.expiry, _item_body(step.body, items[item])
                    ),
                    (),
                )
                for item in range(start, min(start + SLICE, len(items)))
                if not known_ends.get(item, OPEN).has_ended
            }
            prepared, held = await self._ties.prepare(step.queue, wanted, kind="step")
            # One that is there already was made by somebody who did not live to say so.
            known = [Prepared(item, f"{step.id}.{item}", "", ()) for item in held]
            await self._ties.register(
                [_edge(flow.id, f"m{place}.{one.place}", step.queue, one.id, one.run) for one in (*prepared, *known)]
            )
            await self._ties.commit(step.queue, [one.run for one in prepared])
        return len(items)

    async def _announce(self, flow: Flow, place: int, outcome: str) -> None:
        """A step that runs over a list has no job of its own: the workflow speaks for it."""
        # A later decision has a higher number, whoever made it.
        number = str(int(flow.version) + 1)
        result = b""
        if outcome == "completed":
            parts = [flow.results.get(f"{place}.{item}", b"null") or b"null" for item in range(flow.lengths[place])]
            result = b"[" + b",".join(parts) + b"]"
        by_queue: dict[str, list[Message]] = defaultdict(list)
        for step in flow.steps:
            if place in step.after and step.items is None:
                name = list_name(flow.id, place)
                by_queue[step.queue].append(Message(step.run, name, number, outcome, "", result, "1"))
        for queue, messages in by_queue.items():
            await self._ties.deliver(queue, messages)
            await self._ties.post_all(queue, whose="all")
        await self._tell([Message(flow.id, f"s{place}", number, outcome, "", result, "1")])

    async def _cancel(self, flow: Flow, places: Iterable[int]) -> None:
        reason = (
            f"workflow {flow.name} ({flow.id}) was cancelled"
            if flow.cancel
            else f"workflow {flow.name} ({flow.id}): {flow.cause}"
        )
        refs: list[JobRef] = []
        for place in places:
            step = flow.steps[place]
            if step.items is None:
                refs.append(JobRef(step.queue, step.id, step.run))
            else:
                refs += [JobRef(step.queue, f"{step.id}.{item}") for item in range(flow.lengths[place])]
        for start in range(0, len(refs), SLICE):
            await asyncio.gather(*(self._store.cancel(ref, reason=reason) for ref in refs[start : start + SLICE]))
        for queue in {ref.queue for ref in refs}:
            await self._ties.post_all(queue, whose="all")

    async def _compensate(self, flow: Flow, wanted: Sequence[int]) -> None:
        """One job for each compensation, each after those of the steps that came after its own."""
        order = undo_order(flow.steps, wanted)
        made: dict[int, JobRef] = {}
        for place, before in order.items():
            step = flow.steps[place]
            assert step.undo is not None
            undo = step.undo
            body = undo.body.encode()
            for source, token in undo.takes:
                body = body.replace(f'"{token}"'.encode(), flow.results.get(str(source), b"null") or b"null")
            parents = [Parent(made[other], if_gone="satisfied") for other in before]
            job = NewJob(undo_id(flow.id, place), undo.priority, "", "", body)
            one = await self._ties.enqueue_once(undo.queue, Tied(job, parents))
            made[place] = JobRef(undo.queue, one.id, one.run)
            await self._ties.register([_edge(flow.id, f"u{place}", undo.queue, one.id, one.run)])
        await self._store.register_queues(sorted({step.undo.queue for step in flow.steps if step.undo is not None}))

    async def _let_go(self, flow: Flow) -> None:
        by_queue: dict[str, list[str]] = defaultdict(list)
        for place, step in enumerate(flow.steps):
            if step.items is None:
                by_queue[step.queue] += (step.id, step.run)
            for item in flow.items.get(place, {}):
                by_queue[step.queue] += (f"{step.id}.{item}", "")
            if place in flow.undos and step.undo is not None:
                by_queue[step.undo.queue] += (undo_id(flow.id, place), "")
        for queue, words in by_queue.items():
            keys = self._store.script_keys("let_go", queue)
            for start in range(0, len(words), 2 * SLICE):
                await self._gateway.run("let_go", keys, words[start : start + 2 * SLICE])

    async def _tell(self, messages: Sequence[Message]) -> None:
        if messages:
            await self._ties.pass_on(FLOWS, messages)

    async def _run(self, name: str, words: Sequence[Argument]) -> Any:
        return await self._gateway.run(name, [self._key(key) for key in script(name).keys], words)


#: Workflows that one look at the list of them reads; and looks that one page takes at most.
PAGE: Final = 200
LOOKS: Final = 25
_SUMMARY: Final = ("name", "state", "done", "total", "created_at", "ended_at", "cause")


def _info(flow_id: str, fields: Sequence[bytes | None]) -> WorkflowInfo:
    name, state, done, total, created_at, ended_at, cause = (
        (field or b"").decode(errors="replace") for field in fields
    )
    return WorkflowInfo(
        id=flow_id, name=name, state=state, done=int(done or 0), total=int(total or 0),
        created_at=int(created_at or 0), ended_at=int(ended_at) if ended_at else None, cause=cause,
    )  # fmt: skip


def gate_name(flow_id: str) -> str:
    """What the first steps of a workflow call the place that they wait for."""
    return f"{FLOWS}:{flow_id}"


def undo_id(flow_id: str, step: int) -> str:
    """The id of the job that compensates a step."""
    return f"{flow_id}.undo.{step}"


def place_of(flow: Flow, job_id: str) -> tuple[int, int | None, bool] | None:
    """Which part of a workflow a job is: the step, the item of its list, whether it undoes the step."""
    for place, step in enumerate(flow.steps):
        if job_id == step.id and step.items is None:
            return place, None, False
        if job_id == undo_id(flow.id, place):
            return place, None, True
        item = job_id.removeprefix(f"{step.id}.")
        if step.items is not None and item != job_id and item.isdecimal():
            return place, int(item), False
    return None


def _part_of(flow: Flow, ref: JobRef) -> str:
    """Step ("s3") or item of a list ("m3.7") that a job is; "" for anything else, compensations among it."""
    found = place_of(flow, ref.id)
    if found is None or found[2] or (found[1] is None and ref.run != flow.steps[found[0]].run):
        return ""
    place, item, _ = found
    return f"s{place}" if item is None else f"m{place}.{item}"


def list_name(flow_id: str, step: int) -> str:
    """What steps call one before them that runs over a list."""
    return f"{FLOWS}:{flow_id}.{step}"


def flow_edge(flow_id: str, part: str, queue: str, job_id: str, run: str, *, wants_result: bool = True) -> Edge:
    """A workflow comes after each of its jobs: that is how it hears of them."""
    return Edge(FLOWS, flow_id, Parent(JobRef(queue, job_id, run or None), token="r" if wants_result else ""), part)


_edge = flow_edge


def _item_body(body: str, item: msgspec.Raw) -> bytes:
    return body.encode() + b"[" + bytes(item) + b"]"


def _flow(flow_id: str, found: Mapping[str, bytes]) -> Flow:
    stands: dict[int, Stand] = {}
    undos: dict[int, Stand] = {}
    items: dict[int, dict[int, Stand]] = defaultdict(dict)
    lengths: dict[int, int] = {}
    results: dict[str, bytes] = {}
    for field, value in found.items():
        kind, rest = field[0], field[1:]
        if not rest[:1].isdigit():
            continue
        match kind:
            case "s":
                stands[int(rest)] = _stand(value)
            case "u":
                undos[int(rest)] = _stand(value)
            case "m":
                place, _, item = rest.partition(".")
                items[int(place)][int(item)] = _stand(value)
            case "n":
                lengths[int(rest)] = int(value)
            case "r":
                results[rest] = value
            case _:
                pass
    text = {key: value.decode(errors="replace") for key, value in found.items() if key != "graph" and key[:1] != "r"}
    return Flow(
        id=flow_id, name=text["name"], state=text["state"], version=text.get("version", "0"),
        on_failure=text.get("on_failure", "hold"), resume=text.get("resume", found.get("resume", b"").decode()),
        limit=int(text.get("limit", 0)), created_at=int(text.get("created_at", 0)),
        ended_at=int(text["ended_at"]) if "ended_at" in text else None, cause=text.get("cause", ""),
        steps=_steps.decode(found.get("graph", b"[]")), stands=stands, undos=undos, items=items, lengths=lengths,
        results=results, is_committed=text.get("committed") == "1", is_open=text.get("gate", "open") == "open",
        cancel=text.get("cancel", ""), resuming=_numbers(found.get("resuming", b"").decode()),
        is_compensating=text.get("compensating") == "1", is_busy=text.get("busy") == "1",
    )  # fmt: skip


def _numbers(text: str) -> dict[str, int]:
    pairs = (word.split(":") for word in text.split())
    return {part: int(number) for part, number in pairs}


def _stand(value: bytes) -> Stand:
    number, outcome, attempts = value.decode().split(" ")
    return Stand(int(number), outcome, int(attempts))
