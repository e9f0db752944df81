"""Pausing a runaway task and a queue over HTTP: who, since when and why."""

from __future__ import annotations

import pytest

from rota import Rota
from rota.server import Role, create_app
from rota.server.auth.api_tokens import Tokens
from tests.client.manual_worker import Hand
from tests.server.api import Api, open_api
from tests.server.test_jobs import handle


async def test_a_task_is_paused_and_resumed(api: Api, rota: Rota, hand: Hand) -> None:
    runaway = await api.enqueue("runaway", queue="mail")
    await api.enqueue("send", queue="mail")

    paused = await api.ask("POST", "/api/tasks/runaway/pause", json={"note": "floods the partner"})
    claimed = await hand.store.claim("mail", 5, call_number=1, claim_token="t")

    assert [one["queue"] for one in paused["pauses"]] == ["mail"]
    assert len(claimed.jobs) == 1
    job = await api.job(runaway)
    assert (job["status"], job["obstacle"]["kind"]) == ("BLOCKED", "task_paused")
    assert job["explanation"] == "blocked: task runaway is paused; resume it and the job starts"
    (listed,) = (await api.ask("GET", "/api/tasks"))["paused_tasks"]
    assert (listed["task"], listed["waiting"], listed["paused"]["note"]) == ("runaway", 1, "floods the partner")
    assert listed["paused"]["by"]
    detail = await api.ask("GET", "/api/tasks/runaway/detail", params={"queue": "mail"})
    assert detail["paused_tasks"][0]["task"] == "runaway"
    (found,) = (one for one in (await api.ask("GET", "/api/overview"))["attention"] if one["kind"] == "paused_task")
    assert (found["level"], found["count"]) == ("notice", 1)

    assert (await api.ask("POST", "/api/tasks/runaway/resume"))["pauses"] == []
    assert (await api.job(runaway))["status"] == "PENDING"
    audited = [entry["action"] for entry in (await api.ask("GET", "/api/audit"))["entries"]]
    assert audited[:2] == ["resume", "pause"]


async def test_an_unknown_task_is_not_paused(api: Api) -> None:
    refused = await api.ask("POST", "/api/tasks/nothing/pause", status=422)

    assert "no queue has had a job of task 'nothing'" in refused["detail"]


async def test_a_queue_says_who_paused_it_since_when_and_why(api: Api) -> None:
    await api.enqueue(queue="mail")

    paused = (await api.ask("POST", "/api/queues/mail/pause", json={"note": "release"}))["queue"]["paused"]

    assert (paused["note"], bool(paused["by"]), bool(paused["at"])) == ("release", True, True)
    (queue,) = (await api.ask("GET", "/api/overview"))["queues"]
    assert queue["paused"] == paused
    assert (await api.ask("POST", "/api/queues/mail/resume"))["queue"]["paused"] is None


async def test_a_limited_token_pauses_a_task_in_its_own_queues_alone(rota: Rota, hand: Hand) -> None:
    text = (await Tokens(rota).create(Role.OPERATOR, queues=["mail"]))[0]
    async with open_api(create_app(rota), token=text) as limited, open_api(create_app(rota, auth="none")) as api:
        for queue in ("mail", "images"):
            await handle(rota, await api.enqueue("send", queue=queue))
        await api.ask("POST", "/api/tasks/send/pause", json={"queue": "images"})

        await limited.ask("POST", "/api/tasks/send/pause", status=403)
        await limited.ask("POST", "/api/tasks/send/pause", json={"queue": "images"}, status=403)
        paused = await limited.ask("POST", "/api/tasks/send/pause", json={"queue": "mail"})
        listed = await limited.ask("GET", "/api/tasks")

    assert [one["queue"] for one in paused["pauses"]] == ["mail"]
    assert [one["queue"] for one in listed["paused_tasks"]] == ["mail"]


@pytest.mark.parametrize("body", [{}, {"queue": "mail"}])
async def test_a_token_limited_to_tasks_pauses_and_resumes_only_these(rota: Rota, body: dict[str, str]) -> None:
    text = (await Tokens(rota).create(Role.OPERATOR, tasks=["send"]))[0]
    async with open_api(create_app(rota), token=text) as limited, open_api(create_app(rota, auth="none")) as api:
        for task in ("send", "shrink"):
            await api.enqueue(task, queue="mail")
        await api.ask("POST", "/api/tasks/shrink/pause")
        for change in ("pause", "resume"):
            hidden = await limited.ask("POST", f"/api/tasks/shrink/{change}", json=body, status=404)
            missing = await limited.ask("POST", f"/api/tasks/absent/{change}", json=body, status=404)
            assert hidden["detail"] == missing["detail"].replace("absent", "shrink")
        await limited.ask("POST", "/api/tasks/send/pause", json=body)
        listed = await api.ask("GET", "/api/tasks")
        await limited.ask("POST", "/api/tasks/send/resume", json=body)

    assert {one["task"] for one in listed["paused_tasks"]} == {"send", "shrink"}
    assert [one.task for one in await rota.paused_tasks()] == ["shrink"]
