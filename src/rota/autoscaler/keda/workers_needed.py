"""How many workers the queues of a trigger need, by the policy `drain-time`, and how many serve them now."""

from __future__ import annotations

from typing import Final, NamedTuple

from rota.autoscaler.keda.trigger_metadata import Trigger
from rota.autoscaler.queue_demand_and_pool_machines import DemandReader
from rota.client.session import Session
from rota.core.autoscaling.decide_launches_and_drains import desired
from rota.core.autoscaling.observation import Observation, ObservedWorker, WorkerState
from rota.store.reads import WorkerInfo

#: States of a worker that takes no more jobs.
LEAVING: Final = ("draining", "drained", "stopped")


class Need(NamedTuple):
    """The result of one look at the store, at `at_ms` of its clock."""

    at_ms: int
    needed: int
    #: Live workers that serve one of the queues and claim jobs.
    serving: int


async def workers_needed(session: Session, trigger: Trigger) -> Need:
    """Reads the demand and the workers. Raises StoreError if that fails: there is no answer then, also not 0."""
    reader = DemandReader(trigger.queues)
    now = await session.views.now()
    demand = await reader.read(session, trigger.policy.boot_ms, now)
    names = await reader.names(session)
    serving = [
        _observed(worker)
        for worker in await session.views.all_workers()
        if worker.info.get("state") not in LEAVING and any(worker.serves(name) for name in names)
    ]
    decision = desired(Observation(at_ms=now, queues=demand, workers=serving), trigger.policy, now)
    return Need(now, decision.needed, len(serving))


def _observed(worker: WorkerInfo) -> ObservedWorker:
    return ObservedWorker(
        id=worker.id,
        state=WorkerState.RUNNING,
        slots=int(worker.info.get("slots", 0)),
        busy=int(worker.info.get("busy", 0)),
        heartbeat_ms=worker.last_seen,
    )
