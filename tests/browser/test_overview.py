"""The overview: what is happening, what needs attention, and how to begin."""

from __future__ import annotations

import re

from playwright.async_api import Browser, Page, expect

from rota import JobState
from tests.browser.conftest import DESKTOP
from tests.browser.keyboard import press
from tests.browser.site import Site, close_page, open_page, row


async def test_the_first_job_turns_the_first_run_page_into_the_overview(site: Site, page: Page) -> None:
    await page.goto("/")
    await expect(page.get_by_text("No jobs have been enqueued yet")).to_be_visible()
    await expect(page.get_by_role("button", name="Copy step 1")).to_be_visible()

    await site.tasks.greet.enqueue("ann")

    await expect(page.get_by_text("No jobs have been enqueued yet")).to_have_count(0)
    await expect(page.get_by_role("region", name="Queues").get_by_role("link", name="mail")).to_be_visible()


async def test_numbers_follow_the_store_and_lead_to_what_they_count(site: Site, page: Page) -> None:
    await site.tasks.greet.enqueue("ann")
    await page.goto("/")
    pending = page.get_by_role("region", name="Queues").get_by_role("link", name="1 pending")
    await expect(pending).to_be_visible()

    await site.tasks.greet.enqueue("ben")
    await expect(page.get_by_role("region", name="Queues").get_by_role("link", name="2 pending")).to_be_visible()

    await page.get_by_role("region", name="Queues").get_by_role("link", name="2 pending").click()
    await expect(page).to_have_url(f"{site.url}/jobs?queue=mail&state=PENDING")


async def test_what_needs_attention_leads_to_where_it_is_solved(site: Site, page: Page) -> None:
    await site.tasks.greet.enqueue("ann")
    await site.rota.queue("mail").pause()
    await page.goto("/")

    await page.get_by_role("list", name="Needs attention").get_by_role("link").filter(has_text="paused").click()

    await expect(page).to_have_title("mail · Rota")
    await expect(page.get_by_role("heading", name="mail")).to_be_visible()
    await expect(page.get_by_role("button", name="Resume")).to_be_visible()


async def test_the_verdict_names_a_queue_without_a_worker(site: Site, page: Page) -> None:
    await site.tasks.greet.enqueue("ann")
    await page.goto("/")

    await expect(page.get_by_role("status", name="Verdict")).to_contain_text(re.compile("(Degraded|Critical): .*mail"))


async def test_a_store_at_risk_is_reported_with_the_setting_to_change(site: Site, page: Page) -> None:
    await site.tasks.greet.enqueue("ann")
    await page.goto("/")

    risk = page.get_by_role("list", name="Needs attention").get_by_role("listitem").filter(has_text="append-only file")
    await expect(risk.get_by_text("Off: accepted jobs are lost")).to_be_visible()
    await expect(risk.locator("code").first).to_have_text("appendonly yes")
    await expect(risk).not_to_contain_text("`")


async def test_a_click_in_a_chart_leads_to_the_jobs_of_that_moment(site: Site, page: Page) -> None:
    await site.start_worker()
    await site.until(await site.tasks.greet.using(id="letter").enqueue("ann"), JobState.COMPLETED)
    await page.goto("/")

    chart = page.get_by_role("slider", name="Moment in Throughput, the last hour")
    await expect(chart).to_have_attribute("aria-valuetext", re.compile("completed 1/min"))
    box = await chart.bounding_box()
    assert box is not None
    await page.mouse.click(box["x"] + box["width"] - 24, box["y"] + box["height"] / 2)
    await page.get_by_role("group", name="Jobs of this moment").get_by_role("link", name="Completed").click()

    await expect(page).to_have_url(re.compile(r"/jobs\?.*since=.*&until="))
    await row(page, "letter")


async def test_a_moment_in_a_chart_is_picked_with_keys(site: Site, page: Page) -> None:
    await site.start_worker()
    await site.until(await site.tasks.greet.using(id="letter").enqueue("ann"), JobState.COMPLETED)
    await page.goto("/")

    chart = page.get_by_role("slider", name="Moment in Throughput, the last hour")
    await expect(chart).to_have_attribute("aria-valuetext", re.compile("completed 1/min"))
    await press(page, chart, "ArrowLeft")
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("Enter")
    await press(page, page.get_by_role("group", name="Jobs of this moment").get_by_role("link", name="Enqueued"))

    await row(page, "letter")


