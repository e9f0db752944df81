"""The timeline of a workflow: a bar for every attempt, and what was undone."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.browser.site import Site


async def test_every_attempt_of_a_step_and_what_undid_it_are_on_the_timeline(site: Site, page: Page) -> None:
    tasks = site.tasks
    await site.start_worker()
    async with site.rota.workflow("order", on_failure="undo") as flow:
        paid = flow.step(tasks.charge.call("lamp"), name="charge")
        paid.undo(tasks.refund.call(paid.result))
        flow.step(tasks.stumble.call("lamp"), name="stumble", after=[paid])

    async def is_undone() -> bool:
        return await site.rota.workflows.get(flow.id).state() == "undone"

    await site.eventually(is_undone)
    await page.goto(f"/workflows/{flow.id}?view=timeline")
    steps = page.get_by_role("list", name="Step timeline").get_by_role("listitem")

    await expect(steps.nth(1)).to_contain_text("3 attempts")
    await expect(steps.nth(1).get_by_title("failed,")).to_have_count(3)
    await expect(steps.nth(1).get_by_title("waited")).to_have_count(3)
    await expect(page.get_by_text("on the critical path")).to_have_count(2)
    undos = page.get_by_role("list", name="Compensations").get_by_role("listitem")
    await expect(undos).to_contain_text(["undo charge"])
    await expect(undos.get_by_title("attempt 1 completed")).to_have_count(1)
