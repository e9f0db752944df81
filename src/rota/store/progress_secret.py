"""The secret that signs progress tokens. It is created on its first use; deleting it revokes all of these tokens."""

from __future__ import annotations

import secrets
from typing import Final

from rota.store.keys import Keys
from rota.store.redis.hash_and_time_replies import read_time_ms
from rota.store.redis.retrying_client import RedisClient

SECRET_BYTES: Final = 32


async def read_secret_and_time(redis: RedisClient, keys: Keys) -> tuple[bytes, int]:
    """Returns the secret, and the server's time, ms."""
    key = keys.shared("progress_secret")
    stored, time = await redis.commands([["GET", key], ["TIME"]])
    if stored is None:
        await redis.command("SET", key, secrets.token_hex(SECRET_BYTES), "NX")  # another client may have been first
        stored = await redis.command("GET", key)
    return stored, read_time_ms(time)
