"""What is not for everybody's eyes: values of fields with certain names are replaced, wherever they stand.

A value that was shown masked may come back in an edit. Then it stands for the one that is stored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from rota.core.values import is_array, is_object
from rota.errors import InvalidOption

MASK: Final = "•••••"


class Mask:
    """Replaces values by the names of their fields."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = re.compile("|".join(re.escape(name) for name in names), re.IGNORECASE) if names else None
        self._is_mentioned = re.compile(self._names.pattern.encode(), re.IGNORECASE) if self._names else None

    def hides(self, name: str) -> bool:
        """True when a field of that name is not shown."""
        return self._names is not None and self._names.search(name) is not None

    def text(self, encoded: bytes, *, positional: Sequence[str] = ()) -> str:
        """Stored JSON as text, with what is hidden replaced. `positional` names the items of an array."""
        is_named = any(map(self.hides, positional))
        # An escaped letter in a name is as good as the letter: such a text is looked at in full.
        if not is_named and (
            self._is_mentioned is None or (b"\\u" not in encoded and not self._is_mentioned.search(encoded))
        ):
            return encoded.decode(errors="replace")
        try:
            value = msgspec.json.decode(encoded)
        except ValueError:
            return MASK
        if is_array(value) and is_named:
            items = value
            hidden = [self.hides(name) for name in positional]
            masked = [MASK if hide else self.value(item) for hide, item in zip(hidden, items, strict=False)]
            return msgspec.json.encode([*masked, *map(self.value, items[len(masked) :])]).decode()
        return msgspec.json.encode(self.value(value)).decode()

    def value(self, value: Any) -> Any:
        """The same for a value."""
        if is_object(value):
            return {name: MASK if self.hides(str(name)) else self.value(item) for name, item in value.items()}
        if is_array(value):
            return [self.value(item) for item in value]
        return value

    def unmask(self, value: Any, stored: Any) -> Any:
        """An edited value, in which masks stand for what is stored in their place. Raises InvalidOption."""
        if value == MASK:
            if stored is None:
                raise InvalidOption("data", "a masked value stands where there was none: give the real one")
            return stored
        if is_object(value):
            known = stored if is_object(stored) else {}
            return {name: self.unmask(item, known.get(name)) for name, item in value.items()}
        if is_array(value):
            items = stored if is_array(stored) else []
            return [self.unmask(item, items[place] if place < len(items) else None) for place, item in enumerate(value)]
        return value
