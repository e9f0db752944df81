"""What the store has counted: since ever, and by minutes and hours. See `include/tally.lua`."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from rota.core.history import HOUR_MS, MINUTE_MS, OTHER, OTHER_SLOT, WIDTH, Added, Counted, counted
from rota.store.gateway import Call, Gateway
from rota.store.keys import Keys
from rota.store.scripts import script

UNIT_MS: Final[Mapping[str, int]] = {"minute": MINUTE_MS, "hour": HOUR_MS}
_MINUTE: Final = " minute"
_page: Final = msgspec.msgpack.Decoder(list[int])


class Tally(NamedTuple):
    """The counts of one queue at one moment of the server's clock."""

    now: int
    #: task -> its slot.
    slots: dict[str, int]
    #: Numbers since ever, slot by slot.
    sums: tuple[int, ...]
    #: Number of a minute or hour -> what it added.
    pages: dict[int, Added]

    def lately(self) -> dict[str, Counted]:
        """task -> what the pages say of it together."""
        sums: dict[int, list[int]] = {}
        for added in self.pages.values():
            for place, amount in added.items():
                slot, count = divmod(place, WIDTH)
                sums.setdefault(slot + 1, [0] * WIDTH)[count] += amount
        named = self._named()
        return {named[slot]: counted(numbers) for slot, numbers in sums.items()}

    def _named(self) -> dict[int, str]:
        return {**{slot: task for task, slot in self.slots.items()}, OTHER_SLOT: OTHER}

    def by_task(self) -> dict[str, Counted]:
        """task -> all that was ever counted of it."""
        named = self._named()
        found: dict[str, Counted] = {}
        for start in range(0, len(self.sums), WIDTH):
            numbers = self.sums[start : start + WIDTH]
            if any(numbers):
                found[named[start // WIDTH + 1]] = counted(numbers)
        return found

    def slots_of(self, task: str | None) -> list[int] | None:
        """The slots that tell of a task; None for all tasks. Of one that was never heard of there are none."""
        if task is None:
            return None
        return [OTHER_SLOT] if task == OTHER else [slot for name, slot in self.slots.items() if name == task]


class Tallies:
    """Questions about what has happened in the queues of one namespace."""

    def __init__(self, gateway: Gateway, keys: Keys) -> None:
        self._gateway = gateway
        self._keys = keys

    async def read(self, queues: Sequence[str], unit: str = "minute", first: int = 0, last: int = -1) -> list[Tally]:
        """The counts of some queues, with what each minute or hour from `first` to `last` added."""
        keys = script("read_tally").keys
        calls = [
            Call("read_tally", [self._keys.queue(queue, key) for key in keys], [unit, first, last]) for queue in queues
        ]
        answers = await self._gateway.run_many(calls) if calls else []
        return [_tally(answer, unit, first) for answer in answers]


def _tally(answer: list[Any], unit: str, first: int) -> Tally:
    now, fields, sums, before, *added = answer
    slots = {fields[at].decode(): int(fields[at + 1]) for at in range(0, len(fields), 2)}
    minute = slots.pop(_MINUTE, 0)
    numbers, earlier = _numbers(sums), _numbers(before)
    pages: dict[int, Added] = {}
    for place, page in enumerate(added):
        if page:
            words = _page.decode(page)
            pages[first + place] = dict(zip(words[::2], words[1::2], strict=True))
    latest = minute * MINUTE_MS // UNIT_MS[unit]
    if first <= latest < first + len(added):
        # Nobody has written this one down yet.
        earlier += (0,) * (len(numbers) - len(earlier))
        pages[latest] = {place: n - earlier[place] for place, n in enumerate(numbers) if n != earlier[place]}
    return Tally(int(now), slots, numbers, pages)


def _numbers(text: bytes) -> tuple[int, ...]:
    # The server makes it only as long as it must be.
    text += b"\0" * (-len(text) % (8 * WIDTH))
    return struct.unpack(f">{len(text) // 8}q", text)
