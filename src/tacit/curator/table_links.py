"""Foreign keys between the tables of a catalog: paths to the unit, linked tables, their order and data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tacit.privacy.errors import CatalogInvalid
from tacit.privacy.tables import Kind, Table
from tacit.privacy.units import ForeignKey, Unit


def check_foreign_keys(table: Table, tables: Mapping[str, Table]) -> None:
    """Raise CatalogInvalid unless the foreign keys of a table lead to columns of the catalog, without a cycle."""
    if table.unit is None or not table.unit.through:
        return
    seen = {table.name.lower()}
    columns = [key.column for key in table.unit.through[1:]] + [table.unit.column]
    for key, column in zip(table.unit.through, columns, strict=True):
        name = key.target_table.lower()
        if name not in tables:
            raise CatalogInvalid(
                f"{table.name} has its unit in {key.target_table} (by a foreign key), which is not in the catalog; add "
                "that table first",
                name=table.name,
            )
        if name in seen:
            raise CatalogInvalid(f"the foreign keys from {table.name} to its unit pass {key.target_table} twice")
        seen.add(name)
        tables[name].column(key.target_column)
        tables[name].column(column)


def with_dataset(table: Table, tables: Mapping[str, Table]) -> Table:
    """Return a table with the data set of the tables through which it leads to its unit; raise if it states another.

    Those tables decide to which units its rows belong, so a unit that is removed from them is removed from it: one
    budget pays for all.
    """
    unit = table.unit
    for number, key in enumerate(() if unit is None else unit.through, 1):
        parent = tables[key.target_table.lower()]
        if unit is None or not parent.is_private:
            continue
        if parent.unit != Unit(unit.column, unit.through[number:]):
            raise CatalogInvalid(
                f"{table.name} references {unit.column} through {parent.name}, which is not the unit of {parent.name}; "
                "a row would belong to two units",
                name="unit",
            )
        if table.dataset == table.name:  # nothing else was stated
            table = replace(table, dataset=parent.dataset)
        if table.dataset != parent.dataset:
            raise CatalogInvalid(
                f"{table.name} leads to its unit through {parent.name}, so both have one budget; "
                f'write dataset = "{parent.dataset}" for {table.name}',
                name="dataset",
                value=table.dataset,
            )
    return table


def linked_tables(table: Table, tables: Mapping[str, Table]) -> list[Table]:
    """Return a table and the tables that foreign keys to the unit link it with."""
    return [one for one in tables.values() if _last_private(one, tables) == _last_private(table, tables)]


def _last_private(table: Table, tables: Mapping[str, Table]) -> str:
    """Return the key of the last private table on the path to the unit, which is the same for all linked tables."""
    targets = (step.target_table.lower() for step in unit_keys(table))
    return [table.name.lower(), *(key for key in targets if tables[key].is_private)][-1]


def check_unit_kinds(tables: Mapping[str, Table]) -> None:
    """Raise CatalogInvalid if units of one data set have several kinds: converted to one, units would merge."""
    kinds: dict[str, Kind] = {}
    for table in tables.values():
        if table.unit is not None:
            owner = tables[table.unit.through[-1].target_table.lower()] if table.unit.through else table
            kind = owner.column(table.unit.column).kind
            if kind is not (known := kinds.setdefault(table.dataset, kind)):
                raise CatalogInvalid(  # without names of tables, which a curator of one table may not see
                    f"units of one data set have one kind, and in {table.dataset} some are {known}, others {kind}; "
                    "give the unit's columns one kind, such as text",
                    name="unit",
                )


def parents_first(tables: Mapping[str, Table]) -> list[Table]:
    """Return tables sorted so that each follows those through which it leads to its unit; raise for a cycle."""
    parents = {name: {key.target_table.lower() for key in unit_keys(table)} for name, table in tables.items()}
    done: dict[str, Table] = {}
    while len(done) < len(parents):
        ready = [name for name in parents if name not in done and parents[name] <= done.keys()]
        if not ready:
            cycle = ", ".join(tables[name].name for name in parents if name not in done)
            raise CatalogInvalid(
                f"cyclic foreign keys between {cycle}; one of them needs a column of its own for the unit"
            )
        done |= {name: tables[name] for name in ready}
    return list(done.values())


def unit_keys(table: Table) -> tuple[ForeignKey, ...]:
    """Return the foreign keys by which a table leads to its unit; none if it has its own column, or is public."""
    return () if table.unit is None else table.unit.through
