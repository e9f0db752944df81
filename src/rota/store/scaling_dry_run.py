"""A dry run: a client asks the planner at work what it would decide now, and waits for the answer.

Both are messages, and nothing is stored: a request or an answer that is lost ends in a time-out, and may be repeated.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import aclosing
from typing import Final

import msgspec

from rota.store.autoscaler_lease_decisions_and_demand import MAX_MACHINES, ScalingDecision, ScalingSettings
from rota.store.keys import Keys
from rota.store.redis.retrying_client import RedisClient

#: A planner answers when its round under way has ended; a round calls the provider.
ANSWER_WITHIN_S: Final = 10.0
#: The first word of the message to the planner.
REQUEST: Final = "dry_run "


class ScalingDryRun(msgspec.Struct, frozen=True, kw_only=True):
    """What the planner would decide now."""

    planner: str
    #: The settings that the decision is based on.
    policy: str
    min_workers: int
    max_workers: int
    target_wait_ms: int | None
    #: The decision, with the machines that would be drained. None is launched, and nothing is stored.
    decision: ScalingDecision
    #: How many machines would be launched, and how many removed because they are broken.
    launch: int
    replace_count: int


class DryRunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The message to the planner."""

    #: The inbox that waits for the answer.
    answer_to: str
    #: Settings to decide with, in place of those in force.
    settings: ScalingSettings


_request: Final = msgspec.json.Decoder(DryRunRequest)
_answer: Final = msgspec.json.Decoder(ScalingDryRun)


async def request_dry_run(redis: RedisClient, keys: Keys, planner: str, settings: ScalingSettings) -> ScalingDryRun:
    """Asks a planner for a dry run. Raises TimeoutError if it does not answer in time."""
    request = DryRunRequest(answer_to=f"dry-run-{secrets.token_hex(8)}", settings=settings)
    message = REQUEST + msgspec.json.encode(request).decode()
    async with asyncio.timeout(ANSWER_WITHIN_S), aclosing(redis.listen(keys.inbox(request.answer_to))) as messages:
        async for answer in messages:
            if answer:
                return _answer.decode(answer)
            # Subscribed, perhaps again: the answer may have been missed.
            await redis.command("PUBLISH", keys.inbox(planner), message)
    raise AssertionError("a subscription does not end by itself")


def read_dry_run_request(message: str) -> DryRunRequest | None:
    """Decodes a message to a planner. None for other messages. Raises msgspec.DecodeError."""
    return _request.decode(message.removeprefix(REQUEST)) if message.startswith(REQUEST) else None


async def answer_dry_run(redis: RedisClient, keys: Keys, request: DryRunRequest, answer: ScalingDryRun) -> None:
    """Sends the answer of a planner, with at most 20 machines named."""
    decision = msgspec.structs.replace(answer.decision, drained=answer.decision.drained[:MAX_MACHINES])
    bounded = msgspec.structs.replace(answer, decision=decision)
    await redis.command("PUBLISH", keys.inbox(request.answer_to), msgspec.json.encode(bounded))
