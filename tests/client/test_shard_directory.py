"""The shard directory of a client when several calls read and change it at once."""

from __future__ import annotations

import asyncio

import pytest

from rota import Rota
from rota.client.session import checked_session


async def test_a_count_that_was_read_before_a_registration_does_not_replace_it(
    rota: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program registers four shards while the count is on its way; then this program registers the queue.

    Jobs sent to a queue whose shards are not known would be found by no worker of the shards.
    """
    session = await checked_session(rota)
    read, is_read, may_return = session.views.shards_of, asyncio.Event(), asyncio.Event()

    async def held(queue: str) -> int:
        count = await read(queue)
        is_read.set()
        await may_return.wait()
        return count

    monkeypatch.setattr(session.views, "shards_of", held)
    reading = asyncio.create_task(session.shards.names_of("mail"))
    await is_read.wait()
    await session.store.register_queues({"mail": 4})
    await session.shards.register(["mail"])
    may_return.set()
    await reading

    assert session.shards.choose("mail", "", "") != "mail"
    assert len(await session.shards.names_of("mail")) == 4
