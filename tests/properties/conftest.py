"""Real servers, with a clock that stands still until it is moved."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from rota.store.redis import script_compiler
from tests.properties.state_machine import FROZEN, Bench, Repeating
from tests.servers import Server
from tests.store.driver import Driver


@pytest.fixture
def bench(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """What the machines of one test share."""
    plain = script_compiler._include

    def with_frozen_clock(name: str, clock: str = "") -> str:
        if name == "now_ms" and clock == FROZEN:
            return f'local function now_ms()\n  return tonumber(redis.call("GET", "{FROZEN}"))\nend\n'
        return plain(name, clock)

    monkeypatch.setattr(script_compiler, "_include", with_frozen_clock)
    loop = asyncio.new_event_loop()
    driver = Driver(server, "p")
    redis_client = Repeating(driver.redis_client.address, clock=FROZEN)
    yield Bench(driver, redis_client, loop)
    driver.redis.delete(FROZEN)
    loop.run_until_complete(redis_client.close())
    loop.run_until_complete(driver.close())
    loop.close()


@pytest.fixture
async def driver(server: Server, namespace: str) -> AsyncIterator[Driver]:
    """A store whose clock goes on by itself, and can be moved."""
    driver = Driver(server, namespace)
    yield driver
    await driver.close()
