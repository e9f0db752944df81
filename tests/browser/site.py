"""What a browser test works on: the served dashboard, its store, workers on demand, a page that forgives nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from playwright.async_api import ConsoleMessage, Locator, Page, Request, expect

from rota import Job, JobState, Rota
from rota.server.tokens import Role, Tokens
from tests.eventually import eventually
from tests.worker.crew import Crew, WorkerProcess

#: What is live must be there within a second; the rest is for a busy machine.
SOON_MS: Final = 5_000

expect.set_options(timeout=SOON_MS)


@dataclass
class Site:
    """One namespace: its program, its server, its address."""

    crew: Crew
    url: str
    troubles: list[str] = field(default_factory=list)

    @property
    def rota(self) -> Rota:
        """The client that a test verifies with."""
        return self.crew.rota

    @property
    def tasks(self) -> Any:
        """The program: `site.tasks.greet`."""
        return self.crew.program

    async def start_worker(self, *options: str, queues: str = "default,mail,orders") -> WorkerProcess:
        """A real worker of the program."""
        return await self.crew.start(*options, queues=queues)

    def allow(self, name: str) -> None:
        """Lets handlers go on that wait for this."""
        self.crew.allow(name)

    async def until(self, job: Job[Any], state: JobState | str) -> None:
        """Waits until the store says so."""
        await self.crew.until(job, state)

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
        self.forgive("401")

    def watch(self, page: Page) -> None:
        """Notes whatever a page must not do: errors, broken policies, requests to other hosts."""
        host = urlsplit(self.url).netloc
        page.on("pageerror", lambda error: self.troubles.append(f"error on {page.url}: {error}"))
        page.on("console", lambda message: self._heard(page, message))

        def asked(request: Request) -> None:
            parts = urlsplit(request.url)
            if parts.scheme not in ("data", "blob") and parts.netloc != host:
                self.troubles.append(f"{page.url} asked another host: {request.url}")

        page.on("request", asked)

    def forgive(self, text: str) -> None:
        """Takes back troubles that the test provoked."""
        self.troubles = [trouble for trouble in self.troubles if text not in trouble]

    def _heard(self, page: Page, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.troubles.append(f"{message.type} on {page.url}: {message.text}")


async def row(page: Page, text: str) -> Locator:
    """The row of a table that shows a text."""
    found = page.get_by_role("row").filter(has_text=text).first
    await expect(found).to_be_visible()
    return found
