"""The scripts of the first boot, run below an empty folder: they install, configure and start real programs.

Only what belongs to a machine in AWS is replaced: apt-get, aws, the metadata service and systemd. The stand-in for
systemd starts what the unit says, with its environment.
"""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import psutil
import pytest
import redis

from rota import Rota
from tests.eventually import eventually
from tests.servers import OwnServers

ROOT: Final = Path(__file__).parents[2]
STARTUP: Final = ROOT / "deploy" / "pulumi" / "startup"

#: Reads a unit, or for Debian's units of Valkey their configuration, and starts the program.
SYSTEMCTL: Final = """
import os, pathlib, re, shlex, subprocess, sys
root = os.environ["ROOT"]
if sys.argv[1] not in ("enable", "restart") or (sys.argv[1] == "enable" and "--now" not in sys.argv):
    sys.exit()
name = sys.argv[-1]
if name.startswith("valkey-"):
    mode = name.removeprefix("valkey-").removesuffix(".service")
    config = {"server": "valkey.conf", "sentinel": "sentinel.conf"}[mode]
    words = [os.environ["VALKEY"], f"{root}/etc/valkey/{config}", *(["--sentinel"] if mode == "sentinel" else [])]
    environment, folder = {}, root
else:
    unit = dict(re.findall(r"^(\\w+)=(.*)$", pathlib.Path(f"{root}/etc/systemd/system/{name}").read_text(), re.M))
    text = pathlib.Path(root + unit["EnvironmentFile"]).read_text()
    environment = dict(line.split("=", 1) for line in text.split())
    words = [re.sub(r"\\$\\{(\\w+)\\}", lambda m: environment[m[1]], word) for word in shlex.split(unit["ExecStart"])]
    words[0], folder = root + words[0], root + unit["WorkingDirectory"]
log = open(f"{root}/{name}.log", "wb")
environment = os.environ | environment
started = subprocess.Popen(words, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True)
with open(f"{root}/pids", "a") as pids:
    pids.write(f"{started.pid}\\n")
"""


class Machine:
    """A folder in the place of a machine's disk."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._commands = root / "commands"
        self._commands.mkdir(parents=True)
        for name in ("apt-get", "useradd", "chown"):
            self.command(name, "exit 0")
        self.command("curl", 'case "$*" in *token*PUT*|*PUT*) echo session;; *) echo i-0abcd1234;; esac')
        (root / "systemctl.py").write_text(SYSTEMCTL)
        self.command("systemctl", f'exec {shlex.quote(sys.executable)} {shlex.quote(str(root / "systemctl.py"))} "$@"')

    def command(self, name: str, body: str) -> None:
        """Puts a command before the machine's own."""
        file = self._commands / name
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)

    def boot(self, script: str, environment: dict[str, str], **variables: str) -> None:
        """Runs a script as cloud-init does."""
        values = "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items())
        done = subprocess.run(
            ["bash"],
            input=values + (STARTUP / f"{script}.sh").read_text(encoding="utf-8"),
            env={"PATH": f"{self._commands}:{os.environ['PATH']}", "ROOT": str(self.root)} | environment,
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
            timeout=150,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def log(self, unit: str) -> str:
        """What the program printed."""
        return (self.root / f"{unit}.service.log").read_text()

    def shut_down(self) -> None:
        """Ends what the units started."""
        file = self.root / "pids"
        for pid in map(int, file.read_text().split() if file.exists() else ()):
            if psutil.pid_exists(pid):
                os.killpg(pid, signal.SIGKILL)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Callable[[], Machine]]:
    """Creates machines, and shuts them down at the end of the test."""
    machines: list[Machine] = []

    def create() -> Machine:
        machines.append(Machine(tmp_path / f"machine-{len(machines)}"))
        return machines[-1]

    yield create
    for each in machines:
        each.shut_down()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True)
    return next(folder.glob("*.whl"))


