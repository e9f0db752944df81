"""The overview: what is happening now and what needs attention, in one call that costs the store little."""

from __future__ import annotations

import json
from typing import Any

from rota import Every, Rota
from rota.client.session import checked_session, session_of, sessions_of
from rota.server import Role, create_app
from rota.server.auth.api_tokens import Tokens
from rota.store.report_encoding import Lost
from tests.client.manual_worker import Hand, calls_of
from tests.metric_history import ended, write_minutes, write_usual_days
from tests.server.api import Api, open_api
from tests.server.test_jobs import handle
from tests.servers import Server


def alarms(answer: dict[str, Any]) -> dict[str, Any]:
    """The alerts by kind, without those about the test's server."""
    return {one["kind"]: one for one in answer["alerts"] if one["kind"] != "server"}


async def test_an_overview_says_how_every_queue_stands(api: Api, rota: Rota, hand: Hand) -> None:
    done = await handle(rota, await api.enqueue(queue="mail"))
    await hand.finish(done)
    for delay in (0, 60):
        await api.enqueue(queue="mail", delay=delay)
    await api.enqueue(queue="images")
    await hand.store.renew_registration(json.dumps({"state": "active", "queues": ["mail"], "slots": 4, "busy": 1}))

    answer = await api.ask("GET", "/api/overview")

    assert [queue["name"] for queue in answer["queues"]] == ["images", "mail"]
    mail = answer["queues"][1]
    assert (mail["stats"]["PENDING"], mail["stats"]["SCHEDULED"], mail["stats"]["COMPLETED"]) == (1, 1, 1)
    assert (mail["workers"], mail["slots"], mail["busy"]) == (1, 4, 1)
    assert (mail["last_5m"]["enqueued"], mail["last_5m"]["completed"]) == (3, 1)
    assert (len(mail["completed_per_minute"]), sum(mail["completed_per_minute"])) == (60, 1)
    assert sum(answer["stats"].values()) == 4
    assert answer["workers"] == {"alive": 1, "draining": 0, "dead": 0, "slots": 4, "busy": 1}
    assert answer["server"]["used_memory"] > 0
    assert alarms(answer) == {}


async def test_an_overview_lists_alerts(api: Api, rota: Rota, hand: Hand, valkey: Server) -> None:
    for queue in ("mail", "mail", "images"):
        await hand.kill_off(await handle(rota, await api.enqueue(queue=queue)))
    await rota.queue("mail").pause()
    step = {"type": "example", "queue": "images", "name": "charge"}
    flow = (await api.ask("POST", "/api/workflows", json={"name": "order", "steps": [step]}, status=201))["workflow"]
    await hand.kill_off(await handle(rota, flow["steps"][0]["jobId"]))
    await session_of(rota).notify_dependents("images")
    await (await checked_session(rota)).workflows.drive_due()
    await hand.store.renew_registration(json.dumps({"state": "active", "queues": ["mail"]}))
    with valkey.client() as client:
        client.zincrby(sessions_of(rota).keys.shared("worker_seen"), -60_000, "w1")

    found = alarms(await api.ask("GET", "/api/overview"))

    assert (found["dead_letters"]["count"], found["dead_letters"]["names"]) == (4, ["images", "mail"])
    assert found["paused_queues"]["names"] == ["mail"]
    assert found["held_workflows"]["names"] == [flow["id"]]
    assert found["dead_workers"]["names"] == ["w1"]
    assert set(found) == {"dead_letters", "paused_queues", "held_workflows", "dead_workers"}


async def test_the_verdict_names_a_queue_that_is_slower_than_on_earlier_days(
    api: Api, rota: Rota, valkey: Server
) -> None:
    write_usual_days(rota, valkey, "mail", task="example", run_ms=116)
    write_minutes(rota, valkey, "mail", ended(40, 3_500), task="example", minutes_ago=[1, 2, 3])

    answer = await api.ask("GET", "/api/overview")

    assert answer["verdict"]["level"] == "warn"
    assert answer["verdict"]["text"] == "Degraded: mail 30 × slower than usual"
    (found,) = (one for one in answer["attention"] if one["kind"] == "slow_queue")
    assert (found["key"], found["queue"], found["task"]) == ("slow_queue:mail", "mail", "example")
    assert (found["value"], found["usual"]) == (3_500, 116)
    metrics = (await api.get("/metrics")).text
    assert "\nrota_health 1\n" in metrics
    assert 'rota_findings{kind="slow_queue",level="warn",queue="mail"} 1' in metrics


async def test_a_worker_that_took_its_leave_is_no_alarm(api: Api, rota: Rota, hand: Hand, valkey: Server) -> None:
    await hand.store.renew_registration(json.dumps({"state": "stopped", "queues": ["mail"]}))
    with valkey.client() as client:
        client.zincrby(sessions_of(rota).keys.shared("worker_seen"), -60_000, "w1")

    answer = await api.ask("GET", "/api/overview")

    assert answer["workers"]["dead"] == 0
    assert alarms(answer) == {}


