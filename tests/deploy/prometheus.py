"""A real Prometheus for the tests, with the configuration that is shipped: Debian's package, or the one on the PATH."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Final, Self

import pytest

from tests.eventually import eventually_sync
from tests.servers import free_port

ROOT: Final = Path(__file__).parents[2]
SHIPPED: Final = ROOT / "deploy" / "prometheus"


def program(name: str) -> str:
    """`prometheus` or `promtool`. Skips the test where there is none."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not on the PATH: Debian's package `prometheus` has it")
    return found


def config(server: str, worker: str, folder: Path) -> str:
    """The shipped configuration, pointed at processes of the test, and as quick as a test needs it."""
    (folder / "token").write_text("of no use here")
    text = (SHIPPED / "prometheus.yml").read_text(encoding="utf-8")
    text = text.replace("15s", "300ms").replace("rules/*.yml", str(SHIPPED / "rules/*.yml"))
    text = text.replace("/etc/prometheus/rota-token", str(folder / "token")).replace("server:8080", server)
    text, count = re.subn(
        r"    dns_sd_configs:\n(      .*\n)+", f"    static_configs:\n      - targets: [{worker}]\n", text
    )
    assert count == 1, "the workers are found by their name"
    return text.partition("\n  # What programs and workers send as OTLP")[0] + "\n"


class Prometheus:
    """One process, from `with` to its end."""

    def __init__(self, configuration: str, folder: Path) -> None:
        self._port = free_port()
        self._folder = folder
        (folder / "prometheus.yml").write_text(configuration)
        self._command = [
            program("prometheus"),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self._port}",
            "--log.level=warn",
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def query(self, expression: str) -> list[float]:
        """The values of an instant query that are numbers."""
        answer = self._get("query", query=expression)
        values = (float(series["value"][1]) for series in answer["result"])
        return [value for value in values if value == value]

    def rules(self) -> list[dict[str, Any]]:
        """All of them, as they were loaded."""
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def _get(self, what: str, **parameters: str) -> Any:
        url = f"http://127.0.0.1:{self._port}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def __enter__(self) -> Self:
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, start_new_session=True)
        eventually_sync(self._is_ready, 60)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(20)

    def _is_ready(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError((self._folder / "log").read_text())
        try:
            return bool(self.rules())
        except (urllib.error.URLError, ConnectionError):
            return False
