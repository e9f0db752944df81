"""The supervisor: owns the leases of a worker and runs its loops, from registration to the last report.

It runs no user code; the runners in `runners/pool.py` do. Its loops run in one task group, one file each:
`claim_report_loop` claims and reports, `dispatcher` acts on deadlines, `heartbeat` extends leases,
`notification_listener` receives pushes, `progress_and_log_sender` sends progress and log lines, `dependency_notifier`
notifies dependents, `workflow_driver` drives workflows, `bulk_resumer` resumes bulk operations, `registration_loop`
keeps the registry entry, `retention_janitor` purges, `scheduler` fires schedules, `autosizer` adapts the slots,
`lost_attempt_middleware_notifier` notifies middleware about attempts that were killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from rota.client.rota import Rota
from rota.client.session import session_of
from rota.core.explain import format_count
from rota.core.schedule import Schedule
from rota.core.shards import base_of
from rota.errors import StoreError, StoreUnsupported
from rota.monitoring.doctor import QUEUE_CHECKS, examine
from rota.store.job_store import JobStore
from rota.store.schedules import ScheduleStore
from rota.worker.autosizer import Autosizer
from rota.worker.bulk_resumer import BulkResumer
from rota.worker.claim_queues import ClaimQueues
from rota.worker.claim_report_loop import ClaimReportLoop, concerns_the_server
from rota.worker.config import WorkerConfig
from rota.worker.dependency_notifier import DependencyNotifier
from rota.worker.dispatcher import STOP_PATIENCE_S, Dispatcher
from rota.worker.lease_heartbeat import Heartbeat
from rota.worker.lost_attempt_middleware_notifier import LostAttemptNotifier
from rota.worker.monitoring.endpoints import serve_endpoints
from rota.worker.monitoring.prometheus_metrics import WorkerMetrics
from rota.worker.notification_listener import NotificationListener
from rota.worker.progress_and_log_sender import ProgressAndLogSender
from rota.worker.registration_loop import Registration
from rota.worker.report_buffer import ReportBuffer
from rota.worker.retention_janitor import RetentionJanitor
from rota.worker.runners.pool import Pool
from rota.worker.runners.protocol import AppDescription
from rota.worker.running_jobs import RunningJobs
from rota.worker.schedule_firing_loop import Scheduler
from rota.worker.shutdown_flags import ShutdownRequests
from rota.worker.slots_per_task import TaskSlots, limits_per_worker
from rota.worker.wait_for_server import until_server_answers
from rota.worker.workflow_driver import WorkflowDriver

logger = logging.getLogger("rota.worker")

#: How long a worker that stops waits, at most, until its middleware has been notified of killed attempts.
NOTIFY_S: Final = 2.0
#: The pause before a drained worker that could not report it tries again.
REPORT_AGAIN_S: Final = 0.5
#: How long handlers have after the second signal.
HURRY_S: Final = 0.2


class Loop(Protocol):
    """A part of the worker that runs until it is cancelled."""

    async def run(self) -> None:
        """Runs until cancelled."""
        ...


class Supervisor:
    """The components of one worker. Built when its runners have started and the store is known."""

    def __init__(
        self,
        worker_id: str,
        config: WorkerConfig,
        app: AppDescription,
        schedules: Sequence[Schedule],
        pool: Pool,
        rota: Rota,
        store: JobStore,
        stop: ShutdownRequests,
    ) -> None:
        self.id = worker_id
        self.config = config
        self.app = app
        #: The schedules that the program declares.
        self.schedules = schedules
        self.pool = pool
        #: starting, active, reactivating, error, draining, drained, stopped; see `shown_state`
        self.state = "starting"
        #: It has reported that it is drained: its machine may be removed.
        self.was_drained = False
        self._rota = rota
        self._store = store
        self._stop = stop
        wake_up = asyncio.Event()
        self.running = RunningJobs(config.first_concurrency, TaskSlots(limits_per_worker(app)))
        self.queues = ClaimQueues(config, wake_up)
        self._reports = ReportBuffer(self.running, wake_up)
        self._progress = ProgressAndLogSender(store)
        self._metrics = WorkerMetrics(self) if config.metrics_port is not None else None
        self._lost_attempts = LostAttemptNotifier(session_of(rota).views, pool) if app.wants_lost_attempts else None
        self.dispatcher = Dispatcher(
            app,
            self.running,
            pool,
            self._reports,
            self._progress,
            lost_attempts=self._lost_attempts,
            metrics=self._metrics,
            always_logs_tracebacks=config.log_tracebacks == "all",
        )
        pool.listener = self.dispatcher
        self._workflow_driver = WorkflowDriver(store, self.queues)
        self._dependency_notifier = DependencyNotifier(store, self.queues, self._workflow_driver)
        self.claim_loop = ClaimReportLoop(
            store,
            self.queues,
            self.running,
            self._reports,
            self.dispatcher,
            self._progress,
            self._dependency_notifier,
            wake_up=wake_up,
            is_burst=config.burst,
            lost_attempts=self._lost_attempts,
        )
        self.heartbeat = Heartbeat(store, self.queues, self.running, self.dispatcher)
        bulk_resumer = BulkResumer(rota)
        settings = session_of(rota).settings
        self._registration = Registration(store, settings, self, self._workflow_driver, bulk_resumer, stop)
        scheduler = Scheduler(store, config.queues)
        notifications = NotificationListener(
            store, self.claim_loop, self.queues, self.dispatcher, self.heartbeat, scheduler, self._registration, stop
        )
        self._loops: dict[str, Loop] = {
            "claim-report": self.claim_loop,
            "dependency-notifier": self._dependency_notifier,
            "workflow-driver": self._workflow_driver,
            "notifications": notifications,
            "heartbeat": self.heartbeat,
            "progress-sender": self._progress,
            "registration": self._registration,
            "janitor": RetentionJanitor(store, config.served, blobs=app.blobs),
            "bulk-resumer": bulk_resumer,
            "scheduler": scheduler,
            "dispatcher": self.dispatcher,
        }
        if config.concurrency == "auto":
            self._loops["autosizer"] = Autosizer(self.running, self.queues, self.claim_loop, pool)
        if self._metrics is not None:
            self._loops["metrics"] = self._metrics
        if self._lost_attempts is not None:
            self._loops["lost-attempts"] = self._lost_attempts

    @property
    def error(self) -> str:
        """Why the worker cannot do its work: its program does not start, or the server refuses its claims."""
        return self.pool.failure or self.claim_loop.error

    @property
    def shown_state(self) -> str:
        """The state as the registry shows it: an active worker is waiting while it runs no job."""
        if self.state == "active" and self.error:
            return "error"
        return "waiting" if self.state == "active" and not self.running.busy else self.state

    @property
    def shown_queues(self) -> tuple[str, ...]:
        """The queues it serves, as the registry shows them: failure queues only if there are failure handlers."""
        return self.config.served if self.app.failure_handlers else self.config.queues

    async def run(self) -> None:
        """Registers the worker, runs its loops until a stop is requested, and drains it."""
        async with serve_endpoints(self, self._rota, self._metrics):
            await until_server_answers(self._register, self._stop, is_burst=self.config.burst)
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(loop.run(), name=f"rota-{name}") for name, loop in self._loops.items()]
                tasks.append(group.create_task(self._stop_when_drained(), name="rota-drain"))
                tasks.append(group.create_task(self._stop_when_runners_fail(), name="rota-runner-failure"))
                if self.config.burst:
                    tasks.append(group.create_task(self._stop_when_idle(), name="rota-burst"))
                await self._stop.stop_requested.wait()
                await self._drain()
                for task in tasks:
                    task.cancel()
        await self._unregister()

    # --- start -------------------------------------------------------------------------------------------------

    async def _register(self) -> None:
        """Checks the server; publishes the queues, tasks, failure handlers and schedules of the program."""
        await self._rota.check()
        await _check_server(self._rota)
        await self._store.add_queue_names(list({*self.shown_queues, *(schedule.queue for schedule in self.schedules)}))
        await self._store.publish_tasks(
            {name: msgspec.json.encode(task).decode() for name, task in self.app.tasks.items()}
        )
        await self._publish_failure_handlers()
        await self._put_schedules()
        self.state = "active"
        await self._registration.register()
        await self._registration.announce_code_version()
        queues = ", ".join(self.shown_queues)
        slots = self.running.slots
        logger.info("worker %s serves %s with %d slots on %s", self.id, queues, slots, self._rota.address)

    async def _publish_failure_handlers(self) -> None:
        """Publishes to every queue which tasks have failure handlers, before any job can fail: tasks may run in any."""
        handlers = self.app.failure_handlers.values()
        without = sorted(self.app.tasks.keys() - {handler["task"] for handler in handlers})
        for queue in dict.fromkeys(queue.removesuffix("-fail") for queue in self.config.queues):
            base = base_of(queue)
            options = {handler["task"]: handler["options"].get(base, handler["options"][""]) for handler in handlers}
            try:
                await self._store.publish_failure_handlers(queue, options, removed=without)
            except StoreError as error:  # an error in one queue must not stop the others
                if concerns_the_server(error):
                    raise
                logger.error("the failure handlers of queue %s were not published: %s", queue, error)

    async def _put_schedules(self) -> None:
        store = ScheduleStore(self._store.redis, self._store.keys)
        puts = (store.put(schedule) for schedule in self.schedules)
        answers = await asyncio.gather(*puts, return_exceptions=True)
        for schedule, answer in zip(self.schedules, answers, strict=True):
            if isinstance(answer, BaseException):
                if not isinstance(answer, StoreError) or concerns_the_server(answer):
                    raise answer
                logger.error("schedule %s was not stored: %s", schedule.full_name, answer)
                continue
            outcome, version = answer
            if outcome == "older":
                logger.warning(
                    "schedule %s is stored with version %d and stays as it is: this program has version %d",
                    schedule.full_name,
                    version,
                    schedule.version,
                )

    # --- stop --------------------------------------------------------------------------------------------------

    async def _stop_when_idle(self) -> None:
        events = (self.queues.is_idle, self._dependency_notifier.is_idle, self._workflow_driver.is_idle)
        while not all(event.is_set() for event in events):
            for event in events:
                await event.wait()
        self._stop.finish()

    async def _stop_when_runners_fail(self) -> None:
        """Stops when no runner can start any more. Running handlers may finish; other workers get the other jobs."""
        await self.pool.has_failed.wait()
        logger.critical("worker %s stops: %s cannot be started: %s", self.id, self.config.app, self.pool.failure)
        with contextlib.suppress(StoreError):
            await self._registration.register()  # shows the state `error` and the reason
        self._stop.finish()

    async def _stop_when_drained(self) -> None:
        """Waits for a drain request; then claims no more jobs, and stops when every job has ended and is reported.

        If the request is withdrawn before that, claims go on.
        """
        while True:
            await self._stop.drain_requested.wait()
            self.state = "draining"
            self.claim_loop.stop_claiming()
            logger.info("worker %s was asked to drain; running: %s", self.id, format_count(self.running.busy, "job"))
            with contextlib.suppress(StoreError):  # then the next registration shows it
                await self._registration.register()
            if await self._finish_unless_withdrawn() and await self._report_drained():
                self.state, self.was_drained = "drained", True
                self._stop.finish()
                return
            self.state = "active"
            self.claim_loop.resume_claiming()
            logger.info("worker %s claims again: the request to drain was withdrawn", self.id)
            with contextlib.suppress(StoreError):
                await self._registration.register()

    async def _finish_unless_withdrawn(self) -> bool:
        """Waits until every job has ended and is reported; False if the request to drain is withdrawn before."""
        finished = asyncio.create_task(self._until_nothing_is_held())
        withdrawn = asyncio.create_task(self._stop.drain_withdrawn.wait())
        try:
            await asyncio.wait((finished, withdrawn), return_when=asyncio.FIRST_COMPLETED)
            return not withdrawn.done()
        finally:
            finished.cancel()
            withdrawn.cancel()

    async def _until_nothing_is_held(self) -> None:
        await self.dispatcher.until_finished()
        await self.claim_loop.until_stored()

    async def _report_drained(self) -> bool:
        """Reports that no job is held, until the store answers. False if it no longer asks this worker to drain."""
        while True:
            try:
                return await self._registration.report_drained()
            except StoreError as error:
                logger.debug("not reported as drained: %s", error)
                await asyncio.sleep(REPORT_AGAIN_S)

    async def _drain(self) -> None:
        """Claims no more jobs, lets handlers finish for the grace time, then returns the jobs of the others."""
        if self.state != "drained":
            self.state = "draining"
        self.claim_loop.stop_claiming()
        if self.running.busy:
            grace = self.queues.durations.grace_s if self.config.grace is None else self.config.grace
            running = format_count(self.running.busy, "job")
            logger.info("worker %s is stopping; time to finish %s: %g s", self.id, running, grace)
            await self._let_finish(grace)
        if self.running.busy:
            logger.warning("unfinished and returned: %s", format_count(self.running.busy, "job"))
            for job in list(self.running.with_slot()):
                self.dispatcher.stop(job, "shutdown")
            await self._let_finish(STOP_PATIENCE_S)
            if self.running.busy:
                await asyncio.sleep(HURRY_S)
            # Only a dead process has certainly stopped: then its jobs may run elsewhere.
            if self._lost_attempts is None:
                self.pool.kill_all()
            else:
                self.pool.kill_busy()  # a runner must be left to notify the middleware
            await self.dispatcher.until_finished()
        if self._lost_attempts is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(NOTIFY_S):
                    await self._lost_attempts.until_notified()
        with contextlib.suppress(TimeoutError, StoreError):
            async with asyncio.timeout(STOP_PATIENCE_S):
                await self.claim_loop.until_stored()
                await self._progress.flush()

    async def _let_finish(self, seconds: float) -> None:
        """Lets handlers finish for that long, or until a stop without grace is requested."""
        finished = asyncio.create_task(self.dispatcher.until_finished())
        hurry = asyncio.create_task(self._stop.hurry_requested.wait())
        await asyncio.wait((finished, hurry), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finished.cancel()
        hurry.cancel()

    async def _unregister(self) -> None:
        self.state = "stopped"
        with contextlib.suppress(StoreError):  # the server's absence may be the reason to stop
            for queue in self.config.served:
                await self._store.leave_queue(queue)
            await self._registration.register()
        logger.info("worker %s has stopped after %s", self.id, format_count(self.dispatcher.finished, "job"))


async def _check_server(rota: Rota) -> None:
    """Logs what is at risk on this server. Raises StoreUnsupported when it is too old."""
    for finding in await examine(rota):
        if finding.check == "version" and finding.level == "fail":
            raise StoreUnsupported(finding.message)
        if finding.level != "ok" and finding.check not in QUEUE_CHECKS:
            level = logging.ERROR if finding.level == "fail" else logging.WARNING
            logger.log(level, "server check: %s: %s", finding.check, finding.message)
