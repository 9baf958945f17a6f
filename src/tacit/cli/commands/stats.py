"""`tacit stats`: one statistic of a table, with noise, charged to its budget.

The command of one statistic: its arguments, options and completion; `execution` runs it.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tacit.cli.groups import Command, Group, format_option
from tacit.cli.options import AS_JSON, PLOT_SETTINGS, YES, is_typed, server_address, server_parameters
from tacit.cli.output import Screen, reporting_no_charge
from tacit.privacy.numbers import DEFAULT_LEVEL

if TYPE_CHECKING:
    from tacit.cli.statistics.registry import Statistic


SHARED: Final = frozenset(
    {
        *("table", "columns", "folder", "unit", "each_row", "rows_per_unit", "epsilon", "rho", "delta", "by", "keys"),
        *("bounds", "analyst", "purpose", "yes", "timeout", "level", "card", "plot", "server"),
    }
)
MORE: Final = (
    "TABLE is a registered table, whose budget is charged; or a file with --unit or --each-row, whose charges are not "
    "recorded."
)


def command_of(entry: Statistic) -> click.Command:
    """Return the command of a statistic."""
    limit = "" if entry.is_test else " --rows-per-unit 3"
    example = f"\b\n  tacit stats {entry.name} {entry.example}{limit}"
    texts = (entry.explanation, entry.more, MORE, example)
    return Command(
        entry.name,
        params=[
            *(*_arguments(entry), *_cost_options(), *_column_options(entry), *entry.options),
            *(*_table_options(), *_run_options(), *_output_options()),
        ],
        callback=click.pass_obj(partial(_run, entry)),
        help="\n\n".join(text for text in texts if text),
        short_help=entry.explanation,
    )


def _run(entry: Statistic, screen: Screen, /, **settings: Any) -> None:
    from tacit.cli.statistics.execution import StatisticQuery, is_file, run_statistic

    url, token_file = settings.pop("server"), settings.pop("token_file")
    is_local = not is_typed("server") and (settings["unit"] or settings["each_row"] or is_file(settings["table"]))
    settings["server"] = None if is_local else server_address(url, token_file)
    several = settings.pop("columns", ())
    named = tuple(settings.pop(_keyword(name)) for name in entry.columns if not name.endswith("..."))
    shared = {name: settings.pop(name, ()) for name in SHARED - {"columns"}}
    columns = (*(one for one in named if one is not None), *several)
    with reporting_no_charge():
        run_statistic(screen, StatisticQuery(entry, columns=columns, own=settings, **shared))


def _keyword(name: str) -> str:
    return f"{name.rstrip('?')}_"


def _arguments(entry: Statistic) -> list[click.Parameter]:
    found: list[click.Parameter] = [click.Argument(["table"], shell_complete=_tables)]
    for name in entry.columns:
        if name.endswith("?"):
            found.append(
                click.Argument(
                    [_keyword(name)], metavar=f"[{name[:-1].upper()}]", required=False, shell_complete=_columns
                )
            )
        elif name.endswith("..."):
            found.append(click.Argument(["columns"], nargs=-1, required=True, shell_complete=_columns))
        else:
            found.append(click.Argument([_keyword(name)], metavar=name.upper(), shell_complete=_columns))
    return found


def _cost_options() -> list[click.Parameter]:
    return [
        click.Option(["--epsilon"], type=float, help="Privacy cost of the whole answer, as epsilon."),
        click.Option(["--rho"], type=float, help="Privacy cost of the whole answer, as rho of zCDP."),
        click.Option(["--delta"], type=float, help="For a file: delta of the answer; 0 by default."),
    ]


def _column_options(entry: Statistic) -> list[click.Parameter]:
    found: list[click.Parameter] = []
    if entry.is_grouped:
        found.append(click.Option(["--by"], multiple=True, metavar="COLUMN", help="Group by this column."))
    if entry.is_grouped or entry.has_keys:
        about = "Values of a column" if entry.has_keys else "Groups to show"
        found.append(
            click.Option(
                ["--keys"],
                multiple=True,
                metavar="[COLUMN=]A,B",
                help=f"{about}, as a public list; by default those of the catalog{AS_JSON}.",
            )
        )
    if entry.bounds:
        found.append(
            click.Option(
                ["--bounds"],
                multiple=True,
                metavar="[COLUMN=]LOW:HIGH",
                help="Bounds of a column, chosen without looking at the data; by default those of the catalog."
                + (" 'learn' learns them privately for a fifth of the cost." if entry.learns else ""),
            )
        )
    return found


def _table_options() -> list[click.Parameter]:
    return [
        click.Option(
            ["--folder"],
            default=".",
            type=click.Path(path_type=Path),
            help="The folder with the catalog and the ledger.",
        ),
        *server_parameters(),
        click.Option(["--unit"], metavar="COLUMN", help="For a file: the column that identifies the protected people."),
        click.Option(["--each-row"], is_flag=True, help="For a file: each row is one person."),
        click.Option(
            ["--rows-per-unit"],
            type=click.IntRange(1, 1_000_000),
            metavar="N",
            help="Maximum number of rows that a unit contributes; by default as in the catalog.",
        ),
    ]


def _run_options() -> list[click.Parameter]:
    return [
        click.Option(["--analyst"], help="The analyst whose budget is charged as well."),
        click.Option(["--purpose"], default="", help="Purpose, recorded in the ledger."),
        click.Option(["--yes"], is_flag=True, help=YES),
        click.Option(["--timeout"], type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Time limit."),
    ]


def _output_options() -> list[click.Parameter]:
    return [
        format_option(),
        click.Option(
            ["--level"],
            type=click.FloatRange(0, 1, min_open=True, max_open=True),
            default=DEFAULT_LEVEL,
            show_default=True,
            help="Confidence level of intervals.",
        ),
        click.Option(["--card"], is_flag=True, help="Also describe the answer and its guarantee in plain language."),
        click.Option(["--plot"], **PLOT_SETTINGS),
    ]


def _tables(context: click.Context, _argument: click.Parameter, begun: str) -> list[Any]:
    """Return the completions of TABLE: tables of the folder, and files."""
    from click.shell_completion import CompletionItem

    names = [name for name in _known(context) if name.startswith(begun.lower())]
    return [*map(CompletionItem, names), CompletionItem(begun, type="file")]


def _columns(context: click.Context, _argument: click.Parameter, begun: str) -> list[Any]:
    """Return the completions of a column of the typed table."""
    from click.shell_completion import CompletionItem

    table = _known(context).get(str(context.params.get("table", "")).lower())
    names = [column.name for column in table.columns] if table is not None else []
    return [CompletionItem(name) for name in names if name.lower().startswith(begun.lower())]


def _known(context: click.Context) -> dict[str, Any]:
    """Return the tables of the folder, or none if the catalog cannot be read."""
    from tacit.curator.catalog import Catalog
    from tacit.privacy.errors import TacitError

    folder = Path(context.params.get("folder") or ".")
    if not (folder / "catalog.toml").exists():
        return {}
    try:
        return dict(Catalog.open(folder).tables)
    except TacitError:
        return {}


class StatisticsGroup(Group):
    """A group whose commands are the entries of the registry of statistics."""

    def list_commands(self, context: click.Context) -> list[str]:
        from tacit.cli.statistics.registry import STATISTICS

        return [one.name for one in STATISTICS]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        from tacit.cli.statistics.registry import statistic

        entry = statistic(name)
        return None if entry is None else command_of(entry)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """List the statistics by family."""
        from tacit.cli.statistics.registry import STATISTICS

        for family in dict.fromkeys(one.family for one in STATISTICS):
            with formatter.section(family):
                formatter.write_dl([(one.name, one.explanation) for one in STATISTICS if one.family == family])


@click.group("stats", cls=StatisticsGroup, invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Compute a statistic with noise and charge its cost.

    Numbers are shown with the half-width of their interval. Repeating a statistic costs nothing.

    \b
      tacit stats mean visits age --by sex --rows-per-unit 3 --epsilon 0.5
      tacit stats mean visits.csv age --bounds 0:120 --each-row --epsilon 0.5
    """
    if context.invoked_subcommand is not None:
        return
    screen = context.ensure_object(Screen)
    if not screen.as_json:
        click.echo(context.get_help())
        return
    from tacit.cli.statistics.registry import STATISTICS

    screen.show_object(
        {"statistics": [{"name": one.name, "about": one.family, "explanation": one.explanation} for one in STATISTICS]}
    )
