"""A worker: starts its runners, connects to the store, and runs a supervisor until it is stopped."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
from collections.abc import Callable, Sequence
from typing import Final

from rota.client.rota import Rota
from rota.client.session import checked_session, sessions_of
from rota.core.schedule import Schedule
from rota.errors import ConfigurationError
from rota.worker.config import WorkerConfig
from rota.worker.event_loop import loop_factory
from rota.worker.run_loops_and_drain import Supervisor
from rota.worker.runners.pool import Pool, RunnerProcess
from rota.worker.runners.protocol import AppDescription
from rota.worker.shutdown_flags import ShutdownRequests
from rota.worker.wait_for_server import StopRequested, until_server_answers

#: How long one call to the store is retried before the loop that made it goes on.
PATIENCE_S: Final = 2.0


def run_worker(config: WorkerConfig) -> int:
    """Runs a worker until it is stopped, or, in burst mode, until no job is left. Returns an exit code.

    For the main thread of a program: SIGTERM and SIGINT stop it. Raises RotaError when it cannot start.
    """
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(Worker(config).run())


class Worker:
    """One worker, from start to stop."""

    def __init__(self, config: WorkerConfig, *, make_runner: Callable[[str], RunnerProcess] = RunnerProcess) -> None:
        self.config = config
        host = socket.gethostname().partition(".")[0][:32] or "host"
        self.id = f"{config.name or host}-{os.getpid()}-{secrets.token_hex(3)}"
        #: How many jobs it has finished, known when it has stopped.
        self.finished = 0
        self._stop = ShutdownRequests()
        self._pool = Pool(
            config.app,
            loops=config.processes,
            measures_lag=config.concurrency == "auto" or config.metrics_port is not None,
            log=(config.log_format, config.log_level) if config.log_format else None,
            max_jobs=config.max_jobs,
            max_rss_mb=config.max_rss_mb,
            make_runner=make_runner,
        )

    async def run(self) -> int:
        """Runs until a signal stops it. Raises RotaError when it cannot start, or cannot go on."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores it
                loop.add_signal_handler(number, self._stop.stop)
        return await self.work()

    async def work(self) -> int:
        """Like `run`, but installs no signal handlers."""
        try:
            app = await self._start_runners()
            if app is None:
                return 0
            rota = Rota(**app.connection)
            sessions_of(rota).declared_shards |= app.shards
            store = sessions_of(rota).connect(self.id, patience=PATIENCE_S)
            try:
                config, schedules = await until_server_answers(
                    lambda: self._resolve_shards(rota, app), self._stop, is_burst=self.config.burst
                )
                supervisor = Supervisor(self.id, config, app, schedules, self._pool, rota, store, self._stop)
                await supervisor.run()
                self.finished = supervisor.dispatcher.finished
            except StopRequested:
                pass  # before the server answered: there is nothing to drain
            finally:
                await store.redis.close()
                await rota.close()
        finally:
            await self._pool.close()
        if self._pool.failure:
            raise ConfigurationError(f"{self.config.app} cannot be started any more: {self._pool.failure}")
        return 0

    async def _start_runners(self) -> AppDescription | None:
        """Starts the runners; None if a stop is requested first, because importing the program may take long."""
        starting = asyncio.create_task(self._pool.start())
        stop = asyncio.create_task(self._stop.stop_requested.wait())
        try:
            await asyncio.wait((starting, stop), return_when=asyncio.FIRST_COMPLETED)
            return starting.result() if starting.done() else None
        finally:
            starting.cancel()
            stop.cancel()

    async def _resolve_shards(self, rota: Rota, app: AppDescription) -> tuple[WorkerConfig, Sequence[Schedule]]:
        """The configuration with the shards of each queue in its place, and the schedules in their shards."""
        session = await checked_session(rota)
        await session.shards.register(
            {queue for queue in self.config.queues if "~" not in queue and not queue.endswith("-fail")}
        )
        config = self.config.spread({queue: await session.shards.names_of(queue) for queue in self.config.queues})
        return config, [await session.shards.locate_schedule(schedule) for schedule in app.schedules]
