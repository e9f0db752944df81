"""Where the server is: from the URL given, from the environment, or embedded.

Understands redis://, rediss://, unix://, redis+sentinel://host:port,host:port/service and
redis+cluster://host:port,host:port (and the same with valkey in place of redis, and with a second s for TLS).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from rota.errors import ConfigurationError

_QUOTING: Final = "in a password, / ? # @ and , are written as %2F %3F %23 %40 and %2C"
_HOST: Final = re.compile(r"(?:\[([^\[\]]+)\]|([^:\[\]]+))(?::(\d{1,5}))?")
_KINDS: Final = {"": "single", "sentinel": "sentinel", "cluster": "cluster"}


@dataclass(frozen=True, slots=True)
class Address:
    """How to reach the server. `url` may hold a password: show `str(address)` instead, which does not."""

    kind: str  # single | sentinel | cluster | embedded
    url: str = field(default="", repr=False)
    hosts: tuple[tuple[str, int], ...] = ()
    service: str = ""
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    is_tls: bool = False
    database: int = 0

    def __str__(self) -> str:
        if self.kind == "embedded":
            return "the embedded server"
        if self.kind == "single":
            parts = urlsplit(self.url)
            return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        hosts = ",".join(f"{host}:{port}" for host, port in self.hosts)
        return f"{self.kind} {hosts}" + (f" ({self.service})" if self.service else "")


def find_address(url: str | None, environment: Mapping[str, str]) -> Address:
    """The URL given, else ROTA_URL, REDIS_URL, REDIS_HOST with REDIS_PORT and REDIS_PASSWORD, else embedded."""
    chosen = url or environment.get("ROTA_URL") or environment.get("REDIS_URL")
    if chosen:
        return parse_address(chosen)
    if environment.get("REDIS_HOST"):
        password = environment.get("REDIS_PASSWORD")
        secret = f":{quote(password, safe='')}@" if password else ""
        host = environment["REDIS_HOST"]
        host = f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host  # IPv6
        return parse_address(f"redis://{secret}{host}:{environment.get('REDIS_PORT') or 6379}")
    return Address("embedded")


def parse_address(url: str) -> Address:
    """Reads a server URL, or says what is wrong with it without repeating a password."""
    scheme, separator, _ = url.partition("://")
    family, _, kind = scheme.partition("+")
    if separator and scheme == "unix":
        parts = urlsplit(url)
        if parts.netloc.rpartition("@")[2] or not parts.path.startswith("/"):
            raise ConfigurationError("unix:// needs the absolute path of the socket: unix:///run/valkey.sock")
        _check_parameters(parts.query, is_tls=False)
        return Address("single", url)
    if not separator or family not in ("redis", "rediss", "valkey", "valkeys") or kind not in _KINDS:
        raise ConfigurationError(
            f"{scheme if separator else 'that'}: not a server URL; Rota knows redis://, rediss://, unix://, "
            "redis+sentinel:// and redis+cluster://"
        )
    is_tls = family.endswith("s") and family != "redis"
    family = "rediss" if is_tls else "redis"
    rest = url[len(scheme) :]
    if not kind:
        try:
            parts = urlsplit(family + rest)
            _ = parts.port
        except ValueError:
            # What stands where the port should be may be a part of the password: it is not repeated.
            raise ConfigurationError(f"the server URL has no valid port; {_QUOTING}") from None
        if "@" in parts.path + parts.query + parts.fragment:
            raise ConfigurationError(f"the server URL cannot be read; {_QUOTING}")
        if not re.fullmatch(r"/?|/\d+/?", parts.path):
            raise ConfigurationError(f"the database of the server URL is not a number; {_QUOTING}")
        _check_parameters(parts.query, is_tls=is_tls)
        return Address("single", family + rest, is_tls=is_tls)
    # urlsplit wants one host, so the list of hosts is taken apart by hand.
    netloc, _, path = rest[3:].partition("/")
    secret, _, hosts = netloc.rpartition("@")
    username, _, password = secret.partition(":")
    path, _, query = path.partition("?")
    if kind == "sentinel" and not path:
        raise ConfigurationError(
            "redis+sentinel:// needs the name of the service: redis+sentinel://host:26379/mymaster"
        )
    service, _, database = path.partition("/")
    database = database or parse_qs(query).get("db", ["0"])[0]
    if not database.isdecimal():
        raise ConfigurationError(f"the database of the server URL is not a number; {_QUOTING}")
    return Address(
        _KINDS[kind],
        url,
        hosts=tuple(_host(host, 26379 if kind == "sentinel" else 6379) for host in hosts.split(",")),
        service=service,
        username=unquote(username) or None,
        password=unquote(password) or None,
        is_tls=is_tls,
        database=int(database),
    )


def _check_parameters(query: str, *, is_tls: bool) -> None:
    """Everything else about a connection is Rota's own business, and would be overruled by what the URL says."""
    for name, values in parse_qs(query, keep_blank_values=True).items():
        if name not in ("db", "username", "password") and not (is_tls and name.startswith("ssl_")):
            raise ConfigurationError(f"the server URL has a setting that Rota does not take: {name}")
        if name == "db" and not values[0].isdecimal():
            raise ConfigurationError("the database of the server URL is not a number")


def _host(text: str, default_port: int) -> tuple[str, int]:
    parts = _HOST.fullmatch(text)
    if parts is None:
        raise ConfigurationError(f"the server URL does not name hosts and ports; {_QUOTING}")
    return parts[1] or parts[2], int(parts[3] or default_port)
