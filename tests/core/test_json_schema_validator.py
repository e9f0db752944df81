"""The errors for arguments that do not match the JSON schema that workers publish."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.client.task_arguments import Signature
from rota.core.json_schema_validator import find_mismatch


@dataclass
class Address:
    street: str
    number: int | None = None


def send(
    to: Address,
    copies: Annotated[int, msgspec.Meta(ge=1, le=9)] = 1,
    kind: Literal["a", "b"] = "a",
    tags: list[str] | None = None,
    size: tuple[int, int] = (1, 1),
    extra: dict[str, float] | None = None,
) -> None: ...


SCHEMA = Signature("send", send).schema()


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"to": {"street": "x"}}, None),
        ({"to": {"street": "x", "number": 3}, "copies": 2, "kind": "b", "tags": [], "size": [1, 2]}, None),
        ({"to": {"street": "x"}, "tags": None, "extra": {"a": 1.5}}, None),
        ({}, "to: is missing"),
        ({"to": 7}, "to: must be object, not integer"),
        ({"to": {}}, "to.street: is missing"),
        ({"to": {"street": 1}}, "to.street: must be string, not integer"),
        ({"to": {"street": "x"}, "copies": 0}, "copies: must be at least 1, not 0"),
        ({"to": {"street": "x"}, "copies": 10}, "copies: must be at most 9, not 10"),
        ({"to": {"street": "x"}, "copies": True}, "copies: must be integer, not boolean"),
        ({"to": {"street": "x"}, "kind": "c"}, "kind: must be one of 'a', 'b'"),
        ({"to": {"street": "x"}, "tags": [1]}, "tags.0: must be string, not integer"),
        ({"to": {"street": "x"}, "size": [1]}, "size: must have 2 items at least, not 1"),
        ({"to": {"street": "x"}, "size": [1, 2, 3]}, "size: must have 2 items at most, not 3"),
        ({"to": {"street": "x"}, "extra": {"a": "b"}}, "extra.a: must be number, not string"),
        ({"to": {"street": "x"}, "colour": 1}, "colour: is not a known field"),
    ],
)
def test_a_value_is_valid_or_its_error_is_described(value: Any, fault: str | None) -> None:
    found = find_mismatch(SCHEMA, value)
    assert (found and f"{found.field}: {found.reason}") == fault


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["to", "copies", "kind", "tags", "street", "number"]) | st.text(), inner)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["to", "copies", "kind", "tags", "size", "extra"]), json_values))
def test_what_the_worker_would_take_is_never_refused(value: dict[str, Any]) -> None:
    """The other way round may be: the worker has the task's own types, and the last word."""
    signature = Signature("send", send)
    try:
        signature.decode(msgspec.json.encode(value))
    except ValueError:
        return

    assert find_mismatch(SCHEMA, value) is None


@given(json_values, json_values)
def test_any_schema_at_all_is_survived(schema: Any, value: Any) -> None:
    find_mismatch({"properties": {"a": schema}, "anyOf": [{"$ref": "#/nowhere"}], "$ref": "#"}, {"a": value})


def test_a_schema_that_refers_to_itself_is_followed() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False}

    assert find_mismatch(tree, {"next": {"next": {}}}) is None
    assert find_mismatch(tree, {"next": {"next": {"other": 1}}}) == ("next.next.other", "is not a known field")


def test_a_recursive_schema_is_followed_to_a_limit() -> None:
    bomb: dict[str, Any] = {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}

    assert find_mismatch(bomb, 1) is None
