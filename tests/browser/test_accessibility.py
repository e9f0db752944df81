"""Every page, dark and light, wide and narrow: axe finds nothing, and nothing is wider than a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

import pytest
from playwright.async_api import Browser, Page, ViewportSize, expect

from tests.browser.conftest import DESKTOP, PHONE
from tests.browser.sample_data import create_sample_data
from tests.browser.site import SCRIPT_S, Site, close_page, open_page, within

AXE: Final = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
ALL_RULES: Final = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
COLORS: Final = ("color-contrast", "link-in-text-block")


async def settled(page: Page) -> None:
    """The page shows what it has, and no bars in place of it."""
    await page.wait_for_load_state("load")
    await page.get_by_role("heading").first.wait_for()
    await expect(page.get_by_role("status", name="Loading")).to_have_count(0)


async def scroll_through(page: Page) -> None:
    """What is read only when it can be seen is there, and the page is at its top again: nothing is below its header."""
    scroll = page.evaluate(
        """() => new Promise((done) => {
          scrollTo(0, document.documentElement.scrollHeight);
          requestAnimationFrame(() => requestAnimationFrame(done));
        })"""
    )
    await within(SCRIPT_S, scroll)
    await settled(page)
    await page.evaluate("scrollTo(0, 0)")


async def axe_violations(page: Page, rules: tuple[str, ...]) -> list[str]:
    """Violations of accessibility rules that axe finds on the page."""
    await within(SCRIPT_S, page.evaluate(AXE.read_text()))
    # Only the violations leave the page: what passed is megabytes of markup.
    run = page.evaluate(
        "async (rules) => (await axe.run(document, {runOnly: rules, resultTypes: ['violations']})).violations",
        list(rules),
    )
    violations: list[dict[str, Any]] = await within(SCRIPT_S, run)
    return [
        f"{violation['id']}: {violation['help']}: {[node['html'][:150] for node in violation['nodes'][:3]]}"
        for violation in violations
    ]


@pytest.mark.timeout(400)
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
    sample = await create_sample_data(site)
    found: dict[str, list[str]] = {}
    page = await open_page(browser, site.url, viewport=size, color_scheme=theme, reduced_motion="reduce")
    site.watch(page)

    for name, path in sample.paths().items():
        await page.goto(path)
        await settled(page)
        await scroll_through(page)
        problems = await axe_violations(page, rules)
        width = await page.evaluate("document.documentElement.scrollWidth")
        if width > size["width"]:
            problems.append(f"it is {width} px wide")
        if problems:
            found[name] = problems

    await close_page(page)
    assert found == {}
