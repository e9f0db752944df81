"""One thing done to all that match: counted first, carried out in the background, reported."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI

from rota import Rota
from rota.server import Role
from rota.server.auth.api_tokens import Tokens
from tests.client.manual_worker import Hand
from tests.eventually import eventually
from tests.server.api import Api, open_api
from tests.server.test_jobs import handle


async def ended(api: Api, operation_id: str) -> dict[str, Any]:
    """An operation, once it is over."""

    async def look() -> Any:
        operation = (await api.ask("GET", f"/api/operations/{operation_id}"))["operation"]
        return operation if operation["state"] in ("COMPLETED", "STOPPED") else None

    return await eventually(look)


async def start(api: Api, action: str, where: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Starts an operation, and waits for its end."""
    body = {"action": action, **({} if where is None else {"where": where}), **more}
    operation = (await api.ask("POST", "/api/operations", json=body, status=202))["operation"]
    return await ended(api, operation["id"])


async def test_a_dry_run_counts_and_changes_nothing(api: Api, rota: Rota) -> None:
    for _ in range(3):
        await api.enqueue(queue="mail", tags=["old"])
    await api.enqueue(queue="mail")

    report = await start(api, "cancel", {"tag": "old"}, dry_run=True)

    assert (report["matched"], report["done"], report["is_dry_run"]) == (3, 0, True)
    assert (await rota.queue("mail").counts())["pending"] == 4


async def test_what_matches_is_cancelled_changed_redriven_and_deleted(api: Api, rota: Rota, hand: Hand) -> None:
    ids = [await api.enqueue("send", queue="mail", attempts=1) for _ in range(4)]
    other = await api.enqueue("other", queue="mail")
    await hand.kill_off(await handle(rota, ids[0]))

    assert (await start(api, "update", {"type": "send"}, priority="high"))["done"] == 3
    assert (await api.job(ids[1]))["priority"] == -10
    assert (await start(api, "cancel", {"type": "send"}, reason="not wanted"))["done"] == 3
    assert (await api.job(ids[1]))["reason"] == "not wanted"
    assert (await start(api, "redrive", {"error": "ValueError", "queue": "mail"}))["done"] == 1
    assert (await api.job(ids[0]))["status"] == "PENDING"
    report = await start(api, "delete", {"type": "send"})
    assert (report["done"], report["failures"], report["state"]) == (4, [], "COMPLETED")
    assert (await api.job(other))["status"] == "PENDING"
    assert len((await api.ask("GET", "/api/operations"))["operations"]) == 4
    actions = [entry["action"] for entry in (await api.ask("GET", "/api/audit"))["entries"]]
    assert actions == ["delete", "redrive", "cancel", "update"]


async def test_chosen_jobs_are_counted_and_then_cancelled(api: Api) -> None:
    ids = [await api.enqueue(queue="mail") for _ in range(3)]
    ids.append(await api.enqueue(queue="images"))
    await api.ask("POST", f"/api/jobs/{ids[0]}/cancel")

    dry = await start(api, "cancel", jobs=ids[:2] + ids[3:], dry_run=True)
    assert (dry["chosen"], dry["matched"], dry["done"], dry["where"]) == (3, 2, 0, {})
    report = await start(api, "cancel", jobs=ids[:2] + ids[3:], reason="not wanted")

    assert (report["chosen"], report["matched"], report["done"], report["failures"]) == (3, 2, 2, [])
    assert [(await api.job(one))["status"] for one in ids] == ["CANCELLED", "CANCELLED", "PENDING", "CANCELLED"]
    entry = (await api.ask("GET", "/api/audit"))["entries"][0]
    assert entry["before"] is None
    assert entry["after"] == {"jobs": ids[:2] + ids[3:], "reason": "not wanted"}


