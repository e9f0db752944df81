"""Large data: what one request costs is bounded by bytes, and the event loop goes on meanwhile."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from rota import Rota
from rota.client import job_listing
from rota.core.masking import Mask
from rota.server.serializers import PREVIEW_BYTES
from tests.client.manual_worker import Hand
from tests.server.api import Api

#: 0.68 MB of arguments with a secret, which masking has to find.
LARGE = {"rows": [{"id": number, "name": "a name", "note": "x" * 40} for number in range(8_800)], "password": "hidden"}


@pytest.mark.parametrize("query", ["", "?state=PENDING", "?text=x&state=PENDING", "?type=example", "?limit=1000"])
async def test_a_list_shows_the_beginning_of_large_data(api: Api, query: str) -> None:
    large = await api.enqueue(data=LARGE)
    small = await api.enqueue(data={"name": "xena"})

    response = await api.request("GET", f"/api/jobs{query}")

    jobs = {job["jobId"]: job for job in response.json()["jobs"]}
    assert jobs[large]["is_data_cut"]
    assert jobs[large]["data"] == json.dumps(LARGE, separators=(",", ":"))[:PREVIEW_BYTES]
    assert not jobs[small]["is_data_cut"]
    assert jobs[small]["data"] == '{"name":"xena"}'
    assert len(response.content) < 10_000
    assert len((await api.job(large))["data"]) > 600_000


async def test_other_lists_show_no_large_data_either(api: Api, hand: Hand, rota: Rota) -> None:
    parent = await api.enqueue(data=LARGE)
    child = await api.enqueue(data=LARGE, dependencies=[parent])
    await api.ask("PUT", "/api/schedules/default:big", json={"rule": {"every": 60}, "type": "example", "data": LARGE})
    steps = [{"type": "example", "data": LARGE}]
    workflow = (await api.ask("POST", "/api/workflows", json={"name": "w", "steps": steps}, status=201))["workflow"]
    await hand.kill_off(rota.job(f"{parent}@{(await api.job(parent))['run']}"))
    paths = ("/api/dead", "/api/dead/groups", "/api/schedules", f"/api/jobs/{child}/dependencies")
    paths += (f"/api/workflows/{workflow['id']}", "/legacy/api/jobs", f"/api/jobs/{parent}/dependents")
    paths += ("/api/schedules/default:big/runs", "/api/operations", "/api/overview")

    for path in paths:
        response = await api.request("GET", path)

        assert response.status_code == 200, path
        assert len(response.content) < 20_000, path


async def test_a_page_of_whole_records_ends_after_some_bytes(rota: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_listing, "PAGE_BYTES", 2_500)

    @rota.task
    def example(text: str) -> None: ...

    sent = [(await example.enqueue("x" * 990)).id for _ in range(10)]
    queries: list[dict[str, Any]] = [{"state": "pending"}, {"task": "example"}, {"state": "pending", "text": "x"}]
    for conditions in queries:
        found: list[str] = []
        cursor = None
        pages = 0
        while cursor is not None or not pages:
            page = await rota.jobs(**conditions, cursor=cursor, limit=100)
            found += [record.ref.full_id for record in page.jobs]
            cursor, pages = page.cursor, pages + 1

        assert sorted(found) == sorted(sent)
        assert pages == 4 + (cursor is not None)


async def test_masking_large_data_does_not_block_other_requests(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: dict[bool, set[int]] = {True: set(), False: set()}
    text = Mask.text

    def observed(self: Mask, encoded: bytes, **more: Any) -> str:
        threads[len(encoded) > 100_000].add(threading.get_ident())
        return text(self, encoded, **more)

    job_ids = [await api.enqueue(data=LARGE), await api.enqueue(data={"password": "x"})]
    monkeypatch.setattr(Mask, "text", observed)

    for job_id in job_ids:
        await api.job(job_id)

    assert threads[False] == {threading.get_ident()}
    assert threads[True].isdisjoint(threads[False])


@pytest.mark.parametrize("verb", ["GET", "POST"])
@pytest.mark.parametrize("is_positional", [False, True])
async def test_a_search_does_not_find_masked_values(
    api: Api, rota: Rota, hand: Hand, verb: str, is_positional: bool
) -> None:
    @rota.task
    def sign_in(user: str, password: str) -> None: ...

    if is_positional:
        await sign_in.enqueue("ada", "topsecret")
    else:
        await sign_in.enqueue(user="ada", password="topsecret")

    async def count(text: str) -> int:
        if verb == "GET":
            return len((await api.ask("GET", "/api/jobs", params={"text": text}))["jobs"])
        body = {"action": "cancel", "where": {"text": text}, "dry_run": True}
        operation = (await api.ask("POST", "/api/operations", json=body, status=202))["operation"]
        assert operation["where"] == {"text": text}
        return (await rota.operations.run(operation["id"])).matched

    assert await count("ada") == 1
    assert await count("sign_in") == 1
    assert await count("topsecret") == 0
    assert await count('"t') == 0


async def test_jobs_cannot_be_selected_by_the_value_of_a_masked_field(api: Api, rota: Rota) -> None:
    @rota.task(index=["api_token"])
    def call(api_token: str) -> None: ...

    await call.enqueue("abc")

    said = await api.ask("GET", "/api/jobs", params={"field": "api_token=abc"}, status=422)
    body = {"action": "cancel", "where": {"fields": {"api_token": "abc"}}, "dry_run": True}
    await api.ask("POST", "/api/operations", json=body, status=422)

    assert "masked" in said["detail"]
