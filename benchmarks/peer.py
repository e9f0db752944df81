"""Runs a peer: its environment, the process that enqueues for it, and its workers."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.peer_interface import SLOTS
from benchmarks.server import IN_MEMORY, Server, serving

ROOT = Path(__file__).parent.parent
PEERS = Path(__file__).parent / "peers"
#: One environment for each peer, made when it is first needed. Git ignores the folder.
ENVIRONMENTS = ROOT / ".peers"


class Peer:
    """One module of `peers`."""

    def __init__(self, path: Path) -> None:
        self.name = path.stem
        self.about = _about(path)
        self.is_python = path.suffix == ".py"
        self.packages: Sequence[str] = self.about["packages"]
        #: Rota itself runs in the environment that we are in.
        self.environment = ENVIRONMENTS / self.name if self.packages else Path(sys.prefix)

    @property
    def programs(self) -> Path:
        """Where its environment has its programs."""
        return self.environment / ("bin" if self.is_python else "node_modules/.bin")

    def prepare(self) -> None:
        """Creates its environment, unless it exists with these packages."""
        if not self.packages:
            return
        stamp = self.environment / "packages.json"
        wanted = json.dumps(list(self.packages))
        if stamp.exists() and stamp.read_text() == wanted:
            return
        print(f"installing {', '.join(self.packages)}", file=sys.stderr, flush=True)
        if self.is_python:
            _run(sys.executable, "-m", "venv", self.environment)
            python = self.environment / "bin" / "python"
            _run(python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", *self.packages)
        else:
            self.environment.mkdir(parents=True, exist_ok=True)
            _run("npm", "install", "--silent", "--prefix", self.environment, *self.packages)
        stamp.write_text(wanted)

    def driver_words(self) -> list[str]:
        """The command line of the process that enqueues."""
        if self.is_python:
            return [str(self.programs / "python"), "-m", "benchmarks.peer_interface", self.name]
        return ["node", "benchmarks/peer_driver.mjs", self.name]

    def worker_words(self, words: Sequence[str]) -> list[str]:
        """A worker's command line, with the program of its own environment."""
        program = self.programs / words[0]
        return [str(program) if program.exists() else words[0], *words[1:]]


class Stage:
    """One server with one peer on it, for one measure."""

    def __init__(self, peer: Peer, server: Server, folder: Path) -> None:
        self.peer = peer
        self.server = server
        self.folder = folder
        self.environment = {
            **os.environ,
            "BENCH_PORT": str(server.port),
            "BENCH_FOLDER": str(folder),
            "BENCH_ENVIRONMENT": str(peer.environment),
            "PYTHONPATH": str(ROOT),
        }
        self._driver: subprocess.Popen[str] | None = None

    def ask(self, order: str, **details: Any) -> Any:
        """Sends a command to the enqueuing process. Returns its reply."""
        driver = self._driver or self._start_driver()
        assert driver.stdin is not None
        assert driver.stdout is not None
        driver.stdin.write(json.dumps({"order": order, **details}) + "\n")
        driver.stdin.flush()
        line = driver.stdout.readline()
        if not line:
            raise RuntimeError(f"the enqueuing process of {self.peer.name} ended with {driver.wait()}")
        return json.loads(line)["answer"]

    def _start_driver(self) -> subprocess.Popen[str]:
        self._driver = subprocess.Popen(
            self.peer.driver_words(),
            cwd=ROOT,
            env=self.environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=machine.pinned(machine.CLIENT_CORES),
        )
        return self._driver

    def move_driver(self, cores: Collection[int]) -> None:
        """Moves the enqueuing process to other cores."""
        driver = self._driver or self._start_driver()
        for thread in Path(f"/proc/{driver.pid}/task").glob("[0-9]*"):
            machine.pin(int(thread.name), cores)

    def close_driver(self) -> None:
        """Ends the enqueuing process."""
        if self._driver is not None:
            self._driver.kill()
            self._driver.communicate()
            self._driver = None

    @contextmanager
    def worker(
        self,
        measure: str,
        processes: int = 1,
        *,
        words: Sequence[str] | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> Generator[list[int]]:
        """A worker with one process or more; yields its process ids. `words`: another command line."""
        commands = [list(words)] if words else self.ask("commands", measure=measure, processes=processes)
        cores = machine.CLIENT_CORES if processes == 1 else machine.ALL_CORES
        log = (self.folder / "worker.log").open("ab")
        started: list[subprocess.Popen[bytes]] = []
        try:
            for command in commands:
                started.append(  # noqa: PERF401  # what has been started is ended, also if the next one fails
                    subprocess.Popen(
                        self.peer.worker_words(command),
                        cwd=ROOT,
                        env={**self.environment, **(extra or {})},
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                        preexec_fn=machine.pinned(cores),
                    )
                )
            yield [process.pid for process in started]
        finally:
            machine.end(process.pid for process in started)
            for process in started:
                process.wait()
            log.close()

    def counted(self) -> int:
        """Returns the number of ended handlers."""
        return sum(memoryview((self.folder / "job_counters").read_bytes()).cast("Q"))

    def stamps(self) -> list[int]:
        """Returns the times that handlers recorded, in nanoseconds."""
        return [int(line) for line in (self.folder / "stamps").read_bytes().split()]

    def forget_stamps(self) -> None:
        """Deletes the times recorded so far."""
        os.truncate(self.folder / "stamps", 0)

    def wait_counted(self, count: int, seconds: float, every: float = 0.01) -> bool:
        """Waits until that many handlers have ended, or the time has passed."""
        deadline = time.monotonic() + seconds
        while self.counted() < count:
            if time.monotonic() > deadline:
                return False
            time.sleep(every)
        return True

    def said(self) -> str:
        """Returns the end of the workers' output."""
        path = self.folder / "worker.log"
        return path.read_text(errors="replace")[-2000:] if path.exists() else ""


@contextmanager
def staged(peer: Peer, flags: Sequence[str] = IN_MEMORY) -> Generator[Stage]:
    """A fresh server for a peer."""
    with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder, serving(flags) as server:
        (Path(folder) / "job_counters").write_bytes(bytes(SLOTS * 8))
        (Path(folder) / "stamps").touch()
        stage = Stage(peer, server, Path(folder))
        try:
            yield stage
        finally:
            stage.close_driver()


def peers() -> dict[str, Peer]:
    """All that there are, Rota first."""
    paths = [path for path in PEERS.iterdir() if path.suffix in (".py", ".mjs") and path.stem != "__init__"]
    return {path.stem: Peer(path) for path in sorted(paths, key=lambda path: (path.stem != "rota", path.name))}


def _about(path: Path) -> dict[str, Any]:
    """Reads `ABOUT` without running the module, whose packages may not be there."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".mjs":
        found = re.search(r"^export const ABOUT = (\{.*?^\});", text, re.DOTALL | re.MULTILINE)
        assert found, f"{path} has no ABOUT"
        return json.loads(found[1])
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "ABOUT":
            return ast.literal_eval(node.value)
    raise ValueError(f"{path} has no ABOUT")


def _run(*words: str | Path) -> None:
    subprocess.run([str(word) for word in words], check=True, stdout=sys.stderr)
