"""Checks a value against a JSON Schema, as far as the schemas of tasks go.

Workers announce the schema of each task, made by msgspec or pydantic. Here a producer without the code is told what is
wrong before anything is stored. The worker checks again, with the task's own types; so what is not understood here is
let through.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from rota.core.values import is_array, is_object

#: A schema that refers to itself is followed this deep.
MAX_DEPTH: Final = 64
#: Parts of schema and value that are looked at: one that branches into itself is not followed for ever.
MAX_STEPS: Final = 100_000
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_BOUNDS: Final[tuple[tuple[str, str, Callable[[float, float], bool]], ...]] = (
    ("minimum", "at least", operator.ge),
    ("exclusiveMinimum", "more than", operator.gt),
    ("maximum", "at most", operator.le),
    ("exclusiveMaximum", "less than", operator.lt),
)


def mismatch(schema: Mapping[str, Any], value: Any) -> str | None:
    """What is wrong with the value, as `where: what`; None when nothing is."""
    return next(_faults(schema, value, "", _Root(schema), 0), None)


class _Root:
    """The whole schema, which its parts refer to; and how many of them have been looked at."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema
        self.steps = 0

    def resolve(self, reference: Any) -> Any:
        """What `#/$defs/Name` names; anything goes where it names nothing."""
        found: Any = self.schema
        for part in filter(None, str(reference).removeprefix("#").split("/")):
            found = cast("Mapping[str, Any]", found).get(part) if isinstance(found, Mapping) else None
        return True if found is None else found


def _faults(schema: Any, value: Any, at: str, root: _Root, depth: int) -> Iterator[str]:
    if schema is False:
        yield _say(at, "is not allowed")
    root.steps += 1
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH or root.steps > MAX_STEPS:
        return
    known = cast("Mapping[str, Any]", schema)
    if "$ref" in known:
        yield from _faults(root.resolve(known["$ref"]), value, at, root, depth + 1)
    yield from _of_type(known, value, at)
    yield from _of_choice(known, value, at, root, depth)
    if is_object(value):
        yield from _of_object(known, value, at, root, depth)
    elif is_array(value):
        yield from _of_array(known, value, at, root, depth)
    elif isinstance(value, str):
        yield from _of_text(known, value, at)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        for keyword, words, holds in _BOUNDS:
            bound = known.get(keyword)
            if isinstance(bound, int | float) and not holds(value, bound):
                yield _say(at, f"must be {words} {bound}, not {value!r}")


def _of_type(schema: Mapping[str, Any], value: Any, at: str) -> Iterator[str]:
    wanted = schema.get("type")
    if wanted is None:
        return
    names: list[str] = [wanted] if isinstance(wanted, str) else list(wanted)
    if not any(_is(name, value) for name in names):
        yield _say(at, f"must be {' or '.join(names)}, not {_kind(value)}")


def _is(name: str, value: Any) -> bool:
    kinds = _TYPES.get(name)
    if kinds is None:
        return True
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, kinds) or (name == "integer" and isinstance(value, float) and value.is_integer())


def _of_choice(schema: Mapping[str, Any], value: Any, at: str, root: _Root, depth: int) -> Iterator[str]:
    if "const" in schema and schema["const"] != value:
        yield _say(at, f"must be {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        yield _say(at, f"must be one of {', '.join(map(repr, schema['enum']))}")
    for part in schema.get("allOf", ()):
        yield from _faults(part, value, at, root, depth + 1)
    for keyword in ("anyOf", "oneOf"):
        options = schema.get(keyword)
        if options:
            found = [next(_faults(option, value, at, root, depth + 1), None) for option in options]
            if None not in found:
                # Of several ways to be wrong, the one that got furthest into the value says most.
                yield max((fault for fault in found if fault is not None), key=lambda fault: fault.count("."))


def _of_object(schema: Mapping[str, Any], value: dict[str, Any], at: str, root: _Root, depth: int) -> Iterator[str]:
    for name in schema.get("required", ()):
        if name not in value:
            yield _say(at, f"missing {name!r}")
    properties: Mapping[str, Any] = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name, item in value.items():
        where = f"{at}.{name}" if at else name
        if name in properties:
            yield from _faults(properties[name], item, where, root, depth + 1)
        elif others is False:
            yield _say(at, f"there is no {name!r}")
        else:
            yield from _faults(others, item, where, root, depth + 1)


def _of_array(schema: Mapping[str, Any], value: list[Any], at: str, root: _Root, depth: int) -> Iterator[str]:
    if len(value) < schema.get("minItems", 0):
        yield _say(at, f"must have {schema['minItems']} items at least, not {len(value)}")
    if len(value) > schema.get("maxItems", len(value)):
        yield _say(at, f"must have {schema['maxItems']} items at most, not {len(value)}")
    first: list[Any] = schema.get("prefixItems", [])
    for place, item in enumerate(value):
        inner = first[place] if place < len(first) else schema.get("items", True)
        yield from _faults(inner, item, f"{at}.{place}" if at else str(place), root, depth + 1)


def _of_text(schema: Mapping[str, Any], value: str, at: str) -> Iterator[str]:
    if len(value) < schema.get("minLength", 0):
        yield _say(at, f"must have {schema['minLength']} characters at least")
    if len(value) > schema.get("maxLength", len(value)):
        yield _say(at, f"must have {schema['maxLength']} characters at most")
    pattern = schema.get("pattern")
    try:
        if isinstance(pattern, str) and not re.search(pattern, value):
            yield _say(at, f"does not match {pattern}")
    except re.error:
        return  # a pattern of another dialect


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return next((name for name, kinds in _TYPES.items() if isinstance(value, kinds)), "something else")


def _say(at: str, what: str) -> str:
    return f"{at}: {what}" if at else what
