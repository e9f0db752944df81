"""What changes in the store is shown by the push, with every poll switched off; how fast is printed, not asserted.

`pytest tests/browser/test_live.py -n 0 -s` prints the figures.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest
from playwright.async_api import Page, Route, expect

from rota import Job
from tests.browser.site import Site

TIMES: Final = 5
#: `shown` resolves with the moment at which a text is there, `pushed` has those at which events came. Nothing is read
#: again by itself.
WATCH: Final = """
const nativeInterval = window.setInterval;
window.setInterval = (act, ms, ...given) => (ms >= 1000 ? 0 : nativeInterval(act, ms, ...given));
const NativeSource = window.EventSource;
window.pushed = [];
window.EventSource = class extends NativeSource {
  constructor(...given) {
    super(...given);
    this.addEventListener("changes", () => window.pushed.push(Date.now()));
  }
};
window.shown = (text) => new Promise((resolve) => {
  const named = `[aria-label="${CSS.escape(text)}"]`;
  const isThere = () => document.querySelector("main")?.innerText.includes(text) || document.querySelector(named);
  const observer = new MutationObserver(() => {
    if (!isThere()) return;
    observer.disconnect();
    resolve(Date.now());
  });
  observer.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
});
"""


@dataclass
class Case:
    """A page, and what is changed before it: each change says the text that shows it."""

    path: str
    changes: list[tuple[Callable[[], Awaitable[Any]], str]]


async def waiting(site: Site, *names: str) -> list[Job[Any]]:
    """Jobs that no worker runs."""
    return [await site.tasks.greet.using(id=name, delay=3600).enqueue(name) for name in names]


async def overview(site: Site) -> Case:
    await waiting(site, "first")
    return Case("/", [(lambda n=n: site.tasks.greet.enqueue(f"{n}"), f"{n} pending") for n in range(1, TIMES + 1)])


async def jobs(site: Site) -> Case:
    await waiting(site, "first")
    return Case(
        "/jobs",
        [(lambda n=n: site.tasks.greet.using(id=f"late-{n}").enqueue("ann"), f"late-{n}") for n in range(TIMES)],
    )


async def job(site: Site) -> Case:
    (one,) = await waiting(site, "first")
    return Case(
        f"/jobs/{one.id}",
        [(lambda n=n: one.update(priority=n), f"\n{n}") for n in range(31, 31 + TIMES)],
    )


async def queues(site: Site) -> Case:
    await waiting(site, "first")
    queue = site.rota.queue("mail")
    return Case(
        "/queues",
        [
            (queue.resume, "no worker") if n % 2 else (queue.pause, "no jobs start until it is resumed")
            for n in range(TIMES)
        ],
    )


async def dead(site: Site) -> Case:
    await site.start_worker()
    await site.until(await site.tasks.bounce.enqueue("ann"), "failed")
    return Case(
        "/dead",
        [(lambda n=n: site.tasks.bounce.enqueue(f"{n}"), f"{n + 2} jobs failed permanently") for n in range(TIMES)],
    )


async def workers(site: Site) -> Case:
    """Jobs begin and end between two registrations of the worker; at the end the worker is drained."""
    await site.start_worker("--concurrency", "2")
    (worker,) = await site.rota.workers()
    (first, second) = ("film", "song")

    async def allow(name: str) -> None:
        site.allow(name)

    return Case(
        "/workers",
        [
            (lambda: site.tasks.download.enqueue(first), "1 of 2 slots busy"),
            (lambda: site.tasks.download.enqueue(second), "2 of 2 slots busy"),
            (lambda: allow(first), "1 of 2 slots busy"),
            (lambda: allow(second), "0 of 2 slots busy"),
            (lambda: site.rota.drain(worker.id), "No workers running"),
        ],
    )


@pytest.mark.parametrize("prepare", [overview, jobs, job, queues, dead, workers], ids=lambda one: one.__name__)
async def test_a_change_is_shown_by_the_push(
    site: Site, page: Page, prepare: Callable[[Site], Awaitable[Case]]
) -> None:
    case = await prepare(site)
    await page.add_init_script(WATCH)
    await page.goto(case.path)
    await expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    from_store: list[float] = []
    from_push: list[float] = []

    for change, text in case.changes:
        before = await page.evaluate("pushed.length")
        watched = await page.evaluate_handle("(text) => ({ done: shown(text), from: Date.now() })", text)
        await change()
        shown, since = await page.evaluate("async (watched) => [await watched.done, watched.from]", watched)
        pushes: list[float] = (await page.evaluate("pushed"))[before:]
        assert pushes, f"{text!r} was shown without an event"
        from_store.append(shown - since)
        from_push.append(shown - pushes[0])

    print(
        f"\n{case.path}: from the change {statistics.median(from_store):.0f} ms, from its event "
        f"{statistics.median(from_push):.0f} ms; at best {min(from_store):.0f} ms, at worst {max(from_store):.0f} ms"
    )


async def test_what_happens_before_the_stream_is_open_is_shown_once_it_is(site: Site, page: Page) -> None:
    opened = asyncio.Event()
    await page.add_init_script(WATCH)

    async def hold(route: Route) -> None:
        await opened.wait()
        await route.continue_()

    await page.route("**/api/events*", hold)
    job = await site.tasks.greet.enqueue("ann")
    await page.goto(f"/jobs/{job.id}")
    main = page.get_by_role("main")
    await expect(main.get_by_text("pending", exact=True)).to_be_visible()

    await job.cancel("not needed")
    opened.set()

    await expect(main.get_by_text("cancelled", exact=True)).to_be_visible()
