"""Workflows: the list, the graph and the timeline as they change, and what an operator does about one."""

from __future__ import annotations

from typing import Any

from playwright.async_api import Browser, Page, expect

from tests.browser import keyboard
from tests.browser.conftest import PHONE
from tests.browser.site import Site, close_page, open_page


async def order(site: Site, name: str, on_failure: str, *, settles_as: str) -> str:
    """One that packs what is in stock only."""
    tasks = site.tasks
    options: dict[str, Any] = {"on_failure": on_failure}
    async with site.rota.workflow("order", **options) as flow:
        paid = flow.step(tasks.charge.call(name), name="charge")
        paid.undo(tasks.refund.call(paid.result))
        packed = flow.step(tasks.pack.call(name), name="pack", after=[paid])
        flow.step(tasks.ship.call(packed.result, paid.result), name="ship")
    await until_state(site, flow.id, settles_as)
    return flow.id


async def until_state(site: Site, flow_id: str, state: str) -> None:
    """Waits until the store says so."""

    async def has_state() -> bool:
        return await site.rota.workflows.get(flow_id).state() == state

    await site.eventually(has_state)


async def test_a_held_workflow_is_resumed_and_its_steps_change_live(site: Site, page: Page) -> None:
    await site.start_worker()
    flow_id = await order(site, "lamp", "hold", settles_as="failed")
    await page.goto("/workflows")
    await page.get_by_role("link", name="order").click()
    graph = page.get_by_role("group", name="Graph of the steps")
    await expect(graph.get_by_role("link", name="pack failed")).to_be_visible()

    site.allow("lamp")
    await page.get_by_role("button", name="Resume").click()

    await expect(graph.get_by_role("link", name="ship completed")).to_be_visible()
    await expect(page.get_by_role("note")).to_contain_text("3 of 3 steps done")
    await until_state(site, flow_id, "completed")


async def test_one_step_is_retried_with_keys(site: Site, page: Page) -> None:
    await site.start_worker()
    flow_id = await order(site, "lamp", "hold", settles_as="failed")
    await page.goto(f"/workflows/{flow_id}?view=steps")

    site.allow("lamp")
    await page.get_by_role("button", name="Retry pack").focus()
    await page.keyboard.press("Enter")

    await expect(page.get_by_role("row").filter(has_text="ship").get_by_text("completed")).to_be_visible()
    await until_state(site, flow_id, "completed")


async def test_a_workflow_is_cancelled_with_undo(site: Site, page: Page) -> None:
    await site.start_worker()
    flow_id = await order(site, "lamp", "hold", settles_as="failed")
    await page.goto(f"/workflows/{flow_id}")

    await page.get_by_role("button", name="Cancel", exact=True).click()
    await page.get_by_role("button", name="Cancel and undo").click()

    graph = page.get_by_role("group", name="Graph of the steps")
    await expect(graph.get_by_role("link", name="undone : charge")).to_be_visible()
    await until_state(site, flow_id, "cancelled")
    assert (await site.rota.workflows.get(flow_id).refresh()).undo_states[0].outcome == "completed"


async def test_a_workflow_is_cancelled_and_left_as_it_is(site: Site, page: Page) -> None:
    await site.start_worker()
    flow_id = await order(site, "lamp", "hold", settles_as="failed")
    await page.goto(f"/workflows/{flow_id}")

    await page.get_by_role("button", name="Cancel", exact=True).click()
    await page.get_by_label("Undo completed steps").uncheck()
    await page.get_by_role("button", name="Cancel workflow").click()

    await until_state(site, flow_id, "cancelled")
    await expect(page.get_by_role("button", name="Resume")).to_have_count(0)


async def test_the_timeline_shows_the_critical_path_and_leads_to_the_jobs(site: Site, page: Page) -> None:
    await site.start_worker()
    site.allow("book")
    flow_id = await order(site, "book", "undo", settles_as="completed")
    await page.goto(f"/workflows/{flow_id}")

    await page.get_by_role("tab", name="Timeline").click()

    rows = page.get_by_role("list", name="Step timeline").get_by_role("listitem")
    await expect(rows).to_have_count(3)
    await expect(rows.filter(has_text="on the critical path")).to_have_count(3)
    await rows.nth(1).get_by_role("link", name="pack").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text(f"orders:{flow_id}.1")


