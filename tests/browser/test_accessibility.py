"""Every page, dark and light, wide and narrow: axe finds nothing, and nothing is wider than a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.conftest import DESKTOP, PHONE
from tests.browser.furniture import furnish
from tests.browser.site import Site

AXE: Final = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
RULES: Final = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
THEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")


async def settled(page: Page) -> None:
    """The page shows what it has, and no bars in place of it."""
    await page.wait_for_load_state("load")
    await page.get_by_role("heading").first.wait_for()
    await expect(page.get_by_role("status", name="Loading")).to_have_count(0)


async def complaints(page: Page) -> list[str]:
    """What axe has against the page."""
    await page.evaluate(AXE.read_text())
    found: dict[str, Any] = await page.evaluate("rules => axe.run(document, {runOnly: rules})", list(RULES))
    return [
        f"{violation['id']}: {violation['help']}: {[node['html'][:150] for node in violation['nodes'][:3]]}"
        for violation in found["violations"]
    ]


@pytest.mark.timeout(180)
async def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(site: Site, browser: Browser) -> None:
    furniture = await furnish(site)
    found: dict[str, list[str]] = {}

    for size in (DESKTOP, PHONE):
        for theme in THEMES:
            context = await browser.new_context(
                base_url=site.url, viewport=size, color_scheme=theme, reduced_motion="reduce"
            )
            page = await context.new_page()
            site.watch(page)
            for name, path in furniture.paths().items():
                await page.goto(path)
                await settled(page)
                # Colours do not depend on the width, nor names on the colour.
                heard = await complaints(page) if (size is DESKTOP or theme == "light") else []
                width = await page.evaluate("document.documentElement.scrollWidth")
                if width > size["width"]:
                    heard.append(f"it is {width} px wide")
                if heard:
                    found[f"{name}, {theme}, {size['width']} px"] = heard
            await context.close()

    site.allow("atlas")
    site.allow("atlas-2")
    assert found == {}
