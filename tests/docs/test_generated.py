"""The parts of the documentation that follow from the code are up to date, and nothing in it points nowhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rota
from docs import generate, http_api, seeds
from rota.core.job import Options
from rota.core.states import JobState
from tests.docs.pages import ROOT, pages


@pytest.mark.parametrize("page", generate.pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_generated_part_is_what_the_generator_would_write(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert text == generate.fill(text), "run: .venv/bin/python -m docs.generate"


def test_the_openapi_document_that_is_kept_is_the_one_that_is_served() -> None:
    kept = http_api.OPENAPI.read_text(encoding="utf-8")

    assert kept == http_api.openapi_text(), "run: .venv/bin/python -m docs.generate"


def test_every_part_that_can_be_generated_is_on_a_page() -> None:
    shown = {name for page in pages() for name in re.findall(r"<!-- generated: ([\w-]+) -->", page.read_text())}

    assert shown == set(generate.PARTS)


def test_every_row_of_the_engine_is_shown_by_a_test() -> None:
    assert seeds.missing(seeds.read_seeds(), seeds.find_tests()) == []


def test_no_test_names_a_row_that_does_not_exist() -> None:
    assert set(seeds.find_tests()) <= set(seeds.read_seeds().behaviours)


def test_rows_are_found_in_the_docstrings_of_tests_alone(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(
        '"""S0-1 of the module does not count."""\n'
        'def test_one():\n    """S0-2, S4-24: two rows."""\n'
        'def helper():\n    """S0-3"""\n'
        'class TestMany:\n    async def test_two(self):\n        """S0-2."""\n'
    )
    (tmp_path / "test_b.py").write_text("def half written(")

    assert seeds.find_tests(tmp_path) == {
        "S0-2": ["test_a.py::test_one", "test_a.py::TestMany::test_two"],
        "S4-24": ["test_a.py::test_one"],
    }


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)[^)]*\)", text):
        assert (page.parent / target).exists(), f"{target} does not exist"


def test_the_page_of_options_has_all_of_them() -> None:
    text = (ROOT / "docs" / "reference" / "options.md").read_text(encoding="utf-8")
    internal = {"timeout_ms": "timeout", "progress_timeout_ms": "progress_timeout"}
    names = {internal.get(name, name) for name in Options.__struct_fields__ if not name.startswith("expires_")}
    # Written by the workflow that a job belongs to, by `rota.otel`, and from its tags and indexed parameters.
    names -= {"workflow", "trace", "terms"}

    for name in names | {"id", "queue", "delay", "run_at", "expires", "on_same_id", "run_in", "name"}:
        assert f"| `{name}`" in text, f"{name} is not on the page"


def test_the_glossary_has_every_state_and_verb() -> None:
    text = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")

    for word in (*JobState, *generate.TRANSITIONS):
        assert word in text, f"{word} is not in the glossary"


def test_every_public_name_is_documented_somewhere() -> None:
    everything = "\n".join(page.read_text(encoding="utf-8") for page in pages())

    assert [name for name in rota.__all__ if not re.search(rf"\b{name}\b", everything)] == []
