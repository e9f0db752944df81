"""All data of jobs is shown as text: no stored value is ever executed in the browser."""

from __future__ import annotations

from typing import Final

from playwright.async_api import Dialog, Page, expect

from rota import JobState
from tests.browser.site import Site
from tests.browser.test_accessibility import settled

VECTORS: Final = (
    "<img src=x onerror=\"window.hacked='img'\">",
    "<script>window.hacked='script'</script>",
    '"><svg onload="window.hacked=\'svg\'">',
    "javascript:window.hacked='url'",
    "{{constructor.constructor('window.hacked=1')()}}",
    "'-window.hacked-'",
    "<a href=\"javascript:window.hacked='a'\">click</a>",
    "</script><script>window.hacked='end'</script>",
    "\u202egnp.exe\u0000\u001b[31m",
)
ALL: Final = " ".join(VECTORS)


async def test_hostile_texts_in_every_field_stay_texts(site: Site, page: Page) -> None:
    opened: list[str] = []

    def refuse(dialog: Dialog) -> None:
        opened.append(dialog.message)

    page.on("dialog", refuse)
    tasks, rota = site.tasks, site.rota
    await site.start_worker()
    hostile = tasks.spite.using(
        tags=[vector[:64].replace(" ", "_").replace("\u0000", "").replace("\u001b", "") for vector in VECTORS[:5]],
        meta=dict.fromkeys(VECTORS, ALL),
        lock="<img/src=x/onerror=window.hacked=1>",
    )
    failed = await hostile.enqueue(ALL)
    waiting = await tasks.greet.using(delay=600).enqueue(ALL, subject=ALL)
    await waiting.cancel(ALL[:500])
    done = await tasks.greet.enqueue(ALL)
    async with rota.workflow("hostile", on_failure="hold") as flow:
        flow.step(tasks.spite.call(ALL), name="step")
    await site.until(failed, JobState.FAILED)
    await site.until(done, JobState.COMPLETED)

    paths = [
        "/",
        "/jobs",
        f"/jobs?text={VECTORS[0]}",
        "/jobs?state=<script>",
        "/dead",
        "/queues",
        "/workers",
        "/schedules",
        "/locks",
        "/audit",
        "/workflows",
        f"/workflows/{flow.id}",
        "/workflows/<script>alert(1)<%2Fscript>",
        *(f"/jobs/{job.id}" for job in (failed, waiting, done)),
        f"/jobs/{failed.id}?tab=logs",
        "/jobs/mail:<img src=x onerror=alert(1)>",
        "/login?next=javascript:alert(1)",
        f"/jobs/new?from={failed.id}",
    ]
    for path in paths:
        await page.goto(path)
        await settled(page)
        assert await page.evaluate("window.hacked") is None, path

    await page.goto(f"/jobs/{failed.id}")
    await expect(page.get_by_text("<script>window.hacked='script'</script>").first).to_be_visible()
    assert opened == []
    # Asking for what does not exist is answered so, and the browser notes that.
    site.ignore_problem("the server responded with a status of 4")
