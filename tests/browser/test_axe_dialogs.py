"""What lies over a page, or stands before it: axe finds nothing there either, dark or light."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final, Literal

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.conftest import DESKTOP
from tests.browser.sample_data import SampleData, create_sample_data
from tests.browser.site import Site, close_page, open_page
from tests.browser.test_accessibility import ALL_RULES, axe_violations, settled

#: Opens it on the page that is shown.
Opener = Callable[[Page], Awaitable[None]]


def pressed(*names: str | re.Pattern[str]) -> Opener:
    """By one button or menu item after another."""

    async def open_it(page: Page) -> None:
        for name in names:
            wanted = page.get_by_role("button", name=name).or_(page.get_by_role("menuitem", name=name))
            await wanted.first.click()

    return open_it


async def chosen(page: Page) -> None:
    """The bar over the list of jobs."""
    await page.get_by_role("checkbox", name="Select all loaded jobs").click()


def bulk(action: str) -> Opener:
    """The dialog of an operation on chosen jobs."""

    async def open_it(page: Page) -> None:
        await chosen(page)
        await page.get_by_role("toolbar").get_by_role("button", name=action).click()

    return open_it


def typed(keys: str) -> Opener:
    """By keys."""

    async def open_it(page: Page) -> None:
        await expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
        await page.keyboard.press(keys)

    return open_it


def overlays(sample: SampleData) -> list[tuple[str, str, Opener]]:
    """Every one that there is: its name, its page, how it is opened."""
    job = {name: f"/jobs/{one.id}" for name, one in sample.jobs.items()}
    held = f"/workflows/{sample.workflows['held']}"
    return [
        ("palette", "/", typed("Control+k")),
        ("keys", "/", typed("?")),
        ("account", "/", pressed("Account and settings")),
        ("views", "/jobs", pressed("Views")),
        ("save a view", "/jobs?queue=mail", pressed("Views", "Save this view")),
        ("suggestions", "/jobs", lambda page: page.get_by_role("combobox", name="Filter jobs").click()),
        ("chosen jobs", "/jobs", chosen),
        ("bulk cancel", "/jobs?state=SCHEDULED", bulk("Cancel")),
        ("bulk change", "/jobs?state=SCHEDULED", bulk("Change")),
        ("bulk delete", "/jobs?state=COMPLETED", bulk("Delete")),
        ("redrive all", "/dead", pressed("Redrive all")),
        ("delete all", "/dead", pressed("Delete all")),
        ("job menu", job["scheduled"], pressed("More actions")),
        ("cancel a job", job["scheduled"], pressed("Cancel")),
        ("reschedule", job["scheduled"], pressed("More actions", "Reschedule…")),
        ("priority", job["scheduled"], pressed("More actions", "Change priority…")),
        ("edit data", job["scheduled"], pressed("More actions", "Edit data…")),
        ("edit and redrive", job["failed"], pressed("Edit and redrive")),
        ("delete a job", job["completed"], pressed("More actions", "Delete…")),
        ("cancel a workflow", held, pressed("Cancel")),
        ("pause a queue", "/queues", pressed(re.compile("^Pause$"))),
        ("purge a queue", "/queues", pressed("More for chores", "Purge")),
        ("drain a worker", "/workers", pressed("Drain")),
        ("pause the autoscaler", "/scaling", pressed(re.compile("^Pause$"))),
        ("limits of the autoscaler", "/scaling", pressed("Change limits")),
        ("new schedule", "/schedules", pressed("New schedule")),
        ("edit a schedule", "/schedules", pressed("More for nightly-report", "Edit…")),
        ("remove a schedule", "/schedules", pressed("More for nightly-report", "Remove…")),
    ]


#: A menu lies over the page, and so in none of its landmarks.
RULES: Final = tuple(rule for rule in ALL_RULES if rule != "best-practice")
THEMES: Final = pytest.mark.parametrize("theme", ["light", "dark"])


@pytest.mark.timeout(600)
@THEMES
async def test_axe_finds_nothing_in_what_opens_over_a_page(
    site: Site, browser: Browser, theme: Literal["light", "dark"]
) -> None:
    sample = await create_sample_data(site)
    page = await open_page(browser, site.url, viewport=DESKTOP, color_scheme=theme, reduced_motion="reduce")
    site.watch(page)
    found: dict[str, list[str]] = {}

    for name, path, open_it in overlays(sample):
        await page.goto(path)
        await settled(page)
        await open_it(page)
        over = page.locator('[role="dialog"], [role="menu"], [role="listbox"], [role="toolbar"]').last
        await expect(over).to_be_visible()
        if heard := await axe_violations(page, RULES):
            found[name] = heard

    await close_page(page)
    assert found == {}


@THEMES
async def test_axe_finds_nothing_on_the_first_page_of_all(
    site: Site, page: Page, theme: Literal["light", "dark"]
) -> None:
    await page.emulate_media(color_scheme=theme)
    await page.goto("/")
    await expect(page.get_by_text("No jobs have been enqueued yet")).to_be_visible()

    assert await axe_violations(page, ALL_RULES) == []


@THEMES
async def test_axe_finds_nothing_on_the_login_also_when_it_refuses(
    guarded: Site, page: Page, theme: Literal["light", "dark"]
) -> None:
    await page.emulate_media(color_scheme=theme)
    await page.goto("/login")
    await expect(page.get_by_role("heading", name="Log in to Rota")).to_be_visible()
    assert await axe_violations(page, ALL_RULES) == []

    await page.get_by_label("Token", exact=True).fill("wrong")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_be_visible()
    assert await axe_violations(page, ALL_RULES) == []
    guarded.ignore_problem("401")
