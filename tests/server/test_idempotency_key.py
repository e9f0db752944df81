"""Idempotency-Key: whatever is sent again is answered as it was the first time, and done once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI

from rota import Keep, Rota
from rota.client.session import checked_session, session_of
from rota.server import Role, create_app
from rota.server.auth.api_tokens import Tokens
from rota.store.http_server_state import HttpServerStore
from tests.client.manual_worker import Hand
from tests.server.api import Api, open_api
from tests.server.test_jobs import handle

KEY = {"Idempotency-Key": "order 7"}
JOB: dict[str, Any] = {"type": "charge", "data": {"order": 7}}


async def total(rota: Rota) -> int:
    """Jobs ever made."""
    return (await rota.queue("default").info()).totals["run"]


async def test_a_post_sent_again_is_answered_as_the_first_time(api: Api, rota: Rota, hand: Hand) -> None:
    first = await api.post("/api/jobs", json=JOB, headers=KEY)
    await hand.finish(await handle(rota, first.json()["jobId"]))

    again = await api.post("/api/jobs", json=JOB, headers=KEY)

    assert (again.status_code, again.content) == (201, first.content)
    assert again.headers["idempotency-replayed"] == "true"
    assert await total(rota) == 1


async def test_many_at_the_same_time_make_one_job(rota: Rota) -> None:
    """Through several servers, as behind a load balancer."""
    apps = [create_app(rota, auth="none") for _ in range(3)]

    async def post(app: FastAPI) -> str:
        async with open_api(app) as api:
            answer = await api.post("/api/jobs", json=JOB, headers=KEY)
        assert answer.status_code == 201, answer.text
        return answer.json()["jobId"]

    ids = await asyncio.gather(*(post(apps[number % 3]) for number in range(24)))

    assert len(set(ids)) == 1
    assert await total(rota) == 1


@pytest.mark.parametrize("fields", [{}, {"id": "chosen"}, {"dependencies": ["first"]}])
async def test_a_server_that_died_before_it_could_answer_has_made_the_job_once(
    api: Api, rota: Rota, hand: Hand, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]
) -> None:
    if "dependencies" in fields:
        await api.enqueue(id="first")
    before = await total(rota)

    async def die(*_: object) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(HttpServerStore, "store_response", die)
        with pytest.raises(KeyboardInterrupt):
            await api.post("/api/jobs", json=JOB | fields, headers=KEY)
    assert await total(rota) == before + 1

    again = await api.ask("POST", "/api/jobs", json=JOB | fields, headers=KEY, status=201)

    assert again["is_new"] is False
    assert await total(rota) == before + 1


async def test_it_is_exact_when_the_job_has_long_ended_and_is_kept_no_longer(
    api: Api, rota: Rota, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(*_: object) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(HttpServerStore, "store_response", die)
        with pytest.raises(KeyboardInterrupt):
            await api.post("/api/jobs", json=JOB, headers=KEY)
    (record,) = (await rota.jobs(_pending(), queue="default")).jobs
    await hand.finish(rota.job(str(record.ref)), keep=Keep(finished=0))

    again = await api.ask("POST", "/api/jobs", json=JOB, headers=KEY, status=201)

    assert (again["jobId"], again["is_new"]) == (record.ref.full_id, False)
    assert await total(rota) == 1


async def test_it_is_exact_for_a_job_that_comes_after_others(
    api: Api, rota: Rota, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(*_: object) -> bytes:
        raise KeyboardInterrupt

    first = await api.enqueue(id="first")
    body = {**JOB, "dependencies": [first]}
    with monkeypatch.context() as patch:
        patch.setattr(HttpServerStore, "store_response", die)
        with pytest.raises(KeyboardInterrupt):
            await api.post("/api/jobs", json=body, headers=KEY)
    (made,) = (await api.ask("GET", f"/api/jobs/{first}/dependents"))["jobs"]
    await hand.finish(rota.job(f"{first}@{(await rota.job(first).refresh()).ref.run}"), keep=Keep(finished=0))
    await session_of(rota).notify_dependents("default")
    await hand.finish(rota.job(f"{made['jobId']}@{made['run']}"), keep=Keep(finished=0))

    again = await api.ask("POST", "/api/jobs", json=body, headers=KEY, status=201)

    assert (again["jobId"], again["is_new"]) == (made["jobId"], False)
    assert await total(rota) == 2, "the one before it, which is gone as well, and this one"


def _pending() -> Any:
    from rota import JobState

    return JobState.PENDING


async def test_a_key_that_comes_with_another_body_is_refused(api: Api, rota: Rota) -> None:
    await api.ask("POST", "/api/jobs", json=JOB, headers=KEY, status=201)

    refused = await api.ask("POST", "/api/jobs", json=JOB | {"priority": 1}, headers=KEY, status=422)

    assert refused["code"] == "idempotency_key_reused"
    assert await total(rota) == 1


async def test_what_was_refused_may_be_tried_again_with_the_same_key(api: Api) -> None:
    refused = {"type": "charge", "dependencies": ["later"]}
    await api.ask("POST", "/api/jobs", json=refused, headers=KEY, status=422)
    await api.enqueue(id="later")

    await api.ask("POST", "/api/jobs", json=refused, headers=KEY, status=201)


async def test_two_callers_may_choose_the_same_key(rota: Rota) -> None:
    app = create_app(rota)
    ids: list[str] = []
    for _ in range(2):
        text, _token = await Tokens(rota).create(Role.OPERATOR, name="same name")
        async with open_api(app, token=text) as api:
            ids.append((await api.ask("POST", "/api/jobs", json=JOB, headers=KEY, status=201))["jobId"])

    assert len(set(ids)) == 2


async def test_other_posts_are_answered_again_too(api: Api) -> None:
    job_id = await api.enqueue()

    answers = [await api.post(f"/api/jobs/{job_id}/cancel", headers=KEY) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].content == answers[1].content
    assert len((await api.ask("GET", "/api/audit"))["entries"]) == 1
    await api.ask("POST", f"/api/jobs/{job_id}/cancel", status=409)


async def test_a_workflow_is_made_once(api: Api, rota: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"name": "order", "steps": [{"type": "a"}, {"type": "b"}]}

    async def die(*_: object) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(HttpServerStore, "store_response", die)
        with pytest.raises(KeyboardInterrupt):
            await api.post("/api/workflows", json=body, headers=KEY)

    await api.ask("POST", "/api/workflows", json=body, headers=KEY, status=201)

    assert len(await rota.workflows.list()) == 1
    named = body | {"id": "chosen"}
    await api.ask("POST", "/api/workflows", json=named, status=201)
    await api.ask("POST", "/api/workflows", json=named, headers={"Idempotency-Key": "other"}, status=409)


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb", "\u00e9"])
async def test_a_key_that_is_none_is_refused(api: Api, rota: Rota, key: str) -> None:
    await api.ask("POST", "/api/jobs", json=JOB, headers={"Idempotency-Key": key.encode("latin-1")}, status=400)

    assert await rota.queues() == []


async def test_an_answer_is_kept_for_a_day(api: Api, rota: Rota) -> None:
    await api.ask("POST", "/api/jobs", json=JOB, headers=KEY, status=201)
    redis_client = (await checked_session(rota)).redis

    kept = [key for key in await redis_client.keys(f"{rota.namespace}:*") if ":http_reply:" in key or ":once:" in key]

    assert len(kept) == 2
    for key in kept:
        assert 86_000_000 < await redis_client.command("PTTL", key) <= 86_400_000
