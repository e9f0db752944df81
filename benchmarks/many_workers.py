"""Many workers in one process: `python -m benchmarks.many_workers 100`.

Each is a supervisor as in `rota worker`, with its own connections, but with its runner inside this process. The server
gets the load of a hundred workers, on a machine without room for two hundred processes.
"""

from __future__ import annotations

import asyncio
import logging
import sys

from benchmarks.peers.rota import rota
from rota.testing import LocalRunner
from rota.worker.config import WorkerConfig
from rota.worker.worker_lifecycle import Worker

#: Workers of a deployment do not start at the same instant either.
BETWEEN_S = 0.02


async def run_workers(count: int) -> None:
    """Runs until it is killed."""
    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            config = WorkerConfig(app="benchmarks.peers.rota:rota", concurrency=10)
            worker = Worker(config, make_runner=lambda kind: LocalRunner(rota, kind))
            group.create_task(worker.work())
            await asyncio.sleep(BETWEEN_S)


if __name__ == "__main__":
    logging.getLogger("rota").setLevel(logging.CRITICAL)
    asyncio.run(run_workers(int(sys.argv[1])))
