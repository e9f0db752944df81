"""`rota worker`: run jobs until told to stop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from rota.cli.apps import check_settings, declared_by, python, use_url
from rota.cli.settings import Settings, connection_options

if TYPE_CHECKING:
    from rota.worker.config import WorkerConfig

LOG_LEVELS: Final = ("debug", "info", "warning", "error")
LOG_FORMATS: Final = ("text", "json")


def concurrency(context: click.Context, parameter: click.Parameter, value: str) -> int | Literal["auto"]:
    """A number of slots, or "auto". Whether the number is a sensible one is for `WorkerConfig` to say."""
    if value == "auto":
        return "auto"
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a number nor auto") from None


concurrency_option = click.option(
    "--concurrency",
    metavar="N|auto",
    callback=concurrency,
    default="10",
    show_default=True,
    help="Jobs at the same time, or auto: by CPU use.",
)
log_format_option = click.option("--log-format", type=click.Choice(LOG_FORMATS), default="text", show_default=True)
log_level_option = click.option("--log-level", type=click.Choice(LOG_LEVELS), default="info", show_default=True)


@click.command()
@connection_options
@click.option(
    "--queues",
    help="a,b: strictly in that order; a=3,b=1: by weight. Else every queue of the program's tasks, in turn.",
)
@concurrency_option
@click.option("--processes", type=int, default=1, show_default=True, help="Processes that share them.")
@click.option(
    "--grace", type=float, default=25.0, show_default=True, help="Seconds that handlers get to finish when it stops."
)
@click.option("--burst", is_flag=True, help="Stop when nothing is left to do.")
@click.option("--max-jobs", type=int, help="Renew a process after so many jobs.")
@click.option("--max-rss", type=int, metavar="MB", help="Renew a process that has grown beyond this.")
@click.option(
    "--metrics-port",
    type=int,
    metavar="PORT",
    help="Serve /metrics for Prometheus, and /healthz and /readyz for probes; 0: on any free port.",
)
@click.option(
    "--metrics-host", metavar="HOST", default="127.0.0.1", show_default=True, help="The address that it listens on."
)
@click.option("--name", help="A name to be known by; else one is made of host and process.")
@click.option(
    "--reload", "reloads", is_flag=True, help="For development: restart when a .py file below this folder changes."
)
@log_format_option
@log_level_option
@click.argument("app", metavar="MODULE:ROTA")
@click.pass_obj
def command(
    settings: Settings,
    /,
    app: str,
    queues: str | None,
    reloads: bool,
    log_format: str,
    log_level: str,
    max_rss: int | None,
    **options: Any,
) -> int:
    """Run the jobs of a program's tasks until told to stop.

    SIGTERM or Ctrl-C: claims nothing more, lets handlers finish for the grace time, then hands their jobs back. A
    second one cancels them now.
    """
    from rota.worker.config import WorkerConfig, parse_queues

    use_url(settings)
    names, weights = parse_queues(queues) if queues is not None else (("default",), ())
    config = WorkerConfig(app=app, queues=names, weights=weights, max_rss_mb=max_rss, **options)
    if reloads:
        from rota.cli.reload import run_reloading

        words = worker_command(config, settings, queues=queues, log_format=log_format, log_level=log_level)
        return run_reloading(words, Path.cwd(), grace=config.grace)
    if queues is None or settings.url or settings.namespace:
        return run_settled(config, settings, log_format, log_level, takes_queues=queues is None)
    return _run(config, log_format, log_level)


def worker_command(
    config: WorkerConfig, settings: Settings, *, queues: str | None, log_format: str, log_level: str
) -> list[str]:
    """The command line of a worker with this configuration, for a process of its own."""
    words = [*python(), "rota.cli.main", "worker", config.app]
    for option, value in {
        "--queues": queues,
        "--concurrency": config.concurrency,
        "--processes": config.processes,
        "--grace": config.grace,
        "--max-jobs": config.max_jobs,
        "--max-rss": config.max_rss_mb,
        "--metrics-port": config.metrics_port,
        "--metrics-host": config.metrics_host,
        "--name": config.name,
        "--log-format": log_format,
        "--log-level": log_level,
        "--url": settings.url,
        "--namespace": settings.namespace,
    }.items():
        if value is not None:
            words += (option, str(value))
    return [*words, "--burst"] if config.burst else words


def run_settled(
    config: WorkerConfig, settings: Settings, log_format: str, log_level: str, *, takes_queues: bool = True
) -> int:
    """Runs a worker once the program has been asked: for the queues of its tasks, and where its server is."""
    declared = declared_by(config.app)
    check_settings(config.app, settings, address=declared.address, namespace=declared.namespace)
    if takes_queues and declared.queues:
        config = replace(config, queues=tuple(declared.queues), weights=(1,) * len(declared.queues))
    return _run(config, log_format, log_level)


def _run(config: WorkerConfig, log_format: str, log_level: str) -> int:
    from rota.cli.lifeline import follow
    from rota.worker.logs import configure
    from rota.worker.worker import run_worker

    follow()
    configure(log_format, log_level)
    return run_worker(replace(config, log_format=log_format, log_level=log_level))
