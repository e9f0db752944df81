"""`rota.testing`: what users need to test their own tasks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import redis

from rota import Context, Depends, JobFailed, JobState, PermanentError, Retry, Rota
from rota.client.session import sessions_of
from rota.testing import isolated, run_jobs, run_jobs_sync
from tests.client.manual_worker import dump
from tests.servers import Server

sent: list[str] = []


@pytest.fixture
def client(server: Server) -> Iterator[redis.Redis]:
    with server.client() as client:
        yield client


@asynccontextmanager
async def lifespan(_: Rota) -> AsyncGenerator[str]:
    yield "lived"


def greeting() -> str:
    return "dear"


rota = Rota("redis://production.invalid", namespace="mine", lifespan=lifespan, patience=1)


@rota.task(queue="mail")
async def send(to: str, *, hello: str = Depends(greeting)) -> str:
    sent.append(to)
    return f"{hello} {to}"


@rota.task
def in_thread(ctx: Context) -> tuple[str, bool]:
    ctx.progress(1, 2)
    ctx.log("half of it")
    return ctx.state, threading.current_thread() is threading.main_thread()


@rota.task(run_in="process")
def alone() -> str:
    return "in a thread, here"


@rota.task(queue="mail")
async def send_all(names: list[str]) -> None:
    for name in names:
        await send.enqueue(name)


@rota.task(retry=Retry(attempts=2))
async def flaky(ctx: Context) -> str:
    if ctx.attempt == 1:
        raise RuntimeError("once")
    return "done"


@rota.task
async def hopeless() -> None:
    raise PermanentError("never")


@rota.task(timeout=0.2, retry=1)
async def slow() -> None:
    await asyncio.Event().wait()


async def test_jobs_run_in_this_process_and_leave_nothing(server: Server, client: redis.Redis) -> None:
    sent.clear()

    async with isolated(rota, server.url):
        namespace = rota.namespace
        job = await send.enqueue("ann")
        assert await run_jobs(rota) == 1
        assert await job.result(0) == "dear ann"
        assert sent == ["ann"]
        assert dump(client, namespace)

    assert rota.namespace == "mine"
    assert dump(client, namespace) == {}


async def test_what_jobs_enqueue_runs_too_and_what_is_not_due_is_left(server: Server) -> None:
    sent.clear()
    async with isolated(rota, server.url):
        await send_all.enqueue(["ann", "ben"])
        later = await send.using(delay=3600).enqueue("cho")

        assert await run_jobs(rota) == 3
        assert await run_jobs(rota) == 0

        assert sorted(sent) == ["ann", "ben"]
        assert await later.state() is JobState.SCHEDULED


async def test_the_worker_is_the_real_one(server: Server) -> None:
    async with isolated(rota, server.url):
        thread, process, dead, late = (
            await in_thread.enqueue(),
            await alone.enqueue(),
            await hopeless.enqueue(),
            await slow.enqueue(),
        )
        again = await flaky.using(retry=Retry(attempts=2, backoff=[0])).enqueue()

        await run_jobs(rota)

        assert await thread.result(0) == ("lived", False)
        assert [line.text for line in await thread.logs()] == ["half of it"]
        assert await process.result(0) == "in a thread, here"
        assert await again.result(0) == "done"
        for job, said in ((dead, "never"), (late, "ran for more than 0.2 s")):
            with pytest.raises(JobFailed, match=said):
                await job.result(0)


async def test_workflows_run_to_their_end(server: Server) -> None:
    async with isolated(rota, server.url):
        async with rota.workflow("letters") as flow:
            first = flow.step(send.call("a"))
            flow.step(send.call(first.result))
        async with rota.workflow("broken") as undone:
            one = undone.step(send.call("b"))
            one.undo(send.call("c"))
            undone.step(hopeless.call(), after=[one])

        await run_jobs(rota)

        assert await flow.result(1) == "dear dear a"
        assert await undone.state() == "undone"


async def test_only_the_queues_that_are_named(server: Server) -> None:
    async with isolated(rota, server.url):
        mail, other = await send.enqueue("ann"), await in_thread.enqueue()

        assert await run_jobs(rota, queues=["mail"]) == 1

        assert await mail.state() is JobState.COMPLETED
        assert await other.state() is JobState.PENDING


def test_the_same_without_async(server: Server) -> None:
    with isolated(rota, server.url):
        job = send.enqueue_sync("ann")

        assert run_jobs_sync(rota) == 1

        assert job.result_sync(0) == "dear ann"


def test_without_a_url_it_is_the_embedded_server_whatever_is_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_URL", "redis://production.invalid")

    with isolated(rota):
        job = send.enqueue_sync("ann")
        run_jobs_sync(rota)
        assert job.result_sync(0) == "dear ann"

    assert (tmp_path / ".rota").is_dir()
    assert sessions_of(rota).connection()["url"] == "redis://production.invalid"
