"""What a newcomer installs: distributions that contain the dashboard, and a clone that works without Node."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from zipfile import ZipFile

import httpx2 as httpx
import pytest

from tests.newcomer.conftest import ROOT, Install, Newcomer, build

pytestmark = pytest.mark.timeout(600)
STATIC = Path("src", "rota", "server", "static")


def names_of_wheel(wheel: Path) -> set[str]:
    with ZipFile(wheel) as archive:
        return set(archive.namelist())


def copy_clone(folder: Path) -> Path:
    """Copies the files that a clone has: those that are not built."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    assert listed.returncode == 0, listed.stderr
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file() and not name.startswith(("web/", "docs/", "tests/", "benchmarks/")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.mark.skipif(not (ROOT / STATIC / "index.html").is_file(), reason="the dashboard is not built: run `make web`")
def test_both_distributions_contain_the_dashboard_and_the_same_package(dist: Path, tmp_path: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    (source,) = dist.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        listed = archive.getnames()
    # Before Python 3.11.4, `extractall` has no filters.
    subprocess.run(["tar", "-xzf", source, "-C", tmp_path], check=True, timeout=60)
    (unpacked,) = tmp_path.iterdir()
    built = build(unpacked, tmp_path / "again")

    assert built.returncode == 0, built.stderr
    names = names_of_wheel(wheel)
    assert {"rota/server/static/index.html", "rota/store/lua/job/claim.lua", "rota/py.typed"} <= names
    assert [name for name in names if name.startswith("rota/server/static/assets/") and name.endswith(".js")]
    assert [name for name in names if name.endswith((".ts", ".tsx"))] == []
    assert [name for name in listed if name.endswith(".png") or "node_modules" in name] == []
    assert names_of_wheel(next((tmp_path / "again").glob("*.whl"))) == names


def test_a_clone_without_node_says_what_to_install_and_its_server_explains_how_to_get_the_dashboard(
    tmp_path: Path, install: Install, clean_environment: dict[str, str]
) -> None:
    clone = copy_clone(tmp_path / "a clone")
    commands = install(str(clone))

    imported = run([commands / "python", "-c", "import rota.otel"], tmp_path, clean_environment)
    refused = run([commands / "rota", "server"], tmp_path, clean_environment)
    hint = f"pip install '{clone}[server]'"
    followed = run([commands / "python", "-m", *shlex.split(hint)], tmp_path, clean_environment)

    assert f"rota.otel requires opentelemetry: pip install '{clone}[otel]'" in imported.stderr
    assert refused.returncode == 6
    assert refused.stderr.endswith(f": {hint}\n")
    assert followed.returncode == 0, followed.stderr
    lines, page = first_page([commands / "rota", "server", "--port", "0"], tmp_path, clean_environment)
    assert "make web" in lines
    assert page.status_code == 503
    assert "<code>make web</code>" in page.text


def run(words: Sequence[str | Path], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def first_page(words: Sequence[str | Path], folder: Path, environment: dict[str, str]) -> tuple[str, httpx.Response]:
    """Starts a server. Returns what it prints, and the answer to a request for its first page."""
    with subprocess.Popen(words, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            lines: list[str] = []
            while not (lines and "listening on" in lines[-1]):
                lines.append(server.stderr.readline())
                assert lines[-1], "".join(lines)
            return "".join(lines), httpx.get(lines[-1].split()[-1], trust_env=False)
        finally:
            server.terminate()


FIRST_JOB = """
import asyncio
from rota import Rota
from rota.testing import run_jobs

rota = Rota()

@rota.task
async def add(a: int, b: int) -> int:
    return a + b

async def main() -> None:
    job = await add.enqueue(1, 2)
    await run_jobs(rota)
    print(await job.result(timeout=60))

asyncio.run(main())
"""


def test_the_first_job_runs_without_a_server(
    newcomer: Newcomer, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    started = time.monotonic()

    ended = newcomer.run([newcomer.commands / "python", "-c", FIRST_JOB], tmp_path)

    assert ended.stdout == "3\n", ended.stderr
    record_property("seconds: installation of the wheel", newcomer.install_s)
    record_property("seconds: first job, with the start of the embedded server", time.monotonic() - started)


def test_a_reader_of_the_tutorial_gets_through_it_with_the_wheel(
    newcomer: Newcomer, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    page = ROOT / "docs" / "tutorial.md"
    started = time.monotonic()

    words = [newcomer.commands / "python", "-m", "tests.newcomer.follow_page", page, tmp_path]
    followed = newcomer.run(words, tmp_path)

    assert followed.returncode == 0, f"{followed.stdout}\n{followed.stderr}"
    assert "[\"there is no account 'ann'\"]" in followed.stdout
    record_property("seconds: tutorial", time.monotonic() - started)


@pytest.mark.parametrize("name", ["enqueue-by-name", "large-arguments", "retries", "schedules", "workflows"])
def test_a_reader_of_a_how_to_gets_through_it_with_the_wheel_and_without_a_server(
    newcomer: Newcomer, tmp_path: Path, name: str, record_property: Callable[[str, object], None]
) -> None:
    page = ROOT / "docs" / "howto" / f"{name}.md"
    started = time.monotonic()

    followed = newcomer.run([newcomer.commands / "python", "-m", "tests.docs.run_page", page, tmp_path], tmp_path)

    assert followed.returncode == 0, f"{followed.stdout}\n{followed.stderr}"
    record_property(f"seconds: how-to {name}", time.monotonic() - started)


@pytest.mark.parametrize(("target", "expected"), [("demo", False), ("test", True)])
def test_only_the_tests_install_servers_and_a_browser(target: str, expected: bool) -> None:
    listed = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False)

    assert ("apt-get install" in listed.stdout) is expected, listed.stderr
