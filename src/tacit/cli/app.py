"""The `tacit` command: runs one subcommand and converts every outcome into an exit code.

Error output: one sentence with a code on standard error, and an exit code.

There are three kinds: a TacitError has its own code and sentence; a usage error comes from click; anything else is a
defect of tacit and reported as an internal error.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NoReturn

import click
from click.shell_completion import shell_complete

from tacit import __version__
from tacit.cli.groups import FolderGroup
from tacit.cli.output import discard_output, is_interrupt

_COMMAND: Final = re.compile(r"\btacit((?: (?:[a-z][a-z-]*|\.\.\.))+)(?![^;)&]*--folder)")
"""A tacit command within a sentence, up to its arguments, unless it has --folder already."""

_NAMED: Final = "by|bins|edges|expected|epsilon|rho|delta|error|level|analyst|(?:rows|groups)_per_(?:unit|group)"
_KEYWORDS: Final = (
    (r'\bbounds="learn"', "--bounds learn"),
    (r"\bbounds=\(low, high\)", "--bounds LOW:HIGH"),
    (r"\bbounds=\(0, 120\)", "--bounds 0:120"),
    (r"\b(?:other_)?keys=\[\.\.\.\]", "--keys A,B,C"),
    (r"\bpopmean=", "--mean"),
    (r'\bformat="(\w+)"', r"--format \1"),
    (r"\b(public|replace)=True", r"--\1"),
    (rf"\b({_NAMED})=(?=[\w.\[(\"'])", r"--\1 "),
    (rf"\b({_NAMED})=", r"--\1"),
    (r", or a second array\b", ""),
    (r'\btoken="tacit_\.\.\.", token="file:PATH"', "--token-file FILE"),
)
"""Keyword arguments in messages of the library, and the command-line options that replace them."""

_TRAINING: Final = (
    (r'\b(\w*bounds)="learn"', r"--set \1=learn"),
    (r"\bbounds=\(low, high\)", """--set bounds='{"COLUMN": [LOW, HIGH]}'"""),
    (r"\btarget_bounds=\(low, high\)", "--set target_bounds='[LOW, HIGH]'"),
    (r"\bclasses=\[\.\.\.\]", """--set classes='["A", "B"]'"""),
    (r"\bcategories=\[\.\.\.\]", """--set categories='{"COLUMN": ["A", "B"]}'"""),
    (r"\b(rows_per_unit)=(?=\d)", r"--set \1="),
    (r"\b(epsilon|delta|target)=(?=\w)", r"--\1 "),
    (r"\b(epsilon|delta|target)=", r"--\1"),
)
"""The same for `tacit learn train`, where parameters of the estimator are given by --set."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What is reported for an error."""

    code: str
    message: str
    exit_code: int


def report_error(error: Exception, arguments: Sequence[str]) -> int:
    """Write an error to standard error and return the exit code.

    --json, --debug and --folder are searched in the raw arguments, because parsing them may be what failed.
    """
    words = [one for one in arguments if not one.startswith("-")]
    failure = describe_error(error, _folder_in(arguments), is_training=words[:2] == ["learn", "train"])
    if "--debug" in arguments:
        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    if {"--json", "--format=json"} & {*arguments} or ("--format", "json") in pairwise(arguments):
        text = json.dumps({"error": {"code": failure.code, "message": failure.message}}, ensure_ascii=False)
    else:
        text = f"tacit: {failure.code} {failure.message}"
    click.echo(text, err=True)
    return failure.exit_code


def describe_error(error: Exception, folder: str | None = None, *, is_training: bool = False) -> Failure:
    """Return the failure for an error; commands in its message get the option --folder `folder`."""
    from tacit.privacy.errors import InvalidInput, TacitError

    if isinstance(error, TacitError):
        sentence = with_options(_one_line(error.message), _TRAINING if is_training else _KEYWORDS)
        return Failure(error.code, add_folder_flag(sentence, folder), error.exit_code)
    if isinstance(error, click.ClickException):
        return Failure(InvalidInput.code, _usage_sentence(error), InvalidInput.exit_code)
    reason = _one_line(f"{type(error).__name__}: {error}".removesuffix(": "))
    message = f"internal error: {reason}; run with --debug for the traceback"
    return Failure(TacitError.code, message, TacitError.exit_code)


def with_options(sentence: str, keywords: Sequence[tuple[str, str]] = _KEYWORDS) -> str:
    """Return a message with Python's keyword arguments replaced by command-line options."""
    for keyword, option in keywords:
        sentence = re.sub(keyword, option, sentence)
    return re.sub(r"--\w+_\w+", lambda found: found[0].replace("_", "-"), sentence)


def add_folder_flag(sentence: str, folder: str | None) -> str:
    """Return a message with --folder added to the commands in it, so that they work as printed."""
    if folder is None:
        return sentence

    def with_folder(found: re.Match[str]) -> str:
        command: click.Command = app
        words, length = found[1].split(), 0
        context = click.Context(app)
        for place, word in enumerate(words):
            if not isinstance(command, click.Group):
                break
            following = command.list_commands(context)[0] if word == "..." else word
            if (inner := command.get_command(context, following)) is None:
                return found[0]
            command, length = inner, place + 1
        if not any(isinstance(one, click.Option) and "--folder" in one.opts for one in command.params):
            return found[0]
        return " ".join(["tacit", *words[:length], "--folder", shlex.quote(folder), *words[length:]])

    return _COMMAND.sub(with_folder, sentence)


def _folder_in(arguments: Sequence[str]) -> str | None:
    """Return the value of --folder, if it was given."""
    for place, word in enumerate(arguments):
        if word == "--folder" and place + 1 < len(arguments):
            return arguments[place + 1]
        if word.startswith("--folder="):
            return word.partition("=")[2]
    return None


def _usage_sentence(error: click.ClickException) -> str:
    sentence = _one_line(error.format_message()).removesuffix(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context and "sql" in {one.name for one in context.command.params} and "unexpected extra argument" in sentence:
        sentence += "; put the query in quotes"
    path = context.command_path if context else "tacit"
    mark = "" if sentence.endswith("?") else ";"
    return f"{sentence[:1].lower()}{sentence[1:]}{mark} see {path} --help"


def _one_line(text: str) -> str:
    """Return text on one line, with unprintable characters escaped so that it cannot control a terminal."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in " ".join(text.split()))


COMPLETE_VARIABLE: Final = "_TACIT_COMPLETE"
EXIT_INTERRUPTED: Final = 128 + signal.SIGINT
EXIT_BROKEN_PIPE: Final = 128 + signal.SIGPIPE


@click.group(
    cls=FolderGroup,
    package="tacit.cli.commands",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def app(context: click.Context) -> None:
    """Answer SQL queries and statistics with differential privacy.

    Exit codes: 0 success, 1 an attack found what --fail-on names, 2 usage error, 3 refused (privacy, budget, access or
    unsupported SQL), 4 failure, 130 interrupted.
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
        if sentence := str(stopped):  # what was charged, where the command knows it
            click.echo(f"tacit: {sentence}", err=True)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        discard_output()
        return EXIT_BROKEN_PIPE
    except Exception as error:
        return EXIT_INTERRUPTED if is_interrupt(error) else report_error(error, arguments)
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
