"""What each guarantee costs the server: the scripts as they are against the same without it, in turns, on one server.

Each variant is a copy of the scripts with a line changed; a change that no longer fits raises, so that it cannot be
forgotten. Nothing of it is for use: without them jobs get lost, are counted wrongly, or are not found.
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from benchmarks.measures import Figures, Size
from benchmarks.ratchet import PAYLOAD, Bench
from benchmarks.server import Server, serving
from rota import Rota
from rota.store import scripts

LUA: Final = Path(scripts.__file__).parent / "lua"
JOBS: Final = 5_000
#: More than are kept of finished jobs, so that the oldest are forgotten.
PAST: Final = 11_000
_SKIP: Final = "\n  do return end"


class Change(NamedTuple):
    """What a file says, and what it says without the guarantee."""

    file: str
    old: str
    new: str


EVENTS: Final = (Change("include/emit.lua", "if #moved > 0 then", "if false then"),)
COUNTS: Final = (
    Change("include/count_started.lua", "count_started(popped, bodies, now)", f"count_started(){_SKIP}"),
    Change("include/tally.lua", "write_tally(now, of_book)", f"write_tally(){_SKIP}"),
    Change("enqueue_plain.lua", 'redis.call("BITFIELD"', 'type("BITFIELD"'),
)
INDEX: Final = (
    Change("include/unindex.lua", "unindex(gone)", f"unindex(){_SKIP}"),
    Change("enqueue_plain.lua", "while from <= amount do", "while false do"),
)
RETENTION: Final = (Change("include/finish.lua", "if #of_rule > 0 then retain", "if false then retain"),)
REPLAY: Final = (
    Change("include/replay.lua", "recall(kind, number)", f"recall(){_SKIP}"),
    Change("include/replay.lua", "remember(kind, number, outcome)", f"remember(){_SKIP}"),
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


def costs(_: Size, rounds: int = 3) -> Figures:
    """Microseconds of the server that each guarantee costs a job, enqueued by 500 and drained by 100."""
    with serving() as server, tempfile.TemporaryDirectory() as folder:
        folders = {name: _changed(Path(folder) / name, changes) for name, changes in VARIANTS.items()}
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in VARIANTS}
        try:
            for jobs in (PAST, *[JOBS] * rounds):
                for name, changed in folders.items():
                    _use(changed)
                    found[name].append(asyncio.run(_live(server, name, jobs)))
        finally:
            _use(LUA)
    # Others on the machine can only add to it.
    least = {name: [min(column) for column in zip(*rows[1:], strict=True)] for name, rows in found.items()}
    enqueue, drain = least["all"]
    figures: Figures = {"cost_enqueue_us": enqueue, "cost_drain_us": drain}
    for name, (less_enqueue, less_drain) in least.items():
        if name != "all":
            figures[f"cost_{name}_enqueue_us"] = enqueue - less_enqueue
            figures[f"cost_{name}_drain_us"] = drain - less_drain
    return figures


def _changed(folder: Path, changes: Sequence[Change]) -> Path:
    shutil.copytree(LUA, folder)
    for file, old, new in changes:
        text = (folder / file).read_text()
        if text.count(old) != 1:
            raise ValueError(f"{file} no longer says {old!r} once")
        (folder / file).write_text(text.replace(old, new))
    return folder


def _use(folder: Path) -> None:
    loader = cast("Any", scripts)
    loader._FOLDER = folder
    loader.script.cache_clear()
    loader._text_of.cache_clear()


async def _live(server: Server, namespace: str, jobs: int) -> tuple[float, float]:
    """Lets so many jobs live; the server's CPU for each, in us: to make it, and to claim and complete it."""
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
