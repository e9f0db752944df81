"""Masking of JSON text, whole or cut short."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rota.core.masking import MASK, Mask

SECRET = "s3cr3t"
HIDING = Mask(("password", "token"))

names = st.sampled_from(["password", "my_Token", 'pass"word', "a", "b\\", "é", "note"])
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.just(SECRET),
    st.text(max_size=5),
    st.sampled_from(['"password":1', "]}"]),
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=4)),
    max_leaves=20,
)


def without_secrets(value: Any) -> Any:
    """The value with the secret only below hidden names."""
    if isinstance(value, dict):
        return {name: item if HIDING.hides(name) else without_secrets(item) for name, item in value.items()}
    if isinstance(value, list):
        return [without_secrets(item) for item in value]
    return None if value == SECRET else value


@given(value=values, indent=st.sampled_from([None, 1]), ascii=st.booleans())
def test_masked_text_is_the_text_of_the_masked_value(value: Any, indent: int | None, ascii: bool) -> None:
    encoded = json.dumps(value, indent=indent, ensure_ascii=ascii).encode()

    assert json.loads(HIDING.text(encoded)) == HIDING.value(value)


@given(value=st.lists(values, max_size=4))
def test_positional_arguments_are_masked_by_their_names(value: list[Any]) -> None:
    shown = json.loads(HIDING.text(json.dumps(value).encode(), positional=("user", "password")))

    expected = HIDING.value(value)
    if len(value) > 1:
        expected[1] = MASK
    assert shown == expected


@given(value=values, limit=st.integers(0, 200), is_positional=st.booleans())
def test_a_cut_text_shows_no_part_of_a_secret(value: Any, limit: int, is_positional: bool) -> None:
    arguments = [SECRET, without_secrets(value)] if is_positional else {"token": SECRET, "more": without_secrets(value)}
    encoded = json.dumps(arguments).encode()

    shown = HIDING.text(encoded, positional=("password",) if is_positional else (), limit=limit)

    assert all(part not in shown for part in (SECRET[:3], SECRET[3:]))


def test_text_that_is_not_json_is_masked_as_a_whole() -> None:
    assert HIDING.text(b"{password: 1}") == MASK
    assert HIDING.text(b"no names") == "no names"


def test_numbers_keep_their_digits() -> None:
    assert HIDING.text(b'{"n":1.00000000000000000001,"token":1}') == f'{{"n":1.00000000000000000001,"token":"{MASK}"}}'
