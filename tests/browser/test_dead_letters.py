"""Dead letters: by error, opened, redriven and deleted."""

from __future__ import annotations

import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.site import Site


@pytest_asyncio.fixture(loop_scope="session")
async def dead(site: Site) -> Site:
    """Three that failed for good, in the same way."""
    await site.start_worker()
    jobs = [await site.tasks.bounce.enqueue("ann") for _ in range(3)]
    for job in jobs:
        await site.until(job, "failed")
    return site


async def failed(site: Site) -> int:
    return (await site.rota.queue("mail").counts())["failed"]


async def test_a_group_is_redriven(dead: Site, page: Page) -> None:
    await page.goto("/dead")
    await expect(page.get_by_text("3 jobs failed permanently")).to_be_visible()
    await dead.rota.queue("mail").pause()

    await page.get_by_role("button", name="Redrive ConnectionError").click()
    await page.get_by_role("dialog").get_by_role("button", name="Redrive 3 jobs").click()

    await expect(page.get_by_role("dialog").get_by_text("3 jobs redriven.")).to_be_visible()
    assert await failed(dead) == 0
    await page.get_by_role("dialog").get_by_role("button", name="Close").last.click()
    await expect(page.get_by_text("No dead letters")).to_be_visible()


async def test_one_of_a_group_is_deleted_with_the_keyboard(dead: Site, page: Page) -> None:
    await page.goto("/dead")
    group = page.get_by_role("button", expanded=False).filter(has_text="ConnectionError")
    await group.focus()
    await page.keyboard.press("Enter")
    jobs = page.get_by_role("list", name="Dead letters").get_by_role("listitem")
    await expect(jobs).to_have_count(3)

    await jobs.first.get_by_role("button", name="Delete").focus()
    await page.keyboard.press("Enter")
    await page.get_by_role("dialog").get_by_role("button", name="Delete 1 job").focus()
    await page.keyboard.press("Enter")

    await expect(page.get_by_role("dialog").get_by_text("1 job deleted.")).to_be_visible()
    assert await failed(dead) == 2


async def test_a_text_finds_those_that_mention_it(dead: Site, page: Page) -> None:
    await dead.until(await dead.tasks.bounce.enqueue("ben"), "failed")
    await page.goto("/dead")

    await page.get_by_label("Text in the record").fill("ben")

    await expect(page).to_have_url(f"{dead.url}/dead?text=ben")
    await expect(page.get_by_role("list", name="Dead letters").get_by_role("listitem")).to_have_count(1)
