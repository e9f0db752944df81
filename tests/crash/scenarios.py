"""The scenarios of the fault-injection suite: which servers, which faults, and what the servers may forget.

`python -m tests.crash.scenarios --help`, or `make chaos`, runs them for as long as asked, and prints their figures.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import secrets
import ssl
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from redis.crc import key_slot

from rota.store.acl_rules import AclRole, acl_rule
from rota.store.keys import tag_of
from tests.cluster.nodes import Cluster
from tests.crash.chaos import Outcome, examine, inject
from tests.crash.chaos_arena import Arena
from tests.crash.server_faults import CLOCK_KEY
from tests.sentinel import failover_group
from tests.server.certificates import make_certificate
from tests.servers import OwnServers
from tests.worker.harness import ROOT

Servers = Callable[["Scenario", OwnServers, Path, str], AbstractAsyncContextManager[Mapping[str, Any]]]
SHARDS: Final = 4
#: The oldest commit that can run the tasks of this suite. Needs a clone with history.
OLD_VERSION: Final = "1ff7529"
PASSWORD: Final = "secret"
WORKERS: Final = (
    *("kill_supervisor", "kill_host", "kill_runner", "kill_producer", "stop_worker"),
    *("freeze_supervisor", "freeze_host", "freeze_runner", "freeze_producer"),
)
SERVER: Final = (
    *("kill_server", "freeze_server", "flush_scripts", "kill_clients", "busy_server", "read_only_server"),
    *("loading_server", "fill_memory", "move_server_clock"),
)
NETWORK: Final = (
    *("cut_connections", "reset_connections", "lose_replies", "half_open_connections", "black_hole"),
    "delay_replies",
)


@asynccontextmanager
async def one_server(
    scenario: Scenario, own_server: OwnServers, folder: Path, namespace: str
) -> AsyncGenerator[Mapping[str, Any]]:
    """One server on a unix socket, with a proxy before each worker."""
    yield {"server": own_server("valkey", tcp=False, **scenario.config), "settings": {"ROTA_TEST_CLOCK_KEY": CLOCK_KEY}}


@asynccontextmanager
async def one_server_with_tls_and_users(
    scenario: Scenario, own_server: OwnServers, folder: Path, namespace: str
) -> AsyncGenerator[Mapping[str, Any]]:
    """The same; workers connect over TLS as the user of their role, and may do no more than it."""
    users = folder / "users.acl"
    users.write_text(f"user default on nopass ~* &* +@all\n{acl_rule(AclRole.WORKER, namespace)} >{PASSWORD}\n")
    server = own_server("valkey", tcp=False, **scenario.config, aclfile=str(users))
    pair = make_certificate(folder)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.certificate, pair.key)
    query = f"?ssl_ca_certs={pair.certificate}"
    yield {"server": server, "tls": tls, "login": f"{namespace}-worker:{PASSWORD}@", "query": query}


@asynccontextmanager
async def one_server_with_an_old_worker(
    scenario: Scenario, own_server: OwnServers, folder: Path, namespace: str
) -> AsyncGenerator[Mapping[str, Any]]:
    """The same; one of the workers runs an older version, as during a rolling upgrade."""
    archive = await asyncio.to_thread(
        subprocess.run, ["git", "archive", OLD_VERSION, "src"], cwd=ROOT, capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder / "old", filter="data")
    yield {"server": own_server("valkey", tcp=False, **scenario.config), "old_source": folder / "old" / "src"}


@asynccontextmanager
async def sentinels(
    scenario: Scenario, own_server: OwnServers, folder: Path, namespace: str
) -> AsyncGenerator[Mapping[str, Any]]:
    """A primary, two replicas and three sentinels; producers wait for a replica."""
    async with failover_group(own_server, folder, replicas=2, sentinels=3) as group:
        yield {"server": group, "settings": {"ROTA_TEST_DURABILITY": "replicated"}}


@asynccontextmanager
async def cluster(
    scenario: Scenario, own_server: OwnServers, folder: Path, namespace: str
) -> AsyncGenerator[Mapping[str, Any]]:
    """Three nodes, and a queue in shards on all of them."""
    with Cluster() as nodes:
        names = [f"default~{number}of{SHARDS}" for number in range(1, SHARDS + 1)]
        slots = [key_slot(tag_of(name).encode()) for name in names]
        yield {"server": nodes, "settings": {"ROTA_TEST_SHARDS": str(SHARDS)}, "slots": slots}


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is attacked, and how."""

    servers: Servers
    faults: tuple[str, ...]
    config: Mapping[str, str] = field(default_factory=dict[str, str])
    has_api: bool = False
    has_autoscaler: bool = False
    may_lose: bool = False
    may_roll_back: bool = False


