"""`tacit table`: register tables, with their unit and the public facts of their columns."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tacit.cli.backends import open_audited_curator, open_catalog, open_curator, require_folder
from tacit.cli.groups import Group, add_format_option
from tacit.cli.options import AS_JSON, DEFAULT_DELTA, confirm, folder_flag, folder_option
from tacit.cli.output import Screen, show_hints, show_result

if TYPE_CHECKING:
    from tacit.cli.table_draft import Draft
    from tacit.curator import Curator
    from tacit.curator.catalog import Catalog
    from tacit.engines.protocol import Source
    from tacit.privacy.tables import Table

UNDECIDED: Final = (
    "who is protected in {name}? give --unit COLUMN, the column that identifies people; or --each-row, if each row is "
    "one person; or --public, if the table is not about people"
)
FORMATS: Final = ("csv", "parquet", "duckdb")
STATED: Final = (
    *("unit", "each_row", "public", "through", "bounds", "categories", "kinds", "never_missing", "identified_by"),
    *("rows_per_unit", "groups_per_unit", "rows_per_group", "dataset", "format"),
)
"""The options that describe a table."""
CHARGED_AGAIN: Final = "answers released before this change are charged again if they are repeated"


@click.group("table", cls=Group)
def command() -> None:
    """Register tables: who is protected, and what is public.

    Bounds and categories are public facts that the owner states without looking at the data; tacit takes only the names
    and types of columns from it. They are kept in catalog.toml, which you may also edit by hand. The rows are read when
    a table is added and when it is refreshed.
    """


def _table_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that describe a table to a command, which receives them as `options`."""
    several: dict[str, Any] = {"multiple": True, "metavar": "COLUMN=VALUE"}
    limit: dict[str, Any] = {"type": click.IntRange(1, 1_000_000), "metavar": "N"}
    stated = [
        click.option(
            "--unit", metavar="COLUMN", help="Column that identifies the protected people (the privacy unit)."
        ),
        click.option(
            "--each-row",
            is_flag=True,
            help="Each row is one person; the folder keeps a copy (tables/NAME-*.parquet) whose column row, the unit, "
            "holds random ids; who attacks the table takes ids and secrets from there.",
        ),
        click.option("--public", is_flag=True, help="The table is not about people; nothing in it is protected."),
        click.option(
            "--through",
            multiple=True,
            metavar="COLUMN=TABLE.COLUMN",
            help="Foreign key to the table with the unit; repeat it for several steps, in order.",
        ),
        click.option("--bounds", **several, help="Bounds of a column, such as age=0:120."),
        click.option("--categories", **several, help=f"All values that a column can have, such as sex=F,M{AS_JSON}."),
        click.option(
            "--kind",
            "kinds",
            **several,
            help="Kind of a column: boolean, integer, real, text, date or time, such as zip=text.",
        ),
        click.option("--never-missing", multiple=True, metavar="COLUMN", help="Column without missing values."),
        click.option(
            "--identified-by",
            multiple=True,
            metavar="COLUMN",
            help="Column that, together with the others given, identifies a row.",
        ),
        click.option("--rows-per-unit", **limit, help="Maximum number of rows that a unit contributes."),
        click.option(
            "--groups-per-unit", **limit, help="Maximum number of groups of an answer to which a unit contributes."
        ),
        click.option("--rows-per-group", **limit, help="Maximum number of rows that a unit contributes to each group."),
        click.option("--dataset", metavar="NAME", help="Data set whose budget is charged; by default the table's own."),
        click.option("--format", type=click.Choice(FORMATS), help="File format; by default by the file's name."),
    ]

    @wraps(function)
    def wrapped(*screen: Screen, **settings: Any) -> None:
        options = {name: settings.pop(name) for name in STATED}
        function(*screen, options=options, **settings)

    decorated: Callable[..., None] = wrapped
    for option in reversed(stated):
        decorated = option(decorated)
    return decorated


