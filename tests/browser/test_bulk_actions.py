"""What is done to many jobs at once: chosen, or all that match, with a rate, and stopped on the way."""

from __future__ import annotations

import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from rota import JobState
from rota.store.bulk_operation_records import OperationInfo
from tests.browser import keyboard
from tests.browser.site import Site, row

#: So slow that a test sees it go on.
CRAWLING = "0.01"


@pytest_asyncio.fixture(loop_scope="session")
async def dead(site: Site) -> Site:
    """Three jobs that failed for good with the same error; once redriven, they wait."""
    await site.start_worker()
    for job in [await site.tasks.bounce.enqueue("ann") for _ in range(3)]:
        await site.until(job, "failed")
    await site.rota.queue("mail").pause()
    return site


async def counts(site: Site) -> dict[str, int]:
    """Jobs of the mail queue by state; those that there are none of left out."""
    return {str(state): count for state, count in (await site.rota.queue("mail").counts()).items() if count}


async def ended(site: Site, state: str) -> OperationInfo:
    """Waits for the end of the operation that did something: as the store has it."""
    found: list[OperationInfo] = []

    async def has_ended() -> bool:
        found[:] = [one for one in await site.rota.operations.list() if not one.is_dry_run]
        return [one.state for one in found] == [state]

    await site.eventually(has_ended)
    return found[0]


def dialog(page: Page) -> Locator:
    """The one that is open."""
    return page.get_by_role("dialog")


async def letters(site: Site, count: int = 3) -> list[str]:
    """Waiting letters, by their ids."""
    calls = [site.tasks.greet.using(id=f"letter-{number}").call(f"reader-{number}") for number in range(count)]
    return [(await site.rota.enqueue(call)).id for call in calls]


async def test_one_dead_letter_is_redriven_with_the_mouse(dead: Site, page: Page) -> None:
    await page.goto("/dead")
    await page.get_by_role("button", expanded=False).filter(has_text="ConnectionError").click()
    jobs = page.get_by_role("list", name="Dead letters").get_by_role("listitem")
    await jobs.first.get_by_role("button", name="Redrive").click()
    await dialog(page).get_by_role("button", name="Redrive 1 job").click()

    await expect(dialog(page).get_by_text("1 job redriven.")).to_be_visible()
    assert await counts(dead) == {"failed": 2, "pending": 1}


async def test_one_dead_letter_is_redriven_with_keys(dead: Site, page: Page) -> None:
    await page.goto("/dead")
    await keyboard.press(page, page.get_by_role("button", expanded=False).filter(has_text="ConnectionError"))
    jobs = page.get_by_role("list", name="Dead letters").get_by_role("listitem")
    await keyboard.press(page, jobs.first.get_by_role("button", name="Redrive"))
    await keyboard.press(page, dialog(page).get_by_role("button", name="Redrive 1 job"))

    await expect(dialog(page).get_by_text("1 job redriven.")).to_be_visible()
    assert await counts(dead) == {"failed": 2, "pending": 1}


async def test_a_group_is_redriven_with_a_rate_and_keys(dead: Site, page: Page) -> None:
    await page.goto("/dead")
    await keyboard.press(page, page.get_by_role("button", name="Redrive ConnectionError"))
    await keyboard.fill(page, dialog(page).get_by_label("Maximum rate (jobs per second)"), "50")
    await keyboard.press(page, dialog(page).get_by_role("button", name="Redrive 3 jobs"))

    await expect(dialog(page).get_by_text("3 jobs redriven.")).to_be_visible()
    operation = await ended(dead, "completed")
    assert (operation.per_second, operation.done, "group" in operation.where) == (50, 3, True)
    assert await counts(dead) == {"pending": 3}


async def test_all_dead_letters_are_redriven_with_a_rate(dead: Site, page: Page) -> None:
    await page.goto("/dead")
    await page.get_by_role("button", name="Redrive all").click()
    await dialog(page).get_by_label("Maximum rate (jobs per second)").fill("50")
    await dialog(page).get_by_role("button", name="Redrive 3 jobs").click()

    await expect(dialog(page).get_by_text("3 jobs redriven.")).to_be_visible()
    operation = await ended(dead, "completed")
    assert (operation.per_second, operation.done, "group" in operation.where) == (50, 3, False)
    assert await counts(dead) == {"pending": 3}


async def test_all_dead_letters_are_redriven_with_keys(dead: Site, page: Page) -> None:
    await page.goto("/dead")
    await keyboard.press(page, page.get_by_role("button", name="Redrive all"))
    await keyboard.press(page, dialog(page).get_by_role("button", name="Redrive 3 jobs"))

    await ended(dead, "completed")
    assert await counts(dead) == {"pending": 3}


