"""Commits a workflow and dies on the way: `python -m tests.worker.killed_client <before|after>:<script>`."""

from __future__ import annotations

import asyncio
import sys

from tests.worker.app import rota, run_step
from tests.worker.fault_injection import around


async def main() -> None:
    """Three steps in two queues."""
    async with rota.workflow("killed", id="killed", limit=3) as flow:
        one = flow.step(run_step.call("one"))
        two = flow.step(run_step.using(queue="b").call("two", one.result))
        flow.step(run_step.call("three", two.result))


if __name__ == "__main__":
    around(sys.argv[1])()
    asyncio.run(main())
