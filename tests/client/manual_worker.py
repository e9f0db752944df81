"""What the tests of the client share: jobs driven by hand where a worker would be, and a look at what is stored."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import redis

from rota import Job, Rota
from rota.client.session import sessions_of
from rota.core.job_options import Keep
from rota.core.job_record_codec import encode_result
from rota.core.state_transitions import JobState
from rota.store.claim_replies import ClaimedJob
from rota.store.report_encoding import Cancelled
from tests.store.driver import Worker
from tests.stored import find_keys, read_keys


class Hand(Worker):
    """A worker that does what the test says. It has connections of its own."""

    def __init__(self, rota: Rota, name: str = "w1") -> None:
        super().__init__(sessions_of(rota).connect(name))

    async def take(self, job: Job[Any]) -> ClaimedJob:
        """Claims the next job of the queue, which must be that one."""
        (claimed,) = await self.claim(queue=job.queue)
        assert claimed.run == job.run, f"{claimed.run} came first, not {job.run}"
        return claimed

    async def finish(self, job: Job[Any], value: object = None, *, keep: Keep | None = None) -> None:
        """Lets the job succeed."""
        claimed = await self.take(job)
        assert await self.complete(claimed, encode_result(value), keep=keep or Keep()) == "ok"

    async def kill_off(self, job: Job[Any], message: str = "boom") -> None:
        """Lets the job fail for good."""
        assert await self.fail(await self.take(job), message=message) == "ok"

    async def abandon(self, job: Job[Any], reason: str) -> None:
        """Lets the handler itself end the job as cancelled."""
        claimed = await self.take(job)
        assert await self.report(Cancelled(claimed.run, claimed.claim, reason), queue=claimed.queue) == "ok"

    async def close(self) -> None:
        await self.store.redis.close()


async def move_to(job: Job[Any], state: JobState, hand: Hand) -> None:
    """Brings a pending job into another state."""
    if state is JobState.PROCESSING:
        await hand.take(job)
    elif state is JobState.COMPLETED:
        await hand.finish(job)
    elif state is JobState.FAILED:
        await hand.kill_off(job)
    elif state is JobState.SCHEDULED:
        assert await hand.fail(await hand.take(job), "+60000") == "ok"
    elif state is JobState.CANCELLED:
        await job.cancel("not wanted")
    assert await job.state() == state


def dump(client: redis.Redis, namespace: str) -> dict[str, object]:
    """Every key of the namespace with all it holds."""
    return read_keys(client, find_keys(client, namespace))


def without_replies(client: redis.Redis, namespace: str) -> dict[str, object]:
    """The same without the replies to calls, which are kept for a while."""
    return {key: value for key, value in dump(client, namespace).items() if "reply:" not in key}


def job_keys(client: redis.Redis, namespace: str) -> dict[str, object]:
    """The same without what belongs to no job: the format, the names of queues and the streams of events."""
    shared = f"{namespace}:{{~}}:"
    return {
        key: value
        for key, value in dump(client, namespace).items()
        if not key.startswith(shared) and not key.endswith(":events")
    }


def calls_of(client: redis.Redis, command: str) -> int:
    """How often the server was sent a command since it started."""
    stats = cast(dict[str, dict[str, int]], client.info("commandstats"))
    return stats.get(f"cmdstat_{command.lower()}", {}).get("calls", 0)


def connections_of(client: redis.Redis) -> int:
    """How many connections the server has accepted since it started."""
    stats = cast(dict[str, int], client.info("stats"))
    return stats["total_connections_received"]


def clean_environment() -> dict[str, str]:
    """The environment without anything that says where a server is."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("ROTA_", "REDIS_"))}


def run_python(
    code: str, *arguments: str, cwd: Path, url: str | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own, for which every warning is an error.

    What asyncio's debug mode remarks on a busy machine, that a step took long, is left out of its `stderr`.
    """
    variables = clean_environment() | ({"ROTA_URL": url} if url else {}) | dict(env or {})
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-X", "dev", "-c", code, *arguments],
        cwd=cwd,
        env=variables,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    ended.stderr = re.sub(r"^Executing <.*> took [\d.]+ seconds\n", "", ended.stderr, flags=re.MULTILINE)
    return ended
