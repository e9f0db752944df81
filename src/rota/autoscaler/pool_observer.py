"""Observes the pool: joins the machines of the provider with the demand, the workers and the launches of the store."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from rota.autoscaler.machine_provider import Machine
from rota.autoscaler.queue_demand_and_pool_machines import VISIBLE_MS, DemandReader, PoolMachine, pool_of
from rota.client.session import Session
from rota.core.autoscaling.observation import Observation, PastDecision
from rota.core.autoscaling.policy_settings import Policy
from rota.store.autoscaler_lease_decisions_and_demand import Launch

logger = logging.getLogger("rota.autoscaler")

#: A worker that was silent for longer is lost, also if the store may have been away meanwhile.
LONGEST_OUTAGE_MS: Final = 3_600_000
#: Stored decisions that a planner that takes over reads.
HISTORY_READ: Final = 100


class PoolObserver:
    """Remembers between observations what a single one does not show."""

    def __init__(self, queues: Sequence[str] | None) -> None:
        self.demand = DemandReader(queues)
        #: Since when the store could be read without a failure; None after one.
        self.readable_since: int | None = None
        self._first_listed: dict[str, int] = {}
        self._history: deque[PastDecision] = deque(maxlen=10_000)

    async def read_history(self, session: Session) -> None:
        """Reads the needs of the last minutes, so that a restart does not end a cool-down."""
        for past in reversed(await session.scaling.decisions(before=None, limit=HISTORY_READ)):
            if not past.is_hold:
                self._history.append(PastDecision(at_ms=past.at, count=past.wanted, needed=past.needed))

    def add_decision(self, decision: PastDecision) -> None:
        """Adds a decision to the history."""
        self._history.append(decision)

    async def observe(
        self,
        session: Session,
        listed: Sequence[Machine],
        launches: Mapping[str, Launch],
        policy: Policy,
        now: int,
        provider_error: str | None,
    ) -> tuple[dict[str, PoolMachine], Observation]:
        """Returns the machines of the pool by id, and what the decision depends on."""
        # Barred before workers: a worker that registered before its machine was barred is then among the workers.
        barred = await session.scaling.barred_machines()
        workers = await session.views.all_workers()
        demand = await self.demand.read(session, policy.boot_ms, now)
        self.readable_since = self.readable_since or now
        self._first_listed = {one.id: self._first_listed.get(one.id, now) for one in listed}
        # A worker could not register while the store was away: that silence does not count.
        has_watched = now - self.readable_since > policy.lost_ms
        lost_before = now - (policy.lost_ms if has_watched else max(policy.lost_ms, LONGEST_OUTAGE_MS))
        pool = pool_of(listed, workers, launches, barred, self._first_listed, lost_before)
        if provider_error is None:
            _remove_gone(pool, now)
        return pool, Observation(
            at_ms=now,
            readable_since_ms=self.readable_since,
            queues=demand,
            workers=[machine.observed() for machine in pool.values()],
            history=[past for past in self._history if past.at_ms > now - policy.history_ms],
            provider_error=provider_error,
        )


def _remove_gone(pool: dict[str, PoolMachine], now: int) -> None:
    """Removes machines that have gone: they are not listed, and not so new that the list may lack them."""
    for machine in [one for one in pool.values() if one.listed is None]:
        if machine.has_registered or now - machine.launched_at > VISIBLE_MS:
            del pool[machine.id]
            if not machine.has_registered:
                logger.warning("machine %s was launched and is not listed: it is given up", machine.id)
