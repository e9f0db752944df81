"""Sentry (extra `sentry`): reports failed attempts, also those whose process or worker was killed.

`sentry_sdk.init(integrations=[RotaIntegration()])` before the program creates its `Rota`, or
`Rota(middleware=[Sentry()])`. Rota adds no arguments and results to the events; Sentry itself records the local
variables of each frame, unless `sentry_sdk.init(include_local_variables=False)`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final

from rota.client.context import Context
from rota.client.failed_attempt import FailedAttempt
from rota.client.middleware import AMBIENT, Middleware
from rota.core.job_record import JobRecord
from rota.errors import Cancel, ProcessKilled, RetryLater, Snooze, WorkerLost
from rota.install_command import install_command

try:
    import sentry_sdk
    from sentry_sdk.integrations import Integration
    from sentry_sdk.scope import Scope, use_isolation_scope
    from sentry_sdk.utils import event_from_exception
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"rota.sentry requires {error.name}: {install_command('sentry')}", name=error.name
    ) from error

__all__ = ["RotaIntegration", "Sentry"]

#: How long the end of a process, or a report about a killed one, waits until the events have been sent.
FLUSH_S: Final = 2.0
#: The scope of the running attempt: it has what the handler added, such as tags and breadcrumbs.
_scope: Final[ContextVar[Scope | None]] = ContextVar("rota_sentry_scope", default=None)


class Sentry(Middleware):
    """Middleware that reports failed attempts to Sentry, with the tags job_id, task, queue and attempt.

    `Snooze` and `Cancel` are not reported, nor is `RetryLater` unless the job has failed for good with it. With
    `only_final`, attempts that are retried are not reported.
    """

    def __init__(self, *, only_final: bool = False) -> None:
        self._only_final = only_final

    async def attempt(self, context: Context, run: Callable[[], Awaitable[Any]]) -> Any:
        """Gives the attempt a scope of its own."""
        with sentry_sdk.isolation_scope() as scope:
            _scope.set(scope)
            _describe(scope, context.job)
            return await run()

    async def on_error(self, failed: FailedAttempt) -> None:
        """Reports the error."""
        if not self._is_reported(failed):
            return
        scope = _scope.get()
        if scope is None:  # its own process could not report it, or had not called the handler yet
            scope = sentry_sdk.get_isolation_scope().fork()
            _describe(scope, failed.job)
        scope.set_context("rota", {"run": failed.job.ref.run, "will_retry": failed.will_retry})
        with use_isolation_scope(scope):
            client = sentry_sdk.get_client()
            event, hint = event_from_exception(
                failed.error, client_options=client.options, mechanism={"type": "rota", "handled": failed.will_retry}
            )
            sentry_sdk.capture_event(event, hint=hint)
        if isinstance(failed.error, ProcessKilled | WorkerLost):
            # The reason that killed that process may kill this one next.
            await asyncio.to_thread(sentry_sdk.flush, FLUSH_S)

    async def close(self) -> None:
        """Sends the events that are left."""
        await asyncio.to_thread(sentry_sdk.flush, FLUSH_S)

    def _is_reported(self, failed: FailedAttempt) -> bool:
        if isinstance(failed.error, Snooze | Cancel):
            return False
        return not failed.will_retry or not (self._only_final or isinstance(failed.error, RetryLater))


class RotaIntegration(Integration):
    """The integration for `sentry_sdk.init`: reports failed attempts of every `Rota` created from then on."""

    identifier = "rota"

    def __init__(self, *, only_final: bool = False) -> None:
        self._only_final = only_final

    @staticmethod
    def setup_once() -> None:
        """Does nothing: `setup_once_with_options` has the options."""

    def setup_once_with_options(self, options: dict[str, Any] | None = None) -> None:
        """Adds the middleware."""
        AMBIENT[:] = [one for one in AMBIENT if not isinstance(one, Sentry)]
        AMBIENT.append(Sentry(only_final=self._only_final))


def _describe(scope: Scope, job: JobRecord) -> None:
    scope.set_transaction_name(job.task, source="task")
    scope.set_tag("job_id", job.ref.full_id)
    scope.set_tag("task", job.task)
    scope.set_tag("queue", job.ref.queue)
    scope.set_tag("attempt", job.counts.attempt)
