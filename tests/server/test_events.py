"""`/api/events`: told at once, resumed exactly, and no reader can hurt another."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Generator, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from rota import Rota
from rota.client.session import checked_session, sessions_of
from rota.server import Role, create_app
from rota.server.auth import authentication
from rota.server.auth.api_tokens import Tokens
from rota.server.routes import events
from tests.eventually import eventually_sync
from tests.server.live import Live
from tests.servers import OwnServers

Message = dict[str, Any]


class Reader:
    """Reads a stream, message by message."""

    def __init__(self, response: httpx2.Response) -> None:
        self._lines = response.iter_lines()

    def next(self) -> Message:
        """The next message that is more than a comment; its data is under its event's name."""
        message: Message = {}
        for line in self._lines:
            if line == "":
                if set(message) - {"retry"}:
                    return message
                message = {}
            elif not line.startswith(":"):
                name, _, value = line.partition(": ")
                message[name] = json.loads(value) if name == "data" else value
        raise AssertionError("the stream has ended")


@contextmanager
def follow(live: Live, *, token: str | None = None, **settings: Any) -> Generator[Reader]:
    """A reader of the stream, once it follows."""
    headers = settings.pop("headers", {}) | ({"Authorization": f"Bearer {token}"} if token else {})
    with (
        httpx2.Client(timeout=20) as client,
        client.stream("GET", f"{live.url}/api/events", params=settings, headers=headers) as response,
    ):
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["x-accel-buffering"] == "no"
        yield Reader(response)


@pytest.fixture
def live(app: FastAPI) -> Iterator[Live]:
    """The API behind a socket."""
    with Live(app) as live:
        yield live


def post(live: Live, **fields: Any) -> str:
    """Enqueues a job."""
    return httpx2.post(f"{live.url}/api/jobs", json={"type": "x", **fields}).json()["jobId"]


def verbs(message: Message) -> list[tuple[str, str, int]]:
    return [(change["queue"], change["verb"], change["count"]) for change in message["data"]["changes"]]


def position(live: Live) -> str:
    """Where the stream is now."""
    with follow(live) as reader:
        post(live, queue="start")
        return reader.next()["id"]


def test_events_carry_ids_and_counts(live: Live) -> None:
    at = position(live)
    with follow(live, after=at, topics="jobs,queues,stats") as reader:
        job_id = post(live, queue="mail", data={"secret stuff": 1})
        message = reader.next()

        assert message["event"] == "changes"
        assert verbs(message) == [("mail", "enqueue", 1)]
        assert message["data"]["stats"]["mail"]["PENDING"] == 1
        assert message["data"]["changes"][0]["runs"][0] in job_id
        assert "secret stuff" not in json.dumps(message)
        httpx2.post(f"{live.url}/api/queues/mail/pause")
        assert verbs(reader.next()) == [("mail", "pause", 1)]


def test_a_reader_that_reconnects_misses_nothing_and_receives_nothing_twice(live: Live) -> None:
    at = position(live)
    runs: list[str] = []
    sent: list[str] = []
    for _ in range(3):
        with follow(live, headers={"Last-Event-ID": at}) as reader:
            sent.append(post(live, queue="mail").partition(":")[2].partition("-")[0])
            message = reader.next()
            at = message["id"]
            runs += message["data"]["changes"][0]["runs"]
        # And without followers:
        sent += [post(live, queue="mail").partition(":")[2].partition("-")[0] for _ in range(2)]
    with follow(live, headers={"Last-Event-ID": at}) as reader:
        runs += reader.next()["data"]["changes"][0]["runs"]

    assert runs == sent


def test_a_position_that_was_trimmed_away_yields_a_reset(live: Live, rota: Rota) -> None:
    at = position(live)

    @rota.task(queue="start")
    def noop() -> None: ...

    async def flood() -> None:
        redis_client = (await checked_session(rota)).redis
        for _ in range(3):
            await rota.enqueue(noop.call())
        await redis_client.command("XTRIM", sessions_of(rota).keys.queue("start", "events"), "MAXLEN", 1)

    sessions_of(rota).run_sync(flood())
    with follow(live, after=at) as reader:
        assert reader.next()["event"] == "reset"
    rota.close_sync()


