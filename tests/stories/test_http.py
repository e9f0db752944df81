"""A program in any language enqueues a job over HTTP, and receives the result."""

from __future__ import annotations

from types import ModuleType

import httpx2
import pytest

from rota.server import create_app


@pytest.mark.requirement("S2-1", "S2-21")
@pytest.mark.usefixtures("worker")
async def test_a_job_is_enqueued_over_http_and_its_result_is_waited_for(shop: ModuleType) -> None:
    app = create_app(shop.rota, auth="none")

    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1") as client:
        enqueued = await client.post("/api/jobs", json={"type": "price", "data": {"amount": 3, "each": 2.5}})
        ended = await client.get(f"/api/jobs/{enqueued.json()['jobId']}/result", params={"wait": 20})

    assert ended.json()["result"] == 7.5
