"""Builds the documentation site: `python -m docs.build_site [folder]`, by default into build/site.

The folder has one folder for each version, `versions.json` in the format of mike, from which the theme fills its
version selector, and an `index.html` that leads to the latest version. Building again replaces one version and keeps
the others, so a published folder is extended by building into a copy of it. Nothing is loaded from the network.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Final

from docs.llms import llms_text
from docs.site_pages import ROOT, write_pages

BUILD: Final = ROOT / "build"
PAGES: Final = BUILD / "site-pages"
OUTPUT: Final = BUILD / "site-output"
#: What the theme would load from another host, and the copy that the site has.
REMOTE_SCRIPT: Final = "https://unpkg.com/iframe-worker/shim"
LOCAL_SCRIPT: Final = "javascripts/iframe-worker.js"
_REDIRECT: Final = """<!doctype html>
<meta charset="utf-8">
<title>Rota</title>
<meta http-equiv="refresh" content="0; url={version}/index.html">
<a href="{version}/index.html">Documentation of Rota {version}</a>
"""


def site_version() -> str:
    """Returns major and minor version: patches share their documentation."""
    return ".".join(version("rota").split(".")[:2])


def build(folder: Path) -> Path:
    """Builds this version into the folder and returns where it is."""
    write_pages(PAGES)
    shutil.rmtree(OUTPUT, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "zensical", "build", "--clean", "--strict"], cwd=ROOT, check=True)
    use_local_script(OUTPUT)
    (OUTPUT / "llms.txt").write_text(llms_text(), encoding="utf-8")
    return publish(OUTPUT, folder, site_version())


def use_local_script(output: Path) -> None:
    """Replaces the theme's one script of another host, so that pages work and are searched without a network."""
    for page in output.rglob("*.html"):
        local = os.path.relpath(output / LOCAL_SCRIPT, page.parent)
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(REMOTE_SCRIPT, local), encoding="utf-8")


def publish(output: Path, folder: Path, name: str) -> Path:
    """Moves a built site to its place among the other versions. Returns that place."""
    target = folder / name
    shutil.rmtree(target, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.move(output, target)
    versions = sorted((path.parent.name for path in folder.glob("*/index.html")), key=_number, reverse=True)
    listed = [
        {"version": each, "title": each, "aliases": ["latest"] if each == versions[0] else []} for each in versions
    ]
    (folder / "versions.json").write_text(json.dumps(listed, indent=2) + "\n", encoding="utf-8")
    (folder / "index.html").write_text(_REDIRECT.format(version=versions[0]), encoding="utf-8")
    return target


def _number(name: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else -1 for part in name.split("."))


def main(arguments: list[str]) -> int:
    """Builds the site and prints its first page."""
    folder = Path(arguments[0]) if arguments else BUILD / "site"
    print(f"built: {build(folder.resolve()) / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
