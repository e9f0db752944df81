"""`python -m benchmarks.dashboard [--jobs 1000000] [--rows 100000]`: the jobs page while a million jobs are stored.

Headless Chromium opens the built dashboard, served by `rota server`. It prints how long the first rows take, after a
full load and after a change of page, and how smoothly a reader scrolls: among a few hundred rows, while 100,000 are
loaded page by page, and among all of them. Frames of a page that rests are measured beside: what is slow there is the
machine's doing. CPU times are told with the times by the clock, since those say little on a busy machine: where a frame
costs no more CPU among 100,000 rows than among a few hundred, their number does not matter. Last comes what each page
costs the store while it stands open and jobs come, run and end.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, Final, NamedTuple

import psutil
from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from benchmarks.listing import fill
from benchmarks.machine import cpu_of
from benchmarks.server import Server, serving
from rota import Rota
from rota.client.session import sessions_of
from rota.store.report_encoding import Completed

REPEATS: Final = 9
#: A frame that takes longer is seen.
SLOW_MS: Final = 50

#: What is asked for, under the name that the table gives it.
PAGES: Final[Sequence[tuple[str, str]]] = (
    ("all", "/jobs"),
    ("pending", "/jobs?state=PENDING"),
    ("completed", "/jobs?state=COMPLETED"),
    ("a task, failed", "/jobs?task=task3&state=FAILED"),
    ("a tag", "/jobs?tag=rare"),
    ("an error", "/jobs?error=ValueError"),
    ("a time", "/jobs?since=2020-01-01T00:00:00Z&until=2099-01-01T00:00:00Z"),
    ("oldest first", "/jobs?order=oldest"),
)

#: Runs in every page before its own code. Rows count once they are painted, not once they exist.
SCRIPT: Final = """
window.untilRows = () => new Promise((resolve) => {
  const look = () =>
    document.querySelector('[role="rowgroup"] [role="row"]') === null
      ? requestAnimationFrame(look)
      : requestAnimationFrame(() => resolve(performance.now()));
  look();
});
window.change = async (path) => {
  const began = performance.now();
  history.pushState(null, "", path);
  return (await untilRows()) - began;
};
window.frames = async (act) => {
  const took = [];
  const tasks = [];
  const observer = new PerformanceObserver((list) => tasks.push(...list.getEntries().map((one) => one.duration)));
  observer.observe({ entryTypes: ["longtask"] });
  await new Promise((resolve) => {
    let last = null;
    const frame = (now) => {
      if (last !== null) took.push(now - last);
      last = now;
      if (act(took.length)) requestAnimationFrame(frame);
      else resolve();
    };
    requestAnimationFrame(frame);
  });
  observer.disconnect();
  return { took, tasks };
};
// Down as fast as rows come, until there are so many; how often there was nothing to scroll to is counted.
window.load = async (rows, step) => {
  let stuck = 0;
  const loaded = () => document.querySelector('[role="rowgroup"]').offsetHeight / 36;
  const found = await frames(() => {
    const before = scrollY;
    scrollBy(0, step);
    if (scrollY === before) stuck += 1;
    return loaded() < rows;
  });
  return { ...found, stuck, loaded: loaded() };
};
window.move = (step, count) => frames((frame) => (scrollBy(0, step), frame < count));
"""


#: Pages that are left open.
OPEN: Final = ("/", "/jobs", "/jobs?state=FAILED", "/queues", "/workers", "/dead", "/workflows", "/schedules", "/locks")
OPEN_S: Final = 15.0
#: Jobs that come, run and end meanwhile, a second.
TRICKLE: Final = 20


class Cost(NamedTuple):
    """Seconds of CPU since the start: the store, the server, the page."""

    store: float
    server: float
    page: float

    def since(self, before: Cost) -> Cost:
        """What was used meanwhile."""
        return Cost(*(now - then for now, then in zip(self, before, strict=True)))


@contextmanager
def api(url: str) -> Generator[tuple[str, int]]:
    """`rota server` in a process of its own: its address and process id."""
    words = [sys.executable, "-m", "rota.cli.main", "server", "--url", url, "--auth", "none", "--port", "0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = next(line for line in process.stderr if "listening on" in line)
            yield said.split()[-1], process.pid
        finally:
            process.terminate()


@contextmanager
def chromium() -> Generator[Browser]:
    """The browser of the system."""
    path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


def renderer_cpu() -> float:
    """Of the threads that run the code of pages and lay them out: what holds up a frame. Painting is done by others."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "--type=renderer" in process.cmdline():
                main = next(thread for thread in process.threads() if thread.id == process.pid)
                total += main.user_time + main.system_time
    return total


