"""The three ways to run a handler, and what reaches it there."""

from __future__ import annotations

import pytest

from tests.worker.harness import WorkerHarness


@pytest.mark.requirement("S4-14", "S4-37", "S2-21")
@pytest.mark.parametrize("task", ["add", "add_in_thread", "add_in_process", "add_async_in_process"])
async def test_a_result_comes_back_from_the_loop_a_thread_and_a_process(shared: WorkerHarness, task: str) -> None:
    """Handlers run off the supervisor, and what they return is stored."""
    job = await shared.rota.tasks.get(task).enqueue(2, 3)

    assert await job.result(10) == 5


@pytest.mark.requirement("S4-37")
async def test_a_coroutine_a_thread_and_a_process_run_where_they_should(shared: WorkerHarness) -> None:
    """The loop and threads share a process, `run_in="process"` has its own, and none is the supervisor."""
    loop = await (await shared.program.where_in_loop.enqueue()).result(10)
    thread = await (await shared.program.where_in_thread.enqueue()).result(10)
    process = await (await shared.program.where_in_process.enqueue()).result(10)

    supervisor = shared.workers[-1].pid
    assert loop["pid"] == thread["pid"] != process["pid"]
    assert supervisor not in (loop["pid"], process["pid"])
    assert (loop["is_main_thread"], thread["is_main_thread"], process["is_main_thread"]) == (True, False, True)


@pytest.mark.parametrize("task", ["where_in_loop", "where_in_thread"])
async def test_context_variables_reach_the_handler(shared: WorkerHarness, task: str) -> None:
    """What the lifespan and the middleware set is seen on the loop and in a thread."""
    job = await shared.rota.tasks.get(task).enqueue()

    seen = await job.result(10)

    assert (seen["color"], seen["trace"]) == ("green", f"trace of {job.ref.id}")


async def test_a_process_stays_warm_between_jobs(shared: WorkerHarness) -> None:
    """One process serves one job after another, it is not started for each."""
    first = await (await shared.program.where_in_process.enqueue()).result(10)
    second = await (await shared.program.where_in_process.enqueue()).result(10)

    assert first["pid"] == second["pid"]


@pytest.mark.requirement("S4-4", "S4-16")
@pytest.mark.parametrize("value", [None, 0, False, "", [], {}, "text", 1.5, {"a": [1, None]}, "ünï😀"])
async def test_any_value_goes_in_and_out_unchanged_and_is_success(shared: WorkerHarness, value: object) -> None:
    """Data is any JSON value; whatever is returned, None and False too, is success."""
    job = await shared.program.echo.enqueue(value)

    assert await job.result(10) == value
    assert await job.state() == "completed"


async def test_a_context_may_stand_between_positional_parameters(shared: WorkerHarness) -> None:
    job = await shared.program.gather.enqueue(1, 2, 3)

    assert await job.result(10) == [1, 1, 2, 3]
