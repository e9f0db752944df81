"""What a reader sees without a server, a store, the right to see something, or the thing itself."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Browser, Page, expect

from rota import Cron, JobState
from rota.server.app import create_app
from rota.server.auth.api_tokens import Role, Tokens
from tests.browser.conftest import DESKTOP
from tests.browser.site import Site, close_page, open_page
from tests.server.live import Live
from tests.servers import OwnServers
from tests.worker.harness import WorkerHarness

#: Pages that show something of the store, and what each shows when there is nothing.
NOTHING: Final = {
    "/": "Waiting for the first job",
    "/jobs": "No jobs yet",
    "/jobs/new": "Type part of the task’s name.",
    "/jobs/mail:none": "Job not found",
    "/workflows": "No workflows yet",
    "/workflows/none": "Workflow not found",
    "/dead": "No dead letters",
    "/queues": "No queues yet",
    "/workers": "No workers running",
    "/scaling": "No autoscaler has run yet",
    "/schedules": "No schedules yet",
    "/locks": "No locks",
    "/audit": "No changes yet",
}


async def open_each(browser: Browser, url: str) -> dict[str, Page]:
    """A blank page for each, in a browser of its own: one opens six connections to a host, and each page keeps one."""
    return {path: await open_page(browser, url, viewport=DESKTOP) for path in NOTHING}


async def test_without_a_server_the_frame_stays_and_says_so(site: Site, page: Page) -> None:
    await page.goto("/queues")
    await expect(page.get_by_role("heading", name="Queues")).to_be_visible()
    await page.context.set_offline(True)

    await page.get_by_role("navigation", name="Pages").get_by_role("link", name="Locks").click()
    await expect(page.get_by_text("The server is not responding")).to_be_visible()
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("navigation", name="Pages")).to_be_visible()

    await page.context.set_offline(False)
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_text("No locks")).to_be_visible()
    site.ignore_problem("ERR_INTERNET_DISCONNECTED")
    site.ignore_problem("has not been loaded yet")


async def test_a_token_for_one_queue_sees_its_dead_letters_and_sees_what_it_has_no_access_to(
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
    await expect(page.get_by_text("A list of workflows requires access to all queues")).to_be_visible()
    await expect(page.get_by_label("Name or id")).to_be_hidden()
    # The worker serves other queues, too.
    await page.get_by_role("navigation", name="Pages").get_by_role("link", name="Workers").click()
    await expect(page.get_by_role("list", name="Running workers").get_by_role("heading")).to_have_count(1)
    await expect(page.get_by_role("button", name="Drain")).to_have_count(0)
    guarded.ignore_problem("401")
    guarded.ignore_problem("403")


async def test_when_the_server_is_gone_every_page_says_so_and_keeps_what_it_shows(
    program_harness: WorkerHarness, browser: Browser
) -> None:
    with Live(create_app(program_harness.rota, auth="none")) as live:
        pages = await open_each(browser, live.url)
        for path, page in pages.items():
            await page.goto(path)
            await expect(page.get_by_text(NOTHING[path])).to_be_visible()

    for path, page in pages.items():
        await expect(page.get_by_role("alert").filter(has_text="Connection lost")).to_be_visible()
        await expect(page.get_by_text(NOTHING[path])).to_be_visible()
        await close_page(page)


@pytest.mark.timeout(400)
async def test_without_a_store_every_page_says_so_and_is_shown_by_itself_when_it_is_back(
    own_server: OwnServers, namespace: str, tmp_path: Path, browser: Browser
) -> None:
    server = own_server(appendonly="yes")
    served = WorkerHarness(server, namespace, tmp_path, module="tests.browser.tasks")
    with Live(create_app(served.rota, auth="none")) as live:
        pages = await open_each(browser, live.url)
        server.kill()
        for path, page in pages.items():
            await page.goto(path)
        for page in pages.values():
            await expect(page.get_by_text("The store is not responding")).to_be_visible(timeout=60_000)
            await expect(page.get_by_role("button", name="Try again")).to_be_visible()
            await expect(page.get_by_role("navigation", name="Pages")).to_be_visible()

        server.restart()
        for path, page in pages.items():
            await expect(page.get_by_text("The store is not responding")).to_have_count(0)
            await expect(page.get_by_text(NOTHING[path])).to_be_visible()
        for page in pages.values():
            await close_page(page)


async def test_a_frozen_store_is_shown_while_the_server_still_responds(
    own_server: OwnServers, namespace: str, tmp_path: Path, browser: Browser
) -> None:
    server = own_server()
    served = WorkerHarness(server, namespace, tmp_path, module="tests.browser.tasks")
    with Live(create_app(served.rota, auth="none")) as live:
        page = await open_page(browser, live.url, viewport=DESKTOP)
        await page.goto("/audit")
        await expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
        server.pause()
        try:
            await expect(page.get_by_role("status").filter(has_text="store not responding")).to_be_visible()
            await expect(page.get_by_text("The store does not respond.")).to_be_visible()
        finally:
            server.resume()
        await expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
        await close_page(page)


@pytest.mark.parametrize(
    ("path", "said", "way"),
    [
        ("/nonsense/really", "This page does not exist", "Overview"),
        ("/workers/nobody", "This page does not exist", "Overview"),
        ("/jobs/mail:none", "Job not found", "Jobs in mail"),
        ("/workflows/none", "Workflow not found", "All workflows"),
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
    site.ignore_problem("404")
