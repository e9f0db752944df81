"""CPU-bound work in a separate process, with progress.

rota worker examples.images:rota
python -m examples.images
"""

from __future__ import annotations

import asyncio
import hashlib
import os

from rota import Context, Rota

rota = Rota()


@rota.task(queue="images", run_in="process", timeout=60)
def render(ctx: Context, name: str, rows: int = 2_000) -> dict[str, str | int]:
    """Computes row by row. Holding the GIL delays no other job: the process runs only this one.

    On a timeout or a cancel the process is killed, with all its child processes.
    """
    digest = hashlib.sha256(name.encode()).digest()
    for row in range(rows):
        for _ in range(2_000):
            digest = hashlib.sha256(digest).digest()
        ctx.progress(row + 1, rows, f"row {row + 1}")
    ctx.log(f"rendered {rows} rows")
    return {"name": name, "digest": digest.hex()[:16], "pid": os.getpid()}


async def main() -> None:
    """Renders two images in parallel, and prints the progress of the first one."""
    async with rota:
        first = await render.enqueue("mountain.png")
        second = await render.enqueue("lake.png")
        while not (record := await first.refresh()).state.is_finished:
            if record.progress is not None:
                print(f"{record.progress.percent:3} %  {record.progress.note}")
            await asyncio.sleep(0.2)
        images = [await first.result(timeout=60), await second.result(timeout=60)]
        for image in images:
            print(image["name"], image["digest"])
        print("two processes:", images[0]["pid"] != images[1]["pid"])
        print("log:", [line.text for line in await first.logs()])


if __name__ == "__main__":
    asyncio.run(main())
