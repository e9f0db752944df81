"""The list of pages for language models, `llms.txt`: each page with one line about it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from docs.site_pages import API_PAGE, DECISIONS_PAGE, DOCS, PROJECT_PAGES, navigation

_INTRODUCTION: Final = """# Rota

> A job queue for Python on Valkey and Redis: a library, a worker, an HTTP API, a dashboard and an autoscaler.

A call of a Python function is stored as a job. A worker claims it under a lease, runs it and reports its result with a
fence. Jobs run at least once. Every coroutine of the client has a twin that ends in `_sync`.
"""
_WRITTEN: Final = {
    API_PAGE: "Every public name with its signature and docstring.",
    DECISIONS_PAGE: "Context, decision, alternatives and consequences of each design decision.",
}


def llms_text() -> str:
    """Returns the list in the order of the navigation."""
    lines = [_INTRODUCTION, "## Pages", ""]
    for title, name in navigation():
        lines.append(f"- [{title}]({name.removesuffix('.md')}.html): {_summary(name)}")
    return "\n".join(lines) + "\n"


def _summary(name: str) -> str:
    if name in _WRITTEN:
        return _WRITTEN[name]
    return first_sentence(PROJECT_PAGES.get(name, DOCS / name))


def first_sentence(page: Path) -> str:
    """Returns the first sentence of a page's prose, without links; its title where it has no prose."""
    text = re.sub(r"^```.*?^```$|<[^>]+>", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    blocks = [block.strip() for block in text.split("\n\n")]
    prose = next((block for block in blocks if re.match(r"[A-Z`\[*]", block)), blocks[0].lstrip("# "))
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(prose.split()))
    return re.split(r"(?<=[.:?!]) ", plain, maxsplit=1)[0].rstrip(":")
