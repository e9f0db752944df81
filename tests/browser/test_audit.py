"""The audit log: who changed what."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.browser.site import Site


async def test_a_change_is_shown_with_the_previous_value(site: Site, page: Page) -> None:
    await site.tasks.greet.enqueue("ann")
    await page.goto("/queues")
    await page.get_by_role("button", name="Pause", exact=True).click()
    await page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    await expect(page.get_by_text("mail paused")).to_be_visible()

    await page.goto("/audit")

    entry = page.get_by_role("list", name="Changes").get_by_role("listitem").first
    await expect(entry.get_by_role("link", name="queue mail")).to_be_visible()
    await expect(entry.get_by_role("deletion")).to_have_text("before false")
    await expect(entry.get_by_role("insertion")).to_have_text("after true")

    await page.get_by_label("User").fill("nobody")
    await expect(page.get_by_text("No changes match")).to_be_visible()
