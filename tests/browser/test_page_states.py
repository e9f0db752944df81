"""How things look that go wrong, or that a reader may not do; and how the reader wants them to look."""

from __future__ import annotations

import re
from typing import Final, Literal

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from rota.server.app import create_app
from tests.browser import keyboard
from tests.browser.conftest import DESKTOP
from tests.browser.sample_data import create_sample_data
from tests.browser.site import Site, close_page, open_page
from tests.browser.test_accessibility import axe_violations, settled
from tests.server.live import Live
from tests.worker.harness import WorkerHarness

#: Controls that change something. Those that show, filter or copy may be offered to every role.
CHANGING = re.compile(
    "^(Redrive|Delete|Cancel|Retry|Resume|Pause|Purge|Drain|Run now|Edit|New job|New schedule|Enqueue|More|Stop|Select"
    "|Change|Dry run)"
)
PLACES = {
    "o": "Overview",
    "j": "Jobs",
    "w": "Workflows",
    "d": "Dead letters",
    "q": "Queues",
    "k": "Workers",
    "c": "Scaling",
    "s": "Schedules",
    "l": "Locks",
    "p": "Operations",
    "t": "Tokens",
    "a": "Audit",
}


async def offered(page: Page) -> list[str]:
    """The names of buttons, links and boxes that change something."""
    main = page.get_by_role("main")
    names = [
        await one.evaluate("one => one.getAttribute('aria-label') ?? one.textContent")
        for role in ("button", "link", "checkbox")
        for one in await main.get_by_role(role).all()
    ]
    return [name for name in names if CHANGING.match(name.strip())]


@pytest.mark.timeout(400)
async def test_a_viewer_is_offered_no_change_on_any_page(guarded: Site, page: Page) -> None:
    sample = await create_sample_data(guarded)
    await guarded.log_in(page, "viewer")
    found: dict[str, list[str]] = {}

    for name, path in sample.paths().items():
        if name not in (
            "new-job",
            "new-job-task",
            "audit",
            "tokens",
        ):  # these say themselves that they are not for viewers
            await page.goto(path)
            await settled(page)
            if names := await offered(page):
                found[name] = names

    assert found == {}
    await page.goto("/audit")
    await expect(page.get_by_text("Requires the admin role.")).to_be_visible()
    await page.goto("/jobs/new")
    await expect(page.get_by_text("You cannot enqueue jobs")).to_be_visible()
    guarded.ignore_problem("403")


async def test_an_operator_is_offered_what_viewers_are_not_and_no_purge(guarded: Site, page: Page) -> None:
    await guarded.tasks.greet.enqueue("ann")
    await guarded.log_in(page, "operator")
    await page.goto("/queues")

    await expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    await expect(page.get_by_role("button", name="More for mail")).to_have_count(0)


async def test_a_login_is_refused_after_too_many_tries(guarded: Site, page: Page) -> None:
    for _ in range(30):
        answer = await page.request.post("/api/session", data={"token": "wrong"})
        if answer.status == 429:
            break
    await page.goto("/login")

    await page.get_by_label("Token", exact=True).fill("wrong again")
    await page.keyboard.press("Enter")

    await expect(page.get_by_role("alert")).to_have_text("Too many failed logins from this address.")
    await expect(page.get_by_role("button", name=re.compile(r"^Try again in \d+ s$"))).to_be_disabled()
    guarded.ignore_problem("401")
    guarded.ignore_problem("429")


async def test_dead_workers_and_orphaned_schedules_are_shown_as_such(site: Site, page: Page) -> None:
    former = await site.harness.start(queues="default", environment={"ROTA_TEST_FORMER": "1"})
    job = await site.tasks.download.enqueue("film")
    await site.until(job, "processing")
    former.kill()
    await site.start_worker()

    await page.goto("/")
    attention = page.get_by_role("list", name="Needs attention")
    await expect(attention.get_by_role("link").filter(has_text="forgotten")).to_be_visible()
    await attention.get_by_role("link").filter(has_text="last seen").click()
    gone = page.get_by_role("region", name="Dead workers")
    await expect(gone.get_by_text("dead", exact=True)).to_be_visible()
    await expect(gone.get_by_role("button", name="Drain")).to_have_count(0)

    await page.goto("/schedules")
    schedule = page.get_by_role("region", name="default:forgotten")
    await expect(schedule.get_by_text("orphaned", exact=True)).to_be_visible()
    await page.get_by_role("button", name="More for forgotten").click()
    await page.get_by_role("menuitem", name="Remove").click()
    await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)  # an open dialog hides the page from queries by role
    await expect(schedule).to_have_count(0)
    assert "forgotten" not in [one.name for one in await site.rota.schedules.list()]


