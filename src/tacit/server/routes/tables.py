"""The catalog: which tables there are, what is public about them, and new ones."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter

from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import InvalidInput, NotPermitted
from tacit.privacy.tables import Column, Kind, Table
from tacit.privacy.units import ForeignKey, Unit
from tacit.server.access import Action, Resource
from tacit.server.asking import limits_of
from tacit.server.documents import ColumnAsked, TableAsked, UnitAsked
from tacit.server.listings import TableGiven
from tacit.server.place import Server, Who, of_table
from tacit.server.wire import read, written

router = APIRouter(prefix="/v1/tables", tags=["tables"])

ELSEWHERE: Final = ("://", "spark:", "env:", "service:", "#")
"""What an address in a database has in it, and a file's name has not."""


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
    _check_source(who.server, asked.source, is_owner=who.may(Action.PEOPLE_WRITE))
    with warnings.catch_warnings(record=True):
        table = curator.add_table(
            asked.name,
            asked.source,
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


@router.delete("/{name}", status_code=204)
def remove(who: Who, name: str) -> None:
    """Take a table out of the catalog; its rows, its budget and what was released stay."""
    table = who.table(name, Action.CATALOG_WRITE)
    who.server.curator.remove_table(table.name)


def _check_source(server: Server, source: str, *, is_owner: bool) -> None:
    """Let only owners name databases, and everybody else only files in the folders that are meant for it."""
    if any(sign in source for sign in ELSEWHERE):
        if not is_owner:
            raise NotPermitted("only an owner registers tables of a database, whose account the server would use")
        return
    folder = server.settings.folder.resolve()
    places = [folder, *(place.resolve() for place in server.settings.sources)]
    path = Path(source)
    resolved = (path if path.is_absolute() else folder / path).resolve()
    if not any(resolved.is_relative_to(place) for place in places):
        raise NotPermitted(
            "files are registered from the curator's folder, or from one that the setting `sources` names"
        )


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
