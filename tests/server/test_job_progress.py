"""`/api/progress`: the progress of one job, with a token for that job."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from rota import Job, Rota
from rota.client.session import sessions_of
from rota.core.job_record_codec import encode_result
from rota.server import create_app
from tests.client.manual_worker import Hand
from tests.eventually import eventually_sync
from tests.server.live import Live
from tests.server.test_events import Reader


@pytest.fixture
def live(guarded: FastAPI) -> Iterator[Live]:
    """The API behind a socket, with authentication."""
    with Live(guarded) as live:
        yield live


@contextmanager
def follow(live: Live, token: str) -> Generator[Reader]:
    """A reader of the stream, as a browser has it: without any header."""
    with (
        httpx2.Client(timeout=20) as client,
        client.stream("GET", f"{live.url}/api/progress", params={"token": token}) as response,
    ):
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield Reader(response)


@pytest.fixture
def job(rota: Rota) -> Job[Any]:
    @rota.task
    async def convert(secret: str) -> str:
        return secret

    return convert.enqueue_sync("my argument")


def run(rota: Rota, coroutine: Any) -> Any:
    """Runs a coroutine while the stream is read in this thread."""
    return sessions_of(rota).run_sync(coroutine)


def shown(message: dict[str, Any]) -> tuple[Any, ...]:
    data = message["data"]
    return data["state"], data["percent"], data["note"], data["is_ended"]


def test_a_page_sees_every_state_of_its_job_and_neither_arguments_nor_result(
    live: Live, rota: Rota, job: Job[Any]
) -> None:
    hand = Hand(rota)
    seen: list[str] = []
    with follow(live, job.progress_token_sync()) as reader:
        seen.append(str(message := reader.next()))
        assert shown(message) == ("PENDING", 0, "", False)
        claimed = run(rota, hand.take(job))
        seen.append(str(message := reader.next()))
        assert shown(message) == ("PROCESSING", 0, "", False)
        run(rota, hand.store.save_progress("default", [(claimed.run, claimed.claim, "1", "4", "half of it")]))
        seen.append(str(message := reader.next()))
        assert shown(message) == ("PROCESSING", 25, "half of it", False)
        run(rota, hand.complete(claimed, encode_result("my result")))
        seen.append(str(message := reader.next()))
        assert shown(message) == ("COMPLETED", 100, "half of it", True)
        with pytest.raises(AssertionError, match="the stream has ended"):
            reader.next()
    run(rota, hand.close())

    assert "my argument" not in "".join(seen)
    assert "my result" not in "".join(seen)


def test_a_deleted_job_ends_the_stream(live: Live, job: Job[Any]) -> None:
    with follow(live, job.progress_token_sync()) as reader:
        reader.next()
        job.delete_sync()
        assert shown(reader.next()) == ("DELETED", 0, "", True)


def test_a_stream_ends_when_its_token_expires(live: Live, job: Job[Any]) -> None:
    with follow(live, job.progress_token_sync(expires=1)) as reader:
        reader.next()
        message = reader.next()

    assert (message["event"], message["data"]) == ("trouble", {"message": "the token has expired"})


def test_a_token_of_a_job_permits_nothing_else(live: Live, job: Job[Any]) -> None:
    token = job.progress_token_sync()

    for path in ("/api/jobs", f"/api/jobs/{job.id}", f"/api/jobs/{job.id}/result", "/api/events"):
        answer = httpx2.get(f"{live.url}{path}", params={"token": token}, headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 401, path


@pytest.mark.parametrize("token", ["x", "rota_job_eA.eA", "rota_job_"])
def test_what_is_no_token_is_refused(live: Live, token: str) -> None:
    answer = httpx2.get(f"{live.url}/api/progress", params={"token": token})

    assert answer.status_code == 401
    assert "job.progress_token()" in answer.json()["detail"]


def test_deleting_the_secret_revokes_the_tokens(live: Live, rota: Rota, job: Job[Any]) -> None:
    token = job.progress_token_sync()

    async def revoke() -> None:
        current = await sessions_of(rota).checked()
        await current.redis.command("UNLINK", current.keys.shared("progress_secret"))

    run(rota, revoke())

    assert httpx2.get(f"{live.url}/api/progress", params={"token": token}).status_code == 401


def test_progress_streams_have_limits_of_their_own(rota: Rota, job: Job[Any]) -> None:
    tokens = [job.progress_token_sync(), rota.tasks.get("convert").enqueue_sync("other").progress_token_sync()]
    app = create_app(rota, max_readers=24)
    readers: list[Reader] = []  # a reader that is dropped closes its stream

    def refused(live: Live, token: str) -> tuple[int, str]:
        answer = httpx2.get(f"{live.url}/api/progress", params={"token": token})
        return answer.status_code, answer.headers["Retry-After"]

    with Live(app) as live:
        with ExitStack() as streams:
            for _ in range(10):
                readers.append(streams.enter_context(follow(live, tokens[0])))
                readers[-1].next()
            assert refused(live, tokens[0]) == (429, "5")
            for _ in range(2):
                readers.append(streams.enter_context(follow(live, tokens[1])))
                readers[-1].next()
            assert refused(live, tokens[1]) == (503, "5")
            assert app.state.rota_server.readers == 0  # all streams of operators are left
        eventually_sync(lambda: not app.state.rota_server.progress_readers_of)


def test_the_client_for_browsers_is_served(live: Live) -> None:
    answer = httpx2.get(f"{live.url}/progress.js")

    assert answer.headers["content-type"].startswith("text/javascript")
    assert "export function followJob(token, onChange" in answer.text
