"""Hash slots of a cluster: which slot a key belongs to."""

from __future__ import annotations

import binascii
from functools import lru_cache
from typing import Final

#: Of a cluster.
SLOTS: Final = 16_384


@lru_cache(maxsize=10_000)
def slot_of(key: str) -> int:
    """The slot of a key in a cluster: a digest of what stands between its first braces."""
    start = key.find("{")
    end = key.find("}", start + 1)
    tag = key[start + 1 : end] if start >= 0 and end > start + 1 else key
    return binascii.crc_hqx(tag.encode(), 0) % SLOTS
