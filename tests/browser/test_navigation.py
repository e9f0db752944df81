"""The frame of every page: navigation, freshness, looks, and what it loads."""

from __future__ import annotations

from playwright.async_api import Browser, Page, expect

from tests.browser.conftest import PHONE
from tests.browser.site import Site, close_page, open_page

PAGES = ("Overview", "Jobs", "Workflows", "Dead letters", "Schedules", "Queues", "Workers", "Scaling", "Locks", "Audit")


async def test_every_page_is_reached_from_the_navigation(site: Site, page: Page) -> None:
    await page.goto("/")

    for name in PAGES:
        await page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()

        await expect(page).to_have_title(f"{name} · Rota")
        await expect(page.get_by_role("heading", level=1)).to_be_visible()


async def test_keys_lead_to_pages(site: Site, page: Page) -> None:
    await page.goto("/")
    await expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()

    await page.keyboard.press("g")
    await page.keyboard.press("q")

    await expect(page).to_have_title("Queues · Rota")


async def test_a_theme_is_chosen_and_kept(site: Site, page: Page) -> None:
    await page.goto("/")
    await page.get_by_role("button", name="Account and settings").click()

    await page.get_by_role("menuitemradio", name="Dark").click()
    await page.reload()

    assert await page.evaluate("document.documentElement.dataset.theme") == "dark"


async def test_the_navigation_opens_on_a_phone(site: Site, browser: Browser) -> None:
    page = await open_page(browser, site.url, viewport=PHONE)
    site.watch(page)
    await page.goto("/queues")

    await page.get_by_role("button", name="Open navigation").click()
    await page.get_by_role("dialog").get_by_role("link", name="Workers").click()

    await expect(page).to_have_title("Workers · Rota")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await close_page(page)


async def test_live_updates_are_paused_and_resumed(site: Site, page: Page) -> None:
    await page.goto("/")
    status = page.get_by_role("status").filter(has_text="live")
    await expect(status).to_be_visible()

    await page.get_by_role("button", name="Pause live updates").click()
    await expect(page.get_by_role("status").filter(has_text="paused")).to_be_visible()

    await page.get_by_role("button", name="Resume live updates").click()
    await expect(status).to_be_visible()
