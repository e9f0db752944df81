"""Records the changes of commands in the audit log."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rota.client.rota import Rota


async def audit(rota: Rota, action: str, target: str, **after: Any) -> None:
    """Adds a change of this command to the audit log."""
    from rota.client.record_audit_entry import AuditCaller, record_change

    changes: Mapping[str, Any] = {name: value for name, value in after.items() if value is not None}
    caller = AuditCaller(f"command line {user()}", f"{user()} (command line)", "admin", socket.gethostname())
    await record_change(rota, caller, action, target, after=changes or None)


def user() -> str:
    """The name of the user that runs the command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number without a name
        import os

        return str(os.getuid())
