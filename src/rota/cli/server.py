"""`rota server`: the HTTP API, until told to stop."""

from __future__ import annotations

from collections.abc import Sequence

import click

from rota.cli import output
from rota.cli.apps import check_settings, use_url
from rota.cli.settings import PATIENCE_S, Settings, connection_options
from rota.cli.worker import log_format_option, log_level_option
from rota.errors import ConfigurationError


@click.command()
@connection_options
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), envvar="PORT", default=8080, show_default=True, show_envvar=True)
@click.option(
    "--auth",
    type=click.Choice(["none", "tokens"]),
    default="none",
    show_default=True,
    help="tokens: callers need one, see rota token. none: everybody is an admin, on the loopback alone.",
)
@click.option(
    "--cors-origin", "cors_origins", multiple=True, metavar="URL", help="Pages of this origin may use it, too."
)
@click.option("--mask", "masked", multiple=True, metavar="NAME", help="Do not show values of fields with this name.")
@click.option(
    "--trace-url",
    envvar="ROTA_TRACE_URL",
    show_envvar=True,
    metavar="URL",
    help="Where traces are looked at, as https://tracing.example/trace/{trace_id}: the dashboard links to it.",
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
    cors_origins: Sequence[str],
    masked: Sequence[str],
    trace_url: str | None,
    log_format: str,
    log_level: str,
) -> int:
    """Serve the HTTP API.

    With MODULE:ROTA jobs are checked against that program's tasks; without, against what workers announced.
    """
    from rota.client import Rota
    from rota.loading import equip, load_app
    from rota.server.settings import MASKED, ServerSettings, check_listening
    from rota.worker.logs import configure

    given = ServerSettings(
        auth="tokens" if auth == "tokens" else "none", cors_origins=cors_origins, trace_url=trace_url
    )
    check_listening(host, given.auth)
    try:
        from rota.server.app import create_app
        from rota.server.run import serve
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"the server needs {error.name}: pip install 'rota[server]'") from error

    use_url(settings)
    if app is None:
        rota = Rota(settings.url, namespace=settings.namespace or "rota", patience=PATIENCE_S)
    else:
        rota = load_app(app)
        check_settings(app, settings, address=rota.address, namespace=rota.namespace)
    configure(log_format, log_level)
    equip(rota)
    served = create_app(rota, auth=given.auth, cors_origins=cors_origins, mask=(*MASKED, *masked), trace_url=trace_url)

    def say(address: str) -> None:
        output.note(f"store   {rota.address}")
        output.note(f"auth    {auth}" + (": everybody on this machine is an admin" if auth == "none" else ""))
        output.note(f"listening on {address}")

    return serve(served, host=host, port=port, log_level=log_level, on_listening=say)
