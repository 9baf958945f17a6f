"""The `tacit` command: runs one subcommand and converts every outcome into an exit code."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

import click
from click.shell_completion import shell_complete

from tacit import __version__
from tacit.cli.error_messages import report_error
from tacit.cli.groups import FolderGroup
from tacit.cli.output import discard_output

COMPLETE_VARIABLE: Final = "_TACIT_COMPLETE"
EXIT_INTERRUPTED: Final = 128 + signal.SIGINT
EXIT_BROKEN_PIPE: Final = 128 + signal.SIGPIPE
QUERY_INTERRUPTED: Final = "Query interrupted"
"""What DuckDB raises, as a RuntimeError, in the place of a KeyboardInterrupt."""


@click.group(
    cls=FolderGroup,
    package="tacit.cli.commands",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def app(context: click.Context) -> None:
    """Answer questions about people without giving any of them away.

    Exit codes: 0 success, 2 usage error, 3 refused for privacy, 4 failure.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main() -> NoReturn:
    """Run the command line and exit with its exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; no exception is raised."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an encoding without Greek letters shows ? instead of failing
    try:
        exit_code = _invoke(list(arguments))
        sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort) as stopped:
        if str(stopped):  # says that a release was charged (`pipeline.interrupts`)
            click.echo(f"tacit: {stopped}", err=True)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        discard_output()
        return EXIT_BROKEN_PIPE
    except Exception as error:
        if type(error) is RuntimeError and str(error) == QUERY_INTERRUPTED:
            return EXIT_INTERRUPTED
        return report_error(error, arguments)
    return exit_code


def _invoke(arguments: list[str]) -> int:
    if instruction := os.environ.get(COMPLETE_VARIABLE):
        return shell_complete(app, {}, "tacit", COMPLETE_VARIABLE, instruction)
    if any("\0" in argument for argument in arguments):  # click fails on one in a path
        raise click.UsageError("an argument contains a NUL character; remove it")
    try:
        with app.make_context("tacit", arguments) as context:
            app.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    return 0
