"""A client of the API that says what went wrong when an answer is not the one that was expected."""

from __future__ import annotations

from typing import Any

import httpx2
from fastapi import FastAPI


class Api(httpx2.AsyncClient):
    """Requests whose status is checked."""

    async def ask(self, method: str, path: str, *, status: int = 200, **more: Any) -> Any:
        """The answer's JSON; its status must be the one given."""
        response = await self.request(method, path, **more)
        assert response.status_code == status, f"{method} {path}: {response.status_code} {response.text}"
        body = response.json()
        assert body["success"] is (status < 400), body
        if status >= 400:
            assert response.headers["content-type"] == "application/problem+json"
            assert body["status"] == status
            assert body["message"]
        return body

    async def enqueue(self, type: str = "example", **fields: Any) -> str:
        """The id of a new job."""
        return (await self.ask("POST", "/api/jobs", json={"type": type, **fields}, status=201))["jobId"]

    async def job(self, job_id: str) -> dict[str, Any]:
        """A job with all that is known of it."""
        return (await self.ask("GET", f"/api/jobs/{job_id}"))["job"]


def open_api(app: FastAPI, *, token: str | None = None, base_url: str = "http://127.0.0.1") -> Api:
    """A client of the application, with a token if there is one."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return Api(transport=httpx2.ASGITransport(app), base_url=base_url, headers=headers)
