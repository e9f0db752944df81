"""`rota keda-scaler`: reports to KEDA how many workers the queues need."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from rota.cli import output
from rota.cli.commands.worker import log_format_option, log_level_option
from rota.cli.common_options import Settings, connection_options
from rota.cli.connection import run
from rota.cli.user_app import use_url
from rota.errors import ConfigurationError
from rota.install_command import install_command

if TYPE_CHECKING:
    from rota.autoscaler.keda.grpc_server import TlsFiles
    from rota.client.rota import Rota

#: How long a call to the store is retried before KEDA gets an error.
PATIENCE_S: Final = 2.0
_ADDRESS: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})")


def _check_address(context: click.Context, parameter: click.Parameter, value: str) -> str:
    found = _ADDRESS.fullmatch(value)
    if found is None or int(found[2]) > 65535:
        raise click.BadParameter(f"{value!r} is not HOST:PORT, such as 127.0.0.1:6000 or [::]:6000")
    return value


_file = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@connection_options
@click.option(
    "--listen",
    envvar="ROTA_KEDA_LISTEN",
    default="127.0.0.1:6000",
    show_default=True,
    show_envvar=True,
    metavar="HOST:PORT",
    callback=_check_address,
    help="Address to listen on.",
)
@click.option(
    "--tls-cert",
    type=_file,
    envvar="ROTA_TLS_CERT",
    show_envvar=True,
    metavar="FILE",
    help="Serve TLS with this certificate chain (PEM); read again when the file changes.",
)
@click.option(
    "--tls-key",
    type=_file,
    envvar="ROTA_TLS_KEY",
    show_envvar=True,
    metavar="FILE",
    help="Private key of the certificate (PEM, not encrypted).",
)
@click.option(
    "--tls-client-ca",
    type=_file,
    envvar="ROTA_TLS_CLIENT_CA",
    show_envvar=True,
    metavar="FILE",
    help="Accept only clients with a certificate of this authority (PEM).",
)
@log_format_option
@log_level_option
@click.pass_obj
def command(
    settings: Settings,
    /,
    listen: str,
    tls_cert: Path | None,
    tls_key: Path | None,
    tls_client_ca: Path | None,
    log_format: str,
    log_level: str,
) -> int:
    """Report to KEDA how many workers the queues need: an external scaler over gRPC.

    The queues and the target wait are metadata of the trigger in each ScaledObject. It reads the store and changes
    nothing; several may run.
    """
    from rota.client.rota import Rota
    from rota.worker.monitoring.logging_setup import configure

    try:
        from rota.autoscaler.keda.grpc_server import TlsFiles
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"the scaler for KEDA requires {error.name}: {install_command('keda')}") from error

    if (tls_cert is None) != (tls_key is None):
        raise ConfigurationError("--tls-cert and --tls-key belong together: give both, or none to serve without TLS")
    if tls_client_ca is not None and tls_cert is None:
        raise ConfigurationError("--tls-client-ca needs TLS: give --tls-cert and --tls-key as well")
    tls = None if tls_cert is None or tls_key is None else TlsFiles(tls_cert, tls_key, tls_client_ca)
    use_url(settings)
    configure(log_format, log_level)
    run(_serve(Rota(settings.url, namespace=settings.namespace or "rota", patience=PATIENCE_S), listen, tls))
    return 0


async def _serve(rota: Rota, listen: str, tls: TlsFiles | None) -> None:
    from rota.autoscaler.keda.grpc_server import serve

    def report(address: str) -> None:
        output.note(f"store   {rota.address}")
        output.note(f"listening on {address}" + ("" if tls else ", without TLS"))

    async with rota:
        await serve(rota, listen, tls, report)
