"""A page of another application shows the progress of a job with three lines, in a real browser."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from rota.server import create_app
from tests.browser.site import EXPECT_MS, close_page, open_page
from tests.docs.pages import ROOT
from tests.server.live import Live
from tests.worker.harness import WorkerHarness


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files without logging."""

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Another application: its address, and the folder of its pages."""
    folder = tmp_path / "shop"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", folder
    server.shutdown()
    thread.join()
    server.server_close()


def page_of_howto() -> str:
    """The page that the how-to shows."""
    text = (ROOT / "docs" / "howto" / "progress-in-browser.md").read_text(encoding="utf-8")
    return text.partition("```html\n")[2].partition("```")[0]


async def test_the_page_of_the_how_to_follows_a_job_of_another_origin_to_its_end(
    browser: Browser, program_harness: WorkerHarness, shop: tuple[str, Path]
) -> None:
    address, folder = shop
    served = WorkerHarness(
        program_harness.server, program_harness.namespace, program_harness.folder, module="tests.browser.tasks"
    )
    with Live(create_app(served.rota, cors_origins=[address])) as live:
        await program_harness.start()
        job = await program_harness.program.download.enqueue("film")
        html = page_of_howto().replace("https://jobs.example.com", live.url)
        (folder / "index.html").write_text(html.replace("{{ token }}", await job.progress_token()))
        page = await open_page(browser, address)
        await page.goto("/")

        await expect(page.locator("#bar")).to_have_js_property("value", 50, timeout=EXPECT_MS)
        program_harness.allow("film")
        await expect(page.locator("#bar")).to_have_js_property("value", 100, timeout=EXPECT_MS)
        await close_page(page)
    await program_harness.rota.close()
