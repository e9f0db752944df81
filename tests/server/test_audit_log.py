"""The audit log: who did what, from where; and that no caller can displace the entries of others."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from fastapi import FastAPI

from rota import Rota
from rota.client.record_audit_entry import MAX_VALUE, AuditCaller, record_change
from rota.server.auth.api_tokens import Role, Tokens, http_server_store
from tests.server.api import Api, open_api


async def entries(api: Api, **query: Any) -> list[dict[str, Any]]:
    """Returns the entries of the log, latest first."""
    return (await api.ask("GET", "/api/audit", params={"limit": 1000, **query}))["entries"]


async def test_a_job_shows_who_enqueued_it(guarded: FastAPI, rota: Rota) -> None:
    text, _ = await Tokens(rota).create(Role.ADMIN, name="ci")
    async with open_api(guarded, token=text) as api:
        made = await api.enqueue("send", id="a")
        step = {"name": "one", "type": "send"}
        workflow = await api.ask("POST", "/api/workflows", json={"name": "w", "steps": [step]}, status=201)

        assert (await api.job(made))["enqueued_by"] == "ci"
        history = (await api.ask("GET", f"/api/jobs/{made}/history"))["history"]
        assert (history[0]["verb"], history[0]["note"]) == ("enqueue", "by ci")
        job_of_step = workflow["workflow"]["steps"][0]["jobId"]
        assert (await api.job(job_of_step))["enqueued_by"] == "ci"

    @rota.task(name="send")
    async def send() -> None: ...

    own = await send.enqueue()
    async with open_api(guarded, token=text) as api:
        assert (await api.job(own.id))["enqueued_by"] is None


async def test_logins_are_recorded_with_their_source(guarded: FastAPI, rota: Rota) -> None:
    text, token = await Tokens(rota).create(Role.ADMIN, name="ada")
    async with open_api(guarded) as api:
        await api.ask("POST", "/api/session", json={"token": "wrong"}, status=401)
        await api.ask("GET", "/api/queues", headers={"Authorization": "Bearer wrong"}, status=401)
        session = await api.ask("POST", "/api/session", json={"token": text}, status=201)
        await api.ask("DELETE", "/api/session", headers={"X-CSRF-Token": session["csrf"]})
    async with open_api(guarded, token=text) as api:
        found = await entries(api)

    assert [(one["who"], one["role"], one["action"]) for one in found] == [
        ("ada", "admin", "logout"),
        ("ada", "admin", "login"),
        ("unknown", None, "login_failed"),
        ("unknown", None, "login_failed"),
    ]
    assert {one["source"] for one in found} == {"127.0.0.1"}
    assert token.id in found[1]["target"]
    assert "wrong" not in json.dumps(found)


async def test_a_flood_displaces_only_the_entries_of_its_own_caller(app: FastAPI, rota: Rota, api: Api) -> None:
    store = await http_server_store(rota)
    store.audit_kept = 50

    async def append(caller: str, number: int) -> None:
        entry = {"who": caller, "role": None, "source": None, "action": "x", "target": str(number)}
        await store.append_audit(caller, msgspec.json.encode({**entry, "before": None, "after": None}))

    for number in range(10):
        await append("admin", number)
        await append("unknown", number)
    for number in range(500):
        await append("operator", number)

    found = await entries(api)
    assert len(found) == 50
    assert [one["target"] for one in found if one["who"] == "admin"] == [str(n) for n in range(9, -1, -1)]
    assert [one["target"] for one in found if one["who"] == "unknown"] == [str(n) for n in range(9, -1, -1)]
    # The latest of the flood are kept, and so is its extent: the numbers say how many there were.
    assert [one["target"] for one in found if one["who"] == "operator"] == [str(n) for n in range(499, 469, -1)]

    # Many callers share the log evenly; the one with the most gives way.
    for number in range(30):
        await append(f"host {number}", 0)
    found = await entries(api)
    assert len(found) == 50
    counts = [sum(one["who"] == who for one in found) for who in ("admin", "unknown", "operator")]
    assert sum(counts) == 20
    assert max(counts) - min(counts) <= 1


async def test_an_entry_is_bounded(rota: Rota, api: Api) -> None:
    caller = AuditCaller("a", "n" * 1_000)
    await record_change(rota, caller, "update", "job x", before={"data": "é" * 1_000_000}, after={"data": {"a": [1]}})

    (entry,) = await entries(api)

    assert entry["before"]["data"] == "é" * MAX_VALUE + "… (1,000,000 characters)"
    assert entry["after"] == {"data": {"a": [1]}}
    assert len(entry["who"]) == 200
