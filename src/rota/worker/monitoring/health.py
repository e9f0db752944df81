"""Health checks of a worker, for the probes of a service manager and for operators.

A worker is ready when it can take jobs now. It is alive unless it must be restarted: while the server is away it waits,
and handlers go on; when it gets no answer although the server answers others, it is stuck.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from rota.client.rota import Rota
from rota.client.session import sessions_of
from rota.errors import StoreError
from rota.worker.monitoring.http_server import HttpResponse

if TYPE_CHECKING:
    from rota.worker.run_loops_and_drain import Supervisor

#: The claim/report loop calls the server at least every two seconds.
ANSWER_S: Final = 6.0
#: A problem that has lasted this long does not go away by itself.
STUCK_S: Final = 30.0
PROBE_PATIENCE_S: Final = 1.0


class Health:
    """Checks the components of a worker, and records since when each check has failed."""

    def __init__(self, supervisor: Supervisor, rota: Rota) -> None:
        self._supervisor = supervisor
        self._rota = rota
        self._started_at = asyncio.get_running_loop().time()
        self._failing_since: dict[str, float] = {}

    def problems(self) -> dict[str, str]:
        """Check -> the problem; "" if there is none."""
        now = asyncio.get_running_loop().time()
        found = {
            "state": self._state(),
            "server": self._server(now),
            "leases": self._leases(now),
            "runners": self._runners(),
        }
        for check, problem in found.items():
            if problem:
                self._failing_since.setdefault(check, now)
            else:
                self._failing_since.pop(check, None)
        return found

    async def ready(self) -> HttpResponse:
        """/readyz: the worker can take jobs now."""
        return _response(self.problems())

    async def alive(self) -> HttpResponse:
        """/healthz: the worker need not be restarted."""
        problems = self.problems()
        now = asyncio.get_running_loop().time()
        stuck = {check for check, since in self._failing_since.items() if now - since >= STUCK_S} - {"state"}
        if stuck & {"server", "leases"} and "runners" not in stuck and not await self._does_server_answer():
            stuck.clear()  # the server is away: a restart would not help, and would interrupt handlers
        return _response({check: problem if check in stuck else "" for check, problem in problems.items()})

    def _state(self) -> str:
        state = self._supervisor.state
        return "" if state == "active" else f"the worker is {state}"

    def _server(self, now: float) -> str:
        if self._supervisor.state == "draining":
            return ""  # there may be nothing left to send
        silent = now - max(self._supervisor.claim_loop.answered_at, self._started_at)
        return f"the server has not answered for {silent:.0f} s" if silent > ANSWER_S else ""

    def _leases(self, now: float) -> str:
        silent = now - max(self._supervisor.heartbeat.accepted_at, self._started_at)
        lease_s = self._supervisor.queues.durations.lease_ms / 1000
        return f"no heartbeat was accepted for {silent:.0f} s" if silent > lease_s else ""

    def _runners(self) -> str:
        loops = [r for r in self._supervisor.pool.runners if r.kind == "loop" and not r.is_retired]
        return "" if any(runner.is_ready for runner in loops) else "no runner is ready"

    async def _does_server_answer(self) -> bool:
        """True when the server answers on a new connection."""
        store = sessions_of(self._rota).connect(f"probe-{secrets.token_hex(6)}", patience=PROBE_PATIENCE_S)
        try:
            async with asyncio.timeout(2 * PROBE_PATIENCE_S):
                await store.redis.command("PING")
        except (StoreError, TimeoutError):
            return False
        finally:
            await store.redis.close()
        return True


def _response(problems: dict[str, str]) -> HttpResponse:
    has_problem = any(problems.values())
    status = HTTPStatus.SERVICE_UNAVAILABLE if has_problem else HTTPStatus.OK
    checks = {check: problem or "ok" for check, problem in problems.items()}
    body = json.dumps({"status": "wrong" if has_problem else "ok", "checks": checks})
    return HttpResponse(status, "application/json", f"{body}\n")
