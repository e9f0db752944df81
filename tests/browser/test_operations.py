"""The operations page: what was done to many jobs at once, and what became of it."""

from __future__ import annotations

from playwright.async_api import Page, expect

from rota import JobState
from tests.browser.keyboard import press
from tests.browser.site import Site


async def test_an_operation_is_listed_and_leads_to_its_jobs(site: Site, page: Page) -> None:
    await site.start_worker()
    await site.until(await site.tasks.bounce.enqueue("ann"), JobState.FAILED)
    await page.goto("/dead")
    await page.get_by_role("button", name="Redrive ConnectionError").click()
    await page.get_by_role("dialog").get_by_role("button", name="Redrive 1 job").click()
    await expect(page.get_by_role("dialog").get_by_text("1 job redriven.")).to_be_visible()
    await page.get_by_role("dialog").get_by_role("button", name="Close").last.click()

    await press(page, page.get_by_role("navigation", name="Pages").get_by_role("link", name="Operations"))

    operation = page.get_by_role("list", name="Operations").get_by_role("listitem").first
    await expect(operation.get_by_text("1 job redriven")).to_be_visible()
    await expect(operation.get_by_role("link")).to_contain_text("state:failed queue:mail")
