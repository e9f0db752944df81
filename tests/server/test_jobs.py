"""Job endpoints: every option, changes, results, logs, history, redrive."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from fastapi import FastAPI

from rota import Job, JobState, Rota
from rota.client.session import sessions_of
from rota.core.job_record import AttemptCounts
from rota.core.masking import MASK
from rota.server import create_app
from tests.client.manual_worker import Hand, move_to
from tests.server.api import Api, open_api


async def handle(rota: Rota, job_id: str) -> Job[Any]:
    """A job, pinned to its run."""
    return rota.job(str((await rota.job(job_id).refresh()).ref))


# --- enqueueing --------------------------------------------------------------------------------------------------


async def test_a_job_is_enqueued_with_every_option(api: Api, rota: Rota) -> None:
    first = await api.enqueue(queue="images")

    job_id = await api.enqueue(
        "resize",
        data={"width": 7},
        queue="mail",
        id="seven",
        priority=-3,
        delay=60,
        lock="user:7",
        tags=["a", "b"],
        meta={"who": "ada"},
        timeout=5,
        attempts=9,
        max_stalls=1,
        expires=600,
        dependencies=[first],
    )

    record = await rota.job(job_id).refresh()
    assert job_id == "mail:seven"
    assert (record.task, record.arguments) == ("resize", b'{"width":7}')
    assert (record.options.priority, record.options.lock, record.options.tags) == (-3, "user:7", ("a", "b"))
    assert (record.options.timeout_ms, record.options.attempts, record.options.max_stalls) == (5000, 9, 1)
    assert (record.options.meta, record.options.expires_ms) == ({"who": "ada"}, 600_000)
    assert record.options.after[0].startswith("images:")
    shown = await api.job(job_id)
    assert (shown["status"], shown["lock"], shown["limits"]["attempts"]) == ("BLOCKED", "user:7", 9)
    assert shown["obstacle"]["kind"] == "after"
    assert "waits for" in shown["explanation"]


async def test_every_count_of_a_job_is_shown(api: Api) -> None:
    shown = await api.job(await api.enqueue())

    assert set(AttemptCounts.__struct_fields__) <= shown.keys()


@pytest.mark.parametrize(
    ("data", "stored"),
    [
        ({"a": 1}, b'{"a":1}'),
        ([1, "b"], b'[1,"b"]'),
        ({}, b"[]"),
        ([], b"[]"),
        (None, b"[]"),
        ({"self": 1}, b'{"self":1}'),
    ],
)
async def test_data_is_named_arguments_or_positional_ones(api: Api, rota: Rota, data: Any, stored: bytes) -> None:
    job_id = await api.enqueue(data=data)

    assert (await rota.job(job_id).refresh()).arguments == stored


async def test_a_job_is_checked_against_what_workers_announced(api: Api, hand: Hand, rota: Rota) -> None:
    schema = {
        "$ref": "#/$defs/args",
        "$defs": {
            "args": {
                "type": "object",
                "properties": {"to": {"type": "string"}, "copies": {"type": "integer", "minimum": 1}},
                "required": ["to"],
                "additionalProperties": False,
            }
        },
    }
    said = {
        "queue": "mail",
        "schema": schema,
        "positional": ["to", "copies"],
        "index": ["to"],
        "options": {"priority": 4},
        "doc": "Sends.",
    }
    await hand.store.publish_tasks({"send": json.dumps(said)})

    job_id = await api.enqueue("send", data={"to": "a@b.c"})
    assert job_id.startswith("mail:")
    assert (await api.job(job_id))["priority"] == 4
    await api.enqueue("send", data=["a@b.c", 2])
    for data, field, reason in (
        ({}, "data.to", "is missing"),
        ({"to": 7}, "data.to", "must be string, not integer"),
        ({"to": "a", "copies": 0}, "data.copies", "must be at least 1, not 0"),
        ({"to": "a", "other": 1}, "data.other", "is not a known field"),
        ([], "data.to", "is missing"),
        (None, "data.to", "is missing"),
        (["a", "b"], "data.copies", "must be integer, not string"),
    ):
        refused = await api.ask("POST", "/api/jobs", json={"type": "send", "data": data}, status=422)
        assert f"{field}: {reason}" in refused["detail"]
        assert refused["errors"] == [{"source": "body", "field": field, "message": reason}]
    assert (await rota.queue("mail").counts())["pending"] == 2
    (task,) = (await api.ask("GET", "/api/tasks"))["tasks"]
    assert (task["name"], task["queue"], task["json_schema"], task["doc"]) == ("send", "mail", schema, "Sends.")
    assert task["index"] == ["to"]


async def test_a_program_checks_its_own_tasks(rota: Rota) -> None:
    @rota.task(queue="mail")
    def send(to: str, copies: int = 1) -> None:
        """Sends."""

    async with open_api(create_app(rota, auth="none")) as api:
        assert (await api.enqueue("send", data={"to": "a"})).startswith("mail:")
        refused = await api.ask("POST", "/api/jobs", json={"type": "send", "data": {"copies": 2}}, status=422)
        assert "missing argument `to`" in refused["detail"]
        assert refused["errors"] == [{"source": "body", "field": "data.to", "message": "missing argument `to`"}]
        assert [task["name"] for task in (await api.ask("GET", "/api/tasks"))["tasks"]] == ["send"]


async def test_the_same_id_again_does_what_was_asked_for(api: Api, rota: Rota) -> None:
    await api.enqueue(id="one", data=[1])
    again = await api.ask("POST", "/api/jobs", json={"type": "example", "id": "one", "data": [2]}, status=201)
    assert again["is_new"] is False
    assert again["job"]["data"] == "[2]"
    ignored = {"type": "example", "id": "one", "data": [3], "on_same_id": "ignore"}
    assert (await api.ask("POST", "/api/jobs", json=ignored, status=201))["job"]["data"] == "[2]"
    refused = await api.ask("POST", "/api/jobs", json=ignored | {"on_same_id": "reject"}, status=409)
    assert refused["code"] == "id_in_use"
    kept = ignored | {"on_same_id": {"data": False}, "priority": 9}
    job = (await api.ask("POST", "/api/jobs", json=kept, status=201))["job"]
    assert (job["data"], job["priority"]) == ("[2]", 9)
    assert (await rota.queue("default").counts())["pending"] == 1


async def test_an_unknown_dependency_is_refused_and_leaves_nothing(api: Api, rota: Rota) -> None:
    body = {"type": "example", "dependencies": ["mail:nobody"]}
    refused = await api.ask("POST", "/api/jobs", json=body, status=422)

    assert "mail:nobody" in refused["detail"]
    assert sum((await rota.queue("default").counts()).values()) == 0
    satisfied = [{"job": "mail:nobody", "if_gone": "satisfied"}]
    await api.ask("POST", "/api/jobs", json={"type": "example", "dependencies": satisfied}, status=201)


@pytest.mark.parametrize(
    ("body", "field", "complaint"),
    [
        ({}, "type", "type"),
        ({"type": ""}, "type", "task name"),
        ({"type": "a b"}, "type", "task name"),
        ({"type": "x", "nonsense": 1}, "nonsense", "nonsense"),
        ({"type": "x", "priority": "urgent"}, "priority", "priority"),
        ({"type": "x", "priority": 101}, "priority", "priority"),
        ({"type": "x", "priority": True}, "priority", "priority"),
        ({"type": "x", "delay": -1}, "delay", "delay"),
        ({"type": "x", "delay": "soon"}, "delay", "delay"),
        ({"type": "x", "run_at": "tomorrow"}, "run_at", "run_at"),
        ({"type": "x", "run_at": "2030-01-01T00:00:00"}, "run_at", "zone"),
        ({"type": "x", "delay": 1, "run_at": "2030-01-01T00:00:00Z"}, "delay", "not both"),
        ({"type": "x", "id": "a b"}, "id", "id"),
        ({"type": "x", "id": "a:b"}, "id", "id"),
        ({"type": "x", "id": "a" * 129}, "id", "id"),
        ({"type": "x", "queue": "a{b}"}, "queue", "queue"),
        ({"type": "x", "queue": "mail-fail"}, "queue", "reserved"),
        ({"type": "x.on_failure"}, "type", "failure handlers"),
        ({"type": "x", "data": {"*": [1]}}, "data", "*"),
        ({"type": "x", "lock": ""}, "lock", "lock"),
        ({"type": "x", "lock": "a\nb"}, "lock", "lock"),
        ({"type": "x", "tags": ["a"] * 21}, "tags", "tags"),
        ({"type": "x", "meta": {"a": "x" * 5000}}, "meta", "meta"),
        ({"type": "x", "dependencies": ["a b"]}, "dependencies", "id"),
        ({"type": "x", "attempts": 0}, "attempts", "attempts"),
    ],
)
async def test_a_job_that_makes_no_sense_is_refused_in_words(
    api: Api, rota: Rota, body: dict[str, Any], field: str, complaint: str
) -> None:
    refused = await api.ask("POST", "/api/jobs", json=body, status=422)

    assert {entry["field"] for entry in refused["errors"]} == {field}
    assert complaint in refused["detail"]
    assert await rota.queues() == []


# --- lists -------------------------------------------------------------------------------------------------------


async def pages(api: Api, **params: Any) -> list[str]:
    """The ids of all jobs of a list, page by page."""
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await api.ask(
            "GET", "/api/jobs", params={"limit": 2, **params, **({"cursor": cursor} if cursor else {})}
        )
        assert len(page["jobs"]) <= 2
        seen += (job["jobId"] for job in page["jobs"])
        cursor = page["cursor"]
    return seen


async def test_a_list_is_paged_by_cursor_over_all_states(api: Api, rota: Rota, hand: Hand) -> None:
    ids = [await api.enqueue(id=f"j{number}") for number in range(7)]
    await move_to(await handle(rota, ids[0]), JobState.COMPLETED, hand)
    await move_to(await handle(rota, ids[1]), JobState.PROCESSING, hand)
    later = await api.enqueue(id="later", delay=60)

    assert await pages(api) == [later, *reversed(ids)]
    assert await pages(api, order="oldest") == [*ids, later]
    assert await pages(api, state="PENDING") == ids[2:]
    assert await pages(api, state="PROCESSING") == [ids[1]]


async def test_jobs_are_found_by_what_they_are(rota: Rota, hand: Hand) -> None:
    @rota.task(queue="mail", index=["user_id"])
    def send(user_id: int, to: str = "") -> None: ...

    async with open_api(create_app(rota, auth="none")) as api:
        ada = await api.enqueue("send", data={"user_id": 1, "to": "needle"}, tags=["vip"])
        bob = await api.enqueue("send", data={"user_id": 2}, attempts=1)
        other = await api.enqueue("other", queue="mail", tags=["vip"], delay=60)
        assert await pages(api, field="user_id=1") == [ada]
        assert await pages(api, tag="vip", queue="mail") == [other, ada]
        await api.ask("PATCH", f"/api/jobs/{ada}", json={"data": {"user_id": 7, "to": "needle"}})
        assert (await pages(api, field="user_id=1"), await pages(api, field="user_id=7")) == ([], [ada])
        assert await pages(api, tag="vip", type="send") == [ada]
        assert await pages(api, type="send") == [bob, ada]
        assert await pages(api, text="needle") == [ada]
        assert await pages(api, since="2020-01-01T00:00:00Z", until="2021-01-01T00:00:00Z") == []
        assert await pages(api, since="2020-01-01T00:00:00Z", tag="vip", type="send") == [ada]
        await hand.take(await handle(rota, ada))
        assert await pages(api, worker="w1", state="PROCESSING") == [ada]
        await hand.kill_off(await handle(rota, bob))
        assert await pages(api, error="ValueError", state="FAILED") == [bob]
        await api.ask("PATCH", f"/api/jobs/{bob}", json={"data": [8]})
        assert await pages(api, field="user_id=8", error="ValueError") == [bob]
        other_server = Rota(
            sessions_of(rota).connection()["url"], namespace=rota.namespace
        )  # which does not know the task
        async with other_server, open_api(create_app(other_server, auth="none")) as bare:
            await bare.ask("PATCH", f"/api/jobs/{bob}", json={"data": {"user_id": 9}})
            assert await pages(bare, field="user_id=9", state="FAILED") == [bob]
        for bad in ({"field": "user_id"}, {"field": "=1"}, {"since": "noon"}, {"field": "user_id=[1]"}, {"order": "x"}):
            await api.ask("GET", "/api/jobs", params=bad, status=422)


@pytest.mark.parametrize("cursor", ["x", "~", "pending~", "%00", "A" * 900, "W10", "é"])
async def test_a_bad_cursor_is_refused(api: Api, cursor: str) -> None:
    await api.enqueue()

    for params in ({}, {"state": "PENDING"}, {"type": "example"}):
        await api.ask("GET", "/api/jobs", params={"cursor": cursor, **params}, status=422)


# --- one job -----------------------------------------------------------------------------------------------------


async def test_a_waiting_job_is_changed(api: Api, rota: Rota) -> None:
    job_id = await api.enqueue(data={"a": 1}, priority=1, tags=["kept"], expires=600)
    expiry = (await api.job(job_id))["limits"]["expires_at"]

    changed = (await api.ask("PATCH", f"/api/jobs/{job_id}", json={"priority": "high", "delay": 60, "data": {"a": 2}}))[
        "job"
    ]

    assert (changed["status"], changed["priority"], changed["data"]) == ("SCHEDULED", -10, '{"a":2}')
    assert (changed["tags"], changed["limits"]["expires_at"]) == (["kept"], expiry)
    soon = (await api.ask("PATCH", f"/api/jobs/{job_id}", json={"delay": 0}))["job"]
    assert (soon["status"], soon["data"]) == ("PENDING", '{"a":2}')
    (entry,) = [e for e in (await api.ask("GET", "/api/audit"))["entries"] if e["before"]["priority"] == 1]
    assert (entry["action"], entry["after"]["priority"]) == ("update", -10)
    assert (await rota.queue("default").counts())["pending"] == 1


async def test_a_job_at_work_or_over_is_not_changed(api: Api, rota: Rota, hand: Hand) -> None:
    job_id = await api.enqueue()
    claimed = await hand.take(await handle(rota, job_id))
    refused = await api.ask("PATCH", f"/api/jobs/{job_id}", json={"priority": 1}, status=409)
    assert refused["state"] == "PROCESSING"
    await hand.complete(claimed)
    assert (await api.ask("PATCH", f"/api/jobs/{job_id}", json={"priority": 1}, status=409))["state"] == "COMPLETED"
    for body in ({}, {"priority": None}, {"status": "COMPLETED"}):
        await api.ask("PATCH", f"/api/jobs/{job_id}", json=body, status=422)


async def test_a_dead_letter_is_edited_and_redriven(api: Api, rota: Rota, hand: Hand) -> None:
    job_id = await api.enqueue(data={"to": "nobody"}, attempts=1)
    await hand.kill_off(await handle(rota, job_id), "no route")
    dead = await api.job(job_id)
    assert (dead["status"], dead["error"]["message"], dead["actions"]) == (
        "FAILED",
        "no route",
        ["redrive", "update", "delete"],
    )
    await api.ask("PATCH", f"/api/jobs/{job_id}", json={"priority": 5}, status=409)

    await api.ask("PATCH", f"/api/jobs/{job_id}", json={"data": {"to": "ada"}})
    await api.ask("POST", f"/api/jobs/{job_id}/redrive")

    job = await api.job(job_id)
    assert (job["status"], job["data"], job["failures"]) == ("PENDING", '{"to":"ada"}', 0)
    assert [entry["verb"] for entry in (await api.ask("GET", f"/api/jobs/{job_id}/history"))["history"]] == [
        "enqueue",
        "claim",
        "fail",
        "update",
        "redrive",
    ]
    await api.ask("POST", f"/api/jobs/{job_id}/redrive", status=409)


async def test_a_result_is_waited_for_and_pushed(api: Api, rota: Rota, hand: Hand) -> None:
    job_id = await api.enqueue()
    assert (await api.ask("GET", f"/api/jobs/{job_id}/result", status=202))["status"] == "PENDING"

    waiting = asyncio.create_task(api.ask("GET", f"/api/jobs/{job_id}/result", params={"wait": 30}))
    await hand.finish(await handle(rota, job_id), {"sum": 2**60})

    assert (await waiting)["result"] == {"sum": 2**60}
    for path in ("-1", "61", "x"):
        await api.ask("GET", f"/api/jobs/{job_id}/result", params={"wait": path}, status=422)


async def test_a_failure_and_a_cancel_are_results_too(api: Api, rota: Rota, hand: Hand) -> None:
    failed, cancelled = await api.enqueue(), await api.enqueue()
    await hand.kill_off(await handle(rota, failed), "boom")
    await api.ask("POST", f"/api/jobs/{cancelled}/cancel", json={"reason": "not wanted"})

    said = await api.ask("GET", f"/api/jobs/{failed}/result")
    assert (said["status"], said["result"], said["error"]["message"]) == ("FAILED", None, "boom")
    said = await api.ask("GET", f"/api/jobs/{cancelled}/result")
    assert (said["status"], said["reason"]) == ("CANCELLED", "not wanted")


async def test_a_log_is_read_from_a_line_on(api: Api, rota: Rota, hand: Hand) -> None:
    job_id = await api.enqueue()
    claimed = await hand.take(await handle(rota, job_id))
    await hand.store.append_log("default", claimed.run, claimed.claim, 1, ["info one", "warning two"])

    lines = (await api.ask("GET", f"/api/jobs/{job_id}/logs", params={"start": 1}))["lines"]

    assert [(line["level"], line["text"]) for line in lines] == [("warning", "two")]


async def test_a_running_job_can_be_left_alone_or_stopped(api: Api, rota: Rota, hand: Hand) -> None:
    job_id = await api.enqueue()
    await hand.take(await handle(rota, job_id))

    left = await api.ask("POST", f"/api/jobs/{job_id}/cancel", json={"only_waiting": True})
    assert left["status"] == "PROCESSING"
    stopped = await api.ask("POST", f"/api/jobs/{job_id}/cancel")
    assert stopped["status"] == "CANCELLED"
    assert (await api.job(job_id))["status"] == "CANCELLED"


@pytest.mark.parametrize("job_id", ["a b", "%00", "a{b}", "é", "x:y:z", "a@b", "@", ":", "a" * 400, "..", "*", "a%0Ab"])
async def test_an_id_with_odd_characters_is_refused_in_words(api: Api, job_id: str) -> None:
    answer = await api.get(f"/api/jobs/{job_id}")

    assert answer.status_code in (404, 422)
    assert answer.json()["detail"]


# --- secrets -----------------------------------------------------------------------------------------------------


async def test_values_of_secret_fields_are_never_shown(api: Api, rota: Rota, hand: Hand) -> None:
    secret = "hunter2"
    job_id = await api.enqueue(
        data={"user": "ada", "Password": secret, "nested": [{"api_key": secret}]}, meta={"session_token": secret}
    )
    claimed = await hand.take(await handle(rota, job_id))
    await hand.complete(claimed, json.dumps({"token": secret, "ok": 1}).encode())

    for path in ("", "/result", "/history", "/logs"):
        text = (await api.get(f"/api/jobs/{job_id}{path}")).text
        assert secret not in text
    assert secret not in (await api.get("/api/jobs")).text
    assert (await rota.job(job_id).result(5))["token"] == secret
    assert json.loads((await api.job(job_id))["data"])["Password"] == MASK


async def test_a_masked_value_that_comes_back_stands_for_the_stored_one(api: Api, rota: Rota) -> None:
    job_id = await api.enqueue(data={"user": "ada", "password": "hunter2"})
    shown = json.loads((await api.job(job_id))["data"])

    await api.ask("PATCH", f"/api/jobs/{job_id}", json={"data": shown | {"user": "bob"}})

    assert (await rota.job(job_id).refresh()).arguments == b'{"user":"bob","password":"hunter2"}'
    await api.ask("PATCH", f"/api/jobs/{job_id}", json={"data": {"other_password": MASK}}, status=422)
    assert "hunter2" not in (await api.get("/api/audit")).text


async def test_positional_secrets_are_masked_by_the_names_of_their_parameters(rota: Rota) -> None:
    @rota.task
    def log_in(user: str, password: str) -> None: ...

    async with open_api(create_app(rota, auth="none")) as api:
        job_id = await api.enqueue("log_in", data=["ada", "hunter2"])
        assert (await api.job(job_id))["data"] == f'["ada","{MASK}"]'


async def test_a_new_server_masks_positional_secrets_in_the_audit_log(rota: Rota, hand: Hand) -> None:
    announced = {"queue": "default", "positional": ["user", "password"]}
    await hand.store.publish_tasks({"log_in": json.dumps(announced)})
    async with open_api(create_app(rota, auth="none")) as api:
        job_id = await api.enqueue("log_in", data=["ada", "hunter2"])
        rule = {"rule": {"every": 60}}
        await api.ask(
            "PUT", "/api/schedules/default:nightly", json={**rule, "type": "log_in", "data": ["a", "hunter2"]}
        )

    @rota.task
    def report() -> None: ...

    async with open_api(create_app(rota, auth="none")) as api:
        await api.ask("PATCH", f"/api/jobs/{job_id}", json={"priority": 3})
    async with open_api(create_app(rota, auth="none")) as api:
        await api.ask("PUT", "/api/schedules/default:nightly", json={**rule, "type": "report"})
        audit = (await api.get("/api/audit")).text

    assert "ada" in audit
    assert "hunter2" not in audit


async def test_more_names_can_be_masked(rota: Rota, app: FastAPI) -> None:
    async with open_api(create_app(rota, auth="none", mask=["shoe"])) as api:
        job_id = await api.enqueue(data={"shoe_size": 44, "password": "x"})
        assert json.loads((await api.job(job_id))["data"]) == {"shoe_size": MASK, "password": "x"}