async def test_a_range_is_dragged_over_and_compared_with_the_previous_day(site: Site, page: Page) -> None:
    await site.start_worker()
    await site.until(await site.tasks.greet.enqueue("ann"), JobState.COMPLETED)
    await page.goto("/")
    chart = page.get_by_role("slider", name="Moment in Throughput, the last hour")
    await expect(chart).to_have_attribute("aria-valuetext", re.compile("completed"))
    box = await chart.bounding_box()
    assert box is not None

    await page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
    await page.mouse.down()
    await page.mouse.move(box["x"] + box["width"] - 30, box["y"] + 40, steps=5)
    await page.mouse.up()

    await expect(page).to_have_url(re.compile(r"\?from=.*&until="))
    await expect(page.get_by_role("figure", name=re.compile(r"Throughput, \d+ \w{3} \d\d:\d\d to"))).to_be_visible()

    await page.get_by_role("combobox", name="Compare with").select_option("day")
    await expect(page).to_have_url(re.compile("compare=day"))
    await expect(page.get_by_role("columnheader", name="completed, previous day").first).to_be_attached()

    await press(page, page.get_by_role("button", name="Clear the chosen time range"))
    await expect(page.get_by_role("figure", name="Throughput, the last hour")).to_be_visible()


async def test_a_range_is_zoomed_into_with_keys(site: Site, page: Page) -> None:
    await site.tasks.greet.enqueue("ann")
    await page.goto("/")

    await press(page, page.get_by_role("slider", name="Moment in Throughput, the last hour"), "Shift+ArrowLeft")
    await page.keyboard.press("Shift+PageUp")
    await page.keyboard.press("Enter")

    await expect(page).to_have_url(re.compile(r"\?from=.*&until="))


async def test_a_deploy_is_marked_in_the_charts(site: Site, page: Page) -> None:
    await site.tasks.greet.enqueue("ann")
    await page.request.post("/api/annotations", data={"text": "release", "kind": "deploy", "version": "v1.4.2"})
    await page.goto("/")

    marks = page.get_by_role("list", name="Marks of Throughput, the last hour")
    await expect(marks.get_by_text("deploy v1.4.2")).to_be_attached()


async def test_the_range_is_in_the_url(site: Site, page: Page) -> None:
    await site.tasks.greet.enqueue("ann")
    await page.goto("/")

    await page.get_by_role("group", name="Range").get_by_role("button", name="Day").click()
    await expect(page).to_have_url(f"{site.url}/?range=day")
    await expect(page.get_by_role("figure", name="Throughput, the last day")).to_be_visible()

    await page.goto("/?range=nonsense&queue=mail")
    await expect(page.get_by_role("figure", name="Throughput, the last hour")).to_be_visible()


async def test_the_hours_of_the_week_show_when_jobs_run_and_when_they_fail(site: Site, page: Page) -> None:
    await site.start_worker()
    await site.rota.enqueue_many(site.tasks.greet.call(name) for name in ("ann", "ben"))
    failed = await site.tasks.bounce.enqueue("cat")
    await site.until(failed, JobState.FAILED)
    await page.goto("/")

    await page.get_by_role("heading", name="By weekday and hour").scroll_into_view_if_needed()
    hours = page.get_by_role("table", name="Completed jobs by weekday and hour, local time")
    await expect(hours.get_by_role("rowheader")).to_have_text(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
    await expect(hours.get_by_title("2 completed, 1 failed (33 %)")).to_have_text("2")

    await page.get_by_role("group", name="Show").get_by_role("button", name="Failed").click()

    await expect(page).to_have_url(f"{site.url}/?hours=failed")
    failures = page.get_by_role("table", name="Failed attempts by weekday and hour, local time")
    await expect(failures.get_by_title("2 completed, 1 failed (33 %)")).to_have_text("1")


async def test_the_hours_of_the_week_are_those_of_the_chosen_zone(site: Site, browser: Browser) -> None:
    await site.start_worker()
    await site.until(await site.tasks.greet.enqueue("ann"), JobState.COMPLETED)
    # Five hours and a half from UTC: no hour of the one is an hour of the other.
    page = await open_page(browser, site.url, viewport=DESKTOP, timezone_id="Asia/Kolkata")
    site.watch(page)

    async def hour_shown(zone: str) -> int:
        hours = page.get_by_role("table", name=f"Completed jobs by weekday and hour, {zone}")
        told = await hours.get_by_title("1 completed").get_attribute("title") or ""
        return int(told.split()[1].partition(":")[0])

    await page.goto("/")
    await page.get_by_role("heading", name="By weekday and hour").scroll_into_view_if_needed()
    local = await hour_shown("local time")
    await press(page, page.get_by_role("button", name="Account and settings"))
    await page.get_by_role("menuitemradio", name="UTC").click()
    utc = await hour_shown("UTC")
    await close_page(page)

    assert (local - utc) % 24 == 5


async def test_the_hours_of_the_week_are_switched_with_keys(site: Site, page: Page) -> None:
    await site.tasks.greet.enqueue("ann")
    await page.goto("/")

    await press(page, page.get_by_role("group", name="Show").get_by_role("button", name="Failed"))

    await expect(page.get_by_role("table", name="Failed attempts by weekday and hour")).to_be_visible()
