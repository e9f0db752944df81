"""Rules about single jobs: those that run much longer than usual, and the locks that such jobs hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rota.core.explain import format_count, format_duration
from rota.core.health.finding import MAX_NAMES, Finding
from rota.core.health.situation import RunningJob, Situation

#: A job runs too long above so many times the 99th percentile of its task and this; without history, above an hour.
LONG_RUN_FACTOR: Final = 10.0
MIN_RUN_MS: Final = 60_000
LONG_RUN_MS: Final = 3_600_000
#: A lock is held too long above so many times the 99th percentile of the holder's task and this.
LOCK_FACTOR: Final = 2.0
LONG_LOCK_MS: Final = 300_000


def long_running_jobs(situation: Situation) -> Iterator[Finding]:
    """Yields one finding for each task with jobs that run too long."""
    by_task: dict[tuple[str, str], list[RunningJob]] = {}
    for job in situation.running:
        if _is_too_long(situation, job):
            by_task.setdefault((job.queue, job.task), []).append(job)
    for (queue, task), jobs in by_task.items():
        oldest = max(jobs, key=lambda job: job.age_ms)
        usual = situation.usual_of(queue, task)
        p99 = usual.run_p99_ms if usual is not None else None
        usually = "" if p99 is None else f"; 99 % usually take less than {format_duration(round(p99))}"
        others = f" and {format_count(len(jobs) - 1, 'other job')}" if len(jobs) > 1 else ""
        yield Finding(
            key=f"long_running_job:{queue}:{task}",
            kind="long_running_job",
            level="warn",
            subject=f"{task} in {queue}",
            phrase=f"has been running for {format_duration(oldest.age_ms)}",
            detail=f"{oldest.job}{others} on worker {oldest.worker}{usually}: "
            "see what its handler is doing, or cancel it",
            count=len(jobs),
            queue=queue,
            task=task,
            job=oldest.job,
            worker=oldest.worker,
            names=tuple(job.job for job in jobs[:MAX_NAMES]),
            value=oldest.age_ms,
            usual=p99,
        )


def blocked_locks(situation: Situation) -> Iterator[Finding]:
    """Yields the locks that one job holds too long while others wait."""
    running = {f"{job.job}@{job.run}": job for job in situation.running}
    for lock in situation.locks:
        holder = running.get(lock.holder)
        task = holder.task if holder is not None else None
        usual = situation.usual_of(lock.queue, task) if task is not None else None
        p99 = (usual.run_p99_ms if usual is not None else None) or 0.0
        is_stuck = holder is not None and _is_too_long(situation, holder)
        if not lock.waiting or not (is_stuck or lock.held_ms >= max(LONG_LOCK_MS, LOCK_FACTOR * p99)):
            continue
        job = lock.holder.partition("@")[0]
        yield Finding(
            key=f"blocked_lock:{lock.queue}:{lock.name}",
            kind="blocked_lock",
            level="warn",
            subject=lock.queue,
            phrase=f"{format_count(lock.waiting, 'job')} blocked by lock {lock.name}",
            detail=f"{job} has held lock {lock.name} for {format_duration(lock.held_ms)}, and "
            f"{format_count(lock.waiting, 'job')} wait for it: see what its handler is doing, or cancel it",
            count=lock.waiting,
            queue=lock.queue,
            task=task,
            job=job,
            worker=holder.worker if holder is not None else None,
            value=lock.held_ms,
        )


def _is_too_long(situation: Situation, job: RunningJob) -> bool:
    usual = situation.usual_of(job.queue, job.task)
    p99 = usual.run_p99_ms if usual is not None else None
    if p99 is None:
        return job.age_ms >= LONG_RUN_MS and not job.has_progress
    return job.age_ms >= max(MIN_RUN_MS, LONG_RUN_FACTOR * p99)
