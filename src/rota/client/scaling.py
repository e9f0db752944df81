"""The autoscaler as operators use it: its state and decisions, and settings changed at run time."""

from __future__ import annotations

from typing import Final

import msgspec

from rota.client.page_limit import checked_limit
from rota.client.session import Sessions
from rota.client.sync_methods import sync_method
from rota.core.autoscaling.policy_settings import POLICIES, DrainTime
from rota.errors import InvalidOption, WrongState
from rota.store.scaling import PlannerInfo, ScalingDecision, ScalingSettings

#: How often a change is tried again that meets another one.
ATTEMPTS: Final = 10


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
        )

    async def decisions(self, *, cursor: str | None = None, limit: int = 100) -> DecisionPage:
        """Returns a page of decisions, newest first. Those of 30 days are kept, about 50,000 at most.

        Kept is every decision that changed something, and one per minute otherwise.
        """
        checked_limit(limit)
        found = await (await self._sessions.checked()).scaling.decisions(before=cursor, limit=limit)
        return DecisionPage(found, found[-1].id if len(found) == limit else None)

    async def change(self, /, **changes: bool | int | str | None) -> ScalingSettings:
        """Changes settings at run time: `change(max_workers=20)`. None: as the autoscaler was started.

        Settings are those of `ScalingSettings`. The planner applies them at once, and after a restart. Returns all
        settings changed at run time. Raises InvalidOption.
        """
        store = (await self._sessions.checked()).scaling
        for _ in range(ATTEMPTS):
            record = await store.read()
            wanted = _changed(record.settings, changes)
            _check(wanted, record.info or PlannerInfo())
            if await store.change_settings(record.settings, wanted):
                return wanted
        raise WrongState("the settings of the autoscaler", "being changed by others", "change")

    async def pause(self) -> ScalingSettings:
        """Pauses the autoscaler: it observes, and launches and drains nothing."""
        return await self.change(is_paused=True)

    async def resume(self) -> ScalingSettings:
        """Ends a pause."""
        return await self.change(is_paused=None)

    status_sync = sync_method(status)
    decisions_sync = sync_method(decisions)
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
