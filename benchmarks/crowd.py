"""Many workers in one process: `python -m benchmarks.crowd 100`.

Each is a supervisor as `rota worker` has it, with connections of its own, and with its runner inside this process. So
the server hears what it hears from a hundred workers, on a machine that has no room for two hundred processes.
"""

from __future__ import annotations

import asyncio
import logging
import sys

from benchmarks.peers.rota import rota
from rota.testing import LocalRunner
from rota.worker.config import WorkerConfig
from rota.worker.worker import Worker

#: Workers of a deployment do not start in the same instant either.
BETWEEN_S = 0.02


async def crowd(count: int) -> None:
    """Until it is killed."""
    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            config = WorkerConfig(app="benchmarks.peers.rota:rota", concurrency=10)
            worker = Worker(config, make_runner=lambda kind: LocalRunner(rota, kind))
            group.create_task(worker.work())
            await asyncio.sleep(BETWEEN_S)


if __name__ == "__main__":
    logging.getLogger("rota").setLevel(logging.CRITICAL)
    asyncio.run(crowd(int(sys.argv[1])))
