"""What a server's answer means: a hash; or a refusal, worth trying again or one of Rota's errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rota.errors import StoreDenied, StoreError, StoreFull, StoreUnavailable, StoreUnsupported
from rota.store.address import Address
from rota.store.cluster import NO_CLUSTER
from rota.store.connection import ServerError

#: What a call may end in that was sent over a connection.
TROUBLE: Final = (ServerError, OSError)
#: Beginnings of replies that mean: not now, but soon.
_PASSING: Final = (
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
_REFUSED: Final = ("NOAUTH", "WRONGPASS", "invalid username-password", "without any password configured")
#: How Valkey and Redis say that the user lacks a right; the last two from inside a script.
_NO_RIGHT: Final = ("NOPERM", "ACL failure in script", "The user executing the script can't")


def read_hash(answer: Sequence[bytes]) -> dict[str, bytes]:
    """A hash, which the server gives as fields and values in turn."""
    return {field.decode(): value for field, value in zip(answer[::2], answer[1::2], strict=True)}


def is_passing(error: Exception) -> bool:
    """True when the same call may well go through in a moment."""
    return isinstance(error, OSError) or str(error).startswith(_PASSING)


def translate(error: Exception, address: Address) -> StoreError:
    """The error of Rota's that says the same, with what to do about it."""
    text = str(error) or type(error).__name__
    if NO_CLUSTER in text:
        return StoreUnsupported(f"{address} is no cluster: give the URL of one server, redis://host:port")
    if any(sign in text for sign in _REFUSED):
        return StoreDenied(
            f"{address} refused the user or the password ({text}): "
            "check the URL, or REDIS_PASSWORD, and the user's rights"
        )
    if any(sign in text for sign in _NO_RIGHT):
        return StoreDenied(f"the user that Rota connects as lacks a right on {address}: {text}")
    if text.startswith("OOM"):
        return StoreFull(
            f"{address} is at its maxmemory, nothing was stored: let workers drain it, or give it more memory"
        )
    if "#!lua" in text or "unexpected symbol near '#'" in text or "unknown command" in text.lower():
        return StoreUnsupported(f"{address} is too old for Rota, which needs Valkey 8 or Redis 7 at least: {text}")
    if text.startswith("READONLY"):
        return StoreUnavailable(f"{address} is a replica, which takes no jobs ({text}): give the URL of its primary")
    if is_passing(error):
        return StoreUnavailable(f"{address} does not answer ({text}): is it running, and can it be reached from here?")
    return StoreError(f"{address}: {text}")
