"""A question as it is typed: the SQL, what it may cost, how much of each unit is counted, which keys are public."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from tacit.cli.catalog.place import in_folder


def question(function: Callable[..., None], *, is_required: bool = True) -> Callable[..., None]:
    """Give a command the arguments of a question; it gets `sql`, `folder` and the rest as `asked`.

    Without a question, where it is not required, nothing need be said about its price, either.
    """

    @click.argument("sql", required=is_required)
    @in_folder
    @click.option("--epsilon", type=float, help="What the whole answer costs.")
    @click.option("--rho", type=float, help="What the whole answer costs, as zero-concentrated privacy.")
    @click.option("--error", type=float, help="Instead of a cost: the wanted half-width of the 95 % interval.")
    @click.option("--delta", type=float, help="The delta for keys that are not public, if not the usual share.")
    @click.option("--groups-per-unit", type=click.IntRange(1), help="In how many groups each unit counts, at most.")
    @click.option("--rows-per-group", type=click.IntRange(1), help="With how many rows each unit counts in a group.")
    @click.option("--keys", multiple=True, metavar="COLUMN=A,B", help="Which groups are shown, as a public list.")
    @click.option("--other", is_flag=True, help="Add up the groups whose keys cannot be shown in one more row.")
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
            raise click.UsageError("say what the answer may cost: --epsilon, --rho or --error")
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
    from tacit.cli.catalog.values import pair_of

    stated = dict(pair_of(text, "city=Bern,Basel") for text in typed)
    return {name: [_value(part) for part in values.split(",")] for name, values in stated.items()} or None


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
