"""The handles of committed workflows: state, result, cancel, resume."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Generic, cast, get_args, get_origin, overload

import msgspec

from rota.client.page_limit import checked_limit
from rota.client.session import Sessions
from rota.client.sync_methods import sync_method
from rota.core.encrypted_values import decrypt_result
from rota.core.ids import JobRef, checked_id
from rota.core.job_record_codec import decode_result
from rota.core.workflow_record_and_decisions import (
    ENDED,
    STUCK,
    WorkflowInfo,
    WorkflowRecord,
    WorkflowState,
    last_steps,
    why_not_resumable,
)
from rota.core.workflow_text import draw, explain_workflow, mermaid
from rota.errors import InvalidOption, ResultTimeout, WorkflowFailed, WorkflowNotFound, WrongState
from rota.store.workflow_records import compensation_id

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # A `Workflow` without the type of its result is a `Workflow[Any]`. Python 3.11 has no default for a TypeVar.
    R_co = TypeVar("R_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")


class Workflow(Generic[R_co]):
    """The handle of a committed workflow, and the type of its result.

    Made by `rota.workflows.get(id)`, by committing one, or by `workflow.returning(step)`.
    """

    def __init__(
        self,
        sessions: Sessions,
        workflow_id: str,
        *,
        returns: Sequence[Any] | None = None,
        result_type: Any = Any,
        result_steps: Sequence[int] | None = None,
    ) -> None:
        self._sessions = sessions
        self.id = workflow_id
        #: Types of the results of its result steps; None where they are not known.
        self.returns = returns
        self._result_type = result_type
        #: The steps whose results are its result; None: its last steps.
        self._result_steps = result_steps

    def __repr__(self) -> str:
        return f"<Workflow {self.id}>"

    async def refresh(self) -> WorkflowRecord:
        """Returns the current record. Raises WorkflowNotFound."""
        record = await (await self._sessions.checked()).workflows.read(self.id)
        if record is None:
            raise WorkflowNotFound(self.id)
        return record

    async def state(self) -> str:
        """Returns waiting (for its limit), running, completed, failed (held), undoing, parked, undone or cancelled."""
        return (await self.refresh()).state

    async def explain(self) -> str:
        """Returns one sentence: its state, the reason for it, and what happens next."""
        return explain_workflow(await self.refresh())

    async def show(self) -> str:
        """Returns the graph as text, with the state of every step."""
        return draw(await self.refresh())

    async def mermaid(self) -> str:
        """Returns the graph as a Mermaid flowchart."""
        return mermaid(await self.refresh())

    async def wait(self, timeout: float | None = None) -> WorkflowRecord:
        """Waits until the workflow has ended, or waits for an operator, and returns its record.

        The end is pushed by the server. Raises WorkflowNotFound, or ResultTimeout after `timeout` seconds.
        """
        try:
            async with asyncio.timeout(timeout):
                await (await self._sessions.checked()).waiter.wait_workflow(self.id)
        except TimeoutError as error:
            if timeout is None:
                raise
            record = await self.refresh()
            if record.state not in (*ENDED, *STUCK):
                raise ResultTimeout(f"workflow {self.id}", record.state, timeout) from error
        return await self.refresh()

    async def result(self, timeout: float | None = None) -> R_co:
        """Waits for the end and returns the result of the last step, or of all last steps in order as a tuple.

        A handle made by `workflow.returning(…)` returns the results of the steps named there.

        Raises WorkflowFailed when it failed, was undone or cancelled, or waits for an operator; ResultTimeout.
        """
        record = await self.wait(timeout)
        if record.state != "completed":
            raise WorkflowFailed(self.id, record.state, record.cause)
        chosen = last_steps(record.steps) if self._result_steps is None else self._result_steps
        types = self.returns or self._types_of(len(chosen))
        found = await (await self._sessions.checked()).workflows.read_results(self.id, [str(step) for step in chosen])
        results = [
            decode_result(self._decrypted(result), returns) for result, returns in zip(found, types, strict=True)
        ]
        return cast("R_co", results[0] if len(results) == 1 else tuple(results))

    def _types_of(self, number: int) -> Sequence[Any]:
        """Returns the type of each of so many results."""
        if number == 1:
            return [self._result_type]
        types = get_args(self._result_type) if get_origin(self._result_type) is tuple else ()
        if self._result_type is not Any and len(types) != number:
            raise InvalidOption(
                "returns", f"workflow {self.id} has {number} last steps, its result is a tuple of {number} values"
            )
        return types or [Any] * number

    def _decrypted(self, result: bytes | None) -> bytes:
        return decrypt_result(self._sessions.codec, None, result or b"")

    async def cancel(self, *, undo: bool = True) -> None:
        """Stops running steps, and undoes completed ones unless `undo=False`. Raises WrongState when it has ended.

        With `undo=False` a parked workflow ends as it is; one that is being undone is refused.
        """
        workflows = (await self._sessions.checked()).workflows
        wanted = "undo" if undo else "leave"
        while True:
            record = await self.refresh()
            if record.is_over:
                raise self._wrong_state(record, "cancel", "it has ended")
            if record.cancel == wanted or (undo and record.state in ("undoing", "parked")):
                break  # it was cancelled before, or is being undone anyway
            if record.state == "undoing":
                raise self._wrong_state(record, "cancel", "what was done is being undone: let that end first")
            if await workflows.save_decision(record, fields={"cancel": wanted}, next_ms=0) != "stale":
                break
        await workflows.drive(self.id)
        # It may have freed its limit, or outcomes may have arrived meanwhile: no worker was notified of that.
        await workflows.drive_due()

    async def resume(self) -> None:
        """Continues at the failed steps, without repeating finished ones; retries a parked compensation.

        Raises WrongState unless it is held or parked.
        """
        workflows = (await self._sessions.checked()).workflows
        record = await self.refresh()
        if record.state == "parked":
            await self._resume_undo(record)
            await workflows.drive(self.id)
            return
        is_sent = False
        while not (is_sent and record.resuming):
            if record.state != "failed":
                raise self._wrong_state(record, "resume", "only one that failed and is held can be resumed")
            reason = why_not_resumable(record)
            if reason:
                raise self._wrong_state(record, "resume", f"{reason}, and cannot be run again: cancel it")
            is_sent = True
            if await workflows.resume(record):
                return
            record = await self.refresh()

    async def _resume_undo(self, record: WorkflowRecord) -> None:
        """Redrives the compensations that failed for good."""
        session = self._sessions.current()
        redriven = 0
        for step, state in record.undo_states.items():
            undo = record.steps[step].undo
            if state.outcome == "failed" and undo is not None:
                ref = JobRef(undo.queue, compensation_id(record.id, step))
                outcomes = await session.store.redrive(undo.queue, [ref])
                redriven += outcomes.count("redriven")
                await session.notify_dependents(undo.queue)
        if not redriven:
            reason = "a compensation was cancelled or deleted: repair that step by hand, then cancel(undo=False)"
            raise self._wrong_state(record, "resume", reason)

    def _wrong_state(self, record: WorkflowRecord, verb: str, reason: str) -> WrongState:
        return WrongState(f"workflow {self.id}", record.state, verb, reason)

    # --- for code that is not async ----------------------------------------------------------------------------

    refresh_sync = sync_method(refresh)
    state_sync = sync_method(state)
    explain_sync = sync_method(explain)
    show_sync = sync_method(show)
    mermaid_sync = sync_method(mermaid)
    wait_sync = sync_method(wait)
    result_sync = sync_method(result)
    cancel_sync = sync_method(cancel)
    resume_sync = sync_method(resume)


class WorkflowPage(msgspec.Struct, frozen=True):
    """Some workflows, and the cursor of the next page; None at the end."""

    workflows: list[WorkflowInfo]
    cursor: str | None


class Workflows:
    """The workflows: `rota.workflows`."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    @overload
    def get(self, workflow_id: str, *, returns: type[R]) -> Workflow[R]: ...
    @overload
    def get(self, workflow_id: str, *, returns: Any = ...) -> Workflow[Any]: ...
    def get(self, workflow_id: str, *, returns: Any = Any) -> Workflow[Any]:
        """Returns a handle. Sends nothing to the server.

        `returns` is the type of its result: that of its last step, or a tuple with that of each of its last steps.
        """
        return Workflow(self._sessions, checked_id(workflow_id), result_type=returns)

    async def list(self, *, states: Collection[str] = (), limit: int = 100) -> list[WorkflowInfo]:
        """Returns the latest workflows, the newest first: all that have not ended, and those of the last day."""
        _check_states(states)
        return await (await self._sessions.checked()).workflows.recent(limit, states=states)

    async def page(
        self, *, states: Collection[str] = (), name: str = "", cursor: str | None = None, limit: int = 100
    ) -> WorkflowPage:
        """Returns a page of workflows, also of one name. A page may be short and still have a next one."""
        _check_states(states)
        checked_limit(limit)
        after = None
        if cursor is not None:
            at, _, workflow_id = cursor.partition("-")
            if not (at.isascii() and at.isdecimal() and int(at) < 2**53 and workflow_id):
                raise InvalidOption("cursor", f"{cursor!r} was not made by this listing")
            after = int(at), workflow_id
        session = await self._sessions.checked()
        found, last = await session.workflows.page(limit, after=after, states=states, name=name)
        return WorkflowPage(found, f"{last[0]}-{last[1]}" if last is not None else None)

    list_sync = sync_method(list)
    page_sync = sync_method(page)


def _check_states(states: Collection[str]) -> None:
    unknown = [state for state in states if state not in get_args(WorkflowState)]
    if unknown:
        raise InvalidOption("states", f"{unknown[0]!r} is none of {', '.join(get_args(WorkflowState))}")
