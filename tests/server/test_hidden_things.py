"""What is outside the scope of a token leaves no trace in any response: each route is called in a namespace that has
hidden jobs, schedules, workflows, operations and workers, and in one that has not, and must respond alike.
"""

from __future__ import annotations

import itertools
import re
import sys
from typing import Any, Final

import pytest

from rota import Every, Rota
from rota.client.session import sessions_of
from rota.monitoring import current_alerts
from rota.server import Role, create_app
from rota.server.app import api_routes
from rota.server.auth.api_tokens import Tokens
from tests.client.manual_worker import Hand
from tests.server.api import open_api
from tests.server.test_jobs import handle
from tests.servers import Server

#: Parameter of a path -> the thing outside the scope that it names.
HIDDEN: Final = {
    "job_id": "other:h1",
    "queue": "other",
    "worker_id": "hidden-worker",
    "workflow_id": "hidden-workflow",
    "schedule_id": "nightly",
    "operation_id": "OPERATION",
    "task": "hidden",
    "key": "slow_queue:other",
    "annotation_id": "0000000000000000",
    "token_id": "000000000000",
    "name": "hidden",
}
RULE: Final = {"rule": {"every": 60}, "type": "t"}
#: Route -> bodies that it would accept, if what they name were in scope.
BODIES: Final[dict[str, list[Any]]] = {
    "POST /api/jobs": [
        {"type": "t", "queue": "q", "dependencies": ["other:h1"]},
        {"type": "t", "queue": "q", "dependencies": [{"job": "other:h1", "may_fail": True}]},
        {"type": "hidden", "queue": "q"},
        {"type": "hidden"},
        {"type": "t", "queue": "other", "id": "h1"},
    ],
    "POST /": [{"name": "hidden", "queue": "q"}, {"name": "t", "queue": "other"}],
    "POST /legacy/api/jobs": [{"type": "hidden", "queue": "q"}, {"type": "t", "queue": "other"}],
    "PATCH /api/jobs/{job_id}": [{"priority": 5}, {"data": {"a": 1}}],
    "POST /api/jobs/{job_id}/redrive": [{}, {"data": {"a": 1}}],
    "POST /api/queues/{queue}/purge": [{}, {"confirm": "other"}],
    "POST /api/workflows": [
        {"name": "w", "id": "hidden-workflow", "steps": [{"type": "hidden", "queue": "q"}]},
        {"name": "w", "id": "hidden-workflow", "steps": [{"type": "t", "queue": "q"}]},
        {"name": "w", "steps": [{"type": "t", "queue": "q", "dependencies": ["other:h1"]}]},
        {"name": "w", "steps": [{"type": "t", "queue": "q", "undo": {"type": "hidden"}}]},
    ],
    "POST /api/schedules/preview": [{"rule": {"every": 60}}],
    "PUT /api/schedules/{schedule_id}": [{**RULE, "type": "hidden"}, {**RULE, "queue": "other"}, RULE],
    "PATCH /api/schedules/{schedule_id}": [{"rule": {"every": 60}}],
    "POST /api/dead/redrive": [{}, {"queue": "other"}, {"type": "hidden"}, {"queue": "other", "type": "hidden"}],
    "POST /api/operations": [
        {"action": "cancel", "jobs": ["other:h1"]},
        {"action": "redrive", "jobs": ["other:h2"]},
        {"action": "delete", "where": {"queue": "other"}, "dry_run": True},
        {"action": "cancel", "where": {"type": "hidden"}, "dry_run": True},
        {"action": "redrive", "where": {"queue": "q", "type": "hidden"}},
    ],
    "POST /api/session": [{"token": "wrong"}],
}
QUERIES: Final = {
    "queue": "queue=other",
    "type": "type=hidden",
    "job": "job=other:h1",
    "query": "queue=other&type=hidden&tag=secret&worker=hidden-worker",
    "lock": "queue=other&lock=gate",
    "name": "name=hidden",
}
#: Parts of a response that differ between two calls.
VOLATILE: Final = re.compile(
    r'"(?:at|now|since|until|from|to|start|end|cursor|csrf|[a-z_]*(?:_at|_ms|_per_second|memory|bytes))":'
    r'(?:"[^"]*"|[0-9.]+|null)|pending for [0-9.]+ \w+|[0-9]{8}T[0-9.]+Z-[0-9a-f]{4}|"run":"[^"]*"'
)


