"""The attention list: acknowledge, snooze, note; and marks, saved views and tokens, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rota import Rota
from rota.client.session import sessions_of
from rota.core.health.acknowledgement import Acknowledgement
from rota.core.health.finding import Finding
from rota.server import Role, create_app
from rota.server.auth.api_tokens import Tokens
from rota.server.auth.request_and_enqueue_rate_limits import Limits
from tests.client.manual_worker import Hand
from tests.metric_history import ended, write_hours, write_minutes, write_usual_days
from tests.server.api import Api, open_api
from tests.servers import Server

KEY = "slow_queue:mail"


@pytest.fixture
def slow_mail(rota: Rota, valkey: Server) -> None:
    write_usual_days(rota, valkey, "mail", task="send", run_ms=116)
    write_minutes(rota, valkey, "mail", ended(40, 3_500), task="send", minutes_ago=[1, 2, 3])


async def attention(api: Api) -> tuple[str, dict[str, Any]]:
    answer = await api.ask("GET", "/api/overview")
    return answer["verdict"]["text"], next(one for one in answer["attention"] if one["key"] == KEY)


@pytest.mark.usefixtures("slow_mail")
async def test_an_acknowledged_finding_is_listed_and_does_not_count(api: Api) -> None:
    line, found = await attention(api)
    assert line == "Degraded: mail 30 × slower than usual"
    assert (bool(found["since"]), found["acknowledged"]) == (True, None)

    await api.ask("POST", f"/api/attention/{KEY}/acknowledge", json={"note": "partner is slow"})
    line, found = await attention(api)

    assert line == "Healthy"
    assert (found["acknowledged"]["note"], found["acknowledged"]["until"]) == ("partner is slow", None)
    assert found["acknowledged"]["by"]

    await api.ask("DELETE", f"/api/attention/{KEY}/acknowledge")
    assert (await attention(api))[0] == "Degraded: mail 30 × slower than usual"


@pytest.mark.usefixtures("slow_mail")
async def test_a_finding_is_snoozed_for_a_time(api: Api) -> None:
    answer = await api.ask("POST", f"/api/attention/{KEY}/acknowledge", json={"snooze_s": 3600})

    assert answer["acknowledged"]["until"] > answer["acknowledged"]["at"]
    assert (await attention(api))[0] == "Healthy"


async def test_a_finding_that_does_not_exist_is_not_acknowledged(api: Api) -> None:
    await api.ask("POST", "/api/attention/slow_queue:none/acknowledge", json={}, status=404)


def test_an_acknowledgement_ends_at_its_time_and_when_the_finding_gets_worse() -> None:
    def finding(level: Any) -> Finding:
        return Finding(key="k", kind="error_rate", level=level, subject="mail", phrase="", detail="")

    snoozed = Acknowledgement(by="ana", at=1, until=10, level="warn")

    assert snoozed.covers(finding("warn"), 9)
    assert snoozed.covers(finding("notice"), 9)
    assert not snoozed.covers(finding("warn"), 10)
    assert not snoozed.covers(finding("fail"), 9)


async def test_deploys_and_notes_are_marked_and_listed_by_time(api: Api) -> None:
    past = {"text": "release 41", "kind": "deploy", "version": "41", "at": "2026-01-01T03:00:00Z"}
    made = (await api.ask("POST", "/api/annotations", json=past, status=201))["annotation"]
    await api.ask("POST", "/api/annotations", json={"text": "partner is down", "queue": "mail"}, status=201)

    listed = (await api.ask("GET", "/api/annotations"))["annotations"]
    of_images = (await api.ask("GET", "/api/annotations", params={"queue": "images"}))["annotations"]
    lately = (await api.ask("GET", "/api/annotations", params={"since": "2026-02-01T00:00:00Z"}))["annotations"]

    assert [(one["text"], one["kind"], one["version"]) for one in listed] == [
        ("release 41", "deploy", "41"),
        ("partner is down", "note", None),
    ]
    assert [one["text"] for one in of_images] == ["release 41"]
    assert [one["text"] for one in lately] == ["partner is down"]
    await api.ask("DELETE", f"/api/annotations/{made['id']}")
    await api.ask("DELETE", f"/api/annotations/{made['id']}", status=404)
    await api.ask("POST", "/api/annotations", json={"text": "x", "at": "03:00"}, status=422)


async def test_a_history_ends_where_it_is_told_to_and_has_the_day_before(api: Api, rota: Rota, valkey: Server) -> None:
    write_hours(rota, valkey, "mail", ended(7, 100), task="send", hours_ago=[24, 25])
    write_minutes(rota, valkey, "mail", ended(5, 100), task="send", minutes_ago=[70])
    params = {"queue": "mail", "since": 3600}

    now = await api.ask("GET", "/api/metrics/history", params={**params, "compare": "day"})
    hour_ago = await api.ask("GET", "/api/metrics/history", params={**params, "until": now["since"]})

    assert (now["total"]["completed"], hour_ago["total"]["completed"]) == (0, 5)
    assert hour_ago["until"] <= now["since"]
    assert now["previous"]["step_ms"] == 3_600_000
    assert now["previous"]["total"]["completed"] in (7, 14)
    assert hour_ago["previous"] is None


async def test_tokens_are_created_listed_and_revoked(rota: Rota) -> None:
    text = (await Tokens(rota).create(Role.ADMIN, name="boss"))[0]
    async with open_api(create_app(rota), token=text) as admin:
        asked = {"role": "viewer", "name": "colleague", "queues": ["mail"], "expires_s": 3600}
        made = await admin.ask("POST", "/api/tokens", json=asked, status=201)
        async with open_api(create_app(rota), token=made["secret"]) as colleague:
            await colleague.ask("GET", "/api/queues")
            await colleague.ask("GET", "/api/tokens", status=403)
        listed = (await admin.ask("GET", "/api/tokens"))["tokens"]
        found = next(one for one in listed if one["name"] == "colleague")
        assert (found["role"], found["queues"], found["created_by"]) == ("viewer", ["mail"], "boss")
        assert (bool(found["last_used"]), bool(found["expires_at"])) == (True, True)
        assert made["secret"] not in str(listed)

        await admin.ask("DELETE", f"/api/tokens/{found['id']}")
        await admin.ask("DELETE", f"/api/tokens/{found['id']}", status=404)
        assert [one["name"] for one in (await admin.ask("GET", "/api/tokens"))["tokens"]] == ["boss"]
        await admin.ask("POST", "/api/tokens", json={"role": "viewer", "queues": ["a b"]}, status=422)


async def test_an_admin_limited_to_some_queues_creates_no_tokens(rota: Rota) -> None:
    text = (await Tokens(rota).create(Role.ADMIN, queues=["mail"]))[0]
    async with open_api(create_app(rota), token=text) as limited:
        await limited.ask("POST", "/api/tokens", json={"role": "admin"}, status=403)
        await limited.ask("GET", "/api/tokens", status=403)


@pytest.mark.parametrize(("queues", "tasks"), [([], ["send"]), (["mail"], [])])
async def test_a_token_with_a_scope_neither_creates_nor_revokes_tokens(
    rota: Rota, queues: list[str], tasks: list[str]
) -> None:
    _, other = await Tokens(rota).create(Role.ADMIN)
    text, _ = await Tokens(rota).create(Role.ADMIN, queues=queues, tasks=tasks)
    async with open_api(create_app(rota), token=text) as limited:
        refused = await limited.ask("POST", "/api/tokens", json={"role": "admin"}, status=403)
        await limited.ask("DELETE", f"/api/tokens/{other.id}", status=403)

    assert "requires access to all queues and tasks" in refused["detail"]
    assert len(await Tokens(rota).list()) == 2


@pytest.mark.parametrize("wanted", [None, 60, 86_400])
async def test_a_token_expires_with_its_creator_and_has_its_rate_limits(rota: Rota, wanted: float | None) -> None:
    limits = Limits(requests_per_second=5, enqueues_per_minute=100)
    text, creator = await Tokens(rota).create(Role.ADMIN, lifetime_s=3_600, limits=limits)
    async with open_api(create_app(rota), token=text) as admin:
        asked = {"role": "admin", "name": "new"} | ({} if wanted is None else {"expires_s": wanted})
        await admin.ask("POST", "/api/tokens", json=asked, status=201)
        new = next(one for one in await Tokens(rota).list() if one.name == "new")
        await Tokens(rota).revoke(creator.id)
        await admin.ask("POST", "/api/tokens", json=asked, status=401)  # though the server still trusts it

    assert creator.expires_at is not None
    assert new.expires_at is not None
    assert new.limits == limits
    assert (new.expires_at == creator.expires_at) is (wanted != 60)
    assert new.expires_at <= creator.expires_at


async def test_views_are_saved_replaced_and_deleted(api: Api) -> None:
    await api.ask("PUT", "/api/views/failed mail", json={"page": "/jobs", "search": {"state": "FAILED"}})
    await api.ask("PUT", "/api/views/failed mail", json={"page": "/jobs", "search": {"queue": "mail"}})

    (view,) = (await api.ask("GET", "/api/views"))["views"]

    assert (view["name"], view["page"], view["search"]) == ("failed mail", "/jobs", {"queue": "mail"})
    await api.ask("PUT", "/api/views/large", json={"page": "/jobs", "search": {"text": "x" * 5_000}}, status=413)
    await api.ask("DELETE", "/api/views/failed mail")
    await api.ask("DELETE", "/api/views/failed mail", status=404)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("a", {"page": "/jobs", "search": {"text": "\ud800"}}),
        ("a", {"page": "/jobs", "search": {"\ud800": ["x"]}}),
        ("a", {"page": "/jobs", "search": {"text": {"\ud800": 1}}}),
        ("a", {"page": "//evil.example"}),
        ("a", {"page": "/\\evil.example"}),
        ("a", {"page": "/\t/evil.example"}),
        ("a%0Ab", {"page": "/jobs"}),
    ],
)
async def test_a_view_that_cannot_be_stored_or_leaves_the_dashboard_is_refused(
    api: Api, name: str, body: dict[str, Any]
) -> None:
    headers = {"Content-Type": "application/json"}
    await api.ask("PUT", f"/api/views/{name}", content=json.dumps(body), headers=headers, status=422)

    assert (await api.ask("GET", "/api/views"))["views"] == []


async def test_a_dead_worker_shows_a_limited_token_its_own_queues(rota: Rota, hand: Hand, valkey: Server) -> None:
    await hand.store.renew_registration(json.dumps({"state": "active", "queues": ["mail", "images"]}))
    with valkey.client() as client:
        client.zincrby(sessions_of(rota).keys.shared("worker_seen"), -60_000, "w1")
    path = "/api/attention/dead_worker:w1/acknowledge"
    for queues, names, status in ((["mail"], ["mail"], 404), (["mail", "images"], ["mail", "images"], 200)):
        text = (await Tokens(rota).create(Role.OPERATOR, queues=queues))[0]
        async with open_api(create_app(rota), token=text) as limited:
            (found,) = (await limited.ask("GET", "/api/overview"))["attention"]
            assert (found["key"], found["names"]) == ("dead_worker:w1", names)
            answer = await limited.ask("POST", path, status=status)
            await limited.ask("DELETE", path, status=status)
            assert status == 200 or answer["code"] == "finding_not_found"