@command.command()
@folder_option
@click.argument("name")
@click.argument("source")
@_table_options
@click.option("--replace", is_flag=True, help="Replace a table of this name.")
@click.option("--epsilon", type=float, help="Also set the budget of its data set, as tacit budget set does.")
@click.option("--delta", type=float, help=f"Delta of that budget, {DEFAULT_DELTA:g} by default.")
@click.pass_obj
def add(
    screen: Screen,
    folder: Path,
    name: str,
    source: str,
    replace: bool,
    epsilon: float | None,
    delta: float | None,
    options: dict[str, Any],
) -> None:
    """Register a table whose rows come from SOURCE.

    SOURCE is a CSV or Parquet file, several of them (visits-*.parquet), a table of a DuckDB file
    (clinic.duckdb#visits), or a table in PostgreSQL or Spark, whose rows stay there. Put no password in the address:
    use PGPASSWORD or ~/.pgpass, or env:NAME for an environment variable with the whole address. At a terminal, a wizard
    asks for what the options leave out.

    \b
      tacit table add visits visits.parquet --unit patient_id --bounds age=0:120 --categories sex=F,M --epsilon 3
      tacit table add lines lines.csv --through visit_id=visits.id --rows-per-unit 50
      tacit table add survey survey.csv --each-row
      tacit table add regions regions.csv --public
      tacit table add stays postgresql://ana@db.clinic/care#public.stays --unit patient_id
      tacit table add events sc://spark.clinic:15002#care.events --unit user_id --rows-per-unit 10
    """
    catalog = open_catalog(folder)
    from tacit.cli.table_draft import Draft
    from tacit.curator.table_sources import describe, source_of
    from tacit.privacy.errors import NameTaken

    if name.lower() in catalog.tables and not replace:
        raise NameTaken(f"{name} is already in {catalog.path}; change it with tacit table edit, or add --replace")
    rows = source_of(source, folder=folder, format=options["format"])
    draft = Draft(name, describe(rows))
    draft.apply(options, catalog)
    if not draft.is_decided:
        if not screen.is_interactive:
            raise click.UsageError(UNDECIDED.format(name=name))
        _run_wizard(screen, catalog, draft, rows, source)
    known = {table.dataset for table in catalog.tables.values() if table.is_private}
    table = draft.table()
    if epsilon is not None:
        _check_budget(folder, table, epsilon, DEFAULT_DELTA if delta is None else delta)
    copied_from = rows if draft.each_row else None
    with open_audited_curator(folder) as (curator, warn), _row_source(folder, draft, table, rows) as registered:
        table = curator.register(table, registered, replace=replace, warn=warn, copied_from=copied_from)
        if epsilon is not None:
            curator.set_budget(table.dataset, epsilon, DEFAULT_DELTA if delta is None else delta)
        rows_found, doubts = _usable_rows(curator, [table.name])
    catalog.reload()
    is_new_budget = epsilon is None and table.is_private and table.dataset not in known
    budget = "" if epsilon is None else _budget_text(folder, table.dataset, epsilon, delta)
    _show_added(screen, catalog, draft, (rows_found, doubts), is_new_budget=is_new_budget, budget=budget)
    _show_doubts(screen, doubts)


@contextmanager
def _row_source(folder: Path, draft: Draft, table: Table, rows: Source) -> Iterator[Source]:
    """Yield the source to register: a copy with numbered rows if each row is its own unit."""
    if not draft.each_row or table.unit is None:
        yield rows
        return
    from tacit.curator.registration import numbered_copy

    with numbered_copy(folder, table, rows) as numbered:
        yield numbered


def _budget_text(folder: Path, dataset: str, epsilon: float, delta: float | None) -> str:
    """Return which budget was set, and how to change its delta if that is the default."""
    text = f"; budget ε {epsilon:g}, δ {DEFAULT_DELTA if delta is None else delta:g}"
    if delta is not None:
        return text
    command = f"tacit budget set {shlex.quote(dataset)} --epsilon {epsilon:g} --delta 1e-8{folder_flag(folder)}"
    return f"{text}; this δ is the default, and can be changed until something is charged: {command}"


def _check_budget(folder: Path, table: Table, epsilon: float, delta: float) -> None:
    """Raise for a budget that could not be set, before anything is written."""
    from tacit import Budget
    from tacit.privacy.errors import InvalidInput, NameTaken

    if not table.is_private:
        raise InvalidInput(f"{table.name} is public and needs no budget; leave out --epsilon", name="epsilon")
    Budget(epsilon, delta)
    with open_curator(folder) as curator:
        if curator.budgets(table.dataset):
            raise NameTaken(f"{table.dataset} already has a budget; leave out --epsilon")


