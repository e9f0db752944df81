"""Publishes the worker's registry entry every 5 s; the reply names workflows and bulk operations that need a driver."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import msgspec

from rota.errors import StoreError
from rota.store.annotations import Annotation, AnnotationStore
from rota.store.job_store import JobStore
from rota.store.namespace_settings import SettingsStore
from rota.worker.bulk_resumer import BulkResumer
from rota.worker.runners.measure_and_kill_process_trees import cpu_seconds, rss_bytes
from rota.worker.shutdown_flags import ShutdownRequests
from rota.worker.workflow_driver import WorkflowDriver

if TYPE_CHECKING:
    from rota.worker.run_loops_and_drain import Supervisor

logger = logging.getLogger("rota.worker")

VERSION: Final = version("rota")

#: Twice within the ten seconds after which a worker without a registration is shown as DEAD.
REGISTER_S: Final = 5.0
_MAX_JOBS_SHOWN: Final = 100
MAX_CODE_VERSION: Final = 100


class Registration:
    """Keeps the worker's registry entry current."""

    def __init__(
        self,
        store: JobStore,
        settings: SettingsStore,
        supervisor: Supervisor,
        workflow_driver: WorkflowDriver,
        bulk_resumer: BulkResumer,
        stop: ShutdownRequests,
    ) -> None:
        self._store = store
        self._settings = settings
        self._supervisor = supervisor
        self._workflow_driver = workflow_driver
        self._bulk_resumer = bulk_resumer
        self._stop = stop
        self._started_at = time.time()
        self._sent = 0
        self._answered = 0
        #: The machine, pod or process that an autoscaler launched for this worker.
        #: The version of the program, as its deployment names it.
        self.code_version = os.environ.get("ROTA_CODE_VERSION", "")[:MAX_CODE_VERSION]
        self.machine = os.environ.get("ROTA_MACHINE") or socket.gethostname()

    async def announce_code_version(self) -> None:
        """Marks a deploy on the charts, if no worker has announced this version before."""
        if self.code_version:
            mark = Annotation(
                id=secrets.token_hex(8),
                kind="deploy",
                text=f"deploy {self.code_version}",
                version=self.code_version,
                by="worker",
            )
            annotations = AnnotationStore(self._store.redis, self._store.keys)
            await annotations.add(mark, announced_version=self.code_version)

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            await asyncio.sleep(REGISTER_S)
            try:
                await self.register()
            except StoreError as error:
                logger.debug("registration failed: %s", error)

    async def register_as(self, state: str) -> None:
        """Publishes an active worker in a passing state, which the next registration ends."""
        if self._supervisor.state == "active":
            await self._publish({**self.info(), "state": state})

    async def register(self) -> None:
        """Reads the settings and publishes the entry. The reply may wake the drivers, or ask this worker to drain."""
        await self._follow_settings()
        await self._publish(self.info())

    async def _follow_settings(self) -> None:
        queues = self._supervisor.queues
        if queues.durations.follow(await self._settings.read()):
            # A claim that waits in the store for a push has the old lease: new ones replace them.
            queues.wake()

    async def _publish(self, info: dict[str, Any]) -> None:
        self._sent += 1
        number, drain_changes = self._sent, self._stop.drain_changes
        reply = await self._store.renew_registration(msgspec.json.encode(info).decode(), self.machine)
        if "workflows" in reply.due:
            self._workflow_driver.wake()
        if "operations" in reply.due:
            self._bulk_resumer.wake()
        if number < self._answered:
            return
        self._answered = number
        if "drain" in reply.due:
            self._stop.drain()
        elif drain_changes == self._stop.drain_changes:  # else a drain was pushed after the server had answered
            self._stop.undrain()

    async def report_drained(self) -> bool:
        """Reports that the worker has drained and exits. False if the request to drain was withdrawn before."""
        info = {**self.info(), "state": "drained"}
        return await self._store.report_drained(msgspec.json.encode(info).decode(), self.machine)

    def info(self) -> dict[str, Any]:
        """The registry entry: state, queues, running jobs, runners, CPU and memory."""
        worker = self._supervisor
        runners = [runner for runner in worker.pool.runners if runner.pid]
        pids = [os.getpid(), *(runner.pid for runner in runners)]
        running = list(worker.running.with_slot())
        since = [job.started_at for job in running if job.started_at]
        return {
            "state": worker.shown_state,
            "error": worker.error,
            "host": socket.gethostname(),
            "machine": self.machine,
            "pid": os.getpid(),
            "queues": list(worker.shown_queues),
            "app": worker.config.app,
            "schedules": [schedule.full_name for schedule in worker.schedules],
            "slots": worker.running.slots,
            "busy": worker.running.busy,
            # By this worker's clock: the autoscaler compares it with that of other workers.
            "busy_since": round((time.time() - time.monotonic() + min(since)) * 1000) if since else None,
            "settings": worker.queues.durations.version,
            "was_drained": worker.was_drained,
            "finished": worker.dispatcher.finished,
            "running": [
                {"job": job.job_id, "run": job.job.run, "task": job.task, "attempt": job.job.counts.attempt}
                for job in running[:_MAX_JOBS_SHOWN]
            ],
            "runners": [{"pid": r.pid, "kind": r.kind, "busy": len(r.jobs), "done": r.done} for r in runners],
            "cpu_seconds": round(sum(map(cpu_seconds, pids)), 2),
            "rss_bytes": sum(map(rss_bytes, pids)),
            "started_at": round(self._started_at * 1000),
            "version": VERSION,
            "code_version": self.code_version,
        }
