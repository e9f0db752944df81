"""`rota workers`: lists workers with their running jobs; drains one, or withdraws that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from rota.cli import output
from rota.cli.audit import audit
from rota.cli.common_options import Settings, common_options
from rota.cli.connection import connected, run

if TYPE_CHECKING:
    from rota.store.reads import WorkerInfo


@click.group(invoke_without_command=True)
@common_options
@click.option("--alive", is_flag=True, help="Only live workers.")
@click.pass_context
def command(context: click.Context, alive: bool) -> None:
    """List the workers seen in the last 24 hours, with their running jobs."""
    if context.invoked_subcommand is None:
        run(_list(context.ensure_object(Settings), only_alive=alive))


@command.command()
@common_options
@click.argument("worker")
@click.pass_obj
def drain(settings: Settings, worker: str) -> None:
    """Drain a worker: it claims no more jobs, finishes its running jobs, and exits with 0. WORKER is its id or name."""
    run(_drain(settings, worker))


@command.command()
@common_options
@click.argument("worker")
@click.pass_obj
def undrain(settings: Settings, worker: str) -> None:
    """Withdraw a drain: the worker claims jobs again. Possible until it has drained. WORKER is its id or name."""
    run(_undrain(settings, worker))


async def _undrain(settings: Settings, worker: str) -> None:
    async with connected(settings) as rota:
        found = await rota.undrain(worker)
        await audit(rota, "undrain", f"worker {found}")
    if settings.json:
        output.document({"worker": found, "state": "active"})
    else:
        output.note(f"worker {found} claims jobs again")


async def _drain(settings: Settings, worker: str) -> None:
    async with connected(settings) as rota:
        found = await rota.drain(worker)
        await audit(rota, "drain", f"worker {found}")
    if settings.json:
        output.document({"worker": found, "state": "draining"})
    else:
        output.note(f"worker {found} is draining: it claims no more jobs, and exits when its running jobs have ended")


async def _list(settings: Settings, *, only_alive: bool) -> None:
    from rota.cli.to_json import worker_json

    async with connected(settings) as rota:
        workers = [worker for worker in await rota.workers() if worker.status == "ALIVE" or not only_alive]
    if settings.json:
        output.document({"workers": [worker_json(worker) for worker in workers]})
    elif workers:
        output.table(worker_table(workers))
    else:
        output.note("no live workers" if only_alive else "no worker was seen in the last 24 hours")


def worker_table(workers: Sequence[WorkerInfo]) -> output.Table:
    """Returns a table of workers."""
    from rota.core.explain import format_duration

    rows = [
        (
            worker.id,
            shown_status(worker),
            str(worker.info.get("state", "")),
            ",".join(worker.info.get("queues", ())),
            f"{worker.info.get('busy', 0)}/{worker.info.get('slots', 0)}",
            str(worker.info.get("finished", 0)),
            f"{worker.info.get('rss_bytes', 0) / 2**20:.0f} MiB",
            f"{format_duration(worker.silent_ms)} ago",
            _running(worker),
        )
        for worker in workers
    ]
    return output.Table(("worker", "status", "state", "queues", "slots", "finished", "memory", "seen", "running"), rows)


def shown_status(worker: WorkerInfo) -> str:
    """Returns ALIVE, DEAD, or STOPPED for a worker that exited regularly."""
    return "STOPPED" if worker.status == "DEAD" and worker.info.get("state") == "stopped" else worker.status


def _running(worker: WorkerInfo) -> str:
    running: list[dict[str, str]] = worker.info.get("running", []) if worker.status == "ALIVE" else []
    shown = [f"{job.get('job', '?')} ({job.get('task', '?')})" for job in running[:3]]
    more = f" and {len(running) - 3} more" if len(running) > 3 else ""
    return ", ".join(shown) + more
