"""The login: honest about what went wrong, and back to where one wanted to go."""

from __future__ import annotations

from playwright.async_api import Page, expect

from rota.server.auth.api_tokens import Role, Tokens
from tests.browser.site import Site


async def test_the_login_leads_back_to_the_page_that_was_wanted(guarded: Site, page: Page) -> None:
    token, _ = await Tokens(guarded.rota).create(Role.VIEWER)
    await page.goto("/schedules?zone=utc")
    await expect(page.get_by_role("heading", name="Log in to Rota")).to_be_visible()

    await page.get_by_label("Token", exact=True).fill("no token at all")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_have_text("Unknown token, or it has expired or was revoked.")
    await page.get_by_label("Token", exact=True).fill(token)
    await page.keyboard.press("Enter")

    await expect(page).to_have_url(f"{guarded.url}/schedules?zone=utc")
    await expect(page).to_have_title("Schedules · Rota")
    guarded.ignore_problem("401")


async def test_the_login_leads_to_no_other_host(guarded: Site, page: Page) -> None:
    token, _ = await Tokens(guarded.rota).create(Role.VIEWER)
    await page.goto("/login?next=//evil.example/")

    await page.get_by_label("Token", exact=True).fill(token)
    await page.get_by_role("button", name="Log in").click()

    await expect(page).to_have_title("Overview · Rota")
    await expect(page).to_have_url(f"{guarded.url}/")


async def test_a_session_that_ends_leads_to_the_login(guarded: Site, page: Page) -> None:
    await guarded.log_in(page, "operator")
    await page.goto("/workers")
    await expect(page.get_by_role("heading", name="Workers")).to_be_visible()

    await page.context.clear_cookies()

    await expect(page.get_by_role("heading", name="Log in to Rota")).to_be_visible()
    await expect(page).to_have_url(f"{guarded.url}/login?next=%2Fworkers")
    guarded.ignore_problem("401")


async def test_the_audit_log_is_for_admins(guarded: Site, page: Page) -> None:
    await guarded.log_in(page, "operator")
    await page.goto("/audit")

    await expect(page.get_by_text("Requires the admin role.")).to_be_visible()
    guarded.ignore_problem("401")
