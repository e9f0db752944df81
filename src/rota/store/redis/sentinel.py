"""Sentinels: finds the primary of a service, and moves to another one as soon as a sentinel announces it.

A primary that is cut off from its sentinels and replicas still accepts writes, which are lost when it is demoted. So
the client subscribes to every sentinel of the URL, and leaves such a primary at the announcement of the next one.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from rota.store.redis.address import Address
from rota.store.redis.connection import Connection, Disconnected, ServerError, Subscription, pack, pack_all
from rota.store.redis.connection_opener import Endpoint, endpoint_of, open_connection
from rota.store.redis.connection_pool import SingleServer
from rota.store.redis.hash_and_time_replies import read_text_hash

logger = logging.getLogger("rota.store")

#: Sentinels that answer later are not waited for, if another one has answered.
ANSWER_S: Final = 0.3
#: The pause before a lost subscription is renewed.
RESUBSCRIBE_S: Final = 1.0


class SentinelServer(SingleServer):
    """The primary of a service, as its sentinels name it."""

    def __init__(self, address: Address) -> None:
        super().__init__(self._open)
        self._address = address
        #: Where the connections lead; None until there was one.
        self._primary: tuple[str, int] | None = None
        #: Lookups of the primary are numbered as they begin. An answer counts unless that to a later one is known.
        self._lookups = 0
        self._answered = 0
        self._latest: tuple[str, int] | None = None
        self._watchers: list[asyncio.Task[None]] = []

    async def close(self) -> None:
        """Closes all connections, also those to the sentinels."""
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)
        await super().close()

    async def _open(self, kind: type[Connection]) -> Connection:
        """Connects to the primary, if its ROLE confirms that it is one."""
        if not self._watchers:
            self._watchers = [asyncio.create_task(self._watch(host, port)) for host, port in self._address.hosts]
        number, found = await self._look_up()
        connection = await open_connection(endpoint_of(self._address, *found), kind)
        try:
            (role,) = await connection.request(pack(("ROLE",)))
            # Without permission for ROLE the sentinels are trusted.
            if not isinstance(role, ServerError) and role[0] != b"master":
                raise Disconnected(f"{found[0]}:{found[1]} is a replica: a failover is in progress")
            if not self._counts(number, found):
                raise Disconnected(f"{found[0]}:{found[1]} is no longer the primary")
        except BaseException:
            connection.abort("it is not the primary")
            raise
        self._lead_to(found)
        return connection

    async def _look_up(self) -> tuple[int, tuple[str, int]]:
        """Returns the number of this lookup, and the primary."""
        self._lookups += 1
        number = self._lookups
        return number, await self._find_primary()

    def _counts(self, number: int, found: tuple[str, int]) -> bool:
        """Notes an answer. Returns False if a lookup that began later has found another primary."""
        if number < self._answered:
            return found == self._latest
        self._answered, self._latest = number, found
        return True

    async def _find_primary(self) -> tuple[str, int]:
        """Asks all sentinels at once. The answer with the latest epoch counts: a sentinel may be out of date."""
        asking = {asyncio.create_task(self._ask(host, port)) for host, port in self._address.hosts}
        try:
            done, pending = await asyncio.wait(asking, timeout=ANSWER_S)
            while pending and all(task.exception() for task in done):
                later, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                done |= later
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
        answers = [task.result() for task in done if not task.exception()]
        if not answers:
            raise next((error for task in done if (error := task.exception())), Disconnected("no sentinel answers"))
        return max(answers)[1]

    async def _ask(self, host: str, port: int) -> tuple[int, tuple[str, int]]:
        """One sentinel's answer: the epoch of its configuration, and the primary's address."""
        service = self._address.service
        sentinel = await open_connection(Endpoint(host, port), Connection)
        try:
            commands = [("SENTINEL", "GET-MASTER-ADDR-BY-NAME", service), ("SENTINEL", "MASTER", service)]
            address, state = await sentinel.request(pack_all(commands), 2)
        finally:
            sentinel.abort("done")
            await sentinel.closed
        if address is None:
            raise Disconnected(f"sentinel {host}:{port} does not know the service {service}")
        if isinstance(address, ServerError):
            raise Disconnected(f"sentinel {host}:{port} does not answer: {address}")
        return _epoch(state), (address[0].decode(), int(address[1]))

    async def _watch(self, host: str, port: int) -> None:
        """Listens to one sentinel. After each subscription the primary is checked: an announcement may be missed."""
        while True:
            try:
                subscription = await open_connection(Endpoint(host, port), Subscription)
                try:
                    (reply,) = await subscription.request(pack(("SUBSCRIBE", "+switch-master")))
                    if isinstance(reply, ServerError):
                        raise reply
                    await self._follow()
                    while not isinstance(message := await subscription.messages.get(), Disconnected):
                        if message.decode().split(" ")[0] == self._address.service:
                            await self._follow()
                finally:
                    subscription.abort("the subscription ended")
                    await subscription.closed
            except (OSError, ServerError) as error:
                logger.debug("sentinel %s:%d: %s", host, port, error)
            await asyncio.sleep(RESUBSCRIBE_S)

    async def _follow(self) -> None:
        """Leaves the server that the connections lead to, if another one is the primary now."""
        number, found = await self._look_up()
        if self._counts(number, found) and self._primary is not None:
            self._lead_to(found)

    def _lead_to(self, found: tuple[str, int]) -> None:
        """Ends the connections to another server: all lead to the same one, whichever notices a change first."""
        if self._primary not in (None, found):
            logger.info("the primary of %s is now %s:%d", self._address.service, *found)
            self._node.reconnect(f"the primary is now {found[0]}:{found[1]}")
        self._primary = found


def _epoch(state: Any) -> int:
    return 0 if isinstance(state, ServerError) else int(read_text_hash(state).get("config-epoch", 0))
