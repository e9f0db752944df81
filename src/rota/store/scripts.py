"""Loads the Lua scripts: reads each header, binds its names, puts the includes in front of the body.

The header of a script is its contract. `ARGV[n] name` becomes a local of that name, and `KEYS[n]` takes the place of
the name that `KEYS name` declares, so the body speaks of `pending` and `worker`, and the Python side passes keys by the
same names: the two cannot drift apart. IS_CLUSTER says where the script runs. An include says which keys it touches
(`keys: a, b`) and which others it needs (`@include`, or `@rare` for a function that few calls get to), so a script
names only its own.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

_KEY: Final = re.compile(r"^-- KEYS (\w+)", re.MULTILINE)
_KEYS_OF_INCLUDE: Final = re.compile(r"^-- keys: (.+)$", re.MULTILINE)
_ARGUMENT: Final = re.compile(r"^-- ARGV\[(\d+)\] (\w+)", re.MULTILINE)
_FLAGS: Final = re.compile(r"^-- flags: (.+)$", re.MULTILINE)
_INCLUDE: Final = re.compile(r"^-- @include (\w+)$", re.MULTILINE)
_RARE: Final = re.compile(r"^-- @rare (\w+)$", re.MULTILINE)
#: What may be the name of a key: a word, but no field of a table and nothing that is assigned to. Comments and texts
#: are taken whole, so that no word within them is.
_WORD: Final = re.compile(r"""--[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(?<![\w.:])[a-z_]\w*\b(?! =[^=])""")
_RARELY: Final = """\
local defined_{name}
local function {name}(...)
if not defined_{name} then
{text}
defined_{name} = {name}
end
return defined_{name}(...)
end
"""
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
    blocks = _blocks_of(text)
    of_blocks = [key for block in blocks for include in block.includes for key in _keys_of(include)]
    keys = tuple(dict.fromkeys([*_KEY.findall(text), *of_blocks]))
    arguments = _arguments_of(text)
    flags = _FLAGS.search(text)
    source = "\n".join(
        [
            f"#!lua flags={flags[1]}" if flags else "#!lua",
            f"local IS_CLUSTER = {str(is_cluster).lower()}",
            *(f"local {argument} = ARGV[{place}]" for place, argument in enumerate(arguments, 1)),
            *(_bind(block.text(clock), keys) for block in blocks),
            _bind(text, keys),
        ]
    )
    return Script(name, source, keys, arguments, hashlib.sha1(source.encode()).hexdigest())


def _bind(text: str, keys: Sequence[str]) -> str:
    """Puts `KEYS[3]` where the third key is named.

    A local for each would be simple, and dear: a function that speaks of one looks for it among all others, each time
    that the script defines it.
    """
    place_of = {key: place for place, key in enumerate(keys, 1)}

    def bound(word: re.Match[str]) -> str:
        place = place_of.get(word[0])
        return word[0] if place is None else f"KEYS[{place}]"

    return _WORD.sub(bound, text)


def names() -> list[str]:
    """Every script there is."""
    return sorted(file.name.removesuffix(".lua") for file in _FOLDER.iterdir() if file.name.endswith(".lua"))


def _arguments_of(text: str) -> tuple[str, ...]:
    found = _ARGUMENT.findall(text)
    if [int(place) for place, _ in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"a script's arguments are not numbered from 1: {found}")
    return tuple(name for _, name in found)


class _Block(NamedTuple):
    """An include, or one that is rarely needed (`@rare`) with all that only it needs.

    That one is a function which defines itself and the others when it is first called: a call of the script that does
    not get there is spared the work.
    """

    name: str
    includes: Sequence[str]
    is_rare: bool = False

    def text(self, clock: str) -> str:
        """As the server gets it."""
        text = "\n".join(_text_of(include, clock) for include in self.includes)
        return _RARELY.format(name=self.name, text=text) if self.is_rare else text


def _blocks_of(text: str) -> list[_Block]:
    """All blocks that a text needs, each once, and behind those that it needs itself."""
    common = _includes_of(text)
    blocks: dict[str, _Block] = {}

    def add_all(of_text: str, within: tuple[str, ...]) -> None:
        for name in _INCLUDE.findall(of_text):
            add(_Block(name, [name]), _text_of(name), within)
        for name in _RARE.findall(of_text):
            needed = [*_includes_of(_text_of(name), with_rare=True), name]
            own = [include for include in needed if include not in common]
            shared = "".join(f"-- @include {include}\n" for include in needed if include in common)
            if own:
                add(_Block(name, own, is_rare=True), shared, within)

    def add(block: _Block, needs: str, within: tuple[str, ...]) -> None:
        if block.name in within:
            raise ValueError(f"include {block.name} needs itself: {' > '.join((*within, block.name))}")
        if block.name not in blocks:
            add_all(needs, (*within, block.name))
            blocks[block.name] = block

    add_all(text, ())
    return list(blocks.values())


def _includes_of(text: str, *, with_rare: bool = False, within: tuple[str, ...] = ()) -> list[str]:
    """Names of all includes that a text needs, each once, and behind those that it needs itself."""
    found: dict[str, None] = {}
    for name in [*_INCLUDE.findall(text), *(_RARE.findall(text) if with_rare else ())]:
        if name in within:
            raise ValueError(f"include {name} needs itself: {' > '.join((*within, name))}")
        found |= dict.fromkeys([*_includes_of(_text_of(name), with_rare=with_rare, within=(*within, name)), name])
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
