"""`rota`, the command: finds the module of a subcommand, and turns every error into one line and an exit code."""

from __future__ import annotations

import importlib
import io
import sys
import traceback
from collections.abc import Sequence
from typing import Final

import click

from rota.cli.output import clean
from rota.cli.settings import Settings, common_options
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

#: Name -> what it does; its module is `rota.cli.<name>`, whose `command` it is. A module is imported when its command
#: is asked for, and not for the list of them: what one command needs, the others do not wait for.
COMMANDS: Final = {
    "worker": "Run the jobs of a program's tasks.",
    "server": "Serve the HTTP API.",
    "token": "Make, list and revoke tokens of the HTTP API.",
    "dev": "Run everything at once, for development.",
    "enqueue": "Enqueue a job.",
    "job": "Look at jobs, and act on one.",
    "queue": "Look at queues; pause, resume and purge them.",
    "schedule": "Look at schedules; pause, resume, run and remove them.",
    "workflow": "Look at workflows; cancel and resume them.",
    "bulk": "Do something to every job that matches.",
    "dead": "Look at dead letters; redrive and delete them.",
    "workers": "List the workers, and what each is running; drain one.",
    "top": "Show queues and workers, live.",
    "events": "Print what happens, as it happens.",
    "doctor": "Check the server, and what waits on it.",
    "server-url": "Print where the server is.",
}

#: The first class that fits decides.
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
  0  fine
  1  the outcome was negative: the job failed or was cancelled, doctor found a fault
  2  wrong usage, or nobody said yes
  3  no such job, task, queue, schedule, workflow or worker
  4  the job or workflow is in a state that does not allow it
  5  the server is unavailable, full, too old, or denied access
  6  the program is set up wrong
  130  interrupted
"""


class LazyGroup(click.Group):
    """Knows its commands by name, and imports one when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table, which is the order of a newcomer's needs."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command; None where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(f"rota.cli.{cmd_name.replace('-', '_')}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rota", message="rota %(version)s")
@common_options
def command() -> None:
    """Rota: a job queue on Valkey and Redis."""


def run(arguments: Sequence[str]) -> int:
    """Runs one command line; the answer is the exit code."""
    settings = Settings()
    try:
        code = command.main(list(arguments), prog_name="rota", obj=settings, standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except RotaError as error:
        if settings.debug:
            traceback.print_exc()
        click.echo(f"Error: {clean(str(error)).replace(NEWLINE, ' | ')}", err=True)
        return next(code for kind, code in EXIT_CODES if isinstance(error, kind))


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character of some job's arguments is no reason to stop.
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
