"""Table records from the columns that an engine found in a source and the statements of the owner.

Only names and types of columns come from the source; unit, bounds and categories are stated by the owner.

Copies of files with a column that numbers the rows, for tables in which every row is a unit.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import quote

from tacit.engines.frames import FOLDER as TABLES
from tacit.engines.protocol import Source, SourceColumn
from tacit.privacy.arguments import column_mapping, instance, instances
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import EmptyInput, InvalidInput, NotInCatalog, WrongType
from tacit.privacy.numbers import truth_value
from tacit.privacy.tables import Column, Kind, Limits, Table, fit_facts
from tacit.privacy.texts import did_you_mean
from tacit.privacy.units import ForeignKey, Unit


def table_of(
    name: str,
    described: Sequence[SourceColumn],
    *,
    unit: str | Unit | None = None,
    public: bool = False,
    each_row: bool = False,
    columns: Mapping[str, Bounds | Categories | Column] | None = None,
    limits: Limits | None = None,
    identified_by: str | Iterable[str] = (),
    dataset: str = "",
    kinds: Mapping[str, Kind] | None = None,
) -> Table:
    """Return the record of a table; names of columns may be written in any case.

    `kinds` overrides the kinds that were found. Columns of an unsupported type are left out unless they get a kind.
    With `each_row` every row is a unit: the table gets a further column that numbers them (`numbered_copy`).
    """
    owners = Limits() if limits is None else instance("limits", limits, Limits, "Limits")
    if truth_value("each_row", each_row):
        if unit is not None or public or owners.rows_per_unit is not None:
            raise InvalidInput(
                f"each_row=True protects every row of {name} by itself; leave out unit=, public= and rows_per_unit=",
                name="each_row",
            )
        number = row_number_column(described)
        described, unit, owners = [number, *described], number.name, replace(owners, rows_per_unit=1)
    if (unit is None) == (not truth_value("public", public)):
        raise InvalidInput(
            f"who is protected in {name}? state unit=, the column that identifies people; each_row=True, if every row "
            "is a person; or public=True, if it is not about people" + ("" if unit is None else "; not both"),
            name="unit",
        )
    if public and owners != Limits():
        raise InvalidInput(f"{name} is public and has no units to limit; leave the limits out", name="limits")
    found = _SourceColumns(name, described)
    stated = {found.named(column).name: facts for column, facts in column_mapping("columns", columns).items()}
    chosen = {found.named(column).name: kind for column, kind in column_mapping("kinds", kinds).items()}
    usable = tuple(
        column for one in described if (column := _column(one, chosen.get(one.name), stated.get(one.name))) is not None
    )
    names = {column.name for column in usable}
    for unused in stated.keys() - names:
        raise _unusable(found.named(unused))
    if not usable:
        raise EmptyInput(f"{name} has no column of a supported type", name="columns")
    if unit is not None and not isinstance(unit, str | Unit):
        raise WrongType(f"a unit is the name of a column or a Unit, not {unit!r}", name="unit", value=unit)
    protected = None if unit is None else found.unit(Unit(unit) if isinstance(unit, str) else unit, names)
    named = (identified_by,) if isinstance(identified_by, str) else identified_by
    identifying = instances("identified_by", named, str, "a list of names of columns")
    return Table(name, usable, protected, owners, tuple(found.usable(one, names) for one in identifying), dataset)


def row_number_column(columns: Iterable[SourceColumn]) -> SourceColumn:
    """Return the column that numbers rows, with a name that no other column has."""
    name, taken = "row", {one.name.lower() for one in columns}
    while name in taken:
        name += "_"
    return SourceColumn(name, Kind.INTEGER, "BIGINT")


def left_out(described: Iterable[SourceColumn], kinds: Mapping[str, Kind] | None = None) -> list[SourceColumn]:
    """Return the columns that are left out because of their types."""
    chosen = {name.lower() for name in kinds or {}}
    return [one for one in described if one.kind is None and one.name.lower() not in chosen]


def column_named(table: str, described: Sequence[SourceColumn], name: str) -> SourceColumn:
    """Return a column of a source by its name in any case, or raise NotInCatalog with similar names."""
    return _SourceColumns(table, described).named(name)


class _SourceColumns:
    """The columns of a source, by name."""

    def __init__(self, table: str, described: Sequence[SourceColumn]) -> None:
        self.table = table
        self.described = tuple(described)

    def named(self, name: str) -> SourceColumn:
        """Return the column of a name, or the only one that matches in another case; raise with similar names."""
        if not isinstance(name, str):
            raise WrongType(f"the name of a column must be a text, not {name!r}", name="columns", value=name)
        alike = [one for one in self.described if one.name.lower() == name.lower()]
        exact = [one for one in alike if one.name == name]
        if len(exact or alike) == 1:
            return (exact or alike)[0]
        if alike:
            raise InvalidInput(
                f"{self.table} has several columns called {name}: {', '.join(one.name for one in alike)}; write the "
                "name in its exact case",
                name="column",
                value=name,
            )
        names = [one.name for one in self.described]
        instead = did_you_mean(name, names, f"it has {', '.join(names)}")
        raise NotInCatalog(f"{self.table} has no column {name}; {instead}", name="column", value=name)

    def usable(self, name: str, names: set[str]) -> str:
        """Return the name of a usable column in the case of the source."""
        column = self.named(name)
        if column.name not in names:
            raise _unusable(column)
        return column.name

    def unit(self, unit: Unit, names: set[str]) -> Unit:
        """Return the unit with names in the case of the source."""
        if unit.is_direct:
            return Unit(self.usable(unit.column, names))
        first, *others = unit.through
        own = ForeignKey(self.usable(first.column, names), first.target_table, first.target_column)
        return Unit(unit.column, (own, *others))


def _column(found: SourceColumn, kind: Kind | None, stated: Bounds | Categories | Column | None) -> Column | None:
    """Return a column with its stated facts, or None if its type is unsupported."""
    nullable = True
    if isinstance(stated, Column):
        if stated.name.lower() != found.name.lower():
            raise InvalidInput(f"the Column for {found.name} is named {stated.name}", name="columns", value=stated)
        kind, nullable, stated = kind or stated.kind, stated.nullable, stated.facts
    kind = kind or found.kind
    if kind is None:
        return None
    column = Column(found.name, kind, nullable=nullable)  # raises for what is no kind
    return replace(column, facts=fit_facts(found.name, column.kind, stated))


def _unusable(found: SourceColumn) -> InvalidInput:
    kinds = ", ".join(kind.value for kind in Kind)
    return InvalidInput(
        f"{found.name} has the unsupported type {found.type}; give it a kind: {kinds}",
        name="kinds",
        value=found.name,
    )


FILES: Final = ("csv", "parquet", "duckdb")
"""The forms of sources whose rows can be numbered."""


def write_numbered_rows(source: Source, table: Table, path: Path) -> Source:
    """Write the columns of a table to a new Parquet file, with distinct row numbers in its unit column."""
    from tacit.engines.duckdb.prepared import write_numbered

    if source.form not in FILES or table.unit is None:
        raise InvalidInput("rows can be numbered in files only; state the column of the unit instead", name="each_row")
    number = table.unit.column
    columns = tuple(replace(one, facts=None, nullable=True) for one in table.columns if one.name != number)
    return write_numbered(source, Table(table.name, columns), number, path)


@contextmanager
def numbered_copy(folder: Path, table: Table, source: Source) -> Iterator[Source]:
    """Write a numbered copy of a file to the folder's own tables, and yield it; it is removed if the block raises."""
    tables = folder.absolute() / TABLES
    tables.mkdir(mode=0o700, parents=True, exist_ok=True)
    tables.chmod(0o700)
    path = tables / f"{quote(table.name, safe=' ')}-{secrets.token_hex(4)}.parquet"
    with TemporaryDirectory(prefix=".numbering-", dir=tables) as aside:
        written = Path(write_numbered_rows(source, table, Path(aside) / "rows.parquet").place)
        written.chmod(0o600)
        written.replace(path)
    try:
        yield Source("parquet", str(path))
    except BaseException:
        path.unlink(missing_ok=True)
        raise
