"""The log of who changed what. It lives in the store, beside what was changed, and is capped."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from typing import Any

import msgspec

from rota.client import Rota
from rota.errors import StoreError
from rota.server.tokens import Role, access_store

logger = logging.getLogger("rota.server")


async def note_change(
    rota: Rota,
    *,
    who: str,
    role: Role,
    action: str,
    target: str,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Writes down a change that was made."""
    entry = {
        # By this an entry that was written twice, because an answer was lost, is recognised.
        "token": secrets.token_hex(8),
        "who": who,
        "role": role,
        "action": action,
        "target": target,
        "before": before,
        "after": after,
    }
    try:
        await (await access_store(rota)).note_change(msgspec.json.encode(entry))
    except StoreError as error:
        # It is done, and must not be reported as if it were not: then this log is the record of it.
        logger.error("not in the audit log (%s): %s", error, entry)
