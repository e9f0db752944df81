"""What a person on call looks for: a value anywhere, one error in a thousand dead letters, jobs of a dead worker."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from rota import Rota
from rota.client.session import sessions_of
from rota.server import Role, create_app
from rota.server.auth.api_tokens import Tokens
from rota.server.routes.dead_letters import BUCKETS, histogram
from tests.client.manual_worker import Hand
from tests.server.api import Api, open_api
from tests.server.test_jobs import handle
from tests.servers import Server


async def test_a_value_is_found_in_the_indexed_fields_that_have_it(rota: Rota) -> None:
    @rota.task(queue="mail", index=["customer", "password"])
    async def send(customer: int, password: str = "") -> None: ...

    @rota.task(queue="images", index=["customer"])
    async def resize(customer: str) -> None: ...

    for _ in range(3):
        await send.enqueue(4711, "4711")
    await resize.enqueue("4711")
    await resize.enqueue("12")
    text = (await Tokens(rota).create(Role.VIEWER, queues=["images"]))[0]
    async with open_api(create_app(rota, auth="none")) as api, open_api(create_app(rota), token=text) as limited:
        found = (await api.ask("GET", "/api/suggestions", params={"text": "4711"}))["values"]
        of_one = (await api.ask("GET", "/api/suggestions", params={"text": "4711", "queue": "images"}))["values"]
        none = (await api.ask("GET", "/api/suggestions", params={"text": "nothing"}))["values"]
        visible = (await limited.ask("GET", "/api/suggestions", params={"text": "4711"}))["values"]

    assert [(one["queue"], one["field"], one["count"]) for one in found] == [
        ("mail", "customer", 3),
        ("images", "customer", 1),
    ]
    assert [one["queue"] for one in of_one] == [one["queue"] for one in visible] == ["images"]
    assert none == []


async def test_a_group_of_dead_letters_has_a_real_message_and_its_times(api: Api, rota: Rota, hand: Hand) -> None:
    for number in (17, 18, 19):
        await hand.kill_off(await handle(rota, await api.enqueue(queue="mail")), f"no row {number}")

    (group,) = (await api.ask("GET", "/api/dead/groups"))["groups"]

    assert (group["message"], group["example"], group["count"]) == ("no row #", "no row 19", 3)
    assert group["first_seen"] <= group["last_seen"]
    assert sum(one["count"] for one in group["histogram"]) == 3


@pytest.mark.parametrize("times", [[5], [5, 5, 5], [0, 1], list(range(0, 10_000, 7)), [0, 10**9]])
def test_a_histogram_counts_each_time_once(times: Sequence[int]) -> None:
    buckets = histogram(times)

    assert sum(count for _, count in buckets) == len(times)
    assert len(buckets) <= BUCKETS
    assert buckets[0][0] == times[0]


async def test_a_dead_worker_is_shown_with_its_jobs_and_what_became_of_them(
    api: Api, rota: Rota, hand: Hand, valkey: Server
) -> None:
    done = await handle(rota, await api.enqueue("send", queue="mail"))
    running = await handle(rota, await api.enqueue("export", queue="mail"))
    held = [
        {"job": job.id, "run": (await job.refresh()).ref.run, "task": task, "attempt": 1}
        for job, task in ((running, "export"), (done, "send"))
    ]
    await hand.finish(done)
    await hand.store.renew_registration(json.dumps({"state": "active", "queues": ["mail"], "running": held}))
    with valkey.client() as client:
        client.zincrby(sessions_of(rota).keys.shared("worker_seen"), -60_000, "w1")

    (worker,) = (await api.ask("GET", "/api/workers"))["workers"]

    assert worker["status"] == "DEAD"
    assert [(one["type"], one["status"]) for one in worker["lost_jobs"]] == [
        ("export", "PENDING"),
        ("send", "COMPLETED"),
    ]


async def test_an_operation_says_who_started_it(rota: Rota) -> None:
    text = (await Tokens(rota).create(Role.OPERATOR, name="ana"))[0]
    async with open_api(create_app(rota), token=text) as api:
        await api.enqueue(queue="mail")
        asked = {"action": "cancel", "where": {"queue": "mail"}, "dry_run": True}
        made = await api.ask("POST", "/api/operations", json=asked, status=202)

    assert made["operation"]["by"] == "ana"


async def test_a_redrive_says_what_became_of_its_jobs(api: Api, rota: Rota, hand: Hand) -> None:
    jobs = [await handle(rota, await api.enqueue("send", queue="mail")) for _ in range(3)]
    for job in jobs:
        await hand.kill_off(job)
    info = await rota.operations.start("redrive", where={"state": "failed", "queue": "mail"})
    await rota.operations.run(info.id)
    ended = {"succeeded": 0, "failed_again": 0}
    for end in ("succeeded", "failed_again"):
        claimed = await hand.store.claim("mail", 1, call_number=100 + len(end), claim_token=end)
        (taken,) = claimed.jobs
        ended[end] += 1
        await (hand.complete(taken, b"1") if end == "succeeded" else hand.fail(taken, message="again"))

    shown = (await api.ask("GET", f"/api/operations/{info.id}"))["operation"]
    (listed,) = (await api.ask("GET", "/api/operations"))["operations"]

    assert shown["outcome"] == {**ended, "unfinished": 1, "gone": 0}
    assert listed["outcome"] is None
