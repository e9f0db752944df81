"""Starts `rota` with one hook applied to the supervisor first: `python -m tests.worker.hooked <hook> worker …`.

A hook changes what a worker is made of from outside, so that a test can choose the instant at which it dies, or need
not wait half a minute. Nothing of this is in the product.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from rota.cli.main import main
from rota.store.gateway import Call, Gateway
from rota.store.reports import Claimed
from rota.worker import announcer, desk, heartbeat, pool, tower
from rota.worker.desk import Desk
from rota.worker.pool import RunnerProcess
from rota.worker.tower import Tower
from rota.worker.wire import FromRunner, Outcome

#: Verbs that report the end of an attempt.
REPORTS: Final = ("complete", "fail", "snooze", "return", "give_up", "reap")


def die() -> None:
    """As by the kernel's hand."""
    os.kill(os.getpid(), signal.SIGKILL)


def impatient() -> None:
    """Gives the siblings of a handler that does not stop a second instead of thirty, and itself half a one."""
    tower.STOP_PATIENCE_S = 0.5
    tower.RETIRE_BOUND_S = 1.0


def talkative() -> None:
    """Says how it stands twice a second."""
    announcer.ANNOUNCE_S = 0.5


def hasty() -> None:
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
    take = Tower.take

    def taken(self: Tower, job: Claimed) -> None:
        take(self, job)
        asyncio.get_running_loop().call_later(0.05, die)

    Tower.take = taken


def after_handler() -> None:
    """Dies when the runner has said how the handler ended."""
    hear = Tower.hear

    def heard(self: Tower, runner: RunnerProcess, messages: list[FromRunner]) -> None:
        if any(isinstance(message, Outcome) for message in messages):
            die()
        hear(self, runner, messages)

    Tower.hear = heard


def before_report() -> None:
    """Dies when it is about to send a report."""
    _around_calls(lambda calls: bool(set(calls) & set(REPORTS)), None)


def after_report() -> None:
    """Dies when the server has stored a report, and it has not looked at the answer."""
    _around_calls(None, lambda calls, answers: bool(set(calls) & set(REPORTS)))


def silent() -> None:
    """Sends no heartbeats."""
    heartbeat.HEARTBEAT_S = 60.0


def relying_on_pushes() -> None:
    """Never looks for work unless it was told of some, or has reason to hope for it."""
    desk.LOOK_AGAIN_S = desk.LOOK_AGAIN_BUSY_S = 60.0


def stopped_while_claiming() -> None:
    """Is told to stop while the answer to a claim that brings jobs is on its way."""
    run_many = Gateway.run_many

    async def slow(self: Gateway, calls: Sequence[Call]) -> list[Any]:
        answers = await run_many(self, calls)
        if any(call.script == "claim" and _has_jobs(answer) for call, answer in zip(calls, answers, strict=True)):
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0.3)
        return answers

    Gateway.run_many = slow


def slow_to_store_lines() -> None:
    """Hears only after a while that log lines were stored."""
    run_many = Gateway.run_many

    async def slow(self: Gateway, calls: Sequence[Call]) -> list[Any]:
        answers = await run_many(self, calls)
        if any(call.script == "log" for call in calls):
            await asyncio.sleep(0.2)
        return answers

    Gateway.run_many = slow


def forgetful() -> None:
    """Does not take notice of the first job that it is given, and forgets that it asked."""
    take = Tower.take
    is_done = False

    def deaf(self: Tower, job: Claimed) -> None:
        nonlocal is_done
        if is_done:
            take(self, job)
        is_done = True

    Tower.take = deaf


def stopped_while_handed_over() -> None:
    """Is told to stop while a push that brings a job is on its way."""
    receive = Desk.receive

    def late(self: Desk, call: int, job: Claimed) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        asyncio.get_running_loop().call_later(0.3, receive, self, call, job)

    Desk.receive = late


def _has_jobs(answer: list[bytes]) -> bool:
    """Behind the five words of a claim's answer stand the records."""
    return len(answer) > 5


def _may() -> bool:
    """What a worker does before it is announced is not what the test is about."""
    return Path(os.environ["ROTA_TEST_FOLDER"], "allowed-death").exists()


def after_take() -> None:
    """Dies when it has taken news for dependents out of the outbox."""
    _around_script("take", is_before=False)


def before_deliver() -> None:
    """Dies when it is about to deliver it."""
    _around_script("deliver", is_before=True)


def after_deliver() -> None:
    """Dies when dependents have heard it, and the outbox does not know."""
    _around_script("deliver", is_before=False)


def around(name: str) -> Callable[[], None]:
    """Dies right before, or right after, the script of that name: "before:turn", "after:prepare"."""
    when, _, script = name.partition(":")
    return lambda: _around_script(script, is_before=when == "before", is_guarded=True)


def _around_script(wanted: str, *, is_before: bool, is_guarded: bool = False) -> None:
    run = Gateway.run

    async def watched(self: Gateway, name: str, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        is_it = name == wanted and (not is_guarded or _may())
        if is_it and is_before:
            die()
        answer = await run(self, name, keys, arguments)
        if is_it and not is_before and answer:
            die()
        return answer

    Gateway.run = watched


def _around_calls(
    before: Callable[[list[str]], bool] | None, after: Callable[[list[str], list[Any]], bool] | None
) -> None:
    run_many = Gateway.run_many

    async def watched(self: Gateway, calls: Sequence[Call]) -> list[Any]:
        names = [call.script for call in calls]
        if before is not None and before(names) and _may():
            die()
        answers = await run_many(self, calls)
        if after is not None and after(names, answers) and _may():
            die()
        return answers

    Gateway.run_many = watched


HOOKS: Final[dict[str, Callable[[], None]]] = {
    hook.__name__: hook
    for hook in (
        impatient, talkative, hasty, before_claim, after_claim, after_dispatch, after_handler, before_report,
        after_report, silent, stopped_while_claiming, stopped_while_handed_over, relying_on_pushes, slow_to_store_lines,
        forgetful, after_take, before_deliver, after_deliver,
    )
}  # fmt: skip


if __name__ == "__main__":
    chosen = sys.argv.pop(1)
    (HOOKS[chosen] if chosen in HOOKS else around(chosen))()
    sys.argv[0] = "rota"
    main()
