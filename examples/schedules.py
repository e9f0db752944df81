"""Jobs on a schedule: declared beside the task, and managed at run time.

rota worker examples.schedules:rota
python -m examples.schedules
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from rota import Context, Cron, Rota

rota = Rota()


@rota.every(1, overlap="skip")
@rota.task(queue="watch")
async def check(ctx: Context) -> str:
    """Runs every second. With `overlap="skip"` a tick is skipped while the previous check still runs."""
    return ctx.job.ref.id


@rota.cron("30 2 * * *", tz="America/New_York", args=["east"], misfire="all")
@rota.task(queue="watch")
async def close_books(branch: str) -> str:
    """Runs once every night, also when daylight saving skips 2:30 or repeats it."""
    return f"books of the {branch} are closed"


async def main() -> None:
    """Waits for three ticks, then creates a schedule, runs it manually, and removes it."""
    async with rota:
        async with aclosing(rota.events(queues=["watch"])) as events:
            async for event in events:
                if event.verb == "completed" and (await rota.schedules.get("check")).fired >= 3:
                    break
        page = await rota.jobs("completed", queue="watch", task="check", limit=100)
        ids = [record.ref.id for record in page.jobs]
        print(f"ticks ran once each: {len(ids) == len(set(ids))}")
        print("books:", (await rota.schedules.get("close_books")).words)

        await rota.schedules.put("west", Cron("0 4 * * 1-5", "America/Los_Angeles"), close_books.call("west"))
        job = await rota.schedules.run_now("west")
        print(await job.result(timeout=30))
        await rota.schedules.remove("west")
        print("left:", ", ".join(info.name for info in await rota.schedules.list()))


if __name__ == "__main__":
    asyncio.run(main())
