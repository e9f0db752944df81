"""The page of a job: why it is where it is, and everything that can be done about it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from playwright.async_api import Browser, Locator, Page, expect

from rota import Job, JobNotFound, JobState
from rota.server import create_app
from rota.server.auth.api_tokens import Role, Tokens
from tests.browser.keyboard import press
from tests.browser.site import Site
from tests.server.live import Live
from tests.worker.harness import WorkerHarness


def button(page: Page | Locator, name: str) -> Locator:
    """One that is called exactly so."""
    return page.get_by_role("button", name=name, exact=True)


async def choose(page: Page, name: str) -> None:
    """Something of the menu."""
    await button(page, "More actions").click()
    await page.get_by_role("menuitem", name=name).click()


async def dead_letter(site: Site, to: str = "bob@gone.example") -> Job[Any]:
    """A job that failed for good."""
    job: Job[Any] = await site.tasks.bounce.enqueue(to)
    await site.until(job, JobState.FAILED)
    return job


async def test_a_dead_letter_says_why_and_is_redriven(site: Site, page: Page) -> None:
    await site.start_worker()
    job = await dead_letter(site)

    await page.goto(f"/jobs/{job.id}")

    await expect(page.get_by_role("note")).to_contain_text("no such mailbox: bob@gone.example")
    await expect(page.get_by_label("Traceback")).to_contain_text("raise ConnectionError")
    await expect(page.get_by_role("list", name="Attempts").get_by_role("listitem")).to_have_count(1)
    await button(page, "Redrive").click()
    await expect(page.get_by_text(f"Redriven: {job.id}")).to_be_visible()
    assert [entry.verb for entry in await job.history()].count("redrive") == 1


async def test_a_dead_letter_is_edited_and_redriven(site: Site, page: Page) -> None:
    await site.start_worker()
    job = await dead_letter(site)
    await page.goto(f"/jobs/{job.id}")

    await button(page, "Edit and redrive").click()
    editor = page.get_by_role("dialog").get_by_role("textbox")
    await editor.press("Control+a")
    await page.keyboard.insert_text('{"to": "eve@gone.example"}')
    await button(page, "Save and redrive").click()

    await expect(page.get_by_role("note")).to_contain_text("no such mailbox: eve@gone.example")


async def test_what_runs_is_followed_live_and_cancelled_with_a_reason(site: Site, page: Page) -> None:
    await site.start_worker()
    job = await site.tasks.download.enqueue("atlas")
    await page.goto(f"/jobs/{job.id}")

    await expect(page.get_by_role("progressbar", name="Progress")).to_have_attribute("aria-valuenow", "50")
    await expect(page.get_by_role("log")).to_contain_text("part 5 of atlas")
    await button(page, "Cancel").click()
    await page.get_by_label("Reason (stored with the job)").fill("the disk is full")
    await page.keyboard.press("Enter")

    await expect(page.get_by_role("note")).to_contain_text("the disk is full")
    await site.until(job, JobState.CANCELLED)
    assert (await job.refresh()).reason == "the disk is full"


async def test_the_end_of_a_job_and_its_last_lines_appear_by_themselves(site: Site, page: Page) -> None:
    await site.start_worker()
    job = await site.tasks.download.enqueue("atlas")
    await page.goto(f"/jobs/{job.id}")
    await expect(page.get_by_role("log")).to_contain_text("part 5 of atlas")

    site.allow("atlas")

    await expect(page.get_by_role("region", name="Result, value")).to_have_text("10")
    await expect(page.get_by_role("log")).to_contain_text("part 9 of atlas")


async def test_the_log_is_searched(site: Site, page: Page) -> None:
    await site.start_worker()
    job = await site.tasks.download.enqueue("atlas")
    await page.goto(f"/jobs/{job.id}?view=log")
    await expect(page.get_by_role("log")).to_contain_text("part 5 of atlas")

    await page.get_by_label("Search log").fill("PART 3")

    await expect(page.get_by_role("log").get_by_text("part ")).to_have_text(["part 3 of atlas"])


async def test_a_scheduled_job_is_run_now(site: Site, page: Page) -> None:
    job = await site.tasks.greet.using(delay=3600).enqueue("ann")
    await page.goto(f"/jobs/{job.id}")
    await expect(page.get_by_text("due in 59 min")).to_be_visible()

    await button(page, "Run now").click()

    await expect(page.get_by_role("note")).to_contain_text("no worker serves queue mail")
    assert (await job.refresh()).state is JobState.PENDING


async def test_a_scheduled_job_is_rescheduled_and_put_first(site: Site, page: Page) -> None:
    job = await site.tasks.greet.using(delay=3600).enqueue("ann")
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=0)
    await page.goto(f"/jobs/{job.id}")

    await choose(page, "Reschedule…")
    given = await page.evaluate(
        "at => new Date(at - new Date(at).getTimezoneOffset() * 60000).toISOString().slice(0, 19)",
        tomorrow.timestamp() * 1000,
    )
    await page.get_by_label("Not before").fill(given)
    await button(page, "Reschedule").click()
    await expect(page.get_by_text(f"Updated: {job.id}")).to_be_visible()
    await choose(page, "Change priority…")
    await page.get_by_label("Name").select_option("critical (-15)")
    await button(page, "Change priority").click()
    await expect(page.get_by_text("-15, critical")).to_be_visible()

    record = await job.refresh()
    assert (record.due_at, record.options.priority) == (int(tomorrow.timestamp() * 1000), -15)


async def test_a_job_is_deleted(site: Site, page: Page) -> None:
    job = await site.tasks.greet.using(delay=3600).enqueue("ann")
    await page.goto(f"/jobs/{job.id}")

    await choose(page, "Delete…")
    await button(page.get_by_role("dialog"), "Delete").click()

    await expect(page).to_have_title("Jobs · Rota")
    assert await _is_gone(job)


async def test_keys_are_enough_to_delete_a_job(site: Site, page: Page) -> None:
    job = await site.tasks.greet.using(delay=3600).enqueue("ann")
    await page.goto(f"/jobs/{job.id}")
    await button(page, "More actions").focus()

    await page.keyboard.press("Enter")
    await expect(page.get_by_role("menuitem").first).to_be_focused()
    await page.keyboard.press("End")
    await expect(page.get_by_role("menuitem").last).to_be_focused()
    await page.keyboard.press("Enter")
    await button(page.get_by_role("dialog"), "Delete").focus()
    await page.keyboard.press("Enter")

    await expect(page).to_have_title("Jobs · Rota")
    assert await _is_gone(job)


async def test_a_blocked_job_leads_to_what_it_waits_for(site: Site, page: Page) -> None:
    first = await site.tasks.greet.using(delay=3600, id="first").enqueue("ann")
    second = await site.tasks.greet.using(after=[first], id="second").enqueue("ben")
    await page.goto(f"/jobs/{second.id}")

    await page.get_by_role("note").get_by_role("link").click()

    await expect(page.get_by_role("heading", level=1)).to_have_text("mail:first")
    await expect(page.get_by_text("Dependents")).to_be_visible()
    await expect(page.get_by_role("link", name="mail:second")).to_be_visible()


async def test_every_change_is_in_the_history(site: Site, page: Page) -> None:
    await site.start_worker()
    job = await dead_letter(site)
    await page.goto(f"/jobs/{job.id}")

    await page.get_by_role("tab", name="History").click()

    table = page.get_by_role("region", name="History")
    for place, verb in enumerate(("enqueue", "claim", "fail"), 1):
        await expect(table.get_by_role("row").nth(place)).to_contain_text(verb)
    await expect(page).to_have_url(re.compile(r"\?view=history$"))


async def test_a_job_that_is_not_there_says_what_may_have_happened(site: Site, page: Page) -> None:
    await page.goto("/jobs/mail:nobody")

    await expect(page.get_by_text("Job not found")).to_be_visible()
    await expect(page.get_by_role("link", name="Jobs in mail")).to_be_visible()
    await site.expect_problem("404")


async def test_a_viewer_is_offered_nothing(guarded: Site, page: Page) -> None:
    job = await guarded.tasks.greet.using(delay=3600).enqueue("ann")
    await log_in(guarded, page, Role.VIEWER)

    await page.goto(f"/jobs/{job.id}")

    await expect(page.get_by_role("note")).to_be_visible()
    assert await _offered(page) == []


async def log_in(site: Site, page: Page, role: Role) -> None:
    """A session, as the login page makes one."""
    token, _ = await Tokens(site.rota).create(role)
    answer = await page.request.post("/api/session", data={"token": token})
    assert answer.ok


async def _offered(page: Page) -> Sequence[str]:
    names = ("Redrive", "Cancel", "Run now", "More actions", "Edit and redrive")
    return [name for name in names if await button(page, name).count()]


async def _is_gone(job: Job[Any]) -> bool:
    try:
        await job.refresh()
    except JobNotFound:
        return True
    return False


TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"


async def test_the_trace_of_a_job_is_shown_and_copied(site: Site, page: Page) -> None:
    call = site.tasks.greet.call("ann").traced({"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"})
    traced = await site.rota.enqueue(call)
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.goto(f"/jobs/{traced.id}")
    await expect(page.get_by_text(TRACE)).to_be_visible()
    await expect(page.get_by_role("link", name=TRACE)).to_have_count(0)  # no trace viewer is configured

    await button(page, "Copy trace ID").click()
    await expect(button(page, "Copied")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == TRACE

    await page.evaluate("navigator.clipboard.writeText('')")
    await page.reload()
    await press(page, button(page, "Copy trace ID"))
    await expect(button(page, "Copied")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == TRACE


async def test_the_trace_of_a_job_leads_to_where_traces_are_looked_at(site: Site, browser: Browser) -> None:
    call = site.tasks.greet.call("ann")
    good = await site.rota.enqueue(call.traced({"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}))
    hostile = await site.rota.enqueue(call.traced({"traceparent": "javascript:alert(1)"}))
    served = WorkerHarness(
        site.harness.server, site.harness.namespace, site.harness.folder, module="tests.browser.tasks"
    ).rota
    with Live(create_app(served, auth="none", trace_url="https://tracing.example/trace/{trace_id}")) as live:
        page = await browser.new_page(base_url=live.url)
        await page.goto(f"/jobs/{good.id}")
        link = page.get_by_role("link", name=TRACE)

        await expect(link).to_have_attribute("href", f"https://tracing.example/trace/{TRACE}")
        await expect(link).to_have_attribute("rel", "noopener noreferrer")
        await page.goto(f"/jobs/{hostile.id}")
        await expect(page.get_by_role("heading", name="Properties")).to_be_visible()
        await expect(page.get_by_text("Trace", exact=True)).to_have_count(0)
        assert await page.locator("a[href^='javascript']").count() == 0
        await page.close()
