"""The parts of the documentation that follow from the code are up to date, and nothing in it points nowhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rota
from docs import generate, http_api, requirements
from rota.core.job_options import Options
from rota.core.state_transitions import JobState
from tests.docs.pages import ROOT, pages


@pytest.mark.parametrize("page", generate.pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_generated_part_is_what_the_generator_would_write(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert text == generate.fill(text), "run: .venv/bin/python -m docs.generate"


def test_the_openapi_document_that_is_kept_is_the_one_that_is_served() -> None:
    kept = http_api.OPENAPI.read_text(encoding="utf-8")

    assert kept == http_api.openapi_text(), "run: .venv/bin/python -m docs.generate"


def test_the_acl_files_are_what_the_generator_would_write() -> None:
    kept = {path: path.read_text(encoding="utf-8") for path in (ROOT / "deploy" / "acl").iterdir()}

    assert kept == generate.acl_files(), "run: .venv/bin/python -m docs.generate"


def test_every_part_that_can_be_generated_is_on_a_page() -> None:
    shown = {name for page in pages() for name in re.findall(r"<!-- generated: ([\w-]+) -->", page.read_text())}

    assert shown == set(generate.PARTS)


def test_every_requirement_of_the_engine_has_a_test() -> None:
    assert requirements.read_requirements().untested(requirements.find_tests()) == []


def test_no_test_is_marked_with_an_unknown_requirement() -> None:
    assert set(requirements.find_tests()) <= set(requirements.read_requirements().behaviours)


def test_requirements_are_read_from_the_markers_of_tests_alone(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(
        '"""S0-1 in prose does not count."""\n'
        '@pytest.mark.requirement("S0-2", "S4-24")\ndef test_one():\n    """S0-5: prose."""\n'
        '@pytest.mark.requirement("S0-3")\ndef helper(): ...\n'
        'class TestMany:\n    @other\n    @pytest.mark.requirement("S0-2")\n    async def test_two(self): ...\n'
    )
    (tmp_path / "test_b.py").write_text("def half written(")

    assert requirements.find_tests(tmp_path) == {
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
    # Written by the workflow that a job belongs to, by `rota.otel`, by the caller of the HTTP API or the command line,
    # from its tags and indexed parameters, and from its arguments.
    names -= {"workflow", "trace", "enqueued_by", "terms", "blobs"}

    for name in names | {"id", "queue", "delay", "run_at", "expires", "on_same_id", "run_in", "name"}:
        assert f"| `{name}`" in text, f"{name} is not on the page"


def test_the_glossary_has_every_state_and_verb() -> None:
    text = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")

    for word in (*JobState, *generate.TRANSITIONS):
        assert word in text, f"{word} is not in the glossary"


def test_every_public_name_is_documented_somewhere() -> None:
    everything = "\n".join(page.read_text(encoding="utf-8") for page in pages())

    assert [name for name in rota.__all__ if not re.search(rf"\b{name}\b", everything)] == []
