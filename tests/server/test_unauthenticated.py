"""What a caller without a token can cost: its body is neither read nor parsed."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI

from rota import Rota
from rota.client.session import sessions_of
from rota.server import Role
from rota.server.auth.api_tokens import Tokens
from rota.server.http.body_limit import MAX_LOGIN
from tests.server.api import open_api
from tests.servers import Server


async def test_a_body_is_not_read_before_its_caller_is_known(guarded: FastAPI) -> None:
    received = 0

    async def receive() -> dict[str, Any]:
        nonlocal received
        received += 1
        return {"type": "http.request", "body": b"{}", "more_body": True}

    paths = {
        (method, path)
        for path, methods in guarded.openapi()["paths"].items()
        for method, operation in methods.items()
        if "requestBody" in operation and "x-role" in operation
    }
    assert len(paths) > 10
    for method, path in paths:
        sent: list[Any] = []

        async def send(message: Any, sent: list[Any] = sent) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": method.upper(),
            "path": path.replace("{", "").replace("}", ""),
            "raw_path": b"",
            "query_string": b"",
            "headers": [(b"content-type", b"application/json")],
            "http_version": "1.1",
            "server": ("127.0.0.1", 80),
            "client": ("127.0.0.1", 1),
            "scheme": "http",
            "root_path": "",
        }
        await guarded(scope, receive, send)
        assert sent[0]["status"] == 401, f"{method} {path}"
        assert received == 0, f"{method} {path}"


async def test_the_body_of_a_login_is_small(guarded: FastAPI) -> None:
    async with open_api(guarded) as api:
        await api.ask("POST", "/api/session", json={"x": "y" * MAX_LOGIN}, status=413)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
async def test_a_request_that_changes_nothing_stores_no_response(
    guarded: FastAPI, rota: Rota, valkey: Server, role: Role
) -> None:
    text, _ = await Tokens(rota).create(role)
    body = {"rule": {"every": 60}}
    async with open_api(guarded, token=text) as api:
        await api.ask("POST", "/api/schedules/preview", json=body, headers={"Idempotency-Key": "fresh"})

    with valkey.client() as client:
        stored = [key for key in client.scan_iter(f"{sessions_of(rota).namespace}:*") if b"http_reply" in key]
    assert stored == []
