"""JSON values of which nothing is known yet."""

from __future__ import annotations

from typing import Any, TypeGuard


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """True for what JSON calls an object."""
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    """True for what JSON calls an array."""
    return isinstance(value, list)
