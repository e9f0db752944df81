"""What a reader sees without a server, a store, the right to see something, or the thing itself."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Browser, Page, expect

from rota import Cron, JobState
from rota.server.app import create_app
from rota.server.tokens import Role, Tokens
from tests.browser.conftest import DESKTOP
from tests.browser.site import Site
from tests.server.live import Live
from tests.servers import OwnServers
from tests.worker.crew import Crew

#: Pages that show something of the store, and what each shows when there is nothing.
NOTHING: Final = {
    "/": "Waiting for the first job",
    "/jobs": "There are no jobs yet",
    "/jobs/new": "Type a part of its name.",
    "/jobs/mail:none": "There is no such job",
    "/workflows": "No workflow yet",
    "/workflows/none": "There is no such workflow",
    "/dead": "No dead letters",
    "/queues": "No queues yet",
    "/workers": "No worker is running",
    "/schedules": "No schedules yet",
    "/locks": "No lock is held",
    "/audit": "Nothing has been changed yet",
}


async def open_each(browser: Browser, url: str) -> dict[str, Page]:
    """A blank page for each, in a browser of its own: one opens six connections to a host, and each page keeps one."""
    return {path: await (await browser.new_context(base_url=url, viewport=DESKTOP)).new_page() for path in NOTHING}


async def test_without_a_server_the_frame_stays_and_says_so(site: Site, page: Page) -> None:
    await page.goto("/queues")
    await expect(page.get_by_role("heading", name="Queues")).to_be_visible()
    await page.context.set_offline(True)

    await page.get_by_role("navigation", name="Pages").get_by_role("link", name="Locks").click()
    await expect(page.get_by_text("The server does not answer")).to_be_visible()
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("navigation", name="Pages")).to_be_visible()

    await page.context.set_offline(False)
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_text("No lock is held")).to_be_visible()
    site.forgive("ERR_INTERNET_DISCONNECTED")
    site.forgive("has to be loaded first")


async def test_a_token_for_one_queue_sees_its_dead_letters_and_is_told_what_it_may_not_see(
    guarded: Site, page: Page
) -> None:
    await guarded.start_worker()
    await guarded.until(await guarded.tasks.bounce.enqueue("ada"), JobState.FAILED)
    token, _ = await Tokens(guarded.rota).create(Role.OPERATOR, queues=["mail"])
    await page.goto("/login?next=/dead")
    await page.get_by_label("Token", exact=True).fill(token)
    await page.get_by_role("button", name="Log in").click()

    await expect(page.get_by_role("button", name="Redrive ConnectionError")).to_be_visible()
    await page.get_by_role("navigation", name="Pages").get_by_role("link", name="Workflows").click()
    await expect(page.get_by_text("A list of workflows concerns all queues")).to_be_visible()
    await expect(page.get_by_label("Name or id")).to_be_hidden()
    # The worker serves other queues, too.
    await page.get_by_role("navigation", name="Pages").get_by_role("link", name="Workers").click()
    await expect(page.get_by_role("list", name="Workers that run").get_by_role("heading")).to_have_count(1)
    await expect(page.get_by_role("button", name="Drain")).to_have_count(0)
    guarded.forgive("401")
    guarded.forgive("403")


@pytest.mark.timeout(120)
async def test_when_the_server_is_gone_every_page_says_so_and_keeps_what_it_shows(
    program_crew: Crew, browser: Browser
) -> None:
    with Live(create_app(program_crew.rota, auth="none")) as live:
        pages = await open_each(browser, live.url)
        for path, page in pages.items():
            await page.goto(path)
            await expect(page.get_by_text(NOTHING[path])).to_be_visible()

    for path, page in pages.items():
        await expect(page.get_by_role("alert").filter(has_text="Connection lost")).to_be_visible(timeout=15_000)
        await expect(page.get_by_text(NOTHING[path])).to_be_visible()
        await page.context.close()


@pytest.mark.timeout(180)
async def test_without_a_store_every_page_says_so_and_is_shown_by_itself_when_it_is_back(
    own_server: OwnServers, namespace: str, tmp_path: Path, browser: Browser
) -> None:
    server = own_server(appendonly="yes")
    served = Crew(server, namespace, tmp_path, module="tests.browser.app")
    with Live(create_app(served.rota, auth="none")) as live:
        pages = await open_each(browser, live.url)
        server.kill()
        for path, page in pages.items():
            await page.goto(path)
        for page in pages.values():
            await expect(page.get_by_text("The store does not answer")).to_be_visible(timeout=60_000)
            await expect(page.get_by_role("button", name="Try again")).to_be_visible()
            await expect(page.get_by_role("navigation", name="Pages")).to_be_visible()

        server.restart()
        for path, page in pages.items():
            await expect(page.get_by_text("The store does not answer")).to_have_count(0, timeout=20_000)
            await expect(page.get_by_text(NOTHING[path])).to_be_visible()
        for page in pages.values():
            await page.context.close()


@pytest.mark.parametrize(
    ("path", "said", "way"),
    [
        ("/nonsense/really", "There is nothing at this address", "Overview"),
        ("/workers/nobody", "There is nothing at this address", "Overview"),
        ("/jobs/mail:none", "There is no such job", "Jobs of mail"),
        ("/workflows/none", "There is no such workflow", "All workflows"),
        ("/schedules?text=none", "No schedules match", None),
    ],
)
async def test_what_does_not_exist_is_said_within_the_frame_with_a_way_on(
    site: Site, page: Page, path: str, said: str, way: str | None
) -> None:
    await site.rota.schedules.put("letters", Cron("30 2 * * *"), site.tasks.greet.call("ann"))
    await page.goto(path)
    main = page.get_by_role("main")

    await expect(main.get_by_text(said)).to_be_visible()
    await expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
    if way is None:
        await main.get_by_role("button", name="Clear filters").click()
    else:
        await main.get_by_role("link", name=way, exact=True).click()
    await expect(main.get_by_text(said)).to_have_count(0)
    site.forgive("404")
