"""Escapes characters that control a terminal or the direction of text, for what is printed and logged."""

from __future__ import annotations


def printable(text: str) -> str:
    """Returns the text with control characters escaped, except new lines and tabs.

    Data of a job can then neither control the terminal it is shown in nor change the order of what is read.
    """
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)


def printable_json(text: str) -> str:
    """Returns JSON with such characters escaped as JSON does: it still means the same."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else _json_escape(c) for c in text)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
