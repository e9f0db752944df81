"""Reads the store's Lua as the tests need it: headers, includes, and which names mean something where.

Not the loader of `rota.store.redis.script_compiler`: the two read the same contract independently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Final

LUA: Final = Path(__file__).parents[2] / "src" / "rota" / "store" / "lua"

_FIRST: Final = re.compile(r"-- (\w+): (?:(\S.*) -> (\S.*)|no change of state)")
_KEY: Final = re.compile(r"-- KEYS (\w+) +(\w+)  +(\S.*)")
_KEY_USED: Final = re.compile(r"\bK\s*\.\s*(\w+)")
_CONSTANT_USED: Final = re.compile(r"\bC\s*\.\s*(\w+)")
_ARG: Final = re.compile(r"-- ARGV\[(\d+)\] (\w+)(?:  +(\S.*))?")
_REST: Final = re.compile(r"-- ARGV\[(\d+)…\] (\S.*)")
_FLAGS: Final = re.compile(r"-- flags: (\S.*)")
INCLUDE: Final = re.compile(r"^-- @(?:include|rare) (\w+)$", re.MULTILINE)
_TOKEN: Final = re.compile(
    r"""
      (?P<comment>--\[(?P<c>=*)\[.*?\](?P=c)\]|--[^\n]*)
    | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\[(?P<s>=*)\[.*?\](?P=s)\])
    | (?P<number>0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?)
    | (?P<name>[A-Za-z_]\w*)
    | (?P<other>\.\.\.|\.\.|[=~<>]=|\S)
    """,
    re.VERBOSE | re.DOTALL,
)
_KEYWORDS: Final = {
    "and",
    "break",
    "do",
    "else",
    "elseif",
    "end",
    "false",
    "for",
    "function",
    "if",
    "in",
    "local",
    "nil",
    "not",
    "or",
    "repeat",
    "return",
    "then",
    "true",
    "until",
    "while",
}
#: What the server, and the loader, give to every script.
_GIVEN: Final = {
    "KEYS",
    "ARGV",
    "K",
    "C",
    "redis",
    "server",
    "cjson",
    "cmsgpack",
    "bit",
    "struct",
    "string",
    "table",
    "math",
    "assert",
    "error",
    "ipairs",
    "next",
    "pairs",
    "pcall",
    "select",
    "tonumber",
    "tostring",
    "type",
    "unpack",
}


@dataclass(frozen=True, slots=True)
class Declared:
    """One KEYS or ARGV line of a header."""

    index: int
    name: str
    type: str = ""
    meaning: str = ""


@dataclass(frozen=True)
class Script:
    """One transition: its file, and what its header promises."""

    path: Path
    text: str = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.path.stem

    @cached_property
    def header(self) -> list[str]:
        """The comment that opens the file, up to the first line that is none."""
        lines = self.text.splitlines()
        end = next((at for at, line in enumerate(lines) if not line.startswith("--")), len(lines))
        return lines[:end]

    @cached_property
    def body(self) -> str:
        """All that follows the header."""
        return "\n".join(self.text.splitlines()[len(self.header) :])

    @property
    def promise(self) -> tuple[str, frozenset[str], frozenset[str]] | None:
        """The first line: verb, states it accepts, states it leaves (none and none if it changes no state).

        None when the line is not of that form.
        """
        parsed = _FIRST.fullmatch(self.header[0]) if self.header else None
        return parsed and (parsed[1], _states(parsed[2]), _states(parsed[3]))

    @property
    def prose(self) -> list[str]:
        """What the header says in words, before it comes to flags, keys and arguments."""
        contract = re.compile(r"-- (flags:|KEYS |ARGV\[|Returns)")
        end = next((at for at, line in enumerate(self.header) if contract.match(line)), len(self.header))
        return [line for line in self.header[1:end] if line.strip("- ")]

    @property
    def keys(self) -> list[Declared]:
        """The keys that the body touches."""
        return [Declared(0, m[1], m[2], m[3]) for m in map(_KEY.fullmatch, self.header) if m]

    @property
    def args(self) -> list[Declared]:
        return [Declared(int(m[1]), m[2], meaning=m[3] or "") for m in map(_ARG.fullmatch, self.header) if m]

    @property
    def rest(self) -> list[Declared]:
        """`ARGV[4…]`: where the arguments that come once per job begin."""
        return [Declared(int(m[1]), "", meaning=m[2]) for m in map(_REST.fullmatch, self.header) if m]

    @property
    def flags(self) -> list[str]:
        return [flag for m in map(_FLAGS.fullmatch, self.header) if m for flag in m[1].split(",")]

    @cached_property
    def own_includes(self) -> list[Include]:
        """What the script itself asks for."""
        return _named(self.text)

    @cached_property
    def includes(self) -> list[Include]:
        """What the loader puts before the body, in that order."""
        return _with_needed(self.own_includes)

    @property
    def all_keys(self) -> list[str]:
        """The keys that the call brings: its own, then those of the includes."""
        names = [key.name for key in self.keys]
        return list(dict.fromkeys(names + [key for include in self.includes for key in include.keys]))


@dataclass(frozen=True)
class Include:
    """A file of functions that scripts share."""

    path: Path
    text: str = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def keys(self) -> list[str]:
        """The keys that its functions touch."""
        return keys_in(self.text)

    @cached_property
    def own_includes(self) -> list[Include]:
        """The includes that its functions need."""
        return _named(self.text)

    @cached_property
    def defines(self) -> set[str]:
        """The names that a script gets from it."""
        return set(re.findall(r"^local (?:function )?(\w+)", self.text, re.MULTILINE))


def _named(text: str) -> list[Include]:
    by_name = {include.name: include for include in all_includes()}
    return [by_name[name] for name in INCLUDE.findall(text)]


def _with_needed(includes: list[Include]) -> list[Include]:
    found: list[Include] = []
    for include in includes:
        found += [needed for needed in [*_with_needed(include.own_includes), include] if needed not in found]
    return found


@cache
def all_scripts() -> list[Script]:
    """In the folders of their topics."""
    paths = [path for path in LUA.glob("*/*.lua") if path.parent.name != "include"]
    return [Script(path, path.read_text()) for path in sorted(paths, key=lambda path: path.stem)]


@cache
def all_includes() -> list[Include]:
    return [Include(path, path.read_text()) for path in sorted((LUA / "include").rglob("*.lua"))]


def keys_in(text: str) -> list[str]:
    """The keys that a text uses: `K.pending`."""
    return list(dict.fromkeys(_KEY_USED.findall(without_comments(text))))


def constants_in(text: str) -> set[str]:
    """The constants of Python that a text uses: `C.EVENTS_KEPT`."""
    return set(_CONSTANT_USED.findall(without_comments(text)))


def without_comments(text: str) -> str:
    return "".join(
        "" if token["comment"] else text[token.start() : token.end()] + " " for token in _TOKEN.finditer(text)
    )


def names_in(text: str) -> set[str]:
    """Every variable that the code mentions; fields, strings and comments do not count."""
    return {name for name, _ in _variables(_tokens(text))}


def undefined_names(text: str, bound: Sequence[str]) -> set[str]:
    """Variables that are used where nothing has defined them: to the server, globals that do not exist.

    Lua would only say so when the line runs. Scopes are followed as far as the store's plain style needs it.
    """
    scopes: list[set[str]] = [{*_GIVEN, *bound}]
    pending: set[str] = set()  # defined by a `for`, to be visible from its `do` on
    missing: set[str] = set()
    tokens = _tokens(text)
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token in ("do", "then", "repeat"):
            scopes.append(pending)
            pending = set()
        elif token in ("end", "until", "elseif"):
            scopes.pop()
        elif token == "else":
            scopes[-1] = set()
        elif token == "for":
            names, at = _names_until(tokens, at + 1, {"=", "in"})
            pending = set(names)
        elif token == "function":
            if tokens[at - 1] == "local":
                at += 1
                scopes[-1].add(tokens[at])
            names, at = _names_until(tokens, tokens.index("(", at) + 1, {")"})
            scopes.append(set(names))
        elif token == "local" and tokens[at + 1] != "function":
            names, at = _declared_names(tokens, at + 1)
            scopes[-1].update(names)
            continue
        elif _is_variable(tokens, at) and not any(token in scope for scope in scopes):
            missing.add(token)
        at += 1
    return missing


def _states(text: str | None) -> frozenset[str]:
    return frozenset() if text in (None, "(none)") else frozenset(text.split(" | "))


def _tokens(text: str) -> list[str]:
    kinds = ("name", "number", "other")
    return [
        '""' if token["string"] else token[0]
        for token in _TOKEN.finditer(text)
        if token["string"] or any(token[kind] for kind in kinds)
    ]


def _is_variable(tokens: Sequence[str], at: int) -> bool:
    token = tokens[at]
    if not re.fullmatch(r"[A-Za-z_]\w*", token) or token in _KEYWORDS:
        return False
    before, after = tokens[at - 1] if at else "", tokens[at + 1] if at + 1 < len(tokens) else ""
    is_field = before in (".", ":")
    is_table_key = after == "=" and before in ("{", ",", ";")
    return not is_field and not is_table_key


def _variables(tokens: Sequence[str]) -> Iterator[tuple[str, int]]:
    return ((token, at) for at, token in enumerate(tokens) if _is_variable(tokens, at))


def _names_until(tokens: Sequence[str], at: int, stops: set[str]) -> tuple[list[str], int]:
    """The names of a list, and the place of the token that ends it."""
    names: list[str] = []
    while tokens[at] not in stops:
        if tokens[at] != ",":
            names.append(tokens[at])
        at += 1
    return names, at


def _declared_names(tokens: Sequence[str], at: int) -> tuple[list[str], int]:
    """The names of a `local a, b`, and the place of what follows."""
    names = [tokens[at]]
    while at + 1 < len(tokens) and tokens[at + 1] == ",":
        names.append(tokens[at + 2])
        at += 2
    return names, at + 1
