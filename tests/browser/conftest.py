"""A real browser and the real server: Debian's Chromium, and pages served by uvicorn from a real Valkey.

Browser tests share one event loop, and one browser, for the whole run; each has a namespace, a server and a page of its
own.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, ViewportSize, async_playwright

from rota.server import create_app, dashboard
from tests.browser.site import SCRIPT_S, Site, close_page, open_page, within
from tests.server.live import Live
from tests.servers import Server
from tests.worker.harness import WorkerHarness

ARGUMENTS: Final = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu")
DESKTOP: Final = ViewportSize(width=1440, height=900)
PHONE: Final = ViewportSize(width=390, height=844)
HERE: Final = Path(__file__).parent
#: Pages are closed this long before the time limit of their test.
DEADLINE_MARGIN_S: Final = 20.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Where the browser is; skips where there is none."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("there is no chromium on the PATH: apt-get install chromium")
    return found


@pytest.fixture(scope="session")
def built() -> None:
    """The dashboard must have been built: `make test` does."""
    if not (dashboard.STATIC / "index.html").is_file():
        pytest.fail("the dashboard is not built: run `make web`", pytrace=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(chromium: str, built: None) -> AsyncIterator[Browser]:
    """One for all tests."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium, args=list(ARGUMENTS), timeout=SCRIPT_S * 1000
        )
        yield browser
        # A browser that does not close ends with Playwright's driver, whose exit kills it.
        with suppress(TimeoutError):
            await within(SCRIPT_S, browser.close())


@pytest.fixture
def program_harness(valkey: Server, namespace: str, tmp_path: Path) -> Iterator[WorkerHarness]:
    """Workers of the program, as the test starts them."""
    with WorkerHarness(valkey, namespace, tmp_path, module="tests.browser.tasks") as harness:
        yield harness


@pytest_asyncio.fixture(loop_scope="session")
async def site(program_harness: WorkerHarness) -> AsyncIterator[Site]:
    """The dashboard of a namespace of its own, without login."""
    served = WorkerHarness(
        program_harness.server, program_harness.namespace, program_harness.folder, module="tests.browser.tasks"
    )
    with Live(create_app(served.rota, auth="none")) as live:
        site = Site(program_harness, live.url)
        yield site
    await program_harness.rota.close()
    assert site.problems == []


@pytest_asyncio.fixture(loop_scope="session")
async def guarded(program_harness: WorkerHarness) -> AsyncIterator[Site]:
    """The same, with login by token."""
    served = WorkerHarness(
        program_harness.server, program_harness.namespace, program_harness.folder, module="tests.browser.tasks"
    )
    with Live(create_app(served.rota)) as live:
        site = Site(program_harness, live.url)
        yield site
    await program_harness.rota.close()
    assert site.problems == []


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def page_deadline(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """Closes all pages shortly before the test's time limit: a script that never returns then fails its test.

    A time limit that raises in a callback of the event loop is swallowed, and the test would wait on.
    """
    if "browser" not in request.fixturenames:
        yield
        return
    browser: Browser = request.getfixturevalue("browser")
    marker = request.node.get_closest_marker("timeout")
    limit = float(marker.args[0] if marker and marker.args else request.config.getini("timeout") or 180)

    async def close_all() -> None:
        await asyncio.sleep(limit - DEADLINE_MARGIN_S)
        for context in browser.contexts:
            await context.close()

    closing = asyncio.create_task(close_all())
    yield
    closing.cancel()


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser, request: pytest.FixtureRequest) -> AsyncIterator[Page]:
    """A page as wide as a desktop, on the site of the test."""
    site: Site = request.getfixturevalue("guarded" if "guarded" in request.fixturenames else "site")
    page = await open_page(browser, site.url, viewport=DESKTOP, reduced_motion="reduce")
    site.watch(page)
    yield page
    await close_page(page)
