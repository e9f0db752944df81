"""The built documentation site: links, anchors, search and versions work, and nothing is loaded from another host.

Runs in `make docs`, which builds the site and names its folder in ROTA_TEST_SITE; `make test` skips it.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import pytest
from playwright.async_api import Page, Request, async_playwright, expect

from docs.build_site import site_version
from docs.site_pages import page_names
from tests.browser.conftest import ARGUMENTS

SITE: Final = Path(os.environ.get("ROTA_TEST_SITE", "/nonexistent"))
VERSION: Final = SITE / site_version()
CHROMIUM: Final = Path("/usr/bin/chromium")

pytestmark = [
    pytest.mark.skipif("ROTA_TEST_SITE" not in os.environ, reason="needs the built site: `make docs`"),
    pytest.mark.timeout(120),
]
needs_browser = pytest.mark.skipif(not CHROMIUM.exists(), reason="Chromium is not installed")


class Html(HTMLParser):
    """The anchors of a page, what it links to and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.classes: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        self.classes |= set(found.get("class", "").split())
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "link" and found.get("rel") not in {"canonical", "prev", "next", "alternate"}:
            self.loaded.append(found.get("href", ""))
        elif "src" in found:
            self.loaded.append(found["src"])


@functools.cache
def _html(path: Path) -> Html:
    return Html(path)


def _pages() -> list[Path]:
    # 404.html is served for any path, so its links are absolute.
    return [page for page in sorted(VERSION.rglob("*.html")) if page.name != "404.html"]


def test_every_page_is_built() -> None:
    built = {page.relative_to(VERSION).as_posix() for page in _pages()}

    assert built >= {name.removesuffix(".md") + ".html" for name in page_names()}
    assert (VERSION / "llms.txt").read_text(encoding="utf-8").count("\n- [") > 40


def test_every_internal_link_leads_to_a_page_and_an_anchor_that_exist() -> None:
    broken: list[str] = []
    for page in _pages():
        for link in _html(page).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if target.is_dir():
                target /= "index.html"
            is_missing = not target.exists()
            if not is_missing and parts.fragment and target.suffix == ".html":
                is_missing = unquote(parts.fragment) not in _html(target).anchors
            if is_missing:
                broken.append(f"{page.relative_to(VERSION)}: {link}")

    assert broken == []


def test_no_page_names_a_resource_of_another_host() -> None:
    found = [
        f"{page.relative_to(VERSION)}: {url}"
        for page in sorted(VERSION.rglob("*.html"))
        for url in _html(page).loaded
        if urlsplit(url).scheme in {"http", "https"} or url.startswith("//")
    ]

    assert found == []


def test_no_page_has_what_the_theme_would_load_a_script_for() -> None:
    assert [page.name for page in _pages() if _html(page).classes & {"mermaid", "glightbox", "pyodide"}] == []


def test_stylesheets_name_no_resource_of_another_host() -> None:
    for sheet in VERSION.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert "url(http" not in text.replace("'", "").replace('"', ""), sheet
        assert "@import" not in text, sheet


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


async def _search(page: Page) -> None:
    """Searches for a page that no visible link of this page names, and waits for a result."""
    results = page.locator("a:visible", has_text="Spread a queue")
    await expect(results).to_have_count(0)
    await page.keyboard.press("/")
    await page.keyboard.type("shard")
    await expect(results.first).to_be_visible(timeout=30_000)


@needs_browser
@pytest.mark.parametrize("scheme", ["http", "file"])
async def test_the_site_is_searched_and_shown_without_another_host(scheme: str, address: str) -> None:
    start = address if scheme == "http" else SITE.as_uri() + "/index.html"
    requests: list[str] = []
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        page = await browser.new_page(color_scheme="dark")

        def note(request: Request) -> None:
            requests.append(request.url)

        page.on("request", note)
        await page.goto(start)
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        await expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")
        await _search(page)
        if scheme == "http":
            await expect(page.locator(".md-version__current")).to_have_text(site_version())
        await browser.close()

    hosts = {urlsplit(url).netloc for url in requests if urlsplit(url).scheme not in {"data", "blob"}}
    assert hosts == {urlsplit(start).netloc}
