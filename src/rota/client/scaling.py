"""The autoscaler as operators use it: its state and decisions, and settings changed at run time."""

from __future__ import annotations

from typing import Final

import msgspec

from rota.client.page_limit import checked_limit
from rota.client.session import Sessions
from rota.client.sync_methods import sync_method
from rota.core.autoscaling.policy_settings import POLICIES, DrainTime
from rota.core.autoscaling.pool_history_chart import CARRIED_MS, PoolHistory, pool_history
from rota.errors import InvalidOption, WrongState
from rota.store.autoscaler_lease_decisions_and_demand import (
    PlannerInfo,
    ScalingDecision,
    ScalingSettings,
    combine_settings,
)
from rota.store.scaling_dry_run import ANSWER_WITHIN_S, ScalingDryRun, request_dry_run

#: How often a change is tried again that meets another one.
ATTEMPTS: Final = 10
#: How long decisions are kept.
KEPT_S: Final = 30 * 86_400


class ScalingStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the autoscaler."""

    at: int
    #: The planner at work; None if no autoscaler runs.
    planner: str | None
    info: PlannerInfo | None
    #: The latest planning round, also of an autoscaler that no longer runs.
    latest: ScalingDecision | None
    #: Decisions stored since the first one.
    decisions: int
    #: Settings changed at run time.
    settings: ScalingSettings
    #: The planners that stand by, by id.
    standby: list[str]


class DecisionPage(msgspec.Struct, frozen=True):
    """Decisions, newest first, and the cursor of the next page; None on the last."""

    decisions: list[ScalingDecision]
    cursor: str | None


class Scaling:
    """The autoscaler of a namespace: `rota.scaling`."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def status(self) -> ScalingStatus:
        """Returns the planner at work, the latest planning round, and the settings changed at run time."""
        found = await (await self._sessions.checked()).scaling.read()
        return ScalingStatus(
            at=found.now,
            planner=found.holder,
            info=found.info,
            latest=found.latest,
            decisions=found.decisions,
            settings=found.settings,
            standby=found.standby,
        )

    async def decisions(self, *, cursor: str | None = None, limit: int = 100) -> DecisionPage:
        """Returns a page of decisions, newest first. Those of 30 days are kept, about 50,000 at most.

        Kept is every decision that changed something, and one per minute otherwise.
        """
        checked_limit(limit)
        found = await (await self._sessions.checked()).scaling.decisions(before=cursor, limit=limit)
        return DecisionPage(found, found[-1].id if len(found) == limit else None)

    async def history(self, *, since: float = 3600, step: float = 60) -> PoolHistory:
        """Returns the pool for that many seconds back, per step: workers by state, backlog and wait.

        Of each step the greatest values, from the decisions that are kept. Raises InvalidOption.
        """
        for option, value in (("since", since), ("step", step)):
            if not 1 <= value <= KEPT_S:
                raise InvalidOption(option, f"{value:,} s is not between 1 s and 30 days")
        store = (await self._sessions.checked()).scaling
        until = (await store.read()).now
        start = until - round(since * 1000)
        samples = await store.samples(start - CARRIED_MS)
        return pool_history(samples, since=start, until=until, step_ms=round(step * 1000))

    async def change(self, /, **changes: bool | int | str | None) -> ScalingSettings:
        """Changes settings at run time: `change(max_workers=20)`. None: as the autoscaler was started.

        Settings are those of `ScalingSettings`. The planner applies them at once, and after a restart. Returns all
        settings changed at run time. Raises InvalidOption.
        """
        store = (await self._sessions.checked()).scaling
        for _ in range(ATTEMPTS):
            record = await store.read()
            wanted = _changed(record.settings, changes)
            _check(wanted, _started_with(record.info or PlannerInfo(), record.settings))
            if await store.change_settings(record.settings, wanted):
                return wanted
        raise WrongState("the settings of the autoscaler", "being changed by others", "change")

    async def dry_run(self, /, **settings: bool | int | str | None) -> ScalingDryRun:
        """Returns what the planner at work would decide now, without doing it: `dry_run(max_workers=20)`.

        With settings, what it would decide with them in place of those in force; they are not stored. Raises
        WrongState if no planner is at work or it does not answer, and InvalidOption.
        """
        session = await self._sessions.checked()
        record = await session.scaling.read()
        tried = _changed(ScalingSettings(), settings)
        _check(combine_settings(record.settings, tried), record.info or PlannerInfo())
        if record.holder is None:
            raise WrongState("the autoscaler", "not running", "make a dry run of", "start it with `rota autoscale`")
        try:
            return await request_dry_run(session.redis, session.keys, record.holder, tried)
        except TimeoutError as error:
            raise WrongState(
                "the autoscaler",
                "not answering",
                "make a dry run of",
                f"planner {record.holder} sent nothing within {ANSWER_WITHIN_S:g} s: see its log",
            ) from error

    async def pause(self) -> ScalingSettings:
        """Pauses the autoscaler: it observes, and launches and drains nothing."""
        return await self.change(is_paused=True)

    async def resume(self) -> ScalingSettings:
        """Ends a pause."""
        return await self.change(is_paused=None)

    status_sync = sync_method(status)
    decisions_sync = sync_method(decisions)
    history_sync = sync_method(history)
    dry_run_sync = sync_method(dry_run)
    change_sync = sync_method(change)
    pause_sync = sync_method(pause)
    resume_sync = sync_method(resume)


def _changed(settings: ScalingSettings, changes: dict[str, bool | int | str | None]) -> ScalingSettings:
    fields = {field.name for field in msgspec.structs.fields(ScalingSettings)}
    for name in changes:
        if name not in fields:
            raise InvalidOption(name, f"is no setting of the autoscaler, which has: {', '.join(sorted(fields))}")
    try:
        return msgspec.convert({**msgspec.structs.asdict(settings), **changes}, ScalingSettings, strict=True)
    except msgspec.ValidationError as error:
        raise InvalidOption(next(iter(changes), "settings"), str(error)) from error


def _started_with(info: PlannerInfo, changed: ScalingSettings) -> PlannerInfo:
    """The bounds that the planner was started with: it reports those in force. 0 where they were changed since."""
    return msgspec.structs.replace(
        info,
        min_workers=info.min_workers if changed.min_workers is None else 0,
        max_workers=info.max_workers if changed.max_workers is None else 0,
    )


def _check(settings: ScalingSettings, info: PlannerInfo) -> None:
    """Refuses bounds that no policy accepts, given those that the autoscaler was started with."""
    name = settings.policy or info.policy or DrainTime.name
    if name not in POLICIES:
        raise InvalidOption("policy", f"{name!r} is none of {', '.join(POLICIES)}")
    bounds = {
        "min_workers": settings.min_workers if settings.min_workers is not None else info.min_workers,
        "max_workers": settings.max_workers if settings.max_workers is not None else info.max_workers or None,
    }
    given = {option: value for option, value in bounds.items() if value is not None}
    target = {} if settings.target_wait_ms is None else {"target_wait_ms": settings.target_wait_ms}
    if given.get("max_workers", 1) < given["min_workers"]:
        given.setdefault("max_workers", given["min_workers"])
    DrainTime(**given, **target)
