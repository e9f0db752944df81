"""Search terms: one word for each tag, indexed field and error class of a job."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.job_index_terms import (
    MAX_INDEXED,
    checked_index,
    error_term,
    field_term,
    indexed_fields,
    make_terms,
    parse_term,
    tag_term,
)
from rota.errors import InvalidOption

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=64)
values = text | st.integers() | st.floats(allow_nan=False) | st.booleans() | st.none()


@given(text, values)
def test_a_term_is_one_ascii_word(name: str, value: Any) -> None:
    for term in (tag_term(name), field_term(name, value), error_term(name)):
        assert term.isascii()
        assert term.split() == [term]


@given(text)
def test_a_tag_can_be_read_back(tag: str) -> None:
    assert parse_term(tag_term(tag)) == ("tag", tag)


@given(text, values)
def test_the_name_of_a_field_can_be_read_back(name: str, value: Any) -> None:
    term = field_term(name, value)

    assert parse_term(term) == ("field", name)
    assert indexed_fields([tag_term("x"), term]) == (name,)


@pytest.mark.parametrize(
    ("value", "word"), [(None, "null"), (True, "true"), (False, "false"), (7, "7"), (7.5, "7.5"), ("a b", "a%20b")]
)
def test_a_value_is_indexed_as_its_text(value: Any, word: str) -> None:
    assert field_term("user", value) == f"field.user={word}"


def test_a_number_is_found_by_its_digits_typed_as_text() -> None:
    """The dashboard's search box sends text."""
    assert field_term("user", 7) == field_term("user", "7")


def test_long_values_become_a_digest_of_constant_length() -> None:
    short, long, other = (tag_term(tag) for tag in ("x" * 64, "x" * 65, "x" * 66))

    assert short == f"tag={'x' * 64}"
    assert long.startswith("tag=sha1.")
    assert (len(long), long == other) == (len(other), False)


def test_an_error_class_is_cut_by_bytes_as_in_lua() -> None:
    assert error_term("E" * 100) == f"error={'E' * 64}"
    assert error_term("ä" * 33) == f"error={'%C3%A4' * 32}"


@pytest.mark.parametrize("value", [[1], {"a": 1}, (1,), b"x"])
def test_a_list_or_an_object_cannot_be_searched_for(value: Any) -> None:
    with pytest.raises(InvalidOption, match="only strings, numbers, True, False and None are indexed"):
        field_term("user", value)


def test_a_new_job_has_terms_for_its_tags_and_its_plain_fields() -> None:
    assert make_terms(["vip"], {"user": 7, "items": [1, 2], "note": None}) == (
        "tag=vip",
        "field.user=7",
        "field.note=null",
    )


def test_an_index_names_parameters_of_the_task() -> None:
    assert checked_index(["user"], ["user", "order"]) == ("user",)
    with pytest.raises(InvalidOption, match="'usr' is not a parameter of the task: its parameters are user, order"):
        checked_index(["usr"], ["user", "order"])


@pytest.mark.parametrize("index", ["user", 7, {"user"}])
def test_an_index_is_a_list_of_names(index: object) -> None:
    with pytest.raises(InvalidOption, match="takes a list of parameter names"):
        checked_index(index, ["user"])


def test_the_number_of_indexed_fields_is_limited() -> None:
    names = [f"p{number}" for number in range(MAX_INDEXED + 1)]

    assert checked_index(names[:-1], names) == tuple(names[:-1])
    with pytest.raises(InvalidOption, match="at most 10 fields, not 11"):
        checked_index(names, names)


@pytest.mark.parametrize(("field", "value"), [("a\ud800", 1), ("a", "\ud800")])
def test_a_lone_surrogate_is_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidOption, match="not valid text"):
        field_term(field, value)
