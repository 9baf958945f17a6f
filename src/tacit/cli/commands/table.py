"""`tacit table`: say what is public about tables, and whom they protect."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tacit.cli.connections import open_audited_curator, open_catalog, open_curator, require_folder
from tacit.cli.groups import Group
from tacit.cli.options import AS_JSON, DEFAULT_DELTA, folder_flag, folder_option
from tacit.cli.output import Screen, show_hints, show_result

if TYPE_CHECKING:
    from tacit.cli.table_draft import Draft
    from tacit.curator import Curator
    from tacit.curator.catalog import Catalog
    from tacit.engines.protocol import Source
    from tacit.privacy.tables import Table

UNDECIDED: Final = (
    "who is protected in {name}? give --unit COLUMN, whose values are the people; or --each-row, if every row is a "
    "person; or --public, for a table that is not about people"
)
FORMATS: Final = ("csv", "parquet", "duckdb")
STATED: Final = (
    *("unit", "each_row", "public", "through", "bounds", "categories", "kinds", "never_missing", "identified_by"),
    *("rows_per_unit", "groups_per_unit", "rows_per_group", "dataset", "format"),
)
"""The options that state something of a table."""


@click.group("table", cls=Group)
def command() -> None:
    """Register tables: who is protected, and what is public about columns.

    Bounds and categories are statements by the owner, made without looking: tacit reads nothing off the data but the
    names and types of columns. They are kept in catalog.toml, which you may edit as well.
    """


def _stating(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that state something of a table, and hand them to it as one."""
    several: dict[str, Any] = {"multiple": True, "metavar": "COLUMN=VALUE"}
    limit: dict[str, Any] = {"type": click.IntRange(1, 1_000_000), "metavar": "N"}
    stated = [
        click.option("--unit", metavar="COLUMN", help="Column whose values identify the protected people."),
        click.option(
            "--each-row", is_flag=True, help="Every row is a person: rows are numbered in a copy that the folder keeps."
        ),
        click.option("--public", is_flag=True, help="The table is not about people, and everyone may see it."),
        click.option(
            "--through",
            multiple=True,
            metavar="COLUMN=TABLE.COLUMN",
            help="Foreign key that leads to the table with the unit; several steps in their order.",
        ),
        click.option("--bounds", **several, help="Lower and upper bound of a column: age=0:120."),
        click.option("--categories", **several, help=f"All values that a column can have: sex=F,M{AS_JSON}."),
        click.option(
            "--kind",
            "kinds",
            **several,
            help="Kind of a column: boolean, integer, real, text, date or time, as in zip=text.",
        ),
        click.option("--never-missing", multiple=True, metavar="COLUMN", help="A column without missing values."),
        click.option(
            "--identified-by",
            multiple=True,
            metavar="COLUMN",
            help="A column that, together with the others given, identifies a row.",
        ),
        click.option("--rows-per-unit", **limit, help="Maximum number of rows of a unit that count."),
        click.option("--groups-per-unit", **limit, help="Maximum number of groups of an answer that a unit counts in."),
        click.option("--rows-per-group", **limit, help="Maximum number of rows of a unit in each group."),
        click.option("--dataset", metavar="NAME", help="The data set whose budget pays; by default the table's own."),
        click.option("--format", type=click.Choice(FORMATS), help="File format, if the name does not tell it."),
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
@_stating
@click.option("--replace", is_flag=True, help="Replace a table of this name.")
@click.option("--epsilon", type=float, help="Set its budget as well, as tacit budget set does.")
@click.option("--delta", type=float, help="The delta of that budget; 1e-7 is chosen, and said, unless it is stated.")
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
    (clinic.duckdb#visits), or one that stays in PostgreSQL or Spark. No password stands in it: give it by PGPASSWORD
    or ~/.pgpass, or the whole address by env:NAME. At a terminal, questions fill in what the options leave out.

    \b
      tacit table add visits visits.parquet --unit patient_id --bounds age=0:120 --categories sex=F,M --epsilon 3
      tacit table add lines lines.csv --through visit_id=visits.id --rows-per-unit 50
      tacit table add regions regions.csv --public
      tacit table add stays postgresql://ana@db.clinic/care#public.stays --unit patient_id
      tacit table add events sc://spark.clinic:15002#care.events --unit user_id --rows-per-unit 10
    """
    catalog = open_catalog(folder)
    from tacit.cli.table_draft import Draft
    from tacit.curator.table_sources import describe, source_of
    from tacit.privacy.errors import NameTaken

    if name.lower() in catalog.tables and not replace:
        raise NameTaken(f"{name} is in {catalog.path} already; change it with tacit table edit, or add --replace")
    rows = source_of(source, folder=folder, format=options["format"])
    draft = Draft(name, describe(rows))
    draft.take(options, catalog)
    if not draft.is_decided:
        if screen.as_json or not (sys.stdin.isatty() and screen.console.is_terminal):
            raise click.UsageError(UNDECIDED.format(name=name))
        _ask(screen, catalog, draft, rows, source)
    known = {table.dataset for table in catalog.tables.values() if table.is_private}
    table = draft.table()
    if epsilon is not None:
        _check_budget(folder, table, epsilon, DEFAULT_DELTA if delta is None else delta)
    with open_audited_curator(folder) as (curator, warn), _numbered(folder, draft, table, rows) as rows:
        table = curator.register(table, rows, replace=replace, warn=warn)
        if epsilon is not None:
            curator.set_budget(table.dataset, epsilon, DEFAULT_DELTA if delta is None else delta)
    catalog.reload()
    is_new_budget = epsilon is None and table.is_private and table.dataset not in known
    budget = "" if epsilon is None else _set_budget(folder, table.dataset, epsilon, delta)
    _show_added(screen, catalog, draft, is_new_budget=is_new_budget, budget=budget)


@contextmanager
def _numbered(folder: Path, draft: Draft, table: Table, rows: Source) -> Iterator[Source]:
    """Return where the rows are: in a numbered copy, if every row is a unit."""
    if not draft.each_row or table.unit is None:
        yield rows
        return
    from tacit.curator.file_table import numbered_copy

    with numbered_copy(folder, draft.name, rows, draft.described, table.unit.column) as numbered:
        yield numbered


def _set_budget(folder: Path, dataset: str, epsilon: float, delta: float | None) -> str:
    """Say which budget was set, and how another delta is chosen if this one was not stated."""
    import shlex

    said = f"; its budget is ε {epsilon:g}, δ {DEFAULT_DELTA if delta is None else delta:g}"
    if delta is not None:
        return said
    command = f"tacit budget set {shlex.quote(dataset)} --epsilon {epsilon:g} --delta 0{folder_flag(folder)}"
    return f"{said}, a δ that was chosen for you; as long as nothing is charged, another can be set: {command}"


def _check_budget(folder: Path, table: Table, epsilon: float, delta: float) -> None:
    """Refuse a budget that could not be set, before anything is written."""
    from tacit import Budget
    from tacit.privacy.errors import InvalidInput, NameTaken

    if not table.is_private:
        raise InvalidInput(f"{table.name} is public, and needs no budget; leave out --epsilon", name="epsilon")
    Budget(epsilon, delta)
    with open_curator(folder) as curator:
        if curator.budgets(table.dataset):
            raise NameTaken(f"{table.dataset} has a budget already; leave out --epsilon")


def _ask(screen: Screen, catalog: Catalog, draft: Draft, rows: Source, place: str) -> None:
    """Ask for what is open; whoever stops or says no leaves nothing behind."""
    from tacit.cli.wizard import Wizard
    from tacit.curator.catalog_file import table_text

    wizard = Wizard(screen.console, catalog)
    try:
        wizard.complete(draft, place)
        wanted = wizard.confirm(table_text(draft.table(), rows, catalog.folder))
    except (KeyboardInterrupt, click.Abort):
        screen.console.print("\n\nnothing was written")
        raise
    if not wanted:
        screen.console.print("nothing was written")
        raise click.Abort
    screen.console.print()


def _show_added(screen: Screen, catalog: Catalog, draft: Draft, *, is_new_budget: bool, budget: str) -> None:
    from tacit.cli.catalog_rendering import protects, shown, table_object
    from tacit.cli.table_draft import row_limit_hint, table_hints
    from tacit.curator.registration import left_out

    table = catalog.schema.table(draft.name)
    without = left_out(draft.described, draft.kinds)
    hints = [*table_hints(table), *row_limit_hint(table)]
    if without:
        named = ", ".join(f"{shown(one.name)} ({one.type})" for one in without)
        hints.append(f"left out, for their types cannot be asked about: {named}; --kind gives one a kind")
    facts = {**table_object(catalog, table), "left_out": [one.name for one in without], "hints": hints}
    sentence = f"added {shown(table.name)}: {len(table.columns)} columns; protects {protects(table)}{budget}"
    show_result(screen, sentence, facts)
    if is_new_budget:
        import shlex

        dataset = shlex.quote(table.dataset)
        hints.append(
            f"give it a budget: tacit budget set {dataset} --epsilon 1 --delta 1e-7{folder_flag(catalog.folder)}"
        )
    show_hints(screen, hints)


@command.command()
@folder_option
@click.argument("name", required=False)
@click.pass_obj
def show(screen: Screen, folder: Path, name: str | None) -> None:
    """Show what is public about a table, or list all of them.

    In a pipe this is TOML as it stands in the catalog.
    """
    catalog = open_catalog(folder)
    from tacit.cli import catalog_rendering

    tables = list(catalog.tables.values()) if name is None else [catalog.schema.table(name)]
    if screen.as_json:
        objects = [catalog_rendering.table_object(catalog, table) for table in tables]
        screen.show_object({"tables": objects} if name is None else objects[0])
    elif not screen.console.is_terminal:
        click.echo("\n".join(catalog.statement(table.name) for table in tables), nl=False)
    elif name is None:
        catalog_rendering.show_tables(screen, catalog)
    else:
        catalog_rendering.show_table(screen, catalog, tables[0])


@command.command()
@folder_option
@click.argument("name", required=False)
@_stating
@click.option("--source", help="Where the rows come from.")
@click.option("--forget", multiple=True, metavar="COLUMN", help="Remove the bounds or categories of a column.")
@click.pass_obj
def edit(
    screen: Screen, folder: Path, name: str | None, source: str | None, forget: tuple[str, ...], options: dict[str, Any]
) -> None:
    """Change what is stated of a table.

    With options, they are changed and all the rest is kept; --dataset moves the tables that foreign keys link to this
    one as well, for they share a budget. Without, the catalog is opened in your editor ($EDITOR), and what you save
    replaces it if it can be read.
    """
    require_folder(folder)
    if options["each_row"]:
        raise click.UsageError(
            "--each-row makes a new copy of the rows: tacit table add NAME SOURCE --each-row --replace"
        )
    options["forget"] = forget
    if source is None and not any(options.values()):
        _edit_by_hand(screen, folder, name)
        return
    if name is None:
        raise click.UsageError("name the table that the options are about")
    catalog = open_catalog(folder)
    from tacit.cli.catalog_rendering import protects, shown, table_object
    from tacit.cli.table_draft import Draft, table_hints

    draft = Draft.of(catalog.schema.table(name))
    rows = _changed_source(catalog, name, source, options["format"])
    draft.take(options, catalog)
    before = catalog.tables
    with open_audited_curator(folder) as (curator, warn):
        with_linked = options["dataset"] is not None
        table = curator.register(draft.table(), rows, replace=True, with_linked=with_linked, warn=warn)
    catalog.reload()
    hints = table_hints(table)
    moved = [one.name for key, one in catalog.tables.items() if one.dataset != before[key].dataset]
    facts = {**table_object(catalog, table), "moved": moved, "hints": hints}
    sentence = f"changed {shown(table.name)}: {len(table.columns)} columns; protects {protects(table)}"
    if moved:
        sentence += f"; now in the data set {shown(table.dataset)}: {', '.join(map(shown, moved))}"
    show_result(screen, sentence, facts)
    show_hints(screen, hints)


def _changed_source(catalog: Catalog, name: str, source: str | None, form: str | None) -> Source:
    """Return where the rows are from now on; every column that is stated must be there, too."""
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
    """Open the file in an editor, again and again until it can be read or is given up."""
    from tacit.curator.catalog import Catalog
    from tacit.curator.catalog_file import CatalogFile
    from tacit.privacy.errors import CatalogInvalid

    since = CatalogFile(folder).read().text
    if screen.as_json or not sys.stdin.isatty():
        raise click.UsageError("say by options what to change, such as --bounds age=0:120; an editor needs a terminal")
    before: Mapping[str, Table] = {}
    try:
        known = Catalog.open(folder)
        before = known.tables
        if name is not None:
            known.schema.table(name)
    except CatalogInvalid as error:
        click.echo(f"tacit: {error.code} {error.message}", err=True)  # what the editor is opened for
    text = since
    while True:
        edited = click.edit(text, extension=".toml")
        if edited is None or edited == since:
            screen.console.print("nothing was changed")
            return
        try:
            with open_audited_curator(folder) as (curator, warn):
                catalog = Catalog.rewrite(folder, edited, since)
                curator.note_sources((), before, warn=warn)
        except CatalogInvalid as error:
            click.echo(f"tacit: {error.code} {error.message}", err=True)
            if not click.confirm("edit it again? otherwise what you wrote is discarded", default=True):
                raise
            text = edited
        else:
            count = len(catalog.tables)
            screen.console.print(f"changed {catalog.path}: {count} table{'' if count == 1 else 's'}")
            return


@command.command()
@folder_option
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.pass_obj
def refresh(screen: Screen, folder: Path, names: tuple[str, ...]) -> None:
    """Read the rows of some or all tables again.

    Questions are about the rows of the last refresh: rows that were changed since are not in any answer. Tables that
    share their units by foreign keys are refreshed together. Where rows cannot be used, nothing changes. How many rows
    of a changed table can be asked about is said exactly: it is for the owner, and not to be shown to analysts.
    """
    require_folder(folder)
    with open_audited_curator(folder) as (curator, _warn):
        changed = curator.refresh(*names)
        rows, doubts = _usable_rows(curator, changed)
    from tacit.cli.catalog_rendering import shown

    named = ", ".join(shown(one) for one in changed)
    sentence = f"the rows of {named} have changed" if changed else "no rows have changed"
    usable = [
        f"{shown(name)}: {count:,} row{'' if count == 1 else 's'} can be asked about" for name, count in rows.items()
    ]
    show_result(screen, "\n".join([sentence, *usable]), {"changed": changed, "rows": rows, "warnings": doubts})
    if not screen.as_json:
        for doubt in doubts:
            click.echo(f"tacit: warning: {doubt}", err=True)


def _usable_rows(curator: Curator, changed: Collection[str]) -> tuple[dict[str, int], list[str]]:
    """Return how many rows questions see of private tables whose rows changed, and what looks wrong; for the owner."""
    from tacit.cli.catalog_rendering import shown

    rows, doubts, keys = {}, [], {name.lower() for name in changed}
    for table in curator.catalog.tables.values():
        unit = table.unit
        if unit is None or keys.isdisjoint({table.name.lower(), *(key.target_table.lower() for key in unit.through)}):
            continue
        own = unit.through[0].column if unit.through else unit.column
        columns = [column.name for column in table.columns if column.name.lower() != own.lower()]
        rows[table.name], *filled = curator.engines.values(table, columns)
        if not rows[table.name]:
            doubts.append(
                f"{shown(table.name)} has no row that can be asked about: a row without a readable {own} is left out"
            )
        elif empty := [shown(name) for name, count in zip(columns, filled, strict=True) if not count]:
            doubts.append(f"{shown(table.name)} has no value in any row of {', '.join(empty)}")
    return rows, doubts


@command.command()
@folder_option
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def remove(screen: Screen, folder: Path, name: str, yes: bool) -> None:
    """Take a table out of the catalog; its rows and its budget stay as they are."""
    catalog = open_catalog(folder)
    table = catalog.schema.table(name)
    from tacit.cli.catalog_rendering import shown

    if not yes and not screen.as_json and sys.stdin.isatty() and screen.console.is_terminal:
        click.confirm(f"forget all that is stated of {shown(table.name)}?", abort=True)
    with open_audited_curator(folder) as (curator, _warn):
        curator.remove_table(table.name)
    show_result(
        screen, f"removed {shown(table.name)}; its rows and its budget stay as they are", {"removed": table.name}
    )
