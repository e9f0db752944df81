"""A reader who has no mouse: everything is reached with Tab, and done with keys."""

from __future__ import annotations

from typing import Final

from playwright.async_api import Locator, Page, expect

#: No control of a page is further away.
MOST_TABS: Final = 80


async def reach(page: Page, wanted: Locator) -> None:
    """Tab, until it has the focus."""
    await expect(wanted).to_be_visible()
    for _ in range(MOST_TABS):
        if await wanted.evaluate("element => element === document.activeElement"):
            return
        await page.keyboard.press("Tab")
    raise AssertionError(f"{wanted} is not reached with {MOST_TABS} tabs")


async def press(page: Page, wanted: Locator, key: str = "Enter") -> None:
    """Reaches it, and presses a key."""
    await reach(page, wanted)
    await expect(wanted).to_be_enabled()
    await page.keyboard.press(key)


async def fill(page: Page, wanted: Locator, text: str) -> None:
    """Reaches a field, and types over what is in it."""
    await reach(page, wanted)
    await page.keyboard.press("Control+a")
    await page.keyboard.type(text)


async def choose(page: Page, menu: Locator, item: str) -> None:
    """Opens a menu, and goes down to one of its items."""
    await press(page, menu)
    await expect(page.get_by_role("menu")).to_be_visible()
    items = page.get_by_role("menuitem")
    for place in range(await items.count()):
        await expect(items.nth(place)).to_be_focused()
        if (await items.nth(place).inner_text()).strip().startswith(item):
            await page.keyboard.press("Enter")
            return
        await page.keyboard.press("ArrowDown")
    raise AssertionError(f"the menu has no {item}")
