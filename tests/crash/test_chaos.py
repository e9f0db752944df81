"""Everything goes wrong, again and again, while jobs come in: the journals prove that the guarantees hold."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.crash.scenarios import SCENARIOS, run
from tests.scale import IS_LONG, random_seed
from tests.servers import OwnServers

#: Seconds of faults; the short form injects each fault once, which takes longer.
SECONDS: Final = 180.0 if IS_LONG else 0.0
SEED: Final = str(random_seed())
#: Those of `make test`; the others are a part of `make test-long`, and of `make chaos`.
SHORT: Final = ("workers", "server", "network")


@pytest.mark.requirement("S4-1", "S4-36", "S2-34", "S0-2", "S0-3")
@pytest.mark.timeout(600 + 3 * SECONDS)
@pytest.mark.parametrize("name", SCENARIOS if IS_LONG else SHORT)
async def test_no_job_is_lost_and_none_ends_twice_whatever_happens(
    own_server: OwnServers, namespace: str, tmp_path: Path, name: str
) -> None:
    """Run it again with the seed that it prints: ROTA_TEST_SEED."""
    outcome = await run(name, own_server, tmp_path, namespace, seed=SEED, seconds=SECONDS)

    print(outcome)
    assert not outcome.violations, outcome
    assert outcome.jobs > 20
