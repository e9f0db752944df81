"""Describes the public API as text: every public name, its public methods with signatures, its fields.

`python -m tests.public_api` writes it to `tests/public_api.txt`, which `tests/test_public_api.py` compares.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Final

import msgspec

from rota import Rota

MODULES: Final = ("rota", "rota.server", "rota.worker", "rota.testing", "rota.otel")
SNAPSHOT: Final = Path(__file__).with_name("public_api.txt")


def describe() -> str:
    """Returns the whole public API, one name per line."""
    return "\n".join(line for module in MODULES for line in _module(module)) + "\n"


def _module(name: str) -> Iterator[str]:
    module = importlib.import_module(name)
    yield f"{name}"
    for public in sorted(module.__all__):
        yield from (f"  {line}" for line in _named(public, getattr(module, public)))
    yield ""


def _named(name: str, value: Any) -> Iterator[str]:
    if not inspect.isclass(value):
        yield f"{name}{_signature(value)}" if callable(value) else f"{name}: {type(value).__name__} = {value!r}"
        return
    bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
    yield f"class {name}({bases})" if bases else f"class {name}"
    yield from (f"  {line}" for line in sorted(_members(value)))


def _members(cls: type) -> Iterator[str]:
    if issubclass(cls, Enum):
        yield from (f"{member.name} = {member.value!r}" for member in cls)
        return
    fields: tuple[str, ...] = ()
    if issubclass(cls, msgspec.Struct):
        types = {
            name: kind for base in reversed(cls.__mro__) for name, kind in vars(base).get("__annotations__", {}).items()
        }
        fields = cls.__struct_fields__
        yield from (f"{name}: {types[name]}" for name in fields)
    elif "__init__" in vars(cls):
        yield f"__init__{_signature(cls.__init__)}"
    for name, member in cls.__dict__.items():
        if name.startswith("_") or name in fields:
            continue
        if isinstance(member, property):
            yield f"{name}: property"
        elif inspect.isroutine(member):
            prefix = "async " if inspect.iscoroutinefunction(member) or inspect.isasyncgenfunction(member) else ""
            function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            yield f"{prefix}{name}{_signature(function)}"
        else:
            yield f"{name}: attribute"
    if cls is Rota:
        yield from (f"{name}: attribute" for name in vars(Rota()) if not name.startswith("_"))


def _signature(function: Any) -> str:
    try:
        text = str(inspect.signature(function))
    except (TypeError, ValueError):
        return "(...)"
    return re.sub(r" at 0x[0-9a-f]+", "", text)


if __name__ == "__main__":
    SNAPSHOT.write_text(describe())
