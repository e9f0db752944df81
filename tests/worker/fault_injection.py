"""Starts `rota` with a fault injected into the supervisor: `python -m tests.worker.fault_injection <hook> worker …`.

A hook patches the worker's modules, so that a test can choose the instant of a crash, or need not wait for a timeout of
half a minute. None of this is in the product.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from rota.cli.main import main
from rota.core.lease_heartbeat_poll_and_grace_durations import WorkerDurations
from rota.store.claim_replies import ClaimedJob
from rota.store.redis.retrying_client import Argument, RedisClient, ScriptCall
from rota.worker import dispatcher, registration_loop
from rota.worker.claim_report_loop import ClaimReportLoop
from rota.worker.dispatcher import Dispatcher
from rota.worker.follow_lease_and_heartbeat_settings import CurrentDurations
from rota.worker.monitoring import background_stderr_handler
from rota.worker.runners import pool
from rota.worker.runners.pool import RunnerProcess
from rota.worker.runners.protocol import AttemptEnded, AttemptStopped, FromRunner

#: Verbs that report the end of an attempt.
REPORTS: Final = (
    "complete",
    "fail",
    "snooze",
    "return",
    "cancel_self",
    "confirm_cancelled_run_stopped",
    "report_dead_process",
)


def die() -> None:
    """As by the kernel's hand."""
    os.kill(os.getpid(), signal.SIGKILL)


def short_stop_grace() -> None:
    """Gives the siblings of a handler that does not stop a second instead of thirty, and itself half a one."""
    dispatcher.STOP_PATIENCE_S = 0.5
    dispatcher.RETIRE_BOUND_S = 1.0


def small_log_buffer() -> None:
    """Drops log lines after 2 kB instead of 4 MiB."""
    background_stderr_handler.MAX_BYTES = 2_000


def frequent_registration() -> None:
    """Registers twice a second."""
    registration_loop.REGISTER_S = 0.5


def fast_runner_restart() -> None:
    """Starts runners again after a twentieth of a second instead of a whole one, and gives up after three rounds."""
    pool.RESTART_PAUSE_S = 0.05
    pool.MAX_FAILED_ROUNDS = 3


def before_claim() -> None:
    """Dies when it has decided to claim, and has not."""
    _around_calls(lambda calls: "claim" in calls, None)


def after_claim() -> None:
    """Dies when the server has leased jobs to it, and it has not looked at the answer."""
    _around_calls(
        None, lambda calls, answers: any(_has_jobs(a) for c, a in zip(calls, answers, strict=True) if c == "claim")
    )


def after_dispatch() -> None:
    """Dies when the runner has been given a job."""
    dispatch = Dispatcher.dispatch

    def dispatched(self: Dispatcher, claimed: ClaimedJob) -> None:
        dispatch(self, claimed)
        asyncio.get_running_loop().call_later(0.05, die)

    Dispatcher.dispatch = dispatched


def after_handler() -> None:
    """Dies when the runner has reported how the handler ended."""
    on_messages = Dispatcher.on_messages

    def received(self: Dispatcher, runner: RunnerProcess, messages: list[FromRunner]) -> None:
        if any(isinstance(message, AttemptEnded | AttemptStopped) for message in messages):
            die()
        on_messages(self, runner, messages)

    Dispatcher.on_messages = received


def before_report() -> None:
    """Dies when it is about to send a report."""
    _around_calls(lambda calls: bool(set(calls) & set(REPORTS)), None)


def after_report() -> None:
    """Dies when the server has stored a report, and it has not looked at the answer."""
    _around_calls(None, lambda calls, answers: bool(set(calls) & set(REPORTS)))


def no_heartbeats() -> None:
    """Sends no heartbeats."""
    use = CurrentDurations._use

    def without_heartbeats(self: CurrentDurations, durations: WorkerDurations, **others: int) -> None:
        use(self, durations, heartbeat_ms=60_000, gap_ms=others["gap_ms"])

    setattr(CurrentDurations, "_use", without_heartbeats)  # noqa: B010


def no_polling() -> None:
    """Claims only after wake-ups, or where the last claim was answered in full."""
    use = CurrentDurations._use

    def without_polls(self: CurrentDurations, durations: WorkerDurations, **others: int) -> None:
        use(self, durations, heartbeat_ms=others["heartbeat_ms"], gap_ms=others["gap_ms"])
        self.poll_s = self.busy_poll_s = 60.0

    setattr(CurrentDurations, "_use", without_polls)  # noqa: B010


def sigterm_during_claim() -> None:
    """Gets SIGTERM while the answer to a claim that brings jobs is on its way."""
    run_many = RedisClient.run_many

    async def slow(self: RedisClient, calls: Sequence[ScriptCall]) -> list[Any]:
        answers = await run_many(self, calls)
        if any(call.script == "claim" and _has_jobs(answer) for call, answer in zip(calls, answers, strict=True)):
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0.3)
        return answers

    RedisClient.run_many = slow


def slow_log_writes() -> None:
    """Gets the answer to stored log lines late."""
    run_many = RedisClient.run_many

    async def slow(self: RedisClient, calls: Sequence[ScriptCall]) -> list[Any]:
        answers = await run_many(self, calls)
        if any(call.script == "append_log" for call in calls):
            await asyncio.sleep(0.2)
        return answers

    RedisClient.run_many = slow


