"""Options that several commands share: folder or server, the query with its privacy cost, plots, and passwords.

Confirmation of a cost above half of the remaining budget, before it is charged.

Repeated answers cost nothing and need no confirmation; a cost that exceeds the budget is refused by the ledger.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import click
from click.core import ParameterSource

from tacit.cli.output import Screen
from tacit.privacy.figures import at_most, left_over

if TYPE_CHECKING:
    from tacit import Cost


DEFAULT_DELTA: Final = 1e-7
"""The delta of a budget set without --delta."""
AS_JSON: Final = """; as a JSON list, null stands for missing values: '["A", null]'"""
"""The end of the help of options that take a list of public values."""

_FOLDER: Final[dict[str, Any]] = {
    "default": ".",
    "type": click.Path(path_type=Path),
    "help": "The folder with the catalog and the ledger.",
}
folder_option = click.option("--folder", **_FOLDER)


def folder_parameter() -> click.Parameter:
    """Return the option --folder."""
    return click.Option(["--folder"], **_FOLDER)


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server's URL and the file with its token; without a file the token is in TACIT_TOKEN."""

    url: str
    token_file: Path | None


def server_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the server options to a command with --folder; its `server` argument is None if the folder is meant."""

    @wraps(function)
    def wrapped(*arguments: Any, server: str | None, token_file: Path | None, **settings: Any) -> None:
        function(*arguments, server=server_address(server, token_file), **settings)

    wrapped.__click_params__ = [*getattr(function, "__click_params__", []), *reversed(server_parameters())]  # type: ignore[attr-defined]
    return wrapped


def server_parameters() -> list[click.Parameter]:
    """Return the options --server and --token-file."""
    return [
        click.Option(
            ["--server"],
            metavar="URL",
            envvar="TACIT_SERVER",
            show_envvar=True,
            help="Query this server instead of a folder.",
        ),
        click.Option(
            ["--token-file"],
            type=click.Path(path_type=Path),
            help="File with the token for the server; TACIT_TOKEN by default.",
        ),
    ]


def server_address(url: str | None, token_file: Path | None) -> ServerAddress | None:
    """Return the server of the running command, or None if the folder is meant."""
    context = click.get_current_context()
    if url is not None and context.get_parameter_source("folder") is ParameterSource.COMMANDLINE:
        if is_typed("server"):
            raise click.UsageError("give --server or --folder, not both")
        url = None  # a typed --folder overrides TACIT_SERVER
    if url is None and token_file is not None:
        raise click.UsageError("--token-file needs --server URL")
    return None if url is None else ServerAddress(url, token_file)


def is_typed(name: str) -> bool:
    """Return whether an option of the running command was typed, rather than read from the environment."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def folder_argument() -> str | None:
    """Return the folder that the running command was given, or None if it is the default."""
    context = click.get_current_context(silent=True)
    if context is None or context.get_parameter_source("folder") is not ParameterSource.COMMANDLINE:
        return None
    return str(context.params["folder"])


def folder_flag(folder: Path) -> str:
    """Return the --folder option for a suggested command, or nothing for the current folder."""
    import shlex

    return "" if str(folder) == "." else f" --folder {shlex.quote(str(folder))}"


def query_options(function: Callable[..., None], *, is_required: bool = True) -> Callable[..., None]:
    """Add the options of a query to a command, which receives `sql`, `folder` and the rest as `options`.

    Without a query, if it is not required, no privacy cost is required either.
    """

    @click.argument("sql", required=is_required)
    @folder_option
    @click.option("--epsilon", type=float, help="Privacy cost of the whole answer, as epsilon.")
    @click.option("--rho", type=float, help="Privacy cost of the whole answer, as rho of zCDP.")
    @click.option("--error", type=float, help="Instead of a cost: the wanted half-width of the 95 % interval.")
    @click.option(
        "--delta",
        type=float,
        help="Delta spent on finding groups that are not public; by default a share of the budget's.",
    )
    @click.option(
        "--groups-per-unit", type=click.IntRange(1), help="Maximum number of groups to which a unit contributes."
    )
    @click.option(
        "--rows-per-group", type=click.IntRange(1), help="Maximum number of rows that a unit contributes to each group."
    )
    @click.option("--keys", multiple=True, metavar="COLUMN=A,B", help=f"The groups to show, as a public list{AS_JSON}.")
    @click.option("--other", is_flag=True, help="Add a row for all groups that are not shown.")
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

        cost = {name: settings.pop(name) for name in ("epsilon", "rho", "error", "delta")}
        if sql is not None and all(cost[name] is None for name in ("epsilon", "rho", "error")):
            raise click.UsageError("give the privacy cost of the query: --epsilon, --rho or --error")
        limits = Limits(groups_per_unit=groups_per_unit, rows_per_group=rows_per_group)
        function(
            *arguments,
            sql=None if sql is None else read_sql(sql),
            folder=folder,
            options={**cost, "limits": limits, "keys": _keys(keys), "other": other},
            **settings,
        )

    return wrapped


def read_sql(argument: str) -> str:
    """Return the SQL: the argument itself, standard input for -, or the content of a file for @FILE."""
    if argument == "-":
        return sys.stdin.read()
    if argument.startswith("@"):
        try:
            return Path(argument[1:]).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise click.BadParameter(f"there is no file {argument[1:]}", param_hint="SQL") from None
        except (OSError, UnicodeDecodeError):
            raise click.BadParameter(f"{argument[1:]} cannot be read as UTF-8 text", param_hint="SQL") from None
    return argument