def percentile(values: Sequence[float], share: float) -> float:
    """The value that so many are not above."""
    return sorted(values)[int(share * (len(values) - 1))]


def first_rows(page: Page, cost: Callable[[], Cost]) -> None:
    """How long until rows are seen: after a full load, and coming from another page."""
    print(
        f"\n{'first rows':20}{'load p50':>10}{'p95':>8}{'change p50':>12}{'p95':>8}"
        f"{'CPU of a change: store, server, page':>40}"
    )
    for name, path in PAGES:
        loads: list[float] = []
        changes: list[float] = []
        for _ in range(REPEATS):
            page.goto(path, wait_until="commit")
            loads.append(page.evaluate("untilRows()"))
        page.goto("/queues")
        page.get_by_role("region", name="bench").wait_for()
        before = cost()
        for _ in range(REPEATS):
            changes.append(page.evaluate("path => change(path)", path))
            page.evaluate("history.back()")
            page.get_by_role("region", name="bench").wait_for()
        used = cost().since(before)
        shown = ", ".join(f"{seconds * 1000 / REPEATS:.0f} ms" for seconds in used)
        print(
            f"{name:20}{percentile(loads, 0.5):8.0f}ms{percentile(loads, 0.95):6.0f}ms"
            f"{percentile(changes, 0.5):10.0f}ms{percentile(changes, 0.95):6.0f}ms{shown:>40}"
        )


