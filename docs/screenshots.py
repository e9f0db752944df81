"""Takes screenshots of every page of the dashboard, on a desktop and on a phone, light and dark.

`make screenshots` writes them to build/screenshots, for the review of a visual change; with names of pages it takes
those alone. `python -m docs.screenshots --docs` retakes the few in docs/images that the documentation shows. The data
is the sample data of the browser tests, on a temporary server.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import httpx2
from playwright.async_api import Browser, Page, ViewportSize, async_playwright

from rota.server import create_app
from rota.server.auth.api_tokens import Role, Tokens
from tests.browser.conftest import ARGUMENTS, DESKTOP, PHONE
from tests.browser.sample_data import create_sample_data
from tests.browser.site import Site, close_page, open_page
from tests.browser.test_accessibility import settled
from tests.server.live import Live
from tests.servers import Server, new_server
from tests.worker.harness import WorkerHarness

Act = Callable[[Page], Awaitable[None]]
Theme = Literal["light", "dark"]

DOCS_IMAGES: Final = Path(__file__).parent / "images"
BUILD: Final = Path(__file__).parents[1] / "build" / "screenshots"
#: Pages that the documentation shows, on a desktop and light.
DOCUMENTED: Final = ("overview",)
MODULE: Final = "tests.browser.tasks"
#: Charts need their first minute, and workers their first registration.
HISTORY_S: Final = 65.0


async def _open_palette(page: Page) -> None:
    await page.keyboard.press("Control+k")
    await page.get_by_role("dialog").wait_for()
    await page.keyboard.type("dead")


async def _select(page: Page) -> None:
    for row in range(1, 4):
        await page.get_by_role("grid").get_by_role("checkbox", name="Select mail").nth(row).check()


async def _select_and_redrive(page: Page) -> None:
    await _select(page)
    await page.get_by_role("button", name="Redrive").click()
    await page.get_by_role("dialog").wait_for()


async def _filter(page: Page) -> None:
    await page.get_by_role("combobox", name="Filter jobs").fill("error:")
    await page.get_by_role("option").first.wait_for()


async def _purge(page: Page) -> None:
    await page.get_by_role("button", name="More for chores").click()
    await page.get_by_role("menuitem", name="Purge").click()
    await page.get_by_role("dialog").wait_for()


#: What is seen only after one has done something: where, and what.
ACTED: Final[dict[str, tuple[str, Act]]] = {
    "palette": ("/", _open_palette),
    "jobs-filter": ("/jobs", _filter),
    "jobs-selected": ("/jobs?state=FAILED", _select),
    "jobs-redrive": ("/jobs?state=FAILED", _select_and_redrive),
    "queue-purge": ("/queues", _purge),
}


@dataclass(frozen=True)
class Screenshots:
    """Takes pages in every size, and writes them to a folder."""

    folder: Path
    sizes: Mapping[str, ViewportSize]

    async def take(
        self,
        browser: Browser,
        url: str,
        paths: Mapping[str, str],
        theme: Theme,
        *,
        token: str = "",
        is_lost: bool = False,
        act: Act | None = None,
    ) -> None:
        """Each path, as `name-size-theme.png`."""
        for size_name, size in self.sizes.items():
            page = await open_page(browser, url, viewport=size, color_scheme=theme, reduced_motion="reduce")
            if is_lost:
                await page.route("**/api/events*", lambda route: route.abort())
            if token:
                await page.goto("/login")
                await page.get_by_label("Token", exact=True).fill(token)
                await page.get_by_role("button", name="Log in").click()
                await page.wait_for_url(f"{url}/")
            for name, path in paths.items():
                await page.goto(path)
                await settled(page)
                if is_lost:
                    await page.get_by_text("Connection lost").wait_for()
                if act is not None:
                    await act(page)
                await page.wait_for_timeout(700)  # charts and graphs are drawn
                await page.screenshot(path=self.folder / f"{name}-{size_name}-{theme}.png")
            await close_page(page)


async def main(names: list[str], folder: Path, sizes: Mapping[str, ViewportSize], themes: Sequence[Theme]) -> None:
    """All pages, or those named."""
    shots = Screenshots(folder, sizes)
    chromium = shutil.which("chromium") or sys.exit("there is no chromium on the PATH: apt-get install chromium")
    with (
        new_server("valkey") as server,
        tempfile.TemporaryDirectory() as work,
        WorkerHarness(server, "rota", Path(work), module=MODULE) as harness,
        Live(create_app(WorkerHarness(server, "rota", Path(work), module=MODULE).rota, auth="none")) as live,
    ):
        site = Site(harness, live.url)
        sample = await create_sample_data(site)
        await _change(site.url, sample.jobs["scheduled"].id)
        await asyncio.sleep(HISTORY_S if not names or sample.paths().keys() & set(names) else 0)
        paths = {name: path for name, path in sample.paths().items() if not names or name in names}
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
            for theme in themes:
                await shots.take(browser, site.url, paths, theme)
                if not names or "connection-lost" in names:
                    await shots.take(browser, site.url, {"connection-lost": "/"}, theme, is_lost=True)
                acted = {name: (path, act) for name, (path, act) in ACTED.items() if not names or name in names}
                for name, (path, act) in acted.items():
                    await shots.take(browser, site.url, {name: path}, theme, act=act)
            await _take_others(shots, browser, server, Path(work), names, themes)
        await harness.rota.close()


async def _change(url: str, job: str) -> None:
    """What the audit log has to show."""
    async with httpx2.AsyncClient(base_url=url) as http:
        for method, path, body in (
            ("POST", "/api/queues/chores/resume", None),
            ("POST", "/api/queues/chores/pause", None),
            ("PATCH", f"/api/jobs/{job}", {"priority": "medium"}),
            ("PATCH", f"/api/jobs/{job}", {"priority": "high"}),
        ):
            (await http.request(method, path, json=body)).raise_for_status()


async def _take_others(
    shots: Screenshots, browser: Browser, server: Server, folder: Path, names: list[str], themes: Sequence[Theme]
) -> None:
    """Pages of an empty namespace, the login, and a page that the user has no access to."""
    fresh = WorkerHarness(server, "fresh", folder, module=MODULE)
    pages: list[tuple[str, str, bool]] = [
        ("getting-started", "/", False),
        ("login", "/login", True),
        ("no-permission", "/jobs/new", True),
    ]
    viewer, _ = await Tokens(fresh.rota).create(Role.VIEWER)
    for name, path, is_guarded in pages:
        if names and name not in names:
            continue
        with Live(create_app(fresh.rota, auth="tokens" if is_guarded else "none")) as live:
            for theme in themes:
                token = viewer if name == "no-permission" else ""
                await shots.take(browser, live.url, {name: path}, theme, token=token)
    await fresh.rota.close()


def _run(arguments: list[str]) -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    if arguments == ["--docs"]:
        asyncio.run(main(list(DOCUMENTED), DOCS_IMAGES, {"desktop": DESKTOP}, ["light"]))
    else:
        asyncio.run(main(arguments, BUILD, {"desktop": DESKTOP, "phone": PHONE}, ["light", "dark"]))


if __name__ == "__main__":
    _run(sys.argv[1:])
