"""What a job costs is counted, and compared with what was recorded: a speed that noise cannot move."""

from __future__ import annotations

from typing import Final

import pytest

from benchmarks.ratchet import Cost, measure, recorded_costs
from tests.servers import OwnServers

#: Trimming goes by the clock, and the layout of a sorted set by chance.
TOLERANCE: Final = 0.05
#: So much less is worth recording, so that it is not lost again.
GAIN: Final = 0.10


async def test_a_job_costs_what_was_recorded(own_server: OwnServers) -> None:
    recorded = recorded_costs()
    costs = await measure(own_server().url)

    assert costs.keys() == recorded.keys()
    for stage, cost in costs.items():
        for figure, now, was in zip(Cost._fields, cost, recorded[stage], strict=True):
            room = max(TOLERANCE * was, 0.05 if figure == "commands" else 10)
            gain = max(GAIN * was, 0.5 if figure == "commands" else 30)
            if now > was + room:
                pytest.fail(f"{stage}: {now:g} {figure} for each job, recorded are {was:g}")
            if now < was - gain:
                pytest.fail(
                    f"{stage}: {now:g} {figure} for each job, recorded are {was:g}: "
                    "keep the gain with `python -m benchmarks.ratchet --record`"
                )
