"""Encrypted jobs over HTTP: values are shown with the key, and as encrypted without it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from unittest.mock import Mock

import pytest

from rota import Encrypted, ErrorRecord, Every, JobRecord, Rota
from rota.client.encryption import new_key
from rota.server import create_app
from rota.testing import run_jobs
from tests.server.api import Api, open_api
from tests.servers import Server
from tests.stored import find_keys, read_keys

SECRET = "4111-1111"
MARKED = "rota:encrypted:x"


@pytest.fixture
def key() -> str:
    return new_key()


@pytest.fixture
async def rota_with_key(valkey: Server, namespace: str, key: str) -> AsyncIterator[Rota]:
    """A program with the key."""
    rota = Rota(valkey.url, namespace=namespace, codec=Encrypted([key]))
    yield rota
    await rota.close()


@pytest.fixture
async def sealed(rota_with_key: Rota) -> AsyncIterator[Api]:
    """The API of a server with the key."""
    async with open_api(create_app(rota_with_key, auth="none")) as api:
        yield api


async def test_values_are_shown_with_the_key_only(api: Api, sealed: Api) -> None:
    data = {"card": SECRET, "password": "hidden"}
    made = await sealed.ask("POST", "/api/jobs", json={"type": "pay", "data": data}, status=201)
    job_id = made["jobId"]
    await sealed.ask("PUT", "/api/schedules/default:s", json={"rule": {"every": 60}, "type": "pay", "data": data})

    for one, is_shown in ((sealed, True), (api, False)):
        for path in (f"/api/jobs/{job_id}", "/api/jobs", "/api/schedules", "/legacy/api/jobs"):
            text = (await one.request("GET", path)).text
            assert (SECRET in text) is is_shown, path
            assert "rota:encrypted" not in text
            assert "hidden" not in text
            assert is_shown or "encrypted" in text
        found = (await one.ask("GET", "/api/jobs", params={"text": SECRET}))["jobs"]
        assert len(found) == is_shown
    assert SECRET in (await sealed.job(job_id))["data"]
    assert (await api.job(job_id))["data"].startswith('{"encrypted":"with key ')


async def test_a_server_without_the_key_changes_options_and_keeps_the_data(api: Api, sealed: Api) -> None:
    made = await sealed.ask(
        "POST", "/api/jobs", json={"type": "pay", "data": {"card": SECRET}, "delay": 3600}, status=201
    )
    path = f"/api/jobs/{made['jobId']}"

    await api.ask("PATCH", path, json={"priority": "high"})
    refused = await api.ask("PATCH", path, json={"data": {"card": "other"}}, status=422)

    assert "ROTA_ENCRYPTION_KEYS" in refused["detail"]
    assert (await sealed.job(made["jobId"]))["data"] == f'{{"card":"{SECRET}"}}'


async def test_a_list_shows_jobs_whose_encrypted_arguments_are_cut(api: Api, sealed: Api, rota_with_key: Rota) -> None:
    @rota_with_key.task
    async def join(first: str, second: str) -> str:
        return first + second

    @rota_with_key.task(retry=1)
    async def pay(card: str) -> None:
        raise ValueError("refused")

    @pay.on_failure
    async def report(error: ErrorRecord, job: JobRecord, card: str) -> None: ...

    async with rota_with_key.workflow("long") as flow:
        first = flow.step(join.call("a", "b"))
        flow.step(join.call(SECRET * 500, first.result))
    await pay.enqueue(SECRET * 500)
    await run_jobs(rota_with_key, queues=["default"])
    for one in (api, sealed):
        jobs = (await one.ask("GET", "/api/jobs"))["jobs"]
        assert {job["type"] for job in jobs} == {"join", "pay", "pay.on_failure"}
        for job in jobs:
            await one.job(job["jobId"])


@pytest.mark.parametrize("has_codec", [True, False])
async def test_data_that_looks_encrypted_is_refused(api: Api, sealed: Api, has_codec: bool) -> None:
    one = sealed if has_codec else api
    data = [MARKED]
    schedule = {"rule": {"every": 60}, "type": "pay"}
    job_id = await one.enqueue("pay", data=["x"], delay=3600)
    await one.ask("PUT", "/api/schedules/default:good", json={**schedule, "data": ["x"]})

    refusals = [
        await one.ask("POST", "/api/jobs", json={"type": "pay", "data": data}, status=422),
        await one.ask("POST", "/api/jobs", json={"type": "pay", "data": MARKED}, status=422),
        await one.ask("PUT", "/api/schedules/default:bad", json={**schedule, "data": data}, status=422),
        await one.ask("PATCH", "/api/schedules/default:good", json={"data": data}, status=422),
        await one.ask("PATCH", f"/api/jobs/{job_id}", json={"data": data}, status=422),
    ]

    assert all("pass it by name" in refused["detail"] for refused in refusals)
    assert len((await one.ask("GET", "/api/schedules"))["schedules"]) == 1
    named = await one.enqueue("pay", data={"card": MARKED})
    assert (await one.job(named))["data"] == f'{{"card":"{MARKED}"}}'


@pytest.mark.parametrize("has_codec", [True, False])
async def test_stored_values_that_cannot_be_decrypted_are_shown(
    api: Api, sealed: Api, rota: Rota, has_codec: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    @rota.task
    async def pay(card: str) -> None: ...

    one = sealed if has_codec else api
    with monkeypatch.context() as patched:
        patched.setattr("rota.client.task_arguments.check_not_marked", Mock())  # as another client stores it
        call = pay.call(MARKED)
    job_id = (await rota.enqueue(call)).id
    await rota.schedules.put("bad", Every(60), call)

    for path in ("/api/jobs", f"/api/jobs/{job_id}", "/api/schedules", "/api/schedules/default:bad", "/api/overview"):
        await one.ask("GET", path)
    await one.ask("DELETE", "/api/schedules/default:bad")
    await one.ask("DELETE", f"/api/jobs/{job_id}")


@pytest.mark.parametrize("data", ['{"a":"\\ud800"}', '{"\\ud800":1}', '"\\ud800"', '{"a":NaN}', "[NaN]"])
async def test_changed_data_that_is_not_json_is_refused(api: Api, data: str) -> None:
    job_id = await api.enqueue("pay", data=["x"], delay=3600)
    await api.ask("PUT", "/api/schedules/default:s", json={"rule": {"every": 60}, "type": "pay", "data": ["x"]})

    for path in (f"/api/jobs/{job_id}", "/api/schedules/default:s"):
        headers = {"content-type": "application/json"}
        await api.ask("PATCH", path, content=f'{{"data":{data}}}', headers=headers, status=422)


async def test_no_data_is_readable_in_the_store(
    api: Api, sealed: Api, rota_with_key: Rota, valkey: Server, namespace: str
) -> None:
    data = {"card": SECRET}

    @rota_with_key.task(retry=1)
    async def refuse(card: str) -> None:
        raise ValueError("refused")

    async def keyed(path: str, status: int, body: object) -> None:
        headers = {"Idempotency-Key": path}
        first = await sealed.request("POST", path, json=body, headers=headers)
        again = await sealed.request("POST", path, json=body, headers=headers)
        assert (first.status_code, again.status_code) == (status, status)
        assert again.headers["Idempotency-Replayed"] == "true"
        assert again.content == first.content
        await sealed.ask("POST", path, json={}, headers=headers, status=422)
        refused = await api.ask("POST", path, json=body, headers=headers, status=409)
        assert "ROTA_ENCRYPTION_KEYS" in refused["detail"]

    await keyed("/api/jobs", 201, {"type": "pay", "data": data})
    job_id = await sealed.enqueue("pay", data=data, delay=3600)
    await sealed.ask("PATCH", f"/api/jobs/{job_id}", json={"data": {"card": f"{SECRET}-2"}})
    await sealed.ask("PATCH", f"/api/jobs/{job_id}", json={"priority": "high"})
    schedule = {"rule": {"every": 60}, "type": "pay", "data": data}
    await sealed.ask("PUT", "/api/schedules/default:s", json=schedule)
    await sealed.ask("PUT", "/api/schedules/default:s", json={**schedule, "data": {"card": f"{SECRET}-2"}})
    await sealed.ask("PATCH", "/api/schedules/default:s", json={"data": data})
    await keyed("/api/schedules/default:s/pause", 200, None)
    failed = await refuse.enqueue(SECRET)
    await run_jobs(rota_with_key, queues=["default"])
    await keyed(f"/api/jobs/{failed.id}/redrive", 200, {"data": {"card": f"{SECRET}-2"}})

    with valkey.client() as client:
        stored = repr(read_keys(client, find_keys(client, namespace)))
    assert "http_reply" in stored
    assert "audit" in stored
    assert SECRET not in stored
    entries = (await sealed.ask("GET", "/api/audit"))["entries"]
    changes = [("data" in entry["before"], entry["after"].get("data")) for entry in entries if entry["before"]]
    assert changes.count((False, {"encrypted": True})) == 4  # a job, a schedule twice, a redrive
    assert all(not was for was, _ in changes)
