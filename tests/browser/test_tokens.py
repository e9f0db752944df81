"""The tokens page: a token is created with its secret shown once, and revoked."""

from __future__ import annotations

from playwright.async_api import Page, expect

from rota.server.auth.api_tokens import Tokens
from tests.browser.keyboard import fill, press
from tests.browser.site import Site


async def test_a_colleague_gets_read_only_access(site: Site, page: Page) -> None:
    """Story 12: a token with the role viewer, in three clicks."""
    await page.goto("/tokens")
    await page.get_by_role("button", name="New token").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("ann")
    await expect(dialog.get_by_label("Role")).to_have_value("viewer")
    await dialog.get_by_role("button", name="Create").click()

    await expect(dialog.get_by_label("New token")).to_contain_text("rota_")
    await dialog.get_by_role("button", name="Done").click()
    listed = page.get_by_role("list", name="Tokens").get_by_role("listitem").filter(has_text="ann")
    await expect(listed.get_by_text("viewer", exact=True)).to_be_visible()
    await expect(listed.get_by_text("never", exact=True)).to_be_visible()

    await page.get_by_role("button", name="Revoke ann").click()
    await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    await expect(page.get_by_text("No tokens yet")).to_be_visible()
    assert await Tokens(site.rota).list() == []


async def test_a_token_is_created_and_revoked_with_keys(site: Site, page: Page) -> None:
    await page.goto("/tokens")
    await press(page, page.get_by_role("button", name="New token"))
    dialog = page.get_by_role("dialog")
    await fill(page, dialog.get_by_label("Name"), "ben")
    await press(page, dialog.get_by_role("button", name="Create"))
    await press(page, dialog.get_by_role("button", name="Done"))

    await press(page, page.get_by_role("button", name="Revoke ben"))
    await press(page, page.get_by_role("dialog").get_by_role("button", name="Revoke"))

    await expect(page.get_by_text("No tokens yet")).to_be_visible()
