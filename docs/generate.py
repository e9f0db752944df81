"""Fills in the parts of the documentation that follow from the code. `python -m docs.generate` writes them.

A page marks such a part with `<!-- generated: name -->` and `<!-- end -->`; what stands between the two is replaced. A
test compares the committed pages with what this module would write, so they cannot go stale.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import click

from benchmarks import pages as benchmarks
from docs import http_api, seeds
from rota import client, embedded, errors
from rota.cli.main import COMMANDS, EPILOG, command
from rota.core.job import MAX_META_BYTES, MAX_TAGS
from rota.core.schedule import GRACE_MS, MISFIRE_LIMIT
from rota.core.states import FINISHED, TRANSITIONS, JobState
from rota.store.bounds import BATCH, LEASE_MS
from rota.store.keys import EVENTS_KEPT, GLOBAL_KEYS, QUEUE_KEYS, KeySpec
from rota.store.views import ALIVE_MS
from rota.worker import announcer, config, desk, heartbeat, ticker, tower

DOCS: Final = Path(__file__).parent
LUA: Final = DOCS.parent / "src" / "rota" / "store" / "lua"
_PART: Final = re.compile(r"(?P<open><!-- generated: (?P<name>[\w-]+) -->\n).*?(?P<close><!-- end -->)", re.DOTALL)

_ALL: Final = frozenset(JobState)
#: Verbs whose script is part of another one's, and what each does.
_WITHIN: Final = {
    "promote": "Makes runs pending whose time has come; done by whoever claims next.",
    "expire": "Cancels runs that were not started in time; done by whoever claims next.",
}


# --- lifecycle ---------------------------------------------------------------------------------------------------


def lifecycle() -> str:
    """The states and the verbs that move a run between them, as Mermaid. What ends in no state is only named."""
    edges: dict[tuple[str, str], list[str]] = {}
    for verb, (sources, targets) in TRANSITIONS.items():
        for target in _in_order(targets):
            for source in _in_order(sources) or ["[*]"]:
                edges.setdefault((source, target), []).append(verb)
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    {source} --> {target}: {', '.join(verbs)}" for (source, target), verbs in edges.items()]
    lines += [f"    {state} --> [*]" for state in _in_order(FINISHED)]
    removing = ", ".join(f"`{verb}`" for verb, (_, targets) in TRANSITIONS.items() if not targets)
    return "\n".join([*lines, "```", "", f"Left out, as they remove a run: {removing}."])


def _in_order(states: frozenset[JobState]) -> list[str]:
    return [state.value for state in JobState if state in states]


def transitions() -> str:
    """Each verb with the states it accepts, the states it leaves a run in, and what it does."""
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
    """The first sentence of a script's header, which is its contract."""
    if verb in _WITHIN:
        return _WITHIN[verb]
    header = (LUA / f"{verb}.lua").read_text(encoding="utf-8").split("\n--\n")[1]
    text = " ".join(line.removeprefix("-- ") for line in header.splitlines())
    return re.split(r"(?<=\.) ", text, maxsplit=1)[0]


# --- reference ---------------------------------------------------------------------------------------------------


def queue_keys() -> str:
    """The keys that each queue has."""
    return _key_table(QUEUE_KEYS, "rota:{queue}:")


def shared_keys() -> str:
    """The keys that belong to no queue."""
    return _key_table(GLOBAL_KEYS, "rota:{~}:")


def _key_table(specs: Mapping[str, KeySpec], prefix: str) -> str:
    rows = [
        (f"`{prefix}{spec.pattern.replace('{name}', '…')}`", spec.type, spec.owner, spec.expiry, spec.meaning)
        for spec in specs.values()
    ]
    return _table(("key", "type", "written by", "expires", "meaning"), rows)


def error_tree() -> str:
    """The tree as the module draws it."""
    doc = errors.__doc__ or ""
    return "```text\n" + doc.partition("\n\n")[2].strip() + "\n```"


def error_table() -> str:
    """Each error with its base and the first sentence of what it says of itself."""
    rows: list[tuple[str, str, str]] = []
    for name in errors.__all__:
        error: type[Exception] = getattr(errors, name)
        bases = ", ".join(f"`{base.__name__}`" for base in error.__bases__)
        rows.append((f"`{name}`", bases, (error.__doc__ or "").partition("\n")[0]))
    return _table(("error", "is a", "meaning"), rows)


