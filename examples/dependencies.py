"""Dependencies across queues: a job that waits for others, and what happens when one of them fails and is redriven.

rota worker examples.dependencies:rota
python -m examples.dependencies
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from tempfile import gettempdir

from rota import JobCancelled, PermanentError, Rota, may_fail

rota = Rota()
SOUTH = Path(gettempdir()) / "rota-dependencies-south.csv"


@rota.task(queue="files")
async def fetch(path: str) -> int:
    """Reads a file that another system delivers; fails for good if it is missing."""
    if not await asyncio.to_thread(Path(path).exists):
        raise PermanentError("the file has not arrived")
    return 1


@rota.task(queue="reports")
async def summarise() -> str:
    """Starts when all files have been fetched."""
    return "summary of all regions"


@rota.task(queue="mail")
async def send(text: str) -> str:
    """The last job of the chain, in a third queue."""
    return f"sent: {text}"


async def main(south: Path) -> None:
    """Enqueues the chain while the file of the south is missing, then delivers the file and redrives the job."""
    await asyncio.to_thread(south.unlink, missing_ok=True)
    async with rota:
        files = [await fetch.enqueue(__file__), await fetch.enqueue(str(south))]
        summary = await summarise.using(after=files).enqueue()
        mail = await send.using(after=[summary]).enqueue("the summary")
        note = await send.using(after=[may_fail(summary)]).enqueue("it is late, or it is there")

        try:
            await mail.result(timeout=30)
        except JobCancelled as cancelled:
            print("cancelled:", cancelled.reason == f"comes after {summary.ref}, which did not succeed")
        print(await note.result(timeout=30))

        await asyncio.to_thread(south.touch)
        await files[1].redrive()
        # The jobs after it come back one queue after the other, a moment later.
        while await mail.state() == "cancelled":  # noqa: ASYNC110 - a loop is the shortest way to wait for that
            await asyncio.sleep(0.05)
        print(await mail.result(timeout=30))
        print(await summary.result(timeout=30))
    await asyncio.to_thread(south.unlink)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else SOUTH))
