"""A worker carries out the bulk operations that wait, one after another."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from rota import Rota
from rota.worker.bulk_resumer import BulkResumer
from tests.eventually import eventually
from tests.servers import Server


async def test_one_wake_up_is_enough_for_all_operations_that_wait(valkey: Server, namespace: str) -> None:
    """It took one operation per registration: a hundred of them waited for minutes."""
    async with Rota(valkey.url, namespace=namespace) as rota:

        @rota.task
        async def send() -> None: ...

        operations: list[str] = []
        for number in range(3):
            await send.using(tags=[f"t{number}"], delay=3600).enqueue()
            operations.append((await rota.operations.start("cancel", where={"tag": f"t{number}"})).id)
        resumer = BulkResumer(rota)
        running = asyncio.create_task(resumer.run())
        resumer.wake()

        async def have_ended() -> bool:
            return all([(await rota.operations.get(id)).has_ended for id in operations])

        await eventually(have_ended, 20)
        assert [(await rota.operations.get(id)).done for id in operations] == [1, 1, 1]
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
