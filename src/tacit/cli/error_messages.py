"""Errors as one sentence with a code on standard error, and an exit code.

Three kinds arrive here: errors that tacit raises on purpose, which already are a sentence with a code; bad use of the
command line, which click notices; and everything else, which is a defect of tacit and says so.
"""

from __future__ import annotations

import json
import re
import shlex
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import click

_COMMAND: Final = re.compile(r"\btacit((?: (?:[a-z][a-z-]*|\.\.\.))+)(?![^;)&]*--folder)")
"""A command in a sentence, up to what it is about, unless its folder is named."""


_NAMED: Final = "by|bins|edges|expected|epsilon|rho|delta|error|level|analyst|(?:rows|groups)_per_(?:unit|group)"
_KEYWORDS: Final = (
    (r'\bbounds="learn"', "--bounds learn"),
    (r"\bbounds=\(low, high\)", "--bounds LOW:HIGH"),
    (r"\bbounds=\(0, 120\)", "--bounds 0:120"),
    (r"\b(?:other_)?keys=\[\.\.\.\]", "--keys A,B,C"),
    (r"\bpopmean=", "--mean"),
    (r"\b(public|replace)=True", r"--\1"),
    (rf"\b({_NAMED})=(?=[\w.\[(\"'])", r"--\1 "),
    (rf"\b({_NAMED})=", r"--\1"),
    (r", or a second array\b", ""),
)
"""Keyword arguments as sentences of the library name them, and the options in their place."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What the user is told."""

    code: str
    message: str
    exit_code: int


def report_error(error: Exception, arguments: Sequence[str]) -> int:
    """Write on standard error what went wrong and return the exit code.

    The options are looked for in the arguments themselves, because the error may be that they could not be read.
    """
    failure = describe_error(error, _folder_in(arguments))
    if "--debug" in arguments:
        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    if {"--json", "--format=json"} & {*arguments} or ("--format", "json") in pairwise(arguments):
        text = json.dumps({"error": {"code": failure.code, "message": failure.message}}, ensure_ascii=False)
    else:
        text = f"tacit: {failure.code} {failure.message}"
    click.echo(text, err=True)
    return failure.exit_code


def describe_error(error: Exception, folder: str | None = None) -> Failure:
    """Say what `error` means to the user; commands that it names are about the `folder` that was named."""
    from tacit.privacy.errors import InvalidInput, TacitError

    if isinstance(error, TacitError):
        sentence = with_options(_one_line(error.message))
        return Failure(error.code, add_folder_flag(sentence, folder), error.exit_code)
    if isinstance(error, click.ClickException):
        return Failure(InvalidInput.code, _usage_sentence(error), InvalidInput.exit_code)
    reason = _one_line(f"{type(error).__name__}: {error}".removesuffix(": "))
    message = f"internal error: {reason}; run with --debug for the traceback"
    return Failure(TacitError.code, message, TacitError.exit_code)


def with_options(sentence: str) -> str:
    """Return a sentence in which options stand in the place of the keyword arguments of Python."""
    for keyword, option in _KEYWORDS:
        sentence = re.sub(keyword, option, sentence)
    return re.sub(r"--\w+_\w+", lambda found: found[0].replace("_", "-"), sentence)


def add_folder_flag(sentence: str, folder: str | None) -> str:
    """Return a sentence whose commands work where they are typed: with the folder, if one was named."""
    if folder is None:
        return sentence
    from tacit.cli.app import app

    def named(found: re.Match[str]) -> str:
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

    return _COMMAND.sub(named, sentence)


def _folder_in(arguments: Sequence[str]) -> str | None:
    """Return the folder that was named by an option, if one was."""
    for place, word in enumerate(arguments):
        if word == "--folder" and place + 1 < len(arguments):
            return arguments[place + 1]
        if word.startswith("--folder="):
            return word.partition("=")[2]
    return None


def _usage_sentence(error: click.ClickException) -> str:
    sentence = _one_line(error.format_message()).removesuffix(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else "tacit"
    return f"{sentence[:1].lower()}{sentence[1:]}; see {path} --help"


def _one_line(text: str) -> str:
    """Return a text as one line in which a terminal finds no commands: what does not show is written as an escape."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in " ".join(text.split()))