def cli_commands() -> str:
    """Every command with its arguments and options, from click itself."""
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


#: Options that every command has: the page says so once.
_SHARED: Final = ("url", "namespace", "debug", "json")


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def exit_codes() -> str:
    """The stable exit codes, as `rota --help` shows them."""
    rows = [line.strip().split(None, 1) for line in EPILOG.splitlines() if re.match(r"\s+\d", line)]
    return _table(("code", "meaning"), [(code, meaning) for code, meaning in rows])


def numbers() -> str:
    """The times and bounds that are built in, from the code that uses them."""
    rows = [
        ("lease of a claim", f"{LEASE_MS / 1000:g} s", "how long a job stays a worker's without a heartbeat"),
        ("heartbeat", f"{heartbeat.HEARTBEAT_S:g} s", "for all leases that a worker holds, one call per queue"),
        ("look again", f"{desk.LOOK_AGAIN_S:g} s", "an idle worker asks by itself at least this often"),
        ("wait for a slot", f"{desk.WAIT_FOR_SLOT_S:g} s", "of a job that was claimed ahead; then it is given back"),
        ("grace time", f"{config.GRACE_S:g} s", "for handlers after SIGTERM; `--grace` changes it"),
        ("patience with a handler", f"{tower.STOP_PATIENCE_S:g} s", "told to stop; then its runner is retired"),
        ("bound for siblings", f"{tower.RETIRE_BOUND_S:g} s", "others on a retired runner; then it is killed"),
        ("sign of life", f"{announcer.ANNOUNCE_S:g} s", "how often a worker announces itself"),
        ("shown as DEAD", f"{ALIVE_MS / 1000:g} s", "after its last sign of life"),
        ("look at schedules", f"{ticker.LOOK_AGAIN_S:g} s", "at least this often; changes are pushed"),
        ("missed ticks", f"{MISFIRE_LIMIT}", "of a schedule, that `misfire=\"all\"` runs at most"),
        ("late tick", f"{GRACE_MS // 1000} s", "that `misfire=\"skip\"` still runs"),
        ("batch", f"{BATCH}", "jobs that one script call moves at most"),
        ("payload", f"{client.MAX_PAYLOAD // 1024:,} KiB", "arguments or result of a job; `max_payload=` changes it"),
        ("tags, meta", f"{MAX_TAGS}, {MAX_META_BYTES // 1024} KiB", "of one job"),
        ("log of a job", "1,000 lines or 256 KiB", "further lines are counted, not kept"),
        ("history of a job", "100 entries", "the latest"),
        ("events of a queue", f"about {EVENTS_KEPT:,}", "the latest; whoever falls behind gets a `reset`"),
        ("replay window", "10 min", "in which a call sent again is recognised"),
        ("embedded server", f"{embedded.LINGER_S:g} s", "that it stays after its last client"),
    ]  # fmt: skip
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
    "seeds": seeds.table,
    "http-routes": http_api.routes,
    **benchmarks.PARTS,
}


def fill(text: str) -> str:
    """A page with its generated parts as they have to be."""

    def replaced(part: re.Match[str]) -> str:
        return f"{part['open']}\n{PARTS[part['name']]()}\n\n{part['close']}"

    return _PART.sub(replaced, text)


def pages() -> list[Path]:
    """Every page that has a generated part."""
    return [path for path in sorted(DOCS.rglob("*.md")) if _PART.search(path.read_text(encoding="utf-8"))]


def main() -> int:
    """Writes what has changed, and says what."""
    for path in pages():
        before = path.read_text(encoding="utf-8")
        after = fill(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"written: {path.relative_to(DOCS.parent)}")
    if http_api.write():
        print(f"written: {http_api.OPENAPI.relative_to(DOCS.parent)}")
    benchmarks.draw_plots()
    for row in seeds.missing(seeds.read_seeds(), seeds.find_tests()):
        print(f"no test names {row}", file=sys.stderr)
    return 0


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
