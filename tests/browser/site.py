"""The subject of a browser test: the served dashboard, its store, workers on demand, and every problem of its pages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from playwright.async_api import Browser, ConsoleMessage, Locator, Page, Request, expect
from playwright.async_api import Error as PlaywrightError

from rota import Job, JobState, Rota
from rota.server.auth.api_tokens import Role, Tokens
from tests.eventually import eventually
from tests.worker.harness import WorkerHarness, WorkerProcess

#: Live updates arrive within a second; the rest is a margin for a busy machine.
EXPECT_MS: Final = 30_000
#: Limits of every click, fill and wait, and of loading a page.
ACTION_MS: Final = 30_000
NAVIGATION_MS: Final = 60_000
#: Limit of a script in the page, and of opening or closing something: Playwright has none of its own for these.
SCRIPT_S: Final = 60.0

expect.set_options(timeout=EXPECT_MS)

T = TypeVar("T")


async def within(seconds: float, call: Awaitable[T]) -> T:
    """Awaits a call of Playwright that has no timeout of its own. Raises TimeoutError."""
    return await asyncio.wait_for(call, seconds)


async def open_page(browser: Browser, url: str, **options: Any) -> Page:
    """A page in a context of its own, with a limit on every action and navigation."""
    context = await within(SCRIPT_S, browser.new_context(base_url=url, **options))
    context.set_default_timeout(ACTION_MS)
    context.set_default_navigation_timeout(NAVIGATION_MS)
    return await within(SCRIPT_S, context.new_page())


async def close_page(page: Page) -> None:
    """Closes the page with its context. One that does not close is left to the end of the browser."""
    with suppress(TimeoutError, PlaywrightError):
        await within(SCRIPT_S, page.context.close())


@dataclass
class Site:
    """One namespace: its program, its server, its address."""

    harness: WorkerHarness
    url: str
    problems: list[str] = field(default_factory=list)

    @property
    def rota(self) -> Rota:
        """The client that a test verifies with."""
        return self.harness.rota

    @property
    def tasks(self) -> Any:
        """The program: `site.tasks.greet`."""
        return self.harness.program

    async def start_worker(self, *options: str, queues: str = "default,mail,orders") -> WorkerProcess:
        """A real worker of the program."""
        return await self.harness.start(*options, queues=queues)

    def allow(self, name: str) -> None:
        """Lets handlers go on that wait for this."""
        self.harness.allow(name)

    async def until(self, job: Job[Any], state: JobState | str) -> None:
        """Waits until the store says so."""
        await self.harness.until(job, state)

    async def eventually(self, claim: Any) -> None:
        """Waits until the store says so, whatever it is."""
        await eventually(claim, 10)

    async def log_in(self, page: Page, role: str) -> None:
        """Logs in by the page, with a new token of that role."""
        token, _ = await Tokens(self.rota).create(Role(role))
        await page.goto("/login")
        await page.get_by_label("Token", exact=True).fill(token)
        await page.get_by_role("button", name="Log in").click()
        await expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
        self.ignore_problem("401")

    def watch(self, page: Page) -> None:
        """Records what a page must not do: errors, policy violations, requests to other hosts."""
        host = urlsplit(self.url).netloc
        page.on("pageerror", lambda error: self.problems.append(f"error on {page.url}: {error}"))
        page.on("console", lambda message: self._on_console(page, message))

        def asked(request: Request) -> None:
            parts = urlsplit(request.url)
            if parts.scheme not in ("data", "blob") and parts.netloc != host:
                self.problems.append(f"{page.url} asked another host: {request.url}")

        page.on("request", asked)

    def ignore_problem(self, text: str) -> None:
        """Drops problems that the test provoked."""
        self.problems = [problem for problem in self.problems if text not in problem]

    async def expect_problem(self, text: str) -> None:
        """Waits for a problem that the test provoked, and drops it."""
        await eventually(lambda: any(text in problem for problem in self.problems))
        self.ignore_problem(text)

    def _on_console(self, page: Page, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type} on {page.url}: {message.text}")


async def row(page: Page, text: str) -> Locator:
    """The row of a table that shows a text."""
    found = page.get_by_role("row").filter(has_text=text).first
    await expect(found).to_be_visible()
    return found
