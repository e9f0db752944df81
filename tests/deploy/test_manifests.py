"""Files for compose, Kubernetes and systemd, checked as far as possible without an engine: schemas and references."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import pytest
import yaml
from click.testing import CliRunner

from examples import emails
from rota.autoscaler.keda.trigger_metadata import read_metadata
from rota.cli.main import command
from rota.core.lease_heartbeat_poll_and_grace_durations import GRACE_MS

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
KUBERNETES: Final = DEPLOY / "kubernetes"
UNITS: Final = sorted((DEPLOY / "systemd").glob("*.service"))


def load(path: Path) -> list[dict[str, Any]]:
    """The documents of a YAML file."""
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


KUSTOMIZATION: Final = load(KUBERNETES / "kustomization.yaml")[0]
OBJECTS: Final = [each for name in KUSTOMIZATION["resources"] for each in load(KUBERNETES / name)]
#: An option of the kustomization: KEDA sets the number of workers.
KEDA: Final = KUBERNETES / "keda"
KEDA_OBJECTS: Final = [each for name in load(KEDA / "kustomization.yaml")[0]["resources"] for each in load(KEDA / name)]
COMPOSE: Final = load(DEPLOY / "compose.yaml")[0]


def container(name: str) -> dict[str, Any]:
    """The container of that name."""
    objects = [each for each in (*OBJECTS, *KEDA_OBJECTS) if each["kind"] in ("Deployment", "StatefulSet")]
    pods = [each["spec"]["template"]["spec"] for each in objects]
    return next(each for pod in pods for each in pod["containers"] if each["name"] == name)


def commands() -> dict[str, list[str]]:
    """Each command line of Rota in these files: where it is written -> its words after `rota`."""
    services = {name: service for name, service in COMPOSE["services"].items() if service["image"] == "rota"}
    found = {f"compose {name}": service["command"] for name, service in services.items() if "command" in service}
    found |= {
        f"kubernetes {name}": container(name)["args"] for name in ("server", "worker", "autoscaler", "keda-scaler")
    }
    for unit in UNITS:
        (line,) = re.findall(r"^ExecStart=\S+/rota (.*)$", unit.read_text(encoding="utf-8"), re.MULTILINE)
        found[unit.name] = line.split()
    return found


#: KEDA's own kind has no schema in Kubernetes.
BUILT_IN: Final = [each for each in (*OBJECTS, *KEDA_OBJECTS) if each["kind"] != "ScaledObject"]


@pytest.mark.parametrize("each", BUILT_IN, ids=lambda each: f"{each['kind']}-{each['metadata']['name']}")
def test_kubernetes_objects_match_their_schema(each: dict[str, Any]) -> None:
    kubernetes_validate.validate(each, kubernetes_validate.latest_version(), strict=True)


def test_every_kubernetes_file_is_a_resource_of_the_kustomization() -> None:
    files = {file.name for file in KUBERNETES.glob("*.yaml")} - {"kustomization.yaml"}

    assert set(KUSTOMIZATION["resources"]) == files


def test_the_scaled_object_is_one_that_the_scaler_accepts() -> None:
    (scaled,) = [each for each in KEDA_OBJECTS if each["kind"] == "ScaledObject"]
    (trigger,) = scaled["spec"]["triggers"]
    (service,) = [each for each in KEDA_OBJECTS if each["kind"] == "Service"]
    host, _, port = trigger["metadata"]["scalerAddress"].partition(":")

    assert scaled["apiVersion"] == "keda.sh/v1alpha1"
    assert scaled["spec"]["scaleTargetRef"] == {"name": container("worker")["name"]}
    assert trigger["type"] == "external-push"
    served = read_metadata(trigger["metadata"])
    assert set(served.queues) == {task.queue for task in emails.rota.tasks}, "the queues of ROTA_APP"
    assert served.policy.worker_slots == 10
    assert "--concurrency=10" in container("worker")["args"]
    assert host == f"{service['metadata']['name']}.{KUSTOMIZATION['namespace']}.svc.cluster.local"
    assert int(port) == service["spec"]["ports"][0]["port"] == container("keda-scaler")["ports"][0]["containerPort"]


def test_keda_replaces_the_autoscaler() -> None:
    (patch,) = load(KEDA / "kustomization.yaml")[0]["patches"]
    removed = yaml.safe_load(patch["patch"])

    assert removed["$patch"] == "delete"
    names = [each["metadata"]["name"] for each in OBJECTS if each["kind"] == removed["kind"]]
    assert removed["metadata"]["name"] in names


@pytest.mark.parametrize("name", ["server", "worker"])
def test_probes_ask_a_port_that_the_container_serves(name: str) -> None:
    ports = {port["name"] for port in container(name)["ports"]}

    for probe in ("readinessProbe", "livenessProbe"):
        assert container(name)[probe]["httpGet"]["port"] in ports


def test_a_worker_has_time_to_stop() -> None:
    (worker,) = [each for each in OBJECTS if each["kind"] == "Deployment" and each["metadata"]["name"] == "worker"]

    assert worker["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] >= 37
    assert "replicas" not in worker["spec"], "the autoscaler sets it"


def test_compose_file_matches_its_schema() -> None:
    checker = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*checker, str(DEPLOY / "compose.yaml")], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_accepts_its_configuration(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not on the PATH: Debian's package `prometheus` has it")
    for file in (DEPLOY / "prometheus").glob("*.yml"):
        copy = tmp_path / file.name
        token = tmp_path / "token"
        token.touch()
        text = file.read_text(encoding="utf-8").replace("/etc/prometheus/rota-token", str(token))
        copy.write_text(text.replace("rules/", f"{DEPLOY}/prometheus/rules/"), encoding="utf-8")
        done = subprocess.run([promtool, "check", "config", str(copy)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_files_that_compose_mounts_exist() -> None:
    sources = [
        volume.split(":")[0] for service in COMPOSE["services"].values() for volume in service.get("volumes", ())
    ]

    missing = [each for each in sources if each.startswith("./") and not (DEPLOY / each).exists()]
    assert missing == []


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_accepts_the_unit(unit: Path, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not on the PATH: Debian's package `systemd` has it")
    copy = tmp_path / unit.name
    # The program is not installed where the unit expects it.
    copy.write_text(unit.read_text(encoding="utf-8").replace("/opt/rota/.venv/bin/rota", "/bin/true"), encoding="utf-8")

    done = subprocess.run([analyze, "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False)

    ours = [line for line in done.stderr.splitlines() if unit.stem in line]
    assert ours == [], done.stderr


def test_local_workers_end_with_their_autoscaler_under_systemd_as_the_page_says() -> None:
    unit = dict(re.findall(r"^(\w+)=(.*)$", (DEPLOY / "systemd" / "rota-autoscale.service").read_text(), re.MULTILINE))
    page = (DEPLOY.parent / "docs" / "howto" / "autoscale.md").read_text(encoding="utf-8")

    assert unit["KillMode"] == "mixed"
    assert "has `KillMode=mixed`, which kills what an autoscaler that crashed has left" in " ".join(page.split())
    assert int(unit["TimeoutStopSec"]) > GRACE_MS / 1000, "workers may finish their jobs"


@pytest.mark.parametrize(("where", "words"), commands().items())
def test_the_command_line_exists(where: str, words: list[str]) -> None:
    """Each option that is used is one that the command has."""
    shown = CliRunner().invoke(command, [words[0], "--help"]).output

    for word in words[1:]:
        if word.startswith("--"):
            assert f"{word.partition('=')[0]} " in shown, f"{where}: {word}"
