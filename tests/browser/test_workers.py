"""Workers: what each does, and how one is drained."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.browser.site import Site


async def test_a_worker_shows_what_it_runs_and_is_drained(site: Site, page: Page) -> None:
    await site.start_worker()
    job = await site.tasks.download.enqueue("film")
    await page.goto("/workers")
    running = page.get_by_role("list", name="Running workers")
    await expect(running.get_by_role("link", name=job.id)).to_be_visible()

    await running.get_by_role("button", name="Drain").click()
    await page.get_by_role("dialog").get_by_role("button", name="Drain").click()
    await expect(running.get_by_text("draining", exact=True)).to_be_visible()

    site.allow("film")
    await site.until(job, "completed")
    await expect(page.get_by_text("No workers running")).to_be_visible()
    assert [
        one for one in await site.rota.workers() if one.status == "ALIVE" and one.info.get("state") != "stopped"
    ] == []
