"""`rota server`: serves the HTTP API and the dashboard."""

from __future__ import annotations

from collections.abc import Sequence

import click

from rota.cli import output
from rota.cli.commands.worker import log_format_option, log_level_option
from rota.cli.common_options import Settings, connection_options
from rota.cli.connection import PATIENCE_S
from rota.cli.user_app import check_settings, use_url
from rota.errors import ConfigurationError
from rota.install_command import install_command


@click.command()
@connection_options
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), envvar="PORT", default=8080, show_default=True, show_envvar=True)
@click.option(
    "--auth",
    type=click.Choice(["none", "tokens"]),
    default="none",
    show_default=True,
    help="tokens: callers need a token, see rota token. none: every caller is an admin, on the loopback only.",
)
@click.option(
    "--tls-cert",
    envvar="ROTA_TLS_CERT",
    show_envvar=True,
    metavar="FILE",
    help="Serve HTTPS with this certificate chain (PEM); read again when the file changes.",
)
@click.option(
    "--tls-key",
    envvar="ROTA_TLS_KEY",
    show_envvar=True,
    metavar="FILE",
    help="Private key of the certificate (PEM, not encrypted).",
)
@click.option(
    "--trusted-proxies",
    envvar="FORWARDED_ALLOW_IPS",
    show_envvar=True,
    default="",
    metavar="LIST",
    help="Addresses and networks of proxies, comma-separated, whose X-Forwarded-For and -Proto count; default: none.",
)
@click.option(
    "--cors-origin",
    "cors_origins",
    multiple=True,
    metavar="URL",
    help="Allow pages of this origin, or '*' with --auth tokens; repeatable.",
)
@click.option("--default-task", metavar="TASK", help="The task of a POST / whose name is not that of a task.")
@click.option(
    "--mask", "masked", multiple=True, metavar="NAME", help="Mask values of fields with this name; repeatable."
)
@click.option(
    "--trace-url",
    envvar="ROTA_TRACE_URL",
    show_envvar=True,
    metavar="URL",
    help="Address of traces for links in the dashboard, such as https://tracing.example/trace/{trace_id}.",
)
@log_format_option
@log_level_option
@click.argument("app", metavar="[MODULE:ROTA]", required=False)
@click.pass_obj
def command(
    settings: Settings,
    /,
    app: str | None,
    host: str,
    port: int,
    auth: str,
    tls_cert: str | None,
    tls_key: str | None,
    trusted_proxies: str,
    cors_origins: Sequence[str],
    default_task: str | None,
    masked: Sequence[str],
    trace_url: str | None,
    log_format: str,
    log_level: str,
) -> int:
    """Serve the HTTP API.

    With MODULE:ROTA, jobs are checked against that application's tasks; else against those announced by workers.
    """
    from rota.client.rota import Rota
    from rota.server.settings import MASKED, ServerSettings, check_listening
    from rota.server.settings import trusted_proxies as parse_proxies
    from rota.worker.app_loader import instrument, load_app
    from rota.worker.monitoring.logging_setup import configure

    given = ServerSettings(
        auth="tokens" if auth == "tokens" else "none",
        cors_origins=cors_origins,
        trace_url=trace_url,
        default_task=default_task,
    )
    check_listening(host, given.auth)
    proxies = parse_proxies(trusted_proxies)
    try:
        from rota.server.app import create_app
        from rota.server.dashboard import HOW_TO_BUILD, is_built
        from rota.server.http.tls_certificate_reload_and_handshakes import TlsCertificate
        from rota.server.uvicorn_server import serve
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"the server requires {error.name}: {install_command('server')}") from error

    if bool(tls_cert) != bool(tls_key):
        raise ConfigurationError("--tls-cert and --tls-key belong together: give both, or none to serve HTTP")
    tls = TlsCertificate(tls_cert, tls_key) if tls_cert and tls_key else None
    use_url(settings)
    if app is None:
        rota = Rota(settings.url, namespace=settings.namespace or "rota", patience=PATIENCE_S)
    else:
        rota = load_app(app)
        check_settings(app, settings, address=rota.address, namespace=rota.namespace)
    configure(log_format, log_level)
    instrument(rota)
    served = create_app(
        rota,
        auth=given.auth,
        cors_origins=cors_origins,
        mask=(*MASKED, *masked),
        trace_url=trace_url,
        default_task=default_task,
    )

    def report(address: str) -> None:
        output.note(f"store   {rota.address}")
        output.note(f"auth    {auth}" + (": every user of this machine is an admin" if auth == "none" else ""))
        if not is_built():
            output.note(f"pages   none, only the HTTP API: {HOW_TO_BUILD}")
        output.note(f"listening on {address}")

    return serve(
        served, host=host, port=port, log_level=log_level, on_listening=report, tls=tls, trusted_proxies=proxies
    )
