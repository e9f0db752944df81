"""A client of the API that checks the status of each response."""

from __future__ import annotations

from typing import Any

import httpx2
from fastapi import FastAPI


class Api(httpx2.AsyncClient):
    """An HTTP client whose failed checks show the response."""

    async def ask(self, method: str, path: str, *, status: int = 200, **more: Any) -> Any:
        """Returns the JSON of a response, which must have the given status."""
        response = await self.request(method, path, **more)
        assert response.status_code == status, f"{method} {path}: {response.status_code} {response.text}"
        body = response.json()
        if status >= 400:
            assert response.headers["content-type"] == "application/problem+json"
            assert body["status"] == status
            assert body["detail"]
        return body

    async def enqueue(self, type: str = "example", **fields: Any) -> str:
        """Enqueues a job. Returns its id."""
        return (await self.ask("POST", "/api/jobs", json={"type": type, **fields}, status=201))["jobId"]

    async def job(self, job_id: str) -> dict[str, Any]:
        """Returns a job."""
        return (await self.ask("GET", f"/api/jobs/{job_id}"))["job"]


def open_api(app: FastAPI, *, token: str | None = None, base_url: str = "http://127.0.0.1") -> Api:
    """Returns a client of the application, with a token if given."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return Api(transport=httpx2.ASGITransport(app), base_url=base_url, headers=headers)
