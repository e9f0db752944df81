"""The scaling page: the autoscaler's state and decisions, and what an operator changes, with a planner at work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, ViewportSize, expect

from rota.autoscaler.machine_provider import ProviderError
from rota.client.session import checked_session
from rota.server.auth.api_tokens import Role, Tokens
from tests.autoscaler.cloud import Cloud
from tests.browser import keyboard
from tests.browser.conftest import DESKTOP, PHONE
from tests.browser.sample_data import new_planner
from tests.browser.site import Site, close_page, open_page
from tests.browser.test_accessibility import ALL_RULES, axe_violations, scroll_through, settled


@pytest_asyncio.fixture(loop_scope="session")
async def cloud(site: Site) -> AsyncIterator[Cloud]:
    """A planner at work for three waiting jobs: it has launched a machine for each."""
    cloud = Cloud()
    await site.rota.enqueue_many(site.tasks.greet.call(f"{number}@example.com") for number in range(3))
    planner = new_planner(site, cloud)
    planning = asyncio.create_task(planner.run())
    await site.eventually(lambda: len(cloud.existing) == 3)
    yield cloud
    planner.stop()
    await planning


def autoscaler(page: Page) -> Locator:
    return page.get_by_role("region", name="Autoscaler")


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def in_dialog(page: Page, name: str) -> Locator:
    return page.get_by_role("dialog").get_by_role("button", name=name, exact=True)


async def limits(site: Site) -> tuple[int | None, int | None]:
    settings = (await site.rota.scaling.status()).settings
    return settings.min_workers, settings.max_workers


# --- what it shows -----------------------------------------------------------------------------------------------


async def test_state_pool_and_decisions_with_reasons_are_shown(site: Site, page: Page, cloud: Cloud) -> None:
    standby = new_planner(site)
    await standby.try_lease(await checked_session(site.rota))
    await page.goto("/scaling")

    await expect(autoscaler(page).get_by_text("planning", exact=True)).to_be_visible()
    await expect(autoscaler(page).get_by_text("1 planner", exact=True)).to_be_visible()
    await expect(autoscaler(page).get_by_text("0 to 3 workers")).to_be_visible()
    decisions = page.get_by_role("list", name="Decisions")
    await expect(decisions.get_by_text("+3 launched")).to_be_visible()
    await expect(decisions.get_by_text("launched i-1, i-2, i-3")).to_be_visible()
    (launched,) = [one for one in (await site.rota.scaling.decisions()).decisions if one.launched]
    await expect(decisions.get_by_text(launched.reasons[0]).first).to_be_visible()
    await expect(page.get_by_role("figure", name="Workers, the last hour")).to_be_visible()


async def test_a_hold_is_shown_with_its_reason_without_reload(site: Site, page: Page, cloud: Cloud) -> None:
    await page.goto("/scaling")
    await expect(autoscaler(page).get_by_text("planning", exact=True)).to_be_visible()

    # A change of the settings makes the planner plan at once; after an error of the provider it waits for its interval.
    cloud.fails["machines"] = ProviderError("no answer")
    await site.rota.scaling.change(max_workers=4)

    await expect(autoscaler(page).get_by_text("holding", exact=True)).to_be_visible()
    await expect(autoscaler(page).get_by_text("the provider failed (no answer)")).to_be_visible()


async def test_an_autoscaler_that_has_stopped_is_shown_as_such(site: Site, page: Page) -> None:
    assert await new_planner(site).run_once()
    await page.goto("/scaling")

    await expect(autoscaler(page).get_by_text("not running", exact=True)).to_be_visible()
    await expect(autoscaler(page).get_by_text("rota autoscale")).to_be_visible()
    await expect(button(page, "Dry run")).to_have_count(0)


async def test_a_token_for_some_queues_does_not_see_the_autoscaler(guarded: Site, page: Page) -> None:
    token, _ = await Tokens(guarded.rota).create(Role.OPERATOR, queues=["mail"])
    await page.goto("/login?next=/scaling")
    await page.get_by_label("Token", exact=True).fill(token)
    await page.get_by_role("button", name="Log in").click()

    await expect(page.get_by_text("The autoscaler requires access to all queues.")).to_be_visible()
    await expect(page.get_by_text("No autoscaler has run yet")).to_have_count(0)
    guarded.ignore_problem("401")


# --- pause, resume -------------------------------------------------------------------------------------------------


async def test_the_autoscaler_is_paused_and_resumed(site: Site, page: Page, cloud: Cloud) -> None:
    await page.goto("/scaling")
    await button(page, "Pause").click()
    await in_dialog(page, "Pause").click()

    await expect(autoscaler(page).get_by_text("paused", exact=True)).to_be_visible()
    assert (await site.rota.scaling.status()).settings.is_paused

    await button(page, "Resume").click()
    await expect(autoscaler(page).get_by_text("planning", exact=True)).to_be_visible()
    assert not (await site.rota.scaling.status()).settings.is_paused


async def test_the_autoscaler_is_paused_and_resumed_with_keys(site: Site, page: Page, cloud: Cloud) -> None:
    await page.goto("/scaling")
    await keyboard.press(page, button(page, "Pause"))
    await keyboard.press(page, in_dialog(page, "Pause"))
    await expect(autoscaler(page).get_by_text("paused", exact=True)).to_be_visible()
    assert (await site.rota.scaling.status()).settings.is_paused

    await keyboard.press(page, button(page, "Resume"))

    await expect(autoscaler(page).get_by_text("planning", exact=True)).to_be_visible()
    assert not (await site.rota.scaling.status()).settings.is_paused


async def test_a_pause_from_elsewhere_is_shown_without_reload(site: Site, page: Page, cloud: Cloud) -> None:
    await page.goto("/scaling")
    await expect(button(page, "Pause")).to_be_visible()

    await site.rota.scaling.pause()

    await expect(button(page, "Resume")).to_be_visible()


# --- limits --------------------------------------------------------------------------------------------------------


async def test_limits_are_changed_and_restored(site: Site, page: Page, cloud: Cloud) -> None:
    await page.goto("/scaling")
    await button(page, "Change limits").click()
    await page.get_by_label("Min workers").fill("9")
    await expect(in_dialog(page, "Change limits")).to_be_disabled()
    await page.get_by_label("Min workers").fill("4")
    await page.get_by_label("Max workers").fill("4")
    await in_dialog(page, "Change limits").click()

    await expect(autoscaler(page).get_by_text("4 to 4 workers")).to_be_visible()
    assert await limits(site) == (4, 4)
    await site.eventually(lambda: len(cloud.existing) == 4)

    await button(page, "Change limits").click()
    await in_dialog(page, "Restore start values").click()
    await expect(autoscaler(page).get_by_text("0 to 3 workers")).to_be_visible()
    assert await limits(site) == (None, None)


async def test_limits_are_changed_and_restored_with_keys(site: Site, page: Page, cloud: Cloud) -> None:
    await page.goto("/scaling")
    await keyboard.press(page, button(page, "Change limits"))
    await expect(page.get_by_label("Min workers")).to_be_focused()
    await keyboard.fill(page, page.get_by_label("Max workers"), "7")
    await page.keyboard.press("Enter")
    await expect(autoscaler(page).get_by_text("0 to 7 workers")).to_be_visible()
    assert await limits(site) == (0, 7)

    await keyboard.press(page, button(page, "Change limits"))
    await keyboard.press(page, in_dialog(page, "Restore start values"))

    await expect(autoscaler(page).get_by_text("0 to 3 workers")).to_be_visible()
    assert await limits(site) == (None, None)


# --- dry run -------------------------------------------------------------------------------------------------------


async def test_a_dry_run_shows_what_would_be_done(site: Site, page: Page, cloud: Cloud) -> None:
    await page.goto("/scaling")
    await button(page, "Dry run").click()
    result = page.get_by_role("dialog").get_by_role("status")
    await expect(result.get_by_text("It would change nothing: the pool stays at 3 workers.")).to_be_visible()

    await page.get_by_label("Min workers").fill("5")
    await page.get_by_label("Max workers").fill("5")
    await in_dialog(page, "Run again").click()

    await expect(result.get_by_text("It would launch 2 workers, for a pool of 5 workers.")).to_be_visible()
    assert (len(cloud.existing), await limits(site)) == (3, (None, None))


async def test_a_dry_run_is_made_with_keys(site: Site, page: Page, cloud: Cloud) -> None:
    await page.goto("/scaling")
    await keyboard.press(page, button(page, "Dry run"))
    result = page.get_by_role("dialog").get_by_role("status")
    await expect(result.get_by_text("It would change nothing")).to_be_visible()

    await keyboard.fill(page, page.get_by_label("Min workers"), "5")
    await keyboard.fill(page, page.get_by_label("Max workers"), "5")
    await page.keyboard.press("Enter")

    await expect(result.get_by_text("It would launch 2 workers")).to_be_visible()
    assert len(cloud.existing) == 3


# --- charts and decisions ------------------------------------------------------------------------------------------


async def test_the_range_of_the_charts_is_chosen(site: Site, page: Page, cloud: Cloud) -> None:
    await page.goto("/scaling")
    await page.get_by_role("group", name="Range").get_by_role("button", name="Month").click()

    for chart in ("Workers", "Backlog", "Waiting time"):
        await expect(page.get_by_role("figure", name=f"{chart}, the last 30 days")).to_be_visible()
    await expect(page).to_have_url(f"{site.url}/scaling?range=month")


async def test_the_range_of_the_charts_is_chosen_with_keys(site: Site, page: Page, cloud: Cloud) -> None:
    await page.goto("/scaling")
    await keyboard.press(page, page.get_by_role("group", name="Range").get_by_role("button", name="Day"))

    await expect(page.get_by_role("figure", name="Workers, the last day")).to_be_visible()


@pytest_asyncio.fixture(loop_scope="session")
async def quiet(site: Site) -> None:
    """Three planners, one after the other, store a decision that changes nothing."""
    for _ in range(3):
        assert await new_planner(site).run_once()


async def test_decisions_without_a_change_are_unfolded(site: Site, page: Page, quiet: None) -> None:
    await page.goto("/scaling")
    await expect(page.get_by_role("list", name="Decisions").get_by_role("listitem")).to_have_count(1)
    await page.get_by_text("2 earlier decisions without a change").click()

    await expect(page.get_by_role("list", name="Earlier decisions").get_by_role("listitem")).to_have_count(2)


async def test_decisions_without_a_change_are_unfolded_with_keys(site: Site, page: Page, quiet: None) -> None:
    await page.goto("/scaling")
    await keyboard.press(page, page.locator("summary").filter(has_text="2 earlier decisions without a change"))

    await expect(page.get_by_role("list", name="Earlier decisions").get_by_role("listitem")).to_have_count(2)


# --- looks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_axe_finds_nothing_on_the_page_nor_in_the_dry_run(
    site: Site, browser: Browser, cloud: Cloud, size: ViewportSize, theme: Literal["light", "dark"]
) -> None:
    page = await open_page(browser, site.url, viewport=size, color_scheme=theme, reduced_motion="reduce")
    site.watch(page)
    await page.goto("/scaling")
    await settled(page)
    await scroll_through(page)
    assert await axe_violations(page, ALL_RULES) == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= size["width"]

    await button(page, "Dry run").click()
    await expect(page.get_by_role("dialog").get_by_text("It would change nothing")).to_be_visible()

    assert await axe_violations(page, ALL_RULES) == []
    await close_page(page)
