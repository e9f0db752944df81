"""Where the server is: URLs, the environment, and what is said about a URL that cannot be read."""

from __future__ import annotations

import pytest

from rota.errors import ConfigurationError
from rota.store.redis.address import find_address, parse_address


@pytest.mark.requirement("S0-16", "S2-28")
def test_the_url_given_comes_first_then_the_environment_then_the_embedded_server() -> None:
    everything = {
        "ROTA_URL": "redis://rota",
        "REDIS_URL": "redis://url",
        "REDIS_HOST": "host",
        "REDIS_PORT": "7000",
        "REDIS_PASSWORD": "pass/word",
    }

    assert str(find_address("redis://given", everything)) == "redis://given"
    assert str(find_address(None, everything)) == "redis://rota"
    del everything["ROTA_URL"]
    assert str(find_address(None, everything)) == "redis://url"
    del everything["REDIS_URL"]
    by_host = find_address(None, everything)
    assert (str(by_host), by_host.url) == ("redis://host:7000", "redis://:pass%2Fword@host:7000")
    assert str(find_address(None, {"REDIS_HOST": "host"})) == "redis://host:6379"
    assert find_address(None, {"REDIS_PORT": "7000"}).kind == "embedded"


@pytest.mark.parametrize(
    ("url", "kind", "hosts", "is_tls"),
    [
        ("redis://h:1/2", "single", (), False),
        ("rediss://h", "single", (), True),
        ("valkey://h", "single", (), False),
        ("valkeys://h", "single", (), True),
        ("unix:///tmp/s", "single", (), False),
        ("redis+cluster://a:1,b", "cluster", (("a", 1), ("b", 6379)), False),
        ("rediss+cluster://u:p@a:1,b:2", "cluster", (("a", 1), ("b", 2)), True),
        ("redis+cluster://[::1]:7000,[fe80::1]", "cluster", (("::1", 7000), ("fe80::1", 6379)), False),
        ("redis+sentinel://a,b:2/mymaster", "sentinel", (("a", 26379), ("b", 2)), False),
    ],
)
def test_urls_of_every_kind_are_read(url: str, kind: str, hosts: tuple[tuple[str, int], ...], is_tls: bool) -> None:
    address = parse_address(url)

    assert (address.kind, address.hosts, address.is_tls) == (kind, hosts, is_tls)


def test_a_sentinel_url_has_a_service_and_may_have_a_database_and_a_login() -> None:
    address = parse_address("redis+sentinel://me:p%40ss@a:1,b:2/mymaster/3")

    assert (address.service, address.database, address.username, address.password) == ("mymaster", 3, "me", "p@ss")
    assert parse_address("redis+sentinel://a/mymaster?db=4").database == 4


@pytest.mark.parametrize(
    "url",
    [
        "host:6379",
        "http://h",
        "redis+what://h",
        "redis://h:port",
        "redis://:se/cret@h:1",
        "redis+sentinel://h:1",
        "redis+sentinel://h/m/se",
        "redis+sentinel://h/m?db=x",
        "redis+cluster://",
        "redis+cluster://a:se,b",
        "redis+cluster://a,,b",
        "rediscluster://se@h",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_with_a_clear_error(url: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_address(url)

    assert str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "redis://:hunter2@h:port",
        "redis://:hunter2/x@h:1",
        "redis://user:hunter2#x@h:1",
        "redis+cluster://u:hunter2@a:b",
        "redis+sentinel://u:hunter2@a",
        "redis+cluster://u:hunter2/x@a",
        "redis+sentinel://u:x/hunter2@a/m",
        "amqp://u:hunter2@a",
        "redis:hunter2@h",
    ],
)
def test_what_is_said_about_a_url_never_repeats_a_password(url: str) -> None:
    try:
        shown = f"{parse_address(url)} {parse_address(url)!r}"
    except ConfigurationError as error:
        shown = f"{error} {error.__cause__}"

    assert "hunter2" not in shown


@pytest.mark.parametrize(
    "url", ["redis://u:hunter2@h:1/0", "redis+cluster://u:hunter2@h:1", "redis+sentinel://u:hunter2@h:1/m"]
)
def test_an_address_is_shown_without_its_password(url: str) -> None:
    address = parse_address(url)

    assert "hunter2" not in f"{address} {address!r}"
    assert "h:1" in str(address)
