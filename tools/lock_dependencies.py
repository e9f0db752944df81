"""Writes requirements-dev.lock: exact versions and hashes of everything that `make setup` installs.

    python -m tools.lock_dependencies       # or `make lock`

pip resolves the package with the extra `all` and the group `dev` for each supported Python, the oldest first; the
others take the same versions where they can. The hashes are those of all files of a release, so that other platforms
can use the file too. It contains no address: pip installs from the index that it is configured with.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename

ROOT: Final = Path(__file__).resolve().parent.parent
LOCK: Final = ROOT / "requirements-dev.lock"
PYTHONS: Final = ("3.11", "3.12", "3.13")
HEADER: Final = "# Exact versions of the development environment. Written by `make lock`; see CONTRIBUTING.md.\n"
#: Time to read one page of an index.
PAGE_S: Final = 60


def resolve(python: str, known: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Returns version and hash of every package for a Python, with the `known` versions where these are needed."""
    interpreter = shutil.which(f"python{python}")
    if interpreter is None:
        sys.exit(f"python{python} is not on the PATH: install it, all supported versions are locked together")
    with tempfile.TemporaryDirectory() as directory:
        report, constraints = Path(directory, "report.json"), Path(directory, "constraints.txt")
        constraints.write_text("".join(f"{name}=={version}\n" for name, version in known.items()))
        pip = [sys.executable, "-m", "pip", "--python", interpreter, "install", "--quiet"]
        dry = ["--dry-run", "--ignore-installed", "--report", str(report), "--constraint", str(constraints)]
        subprocess.run([*pip, *dry, "--editable", ".[all]", "--group", "dev"], cwd=ROOT, check=True)
        installed = json.loads(report.read_text())["install"]
    return {
        _normal(one["metadata"]["name"]): (one["metadata"]["version"], one["download_info"]["archive_info"]["hash"])
        for one in installed
        if "dir_info" not in one["download_info"]
    }


class _Links(HTMLParser):
    """Collects the files of an index page with their SHA-256."""

    def __init__(self) -> None:
        super().__init__()
        self.hashes: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Reads one link."""
        link = urlsplit(dict(attrs).get("href") or "")
        if tag == "a" and link.fragment.startswith("sha256="):
            self.hashes[unquote(link.path).rpartition("/")[2]] = link.fragment.removeprefix("sha256=")


def release_hashes(index: str, name: str, version: str) -> set[str]:
    """Returns the hashes of all files of a release in an index."""
    links = _Links()
    with urlopen(Request(f"{index.rstrip('/')}/{name}/", headers={"Accept": "text/html"}), timeout=PAGE_S) as page:
        links.feed(page.read().decode())
    return {digest for file, digest in links.hashes.items() if _version_of(file) == version}


def render(releases: dict[tuple[str, str], tuple[set[str], set[str]]]) -> str:
    """Returns the lock file: (name, version) -> the Pythons that need it, and its hashes."""
    lines = [HEADER]
    for (name, version), (pythons, hashes) in sorted(releases.items()):
        needed = " or ".join(f'python_version == "{one}"' for one in sorted(pythons))
        marker = "" if pythons == set(PYTHONS) else f" ; {needed}"
        parts = [f"{name}=={version}{marker}", *(f"--hash=sha256:{one}" for one in sorted(hashes))]
        lines.append(" \\\n    ".join(parts) + "\n")
    return "".join(lines)


def main() -> None:
    """Resolves, reads the hashes and writes the file."""
    releases: defaultdict[tuple[str, str], tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    known: dict[str, str] = {}
    for python in PYTHONS:
        for name, (version, digest) in resolve(python, known).items():
            pythons, hashes = releases[name, version]
            pythons.add(python)
            hashes.add(digest.removeprefix("sha256="))
            known.setdefault(name, version)
    # The effective options of pip, its default index included.
    options: Any = import_module("pip._internal.commands").create_command("download").parse_args([])[0]
    for (name, version), (_, hashes) in releases.items():
        hashes |= release_hashes(options.index_url, name, version)
    LOCK.write_text(render(releases))
    sys.stdout.write(f"{LOCK.name}: {len(releases)} packages\n")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _version_of(file: str) -> str | None:
    try:
        return str((parse_wheel_filename(file) if file.endswith(".whl") else parse_sdist_filename(file))[1])
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None  # an installer of another kind, which pip does not use


if __name__ == "__main__":
    main()
