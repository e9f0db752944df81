"""Rules about one queue: slowness, waiting, backlog, saturation, errors, and what keeps its jobs from starting."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from rota.core.explain import format_count, format_duration
from rota.core.health.finding import Finding, Level
from rota.core.health.situation import QueueSituation
from rota.core.health.usual_values import Usual
from rota.core.metric_series import Counts

#: Runs this many times as long as usual are slow, if as many have ended and the difference is not small.
SLOW_FACTOR: Final = 4.0
SLOW_MEDIAN_FACTOR: Final = 1.5
MIN_RUNS: Final = 10
SLOW_DIFFERENCE_MS: Final = 100
#: A wait is too long above so many times the usual one and this; without history, above `LONG_WAIT_MS`.
WAIT_FACTOR: Final = 4.0
MIN_WAIT_MS: Final = 30_000
LONG_WAIT_MS: Final = 300_000
#: Waits that stop the work: so many times the usual one, and at least this.
STOPPED_FACTOR: Final = 20.0
STOPPED_MS: Final = 900_000
#: A backlog grows if more jobs arrive than end. It is too long if its last job would wait for so long.
GROWTH: Final = 1.1
MIN_BACKLOG: Final = 50
LONG_DRAIN_MS: Final = 600_000
LONG_DRAIN_WITHOUT_HISTORY_MS: Final = 1_800_000
#: Errors: so many ended attempts, this share failed, and this many standard deviations above the usual share.
MIN_ENDED: Final = 20
MIN_ERROR_SHARE: Final = 0.1
FAILING_SHARE: Final = 0.5
DEVIATIONS: Final = 5.0
USUAL_ERROR_FLOOR: Final = 0.02
#: A queue is unserved if its first job has been due for this long and no worker serves it.
UNSERVED_MS: Final = 10_000


def queue_findings(queue: QueueSituation) -> list[Finding]:
    """Returns what is unusual about a queue."""
    found = [*_held_up(queue), *_dead_letters(queue), *_errors(queue)]
    if queue.is_paused:
        return found  # its jobs wait on purpose
    return [*found, *_slow(queue), *_waiting(queue)]


def drain_ms(pending: int, arrivals_per_second: float, services_per_second: float) -> int | None:
    """Returns the time in which the pending jobs end at the present rates; None if they do not become fewer."""
    if not pending:
        return 0
    surplus = services_per_second - arrivals_per_second
    return round(pending / surplus * 1000) if surplus > 0 else None


def slow_tasks(queues: Sequence[QueueSituation]) -> Iterator[Finding]:
    """Yields the tasks that run longer than usual in a queue that as a whole does not."""
    for queue in queues:
        if _slowness(queue) >= SLOW_FACTOR:
            continue
        for task, counts in queue.recent_by_task.items():
            usual = queue.usual_by_task.get(task)
            if usual is None or not _is_slow(counts, usual):
                continue
            now, before = counts.run.mean_ms or 0, usual.run_mean_ms or 0
            yield Finding(
                key=f"slow_task:{queue.name}:{task}",
                kind="slow_task",
                level="warn",
                subject=f"{task} in {queue.name}",
                phrase=f"{_times(now / max(before, 1))} slower than usual",
                detail=_slow_detail(task, counts, usual),
                queue=queue.name,
                task=task,
                value=now,
                usual=before,
            )


def usual_error_share(usual: Usual | None) -> float:
    """Returns the share of failed attempts that is usual; at least 2 %."""
    return max(USUAL_ERROR_FLOOR, (usual.failure_rate if usual is not None else None) or 0.0)


def _slow(queue: QueueSituation) -> Iterator[Finding]:
    factor = _slowness(queue)
    if factor < SLOW_FACTOR:
        return
    tasks = [
        (task, counts, usual)
        for task, counts in queue.recent_by_task.items()
        if (usual := queue.usual_by_task.get(task)) is not None and _is_slow(counts, usual)
    ]
    if not tasks:
        return
    task, counts, usual = max(tasks, key=lambda one: one[1].run.total_ms)
    yield Finding(
        key=f"slow_queue:{queue.name}",
        kind="slow_queue",
        level="warn",
        subject=queue.name,
        phrase=f"{_times(factor)} slower than usual",
        detail=_slow_detail(task, counts, usual),
        count=len(tasks),
        queue=queue.name,
        task=task,
        names=tuple(name for name, _, _ in tasks),
        value=counts.run.mean_ms,
        usual=usual.run_mean_ms,
    )


def _slowness(queue: QueueSituation) -> float:
    """Returns how many times longer runs take than the same tasks usually do: another mix of tasks is not slower."""
    taken, expected, runs = 0.0, 0.0, 0
    for task, counts in queue.recent_by_task.items():
        usual = queue.usual_by_task.get(task)
        if usual is None or usual.run_mean_ms is None:
            continue
        taken += counts.run.total_ms
        expected += counts.run.count * max(1.0, usual.run_mean_ms)
        runs += counts.run.count
    is_measured = runs >= MIN_RUNS and taken - expected >= SLOW_DIFFERENCE_MS * runs
    return taken / expected if is_measured and expected else 0.0


def _is_slow(counts: Counts, usual: Usual) -> bool:
    """True if both the mean and the median are far above usual: one long run is no slowness."""
    mean, middle = counts.run.mean_ms, counts.run.p50_ms
    if counts.run.count < MIN_RUNS or mean is None or middle is None or usual.run_mean_ms is None:
        return False
    is_far = mean >= SLOW_FACTOR * usual.run_mean_ms and mean - usual.run_mean_ms >= SLOW_DIFFERENCE_MS
    return is_far and middle >= SLOW_MEDIAN_FACTOR * (usual.run_p50_ms or 0)


def _slow_detail(task: str, counts: Counts, usual: Usual) -> str:
    now, before = format_duration(round(counts.run.mean_ms or 0)), format_duration(round(usual.run_mean_ms or 0))
    return (
        f"{task} takes {now} on average in the last 5 minutes, and {before} {usual.source}: "
        "check what it calls, and what was deployed last"
    )


def _waiting(queue: QueueSituation) -> Iterator[Finding]:
    if _is_unserved(queue):
        return  # the finding about the missing worker says it
    usual = queue.usual.wait_p95_ms if queue.usual is not None else None
    wait = queue.oldest_wait_ms or 0
    is_long = wait >= _longest_usual_wait(queue)
    projected = _projected_wait_ms(queue)
    grows = (
        queue.pending >= MIN_BACKLOG
        and queue.arrivals_per_second > GROWTH * queue.services_per_second
        and (is_long or projected >= _longest_usual_projection(queue))
    )
    if not is_long and not grows:
        return
    is_stopped = wait >= STOPPED_MS and wait >= STOPPED_FACTOR * (usual or 0)
    level: Level = "fail" if is_stopped else "warn"
    if queue.slots and queue.busy >= queue.slots:
        yield _saturated(queue, level)
    if grows:
        yield _growing(queue, level, projected)
    if is_long:
        yield _long_wait(queue, level, wait, usual)


def _saturated(queue: QueueSituation, level: Level) -> Finding:
    return Finding(
        key=f"saturated:{queue.name}",
        kind="saturated",
        level=level,
        subject=queue.name,
        phrase="all workers busy",
        detail=f"all {format_count(queue.slots, 'slot')} of {format_count(queue.workers, 'worker')} are busy while "
        f"{format_count(queue.pending, 'job')} wait: add workers, or find out why jobs take so long",
        count=queue.busy,
        queue=queue.name,
        value=queue.busy,
        usual=queue.slots,
    )


def _growing(queue: QueueSituation, level: Level, projected: float) -> Finding:
    return Finding(
        key=f"growing_backlog:{queue.name}",
        kind="growing_backlog",
        level=level,
        subject=queue.name,
        phrase=f"{format_count(queue.pending, 'job')} waiting and growing",
        detail=f"{queue.arrivals_per_second:.1f} jobs arrive per second and {queue.services_per_second:.1f} end: "
        + (
            f"a new job waits about {format_duration(round(projected))}; add workers, or stop what enqueues them"
            if math.isfinite(projected)
            else "none has ended in the last 5 minutes; add workers, or find out why none ends"
        ),
        count=queue.pending,
        queue=queue.name,
        value=queue.pending,
    )


def _long_wait(queue: QueueSituation, level: Level, wait: int, usual: float | None) -> Finding:
    before = "" if usual is None else f", 95 % usually start within {format_duration(round(usual))}"
    return Finding(
        key=f"long_wait:{queue.name}",
        kind="long_wait",
        level=level,
        subject=queue.name,
        phrase=f"jobs wait {format_duration(wait)}",
        detail=f"the first of {format_count(queue.pending, 'pending job')} has been due for {format_duration(wait)}"
        f"{before}: see what its workers are running",
        count=queue.pending,
        queue=queue.name,
        value=wait,
        usual=usual,
    )


def _longest_usual_wait(queue: QueueSituation) -> float:
    usual = queue.usual.wait_p95_ms if queue.usual is not None else None
    return LONG_WAIT_MS if usual is None else max(MIN_WAIT_MS, WAIT_FACTOR * usual)


def _longest_usual_projection(queue: QueueSituation) -> float:
    usual = queue.usual.wait_p95_ms if queue.usual is not None else None
    return LONG_DRAIN_WITHOUT_HISTORY_MS if usual is None else max(LONG_DRAIN_MS, WAIT_FACTOR * usual)


def _projected_wait_ms(queue: QueueSituation) -> float:
    """Returns how long a job that is enqueued now waits, at the present rate."""
    return queue.pending / queue.services_per_second * 1000 if queue.services_per_second else math.inf


def _errors(queue: QueueSituation) -> Iterator[Finding]:
    failed = queue.recent.failed + queue.recent.stalled
    ended = failed + queue.recent.completed
    share = failed / ended if ended else 0.0
    expected = usual_error_share(queue.usual)
    spread = math.sqrt(ended * expected * (1 - expected)) if expected < 1 else math.inf
    if ended < MIN_ENDED or share < MIN_ERROR_SHARE or failed - ended * expected < DEVIATIONS * spread:
        return
    worst = max(queue.recent_by_task.items(), key=lambda one: one[1].failed + one[1].stalled, default=None)
    task = worst[0] if worst is not None else None
    most = f", most of them of {task}" if task is not None else ""
    usually = "" if queue.usual is None else f", usually {expected:.0%}"
    yield Finding(
        key=f"error_rate:{queue.name}",
        kind="error_rate",
        level="fail" if share >= FAILING_SHARE else "warn",
        subject=queue.name,
        phrase=f"{share:.0%} of attempts fail",
        detail=f"{failed:,} of {ended:,} attempts of the last 5 minutes failed{most}{usually}: see its errors",
        count=failed,
        queue=queue.name,
        task=task,
        value=share,
        usual=None if queue.usual is None else expected,
    )


def _is_unserved(queue: QueueSituation) -> bool:
    return not queue.workers and not queue.is_paused and (queue.oldest_wait_ms or 0) > UNSERVED_MS


def _held_up(queue: QueueSituation) -> Iterator[Finding]:
    if _is_unserved(queue):
        yield Finding(
            key=f"unserved_queue:{queue.name}",
            kind="unserved_queue",
            level="fail",
            subject=queue.name,
            phrase="has no worker",
            detail=f"{format_count(queue.pending, 'job')} are due and no worker serves the queue: start one",
            count=queue.pending,
            queue=queue.name,
        )
    if queue.is_paused:
        by = f" by {queue.paused_by}" if queue.paused_by else ""
        yield Finding(
            key=f"paused_queue:{queue.name}",
            kind="paused_queue",
            level="notice",
            subject=queue.name,
            phrase="is paused",
            detail=f"paused{by}, {format_count(queue.pending, 'job')} pending: none starts until the queue is resumed",
            count=queue.pending,
            queue=queue.name,
        )


def _dead_letters(queue: QueueSituation) -> Iterator[Finding]:
    if queue.failed:
        yield Finding(
            key=f"dead_letters:{queue.name}",
            kind="dead_letters",
            level="notice",
            subject=queue.name,
            phrase=f"has {format_count(queue.failed, 'dead letter')}",
            detail="failed for good: find the cause, then redrive or delete",
            count=queue.failed,
            queue=queue.name,
        )


def _times(factor: float) -> str:
    """Returns "30 ×", or "4.5 ×" for a small factor."""
    return f"{factor:.0f} ×" if factor >= 10 else f"{factor:.1f} ×"
