"""The same id again: many changes and one job, one at a time, and a job that goes on by itself.

rota worker examples.same_id:rota
python -m examples.same_id
"""

from __future__ import annotations

import asyncio

from rota import Fixed, Ignore, JobState, Retry, Rota

rota = Rota()


@rota.task(queue="search")
async def index(page: str, text: str) -> str:
    """Puts a page into the index. Only its latest text matters."""
    return f"{page} is indexed: {text}"


@rota.task(queue="search")
async def rebuild(why: str, seconds: float = 0.0) -> str:
    """Takes long, and must never run twice at the same time."""
    await asyncio.sleep(seconds)
    return f"rebuilt because of {why}"


@rota.task(queue="search", retry=Retry(attempts=3, backoff=Fixed(0.1)))
async def crawl(page: int, last: int) -> int:
    """Asks for its next round itself. While it runs that is a follow-up: it starts when this round has ended."""
    if page < last:
        await crawl.using(id="crawl", delay=0.1).enqueue(page + 1, last)
    return page


async def main() -> None:
    """Debounces, keeps a singleton, and follows a job from round to round."""
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
