"""What a server's refusal means: worth trying again, or which of Rota's errors. redis-py's exceptions end here."""

from __future__ import annotations

from typing import Final

from rota.errors import StoreDenied, StoreError, StoreFull, StoreUnavailable, StoreUnsupported
from rota.store.address import Address
from rota.store.library import redis

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
    "TTL exhausted",  # redis-py's own words: redirected too often, as a slot is on its way from node to node
)


_CODES: Final = {
    "ReadOnlyError": "READONLY ",
    "BusyLoadingError": "LOADING ",
    "MasterDownError": "MASTERDOWN ",
    "TryAgainError": "TRYAGAIN ",
    "ClusterDownError": "CLUSTERDOWN ",
    "MovedError": "MOVED ",
    "AskError": "ASK ",
}

#: How Valkey and Redis say that the user lacks a right; the last two from inside a script.
_NO_RIGHT: Final = ("NOPERM", "ACL failure in script", "The user executing the script can't")


#: How redis-py says that some slots are served by nobody just now.
_NOT_COVERED: Final = ("not covered",)
_NO_CLUSTER: Final = "Cluster mode is not enabled"


def is_passing(error: Exception) -> bool:
    """True when the same call may well go through in a moment."""
    exceptions = redis().exceptions
    error = _root(error)
    if isinstance(error, exceptions.AuthenticationError | exceptions.AuthorizationError):
        return False
    if isinstance(error, exceptions.RedisClusterException):
        return any(sign in str(error) for sign in _NOT_COVERED)
    if isinstance(error, exceptions.ConnectionError | exceptions.TimeoutError | OSError | EOFError):
        return not _is_denied(str(error))
    return isinstance(error, exceptions.RedisError) and _reply(error).startswith(_PASSING)


def translate(error: Exception, address: Address) -> Exception:
    """The error of Rota's that says the same, with what to do about it."""
    exceptions = redis().exceptions
    error = _root(error)
    text = _reply(error)
    known = (exceptions.RedisError, exceptions.RedisClusterException, OSError, EOFError)
    if isinstance(error, StoreError) or not isinstance(error, known):
        return error
    if _NO_CLUSTER in text:
        return StoreUnsupported(f"{address} is no cluster: give the URL of one server, redis://host:port")
    if isinstance(error, exceptions.AuthenticationError | exceptions.AuthorizationError) or _is_denied(text):
        return StoreDenied(
            f"{address} refused the user or the password ({text}): "
            "check the URL, or REDIS_PASSWORD, and the user's rights"
        )
    if isinstance(error, exceptions.NoPermissionError) or any(sign in text for sign in _NO_RIGHT):
        return StoreDenied(f"the user that Rota connects as lacks a right on {address}: {text}")
    if isinstance(error, exceptions.OutOfMemoryError) or text.startswith("OOM"):
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


def _root(error: Exception) -> Exception:
    """What is behind redis-py's saying that no node of a cluster can be reached: why the last of them could not."""
    exceptions = redis().exceptions
    while isinstance(error, exceptions.RedisClusterException):
        denied = isinstance(error.__context__, exceptions.NoPermissionError)
        behind = error.__context__ if denied else error.__cause__
        if not isinstance(behind, Exception):
            break
        error = behind
    return error


def _reply(error: Exception) -> str:
    text = str(error) or type(error).__name__
    # redis-py takes the code off some replies and makes it the class.
    code = _CODES.get(type(error).__name__, "")
    return text if text.startswith(code) else code + text


def _is_denied(text: str) -> bool:
    return any(sign in text for sign in ("NOAUTH", "WRONGPASS", "Authentication required", "invalid username-password"))
