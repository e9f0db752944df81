"""Error replies: which are worth a retry, and the Rota exception for each of the others."""

from __future__ import annotations

from typing import Final

from rota.errors import StoreDenied, StoreError, StoreFull, StoreUnavailable, StoreUnsupported
from rota.store.redis.address import Address
from rota.store.redis.cluster import NO_CLUSTER
from rota.store.redis.connection import ServerError

#: The exceptions that a call over a connection may raise.
TRANSPORT_ERRORS: Final = (ServerError, OSError)
#: Prefixes of error replies that pass by themselves.
_TRANSIENT: Final = (
    "LOADING",
    "READONLY",
    "MASTERDOWN",
    "TRYAGAIN",
    "CLUSTERDOWN",
    "BUSY ",
    "MOVED",
    "ASK",
    "NOREPLICAS",
    "MISCONF",
    "UNBLOCKED",
    "ERR max number of clients reached",
)
_LOGIN_REFUSED: Final = ("NOAUTH", "WRONGPASS", "invalid username-password", "without any password configured")
#: Missing permissions in the words of Valkey and Redis; the last two come from inside a script.
_NO_PERMISSION: Final = ("NOPERM", "ACL failure in script", "The user executing the script can't")
#: The server is away, full, or refuses this client: neither the call nor what it is about is the reason.
SERVER_ERRORS: Final = (StoreUnavailable, StoreDenied, StoreFull, StoreUnsupported)


def is_transient(error: Exception) -> bool:
    """True when the same call may succeed in a moment."""
    return isinstance(error, OSError) or str(error).startswith(_TRANSIENT)


def translate(error: Exception, address: Address, *, used_by: str = "") -> StoreError:
    """The exception of Rota for an error, with what to do about it. `used_by` is the call that failed, and its keys."""
    text = str(error) or type(error).__name__
    if NO_CLUSTER in text:
        return StoreUnsupported(f"{address} is no cluster: give the URL of one server, redis://host:port")
    if any(sign in text for sign in _LOGIN_REFUSED):
        return StoreDenied(
            f"{address} refused the user or the password ({text}): "
            "check the URL, REDIS_PASSWORD and the permissions of the user"
        )
    if any(sign in text for sign in _NO_PERMISSION):
        needed = f", needed by {used_by}" if used_by else ""
        return StoreDenied(
            f"the user that Rota connects as lacks a permission on {address} ({text}){needed}: "
            "grant it, or use the rule that `rota acl` prints for this program's role"
        )
    if text.startswith("WRONGTYPE"):
        found = f" among those of {used_by}" if used_by else ""
        return StoreError(
            f"a key{found} on {address} has another type than Rota stores there (WRONGTYPE): another program has "
            "written to it; `rota doctor` names the key and what to do"
        )
    if text.startswith("OOM"):
        return StoreFull(
            f"{address} is at its maxmemory, nothing was stored: let workers drain it, or give it more memory"
        )
    if "#!lua" in text or "unexpected symbol near '#'" in text or "unknown command" in text.lower():
        return StoreUnsupported(f"{address} is too old for Rota, which needs Valkey 8 or Redis 7 at least: {text}")
    if text.startswith("READONLY"):
        return StoreUnavailable(f"{address} is a replica, which accepts no jobs ({text}): give the URL of its primary")
    if is_transient(error):
        return StoreUnavailable(f"{address} does not answer ({text}): is it running, and can it be reached from here?")
    return StoreError(f"{address}: {text}")
