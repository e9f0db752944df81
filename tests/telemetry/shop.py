"""The program of these tests with a namespace of its own, and a collector that it can send to."""

from __future__ import annotations

import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.leaks import delete_keys
from tests.servers import Server
from tests.telemetry.collector import Collector
from tests.worker.harness import WorkerHarness


@contextmanager
def shop_and_collector(server: Server, folder: Path) -> Generator[tuple[WorkerHarness, Collector]]:
    """Both, for a story that all tests of a module read."""
    namespace = f"telemetry{secrets.token_hex(4)}"
    with Collector() as collector, WorkerHarness(server, namespace, folder, "tests.telemetry.app") as harness:
        yield harness, collector
    with server.client() as client:
        delete_keys(client, namespace)
