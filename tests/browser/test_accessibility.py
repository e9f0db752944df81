"""Every page, dark and light, wide and narrow: axe finds nothing, and nothing is wider than a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

import pytest
from playwright.async_api import Browser, Page, ViewportSize, expect

from tests.browser.conftest import DESKTOP, PHONE
from tests.browser.furniture import furnish
from tests.browser.site import Site

AXE: Final = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
ALL_RULES: Final = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
COLORS: Final = ("color-contrast", "link-in-text-block")


async def settled(page: Page) -> None:
    """The page shows what it has, and no bars in place of it."""
    await page.wait_for_load_state("load")
    await page.get_by_role("heading").first.wait_for()
    await expect(page.get_by_role("status", name="Loading")).to_have_count(0)


async def seen_to_its_end(page: Page) -> None:
    """What is read only when it can be seen is there, and the page is at its top again: nothing is below its header."""
    await page.evaluate(
        """() => new Promise((done) => {
          scrollTo(0, document.documentElement.scrollHeight);
          requestAnimationFrame(() => requestAnimationFrame(done));
        })"""
    )
    await settled(page)
    await page.evaluate("scrollTo(0, 0)")


async def complaints(page: Page, rules: tuple[str, ...]) -> list[str]:
    """What axe has against the page."""
    await page.evaluate(AXE.read_text())
    found: dict[str, Any] = await page.evaluate("rules => axe.run(document, {runOnly: rules})", list(rules))
    return [
        f"{violation['id']}: {violation['help']}: {[node['html'][:150] for node in violation['nodes'][:3]]}"
        for violation in found["violations"]
    ]


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("size", "theme", "rules"),
    [
        pytest.param(DESKTOP, "light", ALL_RULES, id="desktop, light"),
        # Names and roles do not depend on the colour, nor colours on the width.
        pytest.param(DESKTOP, "dark", COLORS, id="desktop, dark"),
        pytest.param(PHONE, "light", ALL_RULES, id="phone, light"),
    ],
)
async def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(
    site: Site, browser: Browser, size: ViewportSize, theme: Literal["light", "dark"], rules: tuple[str, ...]
) -> None:
    furniture = await furnish(site)
    found: dict[str, list[str]] = {}
    context = await browser.new_context(base_url=site.url, viewport=size, color_scheme=theme, reduced_motion="reduce")
    page = await context.new_page()
    site.watch(page)

    for name, path in furniture.paths().items():
        await page.goto(path)
        await settled(page)
        await seen_to_its_end(page)
        heard = await complaints(page, rules)
        width = await page.evaluate("document.documentElement.scrollWidth")
        if width > size["width"]:
            heard.append(f"it is {width} px wide")
        if heard:
            found[name] = heard

    await context.close()
    assert found == {}
