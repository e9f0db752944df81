"""Starts server and autoscaler, runs jobs of every kind and shows them live: until Ctrl-C, or one round (`--once`)."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import logging
import random
import signal
import sys
import time
from contextlib import suppress
from typing import Any, Final

from examples.demo.kinds import KINDS, LAST, Kind, Show, play
from examples.demo.orders import WORKFLOWS
from examples.demo.screen import Scene, keep_showing, open_screen, print_summary
from examples.demo.stage import Stage, open_stage
from examples.demo.tasks import chore, download, greet, rota, thumbnail
from rota import Call

#: Between the kinds of one round, so that the screen can be followed.
PAUSE_S: Final = 1.2
#: Between the jobs of the background load.
LOAD_INTERVAL_S: Final = 0.4
START_S: Final = 30.0
#: Until a worker that is no longer needed has left.
LEAVE_S: Final = 30.0
INTERRUPTED: Final = 130
ORDER: Final = (*KINDS, *WORKFLOWS, LAST)


async def run(*, is_endless: bool) -> int:
    """Runs the demo. Returns the exit code."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with open_stage() as stage:
        scene = Scene(Show(stage), is_endless)
        playing = asyncio.create_task(_play(stage, scene))
        waiting = asyncio.create_task(stopped.wait())
        await asyncio.wait((playing, waiting), return_when=asyncio.FIRST_COMPLETED)
        is_over = playing.done()
        for task in (playing, waiting):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await rota.close()
        are_ok = all(outcome.is_ok for outcome in scene.outcomes) and not scene.pool_error
        if not is_endless and is_over:
            print_summary(sorted(scene.outcomes, key=lambda outcome: ORDER.index(outcome.kind)))
        print(scene.pool_error or scene.pool.summary())
        print(f"{scene.footer()}; {scene.verdict()}")
        if not are_ok:
            print(stage.complaints(), file=sys.stderr)
    if is_endless:
        return 0
    return (0 if are_ok else 1) if is_over else INTERRUPTED


async def _play(stage: Stage, scene: Scene) -> None:
    print("The embedded server is running, the autoscaler is starting a worker. To watch it from another terminal:")
    print(f"  .venv/bin/rota top --url {stage.url}", flush=True)
    await _worker_is_up()
    await _api_is_up(stage)
    scene.started_at = time.monotonic()
    showing = asyncio.create_task(keep_showing(scene, open_screen()))
    try:
        if scene.is_endless:
            async with asyncio.TaskGroup() as group:
                group.create_task(_background_load(scene.show))
                while True:
                    await _round(scene, PAUSE_S)
        await _round(scene, 0.2)
        await asyncio.sleep(1)  # so that the last messages can be read
    finally:
        showing.cancel()
        with suppress(asyncio.CancelledError):
            await showing


async def _worker_is_up() -> None:
    async with asyncio.timeout(START_S):
        while True:
            if any(worker.status == "ALIVE" for worker in await rota.workers()):
                return
            await asyncio.sleep(0.05)


async def _api_is_up(stage: Stage) -> None:
    async with asyncio.timeout(START_S):
        while True:
            address = stage.address
            if address is not None:
                break
            stage.restart_server()
            await asyncio.sleep(0.05)
    print("Dashboard and HTTP API, on this machine only:")
    print(f"  {address}", flush=True)


async def _round(scene: Scene, pause: float) -> None:
    """Runs every kind once, and at the end, without disturbing others, the one that kills a worker."""
    kinds = [*KINDS, *WORKFLOWS]
    if scene.is_endless:
        random.shuffle(kinds)
    async with asyncio.TaskGroup() as group:
        for kind in kinds:
            group.create_task(_play_one(kind, scene))
            await asyncio.sleep(pause)
    if not scene.is_endless:
        await _worker_has_left(scene)
    await _play_one(LAST, scene)


async def _worker_has_left(scene: Scene) -> None:
    """Waits until the autoscaler has drained a worker that it had started for this round."""
    try:
        async with asyncio.timeout(LEAVE_S):
            # On a slow machine: a worker that has not booted when it is no longer needed leaves without draining.
            while len(scene.pool.joined) < 2:
                for job in await rota.enqueue_many([chore.call(number) for number in range(20)]):
                    scene.show.name(job, "chore")
                await asyncio.sleep(1)
            await scene.pool.has_drained.wait()
    except TimeoutError:
        scene.pool_error = f"NOT OK: no worker has drained within {LEAVE_S:g} s; {scene.pool.summary()}"
        scene.show.say(scene.pool_error)


async def _play_one(kind: Kind, scene: Scene) -> None:
    outcome = await play(kind, scene.show)
    scene.outcomes.append(outcome)
    if not outcome.is_ok:
        scene.show.say(f"NOT OK: {kind.name}: expected {kind.expected}, but {outcome.actual}")


async def _background_load(show: Show) -> None:
    """Background load: many small jobs, and now and then a long one."""
    for number in itertools.count():
        small = (chore.call(number), greet.call(f"number {number}"), thumbnail.call(f"{number}.png"))
        long = download.using(priority="low").call(random.randint(10, 80))
        call: Call[Any] = long if number % 6 == 0 else random.choice(small)
        show.name(await rota.enqueue(call), call.task.name)
        await asyncio.sleep(LOAD_INTERVAL_S)


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    parser.add_argument("--once", action="store_true", help="run one round, print a summary, and exit")
    given = parser.parse_args()
    logging.disable(logging.INFO)
    return asyncio.run(run(is_endless=not given.once))


if __name__ == "__main__":
    sys.exit(main())
