"""`rota dev`: everything at once: the embedded server, the dashboard, a worker that follows the code."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any, Final

import click

from rota.cli import output
from rota.cli.apps import Declared, check_settings, declared_by, use_url
from rota.cli.settings import Settings, connection_options
from rota.cli.worker import concurrency_option, log_format_option, log_level_option, run_settled, worker_command
from rota.errors import ConfigurationError

#: `rota = Rota(...)` at the beginning of a line.
_DECLARATION: Final = re.compile(r"^(\w+)(?:\s*:[^=\n]+)?\s*=\s*(?:rota\.)?Rota\(", re.MULTILINE)
#: Handlers get this long to finish before new code runs.
GRACE_S: Final = 5.0
#: Of the dashboard, where nothing else is there.
PORT: Final = 8080


@click.command()
@connection_options
@concurrency_option
@log_format_option
@log_level_option
@click.argument("app", metavar="[MODULE:ROTA]", required=False)
@click.pass_obj
def command(settings: Settings, app: str | None, concurrency: Any, log_format: str, log_level: str) -> int:
    """Run everything at once: the embedded server, the dashboard, and a worker that restarts when the code changes.

    Without MODULE:ROTA it is looked for in the .py files of this folder. Where a URL is configured, that server is
    used, and none is embedded.
    """
    from rota.cli.reload import has_watchfiles, run_reloading
    from rota.client import Rota
    from rota.worker.config import WorkerConfig

    use_url(settings)
    app = app or find_app(Path.cwd())
    reloads = has_watchfiles()
    declared = _declared(app, is_forgiving=reloads)
    if declared is not None:
        check_settings(app, settings, address=declared.address, namespace=declared.namespace)
    # Held until the end, so that the server and its data stay up while the worker restarts.
    server = Rota(settings.url).embedded if declared is None or declared.is_embedded else None
    address = server.ensure() if server is not None else declared.address if declared is not None else ""
    output.note(f"server  {address}" + (f" (embedded, data in {server.directory})" if server is not None else ""))
    output.note(f"worker  {app}" + (f", queues {', '.join(declared.queues)}" if declared and declared.queues else ""))
    output.note(
        "reload  " + ("when a .py file below this folder changes" if reloads else "no: pip install 'rota[cli]'")
    )
    _serve(address, declared.namespace if declared is not None else settings.namespace or "rota", log_level)
    config = WorkerConfig(app=app, concurrency=concurrency, grace=GRACE_S)
    if reloads:
        words = worker_command(config, settings, queues=None, log_format=log_format, log_level=log_level)
        return run_reloading(words, Path.cwd(), grace=config.grace)
    return run_settled(config, settings, log_format, log_level)


def find_app(folder: Path) -> str:
    """The one `Rota` that the modules of a folder make, by the look of them. Raises ConfigurationError."""
    found = [
        f"{file.stem}:{name}"
        for file in sorted(folder.glob("*.py"))
        for name in _DECLARATION.findall(file.read_text(encoding="utf-8", errors="replace"))
    ]
    if len(found) == 1:
        return found[0]
    what = f"there are {', '.join(found)}" if found else f"no .py file in {folder} makes one"
    raise ConfigurationError(f"which Rota? Say it as rota dev module:rota; {what}")


def _serve(address: str, namespace: str, log_level: str) -> None:
    """The HTTP API and the dashboard, in a thread that ends with this process."""
    try:
        from rota.server.app import create_app
        from rota.server.run import free_port, serve
    except ModuleNotFoundError:
        output.note("pages   no: pip install 'rota[server]'")
        return
    from rota.client import Rota

    app = create_app(Rota(address or None, namespace=namespace), auth="none")
    port = free_port(PORT)

    def run() -> None:
        serve(
            app, host="127.0.0.1", port=port, log_level=log_level, on_listening=lambda at: output.note(f"pages   {at}")
        )

    threading.Thread(target=run, name="rota-pages", daemon=True).start()


def _declared(app: str, *, is_forgiving: bool) -> Declared | None:
    try:
        return declared_by(app)
    except ConfigurationError as error:
        if not is_forgiving:
            raise
        # It is what the worker will say as well, until the mistake is mended.
        output.note(f"Error: {error}")
        return None
