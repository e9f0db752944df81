"""Masks the values of fields with sensitive names, at any depth.

Stored JSON is masked as text, without decoding it: the rest keeps its digits and its format, and a text that was cut
short can be masked as well. A masked value that comes back in an edit keeps the stored value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

import msgspec

from rota.core.encrypted_values import is_encrypted, readable
from rota.core.json_schema_validator import is_array, is_object
from rota.errors import InvalidOption

MASK: Final = "•••••"
#: Levels of a value that are shown when it is masked. Fixed, as Python versions differ in how deeply they recurse.
MAX_DEPTH: Final = 200
_MASK_JSON: Final = f'"{MASK}"'.encode()
#: A string, possibly cut short, and the colon after it if it is the name of a field. Possessive: no backtracking.
_STRING: Final = re.compile(rb'"((?:[^"\\]++|\\.)*+)(?:"(\s*+:)?|\\?\Z)', re.DOTALL)
#: A string, a bracket, or anything else that is not a separator.
_PART: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[{]|[\]}]|[^\[\]{}",\s]++', re.DOTALL)


class Mask:
    """Replaces the values of fields with certain names."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._lowered = tuple(name.lower() for name in names)
        self._encoded = tuple(name.encode() for name in self._lowered)
        self.hides = lru_cache(maxsize=10_000)(self._hides)

    def _hides(self, name: str) -> bool:
        """True if a field of this name is masked."""
        lowered = name.lower()
        return any(one in lowered for one in self._lowered)

    def text(self, encoded: bytes, *, positional: Sequence[str] = (), limit: int | None = None) -> str:
        """Returns JSON as text with masked values, or its first `limit` bytes. `positional` names items of an array."""
        if is_encrypted(encoded):
            return _decoded(readable(encoded))
        if limit is not None and len(encoded) > limit:
            encoded = encoded[:limit]
        elif self._mentions(encoded) and not _is_json(encoded):
            return MASK
        hidden = [self.hides(name) for name in positional]
        if any(hidden) and encoded.lstrip()[:1] == b"[":
            return _decoded(self._masked_items(encoded, hidden))
        return _decoded(self._masked(encoded))

    def value(self, value: Any, *, depth: int = MAX_DEPTH) -> Any:
        """Returns a value with masked values. What is nested more deeply than `depth` is masked as well."""
        if is_object(value):
            if not depth:
                return MASK
            return {
                name: MASK if self.hides(str(name)) else self.value(item, depth=depth - 1)
                for name, item in value.items()
            }
        if is_array(value):
            return [self.value(item, depth=depth - 1) for item in value] if depth else MASK
        return value

    def unmask(self, value: Any, stored: Any) -> Any:
        """Returns an edited value with masks replaced by the stored values. Raises InvalidOption."""
        if value == MASK:
            if stored is None:
                raise InvalidOption("data", "a masked value has no stored value: send the real value")
            return stored
        if is_object(value):
            known = stored if is_object(stored) else {}
            return {name: self.unmask(item, known.get(name)) for name, item in value.items()}
        if is_array(value):
            items = stored if is_array(stored) else []
            return [self.unmask(item, items[index] if index < len(items) else None) for index, item in enumerate(value)]
        return value

    def _mentions(self, encoded: bytes) -> bool:
        """False for most data: no sensitive name is part of it. True if it has an escape, which may hide a name."""
        lowered = encoded.lower()
        return b"\\u" in encoded or any(name in lowered for name in self._encoded)

    def _masked(self, encoded: bytes) -> bytes:
        if not self._mentions(encoded):
            return encoded
        found: list[bytes] = []
        start = at = 0
        while (string := _STRING.search(encoded, at)) is not None:
            at = string.end()
            if string[2] is not None and self.hides(_name(string[1])):
                end = _end_of_value(encoded, at)
                found += (encoded[start:at], _MASK_JSON)
                start = at = end
        return b"".join((*found, encoded[start:])) if found else encoded

    def _masked_items(self, encoded: bytes, hidden: Sequence[bool]) -> bytes:
        """Masks an array some of whose items are hidden."""
        found: list[bytes] = []
        at = encoded.index(b"[") + 1
        while (part := _PART.search(encoded, at)) is not None and part[0] not in (b"]", b"}"):
            end = _end_of_value(encoded, at)
            is_hidden = len(found) < len(hidden) and hidden[len(found)]
            found.append(_MASK_JSON if is_hidden else self._masked(encoded[part.start() : end]))
            at = end
        return b"[" + b",".join(found) + (b"]" if part is not None else b"")


def _end_of_value(encoded: bytes, at: int) -> int:
    """Returns the end of the JSON value that follows, or of the text if it is cut short."""
    depth = 0
    while (part := _PART.search(encoded, at)) is not None:
        at = part.end()
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(part[0], 0)
        if depth <= 0:
            return part.start() if depth < 0 else at
    return len(encoded)


def _name(encoded: bytes) -> str:
    """Returns the name of a field, with its escapes decoded."""
    if b"\\" in encoded:
        with suppress(ValueError):
            return json.loads(b'"' + encoded + b'"', strict=False)
    return encoded.decode(errors="replace")


def _is_json(encoded: bytes) -> bool:
    try:
        msgspec.json.decode(encoded, type=msgspec.Raw)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def _decoded(text: bytes) -> str:
    return text.decode(errors="replace")
