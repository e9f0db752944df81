"""Calls the error hooks of the program: `Rota.on_error` and `Middleware.on_error`.

A hook is harmless to the job: its error is logged, and a slow one delays the report by no more than `PATIENCE_S`.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
from functools import partial
from typing import Final

from rota.client.failed_attempt import ErrorHook, FailedAttempt
from rota.client.middleware import with_on_error
from rota.client.rota import Rota
from rota.worker.runners.interruptible_threads import StoppableCall, Threads

logger = logging.getLogger("rota.worker")

#: The report of an attempt, and the end of the process, wait this long for hooks. Less than the time a handler has to
#: stop, after which its runner would be retired.
PATIENCE_S: Final = 2.0
#: A hook that takes longer is cancelled.
HOOK_TIMEOUT_S: Final = 30.0
#: With so many hooks under way no more are called: hooks that hang must not fill the memory.
MAX_UNDER_WAY: Final = 1_000


class ErrorHooks:
    """The error hooks of one program, in one process."""

    def __init__(self, rota: Rota, threads: Threads) -> None:
        self._rota = rota
        self._threads = threads
        self._under_way: set[asyncio.Task[None]] = set()

    async def call(self, failed: FailedAttempt) -> None:
        """Calls all hooks, and waits for them, up to `PATIENCE_S`. Raises nothing that a hook raises."""
        hooks: list[ErrorHook] = [one.on_error for one in with_on_error(self._rota.middleware)]
        hooks += self._rota.error_hooks
        if not hooks:
            return
        if len(self._under_way) + len(hooks) > MAX_UNDER_WAY:
            logger.error("error hooks were not called for %s: %d are under way", failed.job.ref, len(self._under_way))
            return
        # Tasks of their own: the attempt may be stopped while they run. They have its context variables.
        tasks = [asyncio.create_task(self._call(hook, failed)) for hook in hooks]
        self._under_way.update(tasks)
        for task in tasks:
            task.add_done_callback(self._under_way.discard)
        await asyncio.wait(tasks, timeout=PATIENCE_S)

    async def close(self) -> None:
        """Waits for the hooks that are under way, up to `PATIENCE_S`."""
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=PATIENCE_S)

    async def _call(self, hook: ErrorHook, failed: FailedAttempt) -> None:
        try:
            async with asyncio.timeout(HOOK_TIMEOUT_S):
                if inspect.iscoroutinefunction(hook):
                    await hook(failed)
                else:
                    # It may block, so it does not run on the event loop.
                    await self._threads.run(StoppableCall(contextvars.copy_context(), partial(hook, failed)))
        except asyncio.CancelledError:
            raise
        except BaseException:  # a hook that raises SystemExit must not end the runner
            name = getattr(hook, "__qualname__", type(hook).__name__)
            logger.exception("the error hook %s failed for %s", name, failed.job.ref)