def test_topics_and_filters_say_what_is_wanted(live: Live) -> None:
    watched = post(live, queue="mail")
    at = position(live)
    with follow(live, after=at, job=watched) as one, follow(live, after=at, topics="queues") as queues:
        post(live, queue="mail")
        httpx2.post(f"{live.url}/api/queues/mail/pause")
        httpx2.post(f"{live.url}/api/jobs/{watched}/cancel")
        post(live, queue="images")

        seen = next(message for message in iter(one.next, None) if message.get("data"))
        assert verbs(seen) == [("mail", "cancelled", 1)]
        seen = next(message for message in iter(queues.next, None) if message.get("data"))
        assert verbs(seen) == [("mail", "pause", 1)]
    for params in ({"topics": "x"}, {"after": "x"}, {"queue": "a b"}, {"job": "a b"}):
        assert httpx2.get(f"{live.url}/api/events", params=params).status_code == 422
    assert httpx2.get(f"{live.url}/api/events", params={"job": "nobody"}).status_code == 404


def test_a_task_may_be_asked_for(live: Live) -> None:
    at = position(live)
    with follow(live, after=at, task="wanted") as reader:
        post(live, queue="mail")
        run = post(live, queue="mail", type="wanted").partition(":")[2].partition("-")[0]
        seen = next(message for message in iter(reader.next, None) if message.get("data"))

    assert [(change["verb"], change["runs"]) for change in seen["data"]["changes"]] == [("enqueue", [run])]


def test_a_token_for_one_queue_receives_no_events_of_others(rota: Rota) -> None:
    text, _ = sessions_of(rota).run_sync(Tokens(rota).create(Role.VIEWER, queues=["mail"]))
    rota.close_sync()
    with Live(create_app(rota)) as live:
        with follow(live, token=text) as reader:

            async def both() -> None:
                @rota.task
                def noop() -> None: ...

                for queue in ("images", "mail"):
                    await noop.using(queue=queue).enqueue()

            sessions_of(rota).run_sync(both())
            assert verbs(reader.next()) == [("mail", "enqueue", 1)]
        headers = {"Authorization": f"Bearer {text}"}
        assert httpx2.get(f"{live.url}/api/events?queue=images", headers=headers).status_code == 403
    rota.close_sync()


def test_there_are_not_more_readers_than_allowed(rota: Rota) -> None:
    app = create_app(rota, auth="none", max_readers=1)
    with Live(app) as live, follow(live):
        eventually_sync(lambda: app.state.rota_server.readers == 1)
        refused = httpx2.get(f"{live.url}/api/events")
        assert refused.status_code == 503
        assert refused.headers["retry-after"]


def test_a_stream_ends_when_its_token_is_revoked(rota: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.1)
    monkeypatch.setattr(events, "RECHECK_S", 0.0)
    monkeypatch.setattr(authentication, "TRUST_S", 0.0)
    text, token = sessions_of(rota).run_sync(Tokens(rota).create(Role.VIEWER))
    rota.close_sync()
    app = create_app(rota)
    with Live(app) as live, follow(live, token=text):
        eventually_sync(lambda: app.state.rota_server.readers == 1)
        sessions_of(rota).run_sync(Tokens(rota).revoke(token.id))

        eventually_sync(lambda: app.state.rota_server.readers == 0)
    rota.close_sync()


def test_one_token_cannot_take_all_streams(rota: Rota) -> None:
    first, second = (sessions_of(rota).run_sync(Tokens(rota).create(Role.VIEWER))[0] for _ in range(2))
    rota.close_sync()
    app = create_app(rota, max_readers=4)
    with Live(app) as live, follow(live, token=first):
        eventually_sync(lambda: app.state.rota_server.readers == 1)
        refused = httpx2.get(f"{live.url}/api/events", headers={"Authorization": f"Bearer {first}"})
        with follow(live, token=second):
            eventually_sync(lambda: app.state.rota_server.readers == 2)
    eventually_sync(lambda: not app.state.rota_server.readers_of)

    assert refused.status_code == 429
    rota.close_sync()


async def test_streams_that_are_opened_at_once_count_as_well(rota: Rota) -> None:
    """All of them ask for their place before the first one has it."""
    token = (await Tokens(rota).create(Role.VIEWER))[0]
    app = create_app(Rota(sessions_of(rota).connection()["url"], namespace=rota.namespace), max_readers=8)
    with Live(app) as live:
        headers = {"Authorization": f"Bearer {token}"}
        async with AsyncExitStack() as stack:
            limits = httpx2.Limits(max_connections=None)
            client = await stack.enter_async_context(
                httpx2.AsyncClient(base_url=live.url, headers=headers, limits=limits)
            )
            opening = [stack.enter_async_context(client.stream("GET", "/api/events")) for _ in range(20)]
            responses = await asyncio.gather(*opening)

            assert sorted(response.status_code for response in responses) == [200] * 2 + [429] * 18
            assert app.state.rota_server.readers == 2
        eventually_sync(lambda: app.state.rota_server.readers == 0)