async def test_one_dead_letter_is_deleted_with_the_mouse(dead: Site, page: Page) -> None:
    await page.goto("/dead")
    await page.get_by_role("button", expanded=False).filter(has_text="ConnectionError").click()
    jobs = page.get_by_role("list", name="Dead letters").get_by_role("listitem")
    await jobs.first.get_by_role("button", name="Delete").click()
    await dialog(page).get_by_role("button", name="Delete 1 job").click()

    await expect(dialog(page).get_by_text("1 job deleted.")).to_be_visible()
    assert await counts(dead) == {"failed": 2}


async def test_a_group_is_deleted_with_the_mouse(dead: Site, page: Page) -> None:
    await page.goto("/dead")
    await page.get_by_role("button", name="Delete ConnectionError").click()
    await dialog(page).get_by_role("button", name="Delete 3 jobs").click()

    await ended(dead, "completed")
    assert await counts(dead) == {}


async def test_a_group_is_deleted_with_keys(dead: Site, page: Page) -> None:
    await page.goto("/dead")
    await keyboard.press(page, page.get_by_role("button", name="Delete ConnectionError"))
    await keyboard.press(page, dialog(page).get_by_role("button", name="Delete 3 jobs"))

    await ended(dead, "completed")
    assert await counts(dead) == {}


async def test_all_dead_letters_are_deleted_with_the_mouse(dead: Site, page: Page) -> None:
    await page.goto("/dead")
    await page.get_by_role("button", name="Delete all").click()
    await dialog(page).get_by_role("button", name="Delete 3 jobs").click()

    await ended(dead, "completed")
    assert await counts(dead) == {}


async def test_all_dead_letters_are_deleted_with_keys(dead: Site, page: Page) -> None:
    await page.goto("/dead")
    await keyboard.press(page, page.get_by_role("button", name="Delete all"))
    await keyboard.press(page, dialog(page).get_by_role("button", name="Delete 3 jobs"))

    await ended(dead, "completed")
    assert await counts(dead) == {}


async def test_an_operation_is_stopped_where_it_was_started(dead: Site, page: Page) -> None:
    await page.goto("/dead")
    await page.get_by_role("button", name="Redrive all").click()
    await dialog(page).get_by_label("Maximum rate (jobs per second)").fill(CRAWLING)
    await dialog(page).get_by_role("button", name="Redrive 3 jobs").click()
    await dialog(page).get_by_role("button", name="Stop").click()

    stopped = await ended(dead, "stopped")
    assert stopped.done < 3
    assert (await counts(dead))["failed"] == 3 - stopped.done


async def test_an_operation_that_goes_on_elsewhere_is_stopped_with_keys(dead: Site, page: Page) -> None:
    await dead.rota.operations.start("redrive", where={"queue": "mail"}, per_second=float(CRAWLING))
    await page.goto("/dead")
    going = page.get_by_role("list", name="Running operations")
    await keyboard.press(page, going.get_by_role("button", name="Stop"))

    stopped = await ended(dead, "stopped")
    assert (await counts(dead))["failed"] == 3 - stopped.done
    await expect(going).to_have_count(0)


async def test_all_that_match_are_counted_and_then_deleted(site: Site, page: Page) -> None:
    ids = await letters(site)
    other = await site.tasks.charge.enqueue("1")
    await page.goto("/jobs?queue=mail")
    await page.get_by_role("checkbox", name=ids[0]).click()
    await page.get_by_role("button", name="Select all 3 jobs").click()
    await page.get_by_role("toolbar").get_by_role("button", name="Delete").click()

    await expect(dialog(page).get_by_text("3 jobs match.")).to_be_visible()
    assert await counts(site) == {"pending": 3}
    await dialog(page).get_by_role("button", name="Delete 3 jobs").click()

    await ended(site, "completed")
    assert await counts(site) == {}
    assert await other.state() == JobState.PENDING


async def test_all_that_match_are_cancelled_with_keys_and_a_reason(site: Site, page: Page) -> None:
    ids = await letters(site)
    await page.goto("/jobs?queue=mail")
    await (await row(page, "letter-0")).focus()
    await page.keyboard.press("x")
    await keyboard.press(page, page.get_by_role("button", name="Select all 3 jobs"))
    await keyboard.press(page, page.get_by_role("toolbar").get_by_role("button", name="Cancel"))
    await keyboard.fill(page, dialog(page).get_by_label("Reason"), "the campaign is over")
    await keyboard.press(page, dialog(page).get_by_role("button", name="Cancel 3 jobs"))

    await ended(site, "completed")
    assert {(await site.rota.job(one).refresh()).reason for one in ids} == {"the campaign is over"}
    assert await counts(site) == {"cancelled": 3}


