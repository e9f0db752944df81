"""Answers requests for a dry run: what the planner would decide now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import msgspec

from rota.client.session import Session
from rota.errors import InvalidOption, StoreError
from rota.store.autoscaler_lease_decisions_and_demand import ScalingSettings
from rota.store.scaling_dry_run import DryRunRequest, ScalingDryRun, answer_dry_run, read_dry_run_request

logger = logging.getLogger("rota.autoscaler")

#: Requests that wait for the round under way. One that comes on top gets no answer.
MAX_REQUESTS: Final = 16

Decide: TypeAlias = Callable[[Session, ScalingSettings], Awaitable[ScalingDryRun]]


class DryRunResponder:
    """Takes requests as they arrive, and answers them one by one."""

    def __init__(self, decide: Decide) -> None:
        self._decide = decide
        self._requests: asyncio.Queue[DryRunRequest] = asyncio.Queue(MAX_REQUESTS)

    def take(self, message: str) -> bool:
        """Takes a message of the inbox. False if it is no request for a dry run."""
        try:
            request = read_dry_run_request(message)
        except msgspec.DecodeError as error:
            logger.warning("a request for a dry run is not readable: %s", error)
            return True
        if request is None:
            return False
        try:
            self._requests.put_nowait(request)
        except asyncio.QueueFull:
            logger.warning("a request for a dry run was dropped: %d wait already", MAX_REQUESTS)
        return True

    async def run(self, session: Session) -> None:
        """Runs until cancelled."""
        while True:
            request = await self._requests.get()
            try:
                answer = await self._decide(session, request.settings)
                await answer_dry_run(session.redis, session.keys, request, answer)
            except (StoreError, InvalidOption) as error:
                logger.warning("a request for a dry run was not answered: %s", error)
