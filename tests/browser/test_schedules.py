"""Schedules: in words, paused, run by hand, made, removed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from playwright.async_api import Page, expect

from rota import Cron
from tests.browser.site import Site


async def test_a_schedule_is_paused_resumed_and_run(site: Site, page: Page) -> None:
    await site.rota.schedules.put("letters", Cron("30 2 * * *", "America/New_York"), site.tasks.greet.call("ann"))
    await page.goto("/schedules")
    schedule = page.get_by_role("region", name="mail:letters")
    await expect(schedule.get_by_text("at 02:30 every day, America/New_York")).to_be_visible()

    await schedule.get_by_role("button", name="Run now").click()
    await expect(page.get_by_role("region", name="Notifications").get_by_text("Enqueued")).to_be_visible()
    assert (await site.rota.queue("mail").counts())["pending"] == 1

    await schedule.get_by_role("button", name="Pause").click()
    await expect(schedule.get_by_text("none while paused")).to_be_visible()
    assert (await site.rota.schedules.get("letters")).is_paused

    await schedule.get_by_role("button", name="Resume").click()
    await expect(schedule.get_by_role("button", name="Pause")).to_be_visible()
    assert not (await site.rota.schedules.get("letters")).is_paused


async def test_next_runs_are_shown_in_a_selected_zone(site: Site, page: Page) -> None:
    await site.rota.schedules.put("letters", Cron("30 2 * * *", "America/New_York"), site.tasks.greet.call("ann"))
    await page.goto("/schedules")
    schedule = page.get_by_role("region", name="mail:letters")
    await expect(schedule.get_by_text("02:30:00").first).to_be_visible()

    await page.get_by_role("group", name="Times in").get_by_role("button", name="UTC").click()

    await expect(page).to_have_url(f"{site.url}/schedules?zone=utc")
    await expect(schedule.get_by_text("UTC").first).to_be_visible()
    await expect(schedule.get_by_text("02:30:00")).to_have_count(0)


async def test_a_schedule_is_made_and_removed(site: Site, page: Page) -> None:
    await page.goto("/schedules")
    await page.get_by_role("button", name="New schedule").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("nightly")
    await dialog.get_by_label("Task").select_option("greet")
    await dialog.get_by_label("Cron expression").fill("0 4 * * *")
    await dialog.get_by_label("Time zone").fill("UTC")
    await dialog.get_by_label("Data (JSON)").fill('{"to": "ann"}')
    await expect(dialog.get_by_text("at 04:00 every day, UTC")).to_be_visible()
    await dialog.get_by_role("button", name="Create").click()

    schedule = page.get_by_role("region", name="mail:nightly")
    await expect(schedule).to_be_visible()
    assert (await site.rota.schedules.get("nightly")).kwargs == {"to": "ann"}

    await page.get_by_role("button", name="More for nightly").click()
    await page.get_by_role("menuitem", name="Remove").click()
    await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)  # an open dialog hides the page from queries by role
    await expect(schedule).to_have_count(0)
    assert [one.name for one in await site.rota.schedules.list() if one.name == "nightly"] == []


async def test_a_rule_is_sent_for_a_preview_once_it_is_complete_and_typing_has_paused(site: Site, page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.post_data or "") if "/preview" in request.url else None)
    await page.goto("/schedules")
    await page.get_by_role("button", name="New schedule").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Time zone").fill("UTC")
    cron = dialog.get_by_label("Cron expression")
    await cron.clear()
    await expect(dialog.get_by_text("Five fields: minute, hour, day, month, weekday")).to_be_visible()
    asked.clear()

    await cron.press_sequentially("15 4 * * 1-5", delay=20)

    await expect(dialog.get_by_text("at 04:15 on Monday through Friday, UTC")).to_be_visible()
    assert ["15 4 * * 1-5" in body for body in asked] == [True]

    await cron.fill("99 4 * * *")
    await expect(dialog.get_by_role("alert")).to_contain_text("99 4 * * *")
    await expect(dialog.get_by_role("button", name="Create")).to_be_disabled()
    await dialog.get_by_label("Time zone").fill("Europe/Os")
    await expect(dialog.get_by_text("Unknown time zone")).to_have_count(1)
    site.ignore_problem("422")


async def test_the_forecast_is_shown_by_day_and_hour_in_the_chosen_zone(site: Site, page: Page) -> None:
    await site.rota.schedules.put("letters", Cron("0,30 2 * * *"), site.tasks.greet.call("ann"))
    await site.tasks.greet.using(run_at=datetime.now(UTC) + timedelta(days=2)).enqueue("ben")

    await page.goto("/schedules?zone=utc")

    hours = page.get_by_role("table", name="Upcoming jobs by day and hour, UTC")
    runs = hours.get_by_title("02:00–03:00: 2 runs of schedules, 0 scheduled jobs")
    await expect(runs.first).to_have_text("2")
    assert await runs.count() in (6, 7)  # the job may be due in one of those hours
    await expect(hours.get_by_title("1 scheduled job")).to_have_count(1)
    await expect(page.get_by_text("jobs in 24 hours, 15 in 7 days")).to_be_visible()
