"""Whatever goes wrong becomes one sentence with a code on standard error, and an exit code.

Three kinds reach this place: errors that tacit raises on purpose, which already are a sentence with a code; bad use of
the command line, which click notices; and everything else, which is a defect of tacit and says so.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

import click


@dataclass(frozen=True, slots=True)
class Failure:
    """What the user is told."""

    code: str
    message: str
    exit_code: int


def report(error: Exception, arguments: Sequence[str]) -> int:
    """Write on standard error what went wrong and return the exit code.

    The options are looked for in the arguments themselves, because the error may be that they could not be read.
    """
    failure = describe(error)
    if "--debug" in arguments:
        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    if "--json" in arguments:
        text = json.dumps({"error": {"code": failure.code, "message": failure.message}}, ensure_ascii=False)
    else:
        text = f"tacit: {failure.code} {failure.message}"
    click.echo(text, err=True)
    return failure.exit_code


def describe(error: Exception) -> Failure:
    """Say what `error` means to the user."""
    from tacit.privacy.errors import InvalidInput, TacitError

    if isinstance(error, TacitError):
        return Failure(error.code, _one_line(error.message), error.exit_code)
    if isinstance(error, click.ClickException):
        return Failure(InvalidInput.code, _usage_sentence(error), InvalidInput.exit_code)
    reason = _one_line(f"{type(error).__name__}: {error}".removesuffix(": "))
    message = f"internal error: {reason}; run with --debug for the traceback"
    return Failure(TacitError.code, message, TacitError.exit_code)


def _usage_sentence(error: click.ClickException) -> str:
    sentence = _one_line(error.format_message()).removesuffix(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else "tacit"
    return f"{sentence[:1].lower()}{sentence[1:]}; see {path} --help"


def _one_line(text: str) -> str:
    """Return a text as one line in which a terminal finds no commands: what does not show is written as an escape."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in " ".join(text.split()))