ALWAYS: Final = {"appendonly": "yes", "appendfsync": "always"}
EVERYSEC: Final = {"appendonly": "yes", "appendfsync": "everysec"}
SCENARIOS: Final[Mapping[str, Scenario]] = {
    "workers": Scenario(one_server, WORKERS, ALWAYS),
    "server": Scenario(one_server, SERVER, ALWAYS),
    "network": Scenario(one_server, NETWORK, ALWAYS),
    "all": Scenario(one_server, (*WORKERS, *SERVER, *NETWORK, "kill_api", "freeze_api"), ALWAYS, has_api=True),
    "api": Scenario(one_server, ("kill_api", "freeze_api", "kill_producer", "kill_server"), ALWAYS, has_api=True),
    # A SIGKILL leaves what was written to the file; what was replied to and not yet written is gone.
    "everysec": Scenario(one_server, ("kill_server", "kill_host"), EVERYSEC, may_lose=True, may_roll_back=True),
    "points": Scenario(one_server, (*["crash_worker_at_point"] * 3, "crash_producer_at_point"), ALWAYS),
    "disk": Scenario(one_server, ("fill_disk", "kill_host"), EVERYSEC),
    "autoscaler": Scenario(
        one_server, ("kill_autoscaler", "freeze_autoscaler", "kill_host", "kill_server"), ALWAYS, has_autoscaler=True
    ),
    "versions": Scenario(one_server_with_an_old_worker, (*WORKERS, "kill_server", "flush_scripts"), ALWAYS),
    "tls": Scenario(one_server_with_tls_and_users, (*NETWORK, "kill_host", "kill_server"), ALWAYS),
    "sentinel": Scenario(sentinels, ("fail_over", "kill_host", "freeze_host"), may_roll_back=True),
    "cluster": Scenario(cluster, ("kill_node", "move_slot", "kill_host", "freeze_supervisor", "kill_producer")),
}


async def run(
    name: str, own_server: OwnServers, folder: Path, namespace: str, *, seed: str, seconds: float, jobs: int = 1_000_000
) -> Outcome:
    """Runs one scenario, and checks the invariants."""
    scenario = SCENARIOS[name]
    async with scenario.servers(scenario, own_server, folder, namespace) as given:
        arena = Arena(
            folder=folder,
            namespace=namespace,
            seed=seed,
            jobs=jobs,
            has_api=scenario.has_api,
            has_autoscaler=scenario.has_autoscaler,
            **given,
        )
        async with arena:
            await inject(arena, scenario.faults, seconds=seconds)
            return await examine(arena, seed=seed, may_lose=scenario.may_lose, may_roll_back=scenario.may_roll_back)


def main() -> None:
    """Runs scenarios from the command line."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument(
        "scenarios", nargs="*", default=list(SCENARIOS), help=f"of {', '.join(SCENARIOS)}; default: all"
    )
    parser.add_argument("--seconds", type=float, default=60, help="of faults in each scenario")
    parser.add_argument("--seed", default="", help="repeat the jobs and faults of an earlier run")
    parser.add_argument("--keep", action="store_true", help="keep the journals and logs, and print where they are")
    arguments = parser.parse_args()
    is_well = True
    for name in arguments.scenarios:
        seed = arguments.seed or secrets.token_hex(4)
        print(f"{name} …", flush=True)
        folder = Path(tempfile.mkdtemp(prefix=f"rota-chaos-{name}-"))
        servers = OwnServers()
        try:
            outcome = asyncio.run(
                run(name, servers, folder, f"c{secrets.token_hex(4)}", seed=seed, seconds=arguments.seconds)
            )
        finally:
            servers.close()
        print(f"{name}: {outcome}", flush=True)
        if outcome.violations or arguments.keep:
            print(f"  journals and logs: {folder}")
        is_well = is_well and not outcome.violations
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    main()
