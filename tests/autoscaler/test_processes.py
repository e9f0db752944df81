"""`rota autoscale` as a process, with the providers local and exec."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rota import ConfigurationError, Rota
from rota.autoscaler.machine_provider import ProviderError, ProviderSettings, ProviderThrottled
from rota.autoscaler.providers import create_provider
from rota.autoscaler.providers.exec import ExecProvider
from rota.autoscaler.providers.local import LocalProvider
from tests.eventually import eventually
from tests.servers import Server
from tests.worker.harness import ROOT, is_running

QUICK = ("--interval", "1", "--cooldown", "1", "--boot", "1", "--target-wait", "5", "--max", "2")


@pytest.fixture
def environment(valkey: Server, namespace: str, tmp_path: Path) -> dict[str, str]:
    """That of the autoscaler and its workers."""
    return {
        **os.environ,
        "ROTA_URL": valkey.url,
        "ROTA_TEST_NAMESPACE": namespace,
        "ROTA_TEST_FOLDER": str(tmp_path),
        "XDG_RUNTIME_DIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
    }


@pytest.fixture
def started(environment: dict[str, str], tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Autoscalers of the test; killed at its end, with the workers that they left."""
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()
    for file in tmp_path.glob("rota-autoscale-*/*/local-*"):
        if is_running(int(file.read_text())):
            os.kill(int(file.read_text()), signal.SIGKILL)


def autoscale(environment: dict[str, str], log: Path, *options: str) -> subprocess.Popen[bytes]:
    """Starts an autoscaler."""
    words = [sys.executable, "-m", "rota.cli.main", "autoscale", "tests.autoscaler.app:rota", *QUICK, *options]
    with log.open("wb") as file:
        return subprocess.Popen(
            words, env=environment, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )


@pytest.mark.requirement("S2-24")
async def test_the_first_job_starts_a_worker_that_leaves_when_it_is_idle(
    environment: dict[str, str],
    started: list[subprocess.Popen[bytes]],
    tmp_path: Path,
    valkey: Server,
    namespace: str,
) -> None:
    log = tmp_path / "autoscaler.log"
    # With this interval, only a push can be the reason for a launch soon after the job.
    first = autoscale(environment, log, "--interval", "3600")
    started.append(first)
    await eventually(lambda: log.read_text().count("Queue Length: 0") >= 2, 60)
    client = Rota(valkey.url, namespace=namespace)
    nap = client.task(name="nap")(_nap)
    job = await nap.enqueue(0.1)
    await job.result(timeout=120)
    assert "Launched instances: local-" in log.read_text()

    first.kill()
    first.wait()
    assert any(one.status == "ALIVE" for one in await client.workers()), "the worker outlives its autoscaler"
    second_log = tmp_path / "second.log"
    second = autoscale(environment, second_log)
    started.append(second)
    await eventually(lambda: "Scaling down by 1 instance..." in second_log.read_text(), 120)

    async def has_drained() -> bool:
        return all(one.info.get("was_drained") for one in await client.workers())

    await eventually(has_drained, 60)
    assert "Launched" not in second_log.read_text(), "it has adopted the worker"
    second.terminate()
    await eventually(lambda: second.poll() == 0, 60)
    await client.close()


def test_one_round_of_a_dry_run_changes_nothing(environment: dict[str, str], namespace: str, tmp_path: Path) -> None:
    config = tmp_path / "rota.toml"
    config.write_text(
        f'[autoscale]\npolicy = "thresholds"\ndry-run = true\n[autoscale.exec]\nscript = "{tmp_path}/x"\n'
    )
    (tmp_path / "x").write_text("#!/bin/sh\ntest $1 = list && echo m-1 running\n")
    (tmp_path / "x").chmod(0o755)
    words = ["autoscale", "--once", "--config", str(config), "--provider", "exec", "--namespace", namespace]
    process = subprocess.run(
        [sys.executable, "-m", "rota.cli.main", *words], env=environment, cwd=ROOT, capture_output=True, text=True
    )

    assert process.returncode == 0, process.stderr
    assert "Queue Length: 0 (High Priority: 0, Normal: 0)" in process.stderr
    assert "makes a dry run" in process.stderr


