"""Text for terminals and logs: data of a job controls neither the terminal nor the direction of text."""

from __future__ import annotations

import json

import pytest

from rota.core.printable_text import printable, printable_json

HOSTILE = ["\x1b[2J", "\x9b31m", "\x7f", "\u202egnp.exe", "\u2066", "\x07", "\U000e0041"]


@pytest.mark.parametrize("text", HOSTILE)
def test_control_characters_are_escaped(text: str) -> None:
    assert printable(f"a{text}\n\tü").replace("\n", "").replace("\t", "").isprintable()


@pytest.mark.parametrize("text", HOSTILE)
def test_escaped_json_means_the_same(text: str) -> None:
    shown = printable_json(json.dumps({"a": text, "b": "ü"}, ensure_ascii=False, indent=2))

    assert shown.replace("\n", "").isprintable()
    assert json.loads(shown) == {"a": text, "b": "ü"}
