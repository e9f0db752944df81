"""A worker: the supervisor that owns the leases, and its life from start to stop.

It runs no user code: that is what the runners in `pool` are for. Its loops, one file each, run in one task group:
`desk` claims and reports, `heartbeat` extends leases, `inbox` hears pushes, `tower` stops what must stop, `sayings`
passes on progress and logs, `courier` tells dependents of ends, `conductor` sees to workflows, `announcer` says that
the worker lives, `janitor` sweeps, `clerk` acts on many jobs, `ticker` fires schedules, `adapter` sizes it, `witness`
has the program told of attempts that were killed. `probes` answers whoever asks how it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from rota.client import Rota
from rota.core.job import base_of
from rota.core.schedule import Schedule
from rota.doctor import STANDING, examine
from rota.errors import ConfigurationError, StoreError, StoreUnsupported
from rota.store.reports import Report
from rota.store.schedules import ScheduleStore
from rota.store.store import Store
from rota.worker.adapter import Adapter
from rota.worker.announcer import Announcer
from rota.worker.clerk import Clerk
from rota.worker.conductor import Conductor
from rota.worker.config import WorkerConfig
from rota.worker.courier import Courier
from rota.worker.desk import Desk
from rota.worker.figures import Figures
from rota.worker.flights import Flight, Flights
from rota.worker.heartbeat import Heartbeat
from rota.worker.inbox import Inbox
from rota.worker.janitor import Janitor
from rota.worker.pool import Pool, RunnerProcess
from rota.worker.probes import probed
from rota.worker.sayings import Sayings
from rota.worker.ticker import Ticker
from rota.worker.tower import STOP_PATIENCE_S, Tower
from rota.worker.wire import FromRunner, Log, Progress
from rota.worker.witness import Witness

logger = logging.getLogger("rota.worker")

#: How long one call to the store is tried before the loop that made it looks around again.
PATIENCE_S: Final = 2.0
#: What a worker that stops waits for, at most, until its program knows of the attempts that were killed.
TELL_S: Final = 2.0
#: What a handler gets after the second signal.
HURRY_S: Final = 0.2


def run_worker(config: WorkerConfig) -> int:
    """Runs a worker until it is told to stop, or, in burst mode, until nothing is left to do. Returns an exit code.

    For the main thread of a program: SIGTERM and SIGINT are how it is told. Raises RotaError when it cannot start.
    """
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(Worker(config).run())


class Worker:
    """One worker: made of its parts, started, drained, stopped."""

    def __init__(self, config: WorkerConfig, *, make_runner: Callable[[str], RunnerProcess] = RunnerProcess) -> None:
        self.config = config
        host = socket.gethostname().partition(".")[0][:32] or "host"
        self.id = f"{config.name or host}-{os.getpid()}-{secrets.token_hex(3)}"
        #: starting, active, waiting, draining, stopped
        self.state = "starting"
        self.slots = config.first_concurrency
        self.flights = Flights()
        self.pool = Pool(
            config.app,
            loops=config.processes,
            measures_lag=config.concurrency == "auto" or config.metrics_port is not None,
            log=(config.log_format, config.log_level) if config.log_format else None,
            max_jobs=config.max_jobs,
            max_rss_mb=config.max_rss_mb,
            on_messages=self._hear,
            on_death=self._bury,
            on_broken=self._give_up,
            make_runner=make_runner,
        )
        self.tower = Tower(
            self.flights,
            self.pool,
            app=config.app,
            slots=lambda: self.slots,
            report=self._report,
            pass_on=self._pass_on,
        )
        #: Schedules that the program declares.
        self.schedules: list[Schedule] = []
        self.desk: Desk
        self._courier: Courier
        self._conductor: Conductor
        self._sayings: Sayings
        #: What it counts of itself, where somebody asks.
        self._figures = Figures(self) if config.metrics_port is not None else None
        #: Where the program wants to hear of attempts that were killed.
        self._witness: Witness | None = None
        self._signals = 0
        #: Why it cannot go on; "" while it can.
        self._fault = ""
        self._asked_to_drain = asyncio.Event()
        self._asked_to_stop = asyncio.Event()
        self._asked_to_hurry = asyncio.Event()

    async def run(self) -> int:
        """From start to stop, which signals ask for. Raises RotaError when it cannot start, or not any more."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        return await self.work()

    async def work(self) -> int:
        """The same, without a word in what signals do."""
        try:
            facts = await self.pool.start()
            self.tower.learn(facts["tasks"], facts["handlers"])
            self.schedules = msgspec.convert(facts["schedules"], list[Schedule])
            rota = Rota(**facts["connection"])
            rota.shards |= facts["shards"]
            store = rota.connect(self.id, patience=PATIENCE_S)
            try:
                if facts["is_heedful"]:
                    self._witness = Witness(rota.views, self.pool)
                    self.tower.miss = self._witness.saw
                await self._serve(rota, store)
            finally:
                await store.gateway.close()
                await rota.close()
        finally:
            await self.pool.close()
        if self._fault:
            raise ConfigurationError(f"{self.config.app} does not start any more: {self._fault}")
        return 0

    @property
    def queues(self) -> tuple[str, ...]:
        """What it serves, as people are told: failures are of interest where there are handlers for them."""
        return self.config.served if self.tower.handlers else self.config.queues

    def stop(self) -> None:
        """Asks for a graceful stop; asked again, for one without grace."""
        self._signals += 1
        self._asked_to_stop.set()
        if self._signals > 1:
            self._asked_to_hurry.set()

    def drain(self) -> None:
        """Asks it to take no more jobs, finish what it runs, however long that takes, and leave. Once is enough."""
        self._asked_to_drain.set()

    async def _spread(self, rota: Rota) -> None:
        """Finds the shards of its queues, and those in which its schedules live."""
        link = await rota.checked_link()
        await link.register({queue for queue in self.config.queues if "~" not in queue and not queue.endswith("-fail")})
        self.config = self.config.spread({queue: await link.names_of(queue) for queue in self.config.queues})
        self.schedules = [await link.settle(schedule) for schedule in self.schedules]

    async def _serve(self, rota: Rota, store: Store) -> None:
        await self._spread(rota)
        self._sayings = Sayings(store)
        self.desk = Desk(
            store,
            self.config,
            self.flights,
            slots=lambda: self.slots,
            take=self.tower.take if self._figures is None else self._figures.counting(self.tower.take),
            send_off=self.pool.flush,
            give_back=self.tower.give_back,
            give_back_late=self.tower.give_back_late,
            hear_news=self._hear_news,
            hear_vanished=self._hear_vanished,
            say_first=self._sayings.flush,
        )
        self._conductor = Conductor(store, wake=self.desk.wake)
        self._courier = Courier(store, wake=self.desk.wake, conduct=self._conductor.nudge)
        heartbeat = Heartbeat(store, self.flights, self.tower)
        clerk = Clerk(rota)
        nudged = {"flows": self._conductor.nudge, "operations": clerk.nudge, "drain": self.drain}
        announcer = Announcer(store, self, nudged)
        ticker = Ticker(store, self.config.queues)
        loops: dict[str, Any] = {
            "desk": self.desk,
            "courier": self._courier,
            "conductor": self._conductor,
            "inbox": Inbox(store, self.desk, self.tower, heartbeat, ticker, announcer, drain=self.drain),
            "heartbeat": heartbeat,
            "sayings": self._sayings,
            "announcer": announcer,
            "janitor": Janitor(store, self.config.served),
            "clerk": clerk,
            "ticker": ticker,
        }
        if self.config.concurrency == "auto":
            loops["adapter"] = Adapter(self)
        if self._figures is not None:
            loops["figures"] = self._figures
        if self._witness is not None:
            loops["witness"] = self._witness
        async with probed(self, rota, heartbeat, self._figures):
            await self._introduce(rota, store, announcer)
            await self._go_on(loops, announcer)
        await self._leave(store, announcer)

    async def _go_on(self, loops: dict[str, Any], announcer: Announcer) -> None:
        """Until it is asked to stop, and has drained."""
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(loop.run(), name=f"rota-{name}") for name, loop in loops.items()]
            running.append(group.create_task(self.tower.keep_calendar(), name="rota-calendar"))
            running.append(group.create_task(self._stop_when_drained(announcer), name="rota-drain"))
            if self.config.burst:
                running.append(group.create_task(self._stop_when_idle(), name="rota-burst"))
            await self._asked_to_stop.wait()
            await self._drain()
            for task in running:
                task.cancel()

    async def _introduce(self, rota: Rota, store: Store, announcer: Announcer) -> None:
        """Refuses a server that cannot be used; tells the store which queues, tasks and schedules there are."""
        await rota.check()
        await _look_over(rota)
        await store.register_queues(list({*self.queues, *(schedule.queue for schedule in self.schedules)}))
        await store.announce_tasks(
            {name: msgspec.json.encode(task).decode() for name, task in self.tower.tasks.items()}
        )
        await self._announce_handlers(store)
        await self._put_schedules(store)
        self.state = "active"
        await announcer.announce()
        queues = ", ".join(self.queues)
        logger.info("worker %s serves %s with %d slots on %s", self.id, queues, self.slots, rota.address)

    async def _announce_handlers(self, store: Store) -> None:
        """Tells every queue which tasks have failure handlers, before any job can fail: a task may run in any queue."""
        declared = self.tower.handlers.values()
        without = sorted(self.tower.tasks.keys() - {handler["task"] for handler in declared})
        for queue in dict.fromkeys(queue.removesuffix("-fail") for queue in self.config.queues):
            base = base_of(queue)
            lines = {handler["task"]: handler["options"].get(base, handler["options"][""]) for handler in declared}
            await store.announce_handlers(queue, lines, without=without)

    async def _put_schedules(self, store: Store) -> None:
        schedules = ScheduleStore(store.gateway, store.keys)
        answers = await asyncio.gather(*(schedules.put(schedule) for schedule in self.schedules))
        for schedule, (outcome, version) in zip(self.schedules, answers, strict=True):
            if outcome == "older":
                logger.warning(
                    "schedule %s is stored with version %d and stays as it is: this program has version %d",
                    schedule.full_name, version, schedule.version,
                )  # fmt: skip

    async def _stop_when_idle(self) -> None:
        parts = (self.desk, self._courier, self._conductor)
        while not all(part.is_idle.is_set() for part in parts):
            for part in parts:
                await part.is_idle.wait()
        self._asked_to_stop.set()

    async def _stop_when_drained(self, announcer: Announcer) -> None:
        """Waits to be asked; then takes no more jobs, and stops when the last of its own has ended."""
        await self._asked_to_drain.wait()
        self.state = "draining"
        self.desk.stop_claiming()
        logger.info("worker %s was asked to drain: %d jobs are at work", self.id, self.flights.busy)
        with contextlib.suppress(StoreError):  # then the next sign of life says it
            await announcer.announce()
        await self.tower.until_landed()
        self._asked_to_stop.set()

    async def _drain(self) -> None:
        """Claims nothing more, lets handlers finish for the grace time, then hands their jobs back."""
        self.state = "draining"
        self.desk.stop_claiming()
        if self.flights.busy:
            logger.info(
                "worker %s is stopping: %d jobs have %g s to finish", self.id, self.flights.busy, self.config.grace
            )
            await self._give(self.config.grace)
        if self.flights.busy:
            logger.warning("%d jobs are not finished and are handed back", self.flights.busy)
            for flight in list(self.flights.airborne()):
                self.tower.stop(flight, "shutdown")
            await self._give(STOP_PATIENCE_S)
            if self.flights.busy:
                await asyncio.sleep(HURRY_S)
            # Only what is dead is sure to have stopped: then its job may run elsewhere.
            if self._witness is None:
                self.pool.kill_all()
            else:
                self.pool.kill_busy()  # somebody must be left to tell of them
            await self.tower.until_landed()
        if self._witness is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TELL_S):
                    await self._witness.until_told()
        with contextlib.suppress(TimeoutError, StoreError):
            async with asyncio.timeout(STOP_PATIENCE_S):
                await self.desk.until_settled()
                await self._sayings.flush()

    async def _give(self, seconds: float) -> None:
        """Lets handlers land for that long, or until a second signal says to hurry."""
        landed = asyncio.create_task(self.tower.until_landed())
        hurry = asyncio.create_task(self._asked_to_hurry.wait())
        await asyncio.wait((landed, hurry), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        landed.cancel()
        hurry.cancel()

    async def _leave(self, store: Store, announcer: Announcer) -> None:
        self.state = "stopped"
        with contextlib.suppress(StoreError):  # the server's absence may be the very reason to leave
            for queue in self.config.served:
                await store.leave(queue)
            await announcer.announce()
        logger.info("worker %s has stopped after %d jobs", self.id, self.tower.finished)

    def _hear(self, runner: RunnerProcess, messages: list[FromRunner]) -> None:
        self.tower.hear(runner, messages)
        if self._witness is not None:
            self._witness.hear(messages)

    def _pass_on(self, flight: Flight, saying: Progress | Log) -> None:
        self._sayings.hear(flight, saying)

    def _hear_news(self, queue: str) -> None:
        self._courier.hear(queue)

    def _hear_vanished(self, queue: str, runs: Sequence[str]) -> None:
        if self._witness is not None:
            self._witness.heard_of(queue, runs)

    def _bury(self, runner: RunnerProcess) -> None:
        if self._figures is not None:
            self._figures.buried(runner)
        self.tower.bury(runner)
        if self._witness is not None:
            self._witness.bury(runner)

    def _give_up(self, reason: str) -> None:
        """No runner can start any more. What still runs may finish; the rest is for other workers."""
        self._fault = reason
        logger.critical("worker %s leaves: %s does not start any more: %s", self.id, self.config.app, reason)
        self._asked_to_stop.set()

    def _report(self, queue: str, report: Report) -> None:
        self.desk.report(queue, report)


async def _look_over(rota: Rota) -> None:
    """Says what is at risk on this server, and refuses one that cannot do the work."""
    for finding in await examine(rota):
        if finding.check == "version" and finding.level == "fail":
            raise StoreUnsupported(finding.message)
        if finding.level != "ok" and finding.check not in STANDING:
            level = logging.ERROR if finding.level == "fail" else logging.WARNING
            logger.log(level, "server check: %s: %s", finding.check, finding.message)


def _loop_factory() -> Any:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
