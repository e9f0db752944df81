"""Is this worker well? For the probes of a service manager, and for people who ask why it is not.

Ready is who can take jobs now. Alive is who need not be restarted: a worker whose server is away waits, and handlers go
on; one that gets no answer while the server gives them to others is stuck.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from rota.client import Rota
from rota.errors import StoreError
from rota.store.bounds import LEASE_MS
from rota.worker.heartbeat import Heartbeat
from rota.worker.port import Answer

if TYPE_CHECKING:
    from rota.worker.worker import Worker

#: The desk asks the server at least every two seconds.
ANSWER_S: Final = 6.0
#: What has gone on for so long is not going to mend itself.
STUCK_S: Final = 30.0
PROBE_PATIENCE_S: Final = 1.0


class Health:
    """Looks at the parts of a worker, and knows since when each has been ill."""

    def __init__(self, worker: Worker, rota: Rota, heartbeat: Heartbeat) -> None:
        self._worker = worker
        self._rota = rota
        self._heartbeat = heartbeat
        self._began_at = asyncio.get_running_loop().time()
        self._ill_since: dict[str, float] = {}

    def ailments(self) -> dict[str, str]:
        """Check -> what is wrong; "" where nothing is."""
        now = asyncio.get_running_loop().time()
        found = {
            "state": self._state(),
            "server": self._server(now),
            "leases": self._leases(now),
            "runners": self._runners(),
        }
        for check, wrong in found.items():
            if wrong:
                self._ill_since.setdefault(check, now)
            else:
                self._ill_since.pop(check, None)
        return found

    async def ready(self) -> Answer:
        """/readyz: takes jobs, right now."""
        return _answer(self.ailments())

    async def alive(self) -> Answer:
        """/healthz: will get well by itself, if it is not."""
        ailments = self.ailments()
        now = asyncio.get_running_loop().time()
        stuck = {check for check, since in self._ill_since.items() if now - since >= STUCK_S} - {"state"}
        if stuck & {"server", "leases"} and "runners" not in stuck and not await self._is_answered():
            stuck.clear()  # the server is away: a restart would mend nothing, and cut handlers off
        return _answer({check: wrong if check in stuck else "" for check, wrong in ailments.items()})

    def _state(self) -> str:
        state = self._worker.state
        return "" if state == "active" else f"the worker is {state}"

    def _server(self, now: float) -> str:
        if self._worker.state == "draining":
            return ""  # there may be nothing to ask any more
        silent = now - max(self._worker.desk.answered_at, self._began_at)
        return f"the server has not answered for {silent:.0f} s" if silent > ANSWER_S else ""

    def _leases(self, now: float) -> str:
        silent = now - max(self._heartbeat.accepted_at, self._began_at)
        return f"no heartbeat was accepted for {silent:.0f} s" if silent > LEASE_MS / 1000 else ""

    def _runners(self) -> str:
        loops = [r for r in self._worker.pool.runners if r.kind == "loop" and not r.is_retired]
        return "" if any(runner.is_ready for runner in loops) else "no runner is ready"

    async def _is_answered(self) -> bool:
        """Whether the server answers somebody who has just come."""
        store = self._rota.connect(f"probe-{secrets.token_hex(6)}", patience=PROBE_PATIENCE_S)
        try:
            async with asyncio.timeout(2 * PROBE_PATIENCE_S):
                await store.gateway.command("PING")
        except (StoreError, TimeoutError):
            return False
        finally:
            await store.gateway.close()
        return True


def _answer(ailments: dict[str, str]) -> Answer:
    wrong = {check: told for check, told in ailments.items() if told}
    status = HTTPStatus.SERVICE_UNAVAILABLE if wrong else HTTPStatus.OK
    checks = {check: told or "ok" for check, told in ailments.items()}
    return Answer(
        status, "application/json", f"{json.dumps({'status': 'wrong' if wrong else 'ok', 'checks': checks})}\n"
    )
