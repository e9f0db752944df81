"""What has happened, and how loaded the queues are, as a program asks for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from rota import InvalidOption, JobState, Rota
from rota.monitoring.current_alerts import is_unserved
from tests.client.manual_worker import Hand
from tests.client.test_job_listing import end_all


@pytest.fixture
def send(rota: Rota) -> Any:
    @rota.task
    async def send(number: int) -> Any: ...

    return send


@pytest.mark.usefixtures("on_each")
async def test_history_tells_of_queues_and_tasks(rota: Rota, send: Any, hand: Hand) -> None:
    @rota.task(queue="other")
    async def other() -> None: ...

    await rota.enqueue_many(send.call(n) for n in range(4))
    await other.enqueue()
    await end_all(hand, JobState.FAILED, 1)

    everything = await rota.metrics()
    of_queue = await rota.metrics(queue="default", since=timedelta(minutes=5))
    of_task = await rota.metrics(task="other", since=timedelta(days=3), step=timedelta(hours=6))

    assert (everything.total.enqueued, everything.total.dead, len(everything.points)) == (5, 1, 61)
    assert of_queue.total.enqueued == 4
    assert of_queue.total.failure_rate == 1
    assert (of_task.total.enqueued, of_task.step_ms, len(of_task.points)) in {(1, 21_600_000, 12), (1, 21_600_000, 13)}
    assert (await rota.metrics(task="unheard-of")).total.enqueued == 0
    assert (await rota.totals())["other"]["other"].enqueued == 1
    assert (await rota.totals("default"))["default"]["send"].wait.count == 1


@pytest.mark.parametrize(
    "question",
    [
        {"step": 30},
        {"step": 0},
        {"step": 90},
        {"since": -1},
        {"since": 0},
        {"since": "x"},
        {"step": "x"},
        {"since": 48 * 3600, "step": 60},
        {"since": datetime.now(UTC) + timedelta(days=1)},
        {"queue": "a b"},
    ],
)
async def test_a_question_that_makes_no_sense_is_refused(rota: Rota, question: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        await rota.metrics(**question)


async def test_loads_say_what_an_autoscaler_needs(rota: Rota, send: Any, hand: Hand) -> None:
    await rota.enqueue_many(send.call(n) for n in range(10))
    await send.using(delay=30).enqueue(1)
    await send.using(delay=200).enqueue(2)
    await end_all(hand, JobState.COMPLETED, 4)

    (load,) = await rota.loads()

    assert (load.queue, load.counts["pending"], load.due) == ("default", 6, {60: 1, 300: 2, 900: 2})
    assert load.oldest_wait_ms is not None
    assert 0 < load.services_per_second < load.arrivals_per_second
    assert load.mean_run_ms is not None
    assert (load.workers, load.slots, load.busy) == (0, 0, 0)
    assert await rota.loads(["unheard-of"]) != []


async def test_a_queue_is_unserved_while_its_jobs_could_start(rota: Rota, send: Any) -> None:
    await send.enqueue(1)
    (load,) = await rota.loads()
    waiting = structs.replace(load, oldest_wait_ms=60_000)

    assert is_unserved(waiting)
    assert not is_unserved(load), "it has only just come"
    assert not is_unserved(structs.replace(waiting, workers=1))
    assert not is_unserved(structs.replace(waiting, is_paused=True)), "no worker would claim it"
