"""Where people are kept, and how a password gets there: never as a word of the command, which others could read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.catalog.place import in_folder, require_folder

if TYPE_CHECKING:
    from tacit.server.access import Access


def on_people(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say where people are kept."""
    postgres = click.option("--postgres", is_flag=True, help="They are kept in PostgreSQL (TACIT_LEDGER_POSTGRES).")
    return in_folder(postgres(function))


@contextmanager
def opened_access(folder: Path, postgres: bool) -> Iterator[Access]:
    """Open the server's own database of a folder that was set up, or of the PostgreSQL that the environment names."""
    from tacit.server.access import Access
    from tacit.server.database import open_database

    if not postgres:
        require_folder(folder)
    database = open_database(folder, _address() if postgres else None)
    try:
        yield Access(database)
    finally:
        database.close()


def asked_password(file: Path | None, *, is_wanted: bool = True) -> str | None:
    """Return a password from a file, or as it is typed twice without being shown, or none if none is wanted."""
    if not is_wanted:
        return None
    if file is not None:
        return _password_in(file)
    if not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to ask for a password; name a file with --password-file")
    return str(click.prompt("Password", hide_input=True, confirmation_prompt="The same again", err=True))


def password_options(*, is_optional: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options that say where a password comes from."""
    file = click.option(
        "--password-file",
        type=click.Path(path_type=Path, allow_dash=True),
        metavar="FILE",
        help="Read the password from a file that only you can read, or with - from standard input.",
    )
    without = click.option("--no-password", is_flag=True, help="Tokens and other log-in services only.")
    return lambda function: file(without(function)) if is_optional else file(function)


def _password_in(file: Path) -> str:
    from tacit.privacy.errors import InvalidInput, NotPermitted

    try:
        if str(file) == "-":
            return sys.stdin.readline().rstrip("\r\n")
        mode, text = file.stat().st_mode, file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(f"{file} cannot be read; it holds the password in its first line", name="file") from None
    if mode & 0o077:
        raise NotPermitted(f"{file} holds a password and others can read it; run chmod 600 on it")
    return text.splitlines()[0] if text else ""


def _address() -> str:
    import os

    from tacit.ledger.stores.postgres import ENVIRONMENT_NAME
    from tacit.privacy.errors import UnknownName

    address = os.environ.get(ENVIRONMENT_NAME, "")
    if not address:
        raise UnknownName(
            f"set {ENVIRONMENT_NAME} to the connection string of the ledger's database", name=ENVIRONMENT_NAME
        )
    return address
