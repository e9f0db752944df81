"""Who may do what: the matrix of roles and routes follows from the OpenAPI document, so no route can be forgotten."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from fastapi import FastAPI

from rota import Rota
from rota.errors import ConfigurationError
from rota.server import Identity, Role, create_app
from rota.server.auth.api_tokens import Tokens, http_server_store
from rota.server.auth.authentication import COOKIE, MAX_MISSES
from rota.server.settings import check_listening
from tests.client.manual_worker import Hand
from tests.server.api import Api, open_api

#: Routes without authentication.
OPEN = {("get", "/"), ("get", "/api/progress"), ("get", "/healthz"), ("get", "/readyz"), ("post", "/api/session")}


def operations(app: FastAPI) -> list[tuple[str, str, dict[str, Any]]]:
    """Every operation of the document."""
    return [
        (method, path, operation)
        for path, methods in app.openapi()["paths"].items()
        for method, operation in methods.items()
    ]


async def test_every_route_lets_in_just_the_roles_that_it_names(guarded: FastAPI, rota: Rota) -> None:
    tokens = {role: (await Tokens(rota).create(role))[0] for role in Role}
    checked = 0
    for method, path, operation in operations(guarded):
        role = operation.get("x-role")
        assert (role is None) == ((method, path) in OPEN), f"{method} {path} names no role"
        if role is None:
            continue
        address = re.sub(r"\{\w+\}", "nothing", path) + ("?topics=x" if path == "/api/events" else "")
        for caller in (None, *Role):
            async with open_api(guarded, token=tokens[caller] if caller else None) as api:
                # An invalid body: an authorized request is refused with 400 and changes nothing.
                answer = await api.request(method.upper(), address, json=["nothing"])
            if caller is None:
                assert answer.status_code == 401, f"{method} {path} without a token: {answer.status_code}"
            elif Role(caller).covers(Role(role)):
                assert answer.status_code not in (401, 403), f"{method} {path} as {caller}: {answer.text}"
            else:
                assert answer.status_code == 403, f"{method} {path} as {caller}: {answer.status_code}"
            checked += 1
    assert checked >= 4 * 30


@pytest.mark.parametrize("text", ["", "x", "rota_000000000000_" + "a" * 43, "rota_" + "é" * 20])
async def test_what_is_no_token_is_refused(guarded: FastAPI, text: str) -> None:
    async with open_api(guarded) as api:
        said = await api.ask("GET", "/api/jobs", headers={"Authorization": f"Bearer {text}".encode()}, status=401)

    assert "rota token create" in said["detail"]


async def test_a_token_is_stored_as_a_hash(rota: Rota) -> None:
    text, token = await Tokens(rota).create(Role.ADMIN, name="ci")
    secret = text.rpartition("_")[2] if "_" not in text.split("_", 2)[2] else text.split("_", 2)[2]

    stored = (await (await http_server_store(rota)).token(token.id)).record

    assert stored is not None
    assert secret.encode() not in stored
    assert await Tokens(rota).verify(text) == token
    assert await Tokens(rota).verify(text[:-1] + ("a" if text[-1] != "a" else "b")) is None


async def test_a_token_that_is_revoked_or_over_opens_nothing(guarded: FastAPI, rota: Rota) -> None:
    revoked, token = await Tokens(rota).create(Role.VIEWER)
    await Tokens(rota).revoke(token.id)
    over, _ = await Tokens(rota).create(Role.VIEWER, lifetime_s=1)
    store = await http_server_store(rota)
    record = (await store.token(over.split("_")[1])).record
    assert record is not None
    await store.put_token(over.split("_")[1], re.sub(rb'"expires_at":\d+', b'"expires_at":1', record))

    for text in (revoked, over):
        async with open_api(guarded, token=text) as api:
            await api.ask("GET", "/api/jobs", status=401)


async def test_a_token_for_one_queue_cannot_read_the_schemas_of_other_tasks(guarded: FastAPI, rota: Rota) -> None:
    @rota.task(queue="images")
    def shrink(secret_parameter: int) -> None: ...

    text, _ = await Tokens(rota).create(Role.OPERATOR, queues=["mail"])
    async with open_api(guarded, token=text) as api:
        for path, body in (
            ("/api/jobs", {"type": "shrink"}),
            ("/api/workflows", {"name": "f", "steps": [{"type": "shrink"}]}),
        ):
            refused = await api.request("POST", path, json=body)
            assert refused.status_code == 403, path
            assert "secret_parameter" not in refused.text


async def test_a_token_for_one_queue_is_not_offered_to_drain_who_serves_others(guarded: FastAPI, rota: Rota) -> None:
    everything, _ = await Tokens(rota).create(Role.OPERATOR)
    limited, _ = await Tokens(rota).create(Role.OPERATOR, queues=["mail"])
    hands = [Hand(rota, "only-1-a"), Hand(rota, "wide-1-a")]
    for hand, queues in zip(hands, (["mail"], ["mail", "images"]), strict=True):
        await hand.store.renew_registration(json.dumps({"state": "active", "queues": queues}))
        await hand.close()
    offered: list[dict[str, list[str]]] = []

    for token in (everything, limited):
        async with open_api(guarded, token=token) as api:
            workers = (await api.ask("GET", "/api/workers"))["workers"]
            offered.append({worker["name"]: worker["actions"] for worker in workers})

    assert offered == [{"only": ["drain"], "wide": ["drain"]}, {"only": ["drain"], "wide": []}]


async def test_a_token_for_one_queue_sees_and_touches_no_other(guarded: FastAPI, rota: Rota) -> None:
    text, _ = await Tokens(rota).create(Role.ADMIN, queues=["mail"])
    everything, _ = await Tokens(rota).create(Role.ADMIN)
    async with open_api(guarded, token=everything) as admin:
        other = await admin.enqueue(queue="images")
        own = await admin.enqueue(queue="mail")

    async with open_api(guarded, token=text) as api:
        for method, path, body in (
            ("GET", f"/api/jobs/{other}", None),
            ("GET", "/api/jobs/images:unknown", None),
            ("DELETE", f"/api/jobs/{other}", None),
            ("POST", f"/api/jobs/{other}/cancel", None),
            ("PATCH", f"/api/jobs/{other}", {"priority": 1}),
            ("GET", "/api/queues/images", None),
            ("POST", "/api/queues/images/pause", None),
            ("GET", "/api/jobs?queue=images", None),
            ("GET", "/api/audit", None),
            ("GET", "/api/workflows", None),
            ("POST", "/api/jobs", {"type": "x", "queue": "images"}),
            ("POST", "/api/jobs", {"type": "x"}),
            ("POST", "/api/jobs", {"type": "x", "queue": "mail", "dependencies": [other]}),
        ):
            await api.ask(method, path, status=403, **({"json": body} if body else {}))
        assert [queue["name"] for queue in (await api.ask("GET", "/api/queues"))["queues"]] == ["mail"]
        assert (await api.ask("GET", "/api/jobs/stats"))["stats"]["PENDING"] == 1
        assert (await api.job(own))["queue"] == "mail"
        assert (await api.ask("GET", "/api/jobs?queue=mail"))["jobs"][0]["jobId"] == own
    assert await rota.job(other).state() == "pending"


# --- sessions ----------------------------------------------------------------------------------------------------


async def test_a_login_opens_a_session_that_changes_need_a_header_for(guarded: FastAPI, rota: Rota) -> None:
    text, _ = await Tokens(rota).create(Role.OPERATOR, name="ada")
    async with open_api(guarded) as api:
        response = await api.post("/api/session", json={"token": text})
        assert response.status_code == 201
        cookie = response.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        csrf = response.json()["csrf"]

        assert (await api.ask("GET", "/api/session"))["name"] == "ada"
        said = await api.ask("POST", "/api/jobs", json={"type": "x"}, status=403)
        assert "X-CSRF-Token" in said["detail"]
        await api.ask("POST", "/api/jobs", json={"type": "x"}, headers={"X-CSRF-Token": "no"}, status=403)
        await api.ask("POST", "/api/jobs", json={"type": "x"}, headers={"X-CSRF-Token": csrf}, status=201)
        evil = {"X-CSRF-Token": csrf, "Origin": "https://evil.example"}
        await api.ask("POST", "/api/jobs", json={"type": "x"}, headers=evil, status=403)

        await api.ask("DELETE", "/api/session", headers={"X-CSRF-Token": csrf})
        api.cookies.clear()
        api.cookies.set(COOKIE, cookie.partition("=")[2].partition(";")[0])
        await api.ask("GET", "/api/session", status=401)


async def test_a_session_ends_with_its_token(guarded: FastAPI, rota: Rota) -> None:
    text, token = await Tokens(rota).create(Role.VIEWER)
    async with open_api(guarded) as api:
        await api.ask("POST", "/api/session", json={"token": text}, status=201)
        await Tokens(rota).revoke(token.id)

        await api.ask("GET", "/api/session", status=401)


async def test_failed_logins_from_one_address_are_limited(guarded: FastAPI, rota: Rota) -> None:
    text, _ = await Tokens(rota).create(Role.VIEWER)
    async with open_api(guarded) as api:
        for _ in range(MAX_MISSES):
            await api.ask("POST", "/api/session", json={"token": "wrong"}, status=401)

        response = await api.post("/api/session", json={"token": text})
        assert response.status_code == 429
        assert int(response.headers["retry-after"]) > 0
    async with open_api(guarded, token=text) as api:
        await api.ask("GET", "/api/jobs")  # failed logins of others do not lock out a valid token


# --- without tokens ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "queue.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"X-Forwarded-For": "10.0.0.1"},
        {"Forwarded": "for=10.0.0.1"},
    ],
)
async def test_without_auth_only_this_machine_is_served(api: Api, headers: dict[str, str]) -> None:
    said = await api.ask("GET", "/api/jobs", headers=headers, status=403)

    assert "--auth tokens" in said["detail"]


async def test_without_auth_pages_of_other_origins_change_nothing(api: Api) -> None:
    for headers in (
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "null"},
        {"Origin": "http://["},
    ):
        await api.ask("POST", "/api/jobs", json={"type": "x"}, headers=headers, status=403)
    await api.ask("POST", "/api/jobs", json={"type": "x"}, headers={"Origin": "http://127.0.0.1"}, status=201)
    text = await api.request("POST", "/api/jobs", content='{"type": "x"}', headers={"Content-Type": "text/plain"})
    assert text.status_code == 422


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "queue.example", "", "127.0.0.1.evil.example"])
def test_listening_beyond_the_loopback_without_auth_is_refused(host: str) -> None:
    with pytest.raises(ConfigurationError, match="rota token create"):
        check_listening(host, "none")
    check_listening(host, "tokens")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_listening_on_the_loopback_needs_no_auth(host: str) -> None:
    check_listening(host, "none")


async def test_an_application_that_mounts_it_is_asked_for_tokens_unless_it_says_otherwise(rota: Rota) -> None:
    """The lesson of others: a default that was open when mounted."""
    outer = FastAPI()
    outer.mount("/queue", create_app(rota))
    async with open_api(outer) as api:
        await api.ask("GET", "/queue/api/jobs", status=401)
        assert (await api.get("/queue/healthz")).status_code == 200
        assert "/api/jobs" in (await api.get("/queue/openapi.json")).json()["paths"]
        text, _ = await Tokens(rota).create(Role.VIEWER)
        cookie = (await api.post("/queue/api/session", json={"token": text})).headers["set-cookie"]
        assert "Path=/queue;" in cookie
        await api.ask("GET", "/queue/api/session")


async def test_an_application_that_mounts_it_may_say_who_asks(rota: Rota) -> None:
    def who(request: Any) -> Identity | None:
        return Identity("ada", Role.VIEWER) if request.headers.get("x-user") == "ada" else None

    outer = FastAPI()
    outer.mount("/queue", create_app(rota, auth=who))
    async with open_api(outer) as api:
        await api.ask("GET", "/queue/api/jobs", status=401)
        await api.ask("GET", "/queue/api/jobs", headers={"X-User": "ada"})
        await api.ask("POST", "/queue/api/jobs", json={"type": "x"}, headers={"X-User": "ada"}, status=403)
        assert (await api.ask("GET", "/queue/api/session", headers={"X-User": "ada"}))["auth"] == "host"


# --- browsers ----------------------------------------------------------------------------------------------------


async def test_every_answer_has_the_headers_that_keep_browsers_out_of_trouble(api: Api) -> None:
    for path in ("/api/jobs", "/nowhere", "/healthz", "/openapi.json"):
        headers = (await api.get(path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers


@pytest.mark.requirement("S2-33")
async def test_other_origins_may_use_it_only_where_they_are_named(rota: Rota) -> None:
    """Open for the separate frontend, and for no other."""
    asked = {"Origin": "https://shop.example", "Access-Control-Request-Method": "POST"}
    async with open_api(create_app(rota)) as api:
        assert "access-control-allow-origin" not in (await api.options("/api/jobs", headers=asked)).headers
    async with open_api(create_app(rota, cors_origins=["https://shop.example"])) as api:
        allowed = (await api.options("/api/jobs", headers=asked)).headers
        assert allowed["access-control-allow-origin"] == "https://shop.example"
        other = await api.options("/api/jobs", headers=asked | {"Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in other.headers
    for origin in ("shop.example", "https://shop.example/", "https://*"):
        with pytest.raises(ConfigurationError):
            create_app(rota, cors_origins=[origin])


@pytest.mark.requirement("S2-33")
async def test_every_origin_may_use_it_with_a_token_and_without_the_cookie(rota: Rota) -> None:
    """`*` lets any page send a token. The cookie, which a browser sends by itself, gives such a page no access."""
    text, _ = await Tokens(rota).create(Role.OPERATOR)
    page = {"Origin": "https://any.example"}
    bearer = {"Authorization": f"Bearer {text}"}
    async with open_api(create_app(rota, cors_origins=["*"])) as api:
        asked = page | {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "Authorization"}
        preflight = await api.options("/api/jobs", headers=asked)
        response = await api.post("/api/jobs", json={"type": "example"}, headers=page | bearer)
        assert (preflight.status_code, response.status_code) == (200, 201)
        for headers in (preflight.headers, response.headers):
            assert headers["access-control-allow-origin"] == "*"
            assert "access-control-allow-credentials" not in headers

        assert (await api.post("/api/session", json={"token": text}, headers=page)).status_code == 403
        session = await api.post("/api/session", json={"token": text})
        csrf = {"X-CSRF-Token": session.json()["csrf"]}
        assert (await api.post("/api/jobs", json={"type": "example"}, headers=csrf)).status_code == 201
        assert (await api.post("/api/jobs", json={"type": "example"}, headers=csrf | page)).status_code == 403
        assert "access-control-allow-credentials" not in (await api.get("/api/jobs", headers=page)).headers

    def cookie_of_the_host(request: Any) -> Identity | None:
        return None

    with pytest.raises(ConfigurationError, match="--auth tokens"):
        create_app(rota, auth="none", cors_origins=["*"])
    with pytest.raises(ConfigurationError, match="--auth tokens"):
        create_app(rota, auth=cookie_of_the_host, cors_origins=["*"])


async def test_the_dashboard_receives_the_address_of_the_trace_viewer(rota: Rota) -> None:
    template = "https://tracing.example/explore?trace={trace_id}"
    async with open_api(create_app(rota, auth="none", trace_url=template)) as api:
        assert (await api.ask("GET", "/api/session"))["trace_url"] == template
    async with open_api(create_app(rota, auth="none")) as api:
        assert (await api.ask("GET", "/api/session"))["trace_url"] is None


@pytest.mark.parametrize(
    "template",
    [
        "javascript:alert('{trace_id}')",
        "data:text/html,{trace_id}",
        "//tracing.example/{trace_id}",
        "https:///{trace_id}",
        "tracing.example/{trace_id}",
        "https://tracing.example/trace",
        "https://[{trace_id}",
        "https://tracing.example/ {trace_id}",
        " javascript:{trace_id}",
        "https://tracing.example/\n{trace_id}",
        "",
    ],
)
def test_what_is_no_address_of_a_trace_is_refused_with_an_example(rota: Rota, template: str) -> None:
    with pytest.raises(ConfigurationError, match=r"https://tracing\.example/trace/\{trace_id\}"):
        create_app(rota, auth="none", trace_url=template)
