"""Workflows that have been committed: how each stands, its result, and what an operator does about it.

`rota.drafts` is where they are built.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec

from rota.core.codec import decode_result
from rota.core.job import JobRecord, JobRef, checked_id
from rota.core.picture import draw, explain_flow, mermaid
from rota.core.workflow import ENDED, STUCK, Flow, WorkflowInfo, WorkflowState, beyond_repair, last_steps
from rota.errors import InvalidOption, ResultTimeout, WorkflowFailed, WorkflowNotFound, WrongState
from rota.store.flows import Flows, undo_id

if TYPE_CHECKING:
    from rota.client import Rota

#: States of a workflow in which a failed step, or compensation, may be tried again by hand.
REDRIVABLE: Final = ("waiting", "running", "failed", "parked")


class Workflow:
    """A workflow that has been committed: how it stands, its result, and what an operator does about it."""

    def __init__(self, rota: Rota, workflow_id: str, *, returns: Sequence[Any] | None = None) -> None:
        self._rota = rota
        self.id = workflow_id
        #: Types of the results of the last steps, where they are known.
        self.returns = returns

    def __repr__(self) -> str:
        return f"<Workflow {self.id}>"

    async def refresh(self) -> Flow:
        """The record as it is now. Raises WorkflowNotFound."""
        flow = await (await self._flows()).read(self.id)
        if flow is None:
            raise WorkflowNotFound(self.id)
        return flow

    async def state(self) -> str:
        """waiting (for a place), running, completed, failed (held), undoing, parked, undone or cancelled."""
        return (await self.refresh()).state

    async def explain(self) -> str:
        """One sentence: how it stands, why, and what happens next."""
        return explain_flow(await self.refresh())

    async def show(self) -> str:
        """The graph as text, with the state of every step."""
        return draw(await self.refresh())

    async def mermaid(self) -> str:
        """The graph as a Mermaid flowchart."""
        return mermaid(await self.refresh())

    async def result(self, timeout: float | None = None) -> Any:
        """Waits for the end, which is pushed: the result of the last step, or of all last steps in order as a tuple.

        Raises WorkflowFailed when it failed, was undone or cancelled, or waits for a human; ResultTimeout.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._rota.wait_flow_ended(self.id)
        except TimeoutError as error:
            if timeout is None:
                raise
            flow = await self.refresh()
            if flow.state not in (*ENDED, *STUCK):
                raise ResultTimeout(f"workflow {self.id}", flow.state, timeout) from error
        flow = await self.refresh()
        if flow.state != "completed":
            raise WorkflowFailed(self.id, flow.state, flow.cause)
        last = last_steps(flow.steps)
        types = self.returns or [Any] * len(last)
        results = [
            decode_result(flow.results.get(str(place)), returns) for place, returns in zip(last, types, strict=True)
        ]
        return results[0] if len(results) == 1 else tuple(results)

    async def cancel(self, *, undo: bool = True) -> None:
        """Stops what runs, and undoes what was done unless told otherwise. Raises WrongState when it has ended.

        With `undo=False` a parked workflow ends as it stands; one that is being undone right now is refused.
        """
        flows = await self._flows()
        wanted = "undo" if undo else "leave"
        while True:
            flow = await self.refresh()
            if flow.is_over:
                raise WrongState(f"workflow {self.id}", flow.state, "cancel", "it has ended")
            if flow.cancel == wanted or (undo and flow.state in ("undoing", "parked")):
                break  # it was cancelled before, or is being undone anyway
            if flow.state == "undoing":
                raise WrongState(
                    f"workflow {self.id}", flow.state, "cancel", "what was done is being undone: let that end first"
                )
            if await flows.turn(flow, fields={"cancel": wanted}, next_ms=0) != "stale":
                break
        await flows.drive(self.id)
        # Its place may be free now, or others have had news on the way, and no worker has heard of that.
        await flows.drive_due()

    async def resume(self) -> None:
        """Goes on at the failed steps, without redoing finished ones; a parked compensation is tried again.

        Raises WrongState unless it waits for that.
        """
        flows = await self._flows()
        flow = await self.refresh()
        if flow.state == "parked":
            await self._resume_undo(flow)
            await flows.drive(self.id)
            return
        is_asked = False
        while not (is_asked and flow.resuming):
            if flow.state != "failed":
                raise WrongState(
                    f"workflow {self.id}", flow.state, "resume", "only one that failed and is held can be resumed"
                )
            reason = beyond_repair(flow)
            if reason:
                raise WrongState(
                    f"workflow {self.id}", flow.state, "resume", f"{reason}, and cannot be run again: cancel it"
                )
            is_asked = True
            if await flows.resume(flow):
                return
            flow = await self.refresh()

    async def _resume_undo(self, flow: Flow) -> None:
        """Tries compensations again that failed for good."""
        redriven = 0
        for place, stand in flow.undos.items():
            undo = flow.steps[place].undo
            if stand.outcome == "failed" and undo is not None:
                outcomes = await self._rota.store.redrive(undo.queue, [JobRef(undo.queue, undo_id(flow.id, place))])
                redriven += outcomes.count("redriven")
                await self._rota.tell_dependents(undo.queue)
        if not redriven:
            raise WrongState(
                f"workflow {self.id}", flow.state, "resume",
                "a compensation was cancelled or deleted: see to that step, then cancel(undo=False)",
            )  # fmt: skip

    # --- twins -------------------------------------------------------------------------------------------------

    def refresh_sync(self) -> Flow:
        """`refresh`, for code that is not async."""
        return self._rota.wait_for(self.refresh())

    def state_sync(self) -> str:
        """`state`, for code that is not async."""
        return self._rota.wait_for(self.state())

    def explain_sync(self) -> str:
        """`explain`, for code that is not async."""
        return self._rota.wait_for(self.explain())

    def show_sync(self) -> str:
        """`show`, for code that is not async."""
        return self._rota.wait_for(self.show())

    def mermaid_sync(self) -> str:
        """`mermaid`, for code that is not async."""
        return self._rota.wait_for(self.mermaid())

    def result_sync(self, timeout: float | None = None) -> Any:
        """`result`, for code that is not async."""
        return self._rota.wait_for(self.result(timeout))

    def cancel_sync(self, *, undo: bool = True) -> None:
        """`cancel`, for code that is not async."""
        self._rota.wait_for(self.cancel(undo=undo))

    def resume_sync(self) -> None:
        """`resume`, for code that is not async."""
        self._rota.wait_for(self.resume())

    async def _flows(self) -> Flows:
        return await self._rota.checked_flows()


