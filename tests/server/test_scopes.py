"""Tokens limited to queues and tasks: they run nothing else, and refusals do not disclose what exists."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI

from rota import Every, Rota
from rota.server import Role
from rota.server.auth.api_tokens import Tokens
from tests.client.manual_worker import Hand
from tests.server.api import Api, open_api
from tests.server.test_bulk_operations import start
from tests.server.test_jobs import handle


@pytest.fixture
async def limited(rota: Rota, guarded: FastAPI) -> AsyncIterator[Api]:
    """A client whose token is limited to the queue mail; tasks of mail and of images."""

    @rota.task(queue="mail")
    def send(text: str = "") -> None: ...

    @rota.task(queue="images")
    def shrink(text: str = "") -> None: ...

    await rota.schedules.put("nightly", Every(60), shrink.call())
    await rota.schedules.put("hourly", Every(60), send.call())
    text, _ = await Tokens(rota).create(Role.OPERATOR, queues=["mail"])
    async with open_api(guarded, token=text) as api:
        yield api


@pytest.mark.parametrize("task", ["shrink", "does_not_exist"])
async def test_a_queue_in_scope_does_not_let_a_task_of_another_queue_run(limited: Api, task: str) -> None:
    await limited.enqueue("send", queue="mail")
    rule = {"every": 60}
    refused = [
        await limited.ask("POST", "/api/jobs", json={"type": task, "queue": "mail"}, status=403),
        await limited.ask("POST", "/", json={"name": task, "queue": "mail"}, status=403),
        await limited.ask(
            "POST", "/api/workflows", json={"name": "w", "steps": [{"type": task, "queue": "mail"}]}, status=403
        ),
        await limited.ask("PUT", "/api/schedules/mail:x", json={"rule": rule, "type": task}, status=403),
    ]

    assert {one["detail"] for one in refused} == {
        f"this token may not run task {task!r}: see `rota token create --task`"
    }


async def test_a_token_may_be_limited_to_tasks(rota: Rota, guarded: FastAPI) -> None:
    text, _ = await Tokens(rota).create(Role.OPERATOR, queues=["mail"], tasks=["mail.*", "send"])
    async with open_api(guarded, token=text) as api:
        await api.enqueue("mail.welcome", queue="mail")
        await api.enqueue("send", queue="mail")
        await api.ask("POST", "/api/jobs", json={"type": "mailer", "queue": "mail"}, status=403)
        await api.ask("POST", "/api/jobs", json={"type": "send", "queue": "images"}, status=403)


async def test_a_refusal_does_not_disclose_what_exists(limited: Api, rota: Rota, app: FastAPI) -> None:
    async with open_api(app) as api:
        steps = [{"type": "send", "undo": {"type": "shrink"}}]
        hidden = (await api.ask("POST", "/api/workflows", json={"name": "w", "steps": steps}, status=201))["workflow"]
        where = {"action": "cancel", "where": {"queue": "images"}, "dry_run": True}
        operation = (await api.ask("POST", "/api/operations", json=where, status=202))["operation"]
    for exists, missing in (
        ("/api/schedules/nightly", "/api/schedules/daily"),
        (f"/api/workflows/{hidden['id']}", "/api/workflows/none"),
        (f"/api/operations/{operation['id']}", "/api/operations/0000000000000000"),
    ):
        first = await limited.ask("GET", exists, status=404)
        second = await limited.ask("GET", missing, status=404)

        assert first["code"] == second["code"]
        assert first["detail"].replace(exists.rpartition("/")[2], "") == second["detail"].replace(
            missing.rpartition("/")[2], ""
        )
    assert (await limited.ask("GET", "/api/schedules/hourly"))["schedule"]["id"] == "mail:hourly"


async def test_a_job_does_not_name_the_jobs_of_other_queues_that_it_waits_for(limited: Api, app: FastAPI) -> None:
    async with open_api(app) as api:
        other = await api.enqueue("shrink")
        own = await api.enqueue("send")
        job_id = await api.enqueue("send", dependencies=[other, own])

    for job in (await limited.job(job_id), (await limited.ask("GET", "/api/jobs?queue=mail&state=BLOCKED"))["jobs"][0]):
        assert job["dependencies"] == [own]
        assert other not in str(job)


async def test_a_token_neither_changes_nor_redrives_what_it_may_not_run(
    limited: Api, rota: Rota, app: FastAPI, hand: Hand
) -> None:
    async with open_api(app) as api:
        body = {"type": "shrink", "rule": {"every": 60}, "data": {"text": "a"}}
        await api.ask("PUT", "/api/schedules/mail:foreign", json=body)
        dead = await api.enqueue("shrink", queue="mail", attempts=1)
        await hand.kill_off(await handle(rota, dead))
        own = await api.enqueue("send", attempts=1)
        await hand.kill_off(await handle(rota, own))
        waiting = await api.enqueue("shrink", queue="mail", data={"text": "a"})
    new = {"data": {"text": "b"}}
    redrive = {"action": "redrive"}
    refused = [
        await limited.ask("PATCH", "/api/schedules/mail:foreign", json=new, status=403),
        await limited.ask("PATCH", "/api/schedules/foreign", json={"rule": {"every": 1}}, status=403),
        await limited.ask("PATCH", f"/api/jobs/{waiting}", json=new, status=403),
        await limited.ask("PATCH", f"/api/jobs/{dead}", json=new, status=403),
        await limited.ask("POST", f"/api/jobs/{dead}/redrive", status=403),
        await limited.ask("POST", f"/api/jobs/{dead}/redrive", json=new, status=403),
        await limited.ask("POST", "/api/operations", json={**redrive, "jobs": [own, dead]}, status=403),
        await limited.ask(
            "POST", "/api/operations", json={**redrive, "where": {"queue": "mail", "type": "shrink"}}, status=403
        ),
        await limited.ask("POST", "/api/dead/redrive", json={"queue": "mail", "type": "shrink"}, status=403),
    ]

    assert {one["detail"] for one in refused} == {
        "this token may not run task 'shrink': see `rota token create --task`"
    }
    assert (await limited.job(waiting))["data"] == '{"text":"a"}'
    assert (await limited.job(dead))["status"] == "FAILED"
    assert (await limited.ask("GET", "/api/schedules/foreign"))["schedule"]["words"] == "every 1 min"
    # Without a task it redrives what it may: the operation has one job, not two.
    assert (await start(limited, "redrive", {"queue": "mail"}))["matched"] == 1
    assert (await limited.job(dead))["status"] == "FAILED"
    assert (await limited.job(own))["status"] == "PENDING"
    await limited.ask("PATCH", f"/api/jobs/{own}", json=new)
    await limited.ask("PATCH", "/api/schedules/hourly", json=new)


async def test_a_token_limited_to_tasks_redrives_only_these(api: Api, rota: Rota, guarded: FastAPI, hand: Hand) -> None:
    own, other = [await api.enqueue(task, queue="mail", attempts=1) for task in ("send", "shrink")]
    for job_id in (own, other):
        await hand.kill_off(await handle(rota, job_id))
    text, _ = await Tokens(rota).create(Role.OPERATOR, tasks=["send"])
    async with open_api(guarded, token=text) as limited:
        both = {"action": "redrive", "jobs": [own, other]}
        await limited.ask("POST", "/api/operations", json=both, status=403)
        assert (await start(limited, "redrive", {"state": "FAILED"}))["matched"] == 1
        assert (await limited.job(own))["status"] == "PENDING"
        assert (await limited.job(other))["status"] == "FAILED"


async def test_a_token_limited_to_tasks_changes_no_workflow_or_schedule_of_others(
    api: Api, rota: Rota, guarded: FastAPI
) -> None:
    """A change can start any step or compensation, and the schedule's job."""
    await rota.schedules.put("nightly", Every(60), rota.task(_pay).call())
    with_step = await _workflow(api, {"type": "pay"})
    with_undo = await _workflow(api, {"type": "send", "undo": {"type": "pay"}})
    own = await _workflow(api, {"type": "send"})
    text, _ = await Tokens(rota).create(Role.OPERATOR, tasks=["send"])
    async with open_api(guarded, token=text) as limited:
        for workflow in (with_step, with_undo):
            for change in ("cancel", "resume"):
                await limited.ask("POST", f"/api/workflows/{workflow}/{change}", status=403)
        for change in ("pause", "resume"):
            await limited.ask("POST", f"/api/schedules/default:nightly/{change}", status=403)

        await limited.ask("POST", f"/api/workflows/{own}/cancel")


def _pay() -> None: ...


async def _workflow(api: Api, step: dict[str, object]) -> str:
    created = await api.ask("POST", "/api/workflows", json={"name": "w", "steps": [step]}, status=201)
    return created["workflow"]["id"]