def late_claim_reply() -> None:
    """Gets the answer to the first claim that brings a job, once that is allowed, after more than a lease."""
    run_many = RedisClient.run_many
    is_done = False

    async def slow(self: RedisClient, calls: Sequence[ScriptCall]) -> list[Any]:
        nonlocal is_done
        answers = await run_many(self, calls)
        if not is_done and _may():
            for call, answer in zip(calls, answers, strict=True):
                if call.script == "claim" and _has_jobs(answer):
                    is_done = True
                    await asyncio.sleep(6)
        return answers

    RedisClient.run_many = slow


def sigterm_during_push() -> None:
    """Gets SIGTERM while a push that brings a job is on its way."""
    on_pushed_job = ClaimReportLoop.on_pushed_job

    def late(self: ClaimReportLoop, call_number: int, job: ClaimedJob) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        asyncio.get_running_loop().call_later(0.3, on_pushed_job, self, call_number, job)

    ClaimReportLoop.on_pushed_job = late


def wrong_clock() -> None:
    """Has a clock that is wrong by ROTA_TEST_WRONG_CLOCK_S."""
    right, error = time.time, float(os.environ["ROTA_TEST_WRONG_CLOCK_S"])
    time.time = lambda: right() + error


def _has_jobs(answer: list[bytes]) -> bool:
    """Behind the five words of a claim's answer stand the records."""
    return len(answer) > 5


def _may() -> bool:
    """True once the test allows the crash: what a worker does at its start does not count."""
    return Path(os.environ["ROTA_TEST_FOLDER"], "allowed-death").exists()


def after_take() -> None:
    """Dies when it has taken outcomes for dependents out of the outbox."""
    _around_script("take_outbox", is_before=False)


def before_deliver() -> None:
    """Dies when it is about to deliver it."""
    _around_script("apply_parent_outcomes", is_before=True)


def after_deliver() -> None:
    """Dies when dependents have got them, before the outbox is acknowledged."""
    _around_script("apply_parent_outcomes", is_before=False)


def around(name: str) -> Callable[[], None]:
    """Dies right before, or right after, the script of that name: "before:cancel", "after:prepare_dependents"."""
    when, _, script = name.partition(":")
    return lambda: _around_script(script, is_before=when == "before", is_guarded=True)


def _around_script(wanted: str, *, is_before: bool, is_guarded: bool = False) -> None:
    run = RedisClient.run

    async def watched(self: RedisClient, name: str, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        is_it = name == wanted and (not is_guarded or _may())
        if is_it and is_before:
            die()
        answer = await run(self, name, keys, arguments)
        if is_it and not is_before and answer:
            die()
        return answer

    RedisClient.run = watched


def at_point(point: str) -> Callable[[], None]:
    """Dies right before, or right after, the first call of a script, however it is sent: "at:before:claim"."""
    _, when, script = point.split(":")

    def patch() -> None:
        def die_at(scripts: Sequence[str], moment: str) -> None:
            if moment == when and script in scripts and _may():
                die()

        run, run_many, run_apart = RedisClient.run, RedisClient.run_many, RedisClient.run_on_separate_connection

        async def watched_run(self: RedisClient, name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
            die_at([name], "before")
            answer = await run(self, name, keys, arguments)
            die_at([name], "after")
            return answer

        async def watched_many(self: RedisClient, calls: Sequence[ScriptCall]) -> list[Any]:
            die_at([call.script for call in calls], "before")
            answers = await run_many(self, calls)
            die_at([call.script for call in calls], "after")
            return answers

        async def watched_apart(
            self: RedisClient, name: str, keys: Sequence[str], arguments: Sequence[Argument]
        ) -> Any:
            die_at([name], "before")
            answer = await run_apart(self, name, keys, arguments)
            die_at([name], "after")
            return answer

        RedisClient.run, RedisClient.run_many = watched_run, watched_many
        RedisClient.run_on_separate_connection = watched_apart

    return patch


def hook_of(name: str) -> Callable[[], None]:
    """The hook of a name: one of HOOKS, or a point before or after a script."""
    if name in HOOKS:
        return HOOKS[name]
    return at_point(name) if name.startswith("at:") else around(name)


def _around_calls(
    before: Callable[[list[str]], bool] | None, after: Callable[[list[str], list[Any]], bool] | None
) -> None:
    run_many = RedisClient.run_many

    async def watched(self: RedisClient, calls: Sequence[ScriptCall]) -> list[Any]:
        names = [call.script for call in calls]
        if before is not None and before(names) and _may():
            die()
        answers = await run_many(self, calls)
        if after is not None and after(names, answers) and _may():
            die()
        return answers

    RedisClient.run_many = watched


HOOKS: Final[dict[str, Callable[[], None]]] = {
    hook.__name__: hook
    for hook in (
        short_stop_grace,
        frequent_registration,
        small_log_buffer,
        fast_runner_restart,
        before_claim,
        after_claim,
        after_dispatch,
        after_handler,
        before_report,
        after_report,
        no_heartbeats,
        sigterm_during_claim,
        sigterm_during_push,
        no_polling,
        slow_log_writes,
        late_claim_reply,
        wrong_clock,
        after_take,
        before_deliver,
        after_deliver,
    )
}


if __name__ == "__main__":
    for chosen in sys.argv.pop(1).split(","):
        hook_of(chosen)()
    sys.argv[0] = "rota"
    main()