@pytest.mark.requirement("S2-32")
async def test_a_new_machine_runs_a_worker(machine: Callable[[], Machine], own_server: OwnServers, wheel: Path) -> None:
    server = own_server()
    new = machine()
    new.command("aws", f"echo {shlex.quote(server.url)}")
    new.command("python3", f'exec {shlex.quote(sys.executable)} "$@"')  # the packages below are for this version
    # What the wheel depends on is taken from this environment, so that nothing is downloaded.
    packages = {"PYTHONPATH": f"{sysconfig.get_path('purelib')}:{ROOT}", "PIP_NO_DEPS": "1", "PIP_FORCE_REINSTALL": "1"}
    service = (ROOT / "deploy" / "systemd" / "rota-worker.service").read_text(encoding="utf-8")

    new.boot(
        "rota",
        packages,
        UNIT="worker",
        PACKAGE=str(wheel),
        APP="examples.quickstart:rota",
        REGION="eu-central-1",
        URL_PARAMETER="/rota/url",
        EXTRA_ENVIRONMENT="PYTHONDONTWRITEBYTECODE=1",
        SERVICE=service.replace("--metrics-port 9400", "--metrics-port 0").replace("0.0.0.0", "127.0.0.1"),
    )

    async with Rota(server.url) as rota:

        @rota.task
        def greet(name: str) -> str:
            raise NotImplementedError("the worker has this task as well")

        job = await greet.enqueue("world")
        assert await job.result(timeout=60) == "Hello, world!"
    settings = new.root / "etc" / "rota" / "rota.env"
    assert settings.stat().st_mode & 0o077 == 0, "it contains the password"
    assert "ROTA_MACHINE=i-0abcd1234" in settings.read_text()


async def test_new_machines_form_a_replicated_pair(machine: Callable[[], Machine], own_server: OwnServers) -> None:
    valkey = str(own_server().binary)
    # Any address of the loopback network is this machine.
    network = f"127.{random.randint(1, 254)}.{random.randint(1, 254)}"
    primary, replica = f"{network}.1", f"{network}.2"
    for address in (primary, replica):
        new = machine()
        new.command("aws", "echo secret")
        new.boot(
            "valkey",
            {"VALKEY": valkey},
            PRIMARY=primary,
            ADDRESS=address,
            REGION="eu-central-1",
            PASSWORD_PARAMETER="/rota/valkey-password",
            UNITS="valkey-server valkey-sentinel",
        )

    def is_replicated() -> bool:
        try:
            with redis.Redis(replica, password="secret") as client:
                return client.info("replication").get("master_link_status") == "up"
        except redis.ConnectionError:
            return False

    def knows_the_other_sentinel() -> bool:
        try:
            with redis.Redis(replica, port=26379) as client:
                state: Any = client.sentinel_master("rota")
                return state["num-other-sentinels"] == 1
        except redis.ConnectionError:
            return False

    await eventually(is_replicated, timeout=60)
    await eventually(knows_the_other_sentinel, timeout=60)


def test_scripts_are_valid_and_stop_at_the_first_error() -> None:
    scripts = sorted(STARTUP.glob("*.sh"))

    assert len(scripts) == 3
    for script in scripts:
        assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0
        assert "set -euo pipefail" in script.read_text(encoding="utf-8")


def start_valkey(machine: Machine, address: str, **passwords: str) -> subprocess.Popen[bytes]:
    """Runs the script of the container."""
    folders = {"ACL_FOLDER": str(ROOT / "deploy" / "acl"), "ACL_FILE": str(machine.root / "users.acl")}
    return subprocess.Popen(
        ["sh", str(ROOT / "deploy" / "valkey" / "start.sh"), "--bind", address, "--dir", str(machine.root)],
        env={"PATH": f"{machine.root / 'commands'}:{os.environ['PATH']}"} | folders | passwords,
        stdout=subprocess.DEVNULL,
    )


async def test_valkey_starts_with_a_user_for_each_role(machine: Callable[[], Machine], own_server: OwnServers) -> None:
    """The script of the compose file: roles with a password can log in, others and the default user cannot."""
    new, address = machine(), f"127.{random.randint(1, 254)}.{random.randint(1, 254)}.1"
    new.command("valkey-server", f'exec {own_server().binary} "$@"')
    started = start_valkey(new, address, ROTA_WORKER_PASSWORD="work", ROTA_READ_ONLY_PASSWORD="read")

    def answers(user: str, password: str) -> bool:
        with redis.Redis(address, username=user, password=password) as client:
            return bool(client.ping())

    def worker_answers() -> bool:
        try:
            return answers("rota-worker", "work")
        except redis.ConnectionError:
            return False

    try:
        await eventually(worker_answers, timeout=60)
        assert answers("rota-read-only", "read")
        for user in ("default", "rota-admin"):
            with pytest.raises(redis.AuthenticationError):
                answers(user, "work")
    finally:
        started.kill()
        started.wait()
