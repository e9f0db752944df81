"""The documentation site is complete: every page is in its navigation. Needs nothing that `make docs` installs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs.build_site import LOCAL_SCRIPT, REMOTE_SCRIPT, publish, use_local_script
from docs.llms import first_sentence, llms_text
from docs.site_pages import DOCS, decisions_page, navigation, page_names, site_files, site_page


def test_every_page_is_in_the_navigation_once_and_every_entry_exists() -> None:
    listed = [page for _, page in navigation()]
    decisions = {page for page in page_names() if page.startswith("decisions/0")}

    assert len(listed) == len(set(listed))
    assert set(listed) == page_names() - decisions, "list the page in `nav` of zensical.toml"
    assert all(Path(page).name in decisions_page() for page in decisions)


def test_a_link_to_another_page_stays_and_one_to_source_code_becomes_its_path() -> None:
    files = dict(site_files())
    page = DOCS / "howto" / "test-of-links.md"
    files[page] = "howto/test-of-links.md"
    text = (
        "[a](../deploy.md#alerts) [b](../../CHANGELOG.md) [c](../decisions) [d](../README.md) [e](https://example.com)\n"
        "[examples/fences.py](../../examples/fences.py) [the sources](../../src)\n"
        "```md\n[kept](../../src)\n```\n"
    )

    shown = site_page(text, page, files)

    assert shown == (
        "[a](../deploy.md#alerts) [b](../project/changelog.md) [c](../decisions/index.md) [d](../index.md)"
        " [e](https://example.com)\n"
        "`examples/fences.py` the sources (`src`)\n"
        "```md\n[kept](../../src)\n```\n"
    )


def test_no_page_of_the_site_needs_mermaid() -> None:
    files = site_files()
    pages = {name: page for page, name in files.items() if page.suffix == ".md"}
    shown = {name: site_page(page.read_text(encoding="utf-8"), page, files) for name, page in pages.items()}

    assert [name for name, text in shown.items() if "```mermaid" in text] == []


def test_llms_txt_has_one_line_for_each_page() -> None:
    lines = [line for line in llms_text().splitlines() if line.startswith("- [")]

    assert len(lines) == len(navigation())
    assert all(len(line.partition("): ")[2]) > 10 for line in lines), lines


def test_the_first_sentence_of_a_page_is_found_behind_code_and_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("---\nhide: toc\n---\n\n# Title\n\n```sh\nLs\n```\n\nUse [it](a.md)\nwell. Then stop.\n")

    assert first_sentence(page) == "Use it well."


def test_a_published_version_is_replaced_and_others_stay(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    for number, text in (("0.9", "old"), ("0.10", "first"), ("0.10", "second")):
        output = tmp_path / "output"
        output.mkdir()
        (output / "index.html").write_text(text)
        publish(output, folder, number)

    assert (folder / "0.9" / "index.html").read_text() == "old"
    assert (folder / "0.10" / "index.html").read_text() == "second"
    listed = json.loads((folder / "versions.json").read_text())
    assert [(each["version"], each["aliases"]) for each in listed] == [("0.10", ["latest"]), ("0.9", [])]
    assert "0.10/index.html" in (folder / "index.html").read_text()


@pytest.mark.parametrize(("page", "expected"), [("index.html", ""), ("howto/a.html", "../")])
def test_the_script_of_another_host_is_replaced_by_the_local_copy(tmp_path: Path, page: str, expected: str) -> None:
    (tmp_path / "howto").mkdir()
    (tmp_path / page).write_text(f'<script src="{REMOTE_SCRIPT}"></script>')

    use_local_script(tmp_path)

    assert (tmp_path / page).read_text() == f'<script src="{expected}{LOCAL_SCRIPT}"></script>'
    assert (DOCS / LOCAL_SCRIPT).exists()
