"""The pages of one queue and of one task: state now, charts, errors, jobs, workers."""

from __future__ import annotations

import re

from playwright.async_api import Page, expect

from rota import JobState
from tests.browser.keyboard import press
from tests.browser.site import Site, row


async def fill(site: Site) -> None:
    """Runs jobs that succeed and fail, and leaves one running."""
    await site.start_worker()
    await site.tasks.download.using(queue="mail", id="film").enqueue("film")
    failed = [await site.tasks.bounce.enqueue("ann") for _ in range(2)]
    done = await site.tasks.greet.using(id="letter").enqueue("cat")
    for job in failed:
        await site.until(job, JobState.FAILED)
    await site.until(done, JobState.COMPLETED)


async def test_a_queue_shows_its_state_errors_jobs_and_workers(site: Site, page: Page) -> None:
    await fill(site)
    await page.goto("/queues/mail")

    await expect(page.get_by_role("note", name="Compared with usual")).to_contain_text("Jobs run for")
    errors = page.get_by_role("table").filter(has_text="ConnectionError")
    await expect(errors.get_by_text("no such mailbox")).to_be_visible()
    await expect(
        page.get_by_role("region", name="Longest running now").get_by_role("link", name="film")
    ).to_be_visible()
    await expect(page.get_by_role("region", name="Latest jobs").get_by_role("link", name="letter")).to_be_visible()
    await expect(page.get_by_role("region", name="Workers").get_by_role("row")).to_have_count(2)
    await expect(page.get_by_role("figure", name="Running time, the last hour")).to_be_visible()


async def test_numbers_of_a_queue_lead_to_their_jobs(site: Site, page: Page) -> None:
    await fill(site)
    await page.goto("/queues/mail")

    await page.get_by_role("region", name="Failures by error").get_by_role("link", name="2", exact=True).first.click()

    await expect(page).to_have_url(re.compile("/jobs.*queue=mail.*error=ConnectionError"))
    await row(page, "bounce")


async def test_the_task_page_is_reached_from_its_queue(site: Site, page: Page) -> None:
    await fill(site)
    await page.goto("/queues/mail")

    await page.get_by_role("region", name="Tasks, last hour").get_by_role("link", name="bounce").click()

    await expect(page).to_have_url(re.compile("/tasks/bounce"))
    await expect(page.get_by_role("heading", name="bounce")).to_be_visible()
    await expect(page.get_by_text("Fails for good.")).to_be_visible()
    await expect(page.get_by_role("table").filter(has_text="ConnectionError")).to_be_visible()


async def test_a_queue_is_paused_and_resumed_on_its_page(site: Site, page: Page) -> None:
    await site.tasks.greet.enqueue("ann")
    await page.goto("/queues/mail")

    await page.get_by_role("button", name="Pause", exact=True).click()
    await page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    await expect(page.get_by_role("button", name="Resume", exact=True)).to_be_visible()
    assert (await site.rota.queue("mail").info()).is_paused

    await press(page, page.get_by_role("button", name="Resume", exact=True))
    await expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    assert not (await site.rota.queue("mail").info()).is_paused


async def test_what_does_not_exist_says_so(site: Site, page: Page) -> None:
    await page.goto("/queues/nowhere")
    await expect(page.get_by_text("Queue not found")).to_be_visible()

    await page.goto("/tasks/nothing")
    await expect(page.get_by_text("Task not found")).to_be_visible()
    site.ignore_problem("404")


async def test_a_task_is_paused_and_resumed_with_keys(site: Site, page: Page) -> None:
    await fill(site)
    await page.goto("/tasks/greet?queue=mail")

    await press(page, page.get_by_role("button", name="Pause", exact=True))
    await press(page, page.get_by_role("dialog").get_by_role("button", name="Pause"))
    await expect(page.get_by_text("greet in mail was paused")).to_be_visible()

    await press(page, page.get_by_role("button", name="Resume", exact=True))
    await expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
