"""The handle of one queue: pause, resume, counts, purge."""

from __future__ import annotations

from rota.client.pause_tasks import checked_pause_text
from rota.client.session import Sessions
from rota.client.sync_methods import sync_method
from rota.core.ids import encode_run
from rota.store.reads import QueueInfo, merge_shards


class Queue:
    """A queue by its name. Made by `rota.queue(name)`, which sends nothing to the server."""

    def __init__(self, sessions: Sessions, name: str) -> None:
        self._sessions = sessions
        self.name = name

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"

    async def pause(self, *, note: str = "", by: str = "") -> None:
        """Stops claims of this queue by any worker. Running handlers continue.

        `note` and `by` say why and who, until it is resumed. A queue that is paused already keeps the first ones.
        """
        await self._pause("paused", checked_pause_text(by, "by"), checked_pause_text(note, "note"))

    async def resume(self) -> None:
        """Allows claims again, at once."""
        await self._pause("open", "", "")

    async def info(self) -> QueueInfo:
        """Counts by state, totals, whether it is paused, and the age of the oldest waiting job."""
        session = await self._sessions.checked()
        infos = await session.views.queue_infos(await session.shards.names_of(self.name))
        return infos[0] if infos[0].name == self.name else merge_shards(infos)[0]

    async def counts(self) -> dict[str, int]:
        """The number of jobs in each state."""
        return (await self.info()).counts

    async def purge(self) -> int:
        """Deletes the waiting jobs in slices and returns their number. Jobs enqueued meanwhile are kept."""
        session = await self._sessions.checked()
        purged = 0
        for info in await session.views.queue_infos(await session.shards.names_of(self.name)):
            newest = encode_run(info.totals["run"])
            while deleted := await session.store.purge(info.name, newest=newest):
                purged += deleted
            await session.notify_dependents(info.name)
        return purged

    async def _pause(self, wanted: str, by: str, note: str) -> None:
        session = await self._sessions.checked()
        for name in await session.shards.names_of(self.name):
            await session.store.pause_queue(name, wanted=wanted, by=by, note=note)

    pause_sync = sync_method(pause)
    resume_sync = sync_method(resume)
    info_sync = sync_method(info)
    counts_sync = sync_method(counts)
    purge_sync = sync_method(purge)
