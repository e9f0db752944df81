"""Loads the Lua scripts: reads each header, binds its names, puts the includes in front of the body.

The header of a script is its contract. `KEYS name` and `ARGV[n] name` become locals of that name, so the body speaks
of `pending` and `worker`, and the Python side passes keys by the same names: the two cannot drift apart. IS_CLUSTER
says where the script runs. An include
says which keys it touches (`keys: a, b`) and which others it needs (`@include`), so a script names only its own.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

_KEY: Final = re.compile(r"^-- KEYS (\w+)", re.MULTILINE)
_KEYS_OF_INCLUDE: Final = re.compile(r"^-- keys: (.+)$", re.MULTILINE)
_ARGUMENT: Final = re.compile(r"^-- ARGV\[(\d+)\] (\w+)", re.MULTILINE)
_FLAGS: Final = re.compile(r"^-- flags: (.+)$", re.MULTILINE)
_INCLUDE: Final = re.compile(r"^-- @include (\w+)$", re.MULTILINE)
_FOLDER: Final = resources.files("rota.store") / "lua"


@dataclass(frozen=True, slots=True)
class Script:
    """One transition: its source as the server gets it, and the names that its header declares."""

    name: str
    source: str
    keys: tuple[str, ...]
    arguments: tuple[str, ...]
    digest: str


@cache
def script(name: str, clock: str = "", *, is_cluster: bool = False) -> Script:
    """The script of that name. `clock` names a key with an offset in ms that tests add to the server's time."""
    text = (_FOLDER / f"{name}.lua").read_text(encoding="utf-8")
    includes = _includes_of(text)
    keys = tuple(dict.fromkeys([*_KEY.findall(text), *(key for include in includes for key in _keys_of(include))]))
    arguments = _arguments_of(text)
    flags = _FLAGS.search(text)
    source = "\n".join(
        [
            f"#!lua flags={flags[1]}" if flags else "#!lua",
            f"local IS_CLUSTER = {str(is_cluster).lower()}",
            *(f"local {key} = KEYS[{place}]" for place, key in enumerate(keys, 1)),
            *(f"local {argument} = ARGV[{place}]" for place, argument in enumerate(arguments, 1)),
            *(_text_of(include, clock) for include in includes),
            text,
        ]
    )
    return Script(name, source, keys, arguments, hashlib.sha1(source.encode()).hexdigest())


def names() -> list[str]:
    """Every script there is."""
    return sorted(file.name.removesuffix(".lua") for file in _FOLDER.iterdir() if file.name.endswith(".lua"))


def _arguments_of(text: str) -> tuple[str, ...]:
    found = _ARGUMENT.findall(text)
    if [int(place) for place, _ in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"a script's arguments are not numbered from 1: {found}")
    return tuple(name for _, name in found)


def _includes_of(text: str, within: tuple[str, ...] = ()) -> list[str]:
    """Names of all includes that a text needs, each once, and behind those that it needs itself."""
    found: dict[str, None] = {}
    for name in _INCLUDE.findall(text):
        if name in within:
            raise ValueError(f"include {name} needs itself: {' > '.join((*within, name))}")
        found |= dict.fromkeys([*_includes_of(_text_of(name), (*within, name)), name])
    return list(found)


def _keys_of(include: str) -> list[str]:
    declared = _KEYS_OF_INCLUDE.search(_text_of(include))
    return declared[1].split(", ") if declared else []


@cache
def _text_of(include: str, clock: str = "") -> str:
    text = (_FOLDER / "include" / f"{include}.lua").read_text(encoding="utf-8")
    if include == "now_ms" and clock:
        text = text.replace("return ", f'return (redis.call("GET", "{clock}") or 0) + ')
    return text
