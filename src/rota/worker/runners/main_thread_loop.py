"""The event loop of a runner, in its main thread, and calls in that thread while the loop is suspended."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from rota.worker.event_loop import loop_factory
from rota.worker.runners.interruptible_threads import Ended, outcome_of

logger = logging.getLogger("rota.worker")


class MainLoop:
    """Runs a coroutine to its end, whatever the handlers do to the loop."""

    def __init__(self) -> None:
        self._calls: deque[tuple[Callable[[], Any], asyncio.Future[Ended]]] = deque()

    def run(self, main: Coroutine[Any, Any, None]) -> None:
        """Runs until `main` has ended.

        asyncio ends a loop in which a task raises SystemExit or KeyboardInterrupt, and a handler can stop it. Here the
        loop goes on for the other handlers: the exception stays the outcome of the task that raised it.
        """
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            loop = runner.get_loop()
            task = loop.create_task(main)
            task.add_done_callback(lambda _: loop.stop())
            while not task.done():
                try:
                    loop.run_forever()
                except (SystemExit, KeyboardInterrupt) as error:
                    if not task.done():
                        logger.error("a task of a handler raised %r: the runner goes on", error)
                while self._calls:
                    function, future = self._calls.popleft()
                    if not future.cancelled():  # the attempt was stopped in the last turn of the loop
                        future.set_result(outcome_of(function))
            task.result()

    async def call(self, function: Callable[[], Any]) -> Any:
        """Calls a function in the main thread while the loop is suspended. Returns or raises what the function does.

        So the function may run an event loop of its own, and signal handlers work. Nothing else runs meanwhile.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Ended] = loop.create_future()
        self._calls.append((function, future))
        loop.stop()
        value, error = await future
        if error is not None:
            raise error
        return value
