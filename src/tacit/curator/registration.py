"""A table from what an engine found in a source and what its owner states of it.

Only names and types come from the source. Whom the table protects, and every bound and category, is stated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tacit.engines.protocol import SourceColumn
from tacit.privacy.arguments import by_name, instance, instances
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import EmptyInput, InvalidInput, NotInCatalog, WrongType
from tacit.privacy.near_names import did_you_mean
from tacit.privacy.numbers import truth_value
from tacit.privacy.tables import Column, Kind, Limits, Table, fitted
from tacit.privacy.units import ForeignKey, Unit


def table_of(
    name: str,
    described: Sequence[SourceColumn],
    *,
    unit: str | Unit | None,
    public: bool = False,
    columns: Mapping[str, Bounds | Categories | Column] | None = None,
    limits: Limits | None = None,
    identified_by: str | Iterable[str] = (),
    dataset: str = "",
    kinds: Mapping[str, Kind] | None = None,
) -> Table:
    """Return the table that an owner states; names of columns may be written in any case.

    `kinds` says as what a column is to be read, where another kind than the found one is wanted. Columns of a type that
    cannot be asked about are left out unless they get a kind.
    """
    if (unit is None) == (not truth_value("public", public)):
        raise InvalidInput(
            f"who is protected in {name}? state the unit, the column whose values identify the protected people, or "
            "public=True for a table that is not about people"
            + ("; if no column identifies people, add one to the data first" if unit is None else "; not both"),
            name="unit",
        )
    owners = Limits() if limits is None else instance("limits", limits, Limits, "Limits")
    if public and owners != Limits():
        raise InvalidInput(f"{name} is public: no unit in it can be limited; leave the limits out", name="limits")
    found = _Found(name, described)
    stated = {found.named(column).name: facts for column, facts in by_name("columns", columns).items()}
    chosen = {found.named(column).name: kind for column, kind in by_name("kinds", kinds).items()}
    usable = tuple(
        column for one in described if (column := _column(one, chosen.get(one.name), stated.get(one.name))) is not None
    )
    names = {column.name for column in usable}
    for unused in stated.keys() - names:
        raise _unusable(found.named(unused))
    if not usable:
        raise EmptyInput(f"{name} has no column of a type that can be asked about", name="columns")
    if unit is not None and not isinstance(unit, str | Unit):
        raise WrongType(f"a unit is the name of a column or a Unit, not {unit!r}", name="unit", value=unit)
    protected = None if unit is None else found.unit(Unit(unit) if isinstance(unit, str) else unit, names)
    named = (identified_by,) if isinstance(identified_by, str) else identified_by
    identifying = instances("identified_by", named, str, "a list of names of columns")
    return Table(name, usable, protected, owners, tuple(found.usable(one, names) for one in identifying), dataset)


def left_out(described: Iterable[SourceColumn], kinds: Mapping[str, Kind] | None = None) -> list[SourceColumn]:
    """Return the columns that a table is without, because of their types."""
    chosen = {name.lower() for name in kinds or {}}
    return [one for one in described if one.kind is None and one.name.lower() not in chosen]


def column_named(table: str, described: Sequence[SourceColumn], name: str) -> SourceColumn:
    """Return the column of a source by its name in any case, or refuse it with the names that are near."""
    return _Found(table, described).named(name)


class _Found:
    """The columns of a source, by name."""

    def __init__(self, table: str, described: Sequence[SourceColumn]) -> None:
        self.table = table
        self.described = tuple(described)

    def named(self, name: str) -> SourceColumn:
        """Return the column of that name, or the only one that has it in another case; otherwise name those near it."""
        if not isinstance(name, str):
            raise WrongType(f"a column is named by a text, not {name!r}", name="columns", value=name)
        alike = [one for one in self.described if one.name.lower() == name.lower()]
        exact = [one for one in alike if one.name == name]
        if len(exact or alike) == 1:
            return (exact or alike)[0]
        if alike:
            raise InvalidInput(
                f"{self.table} has several columns called {name}: {', '.join(one.name for one in alike)}; write the "
                "name as it is there",
                name="column",
                value=name,
            )
        names = [one.name for one in self.described]
        instead = did_you_mean(name, names, f"it has {', '.join(names)}")
        raise NotInCatalog(f"{self.table} has no column {name}; {instead}", name="column", value=name)

    def usable(self, name: str, names: set[str]) -> str:
        """Return a column's name as the source spells it, if the column can be used."""
        column = self.named(name)
        if column.name not in names:
            raise _unusable(column)
        return column.name

    def unit(self, unit: Unit, names: set[str]) -> Unit:
        """Return the unit with the names as the source spells them."""
        if unit.is_direct:
            return Unit(self.usable(unit.column, names))
        first, *others = unit.through
        own = ForeignKey(self.usable(first.column, names), first.target_table, first.target_column)
        return Unit(unit.column, (own, *others))


def _column(found: SourceColumn, kind: Kind | None, stated: Bounds | Categories | Column | None) -> Column | None:
    """Return a column with what is stated of it, or None for one that cannot be used."""
    nullable = True
    if isinstance(stated, Column):
        if stated.name.lower() != found.name.lower():
            raise InvalidInput(f"what is stated of {found.name} is about {stated.name}", name="columns", value=stated)
        kind, nullable, stated = kind or stated.kind, stated.nullable, stated.facts
    kind = kind or found.kind
    if kind is None:
        return None
    column = Column(found.name, kind, nullable=nullable)  # refuses what is no kind
    return replace(column, facts=fitted(found.name, column.kind, stated))


def _unusable(found: SourceColumn) -> InvalidInput:
    kinds = ", ".join(kind.value for kind in Kind)
    return InvalidInput(
        f"{found.name} is of the type {found.type}, which cannot be used as it is; give it a kind: {kinds}",
        name="kinds",
        value=found.name,
    )
