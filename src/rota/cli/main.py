"""The `rota` command: loads the module of a subcommand, and reports errors as one line and an exit code."""

from __future__ import annotations

import importlib
import io
import json
import keyword
import sys
import traceback
from collections.abc import Sequence
from typing import Final

import click

from rota.cli.common_options import Settings, common_options
from rota.cli.output import clean
from rota.core.did_you_mean import did_you_mean
from rota.errors import (
    ConfigurationError,
    IdInUse,
    InvalidJob,
    JobNotFound,
    OperationNotFound,
    RotaError,
    ScheduleNotFound,
    ScheduleOutdated,
    StoreError,
    UnknownTask,
    WorkerNotFound,
    WorkflowNotFound,
    WrongState,
)

#: Command -> help text. Its module is `rota.cli.<name>`, with the attribute `command`. A module is imported when its
#: command runs, so that no command waits for the imports of another.
COMMANDS: Final = {
    "worker": "Run the jobs of an application's tasks.",
    "autoscale": "Keep as many workers as the queues need.",
    "keda-scaler": "Report to KEDA how many workers the queues need.",
    "server": "Serve the HTTP API.",
    "token": "Create, list and revoke tokens of the HTTP API.",
    "encryption-key": "Print a new key that encrypts arguments and results.",
    "dev": "Run server, dashboard and worker, for development.",
    "enqueue": "Enqueue a job.",
    "job": "Show, list, cancel, redrive and delete jobs.",
    "queue": "List, pause, resume and purge queues.",
    "task": "List, pause and resume tasks.",
    "schedule": "Show, pause, resume, run and remove schedules.",
    "workflow": "Show, cancel and resume workflows.",
    "bulk": "Cancel, delete, redrive or update all matching jobs.",
    "dead": "Show, redrive and delete dead letters.",
    "workers": "List workers with their running jobs; drain or undrain one.",
    "top": "Show live queues and workers.",
    "annotate": "Mark this moment on the charts, such as a deploy.",
    "events": "Print events as they occur.",
    "settings": "Show and change the durations that all workers share.",
    "export": "Write every job, schedule and workflow as lines of JSON.",
    "mirror": "Keep a copy of every job on a second server, and restore from it.",
    "import": "Restore an export, on this or another server.",
    "doctor": "Check the server and the state of the queues.",
    "acl": "Print the least permissions of a role as an ACL rule.",
    "store-url": "Print the URL of the Valkey or Redis server.",
}

#: The first class that matches is used.
EXIT_CODES: Final[tuple[tuple[type[RotaError], int], ...]] = (
    (InvalidJob, 2),
    (JobNotFound, 3),
    (ScheduleNotFound, 3),
    (UnknownTask, 3),
    (WorkflowNotFound, 3),
    (OperationNotFound, 3),
    (WorkerNotFound, 3),
    (WrongState, 4),
    (IdInUse, 4),
    (ScheduleOutdated, 4),
    (StoreError, 5),
    (ConfigurationError, 6),
    (RotaError, 1),
)
INTERRUPTED: Final = 130
NEWLINE: Final = "\n"

EPILOG: Final = """\b
Exit codes:
  0  success
  1  the outcome was negative: the job failed or was cancelled, doctor found a fault
  2  wrong usage, or not confirmed
  3  no such job, task, queue, schedule, workflow or worker
  4  the state of the job or workflow does not allow it
  5  the server is unavailable, full, too old, or denied access
  6  wrong configuration
  130  interrupted
"""


class LazyGroup(click.Group):
    """A command group that imports a command on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns the command; None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        module = cmd_name.replace("-", "_") + "_" * keyword.iskeyword(cmd_name)
        return importlib.import_module(f"rota.cli.commands.{module}").command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command that the arguments name. Raises UsageError with a suggestion if there is none."""
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"there is no command {args[0]!r}{did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rota", message="rota %(version)s")
@common_options
def command() -> None:
    """Rota: a job queue on Valkey and Redis."""


def run(arguments: Sequence[str]) -> int:
    """Runs one command line. Returns the exit code."""
    settings = Settings()
    is_json = "--json" in arguments  # `settings` does not know it if the command line is wrong
    try:
        code = command.main(list(arguments), prog_name="rota", obj=settings, standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        if is_json:
            _print_json_error(error, error.format_message(), error.exit_code)
        else:
            error.show()
        return error.exit_code
    except RotaError as error:
        if settings.debug:
            traceback.print_exc()
        code = next(code for kind, code in EXIT_CODES if isinstance(error, kind))
        if is_json:
            _print_json_error(error, str(error), code)
        else:
            click.echo(f"Error: {clean(str(error)).replace(NEWLINE, ' | ')}", err=True)
        return code


def _print_json_error(error: Exception, message: str, code: int) -> None:
    """Prints one line of JSON to stderr: stdout has nothing but results."""
    document = {"error": {"type": type(error).__name__, "message": message, "exit_code": code}}
    click.echo(json.dumps(document), err=True)


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Characters that the terminal cannot show are escaped instead of ending the command.
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
