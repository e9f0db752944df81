"""How the server behaves: who may do what, what is masked, and how much it takes at once."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from rota.errors import ConfigurationError

if TYPE_CHECKING:
    from rota.server.access import Identity

#: Values of fields whose names contain one of these are never shown.
MASKED: Final = (
    "password", "passwd", "passphrase", "secret", "token", "api_key", "apikey", "api-key", "authorization",
    "credential", "private_key", "cookie", "card_number", "cvv", "ssn", "iban",
)  # fmt: skip
#: Above what a job may take: names, options, and the JSON around them.
BODY_OVERHEAD: Final = 64 * 1024
#: What the id of a trace takes the place of.
TRACE_ID: Final = "{trace_id}"

#: "tokens": bearer tokens, and logins with one. "none": everybody is an admin, on the loopback alone. A function: the
#: host application says who asks, or None.
Authenticate = Callable[[Any], "Identity | Awaitable[Identity | None] | None"]
Auth = Literal["tokens", "none"] | Authenticate


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What `create_app` and `rota server` can be told. The defaults are the safe ones."""

    auth: Auth = "tokens"
    #: Pages of other origins that may use the API, with a token of their own: "https://shop.example".
    cors_origins: Sequence[str] = ()
    #: Names of fields whose values are not shown, wherever they stand in arguments, results, meta and errors.
    mask: Sequence[str] = MASKED
    #: Readers of `/api/events` at the same time.
    max_readers: int = 200
    #: Where a trace is looked at: "https://tracing.example/trace/{trace_id}". None: traces are not linked.
    trace_url: str | None = None

    def __post_init__(self) -> None:
        if not callable(self.auth) and self.auth not in ("tokens", "none"):
            raise ConfigurationError(f"auth is 'tokens', 'none' or a function, not {self.auth!r}")
        for origin in self.cors_origins:
            if origin == "*" or not origin.startswith(("http://", "https://")) or origin.count("/") != 2:
                raise ConfigurationError(f"an origin is named in full, as https://shop.example, not {origin!r}")
        if self.trace_url is not None:
            _check_trace_url(self.trace_url)


def _check_trace_url(template: str) -> None:
    """Refuses what would be no link to a trace, or one that runs in the reader's page."""
    known = template.replace(TRACE_ID, "0" * 32)
    try:
        parts = urlsplit(known)
    except ValueError:
        parts = urlsplit("")
    is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and known.isprintable() and " " not in known
    if not is_address or TRACE_ID not in template:
        raise ConfigurationError(
            f"{template!r} leads to no trace: give an address as https://tracing.example/trace/{TRACE_ID}"
        )


@lru_cache(maxsize=1_000)
def is_loopback(host: str) -> bool:
    """True when nobody but this machine reaches that address."""
    if host.lower().rstrip(".") == "localhost" or host.startswith("/"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]").partition("%")[0]).is_loopback
    except ValueError:
        return False


def check_listening(host: str, auth: Auth) -> None:
    """Refuses an address beyond the loopback while everybody would be an admin. Raises ConfigurationError."""
    if auth == "none" and not is_loopback(host):
        raise ConfigurationError(
            f"listening on {host} without auth would let anybody who reaches this machine run and delete jobs: "
            "make a token with `rota token create --role admin` and add --auth tokens, or listen on 127.0.0.1"
        )
