"""The script compiler: turns a Lua file and its includes into the source that the server runs.

The header of a script is its contract. `ARGV[n] name` becomes a local of that name. `K.name` is the key that Python
passes under that name, and is replaced by `KEYS[n]`; `C.NAME` is a constant of Python, and is replaced by its value.
`@include` puts a shared function before the body, `@rare` one that is defined only when it is first called. A call
passes the keys that the script and its includes use. `docs/explanation/scripts.md` explains the rules and their cost.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

from rota.core import lua_constants
from rota.core.job_options import DEFAULT_MAX_STALLS, Keep
from rota.core.same_id_policy import MAX_WAIT_FLAG, UPDATE_FLAGS

_KEY: Final = re.compile(r"\bK\.(\w+)")
_CONSTANT: Final = re.compile(r"\bC\.(\w+)")
_COMMENT: Final = re.compile(r"^\s*--.*$", re.MULTILINE)
_ARGUMENT: Final = re.compile(r"^-- ARGV\[(\d+)\] (\w+)", re.MULTILINE)
_FLAGS: Final = re.compile(r"^-- flags: (.+)$", re.MULTILINE)
_INCLUDE: Final = re.compile(r"^-- @include (\w+)$", re.MULTILINE)
_RARE: Final = re.compile(r"^-- @rare (\w+)$", re.MULTILINE)
#: A function that defines itself, and the includes that only it needs, when it is first called.
_DEFINED_ON_FIRST_CALL: Final = """\
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
_KEEP: Final = Keep()
#: `C.NAME` -> its value. `C.IS_CLUSTER` depends on the server.
CONSTANTS: Final[Mapping[str, float | str]] = {
    "EVENTS_KEPT": lua_constants.EVENTS_KEPT,
    "ONCE_KEPT_MS": lua_constants.ONCE_KEPT_MS,
    "REPLY_KEPT_MS": lua_constants.REPLY_KEPT_MS,
    "CALL_BYTES": lua_constants.CALL_BYTES,
    "SHORT_RECORD": lua_constants.SHORT_RECORD,
    "TASK_NUMBERS": lua_constants.TASK_NUMBERS,
    "REPAIRS_KEPT_MS": lua_constants.REPAIRS_KEPT_MS,
    "MAX_PAYLOAD": lua_constants.MAX_PAYLOAD,
    "MERGED_KEPT": lua_constants.MERGED_KEPT,
    "WORKFLOW_KEPT_MS": lua_constants.WORKFLOW_KEPT_MS,
    "WORKER_KEPT_MS": lua_constants.WORKER_KEPT_MS,
    "DECISIONS_KEPT_MS": lua_constants.DECISIONS_KEPT_MS,
    "DECISIONS_KEPT": lua_constants.DECISIONS_KEPT,
    "BLOB_UNTAKEN_MS": lua_constants.BLOB_UNTAKEN_MS,
    "MAX_LOG_LINES": lua_constants.MAX_LOG_LINES,
    "MAX_LOG_BYTES": lua_constants.MAX_LOG_BYTES,
    "MAX_STALLS": DEFAULT_MAX_STALLS,
    "KEEP_FINISHED_S": _KEEP.finished,
    "KEEP_FINISHED_COUNT": _KEEP.finished_count,
    "KEEP_FAILED_S": _KEEP.failed,
    "KEEP_FAILED_COUNT": _KEEP.failed_count,
    **{f"OPTION_{part.upper()}": number for number, part in enumerate(lua_constants.OPTION_PARTS, 1)},
    "MAX_WAIT_FLAG": MAX_WAIT_FLAG,
    **{f"FLAG_{part.upper()}": letter for part, letter in UPDATE_FLAGS.items()},
}


@dataclass(frozen=True, slots=True)
class Script:
    """A compiled script: its source, and the keys and arguments that a call must pass, in order."""

    name: str
    source: str
    keys: tuple[str, ...]
    arguments: tuple[str, ...]
    digest: str
    #: True for a script with the flag no-writes. Users that may only read can run it.
    is_read_only: bool


@cache
def script(name: str, clock: str = "", *, is_cluster: bool = False) -> Script:
    """Compiles the script of that name, in whichever folder it is.

    `clock` names a key whose value, in ms, tests add to the server's time; "=1000" stops the clock at that time.
    """
    text = _script_files()[name].read_text(encoding="utf-8")
    blocks = _blocks_of(text)
    parts = [*(block.text(clock) for block in blocks), text]
    # Its own keys come first, as its header lists them.
    keys = tuple(dict.fromkeys(key for part in [text, *parts] for key in _KEY.findall(_COMMENT.sub("", part))))
    arguments = _arguments_of(text)
    flags = _FLAGS.search(text)
    source = "\n".join(
        [
            f"#!lua flags={flags[1]}" if flags else "#!lua",
            *(f"local {argument} = ARGV[{number}]" for number, argument in enumerate(arguments, 1)),
            # Without comments, which would travel with each load of the script.
            *(_substitute(_COMMENT.sub("", part), keys, is_cluster=is_cluster).strip() for part in parts),
        ]
    )
    is_read_only = flags is not None and "no-writes" in flags[1]
    return Script(name, source, keys, arguments, hashlib.sha1(source.encode()).hexdigest(), is_read_only)


