"""What an operator does to one thing, without a mouse: reached with Tab, done with keys, verified in the store."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from playwright.async_api import Page, expect

from rota import Cron, JobState
from rota.server.auth.api_tokens import Role, Tokens
from tests.browser import keyboard
from tests.browser.site import Site
from tests.browser.test_job import button, dead_letter
from tests.browser.test_workflows import order, until_state


async def test_a_dead_letter_is_redriven_with_keys(site: Site, page: Page) -> None:
    await site.start_worker()
    job = await dead_letter(site)
    await page.goto(f"/jobs/{job.id}")

    await keyboard.press(page, button(page, "Redrive"))

    await expect(page.get_by_text(f"Redriven: {job.id}")).to_be_visible()
    assert [entry.verb for entry in await job.history()].count("redrive") == 1


async def test_a_dead_letter_is_edited_and_redriven_with_keys(site: Site, page: Page) -> None:
    await site.start_worker()
    job = await dead_letter(site)
    await page.goto(f"/jobs/{job.id}")

    await keyboard.press(page, button(page, "Edit and redrive"))
    await keyboard.reach(page, page.get_by_role("dialog").get_by_role("textbox"))
    await page.keyboard.press("Control+a")
    await page.keyboard.insert_text('{"to": "eve@gone.example"}')
    await keyboard.press(page, button(page, "Save and redrive"))

    await expect(page.get_by_role("note")).to_contain_text("no such mailbox: eve@gone.example")
    assert b"eve@gone.example" in (await job.refresh()).arguments


async def test_a_waiting_job_is_cancelled_with_keys(site: Site, page: Page) -> None:
    job = await site.tasks.greet.using(delay=3600).enqueue("ann")
    await page.goto(f"/jobs/{job.id}")

    await keyboard.press(page, button(page, "Cancel"))
    await keyboard.fill(page, page.get_by_label("Reason (stored with the job)"), "not needed")
    await keyboard.press(page, button(page, "Cancel job"))

    await expect(page.get_by_role("note")).to_contain_text("not needed")
    assert (await job.refresh()).state is JobState.CANCELLED


async def test_a_waiting_job_is_cancelled_with_the_mouse(site: Site, page: Page) -> None:
    job = await site.tasks.greet.using(delay=3600).enqueue("ann")
    await page.goto(f"/jobs/{job.id}")

    await button(page, "Cancel").click()
    await button(page, "Cancel job").click()

    await site.until(job, JobState.CANCELLED)


async def test_a_scheduled_job_is_run_now_with_keys(site: Site, page: Page) -> None:
    job = await site.tasks.greet.using(delay=3600).enqueue("ann")
    await page.goto(f"/jobs/{job.id}")

    await keyboard.press(page, button(page, "Run now"))

    await site.until(job, JobState.PENDING)


async def test_a_scheduled_job_is_rescheduled_with_keys(site: Site, page: Page) -> None:
    job = await site.tasks.greet.using(delay=60).enqueue("ann")
    before = (await job.refresh()).due_at or 0
    await page.goto(f"/jobs/{job.id}")

    await keyboard.choose(page, button(page, "More actions"), "Reschedule…")
    await keyboard.press(page, page.get_by_role("group", name="Quick delays").get_by_role("button").last)
    await expect(page.get_by_text(f"Updated: {job.id}")).to_be_visible()

    assert ((await job.refresh()).due_at or 0) > before + 60_000


async def test_the_priority_of_a_job_is_changed_with_keys(site: Site, page: Page) -> None:
    job = await site.tasks.greet.using(delay=3600).enqueue("ann")
    await page.goto(f"/jobs/{job.id}")

    await keyboard.choose(page, button(page, "More actions"), "Change priority…")
    await keyboard.fill(page, page.get_by_label("Number (-100 to 100)"), "-7")
    await keyboard.press(page, button(page, "Change priority"))
    await expect(page.get_by_text(f"Updated: {job.id}")).to_be_visible()

    assert (await job.refresh()).options.priority == -7


async def test_the_data_of_a_waiting_job_is_edited_with_keys(site: Site, page: Page) -> None:
    job = await site.tasks.greet.using(delay=3600).enqueue("ann")
    await page.goto(f"/jobs/{job.id}")

    await keyboard.choose(page, button(page, "More actions"), "Edit data…")
    await keyboard.reach(page, page.get_by_role("dialog").get_by_role("textbox"))
    await page.keyboard.press("Control+a")
    await page.keyboard.insert_text('{"to": "ben"}')
    await keyboard.press(page, button(page, "Save"))
    await expect(page.get_by_text(f"Updated: {job.id}")).to_be_visible()

    assert b"ben" in (await job.refresh()).arguments


async def test_the_data_of_a_waiting_job_is_edited_with_the_mouse(site: Site, page: Page) -> None:
    job = await site.tasks.greet.using(delay=3600).enqueue("ann")
    await page.goto(f"/jobs/{job.id}")

    await button(page, "More actions").click()
    await page.get_by_role("menuitem", name="Edit data…").click()
    await page.get_by_role("dialog").get_by_role("textbox").press("Control+a")
    await page.keyboard.insert_text('{"to": "ben"}')
    await button(page, "Save").click()
    await expect(page.get_by_text(f"Updated: {job.id}")).to_be_visible()

    assert b"ben" in (await job.refresh()).arguments


async def test_a_job_is_enqueued_with_keys(site: Site, page: Page) -> None:
    await page.goto("/jobs/new?task=greet")

    await keyboard.fill(page, page.get_by_label("to", exact=True), "Ada")
    await keyboard.fill(page, page.get_by_label("ID", exact=True), "letter-1")
    await keyboard.press(page, button(page, "Enqueue"))

    await expect(page.get_by_role("link", name="mail:letter-1")).to_be_visible()
    assert await site.rota.job("mail:letter-1").state() == JobState.PENDING


async def test_a_double_click_enqueues_one_job(site: Site, page: Page) -> None:
    await page.goto("/jobs/new?task=greet")
    await page.get_by_label("to", exact=True).fill("Ada")

    await button(page, "Enqueue").dblclick()

    await expect(page.get_by_role("main").get_by_role("link", name=re.compile("^mail:"))).to_be_visible()
    assert len((await site.rota.jobs()).jobs) == 1


async def test_a_held_workflow_is_resumed_with_keys(site: Site, page: Page) -> None:
    await site.start_worker()
    flow_id = await order(site, "lamp", "hold", settles_as="failed")
    await page.goto(f"/workflows/{flow_id}")
    site.allow("lamp")

    await keyboard.press(page, button(page, "Resume"))

    await until_state(site, flow_id, "completed")


async def test_one_step_is_retried_with_the_mouse(site: Site, page: Page) -> None:
    await site.start_worker()
    flow_id = await order(site, "lamp", "hold", settles_as="failed")
    await page.goto(f"/workflows/{flow_id}?view=steps")
    site.allow("lamp")

    await page.get_by_role("button", name="Retry pack").click()

    await until_state(site, flow_id, "completed")


async def test_a_workflow_is_cancelled_with_keys(site: Site, page: Page) -> None:
    await site.start_worker()
    flow_id = await order(site, "lamp", "hold", settles_as="failed")
    await page.goto(f"/workflows/{flow_id}")

    await keyboard.press(page, button(page, "Cancel"))
    await keyboard.press(page, page.get_by_label("Undo completed steps"), "Space")
    await keyboard.press(page, button(page, "Cancel workflow"))

    await until_state(site, flow_id, "cancelled")
    assert (await site.rota.workflows.get(flow_id).refresh()).undo_states == {}


async def park(site: Site) -> str:
    """A workflow whose compensation failed for good."""
    await site.start_worker()
    async with site.rota.workflow("order", on_failure="undo") as flow:
        paid = flow.step(site.tasks.charge.call("sofa"), name="charge")
        paid.undo(site.tasks.regret.call(paid.result))
        flow.step(site.tasks.pack.call("sofa"), name="pack", after=[paid])
    await until_state(site, flow.id, "parked")
    return flow.id


async def test_a_parked_compensation_is_found_from_the_overview_and_retried(site: Site, page: Page) -> None:
    flow_id = await park(site)
    await page.goto("/")
    await page.get_by_role("link", name="1 workflow half undone").click()
    note = page.get_by_role("note")
    await expect(note).to_contain_text("undoing charge keeps failing")
    await expect(note).to_contain_text("undo charge: ConnectionError the bank is closed")
    await expect(note.get_by_role("link", name="undo charge")).to_have_attribute("href", re.compile("/jobs/orders"))
    await page.get_by_role("tab", name="Steps").click()
    site.allow("regret")

    await page.get_by_role("button", name="Retry undo of charge").click()

    await until_state(site, flow_id, "undone")
    assert (await site.rota.workflows.get(flow_id).refresh()).undo_states[0].outcome == "completed"


async def test_a_parked_compensation_is_retried_with_keys(site: Site, page: Page) -> None:
    flow_id = await park(site)
    await page.goto(f"/workflows/{flow_id}?view=steps")
    site.allow("regret")

    await keyboard.press(page, page.get_by_role("button", name="Retry undo of charge"))

    await until_state(site, flow_id, "undone")


async def test_a_queue_is_paused_and_resumed_with_keys(site: Site, page: Page) -> None:
    await site.tasks.greet.enqueue("ann")
    await page.goto("/queues")
    queue = page.get_by_role("region", name="mail")

    await keyboard.press(page, queue.get_by_role("button", name="Pause"))
    await keyboard.press(page, page.get_by_role("dialog").get_by_role("button", name="Pause"))
    await expect(queue.get_by_text("paused", exact=True)).to_be_visible()
    assert (await site.rota.queue("mail").info()).is_paused

    await keyboard.press(page, queue.get_by_role("button", name="Resume"))
    await expect(queue.get_by_role("button", name="Pause")).to_be_visible()
    assert not (await site.rota.queue("mail").info()).is_paused


async def test_a_queue_is_purged_with_the_mouse(site: Site, page: Page) -> None:
    await site.tasks.greet.enqueue("ann")
    await page.goto("/queues")

    await page.get_by_role("button", name="More for mail").click()
    await page.get_by_role("menuitem", name="Purge").click()
    await page.get_by_label("Type mail to confirm").fill("mail")
    await page.get_by_role("dialog").get_by_role("button", name="Delete 1 job").click()

    await expect(page.get_by_text("1 job of mail deleted")).to_be_visible()
    assert sum((await site.rota.queue("mail").counts()).values()) == 0


async def test_a_worker_is_drained_with_keys(site: Site, page: Page) -> None:
    worker = await site.start_worker()
    await page.goto("/workers")

    await keyboard.press(page, page.get_by_role("list", name="Running workers").get_by_role("button", name="Drain"))
    await keyboard.press(page, page.get_by_role("dialog").get_by_role("button", name="Drain"))

    assert await worker.ended(20) == 0


async def test_a_schedule_is_made_edited_and_removed_with_keys(site: Site, page: Page) -> None:
    await page.goto("/schedules")
    await keyboard.press(page, button(page, "New schedule"))
    dialog = page.get_by_role("dialog")
    await keyboard.fill(page, dialog.get_by_label("Name"), "nightly")
    await keyboard.reach(page, dialog.get_by_label("Task"))
    await page.keyboard.type("greet")
    await keyboard.fill(page, dialog.get_by_label("Cron expression"), "0 4 * * *")
    await keyboard.fill(page, dialog.get_by_label("Time zone"), "UTC")
    await keyboard.fill(page, dialog.get_by_label("Data (JSON)"), '{"to": "ann"}')
    await keyboard.press(page, dialog.get_by_role("button", name="Create"))
    schedule = page.get_by_role("region", name="mail:nightly")
    await expect(schedule.get_by_text("at 04:00 every day, UTC")).to_be_visible()

    await keyboard.choose(page, page.get_by_role("button", name="More for nightly"), "Edit…")
    await keyboard.fill(page, dialog.get_by_label("Cron expression"), "0 5 * * *")
    await keyboard.press(page, dialog.get_by_role("button", name="Save"))
    await expect(schedule.get_by_text("at 05:00 every day, UTC")).to_be_visible()
    changed = await site.rota.schedules.get("nightly")
    assert (changed.rule, changed.kwargs) == (Cron("0 5 * * *", "UTC"), {"to": "ann"})

    await keyboard.choose(page, page.get_by_role("button", name="More for nightly"), "Remove…")
    await keyboard.press(page, dialog.get_by_role("button", name="Remove"))
    await expect(dialog).to_have_count(0)  # an open dialog hides the page from queries by role
    await expect(schedule).to_have_count(0)
    assert "nightly" not in [one.name for one in await site.rota.schedules.list()]
    # What is half typed is no rule yet, and the browser notes what the server says to it.
    site.ignore_problem("422")


async def test_a_schedule_is_edited_with_the_mouse(site: Site, page: Page) -> None:
    await site.rota.schedules.put("letters", Cron("30 2 * * *", "UTC"), site.tasks.greet.call("ann"))
    await page.goto("/schedules")

    await page.get_by_role("button", name="More for letters").click()
    await page.get_by_role("menuitem", name="Edit…").click()
    await page.get_by_role("dialog").get_by_label("Cron expression").fill("0 5 * * *")
    await page.get_by_role("dialog").get_by_role("button", name="Save").click()

    schedule = page.get_by_role("region", name="mail:letters")
    await expect(schedule.get_by_text("at 05:00 every day, UTC")).to_be_visible()
    assert (await site.rota.schedules.get("letters")).rule == Cron("0 5 * * *", "UTC")


async def test_a_schedule_is_paused_resumed_and_run_with_keys(site: Site, page: Page) -> None:
    await site.rota.schedules.put("letters", Cron("30 2 * * *", "UTC"), site.tasks.greet.call("ann"))
    await page.goto("/schedules")
    schedule = page.get_by_role("region", name="mail:letters")

    await keyboard.press(page, schedule.get_by_role("button", name="Run now"))
    await expect(page.get_by_role("region", name="Notifications").get_by_text("Enqueued")).to_be_visible()
    assert (await site.rota.queue("mail").counts())["pending"] == 1

    await keyboard.press(page, schedule.get_by_role("button", name="Pause"))
    await expect(schedule.get_by_role("button", name="Resume")).to_be_visible()
    assert (await site.rota.schedules.get("letters")).is_paused

    await keyboard.press(page, schedule.get_by_role("button", name="Resume"))
    await expect(schedule.get_by_role("button", name="Pause")).to_be_visible()
    assert not (await site.rota.schedules.get("letters")).is_paused


async def test_the_audit_log_is_filtered_with_keys(site: Site, page: Page) -> None:
    await site.tasks.greet.enqueue("ann")
    await page.request.post("/api/queues/mail/pause", headers={"Origin": site.url})
    await page.goto("/audit")
    changes = page.get_by_role("list", name="Changes").get_by_role("listitem")
    await expect(changes).to_have_count(1)

    await keyboard.fill(page, page.get_by_label("User"), "nobody")

    await expect(page.get_by_text("No changes match")).to_be_visible()


async def test_locks_are_filtered_with_keys_and_lead_to_their_jobs(site: Site, page: Page) -> None:
    holder = await site.tasks.greet.using(lock="smtp").enqueue("ann")
    await site.tasks.greet.using(lock="imap").enqueue("ben")
    await page.goto("/locks")
    locks = page.get_by_role("list", name="Locks")
    await expect(locks.get_by_text("imap")).to_be_visible()

    await keyboard.fill(page, page.get_by_label("Lock name"), "smtp")
    await expect(locks.get_by_text("imap")).to_have_count(0)
    await keyboard.press(page, locks.get_by_role("link", name=holder.id))

    await expect(page.get_by_role("heading", level=1)).to_have_text(holder.id)


async def test_a_user_logs_in_and_out_with_keys(guarded: Site, page: Page) -> None:
    token, _ = await Tokens(guarded.rota).create(Role.OPERATOR)
    await page.goto("/login")
    await expect(page.get_by_label("Token", exact=True)).to_be_focused()
    await page.keyboard.type(token)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("navigation", name="Pages")).to_be_visible()

    await keyboard.press(page, page.get_by_role("button", name="Account and settings"))
    await page.keyboard.press("End")
    await expect(page.get_by_role("menuitem", name="Log out")).to_be_focused()
    await page.keyboard.press("Enter")

    await expect(page.get_by_role("heading", name="Log in to Rota")).to_be_visible()
    assert (await page.request.get("/api/overview")).status == 401
    guarded.ignore_problem("401")


async def test_a_user_logs_out_with_the_mouse(guarded: Site, page: Page) -> None:
    await guarded.log_in(page, "operator")

    await page.get_by_role("button", name="Account and settings").click()
    await page.get_by_role("menuitem", name="Log out").click()

    await expect(page.get_by_role("heading", name="Log in to Rota")).to_be_visible()
    assert (await page.request.get("/api/overview")).status == 401
    guarded.ignore_problem("401")


async def test_a_time_is_chosen_with_the_mouse(site: Site, page: Page) -> None:
    job = await site.tasks.greet.using(delay=60).enqueue("ann")
    await page.goto(f"/jobs/{job.id}")
    await button(page, "More actions").click()
    await page.get_by_role("menuitem", name="Reschedule…").click()

    await page.get_by_role("group", name="Quick delays").get_by_role("button").last.click()
    await expect(page.get_by_text(f"Updated: {job.id}")).to_be_visible()

    due = datetime.fromtimestamp(((await job.refresh()).due_at or 0) / 1000, UTC)
    assert due > datetime.now(UTC) + timedelta(minutes=2)


async def test_a_view_is_saved_and_opened_with_keys(site: Site, page: Page) -> None:
    await site.tasks.greet.enqueue("ann")
    await page.goto("/jobs?queue=mail&state=PENDING")
    await keyboard.choose(page, page.get_by_role("button", name="Views"), "Save this view")
    await expect(page.get_by_label("Name")).to_be_focused()
    await page.keyboard.type("Letters")
    await page.keyboard.press("Enter")
    await page.goto("/jobs")

    await keyboard.choose(page, page.get_by_role("button", name="Views"), "Letters")

    await expect(page).to_have_url(re.compile("queue=mail"))


async def test_a_copy_is_enqueued_with_the_mouse(site: Site, page: Page) -> None:
    job = await site.tasks.greet.using(delay=3600).enqueue("ann")
    await page.goto(f"/jobs/{job.id}")

    await page.get_by_role("link", name="Enqueue a copy").click()
    await expect(page.get_by_label("to", exact=True)).to_have_value("ann")
    await button(page, "Enqueue").click()

    await expect(page.get_by_role("main").get_by_role("link", name=re.compile("^mail:"))).to_be_visible()
    assert len((await site.rota.jobs()).jobs) == 2


async def test_the_enter_key_pressed_twice_enqueues_one_job(site: Site, page: Page) -> None:
    await page.goto("/jobs/new?task=greet")
    await keyboard.fill(page, page.get_by_label("to", exact=True), "Ada")
    await keyboard.reach(page, button(page, "Enqueue"))

    await page.keyboard.press("Enter")
    await page.keyboard.press("Enter")

    await expect(page.get_by_role("main").get_by_role("link", name=re.compile("^mail:"))).to_be_visible()
    assert len((await site.rota.jobs()).jobs) == 1


async def test_the_zone_of_schedules_is_chosen_with_keys(site: Site, page: Page) -> None:
    await site.rota.schedules.put("letters", Cron("30 2 * * *", "America/New_York"), site.tasks.greet.call("ann"))
    await page.goto("/schedules")

    await keyboard.press(page, page.get_by_role("group", name="Times in").get_by_role("button", name="UTC"))

    await expect(page).to_have_url(f"{site.url}/schedules?zone=utc")
    await expect(page.get_by_role("region", name="mail:letters").get_by_text("02:30:00")).to_have_count(0)
