"""`tacit errors`: all error codes with their meaning and exit code."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import click

from tacit.cli.groups import Command, add_format_option
from tacit.cli.output import Screen


@dataclass(frozen=True, slots=True)
class ErrorEntry:
    """One class of the error tree."""

    code: str
    name: str
    parent: str
    exit_code: int
    meaning: str


def error_entries() -> list[ErrorEntry]:
    """Return the errors of the tree, ordered by code."""
    from tacit.privacy import errors

    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.TacitError)]
    return [
        ErrorEntry(kind.code, kind.__name__, kind.__bases__[0].__name__, kind.exit_code, _first_line(kind))
        for kind in sorted(kinds, key=lambda kind: kind.code)
    ]


@click.command("errors", cls=Command)
@click.argument("code", required=False)
@add_format_option
@click.pass_obj
def command(screen: Screen, code: str | None) -> None:
    """List all error codes with their meaning, or show one."""
    columns = ("code", "error", "exit code", "meaning")
    found = [one for one in error_entries() if code is None or one.code == code.upper()]
    if not found:
        raise click.UsageError(f"there is no error {code}; tacit errors lists all")
    screen.show_list("errors", found, asdict, columns, _row, "")


def _row(entry: ErrorEntry) -> tuple[str, ...]:
    return entry.code, entry.name, str(entry.exit_code), entry.meaning


def _first_line(kind: type) -> str:
    return (kind.__doc__ or "").partition("\n")[0]
