"""The overview: what is happening, what needs attention, and how to begin."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.browser.site import Site


async def test_the_first_job_turns_the_first_run_page_into_the_overview(site: Site, page: Page) -> None:
    await page.goto("/")
    await expect(page.get_by_text("No job has been enqueued yet")).to_be_visible()
    await expect(page.get_by_role("button", name="Copy step 1")).to_be_visible()

    await site.tasks.greet.enqueue("ann")

    await expect(page.get_by_text("No job has been enqueued yet")).to_have_count(0)
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

    await page.get_by_role("link", name="1 paused queue").click()

    await expect(page).to_have_title("Queues · Rota")
    await expect(page.get_by_role("region", name="mail").get_by_text("paused", exact=True)).to_be_visible()


async def test_a_store_at_risk_is_told_with_what_to_set(site: Site, page: Page) -> None:
    await site.tasks.greet.enqueue("ann")
    await page.goto("/")

    risk = page.get_by_role("listitem").filter(has_text="The store’s append-only file")
    await expect(risk.get_by_text("Off: jobs that were accepted are lost")).to_be_visible()
    await expect(risk.locator("code").first).to_have_text("appendonly yes")
    await expect(risk).not_to_contain_text("`")


async def test_the_range_is_in_the_url(site: Site, page: Page) -> None:
    await site.tasks.greet.enqueue("ann")
    await page.goto("/")

    await page.get_by_role("group", name="Range").get_by_role("button", name="Day").click()
    await expect(page).to_have_url(f"{site.url}/?range=day")
    await expect(page.get_by_role("figure", name="Throughput, the last day")).to_be_visible()

    await page.goto("/?range=nonsense&queue=mail")
    await expect(page.get_by_role("figure", name="Throughput, the last hour")).to_be_visible()
