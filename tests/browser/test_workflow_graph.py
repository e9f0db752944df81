"""The graph of a workflow: what of it is shown, and that the view moves where it should and nowhere else."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.async_api import Browser, FloatRect, Locator, Page, expect

from tests.browser import keyboard
from tests.browser.conftest import PHONE
from tests.browser.site import Site, close_page, open_page
from tests.browser.test_workflows import order, until_state


async def chain(site: Site, length: int) -> str:
    """Steps one after the other, each of which goes on when the test allows it."""
    async with site.rota.workflow("chain") as flow:
        steps: list[Any] = []
        for place in range(length):
            steps.append(flow.step(site.tasks.download.call(f"part-{place}"), name=f"part {place}", after=steps[-1:]))
    return flow.id


async def fan(site: Site, width: int) -> str:
    """Many like steps between two others."""
    async with site.rota.workflow("pictures") as flow:
        fetched = flow.step(site.tasks.charge.call("fetch"), name="fetch")
        sizes = [
            flow.step(site.tasks.charge.call(f"{place}"), name=f"size {place}", after=[fetched])
            for place in range(width)
        ]
        flow.step(site.tasks.pack.call("album"), name="publish", after=sizes)
    return flow.id


def graph_of(page: Page) -> Locator:
    return page.get_by_role("group", name="Graph of the steps")


def lines_of(page: Page) -> Locator:
    return page.locator(".react-flow__edge")


async def spot_of(card: Locator) -> FloatRect:
    box = await card.bounding_box()
    assert box is not None
    return box


async def offset_in_graph(page: Page, card: Locator) -> tuple[float, float]:
    """Where a card is within the graph, which itself moves down when a line appears above it."""
    outer, inner = await spot_of(graph_of(page)), await spot_of(card)
    return inner["x"] - outer["x"], inner["y"] - outer["y"]


async def view_of(page: Page) -> str:
    """Where the view is, and how large it shows."""
    return await page.locator(".react-flow__viewport").evaluate("plane => plane.style.transform")


async def drag(page: Page, by: int) -> None:
    """Moves the plane of the graph, at a place where no card is."""
    box = await spot_of(graph_of(page))
    x, y = box["x"] + box["width"] / 2, box["y"] + 20
    await page.mouse.move(x, y)
    await page.mouse.down()
    await page.mouse.move(x + by, y, steps=5)
    await page.mouse.up()
    # The last of the steps is drawn with a later frame.
    await page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


async def test_a_card_leads_to_its_job(site: Site, page: Page) -> None:
    await site.start_worker()
    flow_id = await order(site, "lamp", "hold", settles_as="failed")
    await page.goto(f"/workflows/{flow_id}")

    await graph_of(page).get_by_role("link", name="pack failed").click()

    await expect(page.get_by_role("heading", level=1)).to_have_text(f"orders:{flow_id}.1")


async def test_what_is_done_is_hidden_and_shown_with_the_mouse(site: Site, page: Page) -> None:
    await site.start_worker()
    flow_id = await order(site, "lamp", "hold", settles_as="failed")
    await page.goto(f"/workflows/{flow_id}")
    await expect(lines_of(page)).to_have_count(3)

    await page.get_by_role("button", name="Hide completed").click()

    await expect(graph_of(page).get_by_role("link", name="charge completed")).to_have_count(0)
    await expect(graph_of(page).get_by_role("link", name="pack failed")).to_be_in_viewport()
    await expect(lines_of(page)).to_have_count(1)
    await expect(page.get_by_text("1 step hidden")).to_be_visible()
    await expect(page).to_have_url(f"{site.url}/workflows/{flow_id}?hideDone=true")

    site.allow("lamp")
    await page.get_by_role("button", name="Resume").click()

    await expect(page.get_by_text("All steps are completed")).to_be_visible()
    await page.get_by_role("button", name="Show 3 steps").click()
    await expect(graph_of(page).get_by_role("link", name="ship completed")).to_be_in_viewport()
    await expect(page).to_have_url(f"{site.url}/workflows/{flow_id}")


async def test_what_is_done_is_hidden_and_shown_with_keys(site: Site, page: Page) -> None:
    await site.start_worker()
    flow_id = await order(site, "lamp", "hold", settles_as="failed")
    await page.goto(f"/workflows/{flow_id}")
    charge = graph_of(page).get_by_role("link", name="charge completed")

    await keyboard.press(page, page.get_by_role("button", name="Hide completed", pressed=False))
    await expect(charge).to_have_count(0)

    await keyboard.press(page, page.get_by_role("button", name="Hide completed", pressed=True), "Space")
    await expect(charge).to_be_visible()


async def test_many_like_steps_are_one_card_that_is_opened_and_closed_with_the_mouse(site: Site, page: Page) -> None:
    flow_id = await fan(site, 40)
    await page.goto(f"/workflows/{flow_id}")
    card = graph_of(page).get_by_role("button", name="charge × 40")
    await expect(card).to_contain_text("40 blocked")
    await expect(lines_of(page)).to_have_count(2)
    await site.start_worker()
    await expect(card).to_contain_text("40 completed")

    before = await offset_in_graph(page, card)
    await card.click()

    await expect(graph_of(page).get_by_role("link", name="size ")).to_have_count(40)
    await expect(lines_of(page)).to_have_count(2)
    await expect(page).to_have_url(re.compile(r"\?open=%5B1%5D$"))
    assert await offset_in_graph(page, card) == pytest.approx(before, abs=5)

    await card.click()

    await expect(graph_of(page).get_by_role("link", name="size ")).to_have_count(0)
    await expect(page).to_have_url(f"{site.url}/workflows/{flow_id}")


async def test_a_group_is_opened_and_closed_with_keys(site: Site, page: Page) -> None:
    flow_id = await fan(site, 8)
    await page.goto(f"/workflows/{flow_id}")
    sizes = graph_of(page).get_by_role("link", name="size ")

    await keyboard.press(page, graph_of(page).get_by_role("button", name="charge × 8"))
    await expect(sizes).to_have_count(8)
    await page.keyboard.press("Enter")
    await expect(sizes).to_have_count(0)

    await keyboard.press(page, page.get_by_role("button", name="Expand all groups"))
    await expect(sizes).to_have_count(8)
    await page.reload()
    await expect(sizes).to_have_count(8)


async def test_what_is_done_of_an_open_group_is_hidden(site: Site, page: Page) -> None:
    async with site.rota.workflow("pictures", on_failure="hold") as flow:
        for place in range(10):
            flow.step(site.tasks.pack.call("ready" if place < 7 else "missing"), name=f"size {place}")
    site.allow("ready")
    await site.start_worker()
    await until_state(site, flow.id, "failed")
    await page.goto(f"/workflows/{flow.id}?hideDone=true")
    await expect(graph_of(page).get_by_role("button", name="pack × 10 3 failed 7 completed")).to_be_visible()
    await expect(page.get_by_text("hidden")).to_have_count(0)

    await page.get_by_role("button", name="Expand all groups").click()

    await expect(graph_of(page).get_by_role("link", name="size ")).to_have_count(3)
    await expect(graph_of(page).get_by_role("button", name="pack × 10 (3 shown)")).to_be_visible()
    await expect(page.get_by_text("7 steps hidden")).to_be_visible()


async def test_the_view_follows_what_runs_until_the_reader_moves_it(site: Site, page: Page) -> None:
    flow_id = await chain(site, 30)
    for place in range(12):
        site.allow(f"part-{place}")
    await site.start_worker()
    await page.goto(f"/workflows/{flow_id}")
    # All thirty are in view, and too small to be read.
    await expect(graph_of(page).get_by_role("link")).to_have_count(0)

    await page.get_by_role("button", name="Follow running steps").click()
    await expect(graph_of(page).get_by_role("link", name="part 12 processing")).to_be_in_viewport()
    await expect(page).to_have_url(f"{site.url}/workflows/{flow_id}?follow=true")
    for place in range(12, 25):
        site.allow(f"part-{place}")
    await expect(graph_of(page).get_by_role("link", name="part 25 processing")).to_be_in_viewport()

    await drag(page, 40)
    await expect(page.get_by_role("button", name="Follow running steps", pressed=False)).to_be_visible()
    await expect(page).to_have_url(f"{site.url}/workflows/{flow_id}")
    before = await view_of(page)
    for place in range(25, 29):
        site.allow(f"part-{place}")
    await expect(page.get_by_role("note")).to_contain_text("29 of 30 steps done")
    assert await view_of(page) == before


async def test_the_view_follows_what_runs_with_keys(site: Site, page: Page) -> None:
    flow_id = await chain(site, 30)
    for place in range(20):
        site.allow(f"part-{place}")
    await site.start_worker()
    await page.goto(f"/workflows/{flow_id}")

    await keyboard.press(page, page.get_by_role("button", name="Follow running steps"))
    await expect(graph_of(page).get_by_role("link", name="part 20 processing")).to_be_in_viewport()

    await keyboard.press(page, page.get_by_role("button", name="Zoom Out"))
    await expect(page.get_by_role("button", name="Follow running steps", pressed=False)).to_be_visible()


async def test_what_the_reader_looks_at_stays_while_steps_before_it_are_hidden(site: Site, page: Page) -> None:
    flow_id = await chain(site, 5)
    await site.start_worker()
    await page.goto(f"/workflows/{flow_id}?hideDone=true")
    await expect(graph_of(page).get_by_role("link", name="part 0 processing")).to_be_visible()
    await drag(page, 60)
    part = graph_of(page).get_by_role("link", name="part 2")
    before = await offset_in_graph(page, part)

    site.allow("part-0")
    await expect(graph_of(page).get_by_role("link", name="part 0")).to_have_count(0)

    assert await offset_in_graph(page, part) == pytest.approx(before, abs=2)


async def test_a_card_that_gets_the_focus_comes_into_view(site: Site, page: Page) -> None:
    flow_id = await chain(site, 5)
    await page.goto(f"/workflows/{flow_id}")
    last = graph_of(page).get_by_role("link", name="part 4")
    await expect(last).to_be_in_viewport()
    await drag(page, 900)
    await expect(last).not_to_be_in_viewport()

    await keyboard.reach(page, last)

    await expect(last).to_be_in_viewport()


async def test_only_a_large_graph_has_a_map_and_none_on_a_phone(site: Site, page: Page, browser: Browser) -> None:
    small, large = await chain(site, 12), await chain(site, 13)
    small_map = page.get_by_role("img", name="Minimap of the graph")
    await page.goto(f"/workflows/{large}")
    await expect(small_map).to_be_visible()
    await page.goto(f"/workflows/{small}")
    await expect(graph_of(page).get_by_role("link")).to_have_count(12)
    await expect(small_map).to_have_count(0)

    phone = await open_page(browser, site.url, viewport=PHONE, reduced_motion="reduce")
    site.watch(phone)
    await phone.goto(f"/workflows/{large}?view=graph")
    await expect(phone.locator(".react-flow__node")).to_have_count(13)
    await expect(phone.get_by_role("img", name="Minimap of the graph")).to_have_count(0)
    await close_page(phone)