async def test_the_timeline_shows_the_critical_path_alone(site: Site, page: Page) -> None:
    await site.start_worker()
    flow_id = await beside(site)
    await page.goto(f"/workflows/{flow_id}?view=timeline")
    rows = page.get_by_role("list", name="Step timeline").get_by_role("listitem")
    await expect(rows).to_have_count(3)

    await page.get_by_role("button", name="Critical path only").click()

    await expect(rows).to_have_count(2)
    await expect(page).to_have_url(f"{site.url}/workflows/{flow_id}?view=timeline&critical=true")


async def test_the_timeline_shows_the_critical_path_alone_with_keys(site: Site, page: Page) -> None:
    await site.start_worker()
    flow_id = await beside(site)
    await page.goto(f"/workflows/{flow_id}?view=timeline&critical=true")
    rows = page.get_by_role("list", name="Step timeline").get_by_role("listitem")
    await expect(rows).to_have_count(2)

    await keyboard.press(page, page.get_by_role("button", name="Critical path only"))

    await expect(rows).to_have_count(3)


async def beside(site: Site) -> str:
    """One of its three steps is not on the critical path."""
    async with site.rota.workflow("order") as flow:
        flow.step(site.tasks.charge.call("lamp"), name="quick")
        slow = flow.step(site.tasks.download.call("slow"), name="slow")
        flow.step(site.tasks.charge.call("lamp"), name="last", after=[slow])
    site.allow("slow")
    await until_state(site, flow.id, "completed")
    return flow.id


async def test_steps_take_two_lines_each_on_a_phone(site: Site, browser: Browser) -> None:
    await site.start_worker()
    flow_id = await order(site, "lamp", "hold", settles_as="failed")
    page = await open_page(browser, site.url, viewport=PHONE, reduced_motion="reduce")
    site.watch(page)
    await page.goto(f"/workflows/{flow_id}")
    steps = page.get_by_role("list", name="Steps").get_by_role("listitem")
    await expect(steps).to_have_count(3)
    await expect(steps.nth(1)).to_contain_text("LookupError lamp is not in stock")
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    sizes = [
        await step.evaluate("row => [row.scrollWidth - row.clientWidth, row.offsetHeight]")
        for step in await steps.all()
    ]
    assert [wider for wider, _ in sizes] == [0, 0, 0]
    assert max(height for _, height in sizes) < 80

    site.allow("lamp")
    await page.get_by_role("button", name="Retry pack").click()

    await expect(steps.nth(2)).to_contain_text("completed")
    await until_state(site, flow_id, "completed")
    await close_page(page)


async def test_a_held_workflow_says_what_its_step_raised(site: Site, page: Page) -> None:
    await site.start_worker()
    flow_id = await order(site, "lamp", "hold", settles_as="failed")
    await page.goto(f"/workflows/{flow_id}")

    await expect(page.get_by_role("note")).to_contain_text("pack: LookupError lamp is not in stock")
    await page.get_by_role("note").get_by_role("link", name="pack").click()

    await expect(page.get_by_role("heading", level=1)).to_have_text(f"orders:{flow_id}.1")


async def test_the_list_is_filtered_by_state_and_name_in_the_address(site: Site, page: Page) -> None:
    await site.start_worker()
    await order(site, "lamp", "hold", settles_as="failed")
    await page.goto("/workflows?state=COMPLETED")
    await expect(page.get_by_text("No workflows match")).to_be_visible()

    await page.get_by_role("button", name="Clear filters").click()
    await page.get_by_role("button", name="held").click()
    await page.get_by_label("Name or id").fill("ord")

    await expect(page.get_by_role("link", name="order")).to_be_visible()
    await expect(page).to_have_url(f"{site.url}/workflows?state=FAILED&name=ord")


async def test_a_new_workflow_appears_in_the_list(site: Site, page: Page) -> None:
    await site.start_worker()
    await site.tasks.greet.enqueue("ann")
    await page.goto("/workflows")
    await expect(page.get_by_text("No workflows yet")).to_be_visible()
    await expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()

    await order(site, "lamp", "hold", settles_as="failed")

    await expect(page.get_by_role("row").filter(has_text="order").get_by_text("held")).to_be_visible()


async def test_a_thousand_steps_are_laid_out_beside_the_page(site: Site, page: Page) -> None:
    async with site.rota.workflow("large") as flow:
        steps: list[Any] = []
        for place in range(1000):
            after = [steps[place - 100]] if place >= 100 else []
            steps.append(flow.step(site.tasks.charge.call(f"o-{place}"), name=f"step {place}", after=after))
    await page.goto(f"/workflows/{flow.id}")

    await expect(page.get_by_role("tab", name="Steps (1,000)")).to_be_visible()
    await expect(page.locator(".react-flow__node").first).to_be_visible()
