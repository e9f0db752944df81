"""Takes a picture of every page of the dashboard, wide and narrow, light and dark: `python -m docs.screenshots`.

It works on a throw-away server with jobs of every kind, made by the same code as the browser tests use. The pictures
are for the README, and for whoever looks at a change with a designer's eye.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Literal

import httpx2
from playwright.async_api import Browser, Page, async_playwright

from rota.server import create_app
from rota.server.tokens import Role, Tokens
from tests.browser.conftest import ARGUMENTS, DESKTOP, PHONE
from tests.browser.furniture import furnish
from tests.browser.site import Site
from tests.browser.test_accessibility import settled
from tests.server.live import Live
from tests.servers import Server, new_server
from tests.worker.crew import Crew

Act = Callable[[Page], Awaitable[None]]

IMAGES: Final = Path(__file__).parent / "images"
MODULE: Final = "tests.browser.app"
#: Charts draw their first minute, and workers tell how busy they are.
HISTORY_S: Final = 65.0


async def _open_palette(page: Page) -> None:
    await page.keyboard.press("Control+k")
    await page.get_by_role("dialog").wait_for()
    await page.keyboard.type("dead")


async def _choose(page: Page) -> None:
    for row in range(1, 4):
        await page.get_by_role("grid").get_by_role("checkbox", name="Choose mail").nth(row).check()


async def _choose_and_redrive(page: Page) -> None:
    await _choose(page)
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
    "jobs-chosen": ("/jobs?state=FAILED", _choose),
    "jobs-redrive": ("/jobs?state=FAILED", _choose_and_redrive),
    "queue-purge": ("/queues", _purge),
}


async def main(names: list[str]) -> None:
    """All pages, or those named."""
    IMAGES.mkdir(exist_ok=True)
    chromium = shutil.which("chromium") or sys.exit("there is no chromium on the PATH: apt-get install chromium")
    with (
        new_server("valkey") as server,
        tempfile.TemporaryDirectory() as folder,
        Crew(server, "rota", Path(folder), module=MODULE) as crew,
        Live(create_app(Crew(server, "rota", Path(folder), module=MODULE).rota, auth="none")) as live,
    ):
        site = Site(crew, live.url)
        furniture = await furnish(site)
        await _change(site.url, furniture.jobs["scheduled"].id)
        await asyncio.sleep(HISTORY_S if not names or furniture.paths().keys() & set(names) else 0)
        paths = {name: path for name, path in furniture.paths().items() if not names or name in names}
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
            for theme in ("light", "dark"):
                await _take(browser, site.url, paths, theme)
                if not names or "connection-lost" in names:
                    await _take(browser, site.url, {"connection-lost": "/"}, theme, is_lost=True)
                acted = {name: (path, act) for name, (path, act) in ACTED.items() if not names or name in names}
                for name, (path, act) in acted.items():
                    await _take(browser, site.url, {name: path}, theme, act=act)
            await _take_others(browser, server, Path(folder), names)
        await crew.rota.close()


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


async def _take_others(browser: Browser, server: Server, folder: Path, names: list[str]) -> None:
    """What is seen where nothing was enqueued yet, before a login, and without permission."""
    fresh = Crew(server, "fresh", folder, module=MODULE)
    looks: list[tuple[str, str, bool]] = [
        ("first-run", "/", False), ("login", "/login", True), ("no-permission", "/jobs/new", True),
    ]  # fmt: skip
    viewer, _ = await Tokens(fresh.rota).create(Role.VIEWER)
    for name, path, is_guarded in looks:
        if names and name not in names:
            continue
        with Live(create_app(fresh.rota, auth="tokens" if is_guarded else "none")) as live:
            for theme in ("light", "dark"):
                token = viewer if name == "no-permission" else ""
                await _take(browser, live.url, {name: path}, theme, token=token)
    await fresh.rota.close()


async def _take(
    browser: Browser, url: str, paths: dict[str, str], theme: Literal["light", "dark"], *, token: str = "",
    is_lost: bool = False, act: Act | None = None,
) -> None:  # fmt: skip
    for width, size in (("desktop", DESKTOP), ("phone", PHONE)):
        context = await browser.new_context(base_url=url, viewport=size, color_scheme=theme, reduced_motion="reduce")
        page = await context.new_page()
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
            await page.screenshot(path=IMAGES / f"{name}-{width}-{theme}.png")
        await context.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
