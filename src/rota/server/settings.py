"""Settings of the HTTP server: the options of `create_app` and of `rota server`."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from rota.core.ids import checked_task_name
from rota.errors import ConfigurationError

if TYPE_CHECKING:
    from rota.server.auth.authentication import Identity

#: Values of fields whose names contain one of these are masked.
MASKED: Final = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "api_key",
    "apikey",
    "api-key",
    "authorization",
    "credential",
    "private_key",
    "cookie",
    "card_number",
    "cvv",
    "ssn",
    "iban",
)
#: Bytes of a request body beyond the payload: names, options and JSON syntax.
BODY_OVERHEAD: Final = 64 * 1024
#: Scheme, host and port, without a path or a pattern.
_ORIGIN: Final = re.compile(r"https?://[^/*\s]+")
#: Placeholder for the trace id in `trace_url`.
TRACE_ID: Final = "{trace_id}"

#: "tokens": bearer tokens, and sessions opened with one. "none": every caller is an admin, on the loopback only. A
#: function: the host application returns the identity of the caller, or None.
Authenticate = Callable[[Any], "Identity | Awaitable[Identity | None] | None"]
Auth = Literal["tokens", "none"] | Authenticate


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Options of `create_app` and `rota server`. The defaults are safe."""

    auth: Auth = "tokens"
    #: Other origins whose pages may use the API, with their own token: "https://shop.example"; "*" for all.
    cors_origins: Sequence[str] = ()
    #: Field names whose values are masked in arguments, results, meta and errors.
    mask: Sequence[str] = MASKED
    #: Maximum number of concurrent `/api/events` streams; half as many of `/api/progress` may be open besides.
    max_readers: int = 200
    #: The task of a `POST /` whose `name` is not that of a task. None: `name` is required to be one.
    default_task: str | None = None
    #: Address of a trace: "https://tracing.example/trace/{trace_id}". None: traces are not linked.
    trace_url: str | None = None

    def __post_init__(self) -> None:
        if not callable(self.auth) and self.auth not in ("tokens", "none"):
            raise ConfigurationError(f"auth must be 'tokens', 'none' or a function, not {self.auth!r}")
        for origin in self.cors_origins:
            if origin != "*" and not _ORIGIN.fullmatch(origin):
                raise ConfigurationError(f"{origin!r} is not an origin: write it in full, such as https://shop.example")
        if "*" in self.cors_origins and self.auth != "tokens":
            raise ConfigurationError(
                "cors origin '*' requires --auth tokens: without tokens, any web page could run and delete jobs"
            )
        if self.default_task is not None:
            checked_task_name(self.default_task)
        if self.trace_url is not None:
            _check_trace_url(self.trace_url)


def _check_trace_url(template: str) -> None:
    """Refuses a template that is not an http(s) link to a trace. Raises ConfigurationError."""
    known = template.replace(TRACE_ID, "0" * 32)
    try:
        parts = urlsplit(known)
    except ValueError:
        parts = urlsplit("")
    is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and known.isprintable() and " " not in known
    if not is_address or TRACE_ID not in template:
        raise ConfigurationError(
            f"{template!r} is not a link to a trace: use an address such as https://tracing.example/trace/{TRACE_ID}"
        )


@lru_cache(maxsize=1_000)
def is_loopback(host: str) -> bool:
    """True for an address that only this machine can reach."""
    if host.lower().rstrip(".") == "localhost" or host.startswith("/"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]").partition("%")[0]).is_loopback
    except ValueError:
        return False


def trusted_proxies(text: str) -> list[str]:
    """Parses the addresses and networks of `--trusted-proxies`. Raises ConfigurationError.

    "*" is refused: if every address is a proxy, the client's own entry in X-Forwarded-For counts.
    """
    found = [one.strip() for one in text.split(",") if one.strip()]
    for one in found:
        try:
            ipaddress.ip_network(one)
        except ValueError as error:
            raise ConfigurationError(
                f"{one!r} is not the address or network of a proxy ({error}): write it as 10.0.0.5 or 10.0.0.0/24"
            ) from error
    return found


def check_listening(host: str, auth: Auth) -> None:
    """Refuses to listen beyond the loopback without authentication. Raises ConfigurationError."""
    if auth == "none" and not is_loopback(host):
        raise ConfigurationError(
            f"listening on {host} without authentication would let any host on the network run and delete jobs: "
            "create a token with `rota token create --role admin` and add --auth tokens, or listen on 127.0.0.1"
        )
