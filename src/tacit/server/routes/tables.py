"""The catalog: which tables there are, what is public about them, and new ones."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from fastapi import APIRouter

from tacit.curator.catalog_reader import through
from tacit.curator.engine_registry import family
from tacit.curator.source_history import SourceHistory, files_of, is_own_file, registered_with, share_rows
from tacit.curator.table_sources import format_of
from tacit.engines.frames import FOLDER as FRAMES
from tacit.engines.protocol import Source
from tacit.privacy import texts
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import InvalidInput, NotPermitted
from tacit.privacy.tables import Column, Kind, Table
from tacit.privacy.units import ForeignKey, Unit
from tacit.server.access import Action, Resource
from tacit.server.catalog_audit import noted
from tacit.server.context import Caller, Who, of_table
from tacit.server.query_requests import limits_of
from tacit.wire.requests import ColumnRequest, TableRequest, UnitRequest
from tacit.wire.responses import (
    ForeignKeyResponse,
    LimitsResponse,
    NewTableResponse,
    RefreshResponse,
    TableColumnResponse,
    TableResponse,
    UnitResponse,
)
from tacit.wire.values import decode, encode

router = APIRouter(prefix="/v1/tables", tags=["tables"])

ELSEWHERE: Final = ("://", "spark:", "env:", "service:", "#", "~", "*", "?", "[")
"""What an address in a database, a name that stands for several files or one from a home folder has in it."""
FORMS: Final = ("csv", "parquet")


@router.get("")
def list_tables(who: Who) -> list[TableResponse]:
    """Return the tables that there are for the caller."""
    who.require(Action.SERVER_READ)
    return [_response(table) for table in who.tables(Action.CATALOG_READ)]


@router.get("/{name}")
def show_table(who: Who, name: str) -> TableResponse:
    """Return what is public about a table."""
    return _response(who.table(name, Action.CATALOG_READ))


@router.post("", status_code=201)
def add_table(who: Who, asked: TableRequest) -> NewTableResponse:
    """Register a table whose rows the server can read."""
    curator = who.server.curator
    who.require(Action.CATALOG_WRITE, Resource(dataset=asked.dataset or asked.name, table=asked.name))
    _check_replaced(who, asked.name)
    _check_way(who, asked)
    source = _source(who, asked)
    with noted(who.server.access, curator, [asked.name], **who.mark) as said:
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
            warn=said.append,
        )
    return NewTableResponse(**dict(_response(table)), warnings=said)


@router.post("/{name}/refresh")
def refresh_table(who: Who, name: str) -> RefreshResponse:
    """Look at the rows of a table again, and of those that share its units by foreign keys."""
    table = who.table(name, Action.CATALOG_WRITE)
    catalog = who.server.curator.catalog
    shared = family(catalog, {table.name.lower()})
    _require_all(who, table, shared)
    for one in shared:
        _check_rows(who, one, catalog.source(one.name))
    with noted(who.server.access, who.server.curator, [one.name for one in shared], **who.mark):
        return RefreshResponse(changed=who.server.curator.refresh(table.name))


@router.delete("/{name}", status_code=204)
def remove_table(who: Who, name: str) -> None:
    """Take a table out of the catalog; its rows, its budget and what was released stay."""
    table = who.table(name, Action.CATALOG_WRITE)
    _check_replaced(who, table.name)
    with noted(who.server.access, who.server.curator, [table.name], **who.mark):
        who.server.curator.remove_table(table.name)


def _check_replaced(who: Caller, name: str) -> None:
    """Refuse to change a table that is not the caller's, or through which one that is not leads to its unit."""
    tables = who.server.curator.catalog.tables
    if (known := tables.get(name.lower())) is not None:
        key = known.name.lower()
        led = [one for one in tables.values() if any(step.target_table.lower() == key for step in through(one))]
        _require_all(who, known, [known, *led])


def _check_way(who: Caller, asked: TableRequest) -> None:
    """Refuse a way to the unit through tables that are not the caller's, or into a data set that is not."""
    for step in asked.unit.through if isinstance(asked.unit, UnitRequest) else ():
        passed = who.table(step.target_table, Action.CATALOG_WRITE)
        if passed.is_private:  # its data set will be that of the new table
            who.require(Action.CATALOG_WRITE, Resource(dataset=passed.dataset, table=asked.name))


def _require_all(who: Caller, table: Table, tables: Iterable[Table]) -> None:
    """Refuse to change tables that the caller may not write; those that are hidden from the caller are not named."""
    for one in tables:
        if not who.may(Action.CATALOG_WRITE, of_table(one)):
            who.record(Action.CATALOG_WRITE, of_table(one))
            raise NotPermitted(
                f"{table.name}, or a table that shares its units, is not yours to change; ask an owner to do it"
            )


