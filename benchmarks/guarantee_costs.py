"""The cost of each guarantee for the server: the scripts with and without it, in turns, on one server.

Each variant is a copy of the scripts with a line changed; a change that no longer applies raises, so it cannot go
stale. Not for use: without the guarantees jobs are lost, counted wrongly, or not found.
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from benchmarks.measurements import Results, Size
from benchmarks.ratchet import PAYLOAD, Bench
from benchmarks.server import Server, serving
from rota import Rota
from rota.store.redis import script_compiler

LUA: Final = Path(script_compiler.__file__).parents[1] / "lua"
JOBS: Final = 5_000
#: More than are kept of finished jobs, so that the oldest are forgotten.
PAST: Final = 11_000
_SKIP: Final = "\n  do return end"


class Change(NamedTuple):
    """A change to a file that removes a guarantee."""

    file: str
    old: str
    new: str


EVENTS: Final = (Change("include/base/emit_event.lua", "if #moved > 0 then", "if false then"),)
COUNTS: Final = (
    Change(
        "include/counters/count_claims_and_waiting_times.lua",
        "count_claims_and_waiting_times(popped, bodies, now)",
        f"count_claims_and_waiting_times(){_SKIP}",
    ),
    Change("include/counters/gather_and_write_counts.lua", "write_counters(now, counters)", f"write_counters(){_SKIP}"),
    Change("job/enqueue_fast.lua", 'redis.call("BITFIELD"', 'type("BITFIELD"'),
)
INDEX: Final = (
    Change(
        "include/search/remove_runs_from_task_index_and_terms.lua",
        "remove_runs_from_task_index_and_terms(gone)",
        f"remove_runs_from_task_index_and_terms(){_SKIP}",
    ),
    Change("job/enqueue_fast.lua", "while from <= amount do", "while false do"),
)
RETENTION: Final = (
    Change(
        "include/job/index_retain_and_announce_finished_runs.lua",
        "if #of_rule > 0 then spare",
        "if false then spare",
    ),
)
REPLAY: Final = (
    Change("include/base/replay_reply_of_numbered_call.lua", "recall_reply(kind, number)", f"recall_reply(){_SKIP}"),
    Change(
        "include/base/replay_reply_of_numbered_call.lua",
        "remember_reply(kind, number, outcome)",
        f"remember_reply(){_SKIP}",
    ),
)

#: Name -> what is left out. The first one is what the others are compared with.
VARIANTS: Final[Mapping[str, Sequence[Change]]] = {
    "all": (),
    "events": EVENTS,
    "counts": COUNTS,
    "index": INDEX,
    "events_counts_index": (*EVENTS, *COUNTS, *INDEX),
    "retention": RETENTION,
    "replay": REPLAY,
}


def costs(_: Size, rounds: int = 3) -> Results:
    """Returns the server's microseconds per job for each guarantee; jobs enqueued by 500 and drained by 100."""
    with serving() as server, tempfile.TemporaryDirectory() as folder:
        folders = {name: copy_scripts(Path(folder) / name, changes) for name, changes in VARIANTS.items()}
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in VARIANTS}
        try:
            for jobs in (PAST, *[JOBS] * rounds):
                for name, changed in folders.items():
                    use_scripts(changed)
                    found[name].append(asyncio.run(_live(server, name, jobs)))
        finally:
            use_scripts(LUA)
    # Others on the machine can only add to it.
    least = {name: [min(column) for column in zip(*rows[1:], strict=True)] for name, rows in found.items()}
    enqueue, drain = least["all"]
    figures: Results = {"cost_enqueue_us": enqueue, "cost_drain_us": drain}
    for name, (less_enqueue, less_drain) in least.items():
        if name != "all":
            figures[f"cost_{name}_enqueue_us"] = enqueue - less_enqueue
            figures[f"cost_{name}_drain_us"] = drain - less_drain
    return figures


def copy_scripts(folder: Path, changes: Sequence[Change]) -> Path:
    """Copies the scripts with these changes. Raises ValueError if one of them does not apply."""
    shutil.copytree(LUA, folder)
    for file, old, new in changes:
        text = (folder / file).read_text()
        if text.count(old) != 1:
            raise ValueError(f"{file} does not contain {old!r} exactly once")
        (folder / file).write_text(text.replace(old, new))
    return folder


def use_scripts(folder: Path) -> None:
    """Compiles scripts from that folder from now on."""
    loader = cast("Any", script_compiler)
    loader._FOLDER = folder
    loader.script.cache_clear()
    for cached in (loader._include, loader._script_files, loader._include_files):
        cached.cache_clear()


async def _live(server: Server, namespace: str, jobs: int) -> tuple[float, float]:
    """Runs that many jobs. Returns the server's CPU per job in us: to enqueue it, and to claim and complete it."""
    async with Rota(server.url, namespace=namespace) as rota:

        @rota.task(name="noop")
        async def noop(payload: str) -> None:
            """Nothing: what remains is the queue."""

        worker = Bench(rota, f"worker-{secrets.token_hex(4)}")  # its calls are numbered from 1
        calls = [noop.call(PAYLOAD) for _ in range(jobs)]
        began = server.cpu()
        await rota.enqueue_many(calls)
        made = server.cpu()
        while claimed := await worker.claim():
            await worker.complete(claimed)
        return (made - began) / jobs * 1e6, (server.cpu() - made) / jobs * 1e6
