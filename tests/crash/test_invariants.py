"""The checker of journals notices each violation, and excuses what a fault explains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.crash.invariants import AFTER_FAULT_NS, INVARIANTS, Facts, violations
from tests.crash.journal import Entry, Journal, read_journals

JOB: Final = {"job": "default:a", "run": "1"}
SECOND: Final = 10**9


def entry(at_s: float, kind: str, pid: int = 1, **data: Any) -> Entry:
    return Entry(int(at_s * SECOND), pid, kind, data)


def sent(at_s: float = 0, id: str = "a", delay_s: float = 0, version: int = 0) -> Entry:
    return entry(at_s, "sent", id=id, delay_s=delay_s, parents=[], expected="completed", version=version)


def acknowledged(job: dict[str, str] = JOB, expected: str = "completed", **more: Any) -> Entry:
    details: dict[str, Any] = {"version": 0, "parents": [], **more}
    return Entry(SECOND // 10, 1, "acknowledged", {**job, "expected": expected, **details})


def begin(at_s: float, fence: int = 1, pid: int = 1, job: dict[str, str] = JOB, **more: Any) -> Entry:
    details: dict[str, Any] = {"task": "work", "lock": "", "queue": "default", "version": 0, "failures": 0, "key": ""}
    data = {**job, "attempt": 1, "fence": fence, "supervisor": 100 + pid, **details, **more}
    return Entry(int(at_s * SECOND), pid, "begin", data)


def end(at_s: float, fence: int = 1, pid: int = 1, job: dict[str, str] = JOB, outcome: str = "ok") -> Entry:
    return Entry(int(at_s * SECOND), pid, "end", {**job, "attempt": 1, "fence": fence, "outcome": outcome})


def final(state: str = "completed", fence: int = 1, job: dict[str, str] = JOB, verbs: Sequence[Any] = ()) -> Entry:
    result = {"fence": fence} if state == "completed" else None
    ended = list(verbs) or [["complete", state]]
    return Entry(90 * SECOND, 1, "final", {**job, "state": state, "result": result, "verbs": ended})


GOOD: Final = [sent(), acknowledged(), begin(1), end(2), final()]
OTHER: Final = {"job": "default:b", "run": "2"}
FREEZE: Final = entry(6, "fault_over", name="freeze_host", pids=[101], since=SECOND)

#: name of the invariant -> journals that violate it
BAD: Final[list[tuple[str, list[Entry]]]] = [
    ("acknowledged_jobs_end_once", [sent(), acknowledged()]),
    ("acknowledged_jobs_end_once", [acknowledged(), final("missing")]),
    ("acknowledged_jobs_end_once", [acknowledged(), begin(1), final("processing")]),
    ("acknowledged_jobs_end_once", [acknowledged(), begin(1), final("failed")]),
    ("acknowledged_jobs_end_once", [*GOOD[:4], final(verbs=[["complete", "completed"], ["fail", "failed"]])]),
    ("accepted_effects_have_the_newest_fence", [*GOOD[:4], begin(1.5, fence=2, pid=2), final()]),
    ("accepted_effects_have_the_newest_fence", [acknowledged(), final()]),
    ("a_claim_starts_its_handler_once", [*GOOD, begin(3), end(4)]),
    ("a_claim_starts_its_handler_once", [begin(1, fence=2), end(2, fence=2), begin(3, pid=2), end(4, pid=2)]),
    ("nothing_starts_early", [sent(delay_s=5), acknowledged(), begin(1), end(2), final()]),
    (
        "nothing_starts_early",
        [begin(1), end(2, outcome="error"), begin(2.1, fence=2, failures=1), end(3, fence=2)],
    ),
    (
        "nothing_starts_before_its_dependencies",
        [acknowledged(parents=["default:b@2"]), begin(1), end(2), begin(3, job=OTHER), end(4, job=OTHER)],
    ),
    (
        "no_lock_has_two_holders",
        [
            *(begin(1, lock="l"), begin(2, fence=2, pid=2, job=OTHER, lock="l")),
            *(end(3), end(4, fence=2, pid=2, job=OTHER)),
        ],
    ),
    ("no_id_has_two_holders", [begin(1), begin(2, fence=2, pid=2), end(3), end(4, fence=2, pid=2)]),
    ("no_id_has_two_holders", [begin(1), begin(2, fence=2, pid=2), end(7), end(4, fence=2, pid=2), final(), FREEZE]),
    (
        "at_most_once_starts_at_most_once",
        [acknowledged(expected="once"), begin(1), begin(2, fence=2), end(3, fence=2), final(fence=2)],
    ),
    (
        "no_worker_exceeds_its_limit",
        [
            *(begin(1, task="work_alone"), begin(2, task="work_alone", fence=2, job=OTHER)),
            *(end(3), end(4, fence=2, job=OTHER)),
        ],
    ),
    ("no_update_is_lost", [acknowledged(expected="shared", version=2), begin(1, version=1), end(2)]),
    ("a_call_makes_one_job", [begin(1, key="k"), end(2), begin(3, key="k", fence=2, job=OTHER), end(4, job=OTHER)]),
    (
        "a_tick_makes_one_run",
        [begin(1, task="tick"), end(2), begin(3, task="tick", fence=2, job={**JOB, "run": "2"})],
    ),
    ("a_dead_letter_is_handled", [acknowledged(expected="failed"), begin(1), end(2), final("failed")]),
    (
        "counters_agree",
        [
            entry(
                99,
                "totals",
                queue="default",
                counts={"completed": 1, "failed": 0, "cancelled": 0},
                totals={"completed": 2},
            )
        ],
    ),
    ("indexes_and_records_agree", [entry(99, "problem", message="1 is pending and completed")]),
]
#: Journals that violate nothing.
EXCUSED: Final[list[list[Entry]]] = [
    GOOD,
    [begin(1), begin(6.5, fence=2, pid=2), end(7), end(8, fence=2, pid=2), final(fence=2), FREEZE],
    [begin(1, fence=2, pid=2), end(2, fence=2, pid=2), begin(7), end(8, outcome="stopped"), final(fence=2), FREEZE],
    [sent(delay_s=15), begin(1), entry(0.5, "fault", name="move_server_clock", pids=[], jump_ms=20_000)],
    [begin(1), begin(6, fence=2, pid=2), end(7), end(8, fence=2, pid=2), entry(5, "starved", seconds=4.0)],
]


@pytest.mark.parametrize(("name", "entries"), BAD)
def test_each_violation_is_noticed_by_its_invariant(name: str, entries: list[Entry]) -> None:
    facts = Facts(sorted(entries, key=lambda one: one.at_ns))

    assert list(INVARIANTS[name](facts)), violations(facts)


@pytest.mark.parametrize("entries", EXCUSED)
def test_what_a_fault_explains_is_excused(entries: list[Entry]) -> None:
    assert violations(Facts(sorted(entries, key=lambda one: one.at_ns))) == []


def test_a_fault_that_is_long_over_excuses_nothing() -> None:
    late = FREEZE.at_ns / SECOND + AFTER_FAULT_NS / SECOND + 1
    entries = [FREEZE, begin(late - 2), begin(late, fence=2, pid=2), end(late + 1), end(late + 2, fence=2, pid=2)]

    assert violations(Facts(entries)) != []


def test_every_invariant_has_a_journal_that_violates_it() -> None:
    assert {name for name, _ in BAD} == INVARIANTS.keys()


def test_a_journal_is_read_in_the_order_of_its_times(tmp_path: Path) -> None:
    first, second = Journal(tmp_path, "handler"), Journal(tmp_path, "producer")
    first.write("begin", number=1)
    second.write("sent", number=2)
    first.write("end", number=3)

    assert [one["number"] for one in read_journals(tmp_path)] == [1, 2, 3]
