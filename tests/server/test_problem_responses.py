"""Bad requests, and a store in trouble: the right status, a message that says what to do, and nothing half done."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from rota import Rota
from rota.errors import StoreUnavailable
from rota.server import create_app
from rota.server.auth.authentication import Authenticator
from rota.server.routes import health
from tests.client.manual_worker import Hand
from tests.eventually import eventually, eventually_sync
from tests.server.api import Api, open_api
from tests.server.live import Live
from tests.servers import OwnServers

JSON = {"Content-Type": "application/json"}
HEAD = b"POST /api/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


# --- requests ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"{", 400),
        (b"", 400),
        (b"\xff\xfe", 400),
        (b'{"type": "x"', 400),
        (b'{"type": "x"} trailing', 400),
        (b"[" * 100_000, 400),
        (b'{"type": "x", "data": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}", 400),
        (b'["type"]', 422),
        (b'"text"', 422),
        (b"null", 422),
        (b'{"type": "x", "data": {"a": NaN}}', 422),
        (b'{"type": "\\ud800"}', 400),
        (b'{"type": "x", "data": {"a": "\\ud800"}}', 400),
        (b'{"type": "x", "meta": {"a": ' + b"9" * 5000 + b"}}", 400),
    ],
)
async def test_a_body_that_cannot_be_understood_is_refused(api: Api, rota: Rota, content: bytes, status: int) -> None:
    answer = await api.post("/api/jobs", content=content, headers=JSON)

    assert answer.status_code == status, answer.text
    assert answer.json()["detail"]
    assert await rota.queues() == []


async def test_a_body_that_is_too_large_is_refused_however_it_arrives(api: Api, rota: Rota) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield b"x" * 65536

    large = json.dumps({"type": "x", "data": {"a": "x" * 2_000_000}})
    assert (await api.post("/api/jobs", content=large, headers=JSON)).status_code == 413
    answer = await api.post("/api/jobs", content=chunks(), headers=JSON)
    assert answer.status_code == 413
    assert answer.headers["content-type"] == "application/problem+json"
    over = json.dumps({"type": "x", "data": {"a": "x" * (2**20 + 10)}})  # fits the body, not the job
    refused = await api.ask("POST", "/api/jobs", content=over, headers=JSON, status=413)
    assert "elsewhere" in refused["detail"]
    assert await rota.queues() == []


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/api/jobs?limit=0", "limit"),
        ("/api/jobs?limit=1001", "limit"),
        ("/api/jobs?limit=x", "limit"),
        ("/api/jobs?limit=" + "9" * 4000, "limit"),
        ("/api/jobs?state=pending", "state"),
        ("/api/jobs?state=NONSENSE", "state"),
        ("/api/jobs?queue=a%20b", "queue"),
        ("/api/jobs?text=" + "x" * 201, "text"),
        ("/api/jobs/x/logs?start=-1", "start"),
        ("/api/workflows?state=NONSENSE", "state"),
    ],
)
async def test_a_parameter_out_of_bounds_is_refused_and_named(api: Api, path: str, field: str) -> None:
    refused = await api.ask("GET", path, status=422)

    assert refused["detail"].startswith(field)


@pytest.mark.parametrize(
    ("method", "path", "body", "source", "field"),
    [
        ("POST", "/api/jobs", {"type": "x", "priority": 101}, "body", "priority"),
        ("POST", "/api/jobs", {"type": "x", "dependencies": ["nobody"]}, "body", "dependencies"),
        ("POST", "/api/jobs", {"type": "x", "dependencies": [{"may_fail": 7}]}, "body", "dependencies.0"),
        ("POST", "/api/workflows", {"name": "w", "steps": [{"type": "a", "delay": -1}]}, "body", "steps.0.delay"),
        ("POST", "/api/workflows", {"name": "w", "steps": [{"type": "a b"}]}, "body", "steps.0.type"),
        (
            "POST",
            "/api/workflows",
            {"name": "w", "steps": [{"type": "a"}, {"type": "b", "undo": {"type": "c", "run_at": "noon"}}]},
            "body",
            "steps.1.undo.run_at",
        ),
        ("PUT", "/api/schedules/s", {"type": "x", "rule": {"cron": "not a rule"}}, "body", "rule.cron"),
        ("POST", "/api/schedules/preview", {"rule": {"cron": "0 0 * * *", "tz": "Mars"}}, "body", "rule.tz"),
        ("POST", "/api/jobs/a%20b/cancel", None, "path", "id"),
        ("GET", "/api/jobs/a%20b", None, "path", "id"),
        ("GET", "/api/jobs?cursor=nonsense", None, "query", "cursor"),
        ("GET", "/api/schedules?tz=Mars", None, "query", "tz"),
        ("GET", "/api/events?topics=weather", None, "query", "topics"),
    ],
)
async def test_a_refusal_names_the_field_that_is_wrong(
    api: Api, method: str, path: str, body: dict[str, Any] | None, source: str, field: str
) -> None:
    refused = await api.ask(method, path, json=body, status=422)

    first = refused["errors"][0]
    assert (first["source"], first["field"].startswith(field)) == (source, True), refused["errors"]
    assert first["message"]


async def test_an_address_or_method_that_is_none_is_refused_in_the_same_shape(api: Api) -> None:
    await api.ask("GET", "/api/nowhere", status=404)
    answer = await api.put("/api/jobs")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, POST"


async def test_a_crash_is_a_500_that_gives_nothing_away(rota: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    async def crash(*_: object) -> Any:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(Rota, "queues", crash)
    transport = httpx2.ASGITransport(create_app(rota, auth="none"), raise_app_exceptions=False)
    async with Api(transport=transport, base_url="http://127.0.0.1") as api:
        said = await api.ask("GET", "/api/queues", status=500)

    assert "secret" not in json.dumps(said)


def test_a_client_that_disconnects_during_a_request_affects_no_other(rota: Rota, app: FastAPI) -> None:
    with Live(app) as live:
        for head in (b"POST /api/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"POST /api/jobs HT", b""):
            with socket.create_connection(("127.0.0.1", live.port)) as client:
                client.sendall(head)
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", live.port)) as client:
                client.sendall(HEAD % 99 + b'{"type"')
        answer = httpx2.post(f"{live.url}/api/jobs", json={"type": "x"})
        stats = httpx2.get(f"{live.url}/api/jobs/stats").json()["stats"]

    assert answer.status_code == 201
    assert stats["PENDING"] == 1


def test_a_client_that_hangs_up_before_the_answer_has_its_job_stored_all_the_same(rota: Rota, app: FastAPI) -> None:
    content = b'{"type": "x", "id": "sent"}'
    with Live(app) as live:
        with socket.create_connection(("127.0.0.1", live.port)) as client:
            # The server has to know whose process connects.
            eventually_sync(lambda: live.connections == 1)
            client.sendall(HEAD % len(content) + content)
        eventually_sync(lambda: httpx2.get(f"{live.url}/api/jobs/sent").status_code == 200)


# --- the store ---------------------------------------------------------------------------------------------------


async def test_a_store_that_is_down_is_a_503_until_it_is_back(own_server: OwnServers, namespace: str) -> None:
    server = own_server(appendonly="yes", appendfsync="always")
    rota = Rota(server.url, namespace=namespace, patience=0.3)
    async with open_api(create_app(rota, auth="none")) as api:
        job_id = await api.enqueue()
        server.kill()
        for method, path, body in (
            ("POST", "/api/jobs", {"type": "x"}),
            ("GET", "/api/jobs", None),
            ("GET", f"/api/jobs/{job_id}", None),
            ("POST", f"/api/jobs/{job_id}/cancel", {}),
            ("GET", "/healthz", None),
            ("GET", "/readyz", None),
        ):
            answer = await api.request(method, path, json=body)
            assert answer.status_code == 503, f"{method} {path}: {answer.text}"
            assert "is it running" in answer.json()["detail"]
            assert answer.headers["retry-after"] == "2"
        server.start()
        await eventually(lambda: _is_ready(api), timeout=5)
        assert (await api.job(job_id))["status"] == "PENDING"
        assert (await api.ask("GET", "/api/jobs/stats"))["stats"]["PENDING"] == 1
    await rota.close()


async def _is_ready(api: Api) -> bool:
    return (await api.get("/healthz")).status_code == 200


async def test_health_is_never_green_while_the_store_stands_still(
    own_server: OwnServers, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "STORE_TIMEOUT_S", 0.2)
    server = own_server()
    rota = Rota(server.url, namespace=namespace)
    async with open_api(create_app(rota, auth="none")) as api:
        assert (await api.get("/healthz")).status_code == 200
        server.pause()
        said = await api.ask("GET", "/healthz", status=503)
        assert "not answered" in said["detail"]
        server.resume()
        await eventually(lambda: _is_ready(api), timeout=5)
    await rota.close()


async def test_a_store_that_is_full_is_a_507_and_can_still_be_emptied(own_server: OwnServers, namespace: str) -> None:
    server = own_server(maxmemory_policy="noeviction")
    rota = Rota(server.url, namespace=namespace)
    async with open_api(create_app(rota, auth="none")) as api:
        job_id = await api.enqueue()
        with server.client() as client:
            client.config_set("maxmemory", "1mb")
        refused = await api.ask("POST", "/api/jobs", json={"type": "x"}, status=507)
        assert "maxmemory" in refused["detail"]
        keyed = await api.request("POST", "/api/jobs", json={"type": "x"}, headers={"Idempotency-Key": "k"})
        assert keyed.status_code == 507
        await api.ask("POST", f"/api/jobs/{job_id}/cancel")
        with server.client() as client:
            client.config_set("maxmemory", "0")
        assert (await api.ask("GET", "/api/jobs/stats"))["stats"]["PENDING"] == 0
    await rota.close()


async def test_the_store_s_address_shows_no_password(own_server: OwnServers, namespace: str) -> None:
    server = own_server(tcp=True, requirepass="hunter2")
    rota = Rota(server.url, namespace=namespace, patience=0.1)
    server.kill()
    async with open_api(create_app(rota, auth="none")) as api:
        text = (await api.get("/api/jobs")).text
    assert "hunter2" not in text
    await rota.close()


# --- the command -------------------------------------------------------------------------------------------------


def test_the_program_refuses_to_listen_beyond_the_loopback_without_auth(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "rota.cli.main", "server", "--host", "0.0.0.0", "--url", "redis://127.0.0.1:1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert ended.returncode == 6
    assert "rota token create --role admin" in ended.stderr
    assert "--auth tokens" in ended.stderr


async def test_an_answer_that_is_not_wanted_any_more_leaves_the_others_alone(api: Api, rota: Rota, hand: Hand) -> None:
    """One of several that read together goes away."""
    job_id = await api.enqueue()
    asked = [asyncio.create_task(api.job(job_id)) for _ in range(5)]
    await asyncio.sleep(0)
    asked[0].cancel()

    assert [job["jobId"] for job in await asyncio.gather(*asked[1:])] == [job_id] * 4


async def test_a_path_cannot_forge_a_line_of_the_log(
    rota: Rota, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def unavailable(*_: Any) -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(Authenticator, "identify", unavailable)
    async with open_api(create_app(rota)) as api:
        await api.ask("GET", "/api/jobs/a%0AERROR%20forged%1b%5b2J%e2%80%ae", status=503)

    (message,) = caplog.messages
    assert message == "GET /api/jobs/a%0AERROR%20forged%1B%5B2J%E2%80%AE: away"
