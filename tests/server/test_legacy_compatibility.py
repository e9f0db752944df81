"""Compatibility endpoints: a client of an earlier job server finds every field under its name and type."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from rota import InvalidOption, Job, Rota
from rota.core.state_transitions import JobState
from rota.server import Role, create_app
from rota.server.auth.api_tokens import Tokens
from tests.client.manual_worker import Hand, move_to
from tests.server.api import Api, open_api


class LegacyClient:
    """A client written for the earlier server: it knows only its documented paths, below one base URL."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def ask(self, method: str, path: str, *, status: int = 200, **more: Any) -> Any:
        """The response's JSON, with `success` and, for an error, a message."""
        body = await self._api.ask(method, f"/legacy{path}", status=status, **more)
        assert body["success"] is (status < 400), body
        if status >= 400:
            assert body["message"]
        return body

    async def job(self, job_id: str) -> dict[str, Any]:
        """A job."""
        return (await self.ask("GET", f"/api/jobs/{job_id}"))["job"]


@pytest.fixture
def client(api: Api) -> LegacyClient:
    """A client of the earlier server."""
    return LegacyClient(api)


@pytest.mark.requirement("S2-1", "S2-2", "S2-5", "S2-6", "S2-7", "S2-8", "S2-18", "S2-21")
async def test_a_client_creates_lists_watches_cancels_and_deletes_a_job(
    client: LegacyClient, rota: Rota, hand: Hand
) -> None:
    """The earlier dashboard's calls, with the dependencies that its form never sent."""
    first = await client.ask(
        "POST", "/api/jobs", json={"type": "example", "data": {"key": "value"}, "priority": "normal"}, status=201
    )
    assert first["message"]
    ids = [job["jobId"] for job in (await client.ask("GET", "/api/jobs"))["jobs"]]
    assert ids == [first["jobId"]]

    second = await client.ask(
        "POST",
        "/api/jobs",
        json={"type": "example", "data": {"key": "value"}, "priority": "high", "dependencies": ids},
        status=201,
    )
    listed = await client.ask("GET", "/api/jobs")
    assert listed["job"] == listed["jobs"]
    assert {job["jobId"]: job["status"] for job in listed["jobs"]} == {
        first["jobId"]: "PENDING",
        second["jobId"]: "BLOCKED",
    }
    stats = (await client.ask("GET", "/api/jobs/stats"))["stats"]
    assert stats == {
        "PENDING": 1,
        "BLOCKED": 1,
        "SCHEDULED": 0,
        "PROCESSING": 0,
        "COMPLETED": 0,
        "FAILED": 0,
        "CANCELLED": 0,
    }

    record = await rota.job(first["jobId"]).refresh()
    claimed = await hand.take(rota.job(str(record.ref)))
    await hand.store.save_progress("default", [(claimed.run, claimed.claim, "3", "10", "")])
    job = await client.job(first["jobId"])
    assert (job["status"], job["progress"]) == ("PROCESSING", "30")
    waiting = await client.ask("GET", f"/api/jobs/{first['jobId']}/result", status=202)
    assert (waiting["status"], waiting["result"]) == ("PROCESSING", None)
    assert await hand.complete(claimed, b'"Success Result"') == "ok"
    result = await client.ask("GET", f"/api/jobs/{first['jobId']}/result")
    assert (result["status"], result["result"]) == ("COMPLETED", "Success Result")
    job = await client.job(first["jobId"])
    assert (job["progress"], job["result"]) == ("100", '"Success Result"')

    cancelled = await client.ask("POST", f"/api/jobs/{second['jobId']}/cancel")
    assert cancelled == {"success": True, "message": "Job Cancelled"}
    deleted = await client.ask("DELETE", f"/api/jobs/{second['jobId']}")
    assert deleted == {"success": True, "message": "Job deleted successfully"}
    await client.ask("GET", f"/api/jobs/{second['jobId']}", status=404)


@pytest.mark.requirement("S2-3", "S2-4")
async def test_a_job_has_the_documented_fields_as_texts(client: LegacyClient, api: Api) -> None:
    job_id = await api.enqueue(data={"key": "value"}, priority="high")

    job = await client.job(job_id)

    shown = {name: job[name] for name in ("status", "type", "data", "retries", "progress")}
    assert shown == {
        "status": "PENDING",
        "type": "example",
        "data": '{"key":"value"}',
        "retries": "0",
        "progress": "0",
    }
    assert job["created_at"].isdecimal()
    assert json.loads(job["data"]) == {"key": "value"}


@pytest.mark.requirement("S2-4", "S2-6", "S2-7")
async def test_an_unknown_job_is_a_404_with_a_message(client: LegacyClient) -> None:
    for method, path in (
        ("GET", "/api/jobs/unknown"),
        ("POST", "/api/jobs/unknown/cancel"),
        ("DELETE", "/api/jobs/unknown"),
        ("GET", "/api/jobs/unknown/result"),
    ):
        error = await client.ask(method, path, status=404)
        assert "default:unknown" in error["message"]


