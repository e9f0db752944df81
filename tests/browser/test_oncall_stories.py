"""Questions of people on call, from the overview to the answer: clicks are counted, the answer is asserted."""

from __future__ import annotations

import re
from typing import Any

from playwright.async_api import Browser, Locator, Page, expect

from rota import Job, JobState
from rota.client.session import sessions_of
from tests.browser.conftest import PHONE
from tests.browser.keyboard import press
from tests.browser.site import Site, close_page, open_page, row
from tests.metric_history import write_usual_days
from tests.servers import Server


class Clicks:
    """The clicks of one story."""

    def __init__(self) -> None:
        self.count = 0

    async def on(self, wanted: Locator) -> None:
        await wanted.click()
        self.count += 1


def attention(page: Page, text: str) -> Locator:
    """A finding of the attention list."""
    findings = page.get_by_role("list", name="Needs attention").get_by_role("link")
    return findings.filter(has_text=re.compile(text)).first


async def test_mail_is_slow_and_its_page_says_what_runs_take_and_took(site: Site, page: Page, valkey: Server) -> None:
    """Story 1: "mail is slow, why?"."""
    write_usual_days(site.rota, valkey, "mail", task="newsletter", run_ms=50)
    await site.start_worker()
    jobs = await site.rota.enqueue_many(site.tasks.newsletter.call(customer) for customer in range(30))
    for job in jobs:
        await site.until(job, JobState.COMPLETED)
    clicks = Clicks()
    await page.goto("/")
    await expect(page.get_by_role("status", name="Verdict")).to_have_text(
        re.compile(r"^Degraded: mail \d+ × slower than usual")
    )

    await clicks.on(attention(page, r"^mail \d+ × slower"))

    await expect(page.get_by_role("note", name="Compared with usual")).to_contain_text(
        re.compile(r"Jobs run for 1\.\d+ s, usually 0?\.?\d+ m?s: \d+ × longer")
    )
    slowest = page.get_by_role("region", name="Slowest of the latest runs")
    await expect(slowest.get_by_role("link", name="newsletter").first).to_be_visible()
    assert clicks.count == 1


async def test_a_job_that_hangs_is_flagged_with_the_jobs_behind_it(site: Site, page: Page, valkey: Server) -> None:
    """Story 4: "this job does not end, and others wait for it"."""
    write_usual_days(site.rota, valkey, "default", task="download", run_ms=100)
    await site.start_worker()
    stuck = await site.tasks.download.using(lock="disk", id="atlas").enqueue("atlas")
    await site.until(stuck, JobState.PROCESSING)
    for number in range(17):
        await site.tasks.download.using(lock="disk").enqueue(f"other-{number}")
    _claim_earlier(site, stuck, minutes=40)
    clicks = Clicks()
    await page.goto("/")
    await expect(attention(page, "17 jobs blocked by lock disk")).to_be_visible()

    await clicks.on(attention(page, "download in default has been running for 40 min"))

    await expect(page.get_by_role("note", name="Status explanation")).to_contain_text("for 40 min")
    assert clicks.count == 1


async def test_a_dead_worker_is_shown_unfolded(site: Site, page: Page) -> None:
    """Story 5: "a worker died: which, and when?"."""
    worker = await site.start_worker()
    job = await site.tasks.download.using(id="film").enqueue("film")
    await site.until(job, JobState.PROCESSING)
    worker.kill()
    await site.start_worker()
    clicks = Clicks()
    await page.goto("/")
    # A worker counts as dead once its registration has expired.
    await expect(attention(page, "Last seen")).to_be_visible(timeout=90_000)

    await clicks.on(attention(page, "Last seen"))

    dead = page.get_by_role("region", name="Dead workers")
    await expect(dead.get_by_role("heading", name="1 worker stopped sending heartbeats")).to_be_visible()
    assert clicks.count == 1


async def test_a_held_workflow_is_found_and_resumed(site: Site, page: Page) -> None:
    """Story 6: "an order did not go out"."""
    await site.start_worker()
    async with site.rota.workflow("order", on_failure="hold") as flow:
        flow.step(site.tasks.pack.call("lamp"), name="pack")

    async def is_held() -> bool:
        return await site.rota.workflows.get(flow.id).state() == "failed"

    await site.eventually(is_held)
    site.allow("lamp")
    clicks = Clicks()
    await page.goto("/")

    await clicks.on(attention(page, "held"))
    await expect(page.get_by_role("main")).to_contain_text("lamp is not in stock")
    await clicks.on(page.get_by_role("button", name="Resume", exact=True))
    if await page.get_by_role("dialog").count():
        await clicks.on(page.get_by_role("dialog").get_by_role("button", name="Resume"))

    await expect(page.get_by_role("main").get_by_text("completed").first).to_be_visible()
    assert clicks.count <= 3


