"""`rota dev`: runs the embedded server, the dashboard, and a worker that restarts when the code changes."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any, Final

import click

from rota.cli import output
from rota.cli.commands.worker import (
    concurrency_option,
    log_format_option,
    log_level_option,
    run_with_declarations,
    worker_command,
)
from rota.cli.common_options import Settings, connection_options
from rota.cli.inspect_app_in_subprocess import Declared, declared_by
from rota.cli.user_app import check_settings, use_url
from rota.errors import ConfigurationError
from rota.install_command import install_command

#: `rota = Rota(...)` at the beginning of a line.
_DECLARATION: Final = re.compile(r"^(\w+)(?:\s*:[^=\n]+)?\s*=\s*(?:rota\.)?Rota\(", re.MULTILINE)
#: Grace period of handlers before a restart.
GRACE_S: Final = 5.0
#: Port of the dashboard, if it is free.
PORT: Final = 8080


@click.command()
@connection_options
@concurrency_option
@log_format_option
@log_level_option
@click.argument("app", metavar="[MODULE:ROTA]", required=False)
@click.pass_obj
def command(settings: Settings, app: str | None, concurrency: Any, log_format: str, log_level: str) -> int:
    """Run the embedded server, the dashboard, and a worker that restarts when the code changes.

    Without MODULE:ROTA, the .py files of this folder are searched for it. If a URL is configured, that server is used
    instead of the embedded one.
    """
    from rota.cli.autoreload import has_watchfiles, run_reloading
    from rota.client.rota import Rota
    from rota.client.session import sessions_of
    from rota.worker.config import WorkerConfig

    use_url(settings)
    app = app or find_app(Path.cwd())
    reloads = has_watchfiles()
    declared = _declared(app, is_forgiving=reloads)
    if declared is not None:
        check_settings(app, settings, address=declared.address, namespace=declared.namespace)
    # Referenced until the end, so that the embedded server keeps running while the worker restarts.
    server = sessions_of(Rota(settings.url)).embedded if declared is None or declared.is_embedded else None
    address = server.ensure() if server is not None else declared.address if declared is not None else ""
    output.note(f"server  {address}" + (f" (embedded, data in {server.directory})" if server is not None else ""))
    output.note(f"worker  {app}" + (f", queues {', '.join(declared.queues)}" if declared and declared.queues else ""))
    output.note(
        "reload  " + ("when a .py file below this folder changes" if reloads else f"off: {install_command('cli')}")
    )
    _serve(address, declared.namespace if declared is not None else settings.namespace or "rota", log_format, log_level)
    config = WorkerConfig(app=app, concurrency=concurrency, grace=GRACE_S, log_tracebacks="all")
    if reloads:
        words = worker_command(config, settings, queues=None, log_format=log_format, log_level=log_level)
        return run_reloading(words, Path.cwd(), grace=GRACE_S)
    return run_with_declarations(config, settings, log_format, log_level)


def find_app(folder: Path) -> str:
    """Returns the only `Rota` that the source files of a folder create. Raises ConfigurationError."""
    found = [
        f"{file.stem}:{name}"
        for file in sorted(folder.glob("*.py"))
        for name in _DECLARATION.findall(file.read_text(encoding="utf-8", errors="replace"))
    ]
    if len(found) == 1:
        return found[0]
    reason = f"found several: {', '.join(found)}" if found else f"no .py file in {folder} creates a Rota"
    raise ConfigurationError(f"{reason}; name the application: rota dev module:rota")


def _serve(address: str, namespace: str, log_format: str, log_level: str) -> None:
    """Serves the HTTP API and the dashboard in a daemon thread."""
    try:
        from rota.server.app import create_app
        from rota.server.dashboard import HOW_TO_BUILD, is_built
        from rota.server.uvicorn_server import free_port, serve
    except ModuleNotFoundError:
        output.note(f"pages   off: {install_command('server')}")
        return
    from rota.client.rota import Rota
    from rota.worker.monitoring.logging_setup import configure

    configure(log_format, log_level)
    app = create_app(Rota(address or None, namespace=namespace), auth="none")
    port = free_port(PORT)

    def report(at: str) -> None:
        output.note(f"pages   {at}" + ("" if is_built() else f" (HTTP API only: {HOW_TO_BUILD})"))

    def run() -> None:
        serve(app, host="127.0.0.1", port=port, log_level=log_level, on_listening=report)

    threading.Thread(target=run, name="rota-pages", daemon=True).start()


def _declared(app: str, *, is_forgiving: bool) -> Declared | None:
    try:
        return declared_by(app)
    except ConfigurationError as error:
        if not is_forgiving:
            raise
        # The worker reports the same error until the code is fixed.
        output.note(f"Error: {error}")
        return None
