"""`rota workers`: who is there, what each is doing, and how one is asked to leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from rota.cli import output
from rota.cli.settings import Settings, common_options, connected, run

if TYPE_CHECKING:
    from rota.store.views import WorkerInfo


@click.group(invoke_without_command=True)
@common_options
@click.option("--alive", is_flag=True, help="Only those that are alive.")
@click.pass_context
def command(context: click.Context, alive: bool) -> None:
    """List the workers heard of in the last day, and what each is running."""
    if context.invoked_subcommand is None:
        run(_list(context.ensure_object(Settings), only_alive=alive))


@command.command()
@common_options
@click.argument("worker")
@click.pass_obj
def drain(settings: Settings, worker: str) -> None:
    """Let a worker finish what it runs, take nothing more, and leave with code 0. WORKER is its id, or its name."""
    run(_drain(settings, worker))


async def _drain(settings: Settings, worker: str) -> None:
    async with connected(settings) as rota:
        found = await rota.drain(worker)
    if settings.json:
        output.document({"worker": found, "state": "draining"})
    else:
        output.note(f"worker {found} takes no more jobs, and leaves when those that it runs have ended")


async def _list(settings: Settings, *, only_alive: bool) -> None:
    from rota.cli.shapes import worker_shape

    async with connected(settings) as rota:
        workers = [worker for worker in await rota.workers() if worker.status == "ALIVE" or not only_alive]
    if settings.json:
        output.document({"workers": [worker_shape(worker) for worker in workers]})
    elif workers:
        output.table(worker_table(workers))
    else:
        output.note("no worker is alive" if only_alive else "no worker has been heard of in the last day")


def worker_table(workers: Sequence[WorkerInfo]) -> output.Table:
    """The workers, the latest first."""
    from rota.core.explain import span

    rows = [
        (
            worker.id,
            worker.status,
            str(worker.info.get("state", "")),
            ",".join(worker.info.get("queues", ())),
            f"{worker.info.get('busy', 0)}/{worker.info.get('slots', 0)}",
            str(worker.info.get("finished", 0)),
            f"{worker.info.get('rss_bytes', 0) / 2**20:.0f} MiB",
            f"{span(worker.silent_ms)} ago",
            _running(worker),
        )
        for worker in workers
    ]
    return output.Table(("worker", "status", "state", "queues", "slots", "finished", "memory", "seen", "running"), rows)


def _running(worker: WorkerInfo) -> str:
    running: list[dict[str, str]] = worker.info.get("running", []) if worker.status == "ALIVE" else []
    shown = [f"{job.get('job', '?')} ({job.get('task', '?')})" for job in running[:3]]
    more = f" and {len(running) - 3} more" if len(running) > 3 else ""
    return ", ".join(shown) + more