def _source(who: Caller, asked: TableRequest) -> str:
    """Return where the rows are, as the caller may say it: anywhere for an owner, otherwise only files meant for it.

    Those lie in the curator's folder itself or below one of the setting `sources`, their names say what they hold, and
    they are not the rows of a table that is somebody else's. So a new table shows a caller no row that was hidden.
    """
    if who.may(Action.PEOPLE_WRITE):
        return asked.source
    server, folder = who.server, who.server.settings.folder.resolve()
    resource = Resource(dataset=asked.dataset or asked.name, table=asked.name)
    if any(sign in asked.source for sign in ELSEWHERE):
        raise _refused(who, resource, "only an owner registers databases, several files at once and files by shorthand")
    resolved = texts.path("source", str(folder / asked.source)).resolve()
    meant = resolved.parent == folder or any(resolved.is_relative_to(one.resolve()) for one in server.settings.sources)
    form = format_of(str(resolved), asked.format)
    if not meant or format_of(str(resolved), None) not in FORMS or form not in FORMS:
        raise _refused(
            *(who, resource),
            "CSV and Parquet files of the curator's folder, or of the setting `sources`, can be registered",
        )
    _check_others_rows(who, resource, Source(form, str(resolved)), is_own_allowed=False)
    return str(resolved)


def _check_rows(who: Caller, table: Table, source: Source) -> None:
    """Refuse to look again at rows that have become somebody else's by another link or name."""
    if not who.may(Action.PEOPLE_WRITE):
        stored = Path(source.place).is_relative_to(who.server.settings.folder.absolute() / FRAMES)
        _check_others_rows(who, of_table(table), source, is_own_allowed=stored)


def _check_others_rows(who: Caller, resource: Resource, source: Source, *, is_own_allowed: bool) -> None:
    """Refuse files of tables that the caller may not write, or that were such before, and the folder's own.

    So what is warned of other budgets names none that is hidden from the caller, either.
    """
    catalog = who.server.curator.catalog
    others = [one for one in catalog.tables.values() if not who.may(Action.CATALOG_WRITE, of_table(one))]
    earlier = registered_with(source, SourceHistory(catalog.folder).all())
    is_shared = any(share_rows(source, catalog.source(one.name)) for one in others) or any(
        one.dataset and not who.may(Action.CATALOG_WRITE, Resource(one.dataset, one.table)) for one in earlier
    )
    is_own = not is_own_allowed and any(is_own_file(path, catalog.folder) for path in files_of(source))
    if is_shared or is_own:
        raise _refused(who, resource, "these rows are not yours to register")


def _refused(who: Caller, resource: Resource, what: str) -> NotPermitted:
    who.record(Action.CATALOG_WRITE, resource)
    return NotPermitted(f"{what}; ask an owner to register this one")


def _unit(asked: str | UnitRequest | None) -> str | Unit | None:
    if asked is None or isinstance(asked, str):
        return asked
    steps = (ForeignKey(one.column, one.target_table, one.target_column) for one in asked.through)
    return Unit(asked.column, tuple(steps))


def _states(asked: ColumnRequest) -> bool:
    return asked.bounds is not None or asked.categories is not None or not asked.nullable


def _column(name: str, asked: ColumnRequest) -> Bounds | Categories | Column:
    if asked.bounds is not None and asked.categories is not None:
        raise InvalidInput(f"{name} has bounds or categories, not both", name=name)
    facts: Bounds | Categories | None = None
    if asked.bounds is not None:
        lower, upper = map(decode, asked.bounds)
        facts = Bounds(lower, upper)
    elif asked.categories is not None:
        facts = Categories(decode(asked.categories))
    if asked.nullable and facts is not None:
        return facts
    if asked.kind is None:
        raise InvalidInput(f"that no value of {name} is missing is stated together with its kind", name=name)
    return Column(name, Kind(asked.kind), facts, nullable=False)


def _response(table: Table) -> TableResponse:
    unit, limits = table.unit, table.limits
    return TableResponse(
        name=table.name,
        dataset=table.dataset,
        is_private=table.is_private,
        unit=None if unit is None else _unit_response(unit),
        columns=[_column_response(column) for column in table.columns],
        limits=LimitsResponse(
            groups_per_unit=limits.groups_per_unit,
            rows_per_group=limits.rows_per_group,
            rows_per_unit=limits.rows_per_unit,
        ),
        identified_by=sorted(table.identified_by),
    )


def _unit_response(unit: Unit) -> UnitResponse:
    steps = [
        ForeignKeyResponse(column=one.column, target_table=one.target_table, target_column=one.target_column)
        for one in unit.through
    ]
    return UnitResponse(column=unit.column, through=steps)


def _column_response(column: Column) -> TableColumnResponse:
    facts = column.facts
    return TableColumnResponse(
        name=column.name,
        kind=column.kind,
        nullable=column.nullable,
        bounds=encode([facts.lower, facts.upper]) if isinstance(facts, Bounds) else None,
        categories=encode(facts.values) if isinstance(facts, Categories) else None,
    )