async def test_a_runaway_task_is_stopped_on_all_workers(site: Site, page: Page) -> None:
    """Story 7: "stop this task now, and nothing else"."""
    await site.start_worker()
    await site.until(await site.tasks.bounce.enqueue("ann"), JobState.FAILED)
    clicks = Clicks()
    await page.goto("/")

    await clicks.on(page.get_by_role("region", name="Tasks with most failures").get_by_role("link", name="bounce"))
    await clicks.on(page.get_by_role("button", name="Pause", exact=True))
    await page.get_by_role("dialog").get_by_label("Note").fill("the partner asked us to stop")
    await clicks.on(page.get_by_role("dialog").get_by_role("button", name="Pause"))

    await expect(
        page.get_by_text(re.compile("bounce in mail was paused .*: the partner asked us to stop"))
    ).to_be_visible()
    waiting = await site.tasks.bounce.enqueue("ben")
    running = await site.tasks.greet.enqueue("cat")
    await site.until(running, JobState.COMPLETED)
    assert await waiting.state() == JobState.BLOCKED
    await page.get_by_role("button", name="Resume", exact=True).click()
    await site.until(waiting, JobState.FAILED)
    assert clicks.count == 3


async def test_what_ran_at_a_moment_is_picked_in_a_chart(site: Site, page: Page) -> None:
    """Story 8: "what ran at 03:00?"."""
    await site.start_worker()
    await site.until(await site.tasks.greet.using(id="letter").enqueue("ann"), JobState.COMPLETED)
    clicks = Clicks()
    await page.goto("/")
    chart = page.get_by_role("slider", name="Moment in Throughput, the last hour")
    await expect(chart).to_have_attribute("aria-valuetext", re.compile("completed 1/min"))

    box = await chart.bounding_box()
    assert box is not None
    await page.mouse.click(box["x"] + box["width"] - 24, box["y"] + box["height"] / 2)
    clicks.count += 1
    await clicks.on(page.get_by_role("group", name="Jobs of this moment").get_by_role("link", name="Completed"))

    found = await row(page, "letter")
    await expect(found.get_by_text(re.compile(r"^\d+ \w{3} \d\d:\d\d:\d\d$"))).to_be_visible()
    assert clicks.count == 2


async def test_a_finding_is_acknowledged_on_a_phone(site: Site, browser: Browser) -> None:
    """Story 11: "I know, let me sleep"."""
    await site.tasks.greet.enqueue("ann")
    page = await open_page(browser, site.url, viewport=PHONE, reduced_motion="reduce")
    site.watch(page)
    clicks = Clicks()
    await page.goto("/")
    await expect(page.get_by_role("status", name="Verdict")).to_contain_text("mail has no worker")

    await clicks.on(page.get_by_role("button", name="Acknowledge: mail has no worker"))
    await page.get_by_role("dialog").get_by_label("Note").fill("the new machine is on its way")
    await page.get_by_role("dialog").get_by_label("Leave it out of the verdict").select_option(label="for 1 hour")
    await clicks.on(page.get_by_role("dialog").get_by_role("button", name="Acknowledge"))

    await expect(page.get_by_role("status", name="Verdict")).not_to_contain_text("mail has no worker")
    await clicks.on(page.get_by_text("1 acknowledged finding"))
    note = page.get_by_role("list", name="Acknowledged").get_by_role("listitem")
    await expect(note).to_contain_text(re.compile("Acknowledged by .*snoozed until.*: the new machine is on its way"))
    assert clicks.count == 3

    await page.get_by_role("button", name="Show again: mail has no worker").click()
    await expect(page.get_by_role("status", name="Verdict")).to_contain_text("mail has no worker")
    await close_page(page)


async def test_a_finding_is_acknowledged_with_keys(site: Site, page: Page) -> None:
    await site.tasks.greet.enqueue("ann")
    await page.goto("/")

    await press(page, page.get_by_role("button", name="Acknowledge: mail has no worker"))
    await press(page, page.get_by_role("dialog").get_by_role("button", name="Acknowledge"))

    await expect(page.get_by_text("1 acknowledged finding")).to_be_visible()


def _claim_earlier(site: Site, job: Job[Any], *, minutes: int) -> None:
    """Moves the start of a running job into the past, as if it had been running for so long."""
    runs = sessions_of(site.rota).keys.queue(job.queue, "runs")
    with site.harness.server.client() as client:
        record: Any = client.hget(runs, job.run or "")
        words = record.split(b" ")
        words[3] = b"%d" % (int(words[3]) - minutes * 60_000)
        client.hset(runs, job.run or "", b" ".join(words))
