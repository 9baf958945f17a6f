"""The command of one statistic: its arguments and options; `execution` runs it, and is imported when it does."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tacit.cli.confirmation import YES
from tacit.cli.groups import Command, format_option
from tacit.cli.options import AS_JSON, is_typed, server_address, server_parameters
from tacit.cli.output import Screen
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
    "TABLE is a registered table, whose budget pays; or a file, with --unit or --each-row to say who is protected, and "
    "nothing records the charge."
)


def command_of(entry: Statistic) -> click.Command:
    """Return the command that asks for a statistic."""
    example = f"\b\n  tacit stats {entry.name} {entry.example}"
    texts = (entry.explanation, entry.more, MORE, example)
    return Command(
        entry.name,
        params=[*_arguments(entry), *_price(), *_about(entry), *entry.options(), *_place(), *_asking(), *_answer()],
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
    run_statistic(
        screen,
        StatisticQuery(entry, columns=(*(one for one in named if one is not None), *several), own=settings, **shared),
    )


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


def _price() -> list[click.Parameter]:
    return [
        click.Option(["--epsilon"], type=float, help="Privacy cost of the whole answer."),
        click.Option(
            ["--rho"], type=float, help="Privacy cost of the whole answer, as rho of zero-concentrated privacy."
        ),
        click.Option(["--delta"], type=float, help="For a file: the delta of its one-time budget; 0 by default."),
    ]


def _about(entry: Statistic) -> list[click.Parameter]:
    found: list[click.Parameter] = []
    if entry.is_grouped:
        found.append(click.Option(["--by"], multiple=True, metavar="COLUMN", help="Group by this column."))
    if entry.is_grouped or entry.has_keys:
        about = "Which values a column has" if entry.has_keys else "Which groups are shown"
        found.append(
            click.Option(
                ["--keys"],
                multiple=True,
                metavar="[COLUMN=]A,B",
                help=f"{about}, as a public list, if not those of the catalog{AS_JSON}.",
            )
        )
    if entry.bounds:
        found.append(
            click.Option(
                ["--bounds"],
                multiple=True,
                metavar="[COLUMN=]LOW:HIGH",
                help="Bounds of a column, if not those of the catalog; chosen without looking at the data"
                + (", or learn, which takes a fifth of the cost." if entry.learns else "."),
            )
        )
    return found


def _place() -> list[click.Parameter]:
    return [
        click.Option(
            ["--folder"],
            default=".",
            type=click.Path(path_type=Path),
            help="The folder with the catalog and the ledger.",
        ),
        *server_parameters(),
        click.Option(
            ["--unit"], metavar="COLUMN", help="For a file: the column whose values identify the protected people."
        ),
        click.Option(["--each-row"], is_flag=True, help="For a file: every row is a person."),
        click.Option(
            ["--rows-per-unit"],
            type=click.IntRange(1, 1_000_000),
            metavar="N",
            help="Maximum number of rows of a unit that count, if not as in the catalog.",
        ),
    ]


def _asking() -> list[click.Parameter]:
    return [
        click.Option(["--analyst"], help="The analyst who asks; their own budget is charged as well."),
        click.Option(["--purpose"], default="", help="Purpose, recorded in the ledger."),
        click.Option(["--yes"], is_flag=True, help=YES),
        click.Option(["--timeout"], type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Time limit."),
    ]


def _answer() -> list[click.Parameter]:
    return [
        format_option(),
        click.Option(
            ["--level"],
            type=click.FloatRange(0, 1, min_open=True, max_open=True),
            default=DEFAULT_LEVEL,
            show_default=True,
        ),
        click.Option(["--card"], is_flag=True, help="Describe in plain language what was released."),
        click.Option(
            ["--plot"],
            type=click.Path(path_type=Path),
            callback=_checked,
            help="Also save a plot to this .svg or .png file.",
        ),
    ]


def _checked(_context: click.Context, _option: click.Parameter, plot: Path | None) -> Path | None:
    """Refuse a plot that cannot be drawn before anything is charged."""
    if plot is not None:
        from tacit.report import check_target

        check_target(plot)
    return plot


def _tables(context: click.Context, _argument: click.Parameter, begun: str) -> list[Any]:
    """Complete a table: those of the folder, and files."""
    from click.shell_completion import CompletionItem

    names = [name for name in _known(context) if name.startswith(begun.lower())]
    return [*map(CompletionItem, names), CompletionItem(begun, type="file")]


def _columns(context: click.Context, _argument: click.Parameter, begun: str) -> list[Any]:
    """Complete a column of the table that was typed."""
    from click.shell_completion import CompletionItem

    table = _known(context).get(str(context.params.get("table", "")).lower())
    names = [column.name for column in table.columns] if table is not None else []
    return [CompletionItem(name) for name in names if name.lower().startswith(begun.lower())]


def _known(context: click.Context) -> dict[str, Any]:
    """Return the tables of the folder; whatever is wrong with it, a shell that completes is told nothing."""
    from tacit.curator.catalog import Catalog
    from tacit.privacy.errors import TacitError

    folder = Path(context.params.get("folder") or ".")
    if not (folder / "catalog.toml").exists():
        return {}
    try:
        return dict(Catalog.open(folder).tables)
    except TacitError:
        return {}