async def test_an_invalid_request_has_a_message(client: LegacyClient) -> None:
    error = await client.ask("POST", "/api/jobs", json={"priority": "high"}, status=422)

    assert "type" in error["message"]


@pytest.mark.requirement("S2-23")
async def test_workers_are_listed_with_their_queues_as_one_text(client: LegacyClient, hand: Hand) -> None:
    await hand.store.renew_registration('{"state":"active","queues":["high_priority_jobs","normal_jobs"]}')

    (worker,) = (await client.ask("GET", "/api/workers"))["workers"]

    assert (worker["id"], worker["queue"], worker["status"]) == ("w1", "high_priority_jobs,normal_jobs", "ALIVE")
    assert worker["last_seen"].endswith("Z")


#: A body with the documented fields, fields named as options and parameters of Rota, and any text.
BODY: Final[dict[str, Any]] = {
    "name": "resize",
    "id": 7,
    "queue": "",
    "priority": {"of": "the customer"},
    "self": [1, None, True],
    "two words": "😀\n\u0000 <b>",
    "": 1.5,
}


@pytest.mark.requirement("S0-1")
async def test_every_post_to_the_root_stores_a_job_with_the_whole_body(api: Api, rota: Rota) -> None:
    """Success means stored. The fields are the named arguments, `name` and `id` included."""
    got: list[dict[str, Any]] = []

    @rota.task
    def resize(**fields: Any) -> None:
        got.append(fields)

    ids = [(await api.ask("POST", "/", json=BODY))["jobId"] for _ in range(2)]

    assert len(set(ids)) == 2
    for job_id in ids:
        args, kwargs = resize.signature.decode((await rota.job(job_id).refresh()).arguments)
        resize(*args, **kwargs)
    assert got == [BODY, BODY]


@pytest.mark.requirement("S0-1")
async def test_a_post_to_the_root_with_an_idempotency_key_stores_one_job(api: Api) -> None:
    headers = {"Idempotency-Key": "k-1"}
    first, second = [await api.ask("POST", "/", json=BODY, headers=headers) for _ in range(2)]

    assert first == second
    assert (await api.ask("GET", "/api/jobs/stats"))["stats"]["PENDING"] == 1


@pytest.mark.requirement("S0-1")
async def test_a_name_that_is_not_a_task_runs_the_default_task(rota: Rota) -> None:
    @rota.task
    def resize(name: str, id: int) -> None: ...

    @rota.task
    def anything(**fields: Any) -> None: ...

    async def task_of(api: Api, body: dict[str, Any]) -> str:
        return (await api.ask("POST", "/", json=body))["job"]["type"]

    async with open_api(create_app(rota, auth="none", default_task="anything")) as api:
        assert await task_of(api, {"name": "resize", "id": 7}) == "resize"
        for name in ("Resize all of it!", "", 5, None, "unknown"):
            assert await task_of(api, {"name": name, "id": {"any": "value"}}) == "anything"
        assert await task_of(api, {}) == "anything"

    async with open_api(create_app(rota, auth="none")) as api:
        error = await api.ask("POST", "/", json={"name": "Resize all of it!"}, status=422)
        assert "--default-task" in error["detail"]
    with pytest.raises(InvalidOption, match="not a task name"):
        create_app(rota, default_task="two words")


@pytest.mark.parametrize("default", ["mail.any", "images.any"])
async def test_the_default_task_does_not_disclose_which_names_are_tasks(rota: Rota, default: str) -> None:
    def work(**fields: Any) -> None: ...

    for name in ("mail.any", "mail.send", "images.any", "images.shrink"):
        rota.task(name=name, queue=name.partition(".")[0])(work)
    text, _ = await Tokens(rota).create(Role.OPERATOR, queues=["mail"])
    async with open_api(create_app(rota, default_task=default), token=text) as api:
        hidden, missing = [await api.post("/", json={"name": name}) for name in ("images.shrink", "images.crop")]
        own = await api.ask("POST", "/", json={"name": "mail.send"})

    assert hidden.status_code == missing.status_code == (200 if default == "mail.any" else 403)
    if default == "mail.any":
        assert hidden.json()["job"]["type"] == missing.json()["job"]["type"] == default
    else:
        assert hidden.json() == missing.json()
    assert own["job"]["type"] == "mail.send"


@pytest.mark.requirement("S2-5")
async def test_the_list_returns_every_job_through_its_cursor(client: LegacyClient, rota: Rota, hand: Hand) -> None:
    @rota.task
    def work() -> None: ...

    calls = [work.using(queue=queue, delay=delay).call() for queue in ("a", "b") for delay in (0, 60) for _ in range(6)]
    stored = {job.id for job in await rota.enqueue_many(calls) if isinstance(job, Job)}
    claimed = await hand.claim(4, queue="a")
    await hand.complete(claimed[0])
    await hand.fail(claimed[1])

    assert {job["jobId"] for job in (await client.ask("GET", "/api/jobs"))["jobs"]} == stored
    listed, cursor = list[str](), ""
    while cursor is not None:
        page = await client.ask("GET", "/api/jobs", params={"limit": 5} | ({"cursor": cursor} if cursor else {}))
        listed += [job["jobId"] for job in page["jobs"]]
        cursor = page["cursor"]
    assert sorted(listed) == sorted(stored)


