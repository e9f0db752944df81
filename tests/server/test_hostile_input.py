"""Hostile and damaged input is answered with a 4xx or shown as it is, never with a 500."""

from __future__ import annotations

from typing import Any

import pytest

from rota import Rota
from rota.client.session import sessions_of
from rota.core.masking import MAX_DEPTH
from tests.server.api import Api
from tests.servers import Server

SURROGATE = b"\\ud800"


def nested(depth: int) -> dict[str, Any]:
    """An object that is nested this deep."""
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize("depth", [150, 450, 900])
async def test_deeply_nested_data_is_accepted_or_refused(api: Api, depth: int) -> None:
    job_id = await api.enqueue(data={"a": 1})
    data = nested(depth)
    requests: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/api/workflows", {"name": "w", "steps": [{"type": "x", "data": data}]}),
        ("POST", "/api/jobs", {"type": "x", "data": data}),
        ("POST", "/", {"name": "x", "data": data}),
        ("PATCH", f"/api/jobs/{job_id}", {"data": data}),
        ("PUT", "/api/schedules/deep", {"rule": {"every": 60}, "type": "x", "data": data}),
        ("POST", "/api/jobs", {"type": "x", "meta": data}),
    ]
    for method, path, body in requests:
        response = await api.request(method, path, json=body)
        assert response.status_code < 500, f"{method} {path}: {response.text}"
    for path in ("/api/jobs", "/api/schedules", "/api/workflows", f"/api/jobs/{job_id}"):
        assert (await api.request("GET", path)).status_code == 200, path


async def test_meta_is_masked_where_it_is_nested_too_deeply(api: Api, rota: Rota) -> None:
    @rota.task
    def example() -> None: ...

    job = await example.using(meta=nested(600)).enqueue()

    text = (await api.job(job.id))["meta_text"]
    assert text == '{"a":' * MAX_DEPTH + '"•••••"' + "}" * MAX_DEPTH


@pytest.mark.parametrize("part", [b'{"a%b": 1}', b'{"a": "%b"}'])
async def test_a_lone_surrogate_in_a_field_is_refused(api: Api, part: bytes) -> None:
    content = b'{"action": "cancel", "dry_run": true, "where": {"fields": %b}}' % (part % SURROGATE)

    await api.ask("POST", "/api/operations", content=content, headers={"Content-Type": "application/json"}, status=422)


@pytest.mark.parametrize("path", ["/" + "a" * 5_000 + ".svg", "/%00.svg", "/..%2f..%2fsettings.py.svg"])
async def test_a_path_of_no_file_is_a_404(api: Api, path: str) -> None:
    await api.ask("GET", path, status=404)


async def test_a_record_with_an_absurd_time_is_shown(api: Api, rota: Rota, valkey: Server) -> None:
    job_id = await api.enqueue()
    run = (await api.job(job_id))["run"]
    key = sessions_of(rota).keys.queue("default", "jobs")
    with valkey.client() as client:
        stored: Any = client.hget(key, run)
        head, rest = stored.split(b"\n", 1)
        client.hset(key, run, head.split(b" ")[0] + b" 99999999999999999999\n" + rest)

    assert (await api.job(job_id))["enqueued_at"].startswith("9999")
    assert (await api.ask("GET", "/api/jobs"))["jobs"][0]["enqueued_at"].startswith("9999")
