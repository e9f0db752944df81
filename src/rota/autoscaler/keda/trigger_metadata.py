"""The metadata of a trigger in a ScaledObject: which queues its workers serve, and the target wait."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rota.autoscaler.config import BOOT_MS
from rota.core.autoscaling.policy_settings import MAX_MS, MAX_WORKERS, DrainTime
from rota.core.ids import checked_queue
from rota.errors import InvalidOption

#: Keys that KEDA itself reads, and passes on with the others.
KEDA_KEYS: Final = frozenset({"scalerAddress", "enableTLS", "unsafeSsl", "tlsCertFile"})
#: KEDA replaces the value of a key with this suffix by that of the variable which it names, and keeps the suffix.
FROM_ENV: Final = "FromEnv"
MAX_QUEUES: Final = 1_000


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger whose metadata are valid."""

    queues: tuple[str, ...]
    policy: DrainTime


def read_metadata(metadata: Mapping[str, str]) -> Trigger:
    """Returns the trigger. Raises InvalidOption, with a sentence that names the key, if the metadata are not valid."""
    given = {key.removesuffix(FROM_ENV): value for key, value in metadata.items()}
    if unknown := sorted(given.keys() - KEDA_KEYS - _KEYS):
        known = ", ".join(sorted(_KEYS))
        raise InvalidOption(unknown[0], f"there is no such metadata; there are {known}")
    return Trigger(
        _queues(given.get("queues", "")),
        DrainTime(
            target_wait_ms=_milliseconds(given, "targetWait", 60_000),
            boot_ms=(boot_ms := _milliseconds(given, "bootTime", BOOT_MS["kubernetes"][0])),
            boot_timeout_ms=max(boot_ms, BOOT_MS["kubernetes"][1]),
            worker_slots=_slots(given.get("slots", "10")),
            # KEDA keeps its own bounds, and its own cool-down.
            max_workers=MAX_WORKERS,
            down_cooldown_ms=0,
        ),
    )


_KEYS: Final = frozenset({"queues", "targetWait", "bootTime", "slots"})


def _queues(given: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name for part in given.split(",") if (name := part.strip())))
    if not names:
        raise InvalidOption("queues", "name the queues that the workers serve, such as queues: mail,default")
    if len(names) > MAX_QUEUES:
        raise InvalidOption("queues", f"there are {len(names):,} names, and at most {MAX_QUEUES:,} may be given")
    for name in names:
        try:
            checked_queue(name)
        except InvalidOption as error:
            raise InvalidOption("queues", error.reason) from None
    return names


def _milliseconds(given: Mapping[str, str], key: str, default: int) -> int:
    if key not in given:
        return default
    try:
        seconds = float(given[key])
    except ValueError:
        seconds = math.nan
    if not 0.1 <= seconds <= MAX_MS / 1000:
        raise InvalidOption(key, f"{given[key]!r} is not a number of seconds from 0.1 to {MAX_MS // 1000:,}")
    return round(seconds * 1000)


def _slots(given: str) -> int:
    if not (given.isascii() and given.isdecimal() and 1 <= int(given[:6]) <= MAX_WORKERS and len(given) <= 6):
        raise InvalidOption("slots", f"{given!r} is not a whole number from 1 to {MAX_WORKERS:,}")
    return int(given)
