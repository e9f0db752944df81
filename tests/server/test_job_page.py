"""What the page of one job asks for: attempts, relatives, lock, place in a workflow, edit and redrive."""

from __future__ import annotations

import json
from typing import Any

from rota import Rota
from rota.client.session import checked_session, session_of
from tests.client.manual_worker import Hand
from tests.server.api import Api
from tests.server.test_jobs import handle


async def test_every_attempt_says_who_when_and_how_it_ended(api: Api, rota: Rota, hand: Hand) -> None:
    job = await handle(rota, await api.enqueue(queue="mail"))
    assert await hand.fail(await hand.take(job), "+0", message="no route") == "ok"
    claimed = await hand.take(job)

    detail = await api.job(job.id)

    assert [(one["attempt"], one["outcome"], one["worker"]) for one in detail["attempts"]] == [
        (1, "failed", "w1"),
        (2, "running", "w1"),
    ]
    first, second = detail["attempts"]
    assert "no route" in first["note"]
    assert first["started_at"] <= first["ended_at"] <= second["started_at"]
    assert second["ended_at"] is None
    await hand.complete(claimed, b"1")
    assert [one["outcome"] for one in (await api.job(job.id))["attempts"]] == ["failed", "completed"]
    assert [one.outcome for one in await job.attempts()] == ["failed", "completed"]
    assert detail["run_number"] == 1


async def test_attempts_before_a_redrive_are_listed_with_those_after_it(api: Api, rota: Rota, hand: Hand) -> None:
    job = await handle(rota, await api.enqueue(queue="mail", attempts=1))
    await hand.kill_off(job)
    await job.redrive()
    await hand.kill_off(job)
    await job.redrive()
    await hand.finish(job)

    attempts = (await api.job(job.id))["attempts"]

    assert [one["outcome"] for one in attempts] == ["failed", "failed", "completed"]
    assert [one["started_at"] for one in attempts] == sorted({one["started_at"] for one in attempts})


async def test_a_job_names_those_before_and_behind_it(api: Api, rota: Rota, hand: Hand) -> None:
    first = await api.enqueue(queue="mail", id="first")
    second = await api.enqueue(queue="images", id="second")
    waiting = [
        await api.enqueue(queue="mail", id=f"w{number}", dependencies=[first, {"job": second, "may_fail": True}])
        for number in range(3)
    ]

    before = (await api.ask("GET", f"/api/jobs/{waiting[0]}/dependencies"))["jobs"]
    assert [(one["jobId"], one["status"], one["may_fail"]) for one in before] == [
        (first, "PENDING", False),
        (second, "PENDING", True),
    ]
    page = await api.ask("GET", f"/api/jobs/{waiting[0]}/dependencies", params={"limit": 1})
    rest = await api.ask("GET", f"/api/jobs/{waiting[0]}/dependencies", params={"limit": 1, "cursor": page["cursor"]})
    assert ([*page["jobs"], *rest["jobs"]], rest["cursor"]) == (before, None)
    behind = (await api.ask("GET", f"/api/jobs/{first}/dependents"))["jobs"]
    assert sorted(one["jobId"] for one in behind) == waiting
    assert {one["status"] for one in behind} == {"BLOCKED"}
    assert (await api.ask("GET", f"/api/jobs/{waiting[0]}/dependents"))["jobs"] == []
    await api.ask("GET", f"/api/jobs/{first}/dependents", params={"cursor": "x"}, status=422)


async def test_a_job_says_how_its_lock_stands(api: Api, rota: Rota, hand: Hand) -> None:
    ids = [await api.enqueue(queue="mail", id=f"j{number}", lock="account:7") for number in range(3)]
    await hand.take(await handle(rota, ids[0]))

    lock = (await api.job(ids[2]))["lock_detail"]

    assert (lock["name"], lock["holder"].partition("@")[0], lock["waiting"]) == ("account:7", ids[0], 2)
    assert lock["since"] is not None
    assert (await api.job(await api.enqueue()))["lock_detail"] is None


async def test_a_job_knows_its_step_and_what_its_workflow_allows(api: Api, rota: Rota, hand: Hand) -> None:
    step = {"type": "example", "queue": "mail", "name": "charge"}
    flow = (await api.ask("POST", "/api/workflows", json={"name": "order", "steps": [step]}, status=201))["workflow"]
    job_id = flow["steps"][0]["jobId"]

    assert (await api.job(job_id))["step"] == {
        "workflow": flow["id"],
        "name": "charge",
        "index": 0,
        "item": None,
        "is_undo": False,
    }
    await hand.kill_off(await handle(rota, job_id))
    await session_of(rota).notify_dependents("mail")
    await (await checked_session(rota)).workflows.drive_due()
    assert "redrive" in (await api.job(job_id))["actions"]
    await api.ask("POST", f"/api/workflows/{flow['id']}/cancel")
    assert (await api.job(job_id))["actions"] == ["delete"], "its workflow is over"


async def test_a_dead_letter_is_edited_and_redriven_in_one_call(api: Api, rota: Rota, hand: Hand) -> None:
    stored = {"to": "a@b", "password": "x", "count": 2**63 + 1}
    job_id = await api.enqueue(queue="mail", data=stored)
    await api.ask("POST", f"/api/jobs/{job_id}/redrive", json={"data": {"to": "c@d"}}, status=409)
    await hand.kill_off(await handle(rota, job_id))
    shown = json.loads((await api.job(job_id))["data"])

    await api.ask("POST", f"/api/jobs/{job_id}/redrive", json={"data": {**shown, "to": "c@d"}})

    job = await api.job(job_id)
    assert job["status"] == "PENDING"
    arguments: Any = json.loads((await rota.job(job_id).refresh()).arguments)
    assert arguments == {**stored, "to": "c@d"}
    (entry,) = (await api.ask("GET", "/api/audit"))["entries"]
    assert (entry["action"], json.loads(entry["after"]["data"])["to"]) == ("redrive", "c@d")
    assert "x" not in entry["after"]["data"].replace("c@d", "")


async def test_no_number_loses_a_digit_on_its_way(api: Api, rota: Rota) -> None:
    """A browser would round what is beyond 2^53: so what jobs carry is also there as text."""
    large = 2**64 + 1
    job_id = await api.enqueue(data={"n": large}, meta={"n": large})

    job = await api.job(job_id)

    assert (job["data"], job["meta_text"]) == (f'{{"n":{large}}}', f'{{"n":{large}}}')


async def test_a_job_says_which_trace_it_belongs_to(api: Api, rota: Rota) -> None:
    @rota.task(queue="mail")
    def send() -> None: ...

    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    traced = await rota.enqueue(send.call().traced({"traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"}))
    hostile = await rota.enqueue(send.call().traced({"traceparent": "javascript:alert(1)"}))

    assert (await api.job(traced.id))["trace_id"] == trace_id
    assert (await api.job(hostile.id))["trace_id"] is None
    assert (await api.job(await api.enqueue()))["trace_id"] is None
