"""A script's header is its contract: it says what the body does, and the loader binds the names it declares."""

from __future__ import annotations

import re
from typing import Final

import pytest

from rota.core.state_transitions import TRANSITIONS, JobState
from rota.store.keys import GLOBAL_KEYS, QUEUE_KEYS
from rota.store.redis import script_compiler
from tests.servers import Server
from tests.store.lua_source import (
    Include,
    Script,
    all_includes,
    all_scripts,
    constants_in,
    keys_in,
    names_in,
    undefined_names,
    without_comments,
)

FLAGS: Final = {"allow-oom", "allow-stale", "no-writes", "no-cluster", "allow-cross-slot-keys"}
#: Walks or wipes the whole key space.
NEVER_CALLED: Final = {"KEYS", "SCAN", "FLUSHALL", "FLUSHDB", "RANDOMKEY"}
CALL: Final = re.compile(r"\b(?:redis|server)\s*\.\s*p?call\s*\(\s*(?:[\"'](\w+)[\"'])?")

SCRIPTS: Final = all_scripts()
INCLUDES: Final = all_includes()

each_script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
each_include = pytest.mark.parametrize("include", INCLUDES, ids=lambda include: include.name)
each_file = pytest.mark.parametrize(
    "file", [*SCRIPTS, *INCLUDES], ids=lambda file: f"{file.path.parent.name}/{file.path.name}"
)


@each_script
def test_a_header_opens_with_the_verb_and_says_what_it_does(script: Script) -> None:
    assert script.promise, (
        f"the first line is not `-- <verb>: <from> -> <to>` or `no change of state` but: {script.header[:1]}"
    )
    verb, accepted, left = script.promise

    assert verb == script.name
    assert accepted | left <= set(JobState), "states of the table, separated by ` | `, or (none)"
    assert script.prose, "a paragraph says what it does, and what happens when it is sent twice"
    assert any(re.match(r"-- Returns\b", line) for line in script.header)
    assert set(script.flags) <= FLAGS


@each_script
def test_a_header_agrees_with_the_table_of_transitions(script: Script) -> None:
    assert script.promise
    verb, accepted, left = script.promise

    if verb in TRANSITIONS:
        assert (accepted, left) == TRANSITIONS[verb]
    else:
        assert accepted == left, f"{verb} moves jobs, so it belongs in TRANSITIONS"


@pytest.mark.parametrize("verb", TRANSITIONS)
def test_every_transition_is_a_script_or_a_function_that_scripts_share(verb: str) -> None:
    assert verb in {script.name for script in SCRIPTS} | {name for include in INCLUDES for name in include.defines}


@each_script
def test_a_header_declares_each_key_and_numbers_its_arguments_from_one(script: Script) -> None:
    mentioned = {kind: sum(line.startswith(f"-- {kind}") for line in script.header) for kind in ("KEYS ", "ARGV[")}
    keys, args = script.keys, [*script.args, *script.rest]

    assert mentioned == {"KEYS ": len(keys), "ARGV[": len(args)}, "a line is not `KEYS name  type  meaning`, or so"
    assert [arg.index for arg in args] == list(range(1, len(args) + 1))
    for names in (script.keys, script.args):
        assert len({one.name for one in names}) == len(names), "a name is declared twice"


@each_script
def test_every_declared_key_is_in_the_table_of_keys_with_that_type(script: Script) -> None:
    specs = {**GLOBAL_KEYS, **QUEUE_KEYS}
    unknown = [key.name for key in script.keys if key.name not in specs]
    assert not unknown

    wrong = [
        f"{key.name} is {specs[key.name].type}, not {key.type}"
        for key in script.keys
        if key.type != specs[key.name].type and not (key.type == "prefix" and "{name}" in specs[key.name].pattern)
    ]
    assert not wrong


@each_include
def test_every_key_of_an_include_is_in_the_table_of_keys(include: Include) -> None:
    # `fail_pending` is `pending` of the queue's failures.
    assert {key.removeprefix("fail_") for key in include.keys} <= {*GLOBAL_KEYS, *QUEUE_KEYS}


@each_script
def test_a_header_declares_just_the_keys_that_the_body_touches(script: Script) -> None:
    used = names_in(script.body)
    of_includes = {name for include in script.includes for name in names_in(include.text)}

    assert sorted(key.name for key in script.keys) == sorted(keys_in(script.body))
    assert not [arg.name for arg in script.args if arg.name not in used | of_includes]


