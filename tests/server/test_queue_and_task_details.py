"""The detail of a queue and of a task: why it is slow, in one response."""

from __future__ import annotations

import json

import pytest

from rota import Every, Rota
from rota.server import Role, create_app
from rota.server.auth.api_tokens import Tokens
from tests.client.manual_worker import Hand
from tests.metric_history import ended, write_hours, write_minutes, write_usual_days
from tests.server.api import Api, open_api
from tests.server.test_jobs import handle
from tests.servers import Server


async def report() -> None: ...


async def test_a_queue_that_became_slow_is_shown_with_the_durations_of_the_last_minutes(
    api: Api, rota: Rota, valkey: Server
) -> None:
    """An hour of short runs must not hide that those of the last minutes take 3.5 s."""
    write_usual_days(rota, valkey, "mail", task="send", run_ms=116)
    write_minutes(rota, valkey, "mail", ended(600, 116), task="send", minutes_ago=list(range(10, 40)))
    write_minutes(rota, valkey, "mail", ended(20, 3_500, waited_ms=40_000), task="send", minutes_ago=[1, 2, 3])

    answer = await api.ask("GET", "/api/queues/mail/detail")

    assert answer["hour"]["run"]["p50_ms"] < 200  # what the page used to show
    assert 2_048 <= answer["now"]["run"]["p50_ms"] <= 4_096
    assert answer["now"]["run"]["mean_ms"] == 3_500
    assert answer["now"]["wait"]["mean_ms"] == 40_000
    assert (answer["usual"]["run_ms"], answer["usual"]["source"]) == (116, "at this hour of earlier days")
    assert answer["findings"][0]["text"] == "mail 30 × slower than usual"
    assert len(answer["points"]) in (60, 61)
    assert [(one["type"], one["completed"]) for one in answer["tasks"]] == [("send", 30 * 600 + 60)]


async def test_a_queue_lists_its_slowest_latest_and_failed_jobs_and_its_workers(
    api: Api, rota: Rota, hand: Hand
) -> None:
    done = await handle(rota, await api.enqueue("send", queue="mail"))
    await hand.finish(done)
    for number in (17, 18):
        await hand.kill_off(await handle(rota, await api.enqueue("send", queue="mail")), f"no row {number}")
    running = await handle(rota, await api.enqueue("export", queue="mail"))
    await hand.take(running)
    await hand.store.renew_registration(
        json.dumps({"state": "active", "queues": ["mail", "other"], "slots": 4, "busy": 1})
    )

    answer = await api.ask("GET", "/api/queues/mail/detail")

    assert (answer["queue"]["name"], answer["queue"]["stats"]["FAILED"]) == ("mail", 2)
    assert {one["status"] for one in answer["latest"]} == {"COMPLETED", "FAILED"}
    assert len(answer["latest"]) == len(answer["slowest"]) == 3
    assert all(one["ran_ms"] is not None and one["waited_ms"] is not None for one in answer["latest"])
    assert answer["recent_runs"]["sample"] == 3
    assert (answer["running"]["count"], answer["longest_running"][0]["jobId"]) == (1, running.id)
    (error,) = answer["errors"]
    assert (error["message"], error["pattern"], error["count"], error["dead"]) == ("no row 18", "no row #", 2, 2)
    assert [(one["slots"], one["queues"]) for one in answer["workers"]] == [(4, ["mail", "other"])]


async def test_a_task_is_shown_in_all_its_queues_or_in_one(api: Api, rota: Rota, hand: Hand) -> None:
    for queue in ("mail", "images"):
        await hand.finish(await handle(rota, await api.enqueue("send", queue=queue)))
    await hand.finish(await handle(rota, await api.enqueue("other", queue="mail")))
    await rota.schedules.put("nightly", Every(3600), rota.task(name="send", queue="mail")(report).call())

    everywhere = await api.ask("GET", "/api/tasks/send/detail")
    in_mail = await api.ask("GET", "/api/tasks/send/detail", params={"queue": "mail"})

    assert (everywhere["queues"], everywhere["hour"]["started"]) == (["images", "mail"], 2)
    assert (in_mail["queues"], in_mail["hour"]["started"]) == (["mail"], 1)
    assert {one["queue"] for one in everywhere["latest"]} == {"images", "mail"}
    assert {(one["queue"], one["type"]) for one in in_mail["latest"]} == {("mail", "send")}
    assert [one["id"] for one in in_mail["schedules"]] == ["mail:nightly"]
    assert everywhere["task"]["name"] == "send"


@pytest.mark.parametrize("path", ["/api/queues/none/detail", "/api/tasks/none/detail"])
async def test_an_unknown_queue_or_task_is_not_found(api: Api, path: str) -> None:
    await api.ask("GET", path, status=404)


async def test_a_limited_token_sees_the_details_of_its_own_queues(rota: Rota, hand: Hand) -> None:
    text = (await Tokens(rota).create(Role.VIEWER, queues=["mail"]))[0]
    async with open_api(create_app(rota), token=text) as limited, open_api(create_app(rota, auth="none")) as api:
        for queue in ("mail", "images"):
            await hand.finish(await handle(rota, await api.enqueue("send", queue=queue)))
        await hand.store.renew_registration(json.dumps({"state": "active", "queues": ["mail", "images"]}))

        await limited.ask("GET", "/api/queues/images/detail", status=403)
        await limited.ask("GET", "/api/tasks/send/detail", status=403)
        await limited.ask("GET", "/api/tasks/send/detail", params={"queue": "images"}, status=403)
        of_task = await limited.ask("GET", "/api/tasks/send/detail", params={"queue": "mail"})
        of_queue = await limited.ask("GET", "/api/queues/mail/detail")

    assert of_task["queues"] == ["mail"]
    assert of_queue["workers"][0]["queues"] == ["mail"]


async def test_without_days_the_last_day_is_usual(api: Api, rota: Rota, valkey: Server) -> None:
    write_hours(rota, valkey, "mail", ended(99, 300), task="send", hours_ago=[1, 2])

    answer = await api.ask("GET", "/api/tasks/send/detail", params={"queue": "mail"})

    assert (answer["usual"]["source"], answer["usual"]["run_ms"]) == ("in the last day", 300)


async def test_a_limited_token_does_not_learn_of_a_task_of_another_queue(rota: Rota, hand: Hand) -> None:
    @rota.task(queue="images", name="shrink")
    async def shrink(secret_option: str) -> None:
        """Shrinks the secret image."""

    text = (await Tokens(rota).create(Role.VIEWER, queues=["mail"]))[0]
    path, query = "/api/tasks/{}/detail", {"queue": "mail"}
    async with open_api(create_app(rota), token=text) as limited, open_api(create_app(rota, auth="none")) as api:
        hidden = await limited.ask("GET", path.format("shrink"), params=query, status=404)
        missing = await limited.ask("GET", path.format("absent"), params=query, status=404)
        await hand.finish(await handle(rota, await api.enqueue("shrink", queue="mail", data={"secret_option": "x"})))
        await hand.finish(await handle(rota, await api.enqueue("absent", queue="mail")))
        await api.ask("GET", path.format("shrink"), params=query)
    async with open_api(create_app(rota), token=text) as limited:  # without the cached details
        with_jobs = (await limited.ask("GET", path.format("shrink"), params=query))["task"]
        undeclared = (await limited.ask("GET", path.format("absent"), params=query))["task"]

    assert hidden["detail"] == missing["detail"].replace("absent", "shrink")
    assert hidden["code"] == missing["code"]
    assert with_jobs == {**undeclared, "name": "shrink"}
    assert (with_jobs["json_schema"], with_jobs["doc"]) == (None, "")