def test_a_wrong_option_of_the_file_is_refused(environment: dict[str, str], tmp_path: Path) -> None:
    config = tmp_path / "rota.toml"
    config.write_text("[autoscale]\nmaximum = 3\n")
    words = [sys.executable, "-m", "rota.cli.main", "autoscale", "--once", "--config", str(config)]
    process = subprocess.run(words, env=environment, cwd=ROOT, capture_output=True, text=True)

    assert process.returncode == 2
    assert "maximum" in process.stderr


async def _nap(seconds: float) -> None:
    """As the workers' program declares it."""


# --- providers -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S2-28")
def test_a_provider_without_its_settings_says_which() -> None:
    settings = ProviderSettings(namespace="rota", address="x")
    for name, missing in (("exec", "--exec"), ("ec2", "AWS_REGION"), ("asg", "AWS_REGION"), ("local", "module:rota")):
        with pytest.raises(ConfigurationError, match=missing):
            create_provider(name, settings)


async def test_local_processes_are_found_again_and_started_once_per_token(tmp_path: Path) -> None:
    provider = LocalProvider(["sleep", "60"], tmp_path)
    first = await provider.launch(2, "a")
    assert await provider.launch(2, "a") == first

    await eventually(lambda: len(list(tmp_path.glob("local-a-[01]"))) == 2)
    again = LocalProvider(["sleep", "60"], tmp_path)
    assert [machine.id for machine in await again.machines()] == first
    assert await again.launch(2, "a") == first

    await again.terminate(first[0])
    await again.terminate("local-unknown-0")

    async def is_gone() -> bool:
        return [machine.id for machine in await provider.machines()] == first[1:]

    await eventually(is_gone)
    await provider.close()
    assert await again.machines() == []


async def test_a_process_id_that_another_process_has_now_is_no_machine(tmp_path: Path) -> None:
    (tmp_path / "local-a-0").write_text(str(os.getpid()))
    provider = LocalProvider(["sleep", "60"], tmp_path)

    await provider.terminate("local-a-0")

    assert await provider.machines() == []


SCRIPT = """#!/bin/sh
case $1 in
  list) cat "$0.list" ;;
  launch) echo "$3-1" ;;
  terminate) test "$2" != stuck || { echo "it is stuck" >&2; exit 3; } ;;
esac
"""


async def test_a_script_lists_launches_and_terminates(tmp_path: Path) -> None:
    script = tmp_path / "provider.sh"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    (tmp_path / "provider.sh.list").write_text("m-1 running\nm-2 pending\n\nm-3\n")
    provider = ExecProvider(str(script))

    assert [(one.id, one.state) for one in await provider.machines()] == [
        ("m-1", "running"),
        ("m-2", "pending"),
        ("m-3", "running"),
    ]
    assert await provider.launch(1, "token") == ["token-1"]
    await provider.terminate("m-1")
    with pytest.raises(ProviderError, match="code 3: it is stuck"):
        await provider.terminate("stuck")
    (tmp_path / "provider.sh.list").write_text("m-1 odd\n")
    with pytest.raises(ProviderError, match="odd"):
        await provider.machines()
    script.write_text("#!/bin/sh\nexit 75\n")
    with pytest.raises(ProviderThrottled):
        await provider.machines()
    script.write_text("#!/bin/sh\nsleep 60\n")
    with pytest.raises(ProviderError, match="did not end within"):
        await ExecProvider(str(script), timeout_s=0.05).machines()
    with pytest.raises(ProviderError, match="cannot be started"):
        await ExecProvider(str(tmp_path / "absent")).machines()
