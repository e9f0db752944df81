"""Servers, namespaces and profiles that the tests share.

Each xdist worker has a Valkey and a Redis of its own for the whole run; each test has a namespace of its own in them.
"""

from __future__ import annotations

import compileall
import os
import secrets
import signal
from collections.abc import Iterator
from typing import Final

import pytest
import redis
from hypothesis import HealthCheck, settings

from tests.leaks import delete_keys, leaked_keys
from tests.scale import IS_LONG
from tests.servers import OwnServers, Server, new_server

pytest_plugins: Final = ("tests.watchdog",)

#: Where Rota looks for a server. Unset, so that no test reaches a server that is in use.
AMBIENT: Final = ("ROTA_URL", "REDIS_URL", "REDIS_HOST", "REDIS_PORT", "REDIS_PASSWORD")

# `make test` repeats the same examples; `make test-long` searches among new ones.
settings.register_profile(
    "default", max_examples=50, stateful_step_count=30, deadline=None, print_blob=True, derandomize=True
)
settings.register_profile(
    "long",
    parent=settings.get_profile("default"),
    derandomize=False,
    max_examples=2_000,
    stateful_step_count=100,
    suppress_health_check=[HealthCheck.too_slow],
)


def pytest_configure(config: pytest.Config) -> None:
    for name in AMBIENT:
        os.environ.pop(name, None)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as under nohup: the same
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As in a shell's background job. What the tests start would inherit it, and be deaf to Ctrl-C.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        # A worker is two processes, and hundreds are started: where nothing writes bytecode, each would compile it all.
        for folder in ("src/rota", "tests"):
            compileall.compile_dir(config.rootpath / folder, quiet=2)
    settings.load_profile("long" if IS_LONG else "default")


@pytest.fixture(scope="session")
def valkey() -> Iterator[Server]:
    """The Valkey that embedded mode runs."""
    with new_server("valkey") as server:
        yield server


@pytest.fixture(scope="session")
def redis7() -> Iterator[Server]:
    """The Redis on the PATH, 7 or newer; skips where there is none."""
    with new_server("redis7") as server:
        yield server


@pytest.fixture(scope="session", params=["valkey", "redis7"])
def server(request: pytest.FixtureRequest) -> Server:
    """Both in turn: the test runs once on each."""
    chosen: Server = request.getfixturevalue(request.param)
    return chosen


@pytest.fixture
def own_server() -> Iterator[OwnServers]:
    """Makes servers for this test alone, which it may kill, pause, fill or misconfigure."""
    servers = OwnServers()
    yield servers
    servers.close()


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> Iterator[str]:
    """Prefix of this test's keys. Afterwards it fails if one of them neither expires nor is declared permanent."""
    wanted = {"valkey", "redis7", "server", "own_server"} & set(request.fixturenames)
    # Asked for here, so that they are still up when this fixture looks at them at the end.
    used = {name: request.getfixturevalue(name) for name in wanted}
    own: OwnServers | None = used.pop("own_server", None)
    shared: set[Server] = set(used.values())

    name = f"t{secrets.token_hex(5)}"
    yield name

    from rota.store.keys import is_permanent

    leaked: list[str] = []
    for server in shared:
        with server.client() as client:
            leaked += leaked_keys(client, name, is_permanent)
            delete_keys(client, name)
    for server in own.still_running() if own else ():
        try:
            with server.client() as client:
                leaked += leaked_keys(client, name, is_permanent)
        except redis.RedisError:
            continue  # the test left it unreadable, by a password or as a replica without its master
    if leaked:
        pytest.fail("keys that neither expire nor are declared permanent:\n  " + "\n  ".join(leaked), pytrace=False)
