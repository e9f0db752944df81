"""The distributions and clean environments. `make dist` names the distributions to test in ROTA_TEST_DIST."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]

#: Creates an environment and installs a requirement into it. Returns the folder of its commands.
Install = Callable[[str], Path]


def build(tree: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Builds a wheel and a source distribution, without any other program."""
    return subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)],
        cwd=tree,
        env={"PATH": "", "HOME": os.environ.get("HOME", "/")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel and the source distribution of this tree."""
    given = os.environ.get("ROTA_TEST_DIST")
    if given:
        return Path(given)
    folder = tmp_path_factory.mktemp("dist")
    built = build(ROOT, folder)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="session")
def clean_environment() -> dict[str, str]:
    """The environment without settings of Rota, of Python, or of another server."""
    dropped = ("ROTA_", "REDIS_", "PYTHON", "VIRTUAL_ENV", "OTEL_", "TRACE_", "COVERAGE", "PYTEST")
    return {name: value for name, value in os.environ.items() if not name.startswith(dropped)}


@dataclass(frozen=True)
class Newcomer:
    """Runs programs with the wheel in an environment of its own, and nothing of this tree but the page followers."""

    commands: Path
    environment: dict[str, str]
    install_s: float

    def run(self, words: Sequence[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
        """Runs a command in a folder."""
        return subprocess.run(words, cwd=folder, env=self.environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def newcomer(dist: Path, tmp_path_factory: pytest.TempPathFactory, clean_environment: dict[str, str]) -> Newcomer:
    """Has installed the wheel."""
    (wheel,) = dist.glob("*.whl")
    folder = tmp_path_factory.mktemp("newcomer")
    venv.create(folder / "venv", with_pip=True)
    commands = folder / "venv" / "bin"
    # Without the tree's own package beside it: what is imported is what was installed.
    for name in ("docs", "newcomer"):
        shutil.copytree(ROOT / "tests" / name, folder / "harness" / "tests" / name)
    environment = {**clean_environment, "PYTHONPATH": str(folder / "harness")}
    environment["PATH"] = f"{commands}:{environment['PATH']}"
    started = time.monotonic()
    words = [commands / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", f"{wheel}[cli,server]"]
    done = subprocess.run(words, env=clean_environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Newcomer(commands, environment, time.monotonic() - started)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints what the tests have timed, also when they ran in other processes."""
    timings = [
        f"{name.removeprefix('seconds: ')}: {seconds:.1f} s"
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, seconds in (getattr(report, "user_properties", None) or ())
        if getattr(report, "when", "") == "call" and name.startswith("seconds: ")
    ]
    if timings:
        terminalreporter.section("timings of the newcomer")
        terminalreporter.write_line("\n".join(timings))


@pytest.fixture
def install(tmp_path: Path, clean_environment: dict[str, str]) -> Install:
    """Installs into an environment of its own."""

    def create(requirement: str) -> Path:
        venv.create(tmp_path / "venv", with_pip=True)
        commands = tmp_path / "venv" / "bin"
        words = [str(commands / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", requirement]
        done = subprocess.run(words, env=clean_environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return commands

    return create
