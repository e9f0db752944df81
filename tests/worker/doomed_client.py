"""Commits a workflow and dies on the way: `python -m tests.worker.doomed_client <before|after>:<script>`."""

from __future__ import annotations

import asyncio
import sys

from tests.worker.app import act, rota
from tests.worker.hooked import around


async def main() -> None:
    """Three steps in two queues."""
    async with rota.workflow("doomed", id="doomed", limit=3) as flow:
        one = flow.step(act.call("one"))
        two = flow.step(act.using(queue="b").call("two", one.result))
        flow.step(act.call("three", two.result))


if __name__ == "__main__":
    around(sys.argv[1])()
    asyncio.run(main())
