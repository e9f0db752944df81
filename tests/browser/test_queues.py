"""The page of the queues: paused, resumed and purged."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.browser.site import Site


async def test_a_queue_is_paused_and_resumed(site: Site, page: Page) -> None:
    await site.tasks.greet.enqueue("ann")
    await page.goto("/queues")
    queue = page.get_by_role("region", name="mail")

    await queue.get_by_role("button", name="Pause").click()
    await page.get_by_role("dialog").get_by_role("button", name="Pause").click()

    await expect(queue.get_by_text("paused", exact=True)).to_be_visible()
    assert (await site.rota.queue("mail").info()).is_paused

    await queue.get_by_role("button", name="Resume").click()
    await expect(queue.get_by_role("button", name="Pause")).to_be_visible()
    assert not (await site.rota.queue("mail").info()).is_paused


async def test_a_pause_from_elsewhere_is_shown_without_reload(site: Site, page: Page) -> None:
    await site.tasks.greet.enqueue("ann")
    await page.goto("/queues")
    queue = page.get_by_role("region", name="mail")
    await expect(queue.get_by_role("button", name="Pause")).to_be_visible()

    await site.rota.queue("mail").pause()

    await expect(queue.get_by_text("paused", exact=True)).to_be_visible()


async def test_a_purge_is_typed_and_says_what_it_deletes(site: Site, page: Page) -> None:
    for name in ("ann", "ben"):
        await site.tasks.greet.enqueue(name)
    await page.goto("/queues")

    # With the keyboard alone.
    await page.get_by_role("button", name="More for mail").focus()
    await page.keyboard.press("Enter")
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    purge = dialog.get_by_role("button", name="Delete 2 jobs")
    await expect(purge).to_be_disabled()
    await dialog.get_by_label("Type mail to confirm").fill("mail")
    await page.keyboard.press("Enter")

    await expect(page.get_by_text("2 jobs of mail deleted")).to_be_visible()
    assert sum((await site.rota.queue("mail").counts()).values()) == 0


async def test_a_viewer_sees_queues_and_changes_none(guarded: Site, page: Page) -> None:
    await guarded.tasks.greet.enqueue("ann")
    await guarded.log_in(page, "viewer")
    await page.goto("/queues")

    await expect(page.get_by_role("region", name="mail")).to_be_visible()
    await expect(page.get_by_role("button", name="Pause", exact=True)).to_have_count(0)
    await expect(page.get_by_role("button", name="More for mail")).to_have_count(0)