def test_a_reader_that_leaves_leaves_nothing_behind(live: Live, app: FastAPI) -> None:
    with follow(live):
        eventually_sync(lambda: app.state.rota_server.readers == 1)
    eventually_sync(lambda: app.state.rota_server.readers == 0)
    assert not [thread for thread in threading.enumerate() if thread.name == "rota-events"]


def test_one_connection_tells_of_workers_workflows_operations_and_schedules(live: Live, rota: Rota) -> None:
    topics = "jobs,queues,stats,schedules,workers,workflows,operations"
    post(live, queue="mail")
    told: dict[str, list[str]] = {}
    with follow(live, topics=topics) as reader:
        ask = {"POST": httpx2.post, "PUT": httpx2.put}
        schedule = {"rule": {"every": 60}, "type": "x", "queue": "mail"}
        ask["PUT"](f"{live.url}/api/schedules/hourly", json=schedule).raise_for_status()
        steps = {"name": "order", "id": "flow", "steps": [{"type": "x", "queue": "mail"}]}
        ask["POST"](f"{live.url}/api/workflows", json=steps).raise_for_status()
        where = {"action": "cancel", "where": {"queue": "mail"}}
        operation = ask["POST"](f"{live.url}/api/operations", json=where).json()["operation"]["id"]
        sessions_of(rota).run_sync(_announce(rota, "w1"))
        while not {"workers", "workflows", "operations", "schedules"} <= told.keys():
            body = reader.next()["data"]
            told |= {name: ids for name, ids in body.items() if name not in ("changes", "stats") and ids}

    assert told == {
        "workers": ["w1"],
        "workflows": ["flow"],
        "operations": [operation],
        "schedules": ["mail:hourly"],
    }


def test_changes_of_a_workflow_and_a_schedule_are_streamed(live: Live) -> None:
    schedule = {"rule": {"every": 60}, "type": "x", "queue": "mail"}
    httpx2.put(f"{live.url}/api/schedules/hourly", json=schedule).raise_for_status()
    steps = {"name": "order", "id": "flow", "steps": [{"type": "x", "queue": "mail"}]}
    httpx2.post(f"{live.url}/api/workflows", json=steps).raise_for_status()
    at = position(live)
    with follow(live, after=at, topics="workflows,schedules") as reader:
        told: dict[str, list[str]] = {}
        httpx2.post(f"{live.url}/api/workflows/flow/cancel").raise_for_status()
        httpx2.post(f"{live.url}/api/schedules/mail:hourly/run").raise_for_status()
        while not {"workflows", "schedules"} <= told.keys():
            told |= {name: ids for name, ids in reader.next().get("data", {}).items() if ids}

    assert told == {"workflows": ["flow"], "schedules": ["mail:hourly"]}


async def _announce(rota: Rota, worker: str) -> None:
    store = sessions_of(rota).connect(worker)
    await store.renew_registration('{"state":"active","queues":["mail"]}')
    await store.redis.close()


def test_a_worker_that_only_says_it_lives_is_no_event(live: Live, rota: Rota) -> None:
    sessions_of(rota).run_sync(_announce(rota, "w1"))
    with follow(live, topics="workers,jobs") as reader:
        sessions_of(rota).run_sync(_announce(rota, "w1"))
        post(live, queue="mail")
        body = reader.next()["data"]

    assert "workers" not in body
    assert [change["verb"] for change in body["changes"]] == ["enqueue"]


def test_what_concerns_all_queues_is_refused_to_limited_tokens(rota: Rota) -> None:
    text = sessions_of(rota).run_sync(Tokens(rota).create(Role.VIEWER, name="mail only", queues=["mail"]))[0]
    with Live(create_app(rota)) as live:
        headers = {"Authorization": f"Bearer {text}"}
        answer = httpx2.get(f"{live.url}/api/events", params={"topics": "workers"}, headers=headers)

    assert answer.status_code == 403


def test_a_store_that_stops_responding_is_reported_within_seconds(own_server: OwnServers, namespace: str) -> None:
    server = own_server()
    with Live(create_app(Rota(server.url, namespace=namespace), auth="none")) as live, follow(live) as reader:
        post(live, queue="mail")
        assert reader.next()["event"] == "changes"
        server.pause()
        try:
            silent = reader.next()
        finally:
            server.resume()
        back = reader.next()

    assert (silent["event"], silent["data"]) == ("store", {"is_responding": False})
    assert (back["event"], back["data"]) == ("store", {"is_responding": True})