async def test_many_viewers_cost_the_store_what_one_costs(api: Api, rota: Rota, valkey: Server) -> None:
    await api.enqueue(queue="mail")
    await api.ask("GET", "/api/overview")
    with valkey.client() as client:
        before = calls_of(client, "zcard")
        for _ in range(20):
            await api.ask("GET", "/api/overview")
        looks = (calls_of(client, "zcard") - before) / 7

    # The first is good for about a second, and twenty answers take no ten of those.
    assert looks < 10


async def test_a_job_that_hangs_is_named_with_the_jobs_that_its_lock_blocks(
    api: Api, rota: Rota, hand: Hand, valkey: Server
) -> None:
    write_usual_days(rota, valkey, "mail", task="example", run_ms=116)
    stuck = await handle(rota, await api.enqueue(queue="mail", lock="acme"))
    for _ in range(17):
        await api.enqueue(queue="mail", lock="acme")
    claimed = await hand.take(stuck)
    runs = sessions_of(rota).keys.queue("mail", "runs")
    with valkey.client() as client:
        record: Any = client.hget(runs, claimed.run)
        words = record.split(b" ")
        words[3] = b"%d" % (int(words[3]) - 40 * 60_000)  # claimed 40 minutes earlier
        client.hset(runs, claimed.run, b" ".join(words))

    answer = await api.ask("GET", "/api/overview")

    found = {one["kind"]: one for one in answer["attention"] if one["level"] != "notice"}
    assert answer["verdict"]["text"].startswith("Degraded: example in mail has been running for 40 min")
    assert found["long_running_job"]["job"] == stuck.id
    assert (found["blocked_lock"]["text"], found["blocked_lock"]["count"]) == ("mail 17 jobs blocked by lock acme", 17)


async def test_a_schedule_that_did_not_fire_is_named(api: Api, rota: Rota, valkey: Server) -> None:
    await rota.schedules.put("nightly", Every(3600), rota.task(name="report", queue="mail")(report).call())
    keys = sessions_of(rota).keys
    with valkey.client() as client:
        client.zincrby(keys.queue("mail", "schedule_due"), -7_200_000, "nightly")

    answer = await api.ask("GET", "/api/overview")

    (found,) = (one for one in answer["attention"] if one["kind"] == "missed_schedule")
    assert (found["schedule"], found["level"]) == ("mail:nightly", "fail")
    assert answer["verdict"]["text"].startswith("Critical: schedule nightly is 1 h")


async def report() -> None: ...


async def test_a_limited_token_sees_its_own_queues_alone(rota: Rota, hand: Hand) -> None:
    text = (await Tokens(rota).create(Role.VIEWER, name="mail only", queues=["mail"]))[0]
    async with open_api(create_app(rota), token=text) as limited, open_api(create_app(rota, auth="none")) as api:
        for queue in ("mail", "images"):
            await hand.kill_off(await handle(rota, await api.enqueue(queue=queue)))
        answer = await limited.ask("GET", "/api/overview")

    assert [queue["name"] for queue in answer["queues"]] == ["mail"]
    assert answer["stats"]["FAILED"] == 1
    assert (answer["workflows"], answer["server"]) == (None, None)
    assert [(one["kind"], one["names"]) for one in answer["alerts"]] == [("dead_letters", ["mail"])]


async def test_tasks_are_put_in_order_by_how_they_fare(api: Api, rota: Rota, hand: Hand) -> None:
    for task, deaths in (("good", 0), ("bad", 2), ("mixed", 1)):
        for number in range(3):
            job = await handle(rota, await api.enqueue(task, queue="mail"))
            await (hand.kill_off(job) if number < deaths else hand.take(job))

    async def by(order: str, **more: Any) -> list[tuple[str, int]]:
        answer = await api.ask("GET", "/api/metrics/tasks", params={"order": order, **more})
        return [(task["type"], task["failed"]) for task in answer["tasks"]]

    assert await by("failing") == [("bad", 2), ("mixed", 1), ("good", 0)]
    assert await by("failing", limit=1) == [("bad", 2)]
    assert sorted(await by("slowest", queue="mail", since=86400 * 3)) == [("bad", 2), ("good", 0), ("mixed", 1)]


async def test_a_task_that_crashes_its_process_is_among_the_failing_ones(api: Api, rota: Rota, hand: Hand) -> None:
    """It was missing there: only failures were counted, and a crash is a stall."""
    for task, count in (("failing", 1), ("crashing", 2)):
        for _ in range(count):
            job = await handle(rota, await api.enqueue(task, queue="mail"))
            if task == "failing":
                await hand.kill_off(job)
            else:
                claimed = await hand.take(job)
                await hand.store.report("mail", [Lost(claimed.run, claimed.claim)])
                await hand.kill_off(job)

    answer = await api.ask("GET", "/api/metrics/tasks", params={"order": "failing"})

    crashing, failing = answer["tasks"]
    assert (crashing["type"], crashing["failed"], crashing["stalled"]) == ("crashing", 2, 2)
    assert (failing["type"], failing["failed"], failing["stalled"]) == ("failing", 1, 0)
