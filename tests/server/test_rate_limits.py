"""Limits of requests and enqueues per token."""

from __future__ import annotations

import pytest
from fastapi import FastAPI

from rota import InvalidOption, Rota
from rota.server.auth.api_tokens import Role, Tokens
from rota.server.auth.request_and_enqueue_rate_limits import Bucket, Limits, RateLimiter
from tests.server.api import Api, open_api


def test_a_bucket_allows_a_burst_and_then_its_rate() -> None:
    bucket = Bucket(size=3, rate=2, now=100.0)

    assert [bucket.take(1, 100.0) for _ in range(4)] == [0, 0, 0, 0.5]
    assert bucket.take(1, 100.25) == 0.25
    assert bucket.take(1, 100.5) == 0
    assert bucket.take(1, 99.0) == 0.5, "a clock that goes back adds nothing"
    assert [bucket.take(1, 200.0) for _ in range(4)] == [0, 0, 0, 0.5], "and it holds no more than its size"


def test_more_than_a_bucket_holds_is_allowed_once_it_is_full_and_paid_for_later() -> None:
    bucket = Bucket(size=10, rate=1, now=0.0)

    assert bucket.take(25, 0.0) == 0
    assert bucket.take(1, 0.0) == 16
    assert bucket.take(25, 15.0) == 10
    assert bucket.take(25, 25.0) == 0


def test_callers_do_not_share_a_limit_and_a_changed_limit_counts_at_once() -> None:
    limiter = RateLimiter()
    slow = Limits(requests_per_second=0.001, burst=1)

    assert limiter.count_request("a", slow) == 0
    assert limiter.count_request("a", slow) > 0
    assert limiter.count_request("b", slow) == 0
    assert limiter.count_request("a", Limits(requests_per_second=0.001, burst=2)) == 0
    assert all(limiter.count_request("c", Limits()) == 0 for _ in range(1_000))


async def test_requests_beyond_the_limit_of_a_token_are_refused(guarded: FastAPI, rota: Rota) -> None:
    limits = Limits(requests_per_second=0.001, burst=3)
    slow, _ = await Tokens(rota).create(Role.VIEWER, name="poller", limits=limits)
    other, _ = await Tokens(rota).create(Role.VIEWER)
    async with open_api(guarded, token=slow) as api:
        for _ in range(3):
            await api.ask("GET", "/api/queues")
        refused = await api.get("/api/queues")
        assert refused.status_code == 429
        assert refused.json()["code"] == "rate_limited"
        assert "poller is limited to 0.001 requests per second" in refused.json()["detail"]
        assert int(refused.headers["retry-after"]) > 900
    async with open_api(guarded, token=other) as api:
        for _ in range(10):
            await api.ask("GET", "/api/queues")


async def test_enqueues_beyond_the_limit_of_a_token_are_refused_and_store_nothing(guarded: FastAPI, rota: Rota) -> None:
    text, _ = await Tokens(rota).create(Role.OPERATOR, limits=Limits(enqueues_per_minute=3))
    async with open_api(guarded, token=text) as api:
        key = {"Idempotency-Key": "k"}
        first = await api.ask("POST", "/api/jobs", json={"type": "x"}, headers=key, status=201)
        assert await api.ask("POST", "/api/jobs", json={"type": "x"}, headers=key, status=201) == first
        steps = [{"name": "a", "type": "x"}, {"name": "b", "type": "x"}]
        await api.ask("POST", "/api/workflows", json={"name": "w", "steps": steps}, status=201)
        refused = await api.ask("POST", "/api/jobs", json={"type": "x"}, status=429)
        await api.ask("POST", "/api/workflows", json={"name": "w", "steps": steps}, status=429)
        assert "3 enqueues per minute" in refused["detail"]
        assert (await api.ask("GET", "/api/jobs/stats"))["stats"]["PENDING"] == 3, "reading is not limited"


async def test_a_viewer_stores_nothing_with_an_idempotency_key(guarded: FastAPI, rota: Rota, api: Api) -> None:
    text, _ = await Tokens(rota).create(Role.VIEWER)
    async with open_api(guarded, token=text) as viewer:
        await viewer.ask("GET", "/api/queues")  # notes the use of the token
        before = await _keys(api, rota)
        for path in ("/api/jobs", "/api/workflows", "/api/queues/x/pause", "/api/dead/redrive", "/api/operations"):
            await viewer.ask("POST", path, json={}, headers={"Idempotency-Key": path}, status=403)

    assert await _keys(api, rota) == before


async def _keys(api: Api, rota: Rota) -> list[str]:
    from rota.client.session import session_of

    return sorted(await session_of(rota).redis.keys(f"{rota.namespace}:*"))


@pytest.mark.parametrize(
    "limits",
    [
        Limits(requests_per_second=0),
        Limits(requests_per_second=-1),
        Limits(enqueues_per_minute=0),
        Limits(burst=5),
        Limits(requests_per_second=float("nan")),
    ],
)
async def test_limits_that_make_no_sense_are_refused(rota: Rota, limits: Limits) -> None:
    with pytest.raises(InvalidOption):
        await Tokens(rota).create(Role.VIEWER, limits=limits)
