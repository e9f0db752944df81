"""Seed 2's dashboard, as its own pages spoke: it must find every field where it looked for it, as it was written."""

from __future__ import annotations

import json
from typing import Any

from rota import Rota
from rota.core.states import JobState
from tests.client.hands import Hand, move_to
from tests.server.api import Api


async def test_the_dashboard_creates_lists_watches_cancels_and_deletes_a_job(api: Api, rota: Rota, hand: Hand) -> None:
    """S2-1 to S2-8, S2-29: create (with the dependencies that its form never sent), list, progress, actions, stats."""
    first = await api.ask(
        "POST", "/api/jobs", json={"type": "example", "data": {"key": "value"}, "priority": "normal"}, status=201
    )
    assert first["success"] is True
    assert first["message"]
    ids = [job["jobId"] for job in (await api.ask("GET", "/api/jobs"))["jobs"]]
    assert ids == [first["jobId"]]

    second = await api.ask(
        "POST",
        "/api/jobs",
        json={"type": "example", "data": {"key": "value"}, "priority": "high", "dependencies": ids},
        status=201,
    )
    listed = await api.ask("GET", "/api/jobs")
    assert listed["job"] == listed["jobs"]
    assert {job["jobId"]: job["status"] for job in listed["jobs"]} == {
        first["jobId"]: "PENDING",
        second["jobId"]: "BLOCKED",
    }
    stats = (await api.ask("GET", "/api/jobs/stats"))["stats"]
    assert stats == {
        "PENDING": 1, "BLOCKED": 1, "SCHEDULED": 0, "PROCESSING": 0, "COMPLETED": 0, "FAILED": 0, "CANCELLED": 0,
    }  # fmt: skip

    claimed = await hand.take(rota.job(first["jobId"] + "@" + first["job"]["run"]))
    await hand.store.progress("default", [(claimed.run, claimed.claim, "3", "10", "")])
    job = await api.job(first["jobId"])
    assert (job["status"], job["progress"]) == ("PROCESSING", "30")
    assert await hand.complete(claimed, b'"Success Result"') == "ok"
    result = await api.ask("GET", f"/api/jobs/{first['jobId']}/result")
    assert (result["status"], result["result"]) == ("COMPLETED", "Success Result")

    cancelled = await api.ask("POST", f"/api/jobs/{second['jobId']}/cancel")
    assert cancelled["message"] == "Job Cancelled"
    deleted = await api.ask("DELETE", f"/api/jobs/{second['jobId']}")
    assert deleted == {"success": True, "message": "Job deleted successfully"}
    await api.ask("GET", f"/api/jobs/{second['jobId']}", status=404)


async def test_a_job_has_the_fields_of_the_document_as_texts(api: Api) -> None:
    """S2-3, S2-4."""
    job_id = await api.enqueue(data={"key": "value"}, priority="high")

    job = await api.job(job_id)

    shown = {name: job[name] for name in ("status", "type", "data", "retries", "progress")}
    assert shown == {
        "status": "PENDING", "type": "example", "data": '{"key":"value"}', "retries": "0", "progress": "0",
    }  # fmt: skip
    assert job["created_at"].isdecimal()
    assert json.loads(job["data"]) == {"key": "value"}


async def test_an_unknown_job_is_a_404_that_says_so(api: Api) -> None:
    """S2-4, S2-6, S2-7."""
    for method, path in (
        ("GET", "/api/jobs/nobody"),
        ("POST", "/api/jobs/nobody/cancel"),
        ("DELETE", "/api/jobs/nobody"),
        ("PATCH", "/api/jobs/nobody"),
        ("GET", "/api/jobs/nobody/result"),
        ("GET", "/api/jobs/nobody/logs"),
        ("GET", "/api/jobs/nobody/history"),
        ("POST", "/api/jobs/nobody/redrive"),
    ):
        body: dict[str, Any] = {"json": {"priority": 1}} if method == "PATCH" else {}
        said = await api.ask(method, path, status=404, **body)
        assert "default:nobody" in said["message"]


async def test_a_job_that_has_ended_cannot_be_cancelled(api: Api, rota: Rota, hand: Hand) -> None:
    """S2-6; section 12 says 409 where the seed said 400."""
    job_id = await api.enqueue()
    record = await rota.job(job_id).refresh()
    await move_to(rota.job(str(record.ref)), JobState.COMPLETED, hand)

    said = await api.ask("POST", f"/api/jobs/{job_id}/cancel", status=409)

    assert said["state"] == "COMPLETED"
    assert (await api.job(job_id))["status"] == "COMPLETED"


async def test_stats_work_when_jobs_have_dependencies(api: Api) -> None:
    """S2-8: the original failed with 500 then."""
    first = await api.enqueue()
    await api.enqueue(dependencies=[first])

    assert (await api.ask("GET", "/api/jobs/stats"))["stats"]["BLOCKED"] == 1


async def test_the_door_of_seed_0_stores_a_job(api: Api) -> None:
    """S0-1: success means stored."""
    answer = await api.ask("POST", "/", json={"name": "resize", "id": 7})

    job = await api.job(answer["jobId"])
    assert (answer["jobId"], job["type"], job["status"]) == ("default:7", "resize", "PENDING")
