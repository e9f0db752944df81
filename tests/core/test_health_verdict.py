"""The verdict on recorded situations: incidents and healthy systems, each with the line that an operator reads."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rota.core.health.finding import Finding
from rota.core.health.queue_rules import drain_ms
from rota.core.health.situation import (
    DeadWorker,
    HeldLock,
    PausedTask,
    QueueSituation,
    RunningJob,
    ScalingSituation,
    ScheduleSituation,
    ServerRisk,
    Situation,
)
from rota.core.health.usual_values import Usual, compared_hours, usual_values
from rota.core.health.verdict import findings, verdict
from rota.core.metric_series import Counts, Times
from tests.core.health_history import times_of

MINUTE = 60_000
HOUR = 60 * MINUTE
USUAL = Usual(
    source="at this hour of earlier days",
    samples=7,
    wait_p95_ms=40.0,
    run_mean_ms=116.0,
    run_p50_ms=100.0,
    run_p99_ms=400.0,
    failure_rate=0.01,
)


def counts(runs: int, run_ms: float, failed: int = 0, waited_ms: float = 10) -> Counts:
    return Counts(
        enqueued=runs,
        started=runs,
        completed=runs - failed,
        failed=failed,
        wait=times_of([waited_ms], runs),
        run=times_of([run_ms * 0.8, run_ms, run_ms * 1.2], runs // 3),
    )


def mail(**fields: Any) -> QueueSituation:
    """A healthy queue, with differences."""
    recent: Counts = fields.pop("recent", counts(600, 116))
    usual: Usual | None = fields.pop("usual", USUAL)
    healthy: dict[str, Any] = {
        "name": "mail",
        "pending": 3,
        "oldest_wait_ms": 20,
        "arrivals_per_second": 2.0,
        "services_per_second": 2.0,
        "workers": 2,
        "slots": 8,
        "busy": 2,
        "recent": recent,
        "recent_by_task": {"send": recent},
        "usual": usual,
        "usual_by_task": {} if usual is None else {"send": usual},
    }
    return QueueSituation(**(healthy | fields))


def at(*queues: QueueSituation, **fields: Any) -> Situation:
    return Situation(at=1_800_000_000_000, queues=queues, **fields)


def job(age_ms: int, **fields: Any) -> RunningJob:
    known: dict[str, Any] = {"queue": "mail", "task": "send", "job": "mail:4711", "run": "000000012", "worker": "w1"}
    return RunningJob(age_ms=age_ms, **(known | fields))


SLOW = mail(
    recent=counts(120, 3_500),
    pending=623,
    oldest_wait_ms=250_000,
    arrivals_per_second=3.0,
    services_per_second=0.4,
    busy=8,
)
STUCK = job(40 * MINUTE)
LOCK = HeldLock(queue="mail", name="acme", holder="mail:4711@000000012", held_ms=40 * MINUTE, waiting=17)
NIGHTLY = ScheduleSituation(id="reports:nightly", queue="reports")

#: Name -> situation, and the verdict.
SITUATIONS: dict[str, tuple[Situation, str]] = {
    # --- healthy ---
    "nothing has ever run": (at(), "Healthy"),
    "an ordinary afternoon": (at(mail()), "Healthy"),
    "a queue without history and without trouble": (at(mail(usual=None)), "Healthy"),
    "a quiet queue": (at(mail(recent=Counts(), pending=0, oldest_wait_ms=None, busy=0)), "Healthy"),
    "all workers busy, nothing waits for long": (at(mail(busy=8, pending=40, oldest_wait_ms=900)), "Healthy"),
    "the nightly batch, as every night": (
        at(
            mail(
                usual=msgspec.structs.replace(USUAL, wait_p95_ms=20.0 * MINUTE),
                pending=9_000,
                oldest_wait_ms=25 * MINUTE,
                arrivals_per_second=30.0,
                services_per_second=8.0,
                busy=8,
            )
        ),
        "Healthy",
    ),
    "webhooks that fail as often as usual": (
        at(mail(recent=counts(300, 116, failed=90), usual=msgspec.structs.replace(USUAL, failure_rate=0.28))),
        "Healthy",
    ),
    "three failures in a quiet minute": (at(mail(recent=counts(6, 116, failed=3))), "Healthy"),
    "one run of ten minutes among many short ones": (
        at(
            mail(
                recent=msgspec.structs.replace(
                    counts(600, 116), run=Times(600, 70_000 + 600_000, times_of([116], 600).buckets)
                )
            )
        ),
        "Healthy",
    ),
    "more of a long task than usual": (
        at(
            mail(
                recent=counts(300, 8_000),
                recent_by_task={"send": counts(30, 116), "export": counts(270, 9_000)},
                usual_by_task={
                    "send": USUAL,
                    "export": msgspec.structs.replace(USUAL, run_mean_ms=9_000.0, run_p50_ms=8_500.0),
                },
            )
        ),
        "Healthy",
    ),
    "a queue that is paused on purpose": (
        at(mail(is_paused=True, paused_by="ana", pending=9_000, oldest_wait_ms=2 * HOUR)),
        "Healthy",
    ),
    "old dead letters": (at(mail(failed=12)), "Healthy"),
    "a machine was replaced": (
        at(mail(), dead_workers=[DeadWorker(id="w9", silent_ms=40_000, queues=["mail"], running=2)]),
        "Healthy",
    ),
    "a lock that changes hands": (
        at(mail(), locks=[HeldLock(queue="mail", name="acme", holder="mail:1@1", held_ms=300, waiting=40)]),
        "Healthy",
    ),
    "a development server without an append-only file": (
        at(mail(), risks=[ServerRisk("warn", "append-only file", "off: jobs are lost when the server crashes")]),
        "Healthy",
    ),
    # --- incidents ---
    "mail is slow": (
        at(SLOW),
        "Degraded: mail 30 × slower than usual, all workers busy, 623 jobs waiting and growing",
    ),
    "one slow task among fast ones": (
        at(
            mail(
                recent=counts(660, 116),
                recent_by_task={"send": counts(900, 116), "export": counts(12, 4_000)},
                usual_by_task={"send": USUAL, "export": msgspec.structs.replace(USUAL, run_mean_ms=400.0)},
            )
        ),
        "Degraded: export in mail 10 × slower than usual",
    ),
    "a partner is down": (at(mail(recent=counts(300, 116, failed=240))), "Critical: mail 80% of attempts fail"),
    "more errors than usual": (at(mail(recent=counts(300, 116, failed=45))), "Degraded: mail 15% of attempts fail"),
    "no worker serves the queue": (
        at(mail(workers=0, slots=0, busy=0, oldest_wait_ms=40_000)),
        "Critical: mail has no worker",
    ),
    "jobs wait although workers are free": (
        at(mail(pending=30, oldest_wait_ms=8 * MINUTE)),
        "Degraded: mail jobs wait 8 min 0 s",
    ),
    "nothing has moved for an hour": (
        at(mail(pending=900, oldest_wait_ms=HOUR, services_per_second=0.0, busy=8, recent=Counts())),
        "Critical: mail all workers busy, 900 jobs waiting and growing, jobs wait 1 h 0 min",
    ),
    "a backlog on the first day": (
        at(mail(usual=None, pending=20_000, oldest_wait_ms=90_000, arrivals_per_second=40.0, busy=8)),
        "Degraded: mail all workers busy, 20,000 jobs waiting and growing",
    ),
    "a job hangs and blocks seventeen others": (
        at(mail(), running=[STUCK], locks=[LOCK]),
        "Degraded: send in mail has been running for 40 min 0 s; mail 17 jobs blocked by lock acme",
    ),
    "a job without history hangs for hours": (
        at(mail(usual=None), running=[job(3 * HOUR)]),
        "Degraded: send in mail has been running for 3 h 0 min",
    ),
    "a schedule did not fire": (
        at(mail(), schedules=[msgspec.structs.replace(NIGHTLY, overdue_ms=20 * MINUTE)]),
        "Critical: schedule nightly is 20 min 0 s overdue",
    ),
    "the nightly run failed": (
        at(
            mail(),
            schedules=[
                msgspec.structs.replace(
                    NIGHTLY, last_job="reports:nightly-1", has_last_run_failed=True, error="KeyError: 'total'"
                )
            ],
        ),
        "Degraded: schedule nightly failed in its last run",
    ),
    "a schedule skipped its tick": (
        at(mail(), schedules=[msgspec.structs.replace(NIGHTLY, missed="the previous run had not ended")]),
        "Degraded: schedule nightly missed its last tick",
    ),
    "the only worker died": (
        at(
            mail(workers=0, slots=0, busy=0, oldest_wait_ms=4_000),
            dead_workers=[DeadWorker(id="w9", silent_ms=15_000, queues=["mail"], running=2)],
        ),
        "Degraded: worker w9 stopped sending heartbeats",
    ),
    "the server is nearly full": (
        at(mail(), risks=[ServerRisk("warn", "memory", "3.7 GB of 4.0 GB in use")]),
        "Degraded: store at risk (memory)",
    ),
    "the disk is full": (
        at(mail(), risks=[ServerRisk("fail", "disk", "the last AOF write failed")]),
        "Critical: store at risk (disk)",
    ),
    "a compensation failed": (at(mail(), parked_workflows=["order-1"]), "Critical: 1 workflow half undone"),
    "the autoscaler is gone": (
        at(mail(), scaling=ScalingSituation(silent_ms=10 * MINUTE)),
        "Degraded: autoscaler has stopped",
    ),
    "the pool is at its limit": (
        at(mail(), scaling=ScalingSituation(workers=10, max_workers=10, needed=25, oldest_wait_ms=4 * MINUTE)),
        "Degraded: autoscaler at its limit of 10 workers",
    ),
    "everything at once": (
        at(
            SLOW,
            mail(name="images", workers=0, slots=0, busy=0, oldest_wait_ms=HOUR),
            mail(name="web", recent=counts(300, 116, failed=45)),
            parked_workflows=["order-1"],
        ),
        "Critical: 1 workflow half undone; images has no worker; mail 30 × slower than usual, all workers busy, "
        "623 jobs waiting and growing; and 1 more",
    ),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_verdict_on_a_recorded_situation(name: str) -> None:
    situation, line = SITUATIONS[name]

    assert verdict(findings(situation)).text == line


def test_there_are_enough_situations_of_both_kinds() -> None:
    healthy = [name for name, (_, line) in SITUATIONS.items() if line == "Healthy"]

    assert len(healthy) >= 15
    assert len(SITUATIONS) - len(healthy) >= 15


def only(situation: Situation, kind: str) -> Finding:
    (found,) = (one for one in findings(situation) if one.kind == kind)
    return found


def test_a_slow_queue_names_the_task_and_both_durations() -> None:
    found = only(at(SLOW), "slow_queue")

    assert (found.queue, found.task, found.value, found.usual) == ("mail", "send", 3_500.0, 116.0)
    assert found.detail.startswith(
        "send takes 3.5 s on average in the last 5 minutes, and 116 ms at this hour of earlier days: "
    )


def test_every_finding_has_its_own_key_and_says_what_to_do() -> None:
    found = [one for situation, _ in SITUATIONS.values() for one in findings(situation)]

    for situation, _ in SITUATIONS.values():
        keys = [one.key for one in findings(situation)]
        assert len(keys) == len(set(keys))
    assert all(one.detail and one.text for one in found)
    assert len({one.kind for one in found}) >= 17


def test_notices_are_listed_and_do_not_degrade() -> None:
    situation = at(
        mail(is_paused=True, paused_by="ana", failed=2),
        paused_tasks=[PausedTask(task="send", queue="mail", by="ana", waiting=4)],
        held_workflows=["order-2"],
        schedules=[msgspec.structs.replace(NIGHTLY, is_orphaned=True)],
    )

    found = findings(situation)

    assert {one.kind for one in found} == {
        "paused_queue",
        "paused_task",
        "dead_letters",
        "held_workflows",
        "orphaned_schedule",
    }
    assert {one.level for one in found} == {"notice"}
    assert only(situation, "paused_queue").detail.startswith("paused by ana")


def test_a_hundred_findings_are_listed_at_most_and_the_worst_stay() -> None:
    queues = [mail(name=f"q{number}", failed=1) for number in range(300)]

    found = findings(at(*queues, parked_workflows=["order-1"]))

    assert len(found) == 100
    assert found[0].kind == "parked_workflows"


@pytest.mark.parametrize(
    ("pending", "arrivals", "services", "expected"),
    [(0, 2.0, 1.0, 0), (600, 1.0, 3.0, 300_000), (600, 3.0, 1.0, None), (600, 0.0, 0.0, None)],
)
def test_the_time_to_drain_is_that_of_the_surplus(
    pending: int, arrivals: float, services: float, expected: int | None
) -> None:
    assert drain_ms(pending, arrivals, services) == expected


HOUR_NUMBER = 500_000


def test_the_same_hour_of_earlier_days_and_weeks_is_usual() -> None:
    hours = {HOUR_NUMBER - 24 * day: counts(99, 100) for day in range(1, 8)}

    found = usual_values(HOUR_NUMBER, hours)

    assert found is not None
    assert (found.source, found.samples, found.run_mean_ms) == ("at this hour of earlier days", 7, 100.0)


def test_a_weekly_peak_is_usual_on_its_day() -> None:
    hours = {HOUR_NUMBER - 24 * day: counts(99, 100) for day in range(1, 30)}
    hours |= {HOUR_NUMBER - 7 * 24 * week: counts(99, 5_000) for week in range(1, 5)}

    on_its_day, a_day_later = usual_values(HOUR_NUMBER, hours), usual_values(HOUR_NUMBER + 24, hours)

    assert on_its_day is not None
    assert a_day_later is not None
    assert (on_its_day.run_mean_ms, a_day_later.run_mean_ms) == (5_000.0, 100.0)


def test_without_days_the_last_day_is_usual_and_without_it_the_last_hour() -> None:
    of_day = usual_values(HOUR_NUMBER, {HOUR_NUMBER - 3: counts(99, 100)})
    of_hour = usual_values(HOUR_NUMBER, {}, counts(99, 200))

    assert of_day is not None
    assert of_hour is not None
    assert (of_day.source, of_day.run_mean_ms) == ("in the last day", 100.0)
    assert (of_hour.source, of_hour.run_mean_ms) == ("in the last hour", 200.0)
    assert usual_values(HOUR_NUMBER, {HOUR_NUMBER - 24: counts(3, 100)}, counts(3, 100)) is None


def test_at_most_60_hours_are_compared() -> None:
    hours = compared_hours(HOUR_NUMBER)

    assert len(hours) <= 60
    assert max(hours) == HOUR_NUMBER - 1
    assert HOUR_NUMBER - 28 * 24 in hours