@each_file
def test_every_constant_is_one_that_the_compiler_knows(file: Script | Include) -> None:
    assert constants_in(file.text) <= {*script_compiler.CONSTANTS, "IS_CLUSTER"}


def test_every_constant_is_used() -> None:
    used = set[str]().union(*(constants_in(file.text) for file in (*SCRIPTS, *INCLUDES)))
    assert used >= set(script_compiler.CONSTANTS)


def test_each_script_and_each_include_has_a_name_of_its_own() -> None:
    names = [file.name for file in (*SCRIPTS, *INCLUDES)]

    assert len(names) == len(set(names)), "files are found by their names, whatever their folders"


@each_script
def test_every_name_that_is_used_is_defined_before(script: Script) -> None:
    bound = [argument.name for argument in script.args]
    text = "\n".join([*(include.text for include in script.includes), script.body])

    assert not undefined_names(text, bound), "neither declared in the header nor defined by an include above"
    compiled = script_compiler.script(script.name).source.partition("\n")[2]
    assert not undefined_names(compiled, ()), "the compiler puts an include after its first use"


@each_file
def test_every_file_includes_just_what_it_uses_itself(file: Script | Include) -> None:
    text = file.body if isinstance(file, Script) else file.text
    unused = [include.name for include in file.own_includes if not include.defines & names_in(text)]
    asked = {include.name for include in file.own_includes}
    undefined = undefined_names(text, [])
    borrowed = {include.name for include in INCLUDES if include.name != file.path.stem and include.defines & undefined}

    assert not unused
    assert not borrowed - asked


@each_include
def test_every_include_is_used_by_a_script(include: Include) -> None:
    assert any(include in script.includes for script in SCRIPTS)


@each_include
def test_an_include_opens_with_its_purpose(include: Include) -> None:
    assert re.match(r"-- [A-Z].+", include.text)


@each_file
def test_lines_fit_on_a_screen(file: Script | Include) -> None:
    assert not [line for line in file.text.splitlines() if len(line) > 118]


@each_file
def test_no_include_is_named_twice(file: Script | Include) -> None:
    assert len(file.own_includes) == len(set(file.own_includes))


def test_the_loader_reads_the_headers_as_they_are_meant() -> None:
    assert script_compiler.names() == [script.name for script in SCRIPTS]
    for script in SCRIPTS:
        loaded = script_compiler.script(script.name)
        assert sorted(loaded.keys) == sorted(script.all_keys)
        assert loaded.arguments == tuple(argument.name for argument in script.args)


@each_script
def test_a_script_compiles_on_each_server(script: Script, server: Server) -> None:
    loaded = script_compiler.script(script.name)
    with server.client() as client:
        assert client.script_load(loaded.source) == loaded.digest


@each_script
def test_a_body_uses_the_names_that_the_header_binds(script: Script) -> None:
    bound = {"KEYS": len(script.all_keys), "ARGV": len(script.args)}
    literal = re.findall(r"\b(KEYS|ARGV)\s*\[\s*(\d+)\s*\]", without_comments(script.body))

    assert not [f"{kind}[{index}]" for kind, index in literal if int(index) <= bound[kind]]


@each_file
def test_nothing_walks_or_wipes_the_key_space(file: Script | Include) -> None:
    called = CALL.findall(without_comments(file.text))

    assert "" not in called, "a command that is not written out cannot be checked"
    assert not NEVER_CALLED & {command.upper() for command in called}


@each_file
def test_the_clock_is_read_in_one_place(file: Script | Include) -> None:
    reads_clock = "TIME" in {command.upper() for command in CALL.findall(without_comments(file.text))}

    assert reads_clock == (file.path.name == "now_ms.lua")
    assert "os" not in names_in(file.text)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("local a = b", {"b"}),
        ("local function f(x) return x end\nreturn f(y.x)", {"y"}),
        ("for i, run in ipairs(jobs) do local n = run end\nreturn n or i", {"n", "i"}),
        ("if jobs then local a = 1 elseif jobs == 2 then return a else return a end", {"a"}),
        ("return { at = jobs, verb = 'a -- b', [jobs] = missing } -- comment", {"missing"}),
        ("local f = function(run, ...) return g(run, ...) end", {"g"}),
        ("repeat local x = 1 until jobs", set[str]()),
        ("while jobs do jobs = nil end return jobs:x(a.b)", {"a"}),
    ],
)
def test_names_that_nothing_defines_are_found(text: str, missing: set[str]) -> None:
    assert undefined_names(text, ["jobs"]) == missing
