"""Enqueueing an id again: debouncing, a job that never runs twice at once, and a job that enqueues its successor.

rota worker examples.same_id:rota
python -m examples.same_id
"""

from __future__ import annotations

import asyncio

from rota import Fixed, Ignore, JobState, Retry, Rota

rota = Rota()


@rota.task(queue="search")
async def index(page: str, text: str) -> str:
    """Indexes a page. Only its latest text matters."""
    return f"{page} is indexed: {text}"


@rota.task(queue="search")
async def rebuild(why: str, seconds: float = 0.0) -> str:
    """Takes long, and must never run twice at once."""
    await asyncio.sleep(seconds)
    return f"rebuilt because of {why}"


@rota.task(queue="search", retry=Retry(attempts=3, backoff=Fixed(0.1)))
async def crawl(page: int, last: int) -> int:
    """Enqueues its own id again for the next page: a follow-up, which starts when this run has ended."""
    if page < last:
        await crawl.using(id="crawl", delay=0.1).enqueue(page + 1, last)
    return page


async def main() -> None:
    """Shows the three uses, one after the other."""
    async with rota:
        for text in ("draft", "better", "final"):
            indexed = await index.using(id="page-7", delay=0.5).enqueue("page 7", text)
        print(await indexed.result(timeout=30))

        running = await rebuild.using(id="rebuild").enqueue("the first change", 1.0)
        while await running.state() is not JobState.PROCESSING:  # noqa: ASYNC110  # it happens in another process
            await asyncio.sleep(0.02)
        asked = [await rebuild.using(id="rebuild").enqueue(f"change {number}") for number in range(10)]
        found = await rebuild.using(id="rebuild", on_same_id=Ignore()).enqueue("nothing")
        print("ten changes while it runs:", len({job.run for job in asked}), "follow-up; new:", found.is_new)
        print(await running.result(timeout=30))
        print(await asked[0].result(timeout=30))

        await crawl.using(id="crawl").enqueue(1, 3)
        async with asyncio.timeout(30):
            while True:
                newest = await rota.job("search:crawl").refresh()  # a bare id means its newest run
                if newest.state is JobState.COMPLETED and newest.arguments == b"[3,3]":
                    break
                await asyncio.sleep(0.02)
        print("crawled to the last page")


if __name__ == "__main__":
    asyncio.run(main())
