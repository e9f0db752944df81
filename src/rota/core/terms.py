"""Terms: words that a job is found by, besides its state and its task. A tag, a declared field, the class of an error.

A term has no white space, so that a record can hold several with spaces between. `include/group.lua` writes those of
errors in the same way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast
from urllib.parse import quote, unquote

from rota.errors import InvalidOption

MAX_INDEXED: Final = 10
#: Longer values are found by their digest, so that no key grows with what users write.
_LONGEST: Final = 64


def tag_term(tag: str) -> str:
    """The term of a tag."""
    return f"tag={_word(tag)}"


def error_term(error: str) -> str:
    """The term of an error's class."""
    # As Lua cuts it: by bytes.
    return "error=" + quote(error.encode()[:_LONGEST], safe="")


def field_term(field: str, value: Any) -> str:
    """The term of a declared field. Texts, numbers, truths and null can be looked for, by what they look like."""
    if value is not None and not isinstance(value, str | int | float | bool):
        raise InvalidOption("fields", f"{field}={value!r}: only texts, numbers, True, False and None are indexed")
    return f"field.{_word(field)}={_word(_text(value))}"


def terms_of(tags: Iterable[str], fields: Mapping[str, Any]) -> tuple[str, ...]:
    """All terms of a job that is made. A field whose value is a list or an object has none."""
    found = [tag_term(tag) for tag in tags]
    found += [
        field_term(name, value)
        for name, value in fields.items()
        if value is None or isinstance(value, str | int | float | bool)
    ]
    return tuple(found)


def indexed_fields(terms: Iterable[str]) -> tuple[str, ...]:
    """The fields that a job with these terms is found by."""
    names = (term.removeprefix("field.").partition("=")[0] for term in terms if term.startswith("field."))
    return tuple(unquote(name) for name in names)


def read_term(term: str) -> tuple[str, str]:
    """What a term is about, "tag", "error", "field" or another word, and what it says: of a field only its name."""
    kind, _, text = term.partition("=")
    if kind.startswith("field."):
        return "field", unquote(kind.removeprefix("field."))
    return kind, unquote(text)


def checked_index(index: Any, names: Sequence[str]) -> tuple[str, ...]:
    """The fields that a task's jobs are to be found by, if they are parameters of it."""
    if isinstance(index, str) or not isinstance(index, list | tuple):
        raise InvalidOption("index", f"takes a list of parameters, not {index!r}")
    chosen = tuple(str(name) for name in cast("Sequence[Any]", index))
    for name in chosen:
        if name not in names:
            raise InvalidOption("index", f"{name!r} is no parameter of the task, only {', '.join(names) or 'none'}")
    if len(chosen) > MAX_INDEXED:
        raise InvalidOption("index", f"at most {MAX_INDEXED} fields, not {len(chosen)}")
    return chosen


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _word(text: str) -> str:
    if len(text) > _LONGEST:
        text = "sha1." + hashlib.sha1(text.encode()).hexdigest()
    return quote(text, safe="")