async def test_the_audit_log_has_the_filter_of_an_operation_and_no_estimate(api: Api) -> None:
    """How many jobs match is known at the end; the number in the state may be much larger."""
    for tag in ("old", "new", "new"):
        await api.enqueue(queue="mail", tags=[tag])

    report = await start(api, "cancel", where={"state": "PENDING", "queue": "mail", "tag": "old"})

    assert report["done"] == 1
    entry = (await api.ask("GET", "/api/audit"))["entries"][0]
    assert entry["before"] is None
    assert entry["after"] == {"where": {"state": "pending", "queue": "mail", "tag": "old"}}


async def test_an_operation_is_cancelled_on_its_way(api: Api, rota: Rota) -> None:
    for _ in range(5):
        await api.enqueue(queue="mail")
    body = {"action": "cancel", "where": {"queue": "mail"}, "per_second": 0.5}
    operation = (await api.ask("POST", "/api/operations", json=body, status=202))["operation"]

    await api.ask("POST", f"/api/operations/{operation['id']}/cancel")

    report = await ended(api, operation["id"])
    assert report["state"] == "STOPPED"
    assert (await rota.queue("mail").counts())["pending"] > 0


@pytest.mark.parametrize(
    "body",
    [
        {"action": "cancel", "where": {}},
        {"action": "explode", "where": {"queue": "mail"}},
        {"action": "cancel", "where": {"colour": "red"}},
        {"action": "update", "where": {"queue": "mail"}},
        {"action": "cancel", "where": {"since": "noon"}},
        {"action": "cancel", "where": {"queue": "a b"}},
        {"action": "cancel", "where": {"queue": "mail"}, "per_second": 0},
        {"action": "cancel"},
        {"action": "cancel", "jobs": []},
        {"action": "cancel", "jobs": ["a b"]},
        {"action": "cancel", "jobs": ["mail:x"] * 10_001},
        {"action": "cancel", "jobs": ["mail:x"], "where": {"queue": "mail"}},
    ],
)
async def test_an_operation_that_makes_no_sense_is_refused(api: Api, body: dict[str, Any]) -> None:
    await api.ask("POST", "/api/operations", json=body, status=422)

    assert (await api.ask("GET", "/api/operations"))["operations"] == []


async def test_an_unknown_operation_is_a_404(api: Api) -> None:
    await api.ask("GET", "/api/operations/0000000000000000", status=404)
    await api.ask("POST", "/api/operations/0000000000000000/cancel", status=404)


async def test_to_delete_all_that_match_takes_an_admin_and_a_limited_token_stays_in_its_queues(
    guarded: FastAPI, rota: Rota
) -> None:
    operator, _ = await Tokens(rota).create(Role.OPERATOR)
    limited, _ = await Tokens(rota).create(Role.ADMIN, queues=["mail"])
    async with open_api(guarded, token=operator) as api:
        await api.enqueue(queue="images")
        images = {"action": "delete", "where": {"queue": "images"}}
        await api.ask("POST", "/api/operations", json=images, status=403)
        cancel = images | {"action": "cancel"}
        operation = (await api.ask("POST", "/api/operations", json=cancel, status=202))["operation"]
        await ended(api, operation["id"])
        job = await api.enqueue(queue="images")
        assert (await start(api, "delete", jobs=[job]))["done"] == 1
        other = await api.enqueue(queue="mail")
        chosen = (await start(api, "cancel", jobs=[other, await api.enqueue(queue="images")]))["id"]
    async with open_api(guarded, token=limited) as api:
        await api.ask("GET", f"/api/operations/{chosen}", status=404)
        mixed = {"action": "delete", "jobs": [other, job]}
        await api.ask("POST", "/api/operations", json=mixed, status=403)
        assert (await api.job(other))["status"] == "CANCELLED"
        await api.ask("POST", "/api/operations", json=images, status=403)
        await api.ask("POST", "/api/operations", json={"action": "cancel", "where": {"type": "x"}}, status=422)
        await api.ask("GET", f"/api/operations/{operation['id']}", status=404)
        assert (await api.ask("GET", "/api/operations"))["operations"] == []
        own = await start(api, "delete", jobs=[other])
        assert [one["id"] for one in (await api.ask("GET", "/api/operations"))["operations"]] == [own["id"]]
