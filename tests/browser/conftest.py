"""A real browser before the real server: Debian's Chromium, and pages served by uvicorn from a real Valkey.

Browser tests share one event loop, and one browser, for the whole run; each has a namespace, a server and a page of its
own.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, ViewportSize, async_playwright

from rota.server import create_app, dashboard
from tests.browser.site import Site
from tests.server.live import Live
from tests.servers import Server
from tests.worker.crew import Crew

ARGUMENTS: Final = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu")
DESKTOP: Final = ViewportSize(width=1440, height=900)
PHONE: Final = ViewportSize(width=390, height=844)
HERE: Final = Path(__file__).parent


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
        browser = await playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        yield browser
        await browser.close()


@pytest.fixture
def program_crew(valkey: Server, namespace: str, tmp_path: Path) -> Iterator[Crew]:
    """Workers of the program, as the test starts them."""
    with Crew(valkey, namespace, tmp_path, module="tests.browser.app") as crew:
        yield crew


@pytest_asyncio.fixture(loop_scope="session")
async def site(program_crew: Crew) -> AsyncIterator[Site]:
    """The dashboard of a namespace of its own, open to everybody on this machine."""
    served = Crew(program_crew.server, program_crew.namespace, program_crew.folder, module="tests.browser.app")
    with Live(create_app(served.rota, auth="none")) as live:
        site = Site(program_crew, live.url)
        yield site
    await program_crew.rota.close()
    assert site.troubles == []


@pytest_asyncio.fixture(loop_scope="session")
async def guarded(program_crew: Crew) -> AsyncIterator[Site]:
    """The same for those who have a token."""
    served = Crew(program_crew.server, program_crew.namespace, program_crew.folder, module="tests.browser.app")
    with Live(create_app(served.rota)) as live:
        site = Site(program_crew, live.url)
        yield site
    await program_crew.rota.close()
    assert site.troubles == []


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser, request: pytest.FixtureRequest) -> AsyncIterator[Page]:
    """A page as wide as a desk, on the site of the test."""
    site: Site = request.getfixturevalue("guarded" if "guarded" in request.fixturenames else "site")
    context = await browser.new_context(base_url=site.url, viewport=DESKTOP, reduced_motion="reduce")
    page = await context.new_page()
    site.watch(page)
    yield page
    await context.close()