async def requests_of(rota: Rota, token: str, operation: str) -> dict[str, tuple[int, str]]:
    """Calls every route with hidden names. Returns request -> status and body, without times."""
    answers: dict[str, tuple[int, str]] = {}
    names = {**HIDDEN, "operation_id": operation}
    async with open_api(create_app(rota), token=token) as api:
        for route in api_routes():
            method = next(iter(route.methods or ()))
            path = re.sub(r"\{(\w+)\}", lambda found: names[found[1]], route.path)
            paths = [path, path.replace("other:h1", "q:mine")] if method == "GET" and "other:h1" in path else [path]
            bodies = BODIES.get(f"{method} {route.path}", [None])
            queries = ["", *(QUERIES[one.name] for one in route.dependant.query_params if one.name in QUERIES)]
            if route.path == "/api/events":  # a stream that is opened does not end
                queries = [query for query in queries if query]
            for path, query, body in itertools.product(paths, queries, bodies):
                more = {} if body is None else {"json": body}
                response = await api.request(method, f"{path}?{query}" if query else path, **more)
                text = VOLATILE.sub("", response.text).replace(operation, "OPERATION")
                if route.path != "/" or method != "GET":  # the dashboard's page has a nonce
                    name = f"{method} {path} {query} {body}".replace(operation, "OPERATION")
                    answers[name] = (response.status_code, text)
    return answers


async def hide(rota: Rota, hand: Hand) -> str:
    """Adds what a token limited to the queue q must not notice. Returns the id of a bulk operation."""

    @rota.task(queue="other")
    async def hidden(text: str = "") -> None: ...

    await hidden.using(id="waits", after=["q:mine"]).enqueue("x")
    dead = await hidden.using(id="h2", retry=1).enqueue("x")
    await hand.kill_off(await handle(rota, dead.id))
    await hidden.using(id="h1", tags=["secret"], lock="gate").enqueue("x")
    await rota.schedules.put("nightly", Every(60), hidden.call())
    workflow = rota.workflow("hidden", id="hidden-workflow")
    workflow.step(hidden.call())
    await workflow.commit()
    worker = sessions_of(rota).connect("hidden-worker")
    await worker.renew_registration('{"name":"hidden-worker","queues":["other"]}')
    await worker.redis.close()
    info = await rota.operations.start("cancel", where={"queue": "other"}, dry_run=True)
    await rota.operations.run(info.id)
    return info.id


async def test_no_response_depends_on_what_is_outside_the_scope(
    valkey: Server, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One of the two rounds may take longer than the time after which a waiting job raises an alert.
    monkeypatch.setattr(current_alerts, "UNSERVED_MS", sys.maxsize)
    answers: list[dict[str, tuple[int, str]]] = []
    for is_hidden in (True, False):
        rota = Rota(valkey.url, namespace=namespace)
        hand = Hand(rota)

        @rota.task(queue="q")
        async def t() -> None: ...

        await t.using(id="mine").enqueue()
        operation = await hide(rota, hand) if is_hidden else "0123456789abcdef"
        token, _ = await Tokens(rota).create(Role.ADMIN, name="ci", queues=["q"], tasks=["t"])
        answers.append(await requests_of(rota, token, operation))
        await hand.close()
        await rota.close()
        with valkey.client() as client:
            client.delete(*client.scan_iter(f"{namespace}:*"))

    with_hidden, without = answers
    differing = {name: (with_hidden[name], without[name]) for name in without if with_hidden[name] != without[name]}
    assert differing == {}
    assert len(without) > 100
    disclosed = {name: text for name, (_, text) in with_hidden.items() if "secret" in text or "gate" in text}
    assert disclosed == {}
