"""What a reader sees without a server, and without the right to see something."""

from __future__ import annotations

from playwright.async_api import Page, expect

from rota import JobState
from rota.server.tokens import Role, Tokens
from tests.browser.site import Site


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
    guarded.forgive("401")
    guarded.forgive("403")