def scrolling(page: Page, rows: int, cost: Callable[[], Cost]) -> None:
    """How smooth it is."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    page.goto("/jobs")
    page.evaluate("untilRows()")
    before_bytes = heap(session)
    print(
        f"\n{'frames':28}{'count':>8}{'p50':>8}{'p95':>8}{'p99':>8}{'worst':>8}"
        f"{f'> {SLOW_MS} ms':>9}{'tasks > 50 ms':>15}{'page CPU per frame':>20}"
    )
    for name, script in (
        ("rest", "move(0, 300)"),
        ("down to row 400", "load(400, 180)"),
        ("a wheel, 5 rows a frame", "move(-180, 60)"),
        (f"down to row {rows:,}", f"load({rows}, 1440)"),
        ("rest", "move(0, 300)"),
        ("a wheel, 5 rows a frame", "move(-180, 1000)"),
        ("dragged, 40 rows a frame", "move(-1440, 300)"),
        ("the whole way up", "move(-3600, 1100)"),
    ):
        began, before = time.monotonic(), cost()
        found: dict[str, Any] = page.evaluate(script)
        used, seconds = cost().since(before), time.monotonic() - began
        took: list[float] = found["took"]
        worst = max(found["tasks"], default=0.0)
        print(
            f"{name:28}{len(took):8,}"
            + "".join(f"{percentile(took, share):6.1f}ms" for share in (0.5, 0.95, 0.99, 1.0))
            + f"{sum(one > SLOW_MS for one in took):9,}{len(found['tasks']):6,}, {worst:4.0f}ms"
            + f"{used.page * 1000 / len(took):17.1f}ms"
        )
        if "stuck" in found:
            print(
                f"  {found['loaded']:,.0f} rows in {seconds:.0f} s, {found['stuck']:,} frames waited for rows; "
                f"CPU: store {used.store:.1f} s, server {used.server:.1f} s, page {used.page:.1f} s"
            )
    after_bytes = heap(session)
    nodes = page.evaluate("document.querySelectorAll('*').length")
    print(
        f"heap {before_bytes / 1e6:.0f} MB with the first page, {after_bytes / 1e6:.0f} MB with all; {nodes:,} elements"
    )


def left_open(page: Page, store: Server) -> None:
    """What each page costs the store, beside the jobs themselves."""
    print(f"\n{'left open':24}{'store, ms of CPU a second':>28}")
    with trickling(store.url):
        page.goto("about:blank")
        without = _per_second(page, store)
        print(f"{'nothing':24}{without:25.1f} ms")
        for path in OPEN:
            page.goto(path)
            page.get_by_role("heading").first.wait_for()
            print(f"{path:24}{_per_second(page, store) - without:25.1f} ms")


def _per_second(page: Page, store: Server) -> float:
    page.wait_for_timeout(3_000)  # what it reads when it is opened
    began, before = time.monotonic(), store.cpu()
    page.wait_for_timeout(OPEN_S * 1000)
    return (store.cpu() - before) * 1000 / (time.monotonic() - began)


@contextmanager
def trickling(url: str) -> Generator[None]:
    """Jobs that come, run and end all the time."""
    ended = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_trickle(url, ended)), name="trickle")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


async def _trickle(url: str, ended: threading.Event) -> None:
    async with Rota(url) as rota:
        task = rota.task(name="trickle", queue="trickle")(_nothing)
        worker = sessions_of(rota).connect("trickler")
        call = 0
        while not ended.is_set():
            call += 1
            await task.enqueue()
            claims = (await worker.claim("trickle", 1, call_number=call, claim_token=f"t{call}")).jobs
            await worker.report("trickle", [Completed(job.run, job.claim, "60000:1000 task", b"") for job in claims])
            await asyncio.sleep(1 / TRICKLE)
        await worker.redis.close()


def _nothing() -> None:
    """What the jobs would call."""


def heap(session: CDPSession) -> int:
    """Bytes that the page's objects take, once what is not needed is gone."""
    session.send("HeapProfiler.collectGarbage")
    metrics = session.send("Performance.getMetrics")["metrics"]
    return int(next(one["value"] for one in metrics if one["name"] == "JSHeapUsedSize"))


def main(jobs: int, rows: int, url: str | None) -> None:
    """Fills a store, unless one is given, and looks at it."""
    with nullcontext() if url else serving() as started:
        store = started or _Given(url or "")
        if started is not None:
            began = time.monotonic()
            asyncio.run(_fill(started.url, jobs))
            print(f"{jobs:,} jobs, stored in {time.monotonic() - began:.0f} s")
        with api(store.url) as (address, pid), chromium() as browser:

            def cost() -> Cost:
                return Cost(store.cpu(), cpu_of([pid]), renderer_cpu())

            context = browser.new_context(base_url=address, viewport={"width": 1440, "height": 900})
            context.add_init_script(SCRIPT)
            page = context.new_page()
            page.set_default_timeout(600_000)
            first_rows(page, cost)
            if rows:
                scrolling(page, rows, cost)
            left_open(page, store)


class _Given(Server):
    """One that runs and is filled already."""

    def __init__(self, url: str) -> None:
        super().__init__(int(url.rpartition(":")[2]), 0)


async def _fill(url: str, jobs: int) -> None:
    async with Rota(url) as rota:
        await fill(rota, jobs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=100_000, help="How far to scroll; 0: not at all.")
    parser.add_argument("--store", help="A server that is filled already, as redis://127.0.0.1:PORT.")
    given = parser.parse_args()
    main(given.jobs, given.rows, given.store)
