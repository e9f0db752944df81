"""The pages of the documentation site, prepared from docs/ for the site generator.

The Markdown of docs/ reads well in a repository browser. For the site, links are resolved anew: a link to a page of the
site leads to that page, and one to source code becomes the path of the file. Diagrams are put into the page, so that
they follow its colours. The lists of decisions and of public names are written
here, because they follow from other files.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import rota

DOCS: Final = Path(__file__).parent
ROOT: Final = DOCS.parent
CONFIG: Final = ROOT / "zensical.toml"
#: Pages of the site that are not in docs/: their path on the site, and where they come from.
PROJECT_PAGES: Final = {
    "project/changelog.md": ROOT / "CHANGELOG.md",
    "project/contributing.md": ROOT / "CONTRIBUTING.md",
    "project/security.md": ROOT / "SECURITY.md",
}
#: Pages that are written here.
DECISIONS_PAGE: Final = "decisions/index.md"
API_PAGE: Final = "reference/api.md"
#: The list of pages for readers of the repository; on the site, the navigation has that role.
NOT_ON_THE_SITE: Final = "README.md"
ASSETS: Final = frozenset({".css", ".js", ".json", ".png", ".svg"})

_FENCED: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_MERMAID: Final = re.compile(r"^```mermaid\n.*?^```$", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(
    r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>(?!https?:|mailto:|#)[^)#\s]+)(?P<anchor>#[^)]*)?\)"
)


def site_files() -> dict[Path, str]:
    """Returns the path on the site of each page, picture, stylesheet and script."""
    pages = {page: page.relative_to(DOCS).as_posix() for page in sorted(DOCS.rglob("*.md"))}
    assets = {file: file.relative_to(DOCS).as_posix() for file in sorted(DOCS.rglob("*")) if file.suffix in ASSETS}
    project = {source: name for name, source in PROJECT_PAGES.items()}
    return {file: name for file, name in (pages | assets | project).items() if name != NOT_ON_THE_SITE}


def page_names() -> set[str]:
    """Returns the path on the site of every page, including those that are written here."""
    return {name for name in site_files().values() if name.endswith(".md")} | {DECISIONS_PAGE, API_PAGE}


def navigation(config: Path = CONFIG) -> list[tuple[str, str]]:
    """Returns title and page of each entry of the navigation, in order."""
    return list(_entries(tomllib.loads(config.read_text(encoding="utf-8"))["project"]["nav"]))


def _entries(nav: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for entry in nav:
        for title, target in entry.items():
            if isinstance(target, str):
                yield title, target
            else:
                yield from _entries(target)


def write_pages(folder: Path) -> None:
    """Writes all files of the site into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    files = site_files()
    for source, name in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            text = source.read_text(encoding="utf-8")
            target.write_text(site_page(text, source, files), encoding="utf-8")
        else:
            shutil.copyfile(source, target)
    (folder / DECISIONS_PAGE).write_text(decisions_page(), encoding="utf-8")
    (folder / API_PAGE).write_text(api_page(), encoding="utf-8")


def site_page(text: str, source: Path, files: Mapping[Path, str]) -> str:
    """Returns the text of a page as the site shows it. Its links are relative to the source."""
    # Mermaid would need a script of 3 MB in the browser; the picture shows the same states.
    text = _MERMAID.sub("![States of a job](../images/job-states.svg)", text)

    def outside_code(part: str) -> str:
        return _LINK.sub(lambda link: _site_link(link, source, files), part)

    kept = _FENCED.findall(text)
    prose = [outside_code(part) for part in _FENCED.split(text)]
    return "".join(part + code for part, code in zip(prose, [*kept, ""], strict=True))


def _site_link(link: re.Match[str], source: Path, files: Mapping[Path, str]) -> str:
    path = Path(os.path.normpath(source.parent / link["target"]))
    if link["image"] and path.suffix == ".svg" and path.parent == DOCS / "images":
        return _inline_diagram(path, link["text"])
    if path == DOCS / "decisions":
        name = DECISIONS_PAGE
    elif path in files:
        name = files[path]
    elif path == DOCS / NOT_ON_THE_SITE:
        name = "index.md"
    else:
        shown = path.relative_to(ROOT).as_posix()
        return f"`{shown}`" if link["text"] in {shown, f"`{shown}`"} else f"{link['text']} (`{shown}`)"
    here = Path(files[source]).parent
    return f"{link['image']}[{link['text']}]({os.path.relpath(name, here)}{link['anchor'] or ''})"


def _inline_diagram(path: Path, caption: str) -> str:
    """Returns the SVG on one line: a blank line would end the block in Markdown."""
    drawing = " ".join(path.read_text(encoding="utf-8").split())
    return f'<figure class="diagram">{drawing}<figcaption>{caption}</figcaption></figure>'


def decisions_page() -> str:
    """Returns the list of decisions, the latest first."""
    lines = [
        "# Decisions",
        "",
        "Why Rota is built as it is: context, decision, alternatives and consequences of each.",
        "",
    ]
    for path in sorted((DOCS / "decisions").glob("*.md"), reverse=True):
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{title}]({path.name})")
    return "\n".join(lines) + "\n"


def api_page() -> str:
    """Returns the page of all public names; the site generator adds their signatures and docstrings."""
    groups: dict[str, list[str]] = {"Client": [], "Errors and signals": [], "Functions": []}
    for name in rota.__all__:
        found = getattr(rota, name)
        if isinstance(found, type) and issubclass(found, Exception):
            groups["Errors and signals"].append(name)
        else:
            groups["Client" if isinstance(found, type) else "Functions"].append(name)
    lines = ["# Python API", "", "Every public name with its signature and docstring, generated from the code.", ""]
    lines += [
        "[The Python page](python.md) is a shorter overview. Every coroutine has a twin that ends in `_sync`.",
        "",
    ]
    for title, names in groups.items():
        lines += [f"## {title}", ""]
        for name in names:
            lines += [f"::: rota.{name}", ""]
    return "\n".join(lines)
