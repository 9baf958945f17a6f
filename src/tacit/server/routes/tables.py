"""The catalog: which tables there are, what is public about them, and new ones."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter

from tacit.curator.sources import format_of
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import InvalidInput, NotPermitted
from tacit.privacy.tables import Column, Kind, Table
from tacit.privacy.units import ForeignKey, Unit
from tacit.server.access import Action, Resource
from tacit.server.asking import limits_of
from tacit.server.documents import ColumnAsked, TableAsked, UnitAsked
from tacit.server.listings import RefreshGiven, TableGiven
from tacit.server.place import Caller, Who, of_table
from tacit.server.wire import read, written

router = APIRouter(prefix="/v1/tables", tags=["tables"])

ELSEWHERE: Final = ("://", "spark:", "env:", "service:", "#", "~", "*", "?", "[")
"""What an address in a database, a name that stands for several files or one from a home folder has in it."""
FORMS: Final = ("csv", "parquet")


@router.get("", response_model=list[TableGiven])
def listed(who: Who) -> Any:
    """Return the tables that there are for the caller."""
    who.require(Action.SERVER_READ)
    return [_document(table) for table in who.tables(Action.CATALOG_READ)]


@router.get("/{name}", response_model=TableGiven)
def show(who: Who, name: str) -> Any:
    """Return what is public about a table."""
    return _document(who.table(name, Action.CATALOG_READ))


@router.post("", status_code=201, response_model=TableGiven)
def add(who: Who, asked: TableAsked) -> Any:
    """Register a table whose rows the server can read."""
    curator = who.server.curator
    known = curator.catalog.tables.get(asked.name.lower())
    who.require(Action.CATALOG_WRITE, Resource(dataset=asked.dataset or asked.name, table=asked.name))
    if known is not None:
        who.require(Action.CATALOG_WRITE, of_table(known))
    source = _source(who, asked)
    with warnings.catch_warnings(record=True):
        table = curator.add_table(
            asked.name,
            source,
            unit=_unit(asked.unit),
            public=asked.public,
            columns={name: _column(name, one) for name, one in asked.columns.items() if _states(one)},
            kinds={name: Kind(one.kind) for name, one in asked.columns.items() if one.kind is not None},
            limits=limits_of(asked.limits),
            identified_by=asked.identified_by,
            dataset=asked.dataset,
            format=asked.format,
            replace=asked.replace,
        )
    return _document(table)


@router.post("/{name}/refresh", response_model=RefreshGiven)
def refresh(who: Who, name: str) -> Any:
    """Look at the rows of a table again, and of those that share its units by foreign keys."""
    table = who.table(name, Action.CATALOG_WRITE)
    return {"changed": who.server.curator.refresh(table.name)}


@router.delete("/{name}", status_code=204)
def remove(who: Who, name: str) -> None:
    """Take a table out of the catalog; its rows, its budget and what was released stay."""
    table = who.table(name, Action.CATALOG_WRITE)
    who.server.curator.remove_table(table.name)


def _source(who: Caller, asked: TableAsked) -> str:
    """Return where the rows are, as the caller may say it: anywhere for an owner, otherwise only files meant for it.

    Those lie in the curator's folder itself or below one of the setting `sources`, their names say what they hold, and
    they are not the rows of a table that is somebody else's. So nobody reads by a table of hers what she may not read.
    """
    if who.may(Action.PEOPLE_WRITE):
        return asked.source
    server, folder = who.server, who.server.settings.folder.resolve()
    if any(sign in asked.source for sign in ELSEWHERE):
        raise _refused(who, asked, "only an owner registers databases, several files at once, and files by shorthand")
    resolved = (folder / asked.source).resolve()
    meant = resolved.parent == folder or any(resolved.is_relative_to(one.resolve()) for one in server.settings.sources)
    if not meant or format_of(str(resolved), None) not in FORMS or asked.format not in (None, *FORMS):
        raise _refused(
            who, asked, "CSV and Parquet files of the curator's folder, or of the setting `sources`, can be registered"
        )
    catalog = server.curator.catalog
    for table in catalog.tables.values():
        used = catalog.source(table.name)
        if used.form in FORMS and Path(used.place).resolve() == resolved:
            who.require(Action.CATALOG_WRITE, of_table(table))
    return str(resolved)


def _refused(who: Caller, asked: TableAsked, what: str) -> NotPermitted:
    who.record(Action.CATALOG_WRITE, Resource(dataset=asked.dataset or asked.name, table=asked.name))
    return NotPermitted(f"{what}; ask an owner to register this one")


def _unit(asked: str | UnitAsked | None) -> str | Unit | None:
    if asked is None or isinstance(asked, str):
        return asked
    steps = (ForeignKey(one.column, one.target_table, one.target_column) for one in asked.through)
    return Unit(asked.column, tuple(steps))


def _states(asked: ColumnAsked) -> bool:
    return asked.bounds is not None or asked.categories is not None


def _column(name: str, asked: ColumnAsked) -> Bounds | Categories:
    if asked.bounds is not None and asked.categories is not None:
        raise InvalidInput(f"{name} has bounds or categories, not both", name=name)
    if asked.bounds is not None:
        lower, upper = map(read, asked.bounds)
        return Bounds(lower, upper)
    return Categories(read(asked.categories))


def _document(table: Table) -> dict[str, Any]:
    unit = table.unit
    steps = () if unit is None else unit.through
    return {
        "name": table.name,
        "dataset": table.dataset,
        "is_private": table.is_private,
        "unit": None
        if unit is None
        else {
            "column": unit.column,
            "through": [
                {"column": one.column, "target_table": one.target_table, "target_column": one.target_column}
                for one in steps
            ],
        },
        "columns": [_column_document(column) for column in table.columns],
        "limits": {
            "groups_per_unit": table.limits.groups_per_unit,
            "rows_per_group": table.limits.rows_per_group,
            "rows_per_unit": table.limits.rows_per_unit,
        },
        "identified_by": sorted(table.identified_by),
    }


def _column_document(column: Column) -> dict[str, Any]:
    facts = column.facts
    return {
        "name": column.name,
        "kind": column.kind.value,
        "nullable": column.nullable,
        "bounds": [written(_plain(facts.lower)), written(_plain(facts.upper))] if isinstance(facts, Bounds) else None,
        "categories": written(list(facts.values)) if isinstance(facts, Categories) else None,
    }


def _plain(bound: Any) -> Any:
    """Return a bound as a number that JSON has."""
    return float(bound) if not isinstance(bound, int | float) and hasattr(bound, "numerator") else bound