def _run_wizard(screen: Screen, catalog: Catalog, draft: Draft, rows: Source, place: str) -> None:
    """Run the wizard for what the options leave open; abort if the user stops or declines."""
    from tacit.cli.wizard import Wizard
    from tacit.curator.catalog_writer import table_text

    wizard = Wizard(screen.console, catalog)
    try:
        wizard.complete(draft, rows, place)
        wanted = wizard.confirm(table_text(draft.table(), rows, catalog.folder))
    except (KeyboardInterrupt, click.Abort):
        screen.console.print("\n\nnothing was written")
        raise
    if not wanted:
        screen.console.print("nothing was written")
        raise click.Abort
    screen.console.print()


def _show_added(
    screen: Screen,
    catalog: Catalog,
    draft: Draft,
    found: tuple[Mapping[str, int], list[str]],
    *,
    is_new_budget: bool,
    budget: str,
) -> None:
    from tacit.cli.catalog_rendering import printable, protected_text, table_object
    from tacit.cli.table_draft import row_limit_hint, table_hints
    from tacit.curator.registration import left_out

    table, name = catalog.schema.table(draft.name), draft.name
    without = left_out(draft.described, draft.kinds)
    hints = [*table_hints(table), *row_limit_hint(table)]
    if without:
        named = ", ".join(f"{printable(one.name)} ({one.type})" for one in without)
        hints.append(f"left out because of their types: {named}; --kind COLUMN=KIND includes one")
    rows, doubts = found
    stated = {**table_object(catalog, table), "left_out": [one.name for one in without]}
    facts = {**stated, "rows": rows, "warnings": doubts, "hints": hints}
    sentence = (
        f"added {printable(table.name)}: {len(table.columns)} columns; protected: {protected_text(table)}{budget}"
    )
    kinds = ", ".join(f"{printable(one.name)} {one.kind}" for one in table.columns)
    reading = f"its rows were read now; after changes, read them again with: tacit table refresh {shlex.quote(name)}"
    rules = [f"{printable(table.unit_rule)}; "] if table.unit_rule else []
    lines = [
        sentence,
        f"columns: {kinds}",
        *_row_lines(rows),
        f"{''.join(rules)}{reading}{folder_flag(catalog.folder)}",
    ]
    show_result(screen, "\n".join(lines), facts)
    if is_new_budget:
        dataset = shlex.quote(table.dataset)
        hints.append(
            f"set its budget: tacit budget set {dataset} --epsilon 1 --delta 1e-7{folder_flag(catalog.folder)}"
        )
    show_hints(screen, hints)


@command.command()
@folder_option
@click.argument("name", required=False)
@add_format_option
@click.pass_obj
def show(screen: Screen, folder: Path, name: str | None) -> None:
    """Show a table with its columns, or list all tables.

    In a pipe the output is the TOML of the catalog, unless --format is given.
    """
    catalog = open_catalog(folder)
    from tacit.cli import catalog_rendering

    tables = list(catalog.tables.values()) if name is None else [catalog.schema.table(name)]
    if not (screen.as_json or screen.chosen or screen.console.is_terminal):
        click.echo("\n".join(catalog.table_text(table.name) for table in tables), nl=False)
    elif name is None:
        catalog_rendering.show_tables(screen, catalog)
    elif screen.as_json:
        screen.show_object(catalog_rendering.table_object(catalog, tables[0]))
    else:
        catalog_rendering.show_table(screen, catalog, tables[0])


command.add_command(show, "list")