async def test_all_that_match_are_cancelled_with_the_mouse(site: Site, page: Page) -> None:
    ids = await letters(site)
    await page.goto("/jobs?queue=mail")
    await page.get_by_role("checkbox", name=ids[0]).click()
    await page.get_by_role("button", name="Select all 3 jobs").click()
    await page.get_by_role("toolbar").get_by_role("button", name="Cancel").click()
    await dialog(page).get_by_role("button", name="Cancel 3 jobs").click()

    await ended(site, "completed")
    assert await counts(site) == {"cancelled": 3}


async def test_all_that_match_are_deleted_with_keys(site: Site, page: Page) -> None:
    await letters(site)
    await page.goto("/jobs?queue=mail")
    await (await row(page, "letter-0")).focus()
    await page.keyboard.press("x")
    await keyboard.press(page, page.get_by_role("button", name="Select all 3 jobs"))
    await keyboard.press(page, page.get_by_role("toolbar").get_by_role("button", name="Delete"))
    await keyboard.press(page, dialog(page).get_by_role("button", name="Delete 3 jobs"))

    await ended(site, "completed")
    assert await counts(site) == {}


async def test_selected_jobs_are_changed_with_keys(site: Site, page: Page) -> None:
    ids = await letters(site)
    await page.goto("/jobs?queue=mail&order=oldest")
    await (await row(page, "letter-0")).focus()
    await page.keyboard.press("x")
    await page.keyboard.press("Shift+ArrowDown")
    await keyboard.press(page, page.get_by_role("toolbar").get_by_role("button", name="Change"))
    await keyboard.reach(page, dialog(page).get_by_label("Priority"))
    await page.keyboard.type("high")
    await keyboard.press(page, dialog(page).get_by_role("button", name="Change 2 jobs"))

    await expect(dialog(page).get_by_text("2 jobs changed")).to_be_visible()
    assert [(await site.rota.job(one).refresh()).options.priority for one in ids] == [-10, -10, 0]


async def test_selected_dead_letters_are_redriven_with_the_mouse(dead: Site, page: Page) -> None:
    await page.goto("/jobs?state=FAILED")
    await page.get_by_role("checkbox", name="Select all loaded jobs").click()
    await page.get_by_role("toolbar").get_by_role("button", name="Redrive").click()
    await dialog(page).get_by_role("button", name="Redrive 3 jobs").click()

    await expect(dialog(page).get_by_text("3 jobs redriven.")).to_be_visible()
    assert await counts(dead) == {"pending": 3}


async def test_selected_dead_letters_are_redriven_with_keys(dead: Site, page: Page) -> None:
    await page.goto("/jobs?state=FAILED")
    await keyboard.press(page, page.get_by_role("checkbox", name="Select all loaded jobs"), "Space")
    await keyboard.press(page, page.get_by_role("toolbar").get_by_role("button", name="Redrive"))
    await keyboard.press(page, dialog(page).get_by_role("button", name="Redrive 3 jobs"))

    await expect(dialog(page).get_by_text("3 jobs redriven.")).to_be_visible()
    assert await counts(dead) == {"pending": 3}


async def test_a_selection_is_cleared_and_a_row_is_opened_with_keys(site: Site, page: Page) -> None:
    await letters(site)
    await page.goto("/jobs?queue=mail&order=oldest")
    await (await row(page, "letter-0")).focus()
    await page.keyboard.press("x")
    await expect(page.get_by_text("1 selected")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("toolbar")).to_have_count(0)

    await page.keyboard.press("ArrowDown")
    await expect(page.locator('[role="row"]:focus')).to_contain_text("letter-1")
    await page.keyboard.press("Enter")

    await expect(page.get_by_role("heading", level=1)).to_have_text("mail:letter-1")


async def test_jobs_that_arrive_while_some_are_selected_wait_to_be_shown(site: Site, page: Page) -> None:
    ids = await letters(site, 2)
    await page.goto("/jobs")
    await page.get_by_role("checkbox", name=ids[0]).click()

    await site.rota.enqueue(site.tasks.greet.using(id="late").call("late"))

    new = page.get_by_role("button", name="1 new")
    await expect(new).to_be_visible()
    await expect(page.get_by_role("link", name="late")).to_have_count(0)
    await expect(page.get_by_role("checkbox", name=ids[0])).to_be_checked()
    await new.click()
    await row(page, "late")
    await expect(new).to_have_count(0)


async def test_jobs_that_wait_to_be_shown_are_shown_with_keys(site: Site, page: Page) -> None:
    await letters(site, 2)
    await page.goto("/jobs")
    await (await row(page, "letter-0")).focus()

    await site.rota.enqueue(site.tasks.greet.using(id="late").call("late"))
    await keyboard.press(page, page.get_by_role("button", name="1 new"))

    await row(page, "late")
