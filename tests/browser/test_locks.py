"""Locks: whose each is, and who waits."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.browser.site import Site


async def test_a_lock_shows_its_holder_and_who_waits(site: Site, page: Page) -> None:
    await page.goto("/locks")
    await expect(page.get_by_text("No locks")).to_be_visible()

    holder = await site.tasks.greet.using(lock="smtp").enqueue("ann")
    waiter = await site.tasks.greet.using(lock="smtp").enqueue("ben")

    lock = page.get_by_role("list", name="Locks").get_by_role("listitem").filter(has_text="smtp").first
    await expect(lock.get_by_text("1 job waiting")).to_be_visible()
    await expect(lock.get_by_role("link", name=holder.id)).to_be_visible()
    await expect(lock.get_by_role("link", name=waiter.id)).to_be_visible()

    await page.get_by_label("Lock name").fill("other")
    await expect(page.get_by_text("No locks match")).to_be_visible()
