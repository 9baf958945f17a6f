"""Options that several commands share: the folder or the server, the query and its price, and passwords."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

DEFAULT_DELTA: Final = 1e-7
"""The delta of a budget for which none is stated."""
AS_JSON: Final = """, or one of JSON where a value is missing: '["A", null]'"""
"""How the help of options that take public values says that NULL can be one of them."""

folder_option = click.option(
    "--folder", default=".", type=click.Path(path_type=Path), help="The folder with the catalog and the ledger."
)


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server, and where the token for it is: in a file, or in TACIT_TOKEN."""

    url: str
    token_file: Path | None


def server_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command that has a folder the options of a server; it gets `server`, None where the folder is meant."""

    @wraps(function)
    def wrapped(*arguments: Any, server: str | None, token_file: Path | None, **settings: Any) -> None:
        function(*arguments, server=server_address(server, token_file), **settings)

    wrapped.__click_params__ = [*getattr(function, "__click_params__", []), *reversed(server_parameters())]  # type: ignore[attr-defined]
    return wrapped


def server_parameters() -> list[click.Parameter]:
    """Return the options that name a server and the token for it."""
    return [
        click.Option(
            ["--server"],
            metavar="URL",
            envvar="TACIT_SERVER",
            show_envvar=True,
            help="Ask this server instead of a folder.",
        ),
        click.Option(
            ["--token-file"],
            type=click.Path(path_type=Path),
            help="A file with the token for the server, if it is not in TACIT_TOKEN.",
        ),
    ]


def server_address(url: str | None, token_file: Path | None) -> ServerAddress | None:
    """Return the server that the running command was told, or None where the folder is meant."""
    context = click.get_current_context()
    if url is not None and context.get_parameter_source("folder") is ParameterSource.COMMANDLINE:
        if is_typed("server"):
            raise click.UsageError("the data are in one place: give --server or --folder")
        url = None  # what is typed is stronger than the environment
    if url is None and token_file is not None:
        raise click.UsageError("--token-file is for a server; name it with --server")
    return None if url is None else ServerAddress(url, token_file)


def is_typed(name: str) -> bool:
    """Return whether an option of the running command was typed, and did not come from the environment."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def folder_argument() -> str | None:
    """Return the folder that the running command was told, or None where it is the usual one."""
    context = click.get_current_context(silent=True)
    if context is None or context.get_parameter_source("folder") is not ParameterSource.COMMANDLINE:
        return None
    return str(context.params["folder"])


def folder_flag(folder: Path) -> str:
    """Return the option that names the folder in a command to type next, or nothing for the current one."""
    import shlex

    return "" if str(folder) == "." else f" --folder {shlex.quote(str(folder))}"


def query_options(function: Callable[..., None], *, is_required: bool = True) -> Callable[..., None]:
    """Give a command the arguments of a question; it gets `sql`, `folder` and the rest as `asked`.

    Without a question, where it is not required, nothing need be said about its price, either.
    """

    @click.argument("sql", required=is_required)
    @folder_option
    @click.option("--epsilon", type=float, help="Privacy cost of the whole answer.")
    @click.option("--rho", type=float, help="Privacy cost of the whole answer, as rho of zero-concentrated privacy.")
    @click.option("--error", type=float, help="Instead of a cost: the half-width that the 95 % interval should have.")
    @click.option("--delta", type=float, help="Delta for groups whose keys are not public, if not the default share.")
    @click.option("--groups-per-unit", type=click.IntRange(1), help="Maximum number of groups that a unit counts in.")
    @click.option("--rows-per-group", type=click.IntRange(1), help="Maximum number of rows of a unit in each group.")
    @click.option("--keys", multiple=True, metavar="COLUMN=A,B", help=f"Public list of the groups to show{AS_JSON}.")
    @click.option("--other", is_flag=True, help="Add a row with the sum of the groups that cannot be shown.")
    @wraps(function)
    def wrapped(
        *arguments: Any,
        sql: str | None,
        folder: Path,
        groups_per_unit: int | None,
        rows_per_group: int | None,
        keys: tuple[str, ...],
        other: bool,
        **settings: Any,
    ) -> None:
        from tacit.privacy.tables import Limits

        price = {name: settings.pop(name) for name in ("epsilon", "rho", "error", "delta")}
        if sql is not None and all(price[name] is None for name in ("epsilon", "rho", "error")):
            raise click.UsageError("state a price: --epsilon, --rho or --error")
        limits = Limits(groups_per_unit=groups_per_unit, rows_per_group=rows_per_group)
        function(
            *arguments,
            sql=None if sql is None else text_of(sql),
            folder=folder,
            asked={**price, "limits": limits, "keys": _keys(keys), "other": other},
            **settings,
        )

    return wrapped


def text_of(argument: str) -> str:
    """Return the SQL: what was typed, standard input for -, or a file for @FILE."""
    if argument == "-":
        return sys.stdin.read()
    if argument.startswith("@"):
        try:
            return Path(argument[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise click.BadParameter(f"{argument[1:]} cannot be read as a text", param_hint="SQL") from None
    return argument


def _keys(typed: tuple[str, ...]) -> dict[str, list[Any]] | None:
    from tacit.cli.value_parsing import json_list, pair_of

    found: dict[str, list[Any]] = {}
    for name, text in (pair_of(one, "city=Bern,Basel") for one in typed):
        listed = json_list(name, text)
        found[name] = [_value(part) for part in text.split(",")] if listed is None else listed
    return found or None


def _value(text: str) -> Any:
    """Return a key as the value that it looks like: a whole number, a date, or a text."""
    from datetime import date

    part = text.strip()
    for read in (int, date.fromisoformat):
        try:
            return read(part)
        except ValueError:
            continue
    return part


def access_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say where people are kept."""
    postgres = click.option("--postgres", is_flag=True, help="People are stored in PostgreSQL (TACIT_LEDGER_POSTGRES).")
    return folder_option(postgres(function))


def read_password(file: Path | None, *, is_wanted: bool = True) -> str | None:
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
