"""Workflows that are held after a failure, and resumed."""

from __future__ import annotations

from typing import Any

import pytest

from rota import (
    Keep,
    WorkflowFailed,
    WrongState,
)
from rota.client.session import checked_session
from tests.eventually import eventually
from tests.worker.harness import WorkerHarness
from tests.worker.workflow_helpers import begun, until


@pytest.mark.requirement("S1-14")
async def test_a_held_workflow_goes_on_at_the_failed_step(harness: WorkerHarness) -> None:
    """Finished steps are not run again."""
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("order") as flow:
        one = flow.step(app.run_step.call("one"))
        two = flow.step(app.run_step.using(retry=1).call("two", one.result, needs="fixed"))
        three = flow.step(app.run_step.call("three", two.result))
        flow.step(app.run_step.call("four", three.result))
    with pytest.raises(WorkflowFailed, match="step run_step") as failed:
        await flow.result(10)
    assert failed.value.state == "failed"
    await flow.resume()
    await until(flow, "failed")
    assert begun(harness, "two") == 2, "it failed again, and is held again"
    harness.allow("fixed")
    await flow.resume()

    assert await flow.result(10) == "four"
    assert [begun(harness, name) for name in ("one", "two", "three", "four")] == [1, 3, 1, 1]
    with pytest.raises(WrongState, match="completed"):
        await flow.resume()


async def test_what_a_held_workflow_needs_is_not_trimmed(harness: WorkerHarness) -> None:
    """However little is kept, and however long it takes."""
    await harness.start()
    app = harness.program
    nothing = Keep(finished=0, finished_count=0, failed=0, failed_count=0)
    async with harness.rota.workflow("order", on_failure="hold") as flow:
        one = flow.step(app.run_step.using(retry=1, keep=nothing).call("one", needs="fixed"))
        two = flow.step(app.run_step.using(keep=nothing).call("two", one.result))
        flow.step(app.run_step.using(keep=nothing).call("three", two.result))
    await until(flow, "failed")
    harness.allow("fixed")
    await flow.resume()
    assert await flow.result(10) == "three"

    async with harness.rota.workflow("order", on_failure="hold") as gone:
        flow_step = gone.step(app.run_step.using(retry=1, keep=nothing).call("one", needs="never"))
        gone.step(app.run_step.using(keep=nothing).call("two", flow_step.result))
    await until(gone, "failed")
    await gone.cancel()
    await eventually(_swept(harness))


def _swept(harness: WorkerHarness) -> Any:
    async def is_swept() -> bool:
        store = (await checked_session(harness.rota)).store
        while await store.apply_retention("default"):
            pass
        with harness.redis() as client:
            names = ("jobs", "runs", "ids", "steps", "failed", "cancelled")
            left = [name for name in names if client.exists(harness.key(name))]
        assert not left
        return True

    return is_swept


async def test_a_dead_letter_that_was_deleted_cannot_be_resumed_and_says_so(harness: WorkerHarness) -> None:
    await harness.start()
    app = harness.program
    async with harness.rota.workflow("order") as flow:
        flow.step(app.run_step.using(retry=1).call("one", needs="never"))
    await until(flow, "failed")
    await harness.rota.job(f"default:{flow.id}.0").delete()
    await flow.resume()
    await until(flow, "failed")

    with pytest.raises(WrongState, match="was deleted, and cannot be run again"):
        await flow.resume()


@pytest.mark.requirement("S1-14")
async def test_held_workflows_are_resumed_when_a_worker_starts_where_asked_for(harness: WorkerHarness) -> None:
    first = await harness.start()
    app = harness.program
    async with harness.rota.workflow("order", resume="on_start") as fixed:
        fixed.step(app.run_step.using(retry=1).call("one", needs="fixed"))
    async with harness.rota.workflow("order") as held:
        held.step(app.run_step.using(retry=1).call("two", needs="fixed"))
    await until(fixed, "failed")
    await until(held, "failed")
    first.terminate()
    await first.ended()
    harness.allow("fixed")
    await harness.start()

    await until(fixed, "completed")
    assert await held.state() == "failed"