async def test_a_lost_connection_is_said_and_what_was_missed_is_shown_afterwards(
    program_harness: WorkerHarness, browser: Browser
) -> None:
    served = WorkerHarness(
        program_harness.server, program_harness.namespace, program_harness.folder, module="tests.browser.tasks"
    )
    await program_harness.program.greet.enqueue("ann")
    with Live(create_app(served.rota, auth="none")) as live:
        url, port = live.url, live.port
        page = await open_page(browser, url, viewport=DESKTOP)
        await page.goto("/queues")
        await expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()

    await expect(page.get_by_role("alert")).to_contain_text("Connection lost")
    await program_harness.rota.queue("mail").pause()
    again = WorkerHarness(
        program_harness.server, program_harness.namespace, program_harness.folder, module="tests.browser.tasks"
    )
    with Live(create_app(again.rota, auth="none"), port=port):
        await expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
        await expect(page.get_by_role("alert")).to_have_count(0)
        await expect(page.get_by_role("region", name="mail").get_by_text("paused", exact=True)).to_be_visible()
        await close_page(page)
    await program_harness.rota.close()


async def test_nothing_changes_while_live_updates_are_paused(site: Site, page: Page) -> None:
    await site.tasks.greet.enqueue("ann")
    await page.goto("/queues")
    queue = page.get_by_role("region", name="mail")
    await expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    await keyboard.press(page, page.get_by_role("button", name="Pause live updates"))
    await expect(page.get_by_role("status").filter(has_text="paused")).to_be_visible()

    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await site.rota.queue("mail").pause()
    # What is asked now is answered after the event would have come.
    await page.evaluate("fetch('api/overview').then((answer) => answer.json())")
    await expect(queue.get_by_text("paused", exact=True)).to_have_count(0)
    assert [url for url in asked if "/api/events" in url] == []

    await keyboard.press(page, page.get_by_role("button", name="Resume live updates"))
    await expect(queue.get_by_text("paused", exact=True)).to_be_visible()


@pytest.mark.parametrize(("key", "title"), PLACES.items(), ids=PLACES.values())
async def test_a_key_leads_to_each_page(site: Site, page: Page, key: str, title: str) -> None:
    await page.goto("/queues" if title == "Overview" else "/")
    await expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()

    await page.keyboard.press("g")
    await page.keyboard.press(key)

    await expect(page).to_have_title(f"{title} · Rota")


async def test_keys_open_the_palette_the_form_and_the_filter(site: Site, page: Page) -> None:
    await page.goto("/")
    await expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()

    for key in ("/", "Control+k", "?"):
        await page.keyboard.press(key)
        await expect(page.get_by_role("dialog")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)

    await page.keyboard.press("n")
    await expect(page.get_by_label("Task")).to_be_visible()
    await page.goto("/jobs")
    await expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    await page.keyboard.press("f")
    await expect(page.get_by_role("combobox", name="Filter jobs")).to_be_focused()
    # Letters that are typed are no shortcuts.
    await page.keyboard.type("n")
    await expect(page).to_have_title("Jobs · Rota")


async def test_the_palette_is_opened_and_used_with_the_mouse(site: Site, page: Page) -> None:
    await page.goto("/")

    await page.get_by_role("button", name="Go to a job or page").click()
    await page.get_by_role("option", name="Locks").click()

    await expect(page).to_have_title("Locks · Rota")


async def test_a_theme_is_chosen_with_keys_in_the_palette(site: Site, page: Page) -> None:
    await page.goto("/")
    await expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    before = await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")

    await page.keyboard.press("Control+k")
    await page.get_by_role("dialog").get_by_role("combobox").press_sequentially("theme dark")
    await page.keyboard.press("Enter")

    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await expect(page.locator("html")).not_to_have_css("background-color", before)


async def test_the_theme_of_the_system_is_followed(site: Site, page: Page) -> None:
    await page.emulate_media(color_scheme="light")
    await page.goto("/")
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    light = await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")

    await page.emulate_media(color_scheme="dark")

    await expect(page.locator("html")).not_to_have_css("background-color", light)


