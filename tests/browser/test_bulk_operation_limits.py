"""One thing done to many jobs: counted first, carried out by the server, offered to those who may."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from rota import JobState
from tests.browser.site import Site


async def test_selected_jobs_are_counted_before_anything_is_done_to_them(site: Site, page: Page) -> None:
    jobs = [await site.tasks.greet.enqueue(f"reader-{number}") for number in range(3)]
    await page.goto("/jobs")
    await expect(page.get_by_role("checkbox", name="Select mail:")).to_have_count(3)
    for box in await page.get_by_role("checkbox", name="Select mail:").all():
        await box.click()
    await page.get_by_role("button", name="Pause live updates").click()
    await jobs[0].cancel("by somebody else")
    await page.get_by_role("toolbar").get_by_role("button", name="Cancel").click()
    dialog = page.get_by_role("dialog")

    await expect(dialog.get_by_text("Applies to 2 of 3 selected jobs")).to_be_visible()
    await dialog.get_by_label("Reason").fill("not needed")
    await dialog.get_by_role("button", name="Cancel 2 jobs").click()

    await expect(dialog.get_by_text("2 jobs cancelled. 1 selected job no longer existed")).to_be_visible()
    assert [(await job.refresh()).reason for job in jobs] == ["by somebody else", "not needed", "not needed"]


@pytest.mark.parametrize("role", ["operator", "admin"])
async def test_to_delete_all_that_match_is_offered_to_admins_alone(guarded: Site, page: Page, role: str) -> None:
    offered = 1 if role == "admin" else 0
    await guarded.start_worker()
    for _ in range(2):
        await guarded.until(await guarded.tasks.bounce.enqueue("ada"), JobState.FAILED)
    await guarded.log_in(page, role)

    await page.goto("/jobs?state=FAILED")
    await page.get_by_role("checkbox", name="Select mail:").first.click()
    toolbar = page.get_by_role("toolbar")
    await expect(toolbar.get_by_role("button", name="Delete")).to_be_visible()
    await toolbar.get_by_role("button", name="Select all").click()
    await expect(toolbar.get_by_role("button", name="Redrive")).to_be_visible()
    await expect(toolbar.get_by_role("button", name="Delete")).to_have_count(offered)

    await page.goto("/dead")
    await expect(page.get_by_role("button", name="Redrive all")).to_be_visible()
    await expect(page.get_by_role("button", name="Delete all")).to_have_count(offered)
    await expect(page.get_by_role("button", name="Delete ConnectionError")).to_have_count(offered)
