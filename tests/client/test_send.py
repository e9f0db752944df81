"""Enqueueing by name: `rota.send`, checked against the schema that workers announce."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Literal

import msgspec
import pytest

from rota import InvalidArguments, Rota, UnknownTask
from rota.core.job_options import make_options
from tests.client.manual_worker import Hand
from tests.servers import Server


@pytest.fixture
async def other(home_server: Server, namespace: str) -> AsyncIterator[Rota]:
    """The program of the worker, which declares the task."""
    rota = Rota(home_server.url, namespace=namespace)
    yield rota
    await rota.close()


async def announce(hand: Hand, rota: Rota) -> None:
    """Announces the tasks of a program, as its workers do."""
    announced = {
        task.name: json.dumps(
            {
                "queue": task.queue,
                "schema": task.signature.schema(),
                "positional": task.signature.positional,
                "options": msgspec.to_builtins(make_options(task.defaults)),
                "index": task.index,
            }
        )
        for task in rota.tasks
    }
    await hand.store.publish_tasks(announced)


@pytest.fixture
async def resize(rota: Rota, other: Rota, hand: Hand) -> str:
    @other.task(queue="images", priority="low", index=["path"])
    async def resize(path: str, width: int = 100, mode: Literal["fit", "crop"] = "fit") -> str:
        return path

    await announce(hand, other)
    return resize.name


async def test_a_job_sent_by_name_gets_the_queue_and_options_that_its_task_declares(rota: Rota, resize: str) -> None:
    job = await rota.send(resize, "a.png", width=640)

    record = await job.refresh()
    assert (record.task, job.queue, record.options.priority) == ("resize", "images", 10)
    assert json.loads(record.arguments) == {"path": "a.png", "width": 640}
    assert [one.ref.full_id for one in (await rota.jobs(queue="images", fields={"path": "a.png"})).jobs] == [job.id]


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {"path": "a", "width": "640"}, "width: must be integer, not string"),
        ((), {"path": "a", "size": 1}, "size: is not a known field"),
        ((), {}, "path: is missing"),
        (("a",), {"mode": "stretch"}, "mode: must be one of 'crop', 'fit'"),
        (("a",), {"path": "b"}, "got two values for 'path'"),
        (("a", 1, "fit", 2), {"mode": "crop"}, "got two values for 'mode'"),
        (("a",), {"width": {1, 2}}, "width: must be integer, not array"),
    ],
)
async def test_arguments_that_do_not_fit_the_announced_schema_are_refused_and_nothing_is_stored(
    rota: Rota, resize: str, args: tuple[Any, ...], kwargs: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArguments, match=message):
        await rota.send(resize, *args, **kwargs)

    assert (await rota.jobs()).jobs == []


async def test_a_task_that_no_worker_has_announced_is_refused_with_the_most_similar_name(
    rota: Rota, resize: str
) -> None:
    with pytest.raises(
        UnknownTask,
        match=r"has announced the task 'resise' \(did you mean 'resize'\?\); announced tasks: resize\. Start",
    ):
        await rota.send("resise", width=640)


async def test_a_schema_that_a_worker_announces_later_counts_at_once(
    rota: Rota, other: Rota, hand: Hand, resize: str
) -> None:
    await rota.send(resize, "a.png")  # the schema is cached now

    async def changed(path: bytes, quality: int) -> None: ...

    del other.tasks._tasks["resize"]
    other.task(name="resize", queue="images")(changed)
    await announce(hand, other)

    assert await (await rota.send(resize, path="YQ==", quality=9)).state() == "pending"


async def test_an_announced_task_takes_options_and_can_be_enqueued_in_bulk(rota: Rota, resize: str) -> None:
    task = await rota.announced_task(resize)

    later = await task.using(delay=60, id="a").enqueue("a.png")
    many = await rota.enqueue_many(task.call(f"{number}.png", width=number) for number in range(3))

    assert await later.state() == "scheduled"
    assert [job.queue for job in many] == ["images"] * 3


async def test_a_task_of_the_program_itself_is_checked_with_its_own_types(rota: Rota) -> None:
    @rota.task
    async def double(number: int) -> int:
        return 2 * number

    with pytest.raises(InvalidArguments, match="Expected `int`, got `str`"):
        await rota.send("double", "2")

    assert await rota.announced_task("double") is double


def test_sync_code_sends_by_name(rota: Rota) -> None:
    @rota.task
    async def double(number: int) -> int:
        return 2 * number

    assert rota.send_sync("double", number=2).is_new
