"""Writes the generated parts of the documentation: `python -m docs.generate`.

A page marks such a part with `<!-- generated: name -->` and `<!-- end -->`; the text between the marks is replaced. A
test compares the committed pages with the output of this module.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import click

from benchmarks import docs_sections as benchmarks
from benchmarks.autoscaling import report as simulation
from docs import http_api, requirements
from rota import errors
from rota.cli.main import COMMANDS, EPILOG, command
from rota.core.job_options import MAX_META_BYTES, MAX_TAGS
from rota.core.lease_heartbeat_poll_and_grace_durations import WorkerDurations
from rota.core.lua_constants import EVENTS_KEPT, MAX_PAYLOAD
from rota.core.schedule import GRACE_MS, MISFIRE_LIMIT
from rota.core.state_transitions import FINISHED, TRANSITIONS, JobState
from rota.embedded import find_or_launch_shared_valkey as embedded
from rota.store.acl_rules import AclRole, acl_rule
from rota.store.batch_limit_constants import BATCH
from rota.store.keys import GLOBAL_KEYS, QUEUE_KEYS, KeySpec
from rota.store.reads import ALIVE_MS
from rota.worker import (
    claim_report_loop,
    dispatcher,
    registration_loop,
    schedule_firing_loop,
)

DOCS: Final = Path(__file__).parent
LUA: Final = DOCS.parent / "src" / "rota" / "store" / "lua"
_PART: Final = re.compile(r"(?P<open><!-- generated: (?P<name>[\w-]+) -->\n).*?(?P<close><!-- end -->)", re.DOTALL)

_ALL: Final = frozenset(JobState)
#: Verbs that are part of another script, and what each does.
_WITHIN: Final = {
    "set_aside": "Takes runs of paused tasks out of the way of claims; part of the next claim.",
    "promote": "Makes due runs pending; part of the next claim.",
    "expire": "Cancels runs that did not start in time; part of the next claim.",
    "reap": "Takes back runs whose lease has expired: each is charged a stall; part of the next claim.",
}


# --- lifecycle ---------------------------------------------------------------------------------------------------


def lifecycle() -> str:
    """Returns the states and verbs as a Mermaid diagram. Verbs that remove a run are listed below it."""
    edges: dict[tuple[str, str], list[str]] = {}
    for verb, (sources, targets) in TRANSITIONS.items():
        for target in _in_order(targets):
            for source in _in_order(sources) or ["[*]"]:
                edges.setdefault((source, target), []).append(verb)
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    {source} --> {target}: {', '.join(verbs)}" for (source, target), verbs in edges.items()]
    lines += [f"    {state} --> [*]" for state in _in_order(FINISHED)]
    removing = ", ".join(f"`{verb}`" for verb, (_, targets) in TRANSITIONS.items() if not targets)
    return "\n".join([*lines, "```", "", f"Not shown, because they remove a run: {removing}."])


def _in_order(states: frozenset[JobState]) -> list[str]:
    return [state.value for state in JobState if state in states]


def transitions() -> str:
    """Returns each verb with the states it accepts, the states it can result in, and its purpose."""
    rows = [
        (f"`{verb}`", _words(sources), _words(targets), _purpose(verb))
        for verb, (sources, targets) in TRANSITIONS.items()
    ]
    return _table(("verb", "from", "to", "what it does"), rows)


def _words(states: frozenset[JobState]) -> str:
    if states == _ALL:
        return "any"
    return ", ".join(_in_order(states)) or "–"


def _purpose(verb: str) -> str:
    """Returns the first sentence of a script's header."""
    if verb in _WITHIN:
        return _WITHIN[verb]
    (script,) = LUA.glob(f"*/{verb}.lua")
    header = script.read_text(encoding="utf-8").split("\n--\n")[1]
    text = " ".join(line.removeprefix("-- ") for line in header.splitlines())
    return re.split(r"(?<=\.) ", text, maxsplit=1)[0]


# --- reference ---------------------------------------------------------------------------------------------------


def queue_keys() -> str:
    """Returns the keys of each queue."""
    return _key_table(QUEUE_KEYS, "rota:{queue}:")


def shared_keys() -> str:
    """Returns the keys that belong to no queue."""
    return _key_table(GLOBAL_KEYS, "rota:{~}:")


def _key_table(specs: Mapping[str, KeySpec], prefix: str) -> str:
    rows = [
        (f"`{prefix}{spec.pattern.replace('{name}', '…')}`", spec.type, spec.owner, spec.expiry, spec.meaning)
        for spec in specs.values()
    ]
    return _table(("key", "type", "written by", "expires", "meaning"), rows)


def acl_files() -> dict[Path, str]:
    """Returns the ACL file of each role."""
    return {DOCS.parent / "deploy" / "acl" / f"{role}.acl": acl_rule(role, "rota") + "\n" for role in AclRole}


def error_tree() -> str:
    """Returns the tree of errors from the module's docstring."""
    doc = errors.__doc__ or ""
    return "```text\n" + doc.partition("\n\n")[2].strip() + "\n```"


def error_table() -> str:
    """Returns each error with its base and the first line of its docstring."""
    rows: list[tuple[str, str, str]] = []
    for name in errors.__all__:
        error: type[Exception] = getattr(errors, name)
        bases = ", ".join(f"`{base.__name__}`" for base in error.__bases__)
        rows.append((f"`{name}`", bases, (error.__doc__ or "").partition("\n")[0]))
    return _table(("error", "is a", "meaning"), rows)


def cli_commands() -> str:
    """Returns every command with its arguments and options, read from click."""
    context = click.Context(command, info_name="rota")
    parts: list[str] = []
    for name in COMMANDS:
        found = command.get_command(context, name)
        assert found is not None
        parts += _describe_command(found, click.Context(found, info_name=name, parent=context))
    return "\n\n".join(parts)


