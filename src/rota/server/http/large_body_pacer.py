"""Large bodies take turns, so that a flood of them leaves half of the event loop's time to other requests."""

from __future__ import annotations

import asyncio
from typing import Final

#: Bytes. To parse and check 1 MB takes up to 30 ms, so small bodies delay nothing.
LARGE: Final = 128 * 1024


class LargeBodyPacer:
    """Lets one large body at a time go on to the application, and then pauses for as long as that took.

    Sixteen bodies of 1 MB that arrive at once would block the event loop for half a second.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._next_at = 0.0

    async def wait_for_turn(self) -> None:
        """Returns when the caller may parse its body, which it does before it waits for anything else."""
        loop = asyncio.get_running_loop()
        async with self._turn:
            await asyncio.sleep(max(0.0, self._next_at - loop.time()))
            loop.call_soon(self._end_turn, loop.time())

    def _end_turn(self, began: float) -> None:
        now = asyncio.get_running_loop().time()
        self._next_at = now + (now - began)