@pytest.mark.requirement("S2-5")
async def test_an_id_of_the_earlier_server_is_one_of_the_default_queue(client: LegacyClient, api: Api) -> None:
    """Its ids have the form `job:1234`. Where a queue `job` exists, that queue is meant."""
    await api.enqueue(id="1234")
    dependent = {"type": "example", "dependencies": ["job:1234"]}

    assert (await client.job("job:1234"))["jobId"] == "default:1234"
    assert (await client.ask("POST", "/api/jobs", json=dependent, status=201))["job"]["status"] == "BLOCKED"
    assert (await client.ask("GET", "/api/jobs/job:1234/result", status=202))["jobId"] == "default:1234"
    await client.ask("POST", "/api/jobs/job:1234/cancel")
    await client.ask("DELETE", "/api/jobs/job:1234")
    await api.ask("GET", "/api/jobs/default:1234", status=404)

    await api.enqueue(queue="job", id="1234")
    assert (await client.job("job:1234"))["jobId"] == "job:1234"


@pytest.mark.requirement("S2-5", "S1-1", "S4-4")
@pytest.mark.parametrize("path", ["/api/jobs", "/legacy/api/jobs"])
async def test_data_may_be_any_json_value(api: Api, rota: Rota, path: str) -> None:
    """An object has named arguments, an array positional ones; any other value is the only argument; null is none."""

    @rota.task
    def work(*args: Any, **kwargs: Any) -> None: ...

    for data, expected in (
        ("text", (["text"], {})),
        (5, ([5], {})),
        (1.5, ([1.5], {})),
        (False, ([False], {})),
        (None, ([], {})),
        ([], ([], {})),
        ([None], ([None], {})),
        ([{"a": 1}], ([{"a": 1}], {})),
        ({"a": None}, ([], {"a": None})),
    ):
        job_id = (await api.ask("POST", path, json={"type": "work", "data": data}, status=201))["jobId"]
        assert work.signature.decode((await rota.job(job_id).refresh()).arguments) == expected


async def test_other_routes_answer_in_one_format(api: Api) -> None:
    """No response carries a field of the earlier server beside its own."""
    job_id = await api.enqueue(data={"key": "value"})

    listed = await api.ask("GET", "/api/jobs")
    job = await api.job(job_id)

    assert set(listed) == {"jobs", "cursor", "examined"}
    assert {"success", "retries", "created_at"}.isdisjoint(job)
    assert job["progress"] is None


@pytest.mark.requirement("S2-4", "S2-6", "S2-7")
async def test_an_unknown_job_is_a_404_on_every_job_route(api: Api) -> None:
    for method, path in (
        ("GET", "/api/jobs/unknown"),
        ("POST", "/api/jobs/unknown/cancel"),
        ("DELETE", "/api/jobs/unknown"),
        ("PATCH", "/api/jobs/unknown"),
        ("GET", "/api/jobs/unknown/result"),
        ("GET", "/api/jobs/unknown/logs"),
        ("GET", "/api/jobs/unknown/history"),
        ("POST", "/api/jobs/unknown/redrive"),
    ):
        body: dict[str, Any] = {"json": {"priority": 1}} if method == "PATCH" else {}
        error = await api.ask(method, path, status=404, **body)
        assert "default:unknown" in error["detail"]


@pytest.mark.requirement("S2-6")
async def test_a_job_that_has_ended_cannot_be_cancelled(client: LegacyClient, api: Api, rota: Rota, hand: Hand) -> None:
    """409 and not 400: the request is valid, the state does not allow it."""
    job_id = await api.enqueue()
    record = await rota.job(job_id).refresh()
    await move_to(rota.job(str(record.ref)), JobState.COMPLETED, hand)

    error = await api.ask("POST", f"/api/jobs/{job_id}/cancel", status=409)
    await client.ask("POST", f"/api/jobs/{job_id}/cancel", status=409)

    assert error["state"] == "COMPLETED"
    assert (await api.job(job_id))["status"] == "COMPLETED"


@pytest.mark.requirement("S2-8")
async def test_stats_work_when_jobs_have_dependencies(client: LegacyClient, api: Api) -> None:
    first = await api.enqueue()
    await api.enqueue(dependencies=[first])

    assert (await api.ask("GET", "/api/jobs/stats"))["stats"]["BLOCKED"] == 1
    assert (await client.ask("GET", "/api/jobs/stats"))["stats"]["BLOCKED"] == 1
