"""Workflows that are being built: step by step, and committed as a whole when the `with` block ends."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import GenericAlias, TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, Self, TypeVar, cast

import msgspec

from rota.core.after import Parent
from rota.core.codec import decode_options, encode_body
from rota.core.job import JobRef, Keep, Options, checked_id, make_suffix
from rota.core.retry import Exponential, Retry
from rota.core.workflow import Step as StepPlan
from rota.core.workflow import StepResult, Undo, last_steps
from rota.errors import IdInUse, InvalidJob, InvalidOption, StoreError, StoreFull
from rota.link import Durability, Link
from rota.middleware import wrap_enqueue, wrap_store
from rota.store.flows import PATIENCE_MS, flow_edge, gate_name, list_name, undo_id
from rota.store.ties import Edge, Tied, slices
from rota.tasks import Call, Prepared, Task
from rota.workflows import Workflow

if TYPE_CHECKING:
    from rota.client import Rota

logger = logging.getLogger("rota.workflows")
R = TypeVar("R")
Item = TypeVar("Item")
MAX_STEPS: Final = 10_000
#: A compensation is tried for hours before a human is asked.
UNDO_RETRY: Final = Retry(attempts=50, backoff=Exponential(2, 600))
#: How long compensations, and jobs for the items of a list, are kept at least: see `_kept`.
UNDO_KEPT_S: Final = 86_400.0
ITEM_KEPT_S: Final = 600.0


class Step(Generic[R]):
    """One step of a workflow that is being built."""

    def __init__(self, draft: Draft, place: int, token: str) -> None:
        self.draft = draft
        self.place = place
        self._token = token

    @property
    def result(self) -> R:
        """Stands for what the step will return: pass it to another step, which then comes after this one."""
        return cast("R", StepResult(self.place, self._token))

    def undo(self, call: Call[Any], *, even_if_unsure: bool = False) -> Self:
        """What compensates this step if the workflow fails after it; may take results of this step and earlier ones.

        With `even_if_unsure` also where the step was started and did not succeed: it may have had an effect.
        """
        self.draft.add_undo(self.place, call, even_if_unsure=even_if_unsure)
        return self

    def __repr__(self) -> str:
        return f"<step {self.place} of {self.draft!r}>"


class Draft(Workflow):
    """A workflow that is being built: nothing of it exists before it is committed."""

    def __init__(
        self,
        rota: Rota,
        name: str,
        *,
        workflow_id: str | None,
        on_failure: str | None,
        resume: str | None,
        limit: int | None,
    ) -> None:
        if on_failure not in (None, "undo", "hold"):
            raise InvalidOption("on_failure", f"{on_failure!r} is neither undo nor hold")
        if resume not in (None, "on_start"):
            raise InvalidOption("resume", f"{resume!r} is not on_start")
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise InvalidOption("limit", f"{limit!r} is not a whole number of at least 1")
        super().__init__(rota, checked_id(workflow_id) if workflow_id else f"wf-{_random()}{_random()}")
        if len(self.id) > 100:
            raise InvalidOption(
                "id", f"{self.id!r} is longer than 100 characters, which the ids of its steps begin with"
            )
        self.name = checked_id(name, option="name")
        self._on_failure = on_failure
        self._resume = resume or ""
        self._limit = limit or 0
        self._nonce = secrets.token_hex(8)
        self._calls: list[Call[Any]] = []
        self._after: list[tuple[int, ...]] = []
        self._takes: list[dict[int, str]] = []
        self._names: list[str] = []
        self._items: list[int | None] = []
        self._undos: dict[int, Undo] = {}
        self._is_committed = False

    # --- building ----------------------------------------------------------------------------------------------

    def step(self, call: Call[R], *, after: Iterable[Step[Any]] = (), name: str | None = None) -> Step[R]:
        """Adds a step. It comes after the steps whose results it takes, and after those named."""
        if not isinstance(call, Call):
            raise InvalidJob(f"a step is a call, as in flow.step(send.call(...)), not {call!r}")
        if call.job.id:
            raise InvalidOption("id", "a step's id is made by its workflow")
        return Step(self, self._add(call, after, name, items=None), self._token(len(self._calls) - 1))

    def map(
        self,
        task: Task[Concatenate[Item, ...], R, Any] | Prepared[Concatenate[Item, ...], R],
        items: Sequence[Item],
        *,
        after: Iterable[Step[Any]] = (),
        name: str | None = None,
    ) -> Step[list[R]]:
        """Adds a step that runs once for each item of a list, which is the result of an earlier step.

        Each item is the first argument of one call. The result is the list of results, in that order.
        """
        source: Any = items
        if not isinstance(source, StepResult):
            raise InvalidJob(
                "flow.map runs over the result of a step; over a list that is known now, use one step for each item"
            )
        prepared = task if isinstance(task, Prepared) else task.using()
        call: Call[R] = cast("Any", prepared).call(source)
        if call.parents:
            raise InvalidOption("after", "a step that runs over a list comes after steps of its workflow alone")
        place = self._add(call, after, name, items=source.step)
        return Step(self, place, self._token(place))

    def add_undo(self, place: int, call: Call[Any], *, even_if_unsure: bool) -> None:
        """See `Step.undo`."""
        if self._items[place] is not None:
            raise InvalidJob("a step that runs over a list cannot be undone as a whole: let a step after it do that")
        if place in self._undos:
            raise InvalidJob(f"step {self._names[place]} has an undo already")
        self._own(call.results)
        later = [result.step for result in call.results if result.step > place]
        if later:
            raise InvalidJob(f"the undo of step {self._names[place]} takes the result of a later step")
        options = call.options
        if options.retry == Options().retry:
            options = msgspec.structs.replace(options, retry=UNDO_RETRY)
        body = encode_body(self._options(_kept(options, UNDO_KEPT_S)), call.task.name, _arguments(call))
        takes = tuple({result.step: result.token for result in call.results}.items())
        self._undos[place] = Undo(call.queue, options.priority, body.decode(), takes, even_if_unsure)

    async def commit(self) -> Workflow:
        """Stores the whole workflow. Nothing of it exists if this fails."""
        if self._is_committed:
            raise InvalidJob(f"workflow {self.id} has been committed already")
        if not self._calls:
            raise InvalidJob(f"workflow {self.name} has no steps")
        await self._pass_middleware()
        return await wrap_store(self._rota.middleware, self._commit)(self._calls)

    async def _commit(self, calls: Sequence[Call[Any]]) -> Workflow:
        self._calls = list(calls)
        link = await self._rota.checked_link()
        durability: set[Durability] = {call.durability or link.durability for call in self._calls}
        await link.make_ready({call.queue for call in self._calls}, durability)
        await self._choose_shards(link)
        queues = {call.queue for call in self._calls}
        if await link.flows.read(self.id) is not None:
            raise IdInUse(self.id, self.id)
        runs: dict[int, str] = {}
        edges: list[Edge] = []
        is_sent = False
        try:
            await self._prepare(link, runs)
            steps = [self._plan(place, runs.get(place, "")) for place in range(len(self._calls))]
            edges += self._edges(steps)
            await link.ties.register(edges)
            is_sent = True
            if await link.flows.open(self.id, steps, self._fields(), nonce=self._nonce) == "in_use":
                is_sent = False
                raise IdInUse(self.id, self.id)
        except BaseException as error:
            # If no answer came, it may have been committed: then any worker carries on, else it is swept.
            if not is_sent or isinstance(error, StoreFull):
                await asyncio.shield(self._abandon(link, runs, edges))
            raise
        self._is_committed = True
        self.returns = [self._type_of(place) for place in last_steps(steps)]
        try:
            await link.flows.drive(self.id)
        except StoreError as error:
            # It is committed, and any worker carries on with it.
            logger.debug("workflow %s was not driven by whoever committed it: %s", self.id, error)
        if "replicated" in durability:
            await link.make_durable(queues)
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self.commit()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit_sync()

    def commit_sync(self) -> Workflow:
        """`commit`, for code that is not async."""
        return self._rota.wait_for(self.commit())

    def __repr__(self) -> str:
        return f"<Workflow {self.name} {self.id}>"

    # --- within ------------------------------------------------------------------------------------------------

    def _add(self, call: Call[Any], after: Iterable[Step[Any]], name: str | None, *, items: int | None) -> int:
        if self._is_committed:
            raise InvalidJob(f"workflow {self.id} has been committed: its steps are fixed")
        if len(self._calls) >= MAX_STEPS:
            raise InvalidJob(f"a workflow has at most {MAX_STEPS:,} steps")
        self._own(call.results)
        before = {result.step for result in call.results}
        for step in after:
            if not isinstance(step, Step) or step.draft is not self:
                raise InvalidOption("after", f"takes steps of the same workflow, not {step!r}")
            before.add(step.place)
        place = len(self._calls)
        self._calls.append(call)
        self._after.append(tuple(sorted(before)))
        self._takes.append({result.step: result.token for result in call.results})
        self._names.append(name or call.task.name)
        self._items.append(items)
        return place

    def _own(self, results: Iterable[StepResult]) -> None:
        for result in results:
            if result.token != self._token(result.step) or result.step >= len(self._calls):
                raise InvalidJob("a step can only take results of steps of its own workflow")

    def _token(self, place: int) -> str:
        return f"rota.result.{self._nonce}.{place}"

    def _type_of(self, place: int) -> Any:
        returns: Any = self._calls[place].task.signature.returns
        return returns if self._items[place] is None else GenericAlias(list, (returns,))

    def _fields(self) -> dict[str, str]:
        on_failure = self._on_failure or ("undo" if self._undos else "hold")
        return {
            "name": self.name,
            "limit": str(self._limit),
            "on_failure": on_failure,
            "resume": self._resume,
            "gate": "shut" if self._limit else "open",
            # News of these makes a list known, or lets a step over one begin.
            **{f"w{before}": "1" for before in self._before_lists()},
        }

    def _before_lists(self) -> list[int]:
        over_lists = [place for place, items in enumerate(self._items) if items is not None]
        return sorted({before for place in over_lists for before in self._after[place]})

    def _name(self, place: int) -> str:
        """What steps that come after it call a step."""
        if self._items[place] is not None:
            return list_name(self.id, place)
        return f"{self._calls[place].queue}:{self._step_id(place)}"

    def _step_id(self, place: int) -> str:
        return f"{self.id}.{place}"

    async def _pass_middleware(self) -> None:
        """Steps are enqueued, so what goes around every enqueue goes around them."""
        for middleware in self._rota.middleware:
            for place, call in enumerate(self._calls):
                passed = await wrap_enqueue(middleware, call)
                if passed.job.id or [found.step for found in passed.results] != [found.step for found in call.results]:
                    raise InvalidJob(f"a middleware may not change the id or the results that step {place} takes")
                self._calls[place] = passed

    async def _choose_shards(self, link: Link) -> None:
        """Each step goes where its id belongs, as do the jobs of a list; and each undo where its own does."""
        for place, call in enumerate(self._calls):
            queue = link.choose(call.queue, self._step_id(place), call.options.lock)
            parents = tuple([await link.locate_parent(parent) for parent in call.parents])
            self._calls[place] = call.moved(queue, parents)
        for place, undo in self._undos.items():
            queue = (await link.locate(JobRef(undo.queue, undo_id(self.id, place)))).queue
            if queue != undo.queue and decode_options(undo.body.partition("\n")[0].encode()).lock:
                raise InvalidOption(
                    "lock", f"the undo of step {self._names[place]} cannot have one: its queue has shards"
                )
            self._undos[place] = msgspec.structs.replace(undo, queue=queue)

    async def _prepare(self, link: Link, runs: dict[int, str]) -> None:
        """Writes all steps invisibly, and notes their runs."""
        by_queue: dict[str, list[int]] = defaultdict(list)
        for place, call in enumerate(self._calls):
            if self._items[place] is None:
                by_queue[call.queue].append(place)
        for queue, places in by_queue.items():
            for part in slices(places, lambda place: len(self._after[place]) + 1):
                wanted = {place: self._tied(place) for place in part}
                prepared, held = await link.ties.prepare(queue, wanted, kind="step", patience_ms=PATIENCE_MS)
                runs |= {one.place: one.run for one in prepared}
                if held:
                    raise IdInUse(self.id, self.id)

    def _edges(self, steps: Sequence[StepPlan]) -> list[Edge]:
        """Which steps come after which, and the workflow after all of them, now that their runs are known."""
        kept = set(last_steps(steps)) | {step.items for step in steps if step.items is not None}
        kept |= {source for undo in self._undos.values() for source, _ in undo.takes}
        edges: list[Edge] = []
        for place, step in enumerate(steps):
            if step.items is not None:
                continue
            edges += [Edge(step.queue, step.run, parent) for parent in self._calls[place].parents]
            for other in step.after:
                if steps[other].items is None:
                    ref = JobRef(steps[other].queue, steps[other].id, steps[other].run)
                    token = self._takes[place].get(other, "")
                    edges.append(Edge(step.queue, step.run, Parent(ref, token=token), self._name(other)))
            # The workflow itself keeps the results that are wanted later: for compensations, lists, and who asks.
            edges.append(flow_edge(self.id, f"s{place}", step.queue, step.id, step.run, wants_result=place in kept))
        return edges

    def _tied(self, place: int) -> Tied:
        call = self._calls[place]
        parents = list(call.parents)
        takes = self._takes[place]
        parents += [Parent(_ref(self._name(other)), token=takes.get(other, "")) for other in self._after[place]]
        if self._limit and not self._after[place]:
            parents.append(Parent(_ref(gate_name(self.id))))
        body = encode_body(self._options(call.options), call.task.name, _arguments(call))
        return Tied(call.job._replace(id=self._step_id(place), body=body), parents)

    def _options(self, options: Options) -> Options:
        return msgspec.structs.replace(options, workflow=self.id)

    def _plan(self, place: int, run: str) -> StepPlan:
        call = self._calls[place]
        body = ""
        if self._items[place] is not None:
            options = self._options(_kept(call.options, ITEM_KEPT_S))
            body = encode_body(options, call.task.name, b"").decode()
        undo = self._undos.get(place)
        if undo is not None and call.options.trace:
            undo = _traced(undo, call.options.trace)
        return StepPlan(
            self._step_id(place), call.queue, run, call.task.name, self._after[place], self._names[place],
            undo, self._items[place], body, call.job.priority, call.job.due, call.job.expiry,
        )  # fmt: skip

    async def _abandon(self, link: Link, runs: Mapping[int, str], edges: Sequence[Edge]) -> None:
        by_queue: dict[str, list[str]] = defaultdict(list)
        for place, run in runs.items():
            by_queue[self._calls[place].queue].append(run)
        for number, (queue, of_queue) in enumerate(by_queue.items()):
            await link.ties.abandon(queue, of_queue, edges if number == 0 else ())


def _random() -> str:
    return make_suffix(secrets.randbits(40))


def _arguments(call: Call[Any]) -> bytes:
    return call.job.body.split(b"\n", 2)[2]


def _traced(undo: Undo, trace: dict[str, str]) -> Undo:
    """A compensation belongs to the trace of its step."""
    options, task, arguments = undo.body.encode().split(b"\n", 2)
    body = encode_body(msgspec.structs.replace(decode_options(options), trace=trace), task.decode(), arguments)
    return msgspec.structs.replace(undo, body=body.decode())


def _kept(options: Options, seconds: float) -> Options:
    """What may be made twice, by whoever goes on where another died, is kept for so long that it is recognised."""
    keep = options.keep
    kept = msgspec.structs.replace(
        keep, finished=max(keep.finished, seconds), finished_count=max(keep.finished_count, Keep().finished_count)
    )
    return msgspec.structs.replace(options, keep=kept)


def _ref(name: str) -> JobRef:
    queue, _, job_id = name.partition(":")
    return JobRef(queue, job_id)
