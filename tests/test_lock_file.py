"""requirements-dev.lock has an exact version and hashes for every dependency that pyproject.toml declares."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.lock_dependencies import LOCK, PYTHONS, ROOT, render

PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())
ENTRIES: Final = LOCK.read_text().replace("\\\n", "").splitlines()[1:]


def declared() -> Iterator[Requirement]:
    """Every dependency of the package, of its extras, of the group `dev` and of the build."""
    texts: list[str] = [*PROJECT["build-system"]["requires"], *PROJECT["project"]["dependencies"]]
    for extra in PROJECT["project"]["optional-dependencies"].values():
        texts += extra
    texts += PROJECT["dependency-groups"]["dev"]
    requirements = [Requirement(text) for text in texts]
    return (one for one in requirements if one.name != "rota")


def locked(python: str) -> dict[str, str]:
    """Name -> version of what is installed for a Python on Linux."""
    environment = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
    parsed = [Requirement(entry.partition(" --hash")[0]) for entry in ENTRIES]
    needed = [one for one in parsed if one.marker is None or one.marker.evaluate(environment)]
    assert len({one.name for one in needed}) == len(needed), "a package has two versions"
    return {one.name: str(one.specifier).removeprefix("==") for one in needed}


@pytest.mark.parametrize("python", PYTHONS)
def test_every_declared_dependency_is_locked_within_its_bounds(python: str) -> None:
    versions = locked(python)
    environment = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}

    for one in declared():
        if one.marker is None or one.marker.evaluate(environment):
            assert canonicalize_name(one.name) in versions, f"{one.name} is not locked: run `make lock`"
            version = versions[canonicalize_name(one.name)]
            assert one.specifier.contains(version, prereleases=True), f"{version} is not {one}: run `make lock`"


def test_every_supported_python_is_locked() -> None:
    assert PROJECT["project"]["requires-python"] == f">={PYTHONS[0]}"


def test_every_entry_has_a_version_and_hashes_and_no_address() -> None:
    assert len(ENTRIES) > 100
    for entry in ENTRIES:
        assert re.fullmatch(r"[a-z0-9-]+==[^ ]+( ; python_version[^-]+)?\s*( +--hash=sha256:[0-9a-f]{64})+", entry), (
            entry
        )
    assert "/" not in "".join(ENTRIES)


def test_setup_installs_nothing_but_locked_versions() -> None:
    makefile = Path(ROOT, "Makefile").read_text()
    setup = makefile.partition("$(STAMP): ")[2].partition("\n\n")[0]
    installs = re.findall(r"pip install (.*)", setup)

    assert setup.splitlines()[0] == "pyproject.toml requirements-dev.lock"
    assert len(installs) == 2
    assert all("--no-deps" in one for one in installs)
    assert "--require-hashes -r requirements-dev.lock" in installs[0]
    assert "--no-build-isolation" in installs[1]


def test_an_entry_that_not_every_python_needs_has_a_marker() -> None:
    text = render({("a", "1"): (set(PYTHONS), {"0" * 64}), ("b", "2"): ({"3.12", "3.11"}, {"1" * 64})})

    assert f"a==1 \\\n    --hash=sha256:{'0' * 64}\n" in text
    assert 'b==2 ; python_version == "3.11" or python_version == "3.12" \\\n' in text
