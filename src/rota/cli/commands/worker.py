"""`rota worker`: runs jobs until a signal arrives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from rota.cli.common_options import Settings, connection_options
from rota.cli.inspect_app_in_subprocess import declared_by, python
from rota.cli.user_app import check_settings, use_url
from rota.core.lease_heartbeat_poll_and_grace_durations import GRACE_MS

if TYPE_CHECKING:
    from rota.worker.config import WorkerConfig

LOG_LEVELS: Final = ("debug", "info", "warning", "error")
LOG_FORMATS: Final = ("text", "json")
LOG_TRACEBACKS: Final = ("last", "all")


def concurrency(context: click.Context, parameter: click.Parameter, value: str) -> int | Literal["auto"]:
    """Parses a number of slots, or "auto". `WorkerConfig` checks its range."""
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
    help="Maximum number of concurrent jobs, or auto: by CPU use.",
)
log_format_option = click.option("--log-format", type=click.Choice(LOG_FORMATS), default="text", show_default=True)
log_level_option = click.option("--log-level", type=click.Choice(LOG_LEVELS), default="info", show_default=True)


@click.command()
@connection_options
@click.option(
    "--queues",
    help="a,b: in strict order; a=3,b=1: by weight. Default: all queues of the application's tasks, in turn.",
)
@concurrency_option
@click.option("--processes", type=int, default=1, show_default=True, help="Processes that share these slots.")
@click.option(
    "--grace", type=float, help="Seconds that handlers get to finish on shutdown. Default: `rota settings show`, 25 s."
)
@click.option("--burst", is_flag=True, help="Stop when no job is left.")
@click.option("--max-jobs", type=int, help="Replace a process after this many jobs.")
@click.option("--max-rss", type=int, metavar="MB", help="Replace a process that uses more memory than this.")
@click.option(
    "--metrics-port",
    type=int,
    metavar="PORT",
    help="Serve /metrics for Prometheus, and /healthz and /readyz for probes; 0: any free port.",
)
@click.option(
    "--metrics-host", metavar="HOST", default="127.0.0.1", show_default=True, help="Address of the metrics server."
)
@click.option("--name", help="Name of the worker. Default: host and process id.")
@click.option(
    "--reload", "reloads", is_flag=True, help="For development: restart when a .py file below this folder changes."
)
@click.option(
    "--log-tracebacks",
    type=click.Choice(LOG_TRACEBACKS),
    default="last",
    show_default=True,
    help="Log tracebacks of failed attempts: of the last one of a job, or of all.",
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
    """Run the jobs of an application's tasks until SIGTERM or Ctrl-C.

    On the first signal it claims no more jobs, lets handlers finish within the grace period, then returns their jobs to
    the queue. A second signal cancels the handlers immediately.
    """
    from rota.worker.config import WorkerConfig, parse_queues

    use_url(settings)
    names, weights = parse_queues(queues) if queues is not None else (("default",), ())
    config = WorkerConfig(app=app, queues=names, weights=weights, max_rss_mb=max_rss, **options)
    if reloads:
        from rota.cli.autoreload import run_reloading

        words = worker_command(config, settings, queues=queues, log_format=log_format, log_level=log_level)
        grace = GRACE_MS / 1000 if config.grace is None else config.grace
        return run_reloading(words, Path.cwd(), grace=grace)
    if queues is None or settings.url or settings.namespace:
        return run_with_declarations(config, settings, log_format, log_level, uses_declared_queues=queues is None)
    return _run(config, log_format, log_level)


def worker_command(
    config: WorkerConfig, settings: Settings, *, queues: str | None, log_format: str, log_level: str
) -> list[str]:
    """Returns the command line of a worker process with this configuration."""
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
        "--log-tracebacks": config.log_tracebacks,
        "--log-format": log_format,
        "--log-level": log_level,
        "--url": settings.url,
        "--namespace": settings.namespace,
    }.items():
        if value is not None:
            words += (option, str(value))
    return [*words, "--burst"] if config.burst else words


def run_with_declarations(
    config: WorkerConfig, settings: Settings, log_format: str, log_level: str, *, uses_declared_queues: bool = True
) -> int:
    """Runs a worker after reading the queues and the server from the application's declarations."""
    declared = declared_by(config.app)
    check_settings(config.app, settings, address=declared.address, namespace=declared.namespace)
    if uses_declared_queues and declared.queues:
        config = replace(config, queues=tuple(declared.queues), weights=(1,) * len(declared.queues))
    return _run(config, log_format, log_level)


def _run(config: WorkerConfig, log_format: str, log_level: str) -> int:
    from rota.cli.parent_watch import follow
    from rota.worker.monitoring.logging_setup import configure
    from rota.worker.worker_lifecycle import run_worker

    follow()
    configure(log_format, log_level)
    return run_worker(replace(config, log_format=log_format, log_level=log_level))
