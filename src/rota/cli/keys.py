"""Single keys, read from the terminal without waiting for Enter."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from typing import Self


class Keys:
    """Keys that are pressed while the screen is shown. Reads nothing unless stdin and stdout are terminals."""

    def __init__(self) -> None:
        self.is_open = sys.stdin.isatty() and sys.stdout.isatty()
        self._typed = ""
        self._pressed = asyncio.Event()

    def __enter__(self) -> Self:
        if self.is_open:
            import termios
            import tty

            self._before = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
            asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._read)
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_open:
            import termios

            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)

    def take(self, key: str) -> int:
        """Returns how often the key was pressed since the last call."""
        count = self._typed.count(key)
        self._typed = self._typed.replace(key, "")
        return count

    async def wait(self, seconds: float) -> None:
        """Waits so long, or until a key is pressed."""
        self._pressed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._pressed.wait()

    def _read(self) -> None:
        self._typed += os.read(sys.stdin.fileno(), 64).decode(errors="replace")
        self._pressed.set()
