"""What the tests of workflows share."""

from __future__ import annotations

from typing import Any

from rota import (
    Workflow,
)
from tests.client.manual_worker import dump
from tests.eventually import eventually
from tests.worker.harness import WorkerHarness


async def until(flow: Workflow, state: str, timeout: float = 15) -> None:
    """Waits for a workflow's state."""

    async def is_there() -> bool:
        found = await flow.state()
        assert found == state, f"{await flow.show()}"
        return True

    await eventually(is_there, timeout)


def story(harness: WorkerHarness) -> list[str]:
    return harness.notes("story")


def begun(harness: WorkerHarness, name: str) -> int:
    """How often a handler began."""
    return story(harness).count(f"begin {name}")


def leftovers(harness: WorkerHarness, before: dict[str, Any]) -> set[str]:
    """Keys that differ from those before, but for what every call leaves for ten minutes and counters."""
    with harness.redis() as client:
        after = dump(client, harness.namespace)
    return {
        key
        for key in before.keys() | after.keys()
        if before.get(key) != after.get(key)
        and ":last_reply:" not in key
        and not key.endswith((":meta", ":queues", ":format", ":events"))
    }


def snapshot(harness: WorkerHarness) -> dict[str, Any]:
    with harness.redis() as client:
        return dump(client, harness.namespace)