def _keys(typed: tuple[str, ...]) -> dict[str, list[Any]] | None:
    from tacit.cli.value_parsing import json_list, pair_of

    found: dict[str, list[Any]] = {}
    for name, text in (pair_of(one, "city=Bern,Basel") for one in typed):
        listed = json_list(name, text)
        found[name] = [_value(part) for part in text.split(",")] if listed is None else listed
    return found or None


def _value(text: str) -> Any:
    """Return a key as an integer, a date, or else text."""
    from datetime import date

    part = text.strip()
    for read in (int, date.fromisoformat):
        try:
            return read(part)
        except ValueError:
            continue
    return part


def check_plot(_context: click.Context, _option: click.Parameter, plot: Path | None) -> Path | None:
    """Raise InvalidInput for a plot that cannot be drawn, before anything is computed or charged."""
    if plot is not None:
        from tacit.report import check_target

        check_target(plot)
    return plot


PLOT_SETTINGS: Final[dict[str, Any]] = {
    "type": click.Path(path_type=Path),
    "callback": check_plot,
    "help": "Also save a plot to this .svg or .png file.",
}
plot_option = click.option("--plot", **PLOT_SETTINGS)


def access_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that locate the access database to a command."""
    postgres = click.option(
        "--postgres", is_flag=True, help="The access database is in PostgreSQL (TACIT_LEDGER_POSTGRES)."
    )
    return folder_option(postgres(function))


def read_password(file: Path | None, *, is_wanted: bool = True) -> str | None:
    """Return a password from a file or a hidden prompt, or None if none is wanted."""
    if not is_wanted:
        return None
    if file is not None:
        return _password_in(file)
    if not sys.stdin.isatty():
        raise click.UsageError("no terminal to prompt for a password; use --password-file FILE")
    return str(click.prompt("Password", hide_input=True, confirmation_prompt="Repeat the password", err=True))


def password_options(*, is_optional: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options that say where a password comes from to a command."""
    file = click.option(
        "--password-file",
        type=click.Path(path_type=Path, allow_dash=True),
        metavar="FILE",
        help="Read the password from a file with mode 600, or with - from standard input.",
    )
    without = click.option(
        "--no-password", is_flag=True, help="No password: the person uses tokens or single sign-on only."
    )
    return lambda function: file(without(function)) if is_optional else file(function)


def _password_in(file: Path) -> str:
    from tacit.privacy.errors import InvalidInput, NotPermitted

    try:
        if str(file) == "-":
            return sys.stdin.readline().rstrip("\r\n")
        mode, text = file.stat().st_mode, file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(f"{file} cannot be read; its first line must be the password", name="file") from None
    if mode & 0o077:
        raise NotPermitted(f"{file} contains a password and others can read it; run: chmod 600 {file}")
    return text.splitlines()[0] if text else ""


SHARE: Final = 0.5
YES: Final = "Spend more than half of the remaining budget without asking for confirmation."


class Previewed(Protocol):
    """A cost, the remaining budgets that would be charged, and whether it fits."""

    @property
    def epsilon(self) -> float:
        """The epsilon that would be charged."""

    @property
    def remaining(self) -> Mapping[str, Cost]:
        """The remaining budget of each data set."""

    @property
    def leaves(self) -> Mapping[str, Cost]:
        """What would be left of each data set's budget afterwards."""

    @property
    def fits(self) -> bool:
        """Whether the cost fits into the budgets."""

    @property
    def analyst(self) -> str | None:
        """Whose cap is charged as well."""


def confirm_cost(screen: Screen, preview: Previewed) -> None:
    """Ask for confirmation of what takes more than half of a remaining budget; raise UsageError without a terminal."""
    large = [
        (name, left)
        for name, left in preview.remaining.items()
        if max(preview.epsilon, left.epsilon - preview.leaves[name].epsilon) > SHARE * left.epsilon
    ]
    if not large or not preview.fits:
        return
    name, left = large[0]
    sentence = cost_sentence(preview.epsilon, left, name, preview.analyst)
    if takes_more(preview.epsilon, left, after := preview.leaves[name]):
        sentence += f" and leaves ε {left_over(after.epsilon)}, as it uses up the delta of the budget"
    confirm_sentence(screen, sentence)


def takes_more(epsilon: float, left: Cost, after: Cost) -> bool:
    """Return whether a release leaves a budget with less than its epsilon explains."""
    return after.epsilon < (left.epsilon - epsilon) * (1 - 1e-6)


def cost_sentence(epsilon: float, left: Cost, dataset: str, analyst: str | None) -> str:
    """Return what a cost takes of the remaining budget, in words."""
    whose = f"for {analyst} on {dataset}" if analyst else f"on {dataset}"
    return f"this costs ε {at_most(epsilon)} of the remaining ε {left_over(left.epsilon)} {whose}"


def confirm_sentence(screen: Screen, sentence: str) -> None:
    """Ask for confirmation of costs above half of the remaining budget."""
    confirm(screen, f"{sentence}; continue?", f"{sentence}, which is more than half", "nothing was charged")


def confirm(screen: Screen, question: str, refusal: str, unchanged: str) -> None:
    """Ask for confirmation, for which Enter is no; raise UsageError without a terminal, and Abort if it is refused."""
    if not screen.is_interactive:
        raise click.UsageError(f"{refusal}; {unchanged}; add --yes to confirm")
    if not click.confirm(question):
        raise click.Abort(unchanged)
