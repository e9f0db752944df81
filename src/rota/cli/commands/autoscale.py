"""`rota autoscale`: keeps as many workers as the queues need."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from rota.cli.commands.worker import log_format_option, log_level_option, worker_command
from rota.cli.common_options import Settings, connection_options
from rota.cli.connection import run
from rota.cli.inspect_app_in_subprocess import declared_by
from rota.cli.user_app import check_settings, use_url
from rota.errors import ConfigurationError

if TYPE_CHECKING:
    from rota.autoscaler.config import AutoscalerConfig
    from rota.autoscaler.machine_provider import Provider, ProviderSettings
    from rota.autoscaler.planner import Planner
    from rota.client.rota import Rota

F = TypeVar("F", bound=Callable[..., Any])

PROVIDERS: Final = ("local", "ec2", "asg", "kubernetes", "exec")
POLICIES: Final = ("drain-time", "thresholds")
#: Exit code if another planner holds the lease, with --once.
STANDBY: Final = 1


def _read_config(context: click.Context, parameter: click.Parameter, value: Path | None) -> dict[str, Any]:
    """Reads the table `[autoscale]`. Options and environment variables override it."""
    if value is None:
        return {}
    try:
        found: Any = tomllib.loads(value.read_text(encoding="utf-8")).get("autoscale", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{value} is not valid TOML: {error}") from None
    if not isinstance(found, dict):
        raise click.BadParameter(f"{value}: autoscale is not a table; write [autoscale]")
    table = cast(dict[str, Any], found)
    names = {one.name for one in context.command.params} - {parameter.name}
    given = {key.replace("-", "_"): setting for key, setting in table.items() if not isinstance(setting, dict)}
    if unknown := sorted(given.keys() - names):
        raise click.BadParameter(f"{value} has no such option in [autoscale]: {', '.join(unknown)}")
    context.default_map = {**given, **(context.default_map or {})}
    return {key: setting for key, setting in table.items() if isinstance(setting, dict)}


def _seconds(option: str, variable: str, help: str) -> Callable[[F], F]:
    return click.option(
        option, type=click.FloatRange(0.1, 86_400), envvar=variable, metavar="SECONDS", help=help, show_envvar=True
    )


@click.command()
@connection_options
@click.option(
    "--config",
    "tables",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar="ROTA_AUTOSCALE_CONFIG",
    show_envvar=True,
    is_eager=True,
    callback=_read_config,
    help="TOML file: these options in [autoscale], those of a provider in [autoscale.NAME].",
)
@click.option(
    "--provider",
    type=click.Choice(PROVIDERS),
    envvar="ROTA_AUTOSCALE_PROVIDER",
    default="local",
    show_default=True,
    show_envvar=True,
    help="Where workers run. local: as processes of this command.",
)
@click.option(
    "--policy",
    type=click.Choice(POLICIES),
    envvar="ROTA_AUTOSCALE_POLICY",
    default="drain-time",
    show_default=True,
    show_envvar=True,
    help="drain-time: jobs start within the target wait. thresholds: by the number of pending jobs.",
)
@click.option(
    "--min", "min_workers", type=int, envvar="ROTA_AUTOSCALE_MIN", show_envvar=True, help="Least number of workers."
)
@click.option(
    "--max", "max_workers", type=int, envvar="ROTA_AUTOSCALE_MAX", show_envvar=True, help="Greatest number of workers."
)
@_seconds("--target-wait", "ROTA_AUTOSCALE_TARGET_WAIT", "drain-time: jobs should start within this time. Default: 60.")
@_seconds(
    "--interval", "ROTA_AUTOSCALE_INTERVAL", "Time between two rounds. Default: 5 with drain-time, 10 with thresholds."
)
@_seconds("--cooldown", "ROTA_AUTOSCALE_COOLDOWN", "drain-time: a worker leaves if not needed for so long.")
@_seconds("--boot", "ROTA_AUTOSCALE_BOOT", "Usual time until a new worker claims jobs.")
@_seconds("--boot-timeout", "ROTA_AUTOSCALE_BOOT_TIMEOUT", "A machine that has not registered by then is replaced.")
@click.option(
    "--queues",
    envvar="ROTA_AUTOSCALE_QUEUES",
    show_envvar=True,
    help="a,b: whose demand counts. Default: the queues of the application's tasks, else all.",
)
@click.option("--concurrency", type=int, default=10, show_default=True, help="local: slots of each worker.")
@click.option("--exec", "script", metavar="SCRIPT", envvar="ROTA_AUTOSCALE_EXEC", help="exec: the script to call.")
@click.option("--dry-run", is_flag=True, envvar="ROTA_AUTOSCALE_DRY_RUN", help="Decide and log, but change nothing.")
@click.option("--once", is_flag=True, help="Plan one round and exit.")
@log_format_option
@log_level_option
@click.argument("app", metavar="[MODULE:ROTA]", required=False)
@click.argument("worker_options", metavar="[-- WORKER OPTIONS]", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def command(
    settings: Settings,
    /,
    tables: Mapping[str, Mapping[str, Any]],
    app: str | None,
    worker_options: Sequence[str],
    log_format: str,
    log_level: str,
    once: bool,
    **options: Any,
) -> int:
    """Keep as many workers as the queues need: observe, decide, act.

    Workers that are no longer needed are drained first: they finish their jobs, then exit. If two autoscalers run, one
    plans and the other stands by.
    """
    from rota.autoscaler.providers import create_provider
    from rota.client.rota import Rota
    from rota.worker.monitoring.logging_setup import configure

    use_url(settings)
    url, namespace, queues = settings.url, settings.namespace or "rota", options.pop("queues")
    words: list[str] = []
    if app is not None:
        declared = declared_by(app)
        check_settings(app, settings, address=declared.address, namespace=declared.namespace)
        namespace = declared.namespace
        words = _worker_command(app, queues, settings, options["concurrency"], worker_options)
        queues = queues or ",".join(declared.queues)
    rota = Rota(url, namespace=namespace, patience=PATIENCE_S)
    configure(log_format, log_level)
    provider_settings = _provider_settings(rota, words, tables, options, is_once=once)
    provider = create_provider(options["provider"], provider_settings)
    config = _config(queues, options)
    return run(_autoscale(rota, provider, config, is_once=once))


#: How long a call to the store is retried before the round ends.
PATIENCE_S: Final = 2.0


def _worker_command(
    app: str, queues: str | None, settings: Settings, concurrency: int, worker_options: Sequence[str]
) -> list[str]:
    from rota.worker.config import WorkerConfig

    config = WorkerConfig(app=app, concurrency=concurrency)
    words = worker_command(config, settings, queues=queues, log_format="text", log_level="info")
    return [*words, *worker_options]


def _provider_settings(
    rota: Rota,
    words: Sequence[str],
    tables: Mapping[str, Mapping[str, Any]],
    options: Mapping[str, Any],
    *,
    is_once: bool,
) -> ProviderSettings:
    import os

    from rota.autoscaler.machine_provider import ProviderSettings

    table = {key: str(value) for key, value in tables.get(options["provider"], {}).items()}
    if options["script"]:
        table["script"] = options["script"]
    return ProviderSettings(
        namespace=rota.namespace,
        address=rota.address,
        worker_command=words,
        options=table,
        environment=dict(os.environ),
        max_machines=_number(table, "max_machines", max(100, options["max_workers"] or 0)),
        is_once=is_once,
    )


def _number(table: Mapping[str, str], option: str, default: int) -> int:
    value = table.get(option, str(default))
    if not value.isdecimal():
        raise ConfigurationError(f"{option} is {value!r} in the provider's table: give a number")
    return int(value)


def _config(queues: str | None, options: Mapping[str, Any]) -> AutoscalerConfig:
    from rota.autoscaler.config import AutoscalerConfig, make_policy

    def ms(option: str) -> int | None:
        value: float | None = options[option]
        if value is not None and not math.isfinite(value):
            raise click.BadParameter(f"{value} is not a number of seconds", param_hint=f"--{option.replace('_', '-')}")
        return None if value is None else round(value * 1000)

    policy = make_policy(
        options["policy"],
        options["provider"],
        {
            "min_workers": options["min_workers"],
            "max_workers": options["max_workers"],
            "target_wait_ms": ms("target_wait"),
            "interval_ms": ms("interval"),
            "down_cooldown_ms": ms("cooldown"),
            "boot_ms": ms("boot"),
            "boot_timeout_ms": ms("boot_timeout"),
            "worker_slots": options["concurrency"],
        },
    )
    names = tuple(name.strip().partition("=")[0] for name in queues.split(",")) if queues else None
    return AutoscalerConfig(
        provider=options["provider"], policy=policy, queues=names, is_dry_run=bool(options["dry_run"])
    )


async def _autoscale(rota: Rota, provider: Provider, config: AutoscalerConfig, *, is_once: bool) -> int:
    from rota.autoscaler.planner import Planner

    planner = Planner(rota, provider, config)
    async with rota:
        try:
            if is_once:
                return 0 if await planner.run_once() else STANDBY
            _stop_on_signals(planner)
            await planner.run()
        finally:
            await provider.close()
    return 0


def _stop_on_signals(planner: Planner) -> None:
    import asyncio
    import signal

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, planner.stop)
