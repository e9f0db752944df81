"""Search terms of a job, besides its state and task: its tags, its indexed fields, the class of its error.

A term has no white space, so a record can hold several separated by spaces. `group_dead_letters_by_error.lua` writes
the terms of errors in the same format.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast
from urllib.parse import quote, unquote

from rota.core.ids import checked_text
from rota.errors import InvalidOption

MAX_INDEXED: Final = 10
#: Longer values are replaced by their digest, which bounds the length of keys.
_MAX_LENGTH: Final = 64


def tag_term(tag: str) -> str:
    """Returns the term for a tag."""
    return f"tag={_quoted(tag)}"


def error_term(error: str) -> str:
    """Returns the term for an error class."""
    # Cut by bytes, as in Lua.
    return "error=" + quote(error.encode()[:_MAX_LENGTH], safe="")


def field_term(field: str, value: Any) -> str:
    """Returns the term for an indexed field. Raises InvalidOption for a value that is a list or an object."""
    if value is not None and not isinstance(value, str | int | float | bool):
        raise InvalidOption("fields", f"{field}={value!r}: only strings, numbers, True, False and None are indexed")
    name, text = checked_text(field, "fields"), checked_text(_text(value), "fields")
    return f"field.{_quoted(name)}={_quoted(text)}"


def make_terms(tags: Iterable[str], fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns all terms of a new job. Fields with a list or an object as value have no term."""
    found = [tag_term(tag) for tag in tags]
    found += [
        field_term(name, value)
        for name, value in fields.items()
        if value is None or isinstance(value, str | int | float | bool)
    ]
    return tuple(found)


def indexed_fields(terms: Iterable[str]) -> tuple[str, ...]:
    """Returns the names of the indexed fields among the terms."""
    names = (term.removeprefix("field.").partition("=")[0] for term in terms if term.startswith("field."))
    return tuple(unquote(name) for name in names)


def parse_term(term: str) -> tuple[str, str]:
    """Returns the kind of a term ("tag", "error", "field" …) and its value; for a field, its name."""
    kind, _, text = term.partition("=")
    if kind.startswith("field."):
        return "field", unquote(kind.removeprefix("field."))
    return kind, unquote(text)


def checked_index(index: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Returns the fields to index if they are parameters of the task. Raises InvalidOption."""
    if isinstance(index, str) or not isinstance(index, list | tuple):
        raise InvalidOption("index", f"takes a list of parameter names, not {index!r}")
    chosen = tuple(str(name) for name in cast("Sequence[Any]", index))
    for name in chosen:
        if name not in names:
            raise InvalidOption(
                "index", f"{name!r} is not a parameter of the task: its parameters are {', '.join(names) or 'none'}"
            )
    if len(chosen) > MAX_INDEXED:
        raise InvalidOption("index", f"at most {MAX_INDEXED} fields, not {len(chosen)}")
    return chosen


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _quoted(text: str) -> str:
    if len(text) > _MAX_LENGTH:
        text = "sha1." + hashlib.sha1(text.encode()).hexdigest()
    return quote(text, safe="")
