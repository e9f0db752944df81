"""The fault-injection suite: scenarios, and the loop that injects faults. `python -m tests.crash.chaos --help`.

A seed decides the jobs and the sequence of faults with their parameters. It does not decide the instant at which a
process is hit: that depends on the machine too.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.crash.chaos_arena import Arena
from tests.crash.faults import FAULTS
from tests.crash.final_states import journal_final_states, leftover_keys, store_problems
from tests.crash.invariants import Facts, violations
from tests.crash.journal import Entry, read_journals
from tests.servers import Server

PAUSE_S: Final = (0.1, 0.8)
QUEUES: Final = ("default", "default-fail")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run of the suite showed."""

    seed: str
    faults: Mapping[str, int]
    jobs: int
    refused: int
    #: Acknowledged jobs that the server lost: a violation, unless the scenario makes it forget.
    gone: int
    violations: Sequence[str]
    #: Seconds from a kill to the next start of each job that it interrupted, by the name of the fault.
    restarts_s: Mapping[str, Sequence[float]] = field(default_factory=dict[str, Sequence[float]])

    def __str__(self) -> str:
        lines = [
            f"seed {self.seed}: {self.jobs} jobs acknowledged, {self.refused} calls refused, {self.gone} gone, "
            f"{sum(self.faults.values())} faults, {len(self.violations)} violations",
            "  " + ", ".join(f"{name} {count}" for name, count in sorted(self.faults.items())),
        ]
        for name, seconds in sorted(self.restarts_s.items()):
            lines.append(
                f"  restart after {name}: {len(seconds)} jobs, p50 {_quantile(seconds, 0.5):.2f} s, "
                f"p99 {_quantile(seconds, 0.99):.2f} s, worst {max(seconds):.2f} s"
            )
        return "\n".join([*lines, *(f"  VIOLATED {sentence}" for sentence in self.violations[:50])])


async def inject(arena: Arena, names: Sequence[str], *, seconds: float) -> None:
    """Injects faults for so long, and each of them at least once; replaces the processes that died."""
    end = time.monotonic() + seconds
    waiting = list(names)
    arena.chance.shuffle(waiting)
    while time.monotonic() < end or waiting:
        name = waiting.pop() if waiting else arena.chance.choice(names)
        await FAULTS[name](arena)
        arena.replace_missing()
        await asyncio.sleep(arena.chance.uniform(*PAUSE_S))


async def examine(
    arena: Arena, *, seed: str, may_lose: bool = False, may_roll_back: bool = False, settle_s: float = 120
) -> Outcome:
    """Lets all jobs end, reads how, and checks the invariants."""
    try:
        await arena.settle(settle_s)
    except AssertionError as error:
        arena.journal.write("problem", message=f"stuck: {error}")
    await journal_final_states(arena, read_journals(arena.folder))
    for worker in arena.workers:
        if worker is not None and worker.is_alive:
            worker.terminate()
            await worker.ended(60)
    if isinstance(arena.server, Server):
        for problem in store_problems(arena.server, arena.harness.namespace, QUEUES):
            arena.journal.write("problem", message=problem)
        for key in await leftover_keys(arena, arena.server, QUEUES):
            arena.journal.write("problem", message=f"the key {key} is left over")
    return outcome_of(read_journals(arena.folder), seed=seed, may_lose=may_lose, may_roll_back=may_roll_back)


def outcome_of(entries: Sequence[Entry], *, seed: str, may_lose: bool = False, may_roll_back: bool = False) -> Outcome:
    """What the journals show."""
    facts = Facts(entries, may_lose, may_roll_back)
    return Outcome(
        seed=seed,
        faults=Counter(entry["name"] for entry in facts.of_kind("fault")),
        jobs=len(facts.acknowledged),
        refused=len(facts.of_kind("refused")),
        gone=sum(final["state"] == "missing" for final in facts.finals.values()),
        violations=violations(facts),
        restarts_s=restarts(facts),
    )


def restarts(facts: Facts) -> dict[str, list[float]]:
    """How long each attempt that a kill interrupted took to start again, while no other fault was injected."""
    found: dict[str, list[float]] = {}
    kills = [entry for entry in facts.of_kind("fault") if entry.get("is_kill")]
    outages = [(entry["since"], entry.at_ns) for entry in facts.of_kind("fault_over")]
    for attempts in facts.attempts.values():
        for before, after in itertools.pairwise(attempts):
            if before.end is not None:
                continue
            pids = {before.begin.pid, before.begin["supervisor"]}
            for kill in kills:
                if not (pids & set(kill["pids"]) and before.begin.at_ns <= kill.at_ns <= after.begin.at_ns):
                    continue
                is_disturbed = any(since < after.begin.at_ns and kill.at_ns < over for since, over in outages)
                if not is_disturbed:
                    found.setdefault(kill["name"], []).append((after.begin.at_ns - kill.at_ns) / 1e9)
    return found


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