@command.command()
@folder_option
@click.argument("name", required=False)
@_table_options
@click.option("--source", help="New source of the rows.")
@click.option("--forget", multiple=True, metavar="COLUMN", help="Remove the bounds or categories of a column.")
@click.pass_obj
def edit(
    screen: Screen, folder: Path, name: str | None, source: str | None, forget: tuple[str, ...], options: dict[str, Any]
) -> None:
    """Change the description of a table.

    Options change what they name and keep the rest; --dataset also moves the tables linked by foreign keys, because
    they share a budget. Without options, catalog.toml opens in your editor ($EDITOR) and is replaced by what you save
    if it is valid.
    """
    require_folder(folder)
    if options["each_row"]:
        raise click.UsageError(
            "--each-row needs a new copy of the rows; use tacit table add NAME SOURCE --each-row --replace"
        )
    options["forget"] = forget
    if source is None and not any(options.values()):
        _edit_by_hand(screen, folder, name)
        return
    if name is None:
        raise click.UsageError("give the name of the table to change")
    catalog = open_catalog(folder)
    from tacit.cli.catalog_rendering import printable, protected_text, table_changes, table_object
    from tacit.cli.table_draft import Draft, table_hints
    from tacit.curator.table_sources import source_text

    draft = Draft.of(catalog.schema.table(name))
    rows = _changed_source(catalog, name, source, options["format"])
    draft.apply(options, catalog)
    before, sources = catalog.tables, [source_text(one, folder) for one in (catalog.source(name), rows)]
    with open_audited_curator(folder) as (curator, warn):
        with_linked = options["dataset"] is not None
        table = curator.register(draft.table(), rows, replace=True, with_linked=with_linked, warn=warn)
        notes = _charged_again(curator, [before[name.lower()]])
    catalog.reload()
    moved = [one.name for key, one in catalog.tables.items() if one.dataset != before[key].dataset]
    changes = table_changes(before[name.lower()], table)
    changes += [f"source: {' → '.join(map(printable, sources))}"] if len({*sources}) > 1 else []
    hints = [*(notes if changes else []), *table_hints(table)]
    facts = {**table_object(catalog, table), "moved": moved, "changes": changes, "hints": hints}
    verb = "changed" if changes else "nothing differs from before in"
    sentence = f"{verb} {printable(table.name)}: {len(table.columns)} columns; protected: {protected_text(table)}"
    if moved:
        sentence += f"; moved to the data set {printable(table.dataset)}: {', '.join(map(printable, moved))}"
    show_result(screen, "\n".join([sentence, *changes]), facts)
    show_hints(screen, hints)


def _charged_again(curator: Curator, changed: Iterable[Table]) -> list[str]:
    """Return a note on released answers, if something was charged to the data sets of changed tables."""
    datasets = {one.dataset if one.is_private else None for one in changed}
    budgets = [budget for dataset in datasets for budget in curator.budgets(dataset)]
    return [CHARGED_AGAIN] if any(one.spent().epsilon for one in budgets) else []


def _changed_source(catalog: Catalog, name: str, source: str | None, form: str | None) -> Source:
    """Return the new source of a table; raise if it lacks a column of the table."""
    from tacit.curator.registration import column_named
    from tacit.curator.table_sources import describe, source_of

    rows = catalog.source(name)
    if source is None and form is None:
        return rows
    if source is None:
        rows = source_of(rows.place, folder=catalog.folder, format=form, table=rows.table)
    else:
        rows = source_of(source, folder=catalog.folder, format=form)
    found = describe(rows)
    for column in catalog.schema.table(name).columns:
        column_named(f"the new source of {name}", found, column.name)
    return rows


def _edit_by_hand(screen: Screen, folder: Path, name: str | None) -> None:
    """Open the catalog in an editor until it is valid or the user gives up."""
    from tacit.cli.catalog_rendering import printable, table_changes
    from tacit.curator.catalog import FILE_NAME, Catalog
    from tacit.curator.locked_file import LockedFile
    from tacit.privacy.errors import CatalogInvalid

    since = LockedFile(folder, FILE_NAME).read().text
    if screen.as_json or not sys.stdin.isatty():
        raise click.UsageError("give options such as --bounds age=0:120, or run in a terminal to open an editor")
    before: Mapping[str, Table] = {}
    try:
        known = Catalog.open(folder)
        before = known.tables
        if name is not None:
            known.schema.table(name)
    except CatalogInvalid as error:
        click.echo(f"tacit: {error.code} {error.message}", err=True)  # to be fixed in the editor
    text = since
    while True:
        edited = click.edit(text, extension=".toml")
        if edited is None or edited == since:
            screen.console.print("nothing was changed")
            return
        try:
            with open_audited_curator(folder) as (curator, warn):
                catalog = Catalog.rewrite(folder, edited, since)
                curator.record_sources((), before, warn=warn)
                changes = {
                    key: table_changes(one, catalog.tables[key]) for key, one in before.items() if key in catalog.tables
                }
                notes = _charged_again(curator, [before[key] for key, found in changes.items() if found])
        except CatalogInvalid as error:
            click.echo(f"tacit: {error.code} {error.message}", err=True)
            if not click.confirm("Edit again? Otherwise your changes are discarded.", default=True):
                raise
            text = edited
        else:
            count = len(catalog.tables)
            screen.console.print(f"changed {catalog.path}: {count} table{'' if count == 1 else 's'}", soft_wrap=True)
            for key, found in changes.items():
                for change in found:
                    screen.console.print(f"{printable(catalog.tables[key].name)}, {change}", soft_wrap=True)
            show_hints(screen, notes)
            return


