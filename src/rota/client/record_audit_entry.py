"""The audit log: logins and changes with their callers. The HTTP server and the command line write it."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from rota.client.session import HasSessions, checked_session
from rota.errors import StoreError
from rota.store.http_server_state import HttpServerStore

logger = logging.getLogger("rota.audit")

#: Longest value of a field before and after a change, as JSON, and other bounds of an entry.
MAX_VALUE: Final = 2_000
MAX_CALLER: Final = 200
MAX_TARGET: Final = 500
MAX_FIELDS: Final = 20


class AuditCaller(msgspec.Struct, frozen=True):
    """The origin of a change: the name that is shown, and the id that bounds its share of the log."""

    id: str
    name: str
    role: str | None = None
    #: Address of the client, or host name of a command.
    source: str | None = None


async def record_change(
    rota: HasSessions,
    caller: AuditCaller,
    action: str,
    target: str,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Adds a change to the audit log. Long values are cut."""
    entry = {
        # Identifies an entry that was written twice because a reply was lost.
        "token": secrets.token_hex(8),
        "who": caller.name[:MAX_CALLER],
        "role": caller.role,
        "source": caller.source,
        "action": action,
        "target": target[:MAX_TARGET],
        "before": _cut(before),
        "after": _cut(after),
    }
    try:
        session = await checked_session(rota)
        store = HttpServerStore(session.redis, session.keys)
        await store.append_audit(caller.id[:MAX_CALLER], msgspec.json.encode(entry))
    except StoreError as error:
        # The change is made and must not be reported as failed, so the log of this process is its record.
        logger.error("audit log entry not stored (%s): %s", error, entry)


def _cut(fields: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Bounds an entry: 10,000 of them are kept, and the data of a job may have a megabyte."""
    if fields is None:
        return None
    return {name: _cut_value(value) for name, value in list(fields.items())[:MAX_FIELDS]}


def _cut_value(value: Any) -> Any:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return value if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}… ({len(text):,} characters)"