class WorkflowPage(msgspec.Struct, frozen=True):
    """Some workflows, and how to go on; None at the end."""

    workflows: list[WorkflowInfo]
    cursor: str | None


class Workflows:
    """The workflows of one `Rota`."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota

    def get(self, workflow_id: str) -> Workflow:
        """A handle. Asks nothing yet."""
        return Workflow(self._rota, checked_id(workflow_id))

    def list_sync(self, *, states: Collection[str] = (), limit: int = 100) -> list[WorkflowInfo]:
        """`list`, for code that is not async."""
        return self._rota.wait_for(self.list(states=states, limit=limit))

    async def list(self, *, states: Collection[str] = (), limit: int = 100) -> list[WorkflowInfo]:
        """The latest workflows, the newest first: all that have not ended, and those of the last day."""
        _check_states(states)
        return await (await self._rota.checked_flows()).recent(limit, states=states)

    async def page(
        self, *, states: Collection[str] = (), name: str = "", cursor: str | None = None, limit: int = 100
    ) -> WorkflowPage:
        """The same page by page, of one name if you like. A page may be short and still have a next one."""
        _check_states(states)
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 1000:
            raise InvalidOption("limit", f"{limit!r} is not between 1 and 1,000")
        after = None
        if cursor is not None:
            at, _, workflow_id = cursor.partition("-")
            if not (at.isascii() and at.isdecimal() and int(at) < 2**53 and workflow_id):
                raise InvalidOption("cursor", f"{cursor!r} was not made by this listing")
            after = int(at), workflow_id
        flows = await self._rota.checked_flows()
        found, last = await flows.page(limit, after=after, states=states, name=name)
        return WorkflowPage(found, f"{last[0]}-{last[1]}" if last is not None else None)

    def page_sync(
        self, *, states: Collection[str] = (), name: str = "", cursor: str | None = None, limit: int = 100
    ) -> WorkflowPage:
        """`page`, for code that is not async."""
        return self._rota.wait_for(self.page(states=states, name=name, cursor=cursor, limit=limit))

    async def over(self, records: Iterable[JobRecord]) -> dict[str, str]:
        """Of the workflows that these jobs are steps of, those that can no longer go on, and how each stands."""
        asked = {record.options.workflow for record in records if record.options.workflow}
        if not asked:
            return {}
        flows = await self._rota.checked_flows()
        states = await flows.states(sorted(asked))
        # One that is no longer kept ended long ago.
        return {flow: state or "gone" for flow, state in states.items() if state not in REDRIVABLE}

    async def redrive(self, records: Iterable[JobRecord]) -> dict[JobRef, str]:
        """Gives dead letters another life; an outcome for each: "redriven", or why not.

        A step of a workflow whose name is limited goes on as soon as that has a place.
        """
        flows = await self._rota.checked_flows()
        by_flow: dict[str, list[JobRef]] = {}
        for record in records:
            by_flow.setdefault(record.options.workflow, []).append(record.ref)
        limited = await flows.limited([flow for flow in by_flow if flow])
        refs = [ref for flow, of_flow in by_flow.items() if flow not in limited for ref in of_flow]
        outcomes: dict[JobRef, str] = {}
        for flow in limited:
            asked = by_flow[flow]
            known = await flows.go_on_at(flow, asked)
            outcomes |= dict.fromkeys(known, "redriven")
            refs += [ref for ref in asked if ref not in known]
        for queue in {ref.queue for ref in refs}:
            of_queue = [ref for ref in refs if ref.queue == queue]
            found = await self._rota.store.redrive(queue, of_queue)
            outcomes |= dict(zip(of_queue, found, strict=True))
            await self._rota.tell_dependents(queue)
        return outcomes


def _check_states(states: Collection[str]) -> None:
    unknown = [state for state in states if state not in get_args(WorkflowState)]
    if unknown:
        raise InvalidOption("states", f"{unknown[0]!r} is none of {', '.join(get_args(WorkflowState))}")
