"""The jobs' table: filtered by the URL, live, and many jobs changed at once."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from rota import JobState
from rota.server.auth.api_tokens import Role, Tokens
from tests.browser.site import Site, row


async def fill(site: Site, letters: int = 3) -> list[str]:
    """Waiting letters, the ids as the store has them."""
    calls = [site.tasks.greet.using(id=f"letter-{number}").call(f"reader-{number}") for number in range(letters)]
    return [(await site.rota.enqueue(call)).id for call in calls]


async def test_a_filter_is_typed_and_stands_in_the_url(site: Site, page: Page) -> None:
    await fill(site)
    await site.rota.enqueue(site.tasks.charge.using(id="order-1").call("1"))
    await page.goto("/jobs")
    await row(page, "order-1")

    await page.keyboard.press("f")
    await page.keyboard.type("queue:mail field.to:reader-1 ")

    await row(page, "letter-1")
    await expect(page.get_by_role("link", name="order-1")).to_have_count(0)
    await expect(page.get_by_role("link", name="letter-2")).to_have_count(0)
    await expect(page).to_have_url(re.compile("queue=mail"))
    await page.reload()
    await row(page, "letter-1")
    await expect(page.get_by_role("button", name="Remove queue:mail")).to_be_visible()


async def test_a_condition_is_chosen_from_suggestions(site: Site, page: Page) -> None:
    await fill(site)
    await page.goto("/jobs")

    await page.get_by_role("combobox", name="Filter jobs").click()
    await page.get_by_role("option", name="queue: ").click()
    await page.get_by_role("option", name="queue:mail").click()

    await expect(page).to_have_url(re.compile("queue=mail"))


@pytest.mark.requirement("S1-18", "S2-29")
async def test_new_jobs_and_counts_come_without_a_reload(site: Site, page: Page) -> None:
    """The list and its counts, live."""
    await fill(site, 1)
    await page.goto("/jobs")
    await row(page, "letter-0")

    await site.rota.enqueue(site.tasks.bounce.using(id="order-7").call("7"))

    await row(page, "order-7")
    await expect(page.get_by_role("button", name="pending 2")).to_be_visible()


async def test_a_text_is_looked_for_and_how_far_is_said(site: Site, page: Page) -> None:
    await fill(site)

    await page.goto("/jobs?text=reader-2")

    await row(page, "letter-2")
    await expect(page.get_by_text(re.compile("1 match in 3 records searched"))).to_be_visible()


async def test_selected_jobs_are_cancelled_with_the_mouse(site: Site, page: Page) -> None:
    ids = await fill(site)
    await page.goto("/jobs?queue=mail&order=oldest")

    await page.get_by_role("checkbox", name=ids[0]).click()
    await page.get_by_role("checkbox", name=ids[1]).click(modifiers=["Shift"])
    await page.get_by_role("toolbar").get_by_role("button", name="Cancel").click()
    await page.get_by_role("dialog").get_by_role("button", name="Cancel 2 jobs").click()

    await expect(page.get_by_text("2 jobs cancelled")).to_be_visible()
    states = [(await site.rota.job(one).refresh()).state for one in ids]
    assert states == [JobState.CANCELLED, JobState.CANCELLED, JobState.PENDING]


async def test_selected_jobs_are_deleted_with_the_keyboard(site: Site, page: Page) -> None:
    ids = await fill(site)
    await page.goto("/jobs?queue=mail&order=oldest")
    await (await row(page, "letter-0")).focus()

    await page.keyboard.press("x")
    await page.keyboard.press("Shift+ArrowDown")
    await expect(page.get_by_text("2 selected")).to_be_visible()
    await page.get_by_role("toolbar").get_by_role("button", name="Delete").press("Enter")
    await page.get_by_role("dialog").get_by_role("button", name="Delete 2 jobs").press("Enter")

    await expect(page.get_by_text("2 jobs deleted")).to_be_visible()
    left = [record.ref.id for record in (await site.rota.jobs(queue="mail")).jobs]
    assert left == [ids[2].removeprefix("mail:")]


async def test_all_that_match_are_counted_and_then_changed(site: Site, page: Page) -> None:
    ids = await fill(site)
    other = await site.rota.enqueue(site.tasks.charge.call("1"))
    await page.goto("/jobs?queue=mail")

    await page.get_by_role("checkbox", name=ids[0]).click()
    await page.get_by_role("button", name="Select all 3 jobs").click()
    await page.get_by_role("toolbar").get_by_role("button", name="Change").click()
    await expect(page.get_by_text("3 jobs match.")).to_be_visible()
    await page.get_by_label("Priority").select_option(label="high (−10)")
    await page.get_by_role("button", name="Change 3 jobs").click()

    await expect(page.get_by_text("3 jobs changed")).to_be_visible()
    assert [(await site.rota.job(one).refresh()).options.priority for one in ids] == [-10, -10, -10]
    assert (await other.refresh()).options.priority == 0


async def test_a_view_is_saved_and_opened_again(site: Site, page: Page) -> None:
    await fill(site)
    await page.goto("/jobs?queue=mail&state=PENDING")

    await page.get_by_role("button", name="Views").click()
    await page.get_by_role("menuitem", name="Save this view").click()
    await page.get_by_label("Name").fill("Letters")
    await page.keyboard.press("Enter")
    await page.goto("/jobs")
    await page.get_by_role("button", name="Views").click()
    await page.get_by_role("menuitem", name="Letters").click()

    await expect(page).to_have_url(re.compile("queue=mail"))


async def test_a_viewer_sees_jobs_and_can_change_none(guarded: Site, page: Page) -> None:
    ids = await fill(guarded)
    token, _ = await Tokens(guarded.rota).create(Role.VIEWER)
    await page.context.request.post("/api/session", data={"token": token})

    await page.goto("/jobs")

    await row(page, ids[0].removeprefix("mail:"))
    await expect(page.get_by_role("checkbox")).to_have_count(0)
    await expect(page.get_by_role("link", name="New job")).to_have_count(0)
    await page.goto("/jobs/new")
    await expect(page.get_by_text("You cannot enqueue jobs")).to_be_visible()


async def test_a_click_anywhere_in_a_row_opens_the_job(site: Site, page: Page) -> None:
    ids = await fill(site)
    await page.goto("/jobs?queue=mail&order=oldest")
    found = await row(page, "letter-1")

    await found.get_by_role("checkbox").click()
    await expect(page.get_by_role("toolbar", name="Selected jobs")).to_be_visible()
    await found.get_by_role("gridcell").filter(has_text="reader-1").click()

    await expect(page).to_have_title(f"{ids[1]} · Rota")


async def test_rows_show_arguments_and_durations_in_columns_of_their_own(site: Site, page: Page) -> None:
    await site.start_worker()
    job = await site.tasks.greet.using(id="letter-1").enqueue("reader-1")
    await site.until(job, JobState.COMPLETED)
    await page.goto("/jobs")

    found = await row(page, "letter-1")
    await expect(found.get_by_role("gridcell").filter(has_text="to reader-1")).to_be_visible()
    for column in ("Arguments", "Waited", "Ran"):
        await expect(page.get_by_role("columnheader", name=column, exact=True)).to_be_visible()
    await expect(page.get_by_role("columnheader", name="Worker")).to_have_count(0)
    await expect(found.get_by_text("ago")).to_be_visible()

    await page.goto("/jobs?since=1h")

    await expect((await row(page, "letter-1")).get_by_text(re.compile(r"^\d+ \w{3} \d\d:\d\d:\d\d$"))).to_be_visible()
    await expect((await row(page, "letter-1")).get_by_text("ago")).to_have_count(0)
