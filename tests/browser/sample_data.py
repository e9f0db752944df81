"""Something for every page: jobs in every state, workflows, a paused queue, a lock, a scaling decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rota import Cron, Job, JobState, Rota
from rota.autoscaler.config import AutoscalerConfig
from rota.autoscaler.planner import Planner
from rota.core.autoscaling.policy_settings import DrainTime
from tests.autoscaler.cloud import Cloud
from tests.browser.site import Site

PEOPLE = ("ann", "ben", "cat", "dan", "eve", "flo", "gus", "hal", "ida", "joe")


@dataclass
class SampleData:
    """What was put there, by what it shows."""

    jobs: dict[str, Job[Any]] = field(default_factory=dict)
    workflows: dict[str, str] = field(default_factory=dict)

    def paths(self) -> dict[str, str]:
        """Every page, and the pages of what is there."""
        return {
            "overview": "/",
            "jobs": "/jobs",
            "jobs-failed": "/jobs?state=FAILED",
            "new-job": "/jobs/new",
            "new-job-task": "/jobs/new?task=greet",
            **{f"job-{name}": f"/jobs/{job.id}" for name, job in self.jobs.items()},
            "job-log": f"/jobs/{self.jobs['processing'].id}?view=log",
            "job-history": f"/jobs/{self.jobs['failed'].id}?view=history",
            "workflows": "/workflows",
            **{f"workflow-{name}": f"/workflows/{flow}" for name, flow in self.workflows.items()},
            "workflow-timeline": f"/workflows/{self.workflows['undone']}?view=timeline",
            "workflow-steps": f"/workflows/{self.workflows['held']}?view=steps",
            "dead": "/dead",
            "queues": "/queues",
            "queue": "/queues/mail",
            "task": "/tasks/bounce",
            "operations": "/operations",
            "tokens": "/tokens",
            "workers": "/workers",
            "scaling": "/scaling",
            "schedules": "/schedules",
            "locks": "/locks",
            "audit": "/audit",
        }


async def create_sample_data(site: Site) -> SampleData:
    """Puts it there, with a real worker."""
    await site.start_worker()
    found = SampleData()
    tasks, rota = site.tasks, site.rota
    await rota.enqueue_many(tasks.greet.call(f"{name}@example.com") for name in PEOPLE * 4)
    await rota.enqueue_many(tasks.bounce.call(f"{name}@gone.example") for name in PEOPLE[:6])
    found.jobs["completed"] = await tasks.greet.using(tags=["welcome", "vip"]).enqueue("zoe@example.com")
    found.jobs["failed"] = await tasks.stumble.using(tags=["nightly"]).enqueue("the horse")
    found.jobs["processing"] = await tasks.download.using(lock="disk:1").enqueue("atlas")
    found.jobs["blocked"] = await tasks.download.using(lock="disk:1", id="second-atlas").enqueue("atlas-2")
    found.jobs["scheduled"] = await tasks.greet.using(delay=3600, priority="high").enqueue("tom@example.com")
    cancelled = await tasks.greet.using(delay=60).enqueue("una@example.com")
    await cancelled.cancel("not needed any more")
    found.jobs["cancelled"] = cancelled
    found.workflows["completed"] = await _order(rota, tasks, "book", site, is_in_stock=True)
    found.workflows["held"] = await _order(rota, tasks, "lamp", site, on_failure="hold")
    found.workflows["undone"] = await _order(rota, tasks, "sofa", site, on_failure="undo")
    await rota.schedules.put("nightly-report", Cron("0 3 * * *", "Europe/Oslo"), tasks.greet.call("boss@example.com"))
    await site.until(found.jobs["completed"], JobState.COMPLETED)
    await site.until(found.jobs["failed"], JobState.FAILED)
    await site.until(found.jobs["processing"], JobState.PROCESSING)
    await new_planner(site, is_dry_run=True).run_once()
    await rota.queue("chores").pause()
    await tasks.greet.using(queue="chores").enqueue("later@example.com")
    return found


def new_planner(site: Site, cloud: Cloud | None = None, *, is_dry_run: bool = False) -> Planner:
    """A planner for the queue mail, with one job per worker and machines in memory.

    It plans when something changes, and hardly ever by itself.
    """
    policy = DrainTime(
        interval_ms=30_000,
        boot_ms=0,
        down_cooldown_ms=0,
        worker_slots=1,
        assumed_run_ms=30_000,
        target_wait_ms=60_000,
        max_workers=3,
    )
    config = AutoscalerConfig(provider="exec", policy=policy, queues=("mail",), is_dry_run=is_dry_run)
    return Planner(site.rota, cloud or Cloud(), config)


async def _order(rota: Rota, tasks: Any, order: str, site: Site, *, is_in_stock: bool = False, **options: Any) -> str:
    if is_in_stock:
        site.allow(order)
    async with rota.workflow("order", **options) as flow:
        paid = flow.step(tasks.charge.call(order), name="charge")
        if options.get("on_failure") != "hold":
            paid.undo(tasks.refund.call(paid.result))
        packed = flow.step(tasks.pack.call(order), name="pack", after=[paid])
        flow.step(tasks.ship.call(packed.result, paid.result), name="ship")

    async def has_settled() -> bool:
        return await rota.workflows.get(flow.id).state() in ("completed", "failed", "undone")

    await site.eventually(has_settled)
    return flow.id
