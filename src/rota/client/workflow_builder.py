"""Builds workflows step by step; the whole workflow is committed when the `with` block ends."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import GenericAlias, TracebackType
from typing import Any, Concatenate, Final, Generic, Self, TypeVar, cast, overload

import msgspec

from rota.client.blob_transfer import refuse_blobs
from rota.client.durability import Durability
from rota.client.middleware import Middleware, wrap_store
from rota.client.session import Session, Sessions
from rota.client.sync_methods import sync_method
from rota.client.tasks import Call, Task, TaskWithOptions
from rota.client.workflows import Workflow
from rota.core.dependencies import Parent
from rota.core.ids import JobRef, checked_id, make_suffix
from rota.core.job_options import Keep, Options
from rota.core.job_record_codec import decode_options, encode_body
from rota.core.retry import Exponential, Retry
from rota.core.workflow_record_and_decisions import StepRecord as StepPlan
from rota.core.workflow_record_and_decisions import StepResult, Undo, last_steps
from rota.errors import IdInUse, InvalidJob, InvalidOption, StoreError, StoreFull
from rota.store.compute_in_thread import compute
from rota.store.create_dependents_and_deliver_outcomes import (
    WORKFLOWS,
    Edge,
    JobWithParents,
    preparation_weight,
    slices,
)
from rota.store.workflow_records import compensation_id, gate_parent_name, list_parent_name, workflow_edge

logger = logging.getLogger("rota.workflows")
#: Prepared jobs of a workflow that was never opened are discarded after this, and a minute.
PREPARED_TTL_MS: Final = 3_600_000
R = TypeVar("R")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
Item = TypeVar("Item")
MAX_STEPS: Final = 10_000
#: A compensation is retried for hours before the workflow is parked.
UNDO_RETRY: Final = Retry(attempts=50, backoff=Exponential(2, 600))
#: Minimum retention of compensations, and of jobs for the items of a list: see `_kept`.
UNDO_KEPT_S: Final = 86_400.0
ITEM_KEPT_S: Final = 600.0


class Step(Generic[R]):
    """One step of a workflow that is being built."""

    def __init__(self, workflow: WorkflowBuilder, number: int, placeholder: str) -> None:
        self.workflow = workflow
        self.number = number
        self._placeholder = placeholder

    @property
    def result(self) -> R:
        """A placeholder for the result: pass it to another step, which then depends on this one."""
        return cast("R", StepResult(self.number, self._placeholder))

    def undo(self, call: Call[Any], *, even_if_unsure: bool = False) -> Self:
        """Sets the call that compensates this step if the workflow fails later. May take results up to this step.

        With `even_if_unsure` it also runs where the step was started and did not succeed: it may have had an effect.
        """
        self.workflow.add_undo(self.number, call, even_if_unsure=even_if_unsure)
        return self

    def __repr__(self) -> str:
        return f"<step {self.number} of {self.workflow!r}>"


class WorkflowBuilder(Workflow[Any]):
    """A workflow that is being built. Nothing of it is stored before it is committed."""

    def __init__(
        self,
        sessions: Sessions,
        middleware: Sequence[Middleware],
        name: str,
        *,
        workflow_id: str | None,
        on_failure: str | None,
        resume: str | None,
        limit: int | None,
        max_payload: int,
    ) -> None:
        if on_failure not in (None, "undo", "hold"):
            raise InvalidOption("on_failure", f"{on_failure!r} is neither undo nor hold")
        if resume not in (None, "on_start"):
            raise InvalidOption("resume", f"{resume!r} is not on_start")
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise InvalidOption("limit", f"{limit!r} is not a whole number of at least 1")
        super().__init__(sessions, checked_id(workflow_id) if workflow_id else f"wf-{_random()}{_random()}")
        if len(self.id) > 100:
            raise InvalidOption(
                "id", f"{self.id!r} is longer than 100 characters, which the ids of its steps begin with"
            )
        self._middleware = middleware
        self.name = checked_id(name, option="name")
        self._on_failure = on_failure
        self._resume = resume or ""
        self._limit = limit or 0
        self._max_payload = max_payload
        self._nonce = secrets.token_hex(8)
        self._calls: list[Call[Any]] = []
        self._after: list[tuple[int, ...]] = []
        self._takes: list[dict[int, str]] = []
        self._names: list[str] = []
        self._items: list[int | None] = []
        self._undos: dict[int, Undo] = {}
        #: Steps that `returning` names: their results are kept as well.
        self._returned: set[int] = set()
        self._is_committed = False

    # --- building ----------------------------------------------------------------------------------------------

    def step(self, call: Call[R], *, after: Iterable[Step[Any]] = (), name: str | None = None) -> Step[R]:
        """Adds a step. It depends on the steps whose results it takes, and on those in `after`."""
        if not isinstance(call, Call):
            raise InvalidJob(f"a step is a call, as in workflow.step(send.call(...)), not {call!r}")
        if call.job.id:
            raise InvalidOption("id", "a step's id is made by its workflow")
        number = self._add(call, after, name, items=None)
        return Step(self, number, self._placeholder(number))

    def map(
        self,
        task: Task[Concatenate[Item, ...], R, Any] | TaskWithOptions[Concatenate[Item, ...], R],
        items: Sequence[Item],
        *,
        after: Iterable[Step[Any]] = (),
        name: str | None = None,
    ) -> Step[list[R]]:
        """Adds a step that runs once for each item of a list, which is the result of an earlier step.

        Each item is the first argument of one call. The result of the step is the list of results, in that order.
        """
        source: Any = items
        if not isinstance(source, StepResult):
            raise InvalidJob(
                "workflow.map runs over the result of a step; for a list that is known now, add one step for each item"
            )
        prepared = task if isinstance(task, TaskWithOptions) else task.using()
        if prepared.task.client.tasks.codec is not None:
            raise InvalidJob(
                "workflow.map reads a list in the store, so it cannot be used with encryption: "
                "let the step that makes the list enqueue one job for each item"
            )
        call: Call[R] = cast("Any", prepared).call(source)
        if call.parents:
            raise InvalidOption("after", "a step that runs over a list can only depend on steps of its workflow")
        number = self._add(call, after, name, items=source.step)
        return Step(self, number, self._placeholder(number))

    def add_undo(self, number: int, call: Call[Any], *, even_if_unsure: bool) -> None:
        """See `Step.undo`."""
        if self._items[number] is not None:
            raise InvalidJob("a step that runs over a list cannot be undone as a whole: give a later step an undo")
        if number in self._undos:
            raise InvalidJob(f"step {self._names[number]} has an undo already")
        refuse_blobs("an undo of a workflow", call.uploads)
        self._own(call.results)
        later = [result.step for result in call.results if result.step > number]
        if later:
            raise InvalidJob(f"the undo of step {self._names[number]} takes the result of a later step")
        options = call.options
        if options.retry == Options().retry:
            options = msgspec.structs.replace(options, retry=UNDO_RETRY)
        body = encode_body(self._options(_kept(options, UNDO_KEPT_S)), call.task.name, _arguments(call))
        takes = tuple({result.step: result.placeholder for result in call.results}.items())
        self._undos[number] = Undo(call.queue, options.priority, body.decode(), takes, even_if_unsure)

    @overload
    def returning(self, step: Step[R], /) -> Workflow[R]: ...
    @overload
    def returning(self, first: Step[A], second: Step[B], /) -> Workflow[tuple[A, B]]: ...
    @overload
    def returning(self, first: Step[A], second: Step[B], third: Step[C], /) -> Workflow[tuple[A, B, C]]: ...
    @overload
    def returning(
        self, first: Step[Any], second: Step[Any], third: Step[Any], fourth: Step[Any], /, *others: Step[Any]
    ) -> Workflow[Any]: ...
    def returning(self, *steps: Step[Any]) -> Workflow[Any]:
        """Returns a handle whose result is that of a step, with its type, or of several steps as a tuple.

        Steps can only be added in the order of their dependencies, so the type of `workflow.result()` cannot follow
        from them: this names the step instead. After the commit, only steps whose results are kept can be named: the
        last ones, and those that were named before.
        """
        for step in steps:
            if not isinstance(step, Step) or step.workflow is not self:
                raise InvalidOption("step", f"takes steps of the same workflow, not {step!r}")
        numbers = [step.number for step in steps]
        if not numbers:
            raise InvalidOption("step", "name at least one step")
        unkept = [number for number in numbers if number not in self._kept_results()] if self._is_committed else []
        if unkept:
            raise InvalidOption(
                "step",
                f"the result of step {self._names[unkept[0]]} is not kept, because later steps depend on it: "
                "call returning() before the workflow is committed",
            )
        self._returned.update(numbers)
        types = [self._type_of(number) for number in numbers]
        return Workflow(self._sessions, self.id, returns=types, result_steps=numbers)

    async def commit(self) -> Workflow[Any]:
        """Stores the whole workflow. If this fails, nothing of it is stored."""
        if self._is_committed:
            raise InvalidJob(f"workflow {self.id} has been committed already")
        if not self._calls:
            raise InvalidJob(f"workflow {self.name} has no steps")
        await self._pass_middleware()
        return await wrap_store(self._middleware, self._commit)(self._calls)

    async def _commit(self, calls: Sequence[Call[Any]]) -> Workflow[Any]:
        self._calls = list(calls)
        session = await self._sessions.checked()
        durability: set[Durability] = {call.durability or session.durability.default for call in self._calls}
        replication_ids = await session.prepare({call.queue for call in self._calls}, durability)
        await self._choose_shards(session)
        # The record of the workflow, and the parents of its jobs, may be on other nodes than the jobs.
        linked = {WORKFLOWS, *(parent.ref.queue for call in self._calls for parent in call.parents)}
        replication_ids |= await session.prepare_links(linked, durability)
        queues = linked | {call.queue for call in self._calls}
        if await session.workflows.read(self.id) is not None:
            raise IdInUse(self.id, self.id)
        runs: dict[int, str] = {}
        edges: list[Edge] = []
        is_sent = False
        try:
            await self._prepare(session, runs)
            taken = self._kept_results().union(*self._takes)
            steps = [
                self._plan(number, runs.get(number, ""), is_result_taken=number in taken)
                for number in range(len(self._calls))
            ]
            edges += await compute(sum(map(len, self._after)), self._edges, steps)
            await session.dependencies.register_dependents(edges)
            is_sent = True
            if await session.workflows.open(self.id, steps, self._fields(), nonce=self._nonce) == "in_use":
                is_sent = False
                raise IdInUse(self.id, self.id)
        except BaseException as error:
            # Without an answer it may have been committed: then any worker continues it; else it is swept.
            if not is_sent or isinstance(error, StoreFull):
                await asyncio.shield(self._abandon(session, runs, edges))
            raise
        self._is_committed = True
        self.returns = [self._type_of(number) for number in last_steps(steps)]
        try:
            await session.workflows.drive(self.id)
        except StoreError as error:
            # It is committed, and any worker continues it.
            logger.debug("workflow %s was committed and not driven: %s", self.id, error)
        await session.durability.confirm(queues, durability, replication_ids)
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

    commit_sync = sync_method(commit)

    def __repr__(self) -> str:
        return f"<Workflow {self.name} {self.id}>"

    # --- within ------------------------------------------------------------------------------------------------

    def _add(self, call: Call[Any], after: Iterable[Step[Any]], name: str | None, *, items: int | None) -> int:
        if self._is_committed:
            raise InvalidJob(f"workflow {self.id} has been committed: its steps are fixed")
        if len(self._calls) >= MAX_STEPS:
            raise InvalidJob(f"a workflow has at most {MAX_STEPS:,} steps")
        refuse_blobs("a step of a workflow", call.uploads)
        self._own(call.results)
        before = {result.step for result in call.results}
        for step in after:
            if not isinstance(step, Step) or step.workflow is not self:
                raise InvalidOption("after", f"takes steps of the same workflow, not {step!r}")
            before.add(step.number)
        number = len(self._calls)
        self._calls.append(call)
        self._after.append(tuple(sorted(before)))
        self._takes.append({result.step: result.placeholder for result in call.results})
        self._names.append(name or call.task.name)
        self._items.append(items)
        return number

    def _own(self, results: Iterable[StepResult]) -> None:
        for result in results:
            if result.placeholder != self._placeholder(result.step) or result.step >= len(self._calls):
                raise InvalidJob("a step can only take results of steps of its own workflow")

    def _placeholder(self, number: int) -> str:
        return f"rota.result.{self._nonce}.{number}"

    def _type_of(self, number: int) -> Any:
        returns: Any = self._calls[number].task.signature.returns
        return returns if self._items[number] is None else GenericAlias(list, (returns,))

    def _fields(self) -> dict[str, str]:
        on_failure = self._on_failure or ("undo" if self._undos else "hold")
        return {
            "name": self.name,
            "limit": str(self._limit),
            "on_failure": on_failure,
            "resume": self._resume,
            "max_payload": str(self._max_payload),
            "gate": "shut" if self._limit else "open",
            # The outcomes of these steps complete a list, or let a step over a list start.
            **{f"w{before}": "1" for before in self._before_lists()},
        }

    def _before_lists(self) -> list[int]:
        over_lists = [number for number, items in enumerate(self._items) if items is not None]
        return sorted({before for number in over_lists for before in self._after[number]})

    def _name(self, number: int) -> str:
        """The name under which later steps depend on a step."""
        if self._items[number] is not None:
            return list_parent_name(self.id, number)
        return f"{self._calls[number].queue}:{self._step_id(number)}"

    def _step_id(self, number: int) -> str:
        return f"{self.id}.{number}"

    async def _pass_middleware(self) -> None:
        """Passes the steps through middleware, as every enqueue is."""
        for middleware in self._middleware:
            for number, call in enumerate(self._calls):
                passed = await middleware.enqueue(call)
                if passed.job.id or [found.step for found in passed.results] != [found.step for found in call.results]:
                    raise InvalidJob(f"a middleware may not change the id or the results that step {number} takes")
                self._calls[number] = passed

    async def _choose_shards(self, session: Session) -> None:
        """Assigns each step, and each undo, to the shard of its id."""
        for number, call in enumerate(self._calls):
            queue = session.shards.choose(call.queue, self._step_id(number), call.options.lock)
            parents = tuple([await session.shards.locate_parent(parent) for parent in call.parents])
            self._calls[number] = call.in_shard(queue, parents)
        for number, undo in self._undos.items():
            queue = (await session.shards.locate(JobRef(undo.queue, compensation_id(self.id, number)))).queue
            if queue != undo.queue and decode_options(undo.body.partition("\n")[0].encode()).lock:
                raise InvalidOption(
                    "lock", f"the undo of step {self._names[number]} cannot have one: its queue has shards"
                )
            self._undos[number] = msgspec.structs.replace(undo, queue=queue)

    async def _prepare(self, session: Session, runs: dict[int, str]) -> None:
        """Writes all steps as prepared jobs, and adds their runs to `runs`."""
        by_queue: dict[str, list[int]] = defaultdict(list)
        for number, call in enumerate(self._calls):
            if self._items[number] is None:
                by_queue[call.queue].append(number)
        for queue, numbers in by_queue.items():
            for part in slices(
                numbers, lambda number: preparation_weight(self._calls[number].job, len(self._after[number]))
            ):
                wanted = {number: self._with_parents(number) for number in part}
                prepared, held = await session.dependencies.prepare_dependents(
                    queue, wanted, kind="step", keep_ms=PREPARED_TTL_MS, max_payload=self._max_payload
                )
                runs |= {one.position: one.run for one in prepared}
                if held:
                    raise IdInUse(self.id, self.id)

    def _edges(self, steps: Sequence[StepPlan]) -> list[Edge]:
        """Returns the dependencies among the steps, and of the workflow on all of them, once their runs are known."""
        kept = self._kept_results()
        edges: list[Edge] = []
        for number, step in enumerate(steps):
            if step.items is not None:
                continue
            edges += [Edge(step.queue, step.run, parent) for parent in self._calls[number].parents]
            for other in step.after:
                if steps[other].items is None:
                    ref = JobRef(steps[other].queue, steps[other].id, steps[other].run)
                    placeholder = self._takes[number].get(other, "")
                    edges.append(Edge(step.queue, step.run, Parent(ref, placeholder=placeholder), self._name(other)))
            edges.append(
                workflow_edge(self.id, f"s{number}", step.queue, step.id, step.run, wants_result=number in kept)
            )
        return edges

    def _kept_results(self) -> set[int]:
        """The steps whose results the workflow keeps: compensations, lists and callers read them later."""
        last = set(range(len(self._calls))) - {before for after in self._after for before in after}
        lists = {items for items in self._items if items is not None}
        return (
            self._returned | last | lists | {source for undo in self._undos.values() for source, _ in undo.placeholders}
        )

    def _with_parents(self, number: int) -> JobWithParents:
        call = self._calls[number]
        parents = list(call.parents)
        takes = self._takes[number]
        parents += [Parent(_ref(self._name(other)), placeholder=takes.get(other, "")) for other in self._after[number]]
        if self._limit and not self._after[number]:
            parents.append(Parent(_ref(gate_parent_name(self.id))))
        body = encode_body(self._options(call.options), call.task.name, _arguments(call))
        return JobWithParents(call.job._replace(id=self._step_id(number), body=body), parents)

    def _options(self, options: Options) -> Options:
        return msgspec.structs.replace(options, workflow=self.id)

    def _plan(self, number: int, run: str, *, is_result_taken: bool) -> StepPlan:
        call = self._calls[number]
        body = ""
        if self._items[number] is not None:
            options = self._options(_kept(call.options, ITEM_KEPT_S))
            body = encode_body(options, call.task.name, b"").decode()
        undo = self._undos.get(number)
        if undo is not None and call.options.trace:
            undo = _traced(undo, call.options.trace)
        return StepPlan(
            self._step_id(number),
            call.queue,
            run,
            call.task.name,
            self._after[number],
            self._names[number],
            undo,
            self._items[number],
            body,
            call.job.priority,
            call.job.due,
            call.job.expiry,
            is_result_taken,
        )

    async def _abandon(self, session: Session, runs: Mapping[int, str], edges: Sequence[Edge]) -> None:
        by_queue: dict[str, list[str]] = defaultdict(list)
        for number, run in runs.items():
            by_queue[self._calls[number].queue].append(run)
        for index, (queue, of_queue) in enumerate(by_queue.items()):
            await session.dependencies.discard_prepared_runs(queue, of_queue, edges if index == 0 else ())


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
    """Returns options with a minimum retention: another driver may enqueue the job again, and has to find it."""
    keep = options.keep
    kept = msgspec.structs.replace(
        keep, finished=max(keep.finished, seconds), finished_count=max(keep.finished_count, Keep().finished_count)
    )
    return msgspec.structs.replace(options, keep=kept)


def _ref(name: str) -> JobRef:
    queue, _, job_id = name.partition(":")
    return JobRef(queue, job_id)
