"""The write side: one method per transition, each of them one script call.

Every call may be sent again: an enqueue or a claim by the number it carries, a report by its claim, a rare call by
its token. The gateway relies on that.
"""

from __future__ import annotations

import secrets
from collections.abc import Coroutine, Mapping, Sequence, Set
from typing import Any, NamedTuple

from rota.core.job import JobRef
from rota.store.bounds import BATCH, CHORES, LEASE_MS, PURGE_LOOKS, PURGED, SLICES
from rota.store.door import Door, Made, NewJob
from rota.store.gateway import Argument, Call, Gateway
from rota.store.keys import Keys
from rota.store.reports import VERBS, Claims, Report, group_completed, read_claims, read_refusals
from rota.store.scripts import script


class Announced(NamedTuple):
    """What a worker hears that says it lives."""

    #: The server's time, ms.
    now: int
    #: What waits for somebody: "flows", "operations".
    due: Set[str]


class Store:
    """What can be done to jobs. `participant` names this client or worker in the server."""

    def __init__(self, gateway: Gateway, keys: Keys, participant: str) -> None:
        self.gateway = gateway
        self.keys = keys
        self.participant = participant
        self._doors: dict[str, Door] = {}
        self._script_keys: dict[tuple[str, str], Sequence[str]] = {}

    # --- producers ---------------------------------------------------------------------------------------------

    def enqueue(self, queue: str, jobs: Sequence[NewJob]) -> Coroutine[Any, Any, list[Made]]:
        """Makes jobs. Calls made together travel together; each batch is stored as a whole or not at all."""
        door = self._doors.get(queue)
        if door is None:
            keys = {name: self.script_keys(name, queue) for name in ("enqueue", "enqueue_plain")}
            door = self._doors[queue] = Door(self.gateway, queue, self.keys.inbox_prefix, keys)
        return door.enqueue(jobs)

    async def commit(self, queue: str, runs: Sequence[str]) -> list[str]:
        """Makes runs visible that were prepared (see `Ties`): "visible", "missing" or "in_use" for each."""
        answer: bytes = await self._rare("commit", queue, runs)
        return answer.decode().split(" ")

    async def cancel(self, ref: JobRef, *, reach: str = "any", reason: str = "") -> str:
        """Ends a run: "cancelled", "stopping" (its handler has been told), or why not.

        "missing", "processing" where that is out of reach, "ended" and how.
        """
        answer = await self._rare("cancel", ref.queue, [ref.id, ref.run or "", reach, reason])
        return answer.decode()

    async def update(
        self, ref: JobRef, *, seen: str, flags: str, priority: int, due: str, expiry: str, body: bytes
    ) -> str:
        """Changes a run that waits, or the arguments of a dead letter: "updated", or why not.

        "missing", "changed" since it was read (`seen` is its digest then), "processing", "ended" and how.
        """
        words: list[Argument] = [ref.id, ref.run or "", seen, flags, priority, due, expiry, body]
        answer = await self._rare("update", ref.queue, words)
        return answer.decode()

    async def delete(self, ref: JobRef) -> str:
        """Removes a run: "deleted", "stopping" (its handler has been told) or "missing"."""
        answer = await self._rare("delete", ref.queue, [ref.id, ref.run or ""])
        return answer.decode()

    async def redrive(self, queue: str, refs: Sequence[JobRef]) -> list[str]:
        """Gives dead letters another life; an outcome for each: "redriven", or why not."""
        outcomes: list[str] = []
        size = SLICES["redrive"]
        for start in range(0, len(refs), size):
            pairs = [word for ref in refs[start : start + size] for word in (ref.id, ref.run or "")]
            outcomes += (await self._rare("redrive", queue, pairs)).decode().split(" ")
        return outcomes

    async def purge(self, queue: str, limit: int = PURGED, *, newest: str = "") -> int:
        """Deletes up to `limit` waiting runs of the queue, none of them later than `newest`; says how many.

        Fewer at a time where they are tied to others; 0 when there are none left.
        """
        skip = "0"
        while True:
            answer = (await self._rare("purge", queue, [min(limit, PURGED), newest, PURGE_LOOKS, skip])).decode()
            if not answer.startswith("skip"):
                return int(answer)
            skip = answer.removeprefix("skip ")

    async def pause(self, queue: str, *, wanted: str) -> None:
        """Stops claims of the queue ("paused"), or lets them go on ("open")."""
        await self._run("pause", queue, [wanted])

    async def watch(self, ref: JobRef) -> tuple[str, bool] | None:
        """Asks to be told of a run's end: the run, and whether it has ended already. None if there is no such job."""
        keys = self.script_keys("watch", ref.queue)
        answer = await self.gateway.run("watch", keys, [ref.id, ref.run or "", self.participant])
        return (answer[0].decode(), answer[1] == b"ended") if len(answer) == 2 else None

    # --- workers -----------------------------------------------------------------------------------------------

    async def claim(self, queue: str, limit: int, *, call: int, token: str, lease_ms: int = LEASE_MS) -> Claims:
        """Leases up to `limit` runs to this participant. `call` must grow from one claim of the queue to the next."""
        request = self.claim_call(queue, limit, call=call, token=token, lease_ms=lease_ms)
        return read_claims(queue, token, await self.gateway.run(*request))

    def claim_call(
        self, queue: str, limit: int, *, call: int, token: str, next_token: str = "", lease_ms: int = LEASE_MS
    ) -> Call:
        """The same, to be sent along with reports; `read_claims` reads the answer.

        With `next_token` it leaves the claim after this one, for the case that it finds less than it asks for: then a
        job may come with a push, which `read_push` reads.
        """
        arguments: list[Argument] = [
            queue,
            self.keys.inbox_prefix,
            call,
            self.participant,
            token,
            min(limit, BATCH),
            lease_ms,
            CHORES,
            next_token,
        ]
        return Call("claim", self.script_keys("claim", queue), arguments)

    def report_calls(self, queue: str, reports: Sequence[Report]) -> list[tuple[Call, Sequence[Report]]]:
        """Calls that store these reports, each with the reports it carries, for `read_refusals`."""
        by_verb: dict[str, list[Report]] = {}
        for report in reports:
            by_verb.setdefault(VERBS[type(report)], []).append(report)
        calls: list[tuple[Call, Sequence[Report]]] = []
        for verb, of_verb in by_verb.items():
            size = SLICES.get(verb, BATCH)
            for start in range(0, len(of_verb), size):
                part = of_verb[start : start + size]
                words: list[Argument] = [queue, self.keys.inbox_prefix]
                if verb == "complete":
                    part = group_completed(part, words)
                else:
                    for report in part:
                        words += report
                calls.append((Call(verb, self.script_keys(verb, queue), words), part))
        return calls

    async def report(self, queue: str, reports: Sequence[Report]) -> dict[str, str]:
        """Stores reports; run -> why, for each that was refused."""
        refused: dict[str, str] = {}
        calls = self.report_calls(queue, reports)
        for answer, (_, part) in zip(await self.gateway.run_many([call for call, _ in calls]), calls, strict=True):
            refused |= read_refusals(answer, part)
        return refused

    async def heartbeat(
        self, queue: str, held: Sequence[tuple[str, str]], *, lease_ms: int = LEASE_MS, is_aside: bool = False
    ) -> dict[str, str]:
        """Extends the leases of (run, claim) pairs; run -> "cancelled" | "lost" for handlers that must stop."""
        told: dict[str, str] = {}
        for start in range(0, max(1, len(held)), BATCH):
            part = held[start : start + BATCH]
            words: list[Argument] = [self.participant, lease_ms, *(word for pair in part for word in pair)]
            run = self.gateway.run_aside if is_aside else self.gateway.run
            answer = await run("heartbeat", self.script_keys("heartbeat", queue), words)
            told |= {part[int(answer[at])][0]: answer[at + 1].decode() for at in range(0, len(answer), 2)}
        return told

    async def progress(self, queue: str, items: Sequence[tuple[str, str, str, str, str]]) -> None:
        """Keeps progress: run, claim, done, total and note for each. What no longer owns its run is ignored."""
        await self.gateway.run(*self.progress_call(queue, items))

    def progress_call(self, queue: str, items: Sequence[tuple[str, str, str, str, str]]) -> Call:
        """The same, to be sent along with other calls."""
        return Call("progress", self.script_keys("progress", queue), [word for item in items for word in item])

    async def log(self, queue: str, run: str, claim: str, first: int, lines: Sequence[str]) -> bool:
        """Adds lines to a run's log, numbered from `first` within the claim; False if the claim is lost."""
        return await self.gateway.run(*self.log_call(queue, run, claim, first, lines)) == b"ok"

    def log_call(self, queue: str, run: str, claim: str, first: int, lines: Sequence[str]) -> Call:
        """The same, to be sent along with other calls."""
        return Call("log", self.script_keys("log", queue), [run, claim, first, *lines])

    async def leave(self, queue: str) -> None:
        """This worker leaves the queue for good: it is woken no more, and another one is if there is work."""
        await self._run("leave", queue, [self.participant])

    async def sweep(self, queue: str) -> bool:
        """Forgets finished runs whose time is over; True when there is more to do."""
        return await self.gateway.run("sweep", self.script_keys("sweep", queue), [SLICES["sweep"]]) == b"more"

    async def announce(self, info: str) -> Announced:
        """Says that this worker lives, and hears what nobody sees to, and whether it is to leave."""
        keys = [self.keys.shared(name) for name in script("announce").keys]
        now, *due = (await self.gateway.run("announce", keys, [self.participant, info])).decode().split()
        return Announced(int(now), frozenset(due))

    async def drain(self, worker: str) -> str:
        """Asks a worker to finish what it runs, and leave: "draining", "stopped" or "missing"."""
        keys = [self.keys.shared(name) for name in script("drain").keys]
        return (await self.gateway.run("drain", keys, [self.keys.inbox_prefix, worker])).decode()

    async def announce_tasks(self, tasks: dict[str, str]) -> None:
        """Publishes tasks' schemas and defaults, for producers that do not have the code."""
        words = [word for pair in tasks.items() for word in pair]
        if words:
            await self.gateway.command("HSET", self.keys.shared("tasks"), *words)

    async def announce_handlers(self, queue: str, handlers: dict[str, str], *, without: Sequence[str] = ()) -> None:
        """Says which tasks have a failure handler, with the options of its jobs, and which have none any more.

        From now on a run of theirs that fails for good makes such a job. It is kept until a worker says otherwise.
        """
        key = self.keys.queue(queue, "handlers")
        words = [word for pair in handlers.items() for word in pair]
        if words:
            await self.gateway.command("HSET", key, *words)
        if without:
            await self.gateway.command("HDEL", key, *without)

    async def enlist(self, wanted: Mapping[str, int]) -> dict[str, int]:
        """Lists queues, each with the number of shards asked for; and how many each has: 0 for none."""
        words: list[Argument] = [word for pair in wanted.items() for word in pair]
        keys = [self.keys.shared(key) for key in script("enlist").keys]
        answer = await self.gateway.run("enlist", keys, words)
        return dict(zip(wanted, map(int, answer), strict=True))

    async def register_queues(self, queues: Sequence[str]) -> None:
        """Adds to the names that `queue list` shows."""
        await self.gateway.command("SADD", self.keys.shared("queues"), *queues)

    def script_keys(self, name: str, queue: str, **parts: str) -> Sequence[str]:
        """The keys of a script in a queue's slot; `parts` fill the patterns of those there are many of."""
        if not parts and (known := self._script_keys.get((name, queue))):
            return known
        filled = {"calls": self.participant, **parts}
        keys = [self.keys.queue(queue, key, filled.get(key, "")) for key in script(name).keys]
        if not parts:
            self._script_keys[name, queue] = keys
        return keys

    # --- within ------------------------------------------------------------------------------------------------

    async def _run(self, name: str, queue: str, arguments: Sequence[Argument]) -> Any:
        return await self.gateway.run(name, self.script_keys(name, queue), [queue, self.keys.inbox_prefix, *arguments])

    async def _rare(self, name: str, queue: str, arguments: Sequence[Argument]) -> Any:
        keys = self.script_keys(name, queue, call=secrets.token_hex(8))
        return await self.gateway.run(name, keys, [queue, self.keys.inbox_prefix, *arguments])
