"""Queues, workers, locks, workflows, schedules, dead letters, the audit log: looked at and acted upon over HTTP."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from fastapi import FastAPI

from rota import Every, Rota
from rota.client.session import checked_session, session_of, sessions_of
from rota.core.schedule import FireDecision, decode_schedule
from rota.monitoring.prometheus import metrics_text
from rota.server.auth.api_tokens import Role, Tokens
from rota.store.autoscaler_lease_decisions_and_demand import PlannerInfo, ScalingDecision
from rota.store.schedules import ScheduleStore
from tests.client.manual_worker import Hand
from tests.server.api import Api, open_api
from tests.server.test_bulk_operations import ended
from tests.server.test_jobs import handle
from tests.servers import Server


async def changes(api: Api) -> list[tuple[str, str]]:
    """What the audit log says was done, the latest first."""
    entries = (await api.ask("GET", "/api/audit"))["entries"]
    return [(entry["action"], entry["target"]) for entry in entries]


# --- queues and workers ------------------------------------------------------------------------------------------


async def test_a_queue_is_paused_resumed_and_purged(api: Api, rota: Rota) -> None:
    for delay in (0, 0, 60):
        await api.enqueue(queue="mail", delay=delay)

    (queue,) = (await api.ask("GET", "/api/queues"))["queues"]
    assert (queue["name"], queue["is_paused"], queue["stats"]["PENDING"]) == ("mail", False, 2)
    assert queue["oldest_pending_ms"] >= 0
    assert (await api.ask("POST", "/api/queues/mail/pause"))["queue"]["is_paused"] is True
    assert (await api.ask("GET", "/api/queues/mail"))["queue"]["is_paused"] is True
    assert (await api.ask("POST", "/api/queues/mail/resume"))["queue"]["is_paused"] is False

    dry = await api.ask("POST", "/api/queues/mail/purge", json={})
    assert (dry["is_dry_run"], dry["waiting"], dry["purged"]) == (True, 3, 0)
    await api.ask("POST", "/api/queues/mail/purge", json={"confirm": "mial"}, status=422)
    assert (await api.ask("POST", "/api/queues/mail/purge", json={"confirm": "mail"}))["purged"] == 3
    assert sum((await rota.queue("mail").counts()).values()) == 0
    assert await changes(api) == [(action, "queue mail") for action in ("purge", "resume", "pause")]


@pytest.mark.parametrize("path", ["", "/pause", "/resume", "/purge"])
async def test_a_queue_that_was_never_used_is_unknown(api: Api, path: str, rota: Rota) -> None:
    method = "POST" if path else "GET"
    said = await api.ask(method, f"/api/queues/nowhere{path}", json={}, status=404)

    assert "nowhere" in said["detail"]
    assert await rota.queues() == []


@pytest.mark.requirement("S2-23")
async def test_workers_are_shown_with_their_queues_and_last_registration(api: Api, hand: Hand) -> None:
    """Id, queues, ALIVE or DEAD, an ISO time."""
    info = {"state": "active", "queues": ["mail", "images"], "slots": 10, "busy": 0, "host": "h", "pid": 7}
    await hand.store.renew_registration(json.dumps(info))

    (worker,) = (await api.ask("GET", "/api/workers"))["workers"]

    assert (worker["status"], worker["queues"], worker["slots"], worker["busy"]) == (
        "ALIVE",
        ["mail", "images"],
        10,
        0,
    )
    assert worker["last_seen"].endswith("Z")


async def test_a_worker_shows_what_it_runs_now_whatever_it_last_said(api: Api, rota: Rota, hand: Hand) -> None:
    running, ended = [await handle(rota, await api.enqueue(queue="mail")) for _ in range(2)]
    said = [{"job": ended.id, "run": ended.run, "task": "example", "attempt": 1}]
    info = {"state": "active", "queues": ["mail"], "slots": 3, "busy": 3, "version": "1.2", "running": said}
    await hand.store.renew_registration(json.dumps(info))
    claimed = await hand.take(running)
    await hand.store.save_progress("mail", [(claimed.run, claimed.claim, "1", "4", "first")])
    await hand.finish(ended)

    worker = (await api.ask("GET", "/api/workers/w1"))["worker"]

    assert (worker["version"], worker["busy"]) == ("1.2", 1)
    (job,) = worker["running"]
    assert (job["jobId"], job["run"], job["type"], job["attempt"]) == (running.id, running.run, "example", 1)
    assert job["progress"]["percent"] == 25
    assert job["claimed_at"].endswith("Z")
    await api.ask("GET", "/api/workers/nobody", status=404)


async def test_what_a_worker_claimed_ahead_of_its_slots_is_not_running(api: Api, rota: Rota, hand: Hand) -> None:
    jobs = [await handle(rota, await api.enqueue(queue="mail")) for _ in range(3)]
    await hand.store.renew_registration(json.dumps({"state": "active", "queues": ["mail"], "slots": 2}))
    for job in jobs:
        await hand.take(job)

    (worker,) = (await api.ask("GET", "/api/workers"))["workers"]

    assert worker["busy"] == 2
    assert [job["jobId"] for job in worker["running"]] == [job.id for job in jobs[:2]]


async def test_who_runs_more_than_one_look_finds_is_as_busy_as_it_said(
    api: Api, rota: Rota, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.store.reads.MAX_LEASES", 2)
    monkeypatch.setattr("rota.store.reads.LEASE_BATCH", 1)
    for queue in ("images", "mail", "mail"):
        await hand.take(await handle(rota, await api.enqueue(queue=queue)))
    await hand.store.renew_registration(
        json.dumps({"state": "active", "queues": ["images", "mail"], "slots": 9, "busy": 3})
    )

    (worker,) = (await api.ask("GET", "/api/workers"))["workers"]

    assert worker["busy"] == 3
    assert [job["jobId"].partition(":")[0] for job in worker["running"]] == ["images", "mail"]


async def test_of_many_new_runs_the_names_are_read_some_at_a_time(
    api: Api, rota: Rota, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.monitoring.running_jobs_by_worker.MAX_NEW", 1)
    jobs = [await handle(rota, await api.enqueue(queue="mail")) for _ in range(2)]
    await hand.store.renew_registration(json.dumps({"state": "active", "queues": ["mail"], "slots": 2}))
    for job in jobs:
        await hand.take(job)

    shown = [(await api.ask("GET", "/api/workers/w1"))["worker"] for _ in range(2)]

    assert [(worker["busy"], len(worker["running"])) for worker in shown] == [(2, 1), (2, 2)]


async def test_a_worker_is_drained_over_http(api: Api, hand: Hand) -> None:
    await hand.store.renew_registration(json.dumps({"state": "active", "queues": ["mail"]}))

    for _ in range(2):
        answer = await api.ask("POST", "/api/workers/w1/drain")
        assert answer["worker"]["state"] == "draining"

    assert (await changes(api))[0] == ("drain", "worker w1")
    assert await hand.store.renew_registration(json.dumps({"state": "stopped", "queues": ["mail"]})), (
        "the reply requests a drain"
    )
    assert (await api.ask("POST", "/api/workers/w1/drain", status=409))["state"] == "STOPPED"
    await api.ask("POST", "/api/workers/nobody/drain", status=404)


async def test_scaling_has_backlog_waits_due_jobs_and_workers(api: Api, hand: Hand) -> None:
    for delay in (0, 0, 30, 200, 800):
        await api.enqueue(queue="mail", delay=delay)
    await api.enqueue(queue="images")
    await hand.store.renew_registration(json.dumps({"state": "active", "queues": ["mail"], "slots": 4, "busy": 0}))

    answer = await api.ask("GET", "/api/scaling")

    mail = next(one for one in answer["queues"] if one["queue"] == "mail")
    assert (mail["backlog"], mail["due_in_1m"], mail["due_in_5m"], mail["due_in_15m"]) == (2, 1, 2, 3)
    assert (mail["workers"], mail["slots"], mail["busy"]) == (1, 4, 0)
    assert mail["oldest_wait_ms"] >= 0
    assert mail["arrivals_per_second"] > 0
    total = answer["total"]
    assert (total["backlog"], total["workers"], total["idle_workers"], total["busy_workers"]) == (3, 1, 1, 0)


@pytest.mark.requirement("S0-7")
async def test_the_settings_of_the_namespace_are_shown_and_changed(api: Api, rota: Rota) -> None:
    before = await api.ask("GET", "/api/settings")
    assert (before["version"], before["changed_at"], before["set"]) == (0, None, [])

    after = await api.ask("PATCH", "/api/settings", json={"lease_ms": 30_000, "poll_ms": 10_000})

    assert (after["version"], after["lease_ms"], after["poll_ms"]) == (1, 30_000, 10_000)
    assert after["set"] == ["lease", "poll"]
    refused = await api.ask("PATCH", "/api/settings", json={"heartbeat_ms": 20_000}, status=422)
    assert "a third of the lease" in refused["detail"]
    assert (await rota.settings.get()).version == 1
    restored = await api.ask("PATCH", "/api/settings", json={"lease_ms": None, "poll_ms": None})
    assert (restored["lease_ms"], restored["set"]) == (4_500, [])
    assert await changes(api) == [("change", "settings")] * 2


async def test_the_autoscaler_is_shown_and_changed(api: Api, rota: Rota) -> None:
    await api.enqueue(queue="mail")
    nothing = await api.ask("GET", "/api/scaling")
    assert (nothing["planner"], nothing["latest"], nothing["decisions"]) == (None, None, [])
    store = session_of(rota).scaling
    fence = (await store.take_lease("p1", PlannerInfo(host="h", provider="local", max_workers=5))).fence
    for wanted in (1, 2, 3):
        round_ = ScalingDecision(at=1, wanted=wanted, normal=4, reasons=["4 jobs wait."], launched=["i-1"])
        await store.record(fence, wanted, round_, is_kept=True)

    answer = await api.ask("PATCH", "/api/scaling", json={"is_paused": True, "max_workers": 3})
    assert (answer["settings"]["is_paused"], answer["settings"]["max_workers"]) == (True, 3)
    assert answer["settings"]["changed"] == ["max_workers", "is_paused"]
    assert (await changes(api))[0] == ("change", "autoscaler")
    await api.ask("PATCH", "/api/scaling", json={"min_workers": 4}, status=422)
    await store.take_lease("p1", PlannerInfo(host="h", provider="local", max_workers=3, is_paused=True))
    resumed = await api.ask("PATCH", "/api/scaling", json={"is_paused": None})
    assert not resumed["settings"]["is_paused"], "the planner has not reported it yet"
    first = await api.ask("GET", "/api/scaling?limit=2")
    rest = await api.ask("GET", f"/api/scaling?limit=2&cursor={first['cursor']}")
    assert (first["planner"]["id"], first["latest"]["wanted"], first["latest"]["backlog"]) == ("p1", 3, 4)
    assert [one["wanted"] for one in first["decisions"] + rest["decisions"]] == [3, 2, 1]
    assert (rest["cursor"], rest["actions"]) == (None, ["change", "dry_run"])
    await store.take_lease("p2", PlannerInfo())
    assert (await api.ask("GET", "/api/scaling"))["standby"] == ["p2"]

    assert (await api.ask("GET", "/api/scaling/mail"))["desired"] == 1
    await api.ask("GET", "/api/scaling/nothing", status=404)
    text = await metrics_text(rota)
    assert 'rota_autoscaler_workers{state="wanted"} 3' in text
    assert "rota_autoscaler_decisions_total 3" in text
    assert 'rota_autoscaler_limit_workers{bound="max"} 3' in text
    assert "rota_autoscaler_oldest_wait_seconds 0" in text


async def test_the_history_of_the_pool_is_read_per_step(api: Api, rota: Rota) -> None:
    store = (await checked_session(rota)).scaling
    fence = (await store.take_lease("p1", PlannerInfo())).fence
    now = (await store.read()).now
    for number, wanted in ((1, 2), (2, 4)):
        round_ = ScalingDecision(at=now, wanted=wanted, running=2, normal=9, oldest_wait_ms=1500, launch_count=1)
        await store.record(fence, number, round_, is_kept=True)

    answer = await api.ask("GET", "/api/metrics/scaling?since=3600&step=3600")

    *before, last = answer["points"]
    assert (last["wanted"], last["running"], last["backlog"], last["oldest_wait_ms"]) == (4, 2, 9, 1500)
    assert (last["launched"], last["drained"]) == (2, 0)
    assert [point["wanted"] for point in before] == [None] * len(before)
    assert (answer["step_ms"], len(answer["points"])) == (3_600_000, 2)
    await api.ask("GET", "/api/metrics/scaling?step=1", status=422)


async def test_a_dry_run_needs_a_planner(api: Api) -> None:
    said = await api.ask("POST", "/api/scaling/dry-run", json={}, status=409)
    assert "`rota autoscale`" in said["detail"]
    await api.ask("POST", "/api/scaling/dry-run", json={"min_workers": 5, "max_workers": 1}, status=422)


async def test_a_token_for_some_queues_does_not_see_the_pool(guarded: FastAPI, rota: Rota) -> None:
    store = (await checked_session(rota)).scaling
    fence = (await store.take_lease("p1", PlannerInfo())).fence
    await store.record(fence, 1, ScalingDecision(at=1, wanted=1), is_kept=True)
    token, _ = await Tokens(rota).create(Role.OPERATOR, queues=["mail"])
    async with open_api(guarded, token=token) as api:
        answer = await api.ask("GET", "/api/scaling")
        assert (answer["planner"], answer["decisions"], answer["actions"]) == (None, [], [])
        await api.ask("PATCH", "/api/scaling", json={"is_paused": True}, status=403)
        await api.ask("POST", "/api/scaling/dry-run", json={}, status=403)
        await api.ask("GET", "/api/metrics/scaling", status=403)


# --- locks -------------------------------------------------------------------------------------------------------


async def test_locks_show_who_holds_and_who_waits(api: Api, rota: Rota, hand: Hand) -> None:
    ids = [await api.enqueue(queue="mail", id=f"j{number}", lock="account:7") for number in range(3)]
    await api.enqueue(queue="images", lock="other")
    await hand.take(await handle(rota, ids[0]))

    found = (await api.ask("GET", "/api/locks"))["locks"]

    assert [lock["name"] for lock in found] == ["other", "account:7"]
    held = found[1]
    assert held["holder"].startswith(ids[0])
    assert held["since"] is not None
    assert (held["waiting"], [waiter.partition("@")[0] for waiter in held["waiters"]]) == (2, ids[1:])
    assert found[0]["since"] is None
    (one,) = (await api.ask("GET", "/api/locks", params={"queue": "mail", "lock": "account:7"}))["locks"]
    assert one == held
    assert (await api.ask("GET", "/api/locks", params={"lock": "nobody"}))["locks"] == []


async def test_many_locks_are_paged(api: Api, rota: Rota) -> None:
    @rota.task
    def hold() -> None: ...

    await rota.enqueue_many([hold.using(lock=f"lock {number}").call() for number in range(700)])

    seen: set[str] = set()
    cursor: str | None = None
    pages = 0
    while pages == 0 or cursor is not None:
        page = await api.ask("GET", "/api/locks", params={"limit": 50, **({"cursor": cursor} if cursor else {})})
        seen |= {lock["name"] for lock in page["locks"]}
        cursor, pages = page["cursor"], pages + 1
    assert len(seen) == 700
    assert pages > 2
    for bad in ("x", "default:x", "default:-1", "nowhere:1", "default:" + "9" * 30):
        await api.ask("GET", "/api/locks", params={"cursor": bad}, status=422)


# --- workflows ---------------------------------------------------------------------------------------------------

ORDER: dict[str, Any] = {
    "name": "order",
    "steps": [
        {
            "name": "pay",
            "type": "charge",
            "data": {"order": 7},
            "undo": {"type": "refund", "data": [{"$result": "pay"}]},
        },
        {"name": "label", "type": "print_label", "after": ["pay"]},
        {
            "name": "ship",
            "type": "ship",
            "data": {"paid": {"$result": "pay"}, "n": [1]},
            "after": ["label"],
            "attempts": 1,
        },
    ],
}


async def test_a_workflow_is_built_run_and_shown_with_its_graph(api: Api, rota: Rota, hand: Hand) -> None:
    made = (await api.ask("POST", "/api/workflows", json=ORDER, status=201))["workflow"]
    assert (made["state"], made["on_failure"], made["total"]) == ("RUNNING", "undo", 3)
    assert [(step["name"], step["after"]) for step in made["steps"]] == [("pay", []), ("label", [0]), ("ship", [0, 1])]
    assert [step["status"] for step in made["steps"]] == ["PENDING", "BLOCKED", "BLOCKED"]

    await hand.finish(await handle(rota, made["steps"][0]["jobId"]), "receipt")
    await session_of(rota).notify_dependents("default")

    shown = (await api.ask("GET", f"/api/workflows/{made['id']}"))["workflow"]
    assert [step["status"] for step in shown["steps"]] == ["COMPLETED", "PENDING", "BLOCKED"]
    assert shown["steps"][0]["started_at"] is not None
    assert shown["steps"][0]["undo"]["state"] == "none"
    assert (shown["done"], shown["actions"]) == (1, ["cancel"])
    (listed,) = (await api.ask("GET", "/api/workflows", params={"state": "RUNNING"}))["workflows"]
    assert listed["id"] == made["id"]
    assert (await api.ask("GET", "/api/workflows", params={"state": "FAILED"}))["workflows"] == []


async def test_a_workflow_is_cancelled_and_undone(api: Api, rota: Rota, hand: Hand) -> None:
    made = (await api.ask("POST", "/api/workflows", json=ORDER, status=201))["workflow"]
    await hand.finish(await handle(rota, made["steps"][0]["jobId"]), "receipt")
    await session_of(rota).notify_dependents("default")

    await api.ask("POST", f"/api/workflows/{made['id']}/cancel")
    flows = (await checked_session(rota)).workflows
    await session_of(rota).notify_dependents("default")
    await flows.drive(made["id"])

    shown = (await api.ask("GET", f"/api/workflows/{made['id']}"))["workflow"]
    assert shown["state"] == "UNDOING"
    assert shown["steps"][0]["undo"]["state"] == "waiting"
    undo = await rota.job(shown["steps"][0]["undo"]["jobId"]).refresh()
    assert (undo.task, undo.arguments) == ("refund", b'["receipt"]')
    assert ("cancel", f"workflow {made['id']}") in await changes(api)


async def test_a_held_workflow_is_resumed(api: Api, rota: Rota, hand: Hand) -> None:
    steps = [{"type": "one", "attempts": 1}, {"type": "two"}]
    body = {"name": "held", "id": "held-1", "on_failure": "hold", "steps": steps}
    made = (await api.ask("POST", "/api/workflows", json=body, status=201))["workflow"]
    await api.ask("POST", "/api/workflows", json=body, status=409)
    await api.ask("POST", "/api/workflows/held-1/resume", status=409)
    await hand.kill_off(await handle(rota, made["steps"][0]["jobId"]))
    await session_of(rota).notify_dependents("default")
    await (await checked_session(rota)).workflows.drive("held-1")
    shown = (await api.ask("GET", "/api/workflows/held-1"))["workflow"]
    assert (shown["state"], shown["actions"]) == ("FAILED", ["cancel", "resume"])
    assert "one" in shown["cause"]

    await api.ask("POST", "/api/workflows/held-1/resume")

    assert (await changes(api))[0] == ("resume", "workflow held-1")


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"name": "x", "steps": []}, "steps"),
        ({"name": "x y", "steps": [{"type": "a"}]}, "name"),
        ({"name": "x", "steps": [{"type": "a", "after": ["b"]}]}, "no earlier step"),
        ({"name": "x", "steps": [{"type": "a", "data": {"v": {"$result": "b"}}}]}, "no earlier step"),
        ({"name": "x", "steps": [{"type": "a", "data": {"v": {"$result": 7}}}]}, "no earlier step"),
        ({"name": "x", "steps": [{"type": "a", "name": "s"}, {"type": "b", "name": "s"}]}, "unique name"),
        ({"name": "x", "steps": [{"type": "a", "dependencies": ["nobody"]}]}, "nobody"),
        ({"name": "x", "limit": 0, "steps": [{"type": "a"}]}, "limit"),
        ({"name": "x", "id": "", "steps": [{"type": "a"}]}, "id"),
    ],
)
async def test_a_workflow_that_makes_no_sense_is_refused_and_leaves_nothing(
    api: Api, rota: Rota, body: dict[str, Any], complaint: str
) -> None:
    refused = await api.ask("POST", "/api/workflows", json=body, status=422)

    assert complaint in refused["detail"]
    assert await rota.workflows.list() == []
    assert all(sum(info.counts.values()) == 0 for info in await rota.queues())


async def test_workflows_are_listed_by_name_and_state_page_by_page(api: Api, rota: Rota) -> None:
    for number in range(5):
        body = {"name": "odd" if number % 2 else "even", "id": f"w{number}", "steps": [{"type": "a"}]}
        await api.ask("POST", "/api/workflows", json=body, status=201)
    await api.ask("POST", "/api/workflows/w2/cancel")

    async def walk(**asked: Any) -> list[str]:
        found: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            params = {"limit": 2, **asked, **({"cursor": cursor} if cursor else {})}
            page = await api.ask("GET", "/api/workflows", params=params)
            found += [flow["id"] for flow in page["workflows"]]
            cursor = page["cursor"]
        return found

    assert await walk() == ["w4", "w3", "w2", "w1", "w0"]
    assert await walk(name="even") == ["w4", "w2", "w0"]
    assert await walk(state="RUNNING", name="even") == ["w4", "w0"]
    await api.ask("GET", "/api/workflows", params={"cursor": "x"}, status=422)


async def test_a_failed_step_shows_its_attempts_and_is_tried_again(api: Api, rota: Rota, hand: Hand) -> None:
    body = {"name": "x", "id": "held-2", "on_failure": "hold", "steps": [{"type": "one"}, {"type": "two"}]}
    made = (await api.ask("POST", "/api/workflows", json=body, status=201))["workflow"]
    job_id = made["steps"][0]["jobId"]
    assert (made["steps"][0]["executions"], made["steps"][0]["actions"]) == ([], [])
    await hand.kill_off(await handle(rota, job_id), "no money")
    await session_of(rota).notify_dependents("default")
    await (await checked_session(rota)).workflows.drive("held-2")

    step = (await api.ask("GET", "/api/workflows/held-2"))["workflow"]["steps"][0]

    assert [(one["outcome"], one["worker"]) for one in step["executions"]] == [("failed", "w1")]
    assert (step["error"]["message"], step["actions"]) == ("no money", ["redrive"])
    await api.ask("POST", f"/api/jobs/{job_id}/redrive")
    await (await checked_session(rota)).workflows.drive("held-2")
    assert (await rota.workflows.get("held-2").state()) == "running"


async def test_an_unknown_workflow_is_a_404(api: Api) -> None:
    for method, path in (("GET", ""), ("POST", "/cancel"), ("POST", "/resume")):
        await api.ask(method, f"/api/workflows/nobody{path}", status=404)


# --- schedules ---------------------------------------------------------------------------------------------------


async def test_a_schedule_is_paused_resumed_run_and_removed(api: Api, rota: Rota) -> None:
    @rota.task(queue="mail")
    def report(to: str, password: str = "") -> None: ...

    await rota.schedules.put("nightly", Every(timedelta(hours=1)), report.call("ada", password="hunter2"))

    (listed,) = (await api.ask("GET", "/api/schedules"))["schedules"]
    assert (listed["id"], listed["type"], listed["is_paused"]) == ("mail:nightly", "report", False)
    assert len(listed["next_runs"]) == 5
    assert listed["words"] == "every 1 h"
    assert "hunter2" not in listed["data"]
    assert (await api.ask("POST", "/api/schedules/nightly/pause"))["schedule"]["is_paused"] is True
    assert (await api.ask("POST", "/api/schedules/mail:nightly/resume"))["schedule"]["is_paused"] is False
    job_id = (await api.ask("POST", "/api/schedules/nightly/run"))["jobId"]
    assert (await api.job(job_id))["status"] == "PENDING"
    await api.ask("DELETE", "/api/schedules/nightly")
    await api.ask("GET", "/api/schedules/nightly", status=404)
    await api.ask("POST", "/api/schedules/nightly/run", status=404)
    assert [action for action, _ in await changes(api)] == ["remove", "run", "resume", "pause"]


async def test_a_schedule_is_put_over_http_and_shown_in_any_zone(api: Api, rota: Rota) -> None:
    body = {
        "rule": {"cron": "0 3 * * *", "tz": "Europe/Oslo"},
        "type": "report",
        "queue": "mail",
        "data": {"who": "ada"},
    }

    made = (await api.ask("PUT", "/api/schedules/nightly", json={**body, "lock": "l", "overlap": "skip"}))["schedule"]

    assert (made["id"], made["overlap"], len(made["next_runs"])) == ("mail:nightly", "skip", 5)
    assert {run[11:16] for run in made["next_runs"]} == {"03:00"}
    shown = (await api.ask("GET", "/api/schedules/nightly", params={"tz": "Asia/Tokyo"}))["schedule"]
    assert {run[-6:] for run in shown["next_runs"]} == {"+09:00"}
    await api.ask("GET", "/api/schedules", params={"tz": "Nowhere/None"}, status=422)
    again = (await api.ask("PUT", "/api/schedules/mail:nightly", json={**body, "rule": {"every": 60}}))["schedule"]
    assert again["words"] == "every 1 min"
    assert len((await api.ask("GET", "/api/schedules"))["schedules"]) == 1
    assert (await changes(api))[0] == ("put", "schedule mail:nightly")
    await api.ask("PUT", "/api/schedules/images:nightly", json=body, status=422)
    for wrong in ({"rule": {"cron": "61 * * * *"}}, {"rule": {"cron": "* * * * *", "tz": "X"}}, {"delay": 3}, {"x": 1}):
        await api.ask("PUT", "/api/schedules/other", json={**body, **wrong}, status=422)


async def test_a_schedule_is_changed_and_keeps_the_rest(api: Api, rota: Rota) -> None:
    @rota.task(queue="mail")
    def report(who: str, password: str = "") -> None: ...

    call = report.using(lock="l", priority="high").call("ada", password="hunter2")
    await rota.schedules.put("nightly", Every(timedelta(hours=1)), call, overlap="skip")
    shown = (await api.ask("GET", "/api/schedules/nightly"))["schedule"]

    masked = json.loads(shown["data"])["password"]
    change = {"rule": {"every": 120}, "data": {"who": "bob", "password": masked}}
    changed = (await api.ask("PATCH", "/api/schedules/nightly", json=change))["schedule"]

    assert (changed["words"], changed["overlap"]) == ("every 2 min", "skip")
    info = await rota.schedules.get("nightly")
    assert info.kwargs == {"who": "bob", "password": "hunter2"}
    job = await rota.schedules.run_now("nightly")
    record = await job.refresh()
    assert (record.options.lock, record.options.priority) == ("l", -10)
    entry = (await api.ask("GET", "/api/audit"))["entries"][0]
    assert (entry["action"], entry["before"]["words"], entry["after"]["words"]) == (
        "change",
        "every 1 h",
        "every 2 min",
    )
    assert "hunter2" not in json.dumps(entry)
    await api.ask("PATCH", "/api/schedules/nobody", json={}, status=404)


async def test_a_rule_is_tried_out_before_it_is_put(api: Api, rota: Rota) -> None:
    body = {"rule": {"cron": "30 9 * * 1", "tz": "Europe/Oslo"}, "tz": "UTC", "count": 3}

    said = await api.ask("POST", "/api/schedules/preview", json=body)

    assert len(said["next_runs"]) == 3
    assert {run[-6:] for run in said["next_runs"]} == {"+00:00"}
    assert "09:30" in said["words"]
    assert (await api.ask("GET", "/api/schedules"))["schedules"] == []
    await api.ask("POST", "/api/schedules/preview", json={"rule": {"every": 0.1}}, status=422)


async def test_the_latest_runs_of_a_schedule_are_shown_with_what_became_of_them(
    api: Api, rota: Rota, valkey: Server
) -> None:
    @rota.task(queue="mail")
    def report() -> None: ...

    await rota.schedules.put("nightly", Every(timedelta(hours=1)), report.call())
    assert (await api.ask("GET", "/api/schedules/nightly/runs"))["runs"] == []
    ticker = ScheduleStore(session_of(rota).store.redis, sessions_of(rota).keys)
    _, (stored,) = await ticker.read("mail", ["nightly"])
    known, state = decode_schedule("mail", "nightly", stored.record)
    assert stored.tick is not None
    tick = stored.tick - 3_600_000
    with valkey.client() as client:
        client.zadd(sessions_of(rota).keys.queue("mail", "schedule_due"), {"nightly": tick})
    assert (await ticker.fire(known, state.revision, tick, FireDecision((tick,), 0, stored.tick))).outcome == "fired"

    runs = (await api.ask("GET", "/api/schedules/nightly/runs", params={"tz": "Asia/Tokyo", "limit": 3}))["runs"]

    assert [run["status"] for run in runs] == ["PENDING", None, None]
    assert runs[0]["at"].endswith("+09:00")


async def test_the_forecast_counts_jobs_by_hour_for_one_queue_or_for_all(api: Api, rota: Rota) -> None:
    @rota.task(queue="mail")
    def report() -> None: ...

    await rota.schedules.put("often", Every(60), report.call())
    await rota.schedules.put("others", Every(1), report.using(queue="images").call())
    for queue in ("mail", "images", "images"):
        await api.enqueue(queue=queue, delay=86_400)

    answer = await api.ask("GET", "/api/schedules/forecast")

    assert (len(answer["hours"]), answer["uncounted"]) == (168, 0)
    assert answer["hours"][0]["at"] <= answer["at"] < answer["hours"][1]["at"]
    assert {hour["runs"] for hour in answer["hours"][1:]} == {3660}
    assert sum(hour["due"] for hour in answer["hours"]) == 3
    mail = (await api.ask("GET", "/api/schedules/forecast", params={"queue": "mail", "hours": 48}))["hours"]
    assert (len(mail), mail[1]["runs"], sum(hour["due"] for hour in mail)) == (48, 60, 1)
    await api.ask("GET", "/api/schedules/forecast", params={"hours": 169}, status=422)


async def test_a_limited_token_gets_the_forecast_of_its_own_queues(rota: Rota, guarded: FastAPI) -> None:
    @rota.task(queue="mail")
    def report() -> None: ...

    await rota.schedules.put("often", Every(60), report.call())
    await rota.schedules.put("others", Every(1), report.using(queue="images").call())
    text, _ = await Tokens(rota).create(Role.VIEWER, queues=["mail"])

    async with open_api(guarded, token=text) as limited:
        answer = await limited.ask("GET", "/api/schedules/forecast")
        await limited.ask("GET", "/api/schedules/forecast", params={"queue": "images"}, status=403)

    assert answer["hours"][1]["runs"] == 60


# --- dead letters ------------------------------------------------------------------------------------------------


async def test_dead_letters_are_grouped_by_error_and_redriven_by_group(api: Api, rota: Rota, hand: Hand) -> None:
    dead: list[str] = []
    for number in range(3):
        dead.append(await api.enqueue("send", queue="mail", attempts=1, data={"password": "hunter2"}))
        await hand.kill_off(await handle(rota, dead[-1]), f"no route to host {number}")
    dead.append(await api.enqueue("fetch", queue="mail", attempts=1))
    await hand.kill_off(await handle(rota, dead[-1]), "not found")

    answer = await api.ask("GET", "/api/dead/groups", params={"samples": 1})
    groups = answer["groups"]
    assert [(g["error"], g["count"], g["queue"]) for g in groups] == [
        ("ValueError", 3, "mail"),
        ("ValueError", 1, "mail"),
    ]
    assert [job["jobId"] for job in groups[0]["samples"]] == [dead[2]]
    assert "hunter2" not in json.dumps(answer)
    assert answer["total"] == 4
    listed = await api.ask("GET", "/api/dead", params={"group": groups[1]["id"]})
    assert [job["jobId"] for job in listed["jobs"]] == dead[3:]

    dry = await api.ask("POST", "/api/dead/redrive", json={"group": groups[0]["id"], "dry_run": True}, status=202)
    assert (await ended(api, dry["operation"]["id"]))["matched"] == 3
    one = await api.ask("POST", "/api/dead/redrive", json={"group": groups[0]["id"]}, status=202)
    assert (await ended(api, one["operation"]["id"]))["done"] == 3
    rest = await api.ask("POST", "/api/dead/redrive", json={"per_second": 100}, status=202)
    assert (await ended(api, rest["operation"]["id"]))["done"] == 1
    assert (await api.ask("GET", "/api/jobs/stats"))["stats"]["FAILED"] == 0


# --- audit -------------------------------------------------------------------------------------------------------


async def test_the_audit_log_says_who_did_what_and_is_paged(api: Api) -> None:
    ids = [await api.enqueue() for _ in range(3)]
    for job_id in ids:
        await api.ask("POST", f"/api/jobs/{job_id}/cancel")
    await api.ask("DELETE", f"/api/jobs/{ids[0]}")

    first = await api.ask("GET", "/api/audit", params={"limit": 3})
    rest = await api.ask("GET", "/api/audit", params={"limit": 3, "cursor": first["cursor"]})

    entry = first["entries"][0]
    assert (entry["action"], entry["before"]["state"], entry["after"]) == ("delete", "CANCELLED", None)
    assert (entry["role"], entry["who"]) == ("admin", "local user")
    cancelled = first["entries"][1]
    assert (cancelled["before"]["state"], cancelled["after"]["state"]) == ("PENDING", "CANCELLED")
    assert [e["action"] for e in first["entries"] + rest["entries"]] == ["delete", "cancel", "cancel", "cancel"]
    assert rest["cursor"] is None
    for bad in ("x", "1-x", "-", "9" * 40 + "-1"):
        await api.ask("GET", "/api/audit", params={"cursor": bad}, status=422)


async def test_what_was_refused_is_not_in_the_audit_log(api: Api) -> None:
    await api.ask("POST", "/api/jobs/nobody/cancel", status=404)
    await api.enqueue()
    await api.ask("POST", "/api/queues/default/purge", json={})

    assert await changes(api) == []


# --- monitoring --------------------------------------------------------------------------------------------------


async def test_prometheus_scrapes_the_metrics_of_the_store(api: Api) -> None:
    await api.enqueue(queue="mail")

    scraped = await api.get("/metrics")

    assert scraped.headers["content-type"].startswith("text/plain")
    assert 'rota_queue_jobs{queue="mail",state="pending"} 1' in scraped.text


async def test_history_says_what_happened_from_step_to_step(api: Api, rota: Rota, hand: Hand) -> None:
    done, dead = await api.enqueue("send", queue="mail"), await api.enqueue("send", queue="mail", attempts=1)
    await api.enqueue("other", queue="images")
    await hand.finish(await handle(rota, done))
    await hand.kill_off(await handle(rota, dead))

    mail = await api.ask("GET", "/api/metrics/history", params={"queue": "mail", "since": 600})

    total = mail["total"]
    assert (total["enqueued"], total["completed"], total["dead"], total["failure_rate"]) == (2, 1, 1, 0.5)
    assert total["run"]["p50_ms"] is not None
    assert sum(point["enqueued"] for point in mail["points"]) == 2
    assert mail["step_ms"] == 60_000
    sent = await api.ask("GET", "/api/metrics/history", params={"queue": "mail", "type": "send"})
    assert (sent["total"]["enqueued"], sent["total"]["dead"]) == (2, 1)
    coarse = await api.ask("GET", "/api/metrics/history", params={"queue": "mail", "step": 30 * 86400})
    assert coarse["points"][-1]["enqueued"] == 2
    everything = await api.ask("GET", "/api/metrics/history")
    assert everything["total"]["enqueued"] == 3
    for bad in ({"since": 1}, {"step": 61}, {"since": 86400 * 31}, {"queue": "a b"}, {"since": "x"}):
        await api.ask("GET", "/api/metrics/history", params=bad, status=422)


async def test_the_audit_log_is_filtered(api: Api, rota: Rota) -> None:
    for queue in ("mail", "images"):
        await api.enqueue(queue=queue)
        for action in ("pause", "resume"):
            await api.ask("POST", f"/api/queues/{queue}/{action}")

    async def found(**asked: Any) -> list[tuple[str, str]]:
        entries = (await api.ask("GET", "/api/audit", params=asked))["entries"]
        return [(entry["action"], entry["target"]) for entry in entries]

    assert await found(action="pause") == [("pause", "queue images"), ("pause", "queue mail")]
    assert await found(target="mail", limit=1) == [("resume", "queue mail")]
    assert await found(who="nobody") == []
    assert await found(since="2100-01-01T00:00:00Z") == []
    assert await found(until="2020-01-01T00:00:00Z") == []
    assert len(await found(since="2020-01-01T00:00:00Z", until="2100-01-01T00:00:00Z")) == 4
    page = await api.ask("GET", "/api/audit", params={"action": "pause", "limit": 1})
    assert await found(action="pause", cursor=page["cursor"]) == [("pause", "queue mail")]


async def test_a_filter_is_completed_with_words_that_occur(api: Api, rota: Rota, hand: Hand) -> None:
    await hand.kill_off(await handle(rota, await api.enqueue("send", queue="mail", tags=["vip", "a b"])))
    await api.enqueue("resize", queue="images", tags=["big"])
    await hand.store.renew_registration(json.dumps({"state": "active", "queues": ["mail"]}))

    words = await api.ask("GET", "/api/suggestions")

    assert words["queues"] == ["images", "mail"]
    assert sorted(words["tasks"]) == ["resize", "send"]
    assert sorted(words["tags"]) == ["a b", "big", "vip"]
    assert words["workers"] == ["w1"]
    assert len(words["errors"]) == 1
    of_mail = await api.ask("GET", "/api/suggestions", params={"queue": "mail"})
    assert (of_mail["tasks"], sorted(of_mail["tags"])) == (["send"], ["a b", "vip"])
