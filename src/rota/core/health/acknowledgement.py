"""Acknowledgements: an operator knows about a finding, which no longer counts for the verdict."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from rota.core.health.finding import RANK, Finding, Level


class Acknowledgement(msgspec.Struct, frozen=True, kw_only=True):
    """Who acknowledged a finding, when and why. It ends with the finding, at `until`, or when it gets worse."""

    by: str
    at: int
    note: str = ""
    #: Snoozed until then, ms; None: until the finding ends.
    until: int | None = None
    #: The level that was acknowledged.
    level: Level = "fail"

    def covers(self, finding: Finding, now: int) -> bool:
        """True while the finding does not count."""
        is_worse = RANK[finding.level] < RANK[self.level]
        return not is_worse and (self.until is None or now < self.until)


class FindingState(msgspec.Struct, frozen=True):
    """Since when a finding exists, ms, and its acknowledgement."""

    since: int
    acknowledgement: Acknowledgement | None = None


def is_acknowledged(finding: Finding, states: Mapping[str, FindingState], now: int) -> bool:
    """True if the finding does not count for the verdict."""
    state = states.get(finding.key)
    acknowledged = state.acknowledgement if state is not None else None
    return acknowledged is not None and acknowledged.covers(finding, now)