@pytest.mark.parametrize(("wish", "moves"), [("reduce", False), ("no-preference", True)])
async def test_nothing_moves_with_reduced_motion(site: Site, page: Page, wish: str, *, moves: bool) -> None:
    await site.start_worker()
    job = await site.tasks.download.enqueue("film")
    await site.until(job, "processing")
    await page.emulate_media(reduced_motion="reduce" if wish == "reduce" else "no-preference")
    await page.goto(f"/jobs/{job.id}")
    await expect(page.get_by_role("main").get_by_text("processing").first).to_be_visible()

    # What takes a thousandth of a second, or is done once, moves nothing.
    running = await page.evaluate(
        """() => document.getAnimations().filter((one) => {
          const { duration, iterations } = one.effect.getTiming();
          return duration > 1 && iterations > 1;
        }).length"""
    )
    assert (running > 0) is moves


#: How different two colours are, as WCAG counts it. A canvas knows what the browser makes of any of them.
CONTRAST: Final = """([first, second]) => {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const light = (color) => {
    for (const layer of [getComputedStyle(document.documentElement).backgroundColor, color]) {
      context.fillStyle = layer;
      context.fillRect(0, 0, 1, 1);
    }
    const parts = [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).map((part) => part / 255);
    const [red, green, blue] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [high, low] = [light(first), light(second)].sort((one, other) => other - one);
  return (high + 0.05) / (low + 0.05);
}"""


async def look(element: Locator, name: str) -> str:
    """How it is drawn, as the browser says it."""
    return await element.evaluate("(element, name) => getComputedStyle(element)[name]", name)


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_more_contrast_shows_lines_states_and_focus(
    site: Site, browser: Browser, theme: Literal["light", "dark"]
) -> None:
    sample = await create_sample_data(site)
    page = await open_page(browser, site.url, viewport=DESKTOP, color_scheme=theme, contrast="more")
    site.watch(page)
    found: dict[str, list[str]] = {}

    for name in ("overview", "jobs", "job-failed", "schedules"):
        await page.goto(sample.paths()[name])
        await settled(page)
        if heard := await axe_violations(page, ("color-contrast", "color-contrast-enhanced")):
            found[name] = heard

    assert found == {}
    panel = page.get_by_role("region", name="mail:nightly-report")
    colors = [await look(panel, "borderTopColor"), await look(panel, "backgroundColor")]
    assert await page.evaluate(CONTRAST, colors) >= 4.5
    chosen = page.get_by_role("group", name="Times in").get_by_role("button", pressed=True)
    assert await look(chosen, "outlineStyle") == "solid"
    await keyboard.reach(page, page.get_by_role("button", name="New schedule"))
    assert await look(page.get_by_role("button", name="New schedule"), "outlineWidth") == "3px"
    await close_page(page)


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_forced_colors_still_show_states(site: Site, browser: Browser, theme: Literal["light", "dark"]) -> None:
    sample = await create_sample_data(site)
    page = await open_page(browser, site.url, viewport=DESKTOP, color_scheme=theme, forced_colors="active")
    site.watch(page)

    await page.goto("/schedules")
    choice = page.get_by_role("group", name="Times in")
    chosen, other = choice.get_by_role("button", pressed=True), choice.get_by_role("button", pressed=False).first
    here, there = (page.get_by_role("navigation").get_by_role("link", name=name) for name in ("Schedules", "Jobs"))
    new = page.get_by_role("button", name="New schedule")
    for marked, plain in ((chosen, other), (here, there)):
        colors = [await look(marked, "backgroundColor"), await look(plain, "backgroundColor")]
        assert await page.evaluate(CONTRAST, colors) >= 3
    for text in (chosen, here, new):
        colors = [await look(text, "color"), await look(text, "backgroundColor")]
        assert await page.evaluate(CONTRAST, colors) >= 4.5
    assert await look(other, "outlineStyle") == "solid"
    await keyboard.reach(page, new)
    assert (await look(new, "outlineStyle"), await look(new, "outlineWidth")) == ("solid", "2px")

    await page.goto(sample.paths()["job-processing"])
    meter = page.get_by_role("progressbar")
    colors = [await look(meter.locator("div"), "backgroundColor"), await look(meter, "backgroundColor")]
    assert await page.evaluate(CONTRAST, colors) >= 3
    await close_page(page)
