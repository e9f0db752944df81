"""Shell completion of names that the store knows: queues, tasks and job ids. Silent if there is no answer in time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final

import click

from rota.cli.common_options import Settings
from rota.cli.connection import run
from rota.errors import RotaError

if TYPE_CHECKING:
    from rota.client.rota import Rota

#: A shell waits this long for suggestions.
TIMEOUT_S: Final = 2.0
#: Number of jobs per state that are read for a completion.
MAX_JOBS: Final = 50


def complete_queue(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Returns the queues whose name begins so."""
    return _complete(context, incomplete, _queues)


def complete_task(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Returns the tasks, announced by workers, whose name begins so."""
    return _complete(context, incomplete, _tasks)


def complete_job_id(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Returns recent jobs whose id begins so, running ones first.

    Those of the queue `default` are given without it: bash splits words at a colon.
    """
    return _complete(context, incomplete, _job_ids)


async def _queues(rota: Rota) -> list[str]:
    return [info.name for info in await rota.queues()]


async def _tasks(rota: Rota) -> Iterable[str]:
    from rota.client.session import session_of

    return await session_of(rota).views.tasks()


async def _job_ids(rota: Rota) -> list[str]:
    states = ("processing", "failed", "pending", "scheduled", "blocked", "completed", "cancelled")
    pages = [await rota.jobs(state, limit=MAX_JOBS) for state in states]
    return [job.ref.full_id.removeprefix("default:") for page in pages for job in page.jobs]


def _complete(context: click.Context, incomplete: str, find: Callable[[Rota], Awaitable[Iterable[str]]]) -> list[str]:
    import asyncio

    async def names() -> Iterable[str]:
        from rota.client.rota import Rota

        settings = context.ensure_object(Settings)
        url = settings.url or _running_embedded()
        async with asyncio.timeout(TIMEOUT_S), Rota(url, namespace=settings.namespace or "rota", patience=0) as rota:
            return await find(rota)

    try:
        return [name for name in run(names()) if name.startswith(incomplete)]
    except (RotaError, OSError, TimeoutError):
        return []


def _running_embedded() -> str | None:
    """Returns the URL of the embedded server if it is used. Raises OSError if it is not running: it is not started."""
    from rota.client.rota import Rota
    from rota.client.session import sessions_of
    from rota.embedded.find_or_launch_shared_valkey import running_url

    server = sessions_of(Rota()).embedded
    if server is None:
        return None
    url = running_url(server.directory)
    if url is None:
        raise OSError("the embedded server is not running")
    return url