@command.command()
@folder_option
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.pass_obj
def refresh(screen: Screen, folder: Path, names: tuple[str, ...]) -> None:
    """Read the rows of some or all tables again.

    Answers are about the rows of the last refresh, not about later changes. Tables linked by foreign keys are refreshed
    together; if rows cannot be read, nothing changes. The output has exact numbers of rows without noise: it is for the
    owner, and not for analysts.
    """
    require_folder(folder)
    with open_audited_curator(folder) as (curator, _warn):
        changed = curator.refresh(*names)
        rows, doubts = _usable_rows(curator, changed)
    from tacit.cli.catalog_rendering import printable

    named = ", ".join(printable(one) for one in changed)
    sentence = f"refreshed; the rows of {named} have changed" if changed else "refreshed; no rows have changed"
    lines = [sentence, *_row_lines(rows)]
    show_result(screen, "\n".join(lines), {"changed": changed, "rows": rows, "warnings": doubts})
    _show_doubts(screen, doubts)


def _row_lines(rows: Mapping[str, int]) -> list[str]:
    from tacit.cli.catalog_rendering import printable

    return [f"{printable(name)}: {count:,} usable row{'' if count == 1 else 's'}" for name, count in rows.items()]


def _show_doubts(screen: Screen, doubts: Iterable[str]) -> None:
    if not screen.as_json:
        for doubt in doubts:
            click.echo(f"tacit: warning: {doubt}", err=True)


def _usable_rows(curator: Curator, changed: Collection[str]) -> tuple[dict[str, int], list[str]]:
    """Return the usable rows of changed private tables, and warnings; exact numbers, for the owner only."""
    from tacit.cli.catalog_rendering import printable

    rows, doubts, keys = {}, [], {name.lower() for name in changed}
    for table in curator.catalog.tables.values():
        unit = table.unit
        if unit is None or keys.isdisjoint({table.name.lower(), *(key.target_table.lower() for key in unit.through)}):
            continue
        own = unit.through[0].column if unit.through else unit.column
        columns = [column.name for column in table.columns if column.name.lower() != own.lower()]
        rows[table.name], *filled = curator.engines.count_values(table, columns)
        if not rows[table.name]:
            doubts.append(f"{printable(table.name)} has no usable rows: rows without a readable {own} are left out")
        elif empty := [printable(name) for name, count in zip(columns, filled, strict=True) if not count]:
            doubts.append(f"{printable(table.name)} has no values in {', '.join(empty)}")
    return rows, doubts


@command.command()
@folder_option
@click.argument("name")
@click.option("--yes", is_flag=True, help="Remove it without asking for confirmation.")
@click.pass_obj
def remove(screen: Screen, folder: Path, name: str, yes: bool) -> None:
    """Remove a table from the catalog; its rows and budget are kept."""
    catalog = open_catalog(folder)
    table = catalog.schema.table(name)
    from tacit.cli.catalog_rendering import printable

    if not yes:
        question = f"remove {printable(table.name)} from the catalog"
        confirm(screen, f"{question}?", f"this would {question}", "nothing was changed")
    with open_audited_curator(folder) as (curator, _warn):
        curator.remove_table(table.name)
    show_result(screen, f"removed {printable(table.name)}; its rows and budget are kept", {"removed": table.name})