def names() -> list[str]:
    """Returns the names of all scripts."""
    return sorted(_script_files())


def _substitute(text: str, keys: Sequence[str], *, is_cluster: bool) -> str:
    """Replaces `K.pending` by `KEYS[3]`, and `C.EVENTS_KEPT` by 10000.

    A local for each would cost every call: a function that uses one captures it each time that the script runs.
    """
    index_of = {key: index for index, key in enumerate(keys, 1)}
    constants = {name: _literal(value) for name, value in CONSTANTS.items()} | {"IS_CLUSTER": str(is_cluster).lower()}
    text = _KEY.sub(lambda key: f"KEYS[{index_of[key[1]]}]" if key[1] in index_of else key[0], text)
    return _CONSTANT.sub(lambda constant: constants[constant[1]], text)


def _literal(value: float | str) -> str:
    """Writes a constant as Lua."""
    return f'"{value}"' if isinstance(value, str) else f"{value:.0f}"


def _arguments_of(text: str) -> tuple[str, ...]:
    found = _ARGUMENT.findall(text)
    if [int(number) for number, _ in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"a script's arguments are not numbered from 1: {found}")
    return tuple(name for _, name in found)


class _Block(NamedTuple):
    """An include; or one that is rarely needed (`@rare`), with all includes that only it needs.

    A rare one is a function that defines itself and those others when it is first called, so that a call of the
    script that does not need it does not pay for them.
    """

    name: str
    includes: Sequence[str]
    is_rare: bool = False

    def text(self, clock: str) -> str:
        """The source of the block, before substitution."""
        text = "\n".join(_include(include, clock) for include in self.includes)
        return _DEFINED_ON_FIRST_CALL.format(name=self.name, text=text) if self.is_rare else text


def _blocks_of(text: str) -> list[_Block]:
    """Returns the blocks that a text needs, each once, after those that it needs itself."""
    common = _includes_of(text)
    blocks: dict[str, _Block] = {}

    def add_all(of_text: str, within: tuple[str, ...]) -> None:
        for name in _INCLUDE.findall(of_text):
            add(_Block(name, [name]), _include(name), within)
        for name in _RARE.findall(of_text):
            needed = [*_includes_of(_include(name), with_rare=True), name]
            own = [include for include in needed if include not in common]
            shared = "".join(f"-- @include {include}\n" for include in needed if include in common)
            if own:
                add(_Block(name, own, is_rare=True), shared, within)
            else:  # it is needed anyway, and must come before this text
                add_all(shared, within)

    def add(block: _Block, needs: str, within: tuple[str, ...]) -> None:
        if block.name in within:
            raise ValueError(f"include {block.name} needs itself: {' > '.join((*within, block.name))}")
        if block.name not in blocks:
            add_all(needs, (*within, block.name))
            blocks[block.name] = block

    add_all(text, ())
    return list(blocks.values())


def _includes_of(text: str, *, with_rare: bool = False, within: tuple[str, ...] = ()) -> list[str]:
    """Returns the names of all includes that a text needs, each once, after those that it needs itself."""
    found: dict[str, None] = {}
    for name in [*_INCLUDE.findall(text), *(_RARE.findall(text) if with_rare else ())]:
        if name in within:
            raise ValueError(f"include {name} needs itself: {' > '.join((*within, name))}")
        found |= dict.fromkeys([*_includes_of(_include(name), with_rare=with_rare, within=(*within, name)), name])
    return list(found)


@cache
def _include(name: str, clock: str = "") -> str:
    text = _include_files()[name].read_text(encoding="utf-8")
    if name == "now_ms" and clock:
        # "=1000" stops the clock at that time, for tests that count commands.
        offset = f'local offset = redis.call("GET", "{clock}") or "0"'
        stopped = 'if string.sub(offset, 1, 1) == "=" then return tonumber(string.sub(offset, 2)) end'
        text = text.replace("return ", f"{offset} {stopped} return offset + ")
    return text


@cache
def _script_files() -> Mapping[str, Traversable]:
    return {name: file for topic in _FOLDER.iterdir() if topic.name != "include" for name, file in _lua_files(topic)}


@cache
def _include_files() -> Mapping[str, Traversable]:
    return dict(_lua_files(_FOLDER / "include"))


def _lua_files(folder: Traversable) -> Iterator[tuple[str, Traversable]]:
    """Yields the name and file of each Lua file in a folder and the folders within it."""
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.name.endswith(".lua"):
            yield entry.name.removesuffix(".lua"), entry
        else:
            yield from _lua_files(entry)
