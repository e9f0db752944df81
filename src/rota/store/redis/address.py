"""Server addresses: parsed from a URL or the environment; without either, the embedded server.

Accepts redis://, rediss://, unix://, redis+sentinel://host:port,host:port/service and
redis+cluster://host:port,host:port, and the same with valkey instead of redis. A second s means TLS.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from rota.errors import ConfigurationError

_QUOTING: Final = "in a password, write / ? # @ and , as %2F %3F %23 %40 and %2C"
_HOST: Final = re.compile(r"(?:\[([^\[\]]+)\]|([^:\[\]]+))(?::(\d{1,5}))?")
_KINDS: Final = {"": "single", "sentinel": "sentinel", "cluster": "cluster"}
_DEFAULT_PORTS: Final = {"sentinel": 26379, "cluster": 6379}


@dataclass(frozen=True, slots=True)
class Address:
    """A server address. `url` may hold a password; `str(address)` omits it."""

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
        login = f":{quote(password, safe='')}@" if password else ""
        host = environment["REDIS_HOST"]
        host = f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host  # IPv6
        return parse_address(f"redis://{login}{host}:{environment.get('REDIS_PORT') or 6379}")
    return Address("embedded")


def parse_address(url: str) -> Address:
    """Parses a server URL. Raises ConfigurationError, whose message never contains a password."""
    scheme, separator, _ = url.partition("://")
    if separator and scheme == "unix":
        return _parse_unix(url)
    family, _, kind = scheme.partition("+")
    if not separator or family not in ("redis", "rediss", "valkey", "valkeys") or kind not in _KINDS:
        raise ConfigurationError(
            f"{scheme if separator else 'that'}: not a server URL; use redis://, rediss://, unix://, "
            "redis+sentinel:// or redis+cluster://"
        )
    is_tls = family in ("rediss", "valkeys")
    rest = url[len(scheme) :]
    if not kind:
        return _parse_single(("rediss" if is_tls else "redis") + rest, is_tls=is_tls)
    return _parse_hosts(url, kind, rest.removeprefix("://"), is_tls=is_tls)


def _parse_unix(url: str) -> Address:
    parts = urlsplit(url)
    if parts.netloc.rpartition("@")[2] or not parts.path.startswith("/"):
        raise ConfigurationError("unix:// needs the absolute path of the socket: unix:///run/valkey.sock")
    _check_parameters(parts.query, is_tls=False)
    return Address("single", url)


def _parse_single(url: str, *, is_tls: bool) -> Address:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        # The text in the place of the port may be part of the password, so the message does not repeat it.
        raise ConfigurationError(f"the server URL has no valid port; {_QUOTING}") from None
    if "@" in parts.path + parts.query + parts.fragment:
        raise ConfigurationError(f"the server URL cannot be parsed; {_QUOTING}")
    if not re.fullmatch(r"/?|/\d+/?", parts.path):
        raise ConfigurationError(f"the database of the server URL is not a number; {_QUOTING}")
    _check_parameters(parts.query, is_tls=is_tls)
    return Address("single", url, is_tls=is_tls)


def _parse_hosts(url: str, kind: str, rest: str, *, is_tls: bool) -> Address:
    """Parses the URL of a cluster or of sentinels. By hand: urlsplit accepts a single host only."""
    netloc, _, path = rest.partition("/")
    login, _, hosts = netloc.rpartition("@")
    username, _, password = login.partition(":")
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
        hosts=tuple(_parse_host(host, _DEFAULT_PORTS[kind]) for host in hosts.split(",")),
        service=service,
        username=unquote(username) or None,
        password=unquote(password) or None,
        is_tls=is_tls,
        database=int(database),
    )


def _check_parameters(query: str, *, is_tls: bool) -> None:
    """Rejects connection settings in the URL that would override Rota's own, such as timeouts."""
    for name, values in parse_qs(query, keep_blank_values=True).items():
        if name not in ("db", "username", "password") and not (is_tls and name.startswith("ssl_")):
            raise ConfigurationError(f"the server URL has an unsupported setting: {name}")
        if name == "db" and not values[0].isdecimal():
            raise ConfigurationError("the database of the server URL is not a number")


def _parse_host(text: str, default_port: int) -> tuple[str, int]:
    parts = _HOST.fullmatch(text)
    if parts is None:
        raise ConfigurationError(f"the server URL does not name hosts and ports; {_QUOTING}")
    return parts[1] or parts[2], int(parts[3] or default_port)
