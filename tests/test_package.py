"""What is installed: the package carries its dashboard, or is not built at all."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest

ROOT: Final = Path(__file__).parents[1]
STATIC: Final = Path("src", "rota", "server", "static")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree without the sources of the dashboard, as of a source distribution."""
    for name in ("pyproject.toml", "README.md", "LICENSE", "hatch_build.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "static"))
    return tmp_path


def build(tree: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel"],
        cwd=tree, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_wheel_carries_the_built_dashboard_and_not_its_sources(tree: Path) -> None:
    shutil.copytree(ROOT / STATIC, tree / STATIC)

    built = build(tree)

    assert built.returncode == 0, built.stderr
    (wheel,) = (tree / "dist").glob("*.whl")
    with ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "rota/server/static/index.html" in names
    assert [name for name in names if name.startswith("rota/server/static/assets/") and name.endswith(".js")]
    assert [name for name in names if name.endswith((".ts", ".tsx")) or "node_modules" in name] == []
    assert "rota/store/lua/claim.lua" in names
    assert "rota/py.typed" in names


def test_a_wheel_without_the_dashboard_is_not_built(tree: Path) -> None:
    built = build(tree)

    assert built.returncode != 0
    assert "a package without its dashboard is not built" in built.stderr
    assert not list(tree.glob("dist/*.whl"))