def _describe_command(found: click.Command, context: click.Context) -> list[str]:
    if isinstance(found, click.Group):
        parts: list[str] = []
        for name in found.list_commands(context):
            inner = found.get_command(context, name)
            assert inner is not None
            parts += _describe_command(inner, click.Context(inner, info_name=name, parent=context))
        return parts
    usage = " ".join(found.collect_usage_pieces(context))
    text = "\n".join(line.strip() for line in (found.help or "").replace("\b", "").splitlines())
    options = [
        record
        for parameter in found.get_params(context)
        if isinstance(parameter, click.Option)
        and parameter.name not in _SHARED
        and "--help" not in parameter.opts
        and (record := parameter.get_help_record(context)) is not None
    ]
    described = [f"### `{context.command_path}`", f"```text\n{context.command_path} {usage}\n```", text.strip()]
    if options:
        described.append(_table(("option", ""), [(f"`{_plain(names)}`", _plain(help_)) for names, help_ in options]))
    return described


#: Options of every command, described once on the page.
_SHARED: Final = ("url", "namespace", "debug", "json")


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def exit_codes() -> str:
    """Returns the exit codes that `rota --help` lists."""
    rows = [line.strip().split(None, 1) for line in EPILOG.splitlines() if re.match(r"\s+\d", line)]
    return _table(("code", "meaning"), [(code, meaning) for code, meaning in rows])


def numbers() -> str:
    """Returns the built-in times and limits, read from the code that uses them."""
    durations = WorkerDurations()
    rows = [
        (
            "lease of a claim",
            f"{durations.lease_ms / 1000:g} s",
            "how long a worker keeps a job without a heartbeat; `rota settings set` changes it",
        ),
        ("heartbeat", f"{durations.heartbeat_ms / 1000:g} s", "renews all leases of a worker, one call per queue"),
        ("fallback poll", f"{durations.poll_ms / 1000:g} s", "longest time between two claims of an idle worker"),
        ("wait for a slot", f"{claim_report_loop.WAIT_FOR_SLOT_S:g} s", "of a job claimed ahead; then it is returned"),
        (
            "grace period",
            f"{durations.grace_ms / 1000:g} s",
            "for handlers after SIGTERM; `--grace` for one worker",
        ),
        ("stop patience", f"{dispatcher.STOP_PATIENCE_S:g} s", "for a handler to stop; then its runner is retired"),
        ("retirement", f"{dispatcher.RETIRE_BOUND_S:g} s", "for other handlers of a retired runner; then it is killed"),
        ("registration", f"{registration_loop.REGISTER_S:g} s", "interval at which a worker renews its registry entry"),
        ("shown as DEAD", f"{ALIVE_MS / 1000:g} s", "after the last registration"),
        ("schedule check", f"{schedule_firing_loop.LOOK_AGAIN_S:g} s", "longest interval; changes are pushed"),
        ("missed ticks", f"{MISFIRE_LIMIT}", 'run at most with `misfire="all"`'),
        ("late tick", f"{GRACE_MS // 1000} s", 'still run with `misfire="skip"`'),
        ("batch", f"{BATCH}", "most jobs moved by one script call"),
        ("payload", f"{MAX_PAYLOAD // 1024:,} KiB", "arguments or result of a job; `max_payload=` changes it"),
        ("tags, meta", f"{MAX_TAGS}, {MAX_META_BYTES // 1024} KiB", "per job"),
        ("log of a job", "1,000 lines or 256 KiB", "further lines are only counted"),
        ("history of a job", "100 entries", "the latest ones"),
        ("events of a queue", f"about {EVENTS_KEPT:,}", "the latest ones; a reader that falls behind gets a `reset`"),
        ("replay window", "10 min", "in which a repeated call is recognised"),
        ("embedded server", f"{embedded.LINGER_S:g} s", "time until it stops after its last client"),
    ]
    return _table(("what", "value", ""), rows)


# --- pages -------------------------------------------------------------------------------------------------------

PARTS: Final[Mapping[str, Callable[[], str]]] = {
    "lifecycle": lifecycle,
    "transitions": transitions,
    "queue-keys": queue_keys,
    "shared-keys": shared_keys,
    "error-tree": error_tree,
    "error-table": error_table,
    "cli": cli_commands,
    "exit-codes": exit_codes,
    "numbers": numbers,
    "requirements": requirements.table,
    "http-routes": http_api.routes,
    **benchmarks.PARTS,
    **simulation.PARTS,
}


def fill(text: str) -> str:
    """Returns the page with its generated parts replaced."""

    def replaced(part: re.Match[str]) -> str:
        return f"{part['open']}\n{PARTS[part['name']]()}\n\n{part['close']}"

    return _PART.sub(replaced, text)


def pages() -> list[Path]:
    """Returns the pages that have a generated part."""
    every = [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [path for path in every if _PART.search(path.read_text(encoding="utf-8"))]


def main() -> int:
    """Writes the changed pages and prints their paths."""
    for path in pages():
        before = path.read_text(encoding="utf-8")
        after = fill(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"written: {path.relative_to(DOCS.parent)}")
    for path, rule in acl_files().items():
        if not path.exists() or path.read_text(encoding="utf-8") != rule:
            path.parent.mkdir(exist_ok=True)
            path.write_text(rule, encoding="utf-8")
            print(f"written: {path.relative_to(DOCS.parent)}")
    if http_api.write():
        print(f"written: {http_api.OPENAPI.relative_to(DOCS.parent)}")
    benchmarks.draw_plots()
    for code in requirements.read_requirements().untested(requirements.find_tests()):
        print(f"no test is marked with requirement {code}", file=sys.stderr)
    return 0


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
