"""Where redis-py comes into Rota."""

from __future__ import annotations

import importlib
from typing import Any


def redis() -> Any:
    """The library, imported when first needed: that takes half a second, and only those who connect pay for it."""
    for part in ("asyncio", "asyncio.cluster", "asyncio.sentinel", "asyncio.retry", "backoff", "exceptions"):
        importlib.import_module(f"redis.{part}")
    return importlib.import_module("redis")
