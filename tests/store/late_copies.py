"""Late copies: a call that was sent again may reach the server a second time, after newer calls."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from rota.store.redis.retrying_client import Argument
from tests.store.driver import Driver


class Recording:
    """The calls of scripts that a part of a test made."""

    def __init__(self, driver: Driver) -> None:
        self._run = driver.redis_client.run
        self._calls: list[tuple[str, Sequence[str], Sequence[Argument]]] = []

    async def run(self, name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        self._calls.append((name, keys, arguments))
        return await self._run(name, keys, arguments)

    async def send_again(self, script: str) -> Any:
        """Has the copy of the only call of that script arrive now. Returns the reply."""
        (call,) = [call for call in self._calls if call[0] == script]
        return await self._run(*call)


@contextmanager
def recorded(driver: Driver) -> Generator[Recording]:
    """Records the calls that are made within."""
    recording = Recording(driver)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver.redis_client, "run", recording.run)
        yield recording
