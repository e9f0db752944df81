"""What became of a schedule's latest jobs; and data that a browser's own numbers could not hold."""

from __future__ import annotations

from playwright.async_api import Page, expect

from rota import Cron, Every, Retry
from tests.browser.site import Site

#: Beyond 2^53, JavaScript's numbers leave out every second one, and more.
LARGE = 9_007_199_254_740_993


async def test_a_schedule_shows_its_latest_runs_with_a_way_to_their_jobs(site: Site, page: Page) -> None:
    await site.start_worker()
    every_second = site.tasks.bounce.using(retry=Retry(attempts=1)).call("nobody")
    await site.rota.schedules.put("letters", Every(1), every_second)
    await page.goto("/schedules")
    runs = page.get_by_role("region", name="mail:letters").get_by_role("list", name="Recent runs")

    await expect(runs.get_by_role("listitem").filter(has_text="failed").first).to_be_visible()
    await site.rota.schedules.pause("letters")
    await runs.get_by_role("link").last.click()

    await expect(page.get_by_text("no such mailbox: nobody").first).to_be_visible()


async def test_runs_stay_within_their_column(site: Site, page: Page) -> None:
    """A time with its offset, a state and a duration are wider than a narrow column."""
    await site.start_worker()
    every_second = site.tasks.bounce.using(retry=Retry(attempts=1)).call("nobody")
    await site.rota.schedules.put("letters", Cron("* * * * * *", tz="Europe/Berlin"), every_second)
    await page.goto("/schedules")
    runs = page.get_by_role("region", name="mail:letters").get_by_role("list", name="Recent runs")
    await expect(runs.get_by_role("listitem").filter(has_text="failed").first).to_be_visible()
    await site.rota.schedules.pause("letters")

    for width in (1440, 1280, 1024, 768, 390):
        await page.set_viewport_size({"width": width, "height": 900})
        beyond = await runs.evaluate(
            """(list) => Math.max(...[...list.querySelectorAll("li > *")].map(
                (part) => part.getBoundingClientRect().right - list.parentElement.getBoundingClientRect().right))"""
        )
        assert beyond <= 1, f"{beyond} px beyond the column at a width of {width} px"


async def test_large_numbers_in_a_schedules_data_keep_every_digit(site: Site, page: Page) -> None:
    await site.rota.schedules.put("letters", Every(3600), site.tasks.greet.call("ann", copies=LARGE))
    await page.goto("/schedules")
    schedule = page.get_by_role("region", name="mail:letters")
    await expect(schedule.get_by_text(str(LARGE))).to_be_visible()

    await page.get_by_role("button", name="More for letters").click()
    await page.get_by_role("menuitem", name="Edit").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Data (JSON)").fill(f'{{"to": "bob", "copies": {LARGE + 2}}}')
    await dialog.get_by_role("button", name="Save").click()

    await expect(schedule.get_by_text(str(LARGE + 2))).to_be_visible()
    assert (await site.rota.schedules.get("letters")).kwargs == {"to": "bob", "copies": LARGE + 2}


async def test_all_that_match_a_large_number_are_those_and_no_others(site: Site, page: Page) -> None:
    by_number = site.rota.task(name="by_number", queue="mail", index=["number"])

    @by_number
    async def take(number: int) -> None: ...

    meant, other = await take.enqueue(LARGE), await take.enqueue(LARGE - 1)
    await page.goto(f"/jobs?field=number%3D{LARGE}")
    await page.get_by_role("checkbox", name=f"Select {meant.id}").click()
    await page.get_by_role("toolbar").get_by_role("button", name="Select all").click()
    await page.get_by_role("toolbar").get_by_role("button", name="Cancel").click()
    await page.get_by_role("dialog").get_by_role("button", name="Cancel 1 job").click()

    await expect(page.get_by_text("1 job cancelled")).to_be_visible()
    assert [await job.state() for job in (meant, other)] == ["cancelled", "pending"]
